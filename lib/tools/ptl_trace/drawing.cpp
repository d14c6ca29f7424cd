#include "lib/tools/ptl_trace/drawing.h"

#include <cstdio>

namespace portofu::tools {

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
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
