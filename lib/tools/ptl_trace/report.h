#pragma once
// A timeline as one page for a browser, with all that it needs inside.

#include <string>

#include "lib/tools/ptl_trace/summary.h"

namespace portofu::tools {

/// Timeline, communication matrix, sizes, depths or links, waits, and the slowest messages. Refers to nothing outside.
/// Its body has the attribute data-drawn once a browser has laid the plots out: the names of those that have a size.
/// @param more  sections behind these (drawing.h)
std::string report_html(const Timeline& timeline, const Summary& summary, const std::string& more = "");

}  // namespace portofu::tools
