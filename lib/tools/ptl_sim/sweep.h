#pragma once
// The same program on several sizes of a machine: a table, JSON, and a plot of its time by size.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/ptl_sim/critical_path.h"

namespace portofu::tools {

/// Sizes of a sweep, at most.
inline constexpr std::size_t kMostSweepPoints = 256;

/// What a program has taken on one size.
struct SweepPoint {
  std::string shape;  ///< As --nodes takes it.
  std::uint32_t nodes = 0;
  std::uint32_t ranks = 0;
  std::uint64_t time_ps = 0;
  std::uint64_t messages = 0;
  std::uint64_t late_calls = 0;
  std::array<std::uint64_t, kPathKindCount> path_ps{};  ///< Of the critical path, by PathKind.
};

/// What is swept, for people.
struct Sweep {
  std::string machine;
  std::string program;
  std::uint32_t per_node = 1;
  int status = 0;  ///< Exit status of the last run; if it is not 0, that run has no point.
  std::vector<SweepPoint> points;
};

/// "nodes=12,2x3x4" is two shapes. @return empty if it is something else
std::vector<std::string> parse_sweep(const std::string& text);

/// A row for each size: its time, and what its critical path goes into.
std::string sweep_text(const Sweep& sweep);

/// lib/virtual_report.md has the keys.
std::string sweep_json(const Sweep& sweep);

/// Time by number of nodes, both axes logarithmic: a file for a browser.
std::string sweep_svg(const Sweep& sweep);

}  // namespace portofu::tools
