#pragma once
// What determines the end of a job: the way back from it, through the rank that ended last, the message that this rank
// waited for, the rank that sent it, and so on, to the beginning. All that takes time on this way makes the job longer.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/tools/ptl_sim/history.h"

namespace portofu::tools {

/// What a part of the way goes into.
enum class PathKind : std::uint8_t {
  kCompute,    ///< A rank computes, between calls.
  kCall,       ///< It is in a call, or looks at its memory; but for waiting.
  kInterface,  ///< A message is in an interface of its sender or its receiver.
  kWire,       ///< It is on its way: its bytes, and the latency of links.
  kBusy,       ///< It waits for a link or an interface in use.
  kTimer,      ///< A rank waits for a time, such as the end of a timeout.
};
inline constexpr std::size_t kPathKindCount = 6;
inline constexpr std::array<const char*, kPathKindCount> kPathKindNames{"compute", "call", "interface",
                                                                        "wire",    "busy", "timer"};

/// A part of the way.
struct PathSegment {
  PathKind kind;
  std::uint64_t from_ps;
  std::uint64_t to_ps;
  std::uint32_t rank;     ///< Whose time it is; of a message: its sender.
  std::uint32_t message;  ///< Index in the history; kNoMessage: none.
  VirtualSpent spent;     ///< kCompute, kCall: what the rank does.
};

struct CriticalPath {
  std::vector<PathSegment> segments;  ///< From the beginning to the end, without gaps; empty if there is no history.
  std::array<std::uint64_t, kPathKindCount> sums_ps{};  ///< By PathKind.
  std::uint32_t last_rank = 0;  ///< That ends last, or gets the last message; of several the lowest.

  std::uint64_t time_ps() const { return segments.empty() ? 0 : segments.back().to_ps; }
};

CriticalPath find_critical_path(const History& history);

/// Segments of the same kind and of the same rank, pair of ranks, or link in use, together.
struct PathPart {
  std::string name;  ///< "rank 3: put", "rank 0 to rank 3: on the wire", "X+ of node 5 in use".
  PathKind kind;
  std::uint64_t time_ps;
  std::uint64_t segments;
};

/// What takes longest first.
/// @param stage_name  of what a message has waited for
std::vector<PathPart> parts_of(const CriticalPath& path, const History& history,
                               const std::function<std::string(std::uint32_t)>& stage_name);

}  // namespace portofu::tools
