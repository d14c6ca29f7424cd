#pragma once
// Memory of a process that its peers on the node may use without its help, as they read of it: regions of uTofu, and
// entries of Portals of which the process wants to hear nothing. In its segment; peers read and never write. What is
// not listed here, because the table is full, is reached by packets.

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace portofu {

/// A region that peers may look up.
struct PublishedRegion {
  std::uint64_t key = 0;    ///< region_key or entry_key.
  std::uint64_t start = 0;  ///< Address in the owner's memory.
  std::uint64_t bytes = 0;
  std::uint32_t user = 0;  ///< The component of the VCQ that registered it; the usage ID that may use the entry.
  bool writable = false;
  bool readable = true;
  std::uint64_t match_bits = 0;  ///< Of an entry of a matching interface, which takes these alone.
};

/// Names a region: a control queue of the owner (20 bits) and a STag (24 bits). Never 0.
constexpr std::uint64_t region_key(std::uint32_t control_queue, std::uint32_t stag) {
  return std::uint64_t{1} << 63 | std::uint64_t{control_queue} << 24 | stag;
}

/// Whether a key is an entry_key.
constexpr bool is_entry_key(std::uint64_t key) { return key >> 62 == 1; }

/// Names the entry of a portal table entry (index of 8 bits) that messages with these bits match first. Never 0, and
/// never a region_key; two entries with different bits may have one key.
/// @param match_bits  0 on a non-matching interface
constexpr std::uint64_t entry_key(std::uint32_t interface_index, std::uint32_t pt_index, std::uint64_t match_bits) {
  const std::uint64_t hash = match_bits * 0x9e3779b97f4a7c15u >> 20;
  return std::uint64_t{1} << 62 | hash << 16 | std::uint64_t{interface_index} << 8 | pt_index;
}

/// One place. Writer: the owner, on duty. Readers: peers, who believe what they read only if `sequence` was even and
/// did not move meanwhile.
struct alignas(64) RegionSlotShared {
  std::atomic<std::uint64_t> sequence;  ///< Odd while the owner writes (release, G1).
  std::atomic<std::uint64_t> key;       ///< 0: free.
  std::atomic<std::uint64_t> start;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> access;  ///< User; bit 32: writable; bit 33: readable.
  std::atomic<std::uint64_t> match_bits;
};
static_assert(sizeof(RegionSlotShared) == 64 && std::is_standard_layout_v<RegionSlotShared>);

inline constexpr std::uint32_t kRegionSlots = 1024;  ///< A power of two.

/// A region is in one of this many places behind the one that its key names.
inline constexpr std::uint32_t kRegionProbes = 16;

struct RegionTableShared {
  RegionSlotShared slots[kRegionSlots];
};

/// @return false if there was no place for it, or its key is there already
bool publish_region(RegionTableShared& table, const PublishedRegion& region);

/// Nobody finds the region any more. Who has found it already may still write: of uTofu the program must not take
/// memory away from communication under way (guide, 3.6); who uses an entry says so (ChannelSlotShared::visited).
void withdraw_region(RegionTableShared& table, std::uint64_t key);

/// A region as a reader found it. It is still that as long as `sequence` has the value `seen` (G1).
struct FoundRegion : PublishedRegion {
  const std::atomic<std::uint64_t>* sequence = nullptr;
  std::uint64_t seen = 0;
};

/// @return false if it is not listed, or just being changed
bool find_published_region(const RegionTableShared& table, std::uint64_t key, FoundRegion* region);

/// Whether registered memory may be used so.
enum class RegionVerdict : std::uint8_t {
  kFine,
  kBehind,    ///< The range begins behind the region, or at its end.
  kTooLong,   ///< The range leaves the region.
  kReadOnly,  ///< It would be written, and is registered read-only.
};

/// The one judgement of bounds and access: of the owner on its own table and of peers on what it has published.
/// @param region_bytes  length of the region
/// @param writable      how it is registered
/// @param writes        whether the range [offset, offset + bytes) is to be written
constexpr RegionVerdict judge_region(std::uint64_t region_bytes, bool writable, std::uint64_t offset,
                                     std::uint64_t bytes, bool writes) {
  if (bytes <= region_bytes && offset <= region_bytes - bytes) [[likely]] {
    return writes && !writable ? RegionVerdict::kReadOnly : RegionVerdict::kFine;
  }
  return offset >= region_bytes ? RegionVerdict::kBehind : RegionVerdict::kTooLong;
}

}  // namespace portofu
