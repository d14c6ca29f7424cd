// A hash table with a sequence lock in each place.

#include "engine/segment/region_table.h"

namespace portofu {
namespace {

constexpr std::uint64_t kWritable = std::uint64_t{1} << 32;
constexpr std::uint64_t kReadable = std::uint64_t{1} << 33;

std::uint32_t place_of(std::uint64_t key, std::uint32_t probe) {
  const auto first = static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15u >> 40);
  return (first + probe) & (kRegionSlots - 1);
}

/// Writer's side: between an odd and an even sequence number.
void write_slot(RegionSlotShared& slot, const PublishedRegion& region) {
  const std::uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
  slot.sequence.store(sequence + 1, std::memory_order_relaxed);
  // (G1) The odd number is seen before anything of the new content.
  std::atomic_thread_fence(std::memory_order_release);
  slot.key.store(region.key, std::memory_order_relaxed);
  slot.start.store(region.start, std::memory_order_relaxed);
  slot.bytes.store(region.bytes, std::memory_order_relaxed);
  const std::uint64_t access = region.user | (region.writable ? kWritable : 0) | (region.readable ? kReadable : 0);
  slot.access.store(access, std::memory_order_relaxed);
  slot.match_bits.store(region.match_bits, std::memory_order_relaxed);
  slot.sequence.store(sequence + 2, std::memory_order_release);
}

}  // namespace

bool publish_region(RegionTableShared& table, const PublishedRegion& region) {
  RegionSlotShared* free = nullptr;
  for (std::uint32_t probe = 0; probe < kRegionProbes; ++probe) {
    RegionSlotShared& slot = table.slots[place_of(region.key, probe)];
    const std::uint64_t key = slot.key.load(std::memory_order_relaxed);
    if (key == region.key) return false;
    if (key == 0 && free == nullptr) free = &slot;
  }
  if (free != nullptr) write_slot(*free, region);
  return free != nullptr;
}

void withdraw_region(RegionTableShared& table, std::uint64_t key) {
  for (std::uint32_t probe = 0; probe < kRegionProbes; ++probe) {
    RegionSlotShared& slot = table.slots[place_of(key, probe)];
    if (slot.key.load(std::memory_order_relaxed) == key) return write_slot(slot, {});
  }
}

bool find_published_region(const RegionTableShared& table, std::uint64_t key, FoundRegion* region) {
  for (std::uint32_t probe = 0; probe < kRegionProbes; ++probe) {
    const RegionSlotShared& slot = table.slots[place_of(key, probe)];
    const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);  // (G1)
    if (slot.key.load(std::memory_order_relaxed) != key) continue;
    region->key = key;
    region->start = slot.start.load(std::memory_order_relaxed);
    region->bytes = slot.bytes.load(std::memory_order_relaxed);
    const std::uint64_t access = slot.access.load(std::memory_order_relaxed);
    region->user = static_cast<std::uint32_t>(access);
    region->writable = (access & kWritable) != 0;
    region->readable = (access & kReadable) != 0;
    region->match_bits = slot.match_bits.load(std::memory_order_relaxed);
    region->sequence = &slot.sequence;
    region->seen = before;
    // (G1) What was read is older than this look at the number.
    std::atomic_thread_fence(std::memory_order_acquire);
    return before % 2 == 0 && slot.sequence.load(std::memory_order_relaxed) == before;
  }
  return false;
}

}  // namespace portofu
