// The life of sources: found in the directory, closed by their sender or by its death, drained, reported, freed.

#include <algorithm>
#include <cerrno>
#include <string>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/assert.h"
#include "engine/topology/node_id.h"
#include "engine/wire/shm/link_set.h"
#include "engine/wire/shm/source_set.h"

namespace portofu {
namespace {

constinit ToldOnce told_of_no_mapping;

}  // namespace

std::uint32_t SourceSet::slots_in_use() {
  const std::uint32_t used = own_.control().slots_used.load(std::memory_order_acquire);
  return std::min(used, own_.layout().channel_count);
}

void SourceSet::scan_directory() {
  // (S1) acquire, before the slots are read: a change after this raises the epoch again.
  seen_epoch_ = own_.control().directory_epoch.load(std::memory_order_acquire);
  const std::uint32_t used = slots_in_use();
  for (std::uint32_t i = 0; i < used; ++i) scan_slot(i);
}

void SourceSet::scan_slot(std::uint32_t slot_index) {
  const SlotWord word = read_slot(own_.slot(slot_index));
  ShmSource* source = by_slot_[slot_index].get();
  if (word.state != SlotState::kPublished && word.state != SlotState::kClosed) return;
  if (source == nullptr) {
    if (must_wait_for_earlier(slot_index, word.claimer)) return;
    source = open_source(slot_index, word.claimer);
    if (source == nullptr) return;
  }
  if (word.state == SlotState::kPublished) return;
  if (source->state == SourceState::kTaken) {
    free_slot(slot_index);
  } else {
    close_source(*source);
  }
}

/// What an earlier life, or an earlier link, of a process has sent is delivered and reported before the later one is
/// heard; take_closed_source has the directory scanned again.
bool SourceSet::must_wait_for_earlier(std::uint32_t slot_index, ProcessId id) {
  const ChannelSlotShared& own_slot = own_.slot(slot_index);
  const std::uint64_t incarnation = own_slot.claimer_incarnation.load(std::memory_order_relaxed);
  const std::uint64_t order = own_slot.publish_order.load(std::memory_order_relaxed);
  const std::uint32_t used = slots_in_use();
  bool waits = false;
  for (std::uint32_t i = 0; i < used; ++i) {
    if (ShmSource* other = by_slot_[i].get(); other != nullptr) {
      if (other->id != id || other->state == SourceState::kTaken) continue;
      // An earlier life is over, or the later one could not have come.
      if (other->order < order && other->life != incarnation) close_source(*other);
      waits = true;
      continue;
    }
    const SlotWord word = read_slot(own_.slot(i));
    const bool is_heard_later = word.state == SlotState::kPublished || word.state == SlotState::kClosed;
    if (i == slot_index || !is_heard_later || word.claimer != id) continue;
    waits = waits || own_.slot(i).publish_order.load(std::memory_order_relaxed) < order;
  }
  return waits;
}

ShmSource* SourceSet::open_source(std::uint32_t slot_index, ProcessId id) {
  const bool is_small = own_.slot(slot_index).is_small.load(std::memory_order_relaxed) != 0;
  const RingSize size = is_small ? RingSize::kSmallest : RingSize::kUsual;
  Mapping ring = own_.map_ring(slot_index, size);
  if (!ring) {
    refuse_unmapped(slot_index, id, errno);
    return nullptr;
  }
  auto made = std::make_unique<ShmSource>();
  made->id = id;
  made->life = own_.slot(slot_index).claimer_incarnation.load(std::memory_order_relaxed);
  made->order = own_.slot(slot_index).publish_order.load(std::memory_order_relaxed);
  made->slot_index = slot_index;
  const SegmentLayout& layout = own_.layout();
  made->consumer =
      CellConsumer<PacketHeader>(RingView(ring.at(layout.ring_start(slot_index, size)), layout.ring_of(size)));
  made->ring = std::move(ring);
  made->poll_index = static_cast<std::uint32_t>(poll_.size());
  poll_.push_back({made->consumer.next_word(), made->consumer.next_lap(), false, made.get()});
  by_slot_[slot_index] = std::move(made);
  return by_slot_[slot_index].get();
}

/// This process cannot hear the sender, who would wait for ever.
void SourceSet::refuse_unmapped(std::uint32_t slot_index, ProcessId id, int error) {
  ChannelSlotShared& slot = own_.slot(slot_index);
  const SlotWord word = read_slot(slot);
  if (word.state == SlotState::kPublished) move_slot(slot, word, SlotState::kEvicted);
  if (!told_of_no_mapping.is_first()) return;
  const std::string wanted = std::to_string(own_.layout().ring_stride_bytes()) + " bytes for messages of process " +
                             node_id_text(id.nid) + ":" + std::to_string(id.pid);
  log_warning("%s; it is not heard, and its operations fail", system_failure("mmap", wanted, error).c_str());
}

void SourceSet::give_up(ProcessId id) {
  if (directory_changed()) scan_directory();
  for (const auto& source : by_slot_) {
    if (source == nullptr || source->id != id || source->state != SourceState::kOpen) continue;
    ChannelSlotShared& slot = own_.slot(source->slot_index);
    const SlotWord word = read_slot(slot);
    if (word.state == SlotState::kPublished) move_slot(slot, word, SlotState::kEvicted);
    close_source(*source);
  }
}

void SourceSet::close_source(ShmSource& source) {
  if (source.state != SourceState::kOpen) return;
  source.state = SourceState::kClosing;
  poll_[source.poll_index].attention = true;
  // Without this a source that closes empty would be noticed one poll later.
  if (&source != held_ && !source.consumer.ready()) finish_source(source);
}

void SourceSet::evict_source(ShmSource& source) {
  log_warning("process %u:%u has written nonsense into its ring; it is not heard any more", source.id.nid,
              source.id.pid);
  counters_.add(Counter::kSourcesEvicted);
  ChannelSlotShared& slot = own_.slot(source.slot_index);
  const SlotWord word = read_slot(slot);
  if (word.state == SlotState::kPublished) move_slot(slot, word, SlotState::kEvicted);
  links_.lose(source.id, source.life);  // Answers were behind the nonsense, and whoever waits for them is told.
  finish_source(source);
}

/// Takes a source out of the poll; the last entry takes its place.
void SourceSet::finish_source(ShmSource& source) {
  PORTOFU_ASSERT(&source != held_);
  const std::uint32_t index = source.poll_index;
  poll_[index] = poll_.back();
  poll_[index].source->poll_index = index;
  poll_.pop_back();
  if (index == cursor_) turn_left_ = kTurnPackets;
  if (cursor_ >= poll_.size()) turn_left_ = 0;
  source.state = SourceState::kDrained;
  drained_.push_back(&source);
  ++closed_count_;
}

bool SourceSet::take_closed_source(ProcessId* source, void** engines) {
  if (directory_changed()) scan_directory();
  if (drained_.empty()) return false;
  ShmSource& taken = *drained_.front();
  drained_.erase(drained_.begin());
  --closed_count_;
  *source = taken.id;
  *engines = taken.engines;
  taken.state = SourceState::kTaken;
  if (read_slot(own_.slot(taken.slot_index)).state != SlotState::kEvicted) free_slot(taken.slot_index);
  // A later life of the same process may have waited for this.
  seen_epoch_ = ~std::uint64_t{0};
  return true;
}

/// Asked of the living, too, so a ring that is open and empty does not count.
bool SourceSet::has_unheard(ProcessId id, std::uint64_t incarnation) {
  if (directory_changed()) scan_directory();
  const std::uint32_t used = slots_in_use();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (const ShmSource* source = by_slot_[i].get(); source != nullptr) {
      const bool is_polled = source->state == SourceState::kOpen || source->state == SourceState::kClosing;
      const bool has_packet = source == held_ || (is_polled && source->consumer.ready());
      if (has_packet && source->id == id && source->life == incarnation) return true;
      continue;
    }
    // Not opened yet: it waits for an earlier link, or for memory.
    const SlotWord word = read_slot(own_.slot(i));
    const bool is_heard_later = word.state == SlotState::kPublished || word.state == SlotState::kClosed;
    if (!is_heard_later || word.claimer != id) continue;
    if (own_.slot(i).claimer_incarnation.load(std::memory_order_relaxed) == incarnation) return true;
  }
  return false;
}

void SourceSet::free_slot(std::uint32_t slot_index) {
  if (brought_.source == by_slot_[slot_index].get()) brought_ = {};
  by_slot_[slot_index] = nullptr;
  own_.clear_ring(slot_index);
  ChannelSlotShared& slot = own_.slot(slot_index);
  move_slot(slot, read_slot(slot), SlotState::kFree);
}

void SourceSet::close_dead_sources() {
  scan_directory();
  const std::uint32_t used = slots_in_use();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (by_slot_[i] != nullptr) {
      close_if_dead(*by_slot_[i]);
    } else {
      repair_claimed_slot(i);
    }
  }
}

void SourceSet::close_if_dead(ShmSource& source) {
  source.unreachable = false;
  const bool dead = attach_sender(source) ? source.segment->is_dead() : !source.unreachable;
  if (!dead) return;
  ChannelSlotShared& slot = own_.slot(source.slot_index);
  const SlotWord word = read_slot(slot);
  const bool open = word.state == SlotState::kPublished || word.state == SlotState::kEvicted;
  if (open) move_slot(slot, word, SlotState::kClosed);
  if (source.state == SourceState::kTaken) return free_slot(source.slot_index);
  source.consumer.take_over();
  close_source(source);
}

void SourceSet::repair_claimed_slot(std::uint32_t slot_index) {
  ChannelSlotShared& slot = own_.slot(slot_index);
  const SlotWord word = read_slot(slot);
  if (word.state != SlotState::kClaimed) return;
  const std::uint64_t incarnation = slot.claimer_incarnation.load(std::memory_order_relaxed);
  if (!process_is_gone(peers_.directory(), word.claimer, incarnation)) return;
  if (move_slot(slot, word, SlotState::kFree)) counters_.add(Counter::kChannelsRepaired);
}

/// @return true if the sender's segment is attached; false with `unreachable` set if nothing is known, false without it
///         if that life of the sender is over
bool SourceSet::attach_sender(ShmSource& source) {
  if (source.segment != nullptr) return true;
  if (source.unreachable) return false;
  switch (peers_.attach(source.id, source.life, &source.segment)) {
    case AttachResult::kAttached: return true;
    case AttachResult::kNoSuchSegment: return false;
    case AttachResult::kRefused:
    case AttachResult::kSystem: source.unreachable = true; return false;
  }
  return false;
}

/// The first long packet came through the ring; the next ones may come through the sender's area, or stay where they
/// are. Tries each once: to map the area, to read the sender's memory, to map its heap as soon as that has a name.
void SourceSet::map_memory(ShmSource& source) {
  if (!source.area_asked) {
    source.area_asked = true;
    if (!attach_sender(source)) return;
    source.area = source.segment->map_send_area();
    if (source.area) source.consumer.use_area(source.area.at(0), source.segment->layout().area_bytes);
    if (source.segment->memory().is_reachable()) {
      source.segment->memory().set_bringer(this);
      source.consumer.read_memory();
    }
  }
  if (source.segment == nullptr || !source.segment->has_heap()) return;
  source.heap_asked = true;
  const std::span<const std::byte> heap = source.segment->heap();
  if (!heap.empty()) source.consumer.use_heap(heap.data(), heap.size());
}

}  // namespace portofu
