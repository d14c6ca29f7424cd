#pragma once
// What an onlooker sees of the segments of a node: for tools. Everything is a copy made by reading the file: nothing
// can be written to by mistake, and nothing faults when a file is cut short meanwhile. The numbers of a living process
// move on while they are read, and need not fit each other.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/segment/layout.h"

namespace portofu {

/// Whose a segment file is.
enum class SegmentLife : std::uint8_t {
  kLiving,   ///< Its owner runs.
  kDead,     ///< Its owner is gone; the next process of this user that starts removes it, unless it is to be kept.
  kUnknown,  ///< It has a name of ours and something else inside; only `name` says anything.
};

/// A channel that is not free.
struct ChannelView {
  std::uint32_t slot_index;
  std::uint64_t slot_word;        ///< See wire/shm/channel_directory.h.
  std::uint32_t waiting_packets;  ///< Published by the sender and not taken by the owner.
};

struct SegmentView {
  std::string name;  ///< Of the file.
  SegmentLife life = SegmentLife::kUnknown;
  SegmentDescriptorShared descriptor{};
  std::array<std::uint64_t, kCounterPlaces> counters{};
  std::uint64_t endpoints = 0;        ///< SegmentControlShared::endpoints.
  std::uint64_t inspection_root = 0;  ///< SegmentControlShared::inspection_root.
  std::vector<ChannelView> channels;
};

/// Looks at all segments of this effective user in a directory, kMaxViewedNames at most.
/// @param views  set to what was found, sorted by name
/// @return false if the directory cannot be read
bool view_segments(const std::string& directory, std::vector<SegmentView>* views);

inline constexpr std::size_t kMaxViewedNames = 65536;

}  // namespace portofu
