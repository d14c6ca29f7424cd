#include "lib/tools/ptl_sim/path_section.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lib/tools/ptl_trace/drawing.h"
#include "lib/tools/ptl_trace/summary.h"

namespace portofu::tools {
namespace {

constexpr std::array<const char*, kPathKindCount> kColours{"#4f9d69", "#3b6fb6", "#8a6fb0",
                                                           "#d2b52c", "#b5533c", "#9aa3ad"};
constexpr std::size_t kStretches = 300;
constexpr double kStripHeight = 60;
constexpr std::size_t kMostPartsOfPage = 30;

std::string time_of(std::uint64_t ps) { return time_text(static_cast<std::int64_t>((ps + 500) / 1000)); }

/// Columns of all kinds, each as high as its share of that stretch of time.
std::string path_plot(const CriticalPath& path) {
  const double stretch_ps = static_cast<double>(path.time_ps()) / kStretches;
  std::vector<std::array<double, kPathKindCount>> shares(kStretches);
  for (const PathSegment& segment : path.segments) {
    const auto from = static_cast<double>(segment.from_ps);
    const auto to = static_cast<double>(segment.to_ps);
    for (auto i = static_cast<std::size_t>(from / stretch_ps); i < kStretches; ++i) {
      const double begin = std::max(from, static_cast<double>(i) * stretch_ps);
      const double end = std::min(to, static_cast<double>(i + 1) * stretch_ps);
      if (begin >= to) break;
      shares[i][static_cast<std::size_t>(segment.kind)] += std::max(0.0, end - begin) / stretch_ps;
    }
  }
  constexpr double kWidth = static_cast<double>(kPlotWidth) / kStretches;
  std::string content = words(0, kStripHeight - 4, "share of the path");
  for (std::size_t i = 0; i < kStretches; ++i) {
    double y = kStripHeight;
    for (std::size_t kind = 0; kind < kPathKindCount; ++kind) {
      const double height = shares[i][kind] * kStripHeight;
      if (height < 0.05) continue;
      y -= height;
      content += rectangle({kLabelWidth + static_cast<double>(i) * kWidth, y, kWidth, height}, kColours[kind], "");
    }
  }
  content += words(kLabelWidth, kStripHeight + 15, "0") +
             words(kLabelWidth + kPlotWidth, kStripHeight + 15, time_of(path.time_ps()), "end");
  return plot("path", kLabelWidth + kPlotWidth, static_cast<int>(kStripHeight) + 20, content);
}

std::string parts_plot(const CriticalPath& path, const std::vector<PathPart>& parts) {
  std::string content;
  double y = 0;
  for (std::size_t i = 0; i < std::min(parts.size(), kMostPartsOfPage); ++i, y += 21) {
    const PathPart& part = parts[i];
    const double share = static_cast<double>(part.time_ps) / static_cast<double>(path.time_ps());
    const double width = share * (kPlotWidth - 160);
    content += words(0, y + 15, part.name);
    content += rectangle({kLabelWidth, y + 2, std::max(width, 1.0), 17}, kColours[static_cast<std::size_t>(part.kind)],
                         std::to_string(part.segments) + " times");
    content += words(kLabelWidth + width + 6, y + 15, time_of(part.time_ps) + ", " + number(100 * share) + " %");
  }
  return plot("parts", kLabelWidth + kPlotWidth, std::max(static_cast<int>(y), 20), content);
}

}  // namespace

std::string path_section(const CriticalPath& path, const History& history, const sim::Network& network) {
  if (path.segments.empty()) return "";
  std::string keys;
  for (std::size_t kind = 0; kind < kPathKindCount; ++kind) keys += key(kColours[kind], kPathKindNames[kind]);
  const auto parts = parts_of(path, history, [&](std::uint32_t stage) { return network.stage_name(stage); });
  return heading("What determines the end",
                 "The critical path to the end of rank " + std::to_string(path.last_rank) + ": " + keys) +
         path_plot(path) + heading("Its longest parts") + parts_plot(path, parts);
}

}  // namespace portofu::tools
