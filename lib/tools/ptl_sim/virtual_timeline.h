#pragma once
// A job in virtual time as the timeline that ptl_trace writes and draws. Its clock is the virtual one, in nanoseconds.

#include <string>
#include <vector>

#include "lib/sim/network.h"
#include "lib/tools/ptl_sim/history.h"
#include "lib/tools/ptl_trace/timeline.h"

namespace portofu::tools {

/// Links with the most traffic that a timeline has, and stretches of time of each, at most.
inline constexpr std::size_t kMostTimelineLinks = 64;
inline constexpr std::size_t kMostStretches = 128;

/// Ranks with their calls, their waits, and what they sent and received.
/// @param ids      of the ranks
/// @param program  its name, for people
Timeline virtual_timeline(const History& history, const std::vector<ProcessId>& ids, const std::string& program);

/// The use of links and interfaces over time.
std::vector<LinkUse> link_uses(const sim::Network& network);

}  // namespace portofu::tools
