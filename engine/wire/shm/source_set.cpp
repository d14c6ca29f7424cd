// Polling: peek, release, has_packets. The life of sources is in source_life.cpp.

#include "engine/wire/shm/source_set.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "engine/queue/assert.h"
#include "engine/wire/shm/send_area.h"
#include "engine/wire/ways.h"

namespace portofu {

SourceSet::SourceSet(ProcessSegment& own, PeerTable& peers, LinkSet& links, std::uint32_t& closed_count,
                     LongTraffic& traffic)
    : own_(own),
      peers_(peers),
      links_(links),
      epoch_(own.control().directory_epoch),
      closed_count_(closed_count),
      guard_(own.node_guard()),
      counters_(own.counters()),
      traffic_(traffic),
      seen_epoch_(~std::uint64_t{0}),
      by_slot_(own.layout().channel_count) {}

inline bool SourceSet::take_packet(PollEntry& entry, Packet& packet) {
  ShmSource& source = *entry.source;
  const std::byte* payload = nullptr;
  const TakeResult taken = source.consumer.take(packet.header, &payload);
  if (taken == TakeResult::kLater) return false;
  const TakenFrom from = source.consumer.taken_from();
  if (taken == TakeResult::kLie || (from > TakenFrom::kArea && !may_be_lent(packet.header.type))) {
    evict_source(source);
    return false;
  }
  packet.payload = from == TakenFrom::kMemory   ? Payload::in_memory_of(*source.segment, payload)
                   : from == TakenFrom::kPlaced ? Payload::placed_by(*source.segment)
                                                : Payload(payload);
  if (packet.header.payload_bytes >= kAreaFromBytes && !(source.area_asked && source.heap_asked)) [[unlikely]]
    map_memory(source);
  packet.source = source.id;
  packet.source_context = &source;
  held_ = &source;
  held_payload_ = payload;
  if (from != TakenFrom::kRing) [[unlikely]]
    begin_timing(source, from, packet.header.payload_bytes);
  return true;
}

/// A clock costs a tenth of what a payload of the area does, so only some of those are timed.
void SourceSet::begin_timing(ShmSource& source, TakenFrom from, std::uint32_t bytes) {
  constexpr std::uint64_t kTimedPeriod = 8;
  held_bytes_ = bytes;
  traffic_.note_received(bytes);
  turn_left_ -= std::min(turn_left_, static_cast<std::uint32_t>(packets_worth(bytes) - 1));
  if (from == TakenFrom::kMemory) timed_ = &source.read_cost;
  if (from == TakenFrom::kArea && ++source.area_payloads > source.consumer.area_chunks()) {
    if (source.area_payloads % kTimedPeriod == 0) timed_ = &source.area_cost;
  }
  if (timed_ == nullptr) return;
  timed_bytes_ = bytes;
  read_before_ = source.segment->memory().bytes_read();
  started_ = MonotonicClock::now();
}

void SourceSet::end_timing(ShmSource& source) {
  const auto taken = MonotonicClock::now() - started_;
  CopyCost<4>* const cost = std::exchange(timed_, nullptr);
  // What was dropped tells nothing; what failed once may always fail.
  if (cost == &source.read_cost && source.segment->memory().bytes_read() != read_before_ + timed_bytes_) {
    if (source.segment->memory().has_failed_to_read()) source.consumer.stop_reading();
    return;
  }
  cost->note(static_cast<std::uint64_t>(taken / std::chrono::nanoseconds(1)), timed_bytes_);
  source.consumer.tell_costs(source.area_cost.ns(), source.read_cost.ns());
}

bool SourceSet::peek(Packet& packet) {
  PORTOFU_ASSERT(held_ == nullptr);
  if (directory_changed()) [[unlikely]]
    scan_directory();
  // Most packets come from the source that the last one came from.
  if (turn_left_ > 0) [[likely]] {
    PollEntry& entry = poll_[cursor_];
    if (is_ready(entry)) [[likely]] {
      --turn_left_;
      if (take_packet(entry, packet)) [[likely]]
        return true;
    }
  }
  return peek_round(packet);
}

bool SourceSet::peek_round(Packet& packet) {
  // Round once, beginning with the source whose turn it is; if its turn is over, beginning behind it and ending with
  // it. A step may take a source out of poll_; the last one takes its place and is looked at instead.
  std::size_t index = turn_left_ > 0 ? cursor_ : cursor_ + 1;
  const bool few = poll_.size() <= kPrefetchedSources;
  for (std::size_t left = poll_.size(); left > 0 && !poll_.empty(); --left) {
    if (index >= poll_.size()) index = 0;
    PollEntry& entry = poll_[index];
    if (!is_ready(entry)) {
      if (few) CellConsumer<PacketHeader>::prefetch_payload(entry.word);
      if (!entry.attention || !attend_silent(entry)) ++index;
      continue;
    }
    const ShmSource& source = *entry.source;
    if (index != cursor_ || turn_left_ == 0) {
      cursor_ = static_cast<std::uint32_t>(index);
      turn_left_ = kTurnPackets;
    }
    --turn_left_;
    if (take_packet(entry, packet)) return true;
    if (index < poll_.size() && poll_[index].source == &source) ++index;
  }
  return false;
}

void SourceSet::release() {
  PORTOFU_ASSERT(held_ != nullptr);
  ShmSource& source = *held_;
  held_ = nullptr;
  if (timed_ != nullptr) [[unlikely]]
    end_timing(source);
  const bool gave_room = source.consumer.release();
  refresh_entry(source);
  if (gave_room) wake_blocked_sender(source);
}

bool SourceSet::read_later(std::byte* target, std::uint64_t bytes) {
  PORTOFU_ASSERT(held_ != nullptr);
  if (late_count_ == Copies::kMostReadLater || (late_count_ != 0 && late_source_ != held_)) return false;
  late_source_ = held_;
  late_targets_[late_count_] = {target, bytes};
  late_places_[late_count_] = {const_cast<std::byte*>(held_payload_), bytes};
  late_packets_[late_count_] = {held_, held_->consumer.position(), reinterpret_cast<std::uintptr_t>(held_payload_),
                                held_bytes_, nullptr};
  ++late_count_;
  held_->consumer.hold();
  timed_ = nullptr;
  return true;
}

std::uint32_t SourceSet::read_now() {
  if (late_count_ == 0) return 0;
  read_source_ = std::exchange(late_source_, nullptr);
  ShmSource& source = *read_source_;
  const std::uint32_t count = std::exchange(late_count_, 0);
  read_count_ = count;
  ProcessMemory& memory = source.segment->memory();
  const std::uint64_t before = memory.bytes_read();
  const auto started = MonotonicClock::now();
  std::uint32_t read = (1u << count) - 1;
  if (memory.read(late_targets_.data(), late_places_.data(), count)) {
    const auto taken = MonotonicClock::now() - started;
    // As many looks as payloads, like those that are read one by one; CopyCost judges what was interrupted.
    source.read_cost.note(static_cast<std::uint64_t>(taken / std::chrono::nanoseconds(1)), memory.bytes_read() - before,
                          count);
    source.consumer.tell_costs(source.area_cost.ns(), source.read_cost.ns());
  } else {
    // Some piece cannot be had: which?
    for (std::uint32_t i = 0; i < count; ++i) {
      const iovec& target = late_targets_[i];
      const auto at = reinterpret_cast<std::uintptr_t>(late_places_[i].iov_base);
      if (!memory.read(at, static_cast<std::byte*>(target.iov_base), target.iov_len)) read &= ~(1u << i);
    }
    if (memory.has_failed_to_read()) source.consumer.stop_reading();
  }
  read_count_ = 0;
  timed_ = nullptr;  // Of a packet in hand: its clock ran meanwhile.
  return read;
}

void SourceSet::give_back_read() {
  if (read_source_ == nullptr) return;
  ShmSource& source = *std::exchange(read_source_, nullptr);
  if (source.consumer.let_go()) wake_blocked_sender(source);
}

bool SourceSet::acknowledge(ProcessId sender, std::uint32_t operation_id) {
  ShmSource* source = read_source_ != nullptr ? read_source_ : held_;
  return source != nullptr && source->id == sender && acknowledge(*source, operation_id);
}

bool SourceSet::acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) {
  const auto open = std::ranges::find_if(by_slot_, [&](const auto& source) {
    return source != nullptr && source->id == sender && source->life == life && source->state == SourceState::kOpen;
  });
  return open != by_slot_.end() && acknowledge(**open, operation_id);
}

inline bool SourceSet::acknowledge(ShmSource& source, std::uint32_t operation_id) {
  const bool can_ring = attach_sender(source);
  // A sender that cannot be attached, because something is lacking here, looks by itself when its timers are due.
  if (!can_ring && !source.unreachable) return false;
  if (!source.consumer.acknowledge(operation_id)) return false;
  if (can_ring && ring_if_asleep(source.segment->control().doorbell, guard_, &source.rung_generation)) {
    counters_.add(Counter::kDoorbellsRung);
  }
  return true;
}

void SourceSet::offer(std::byte* target, std::uint64_t bytes) {
  PORTOFU_ASSERT(held_ != nullptr);
  held_->consumer.offer(reinterpret_cast<std::uintptr_t>(target), bytes);
}

/// A sender writes for a tenth of a millisecond at a time. One that was stopped just then, and lives, is waited for no
/// longer than this; it may write when it goes on.
constexpr std::chrono::seconds kMostPlacing{1};

void SourceSet::take_offers_back(ProcessId id) {
  const auto end = MonotonicClock::now() + kMostPlacing;
  for (const auto& source : by_slot_) {
    if (source == nullptr || source->id != id) continue;
    while (!source->consumer.take_offer_back() && MonotonicClock::now() < end) {
      if (source->segment != nullptr && !source->segment->check_alive()) break;
      std::this_thread::yield();
    }
  }
}

bool SourceSet::has_packets() {
  if (directory_changed()) scan_directory();
  for (std::size_t i = 0; i < poll_.size();) {
    if (is_ready(poll_[i])) return true;
    // A finished source has left its place to another one, which must be looked at too.
    if (!poll_[i].attention || !attend_silent(poll_[i])) ++i;
  }
  return false;
}

/// @return true if the source was closing and is finished, so that its entry is gone
bool SourceSet::attend_silent(PollEntry& entry) {
  ShmSource& source = *entry.source;
  entry.attention = false;
  if (source.state == SourceState::kClosing) {
    finish_source(source);
    return true;
  }
  if (source.consumer.publish_released()) wake_blocked_sender(source);
  return false;
}

void SourceSet::refresh_entry(ShmSource& source) {
  PollEntry& entry = poll_[source.poll_index];
  entry.word = source.consumer.next_word();
  entry.lap = source.consumer.next_lap();
  entry.attention = source.consumer.withholds_room() || source.state == SourceState::kClosing;
}

void SourceSet::wake_blocked_sender(ShmSource& source) {
  // Room was given back; the sender says that it wants some before it announces its sleep (engine/segment/doorbell.h).
  before_frequent_look(guard_);
  if (!source.consumer.producer_wants_room()) [[likely]]
    return;
  if (!attach_sender(source)) return;
  if (ring_if_asleep(source.segment->control().doorbell, guard_, &source.rung_generation)) {
    counters_.add(Counter::kDoorbellsRung);
  }
}

}  // namespace portofu
