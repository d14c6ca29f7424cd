#include "lib/tools/ptl_trace/drawing.h"

#include <cstdio>

namespace portofu::tools {

namespace {

unsigned byte_at(const std::string& text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// Bytes of the character of UTF-8 that begins there; 0: none does, or none that a page may have.
std::size_t bytes_of_character(const std::string& text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  // There is one way to write a character, no half of a pair, and nothing beyond 10ffff.
  const unsigned second = byte_at(text, at + 1);
  const bool is_allowed = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second < 0xa0) &&
                          (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
  if (!is_allowed) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (byte_at(text, at + i) >> 6 != 2) return 0;
  }
  return bytes;
}

/// Names of files are any bytes, and one that is no character would spoil the whole page.
std::string readable(const std::string& text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = bytes_of_character(text, at);
    safe += bytes != 0 ? text.substr(at, bytes) : "\xef\xbf\xbd";
    at += bytes != 0 ? bytes : 1;
  }
  return safe;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : readable(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string rectangle(const Box& at, const std::string& colour, const std::string& title) {
  const std::string hint = title.empty() ? "" : "<title>" + escaped(title) + "</title>";
  return "<rect x=\"" + number(at.x) + "\" y=\"" + number(at.y) + "\" width=\"" + number(at.width) + "\" height=\"" +
         number(at.height) + "\" fill=\"" + colour + "\">" + hint + "</rect>\n";
}

std::string words(double x, double y, const std::string& text, const char* anchor) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" + escaped(text) +
         "</text>\n";
}

std::string plot(const char* id, int width, int height, const std::string& content) {
  return std::string("<svg id=\"") + id + "\" width=\"" + std::to_string(width) + "\" height=\"" +
         std::to_string(height) + "\">\n" + content + "</svg>\n";
}

std::string heading(const char* title, const std::string& legend) {
  return std::string("<h2>") + title + "</h2>\n" + (legend.empty() ? "" : "<p>" + legend + "</p>\n");
}

std::string key(const char* colour, const std::string& text) {
  return std::string("<span style=\"background:") + colour + "\" class=\"key\"></span> " + escaped(text) + " ";
}

std::string shade(double share) {
  char colour[8];
  std::snprintf(colour, sizeof colour, "#%02x%02xff", static_cast<int>(235 - 200 * share),
                static_cast<int>(240 - 150 * share));
  return colour;
}

}  // namespace portofu::tools
