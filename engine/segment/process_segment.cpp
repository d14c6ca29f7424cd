// What the owner does with its segment once it has one. Its making is in segment_creation.cpp.

#include "engine/segment/process_segment.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/queue/assert.h"
#include "engine/queue/cancellation.h"
#include "engine/segment/known_by.h"
#include "engine/segment/names_word.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_creation.h"
#include "engine/segment/shared_heap.h"
#include "engine/segment/signpost.h"

namespace portofu {

std::unique_ptr<ProcessSegment> ProcessSegment::create(const SegmentOptions& options, SegmentError* error,
                                                       std::string* why) {
  SegmentCreation creation(options);
  std::unique_ptr<ProcessSegment> segment = creation.run();
  *error = creation.error();
  if (why != nullptr) *why = creation.why();
  return segment;
}

void ProcessSegment::give_names_back_until(std::uint64_t deadline_ns) {
  if (!in_owner_process() || ended_) return;
  const OwnSegmentsLock lock(deadline_ns);
  if (!lock.is_held()) return;
  // Through the mapping: this may be a handler that has interrupted who holds the file's mutex.
  const NamesChange change(doorbell().names);
  for (const RegionSlotShared& slot : regions().slots) {
    if (const std::uint64_t key = slot.key.load(std::memory_order_relaxed); key != 0) withdraw_region(regions(), key);
  }
  const std::uint64_t known_by = layout_.known_by_offset();
  const auto& knowers = reinterpret_cast<const KnownByShared*>(header_.at(known_by))->places;
  const bool is_known = std::ranges::any_of(knowers, [](const auto& place) { return place.load() != 0; });
  // Of other nodes nobody is told: aliases that they know are left to whoever removes those of the dead.
  for (const std::string& alias : aliases_) {
    if (!is_known) ::unlink(alias.c_str());
  }
  if (!path_.empty()) ::unlink(path_.c_str());
  stag_counts_.close();
}

void ProcessSegment::end() {
  // A forked child has neither the lock nor the name.
  if (!in_owner_process() || ended_) return;
  ended_ = true;
  const OwnSegmentsLock lock;
  // Peers may still map the segment. It is not to be believed before it is dead for all.
  std::optional<LastNamesChange> change;
  if (file_ != nullptr) change.emplace(file_->fd());
  // The name first: as long as the file is locked, whoever opens the name knows that it must not remove it.
  if (!path_.empty()) remove_names();
  remove_own_segment(file_.get());
  if (file_ != nullptr) file_->end_life();
  stag_counts_.close();
}

void ProcessSegment::die() {
  ended_ = true;
  file_->end_life();
}

/// Aliases of which somebody may not have heard are left to whoever removes those of the dead.
void ProcessSegment::remove_names() {
  const NoCancellation whole;
  if (tell_knowers(file_->fd(), NamesLost::kAllWithItsLife, kTellShortlyMs)) {
    for (const std::string& alias : aliases_) remove_name(*this, alias);
  }
  remove_name(*this, path_);
}

SegmentControlShared& ProcessSegment::control() {
  return *reinterpret_cast<SegmentControlShared*>(header_.at(layout_.control_offset()));
}

RegionTableShared& ProcessSegment::regions() {
  return *reinterpret_cast<RegionTableShared*>(header_.at(layout_.regions_offset()));
}

ChannelSlotShared& ProcessSegment::slot(std::uint32_t slot_index) {
  PORTOFU_ASSERT(slot_index < layout_.channel_count);
  return reinterpret_cast<ChannelSlotShared*>(header_.at(layout_.slots_offset()))[slot_index];
}

Mapping ProcessSegment::map_ring(std::uint32_t slot_index, RingSize size) const {
  PORTOFU_ASSERT(slot_index < layout_.channel_count);
  // The claimer has allocated it; that is not taken on trust, because touching a hole without memory is a SIGBUS.
  const std::uint64_t bytes = layout_.ring_pages_bytes(size);
  if (!file_->allocate(layout_.ring_offset(slot_index), bytes)) return {};
  return Mapping::map(file_->fd(), layout_.ring_offset(slot_index), bytes);
}

Mapping ProcessSegment::map_send_area() const {
  if (layout_.area_bytes == 0 || !file_->allocate(layout_.area_offset(), layout_.area_bytes)) return {};
  Mapping area = Mapping::map(file_->fd(), layout_.area_offset(), layout_.area_bytes);
  if (area) area.populate();
  return area;
}

bool ProcessSegment::publish_heap() {
  SegmentControlShared& shared = control();
  if (shared.heap_id.load(std::memory_order_relaxed) != 0) return true;
  const HeapPlace place = process_heap().publish();
  shared.heap_start.store(place.start, std::memory_order_relaxed);
  shared.heap_bytes.store(place.bytes, std::memory_order_relaxed);
  // (G2) Partner: PeerSegment::heap.
  shared.heap_id.store(place.id, std::memory_order_release);
  return place.id != 0;
}

void ProcessSegment::clear_ring(std::uint32_t slot_index) const {
  const std::uint64_t offset = layout_.ring_offset(slot_index);
  if (file_->clear(offset, layout_.ring_stride_bytes())) return;
  const Mapping ring = map_ring(slot_index);
  if (ring) std::memset(ring.at(0), 0, layout_.ring_stride_bytes());
}

bool ProcessSegment::in_owner_process() const { return fork_generation_ == fork_generation(); }

}  // namespace portofu
