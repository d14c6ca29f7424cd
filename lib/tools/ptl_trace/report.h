#pragma once
// A timeline as one page for a browser, with all that it needs inside.

#include <string>

#include "lib/tools/ptl_trace/summary.h"

namespace portofu::tools {

/// Timeline, communication matrix, sizes, depths, waits, and the slowest messages. Refers to nothing outside. Its body
/// has the attribute data-drawn once a browser has laid the plots out: the names of those that have a size.
std::string report_html(const Timeline& timeline, const Summary& summary);

}  // namespace portofu::tools
