// What the engine of this process has counted (engine/observe): the numbers that ptl_info shows.
#pragma once

#include <cstdint>

namespace compare {

/// Traffic of an engine since its start, or between two looks.
struct Traffic {
  std::uint64_t packets = 0;  ///< Published by it.
  std::uint64_t bytes = 0;    ///< Of payload in them.

  Traffic operator-(const Traffic& before) const { return {packets - before.packets, bytes - before.bytes}; }
  Traffic operator+(const Traffic& other) const { return {packets + other.packets, bytes + other.bytes}; }
};

/// Looks at the engine of this process.
Traffic look_at_own_engine();

/// Cache lines that a sender writes: one for the header of each packet, which holds the sequence word, and those of the
/// payload, which begins at the start of a line. Exact as long as at most one packet of the traffic ends within a line.
/// What the receiver writes to give cells back, one line for many packets, is not in it.
inline std::uint64_t lines_written(const Traffic& traffic) {
  constexpr std::uint64_t kLineBytes = 64;
  return traffic.packets + (traffic.bytes + kLineBytes - 1) / kLineBytes;
}

}  // namespace compare
