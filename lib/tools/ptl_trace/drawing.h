#pragma once
// Parts of pages and plots: SVG and HTML that refer to nothing outside.

#include <string>

namespace portofu::tools {

/// Plots have labels on their left, of so many pixels.
inline constexpr int kLabelWidth = 260;
inline constexpr int kPlotWidth = 900;

/// Text that cannot become markup. What is no character of UTF-8, or one that no page may have, becomes U+FFFD.
std::string escaped(const std::string& text);

/// With two digits behind the point.
std::string number(double value);

struct Box {
  double x, y, width, height;
};

/// @param title  shown when somebody points at it; empty: nothing
std::string rectangle(const Box& at, const std::string& colour, const std::string& title);

/// @param anchor  what lies at x: "start", "middle" or "end" of the text
std::string words(double x, double y, const std::string& text, const char* anchor = "start");

/// @param id  of the plot in its page
std::string plot(const char* id, int width, int height, const std::string& content);

std::string heading(const char* title, const std::string& legend = "");

/// An entry of a legend.
std::string key(const char* colour, const std::string& text);

/// "#rrggbb", from nearly white to blue. @param share  0 to 1
std::string shade(double share);

}  // namespace portofu::tools
