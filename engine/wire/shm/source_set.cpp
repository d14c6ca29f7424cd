// Polling: peek, release, has_packets. The life of sources is in source_life.cpp.

#include "engine/wire/shm/source_set.h"

#include "engine/queue/assert.h"

namespace portofu {

SourceSet::SourceSet(ProcessSegment& own, PeerTable& peers)
    : own_(own),
      peers_(peers),
      barrier_(own.wake_barrier()),
      counters_(own.counters()),
      seen_epoch_(~std::uint64_t{0}),
      by_slot_(own.layout().channel_count) {}

bool SourceSet::directory_changed() const {
  // (S1) acquire: partner is raise_epoch of a claimer; the slots that it changed are seen by the scan that follows.
  return own_.control().directory_epoch.load(std::memory_order_acquire) != seen_epoch_;
}

bool SourceSet::peek(Packet& packet) {
  PORTOFU_ASSERT(held_ == nullptr);
  if (directory_changed()) [[unlikely]] scan_directory();
  // Every source is looked at once, and the one whose turn is over once more after all others. A step may take a source
  // out of poll_, so the bound is taken before.
  const std::size_t steps = poll_.size() + 1;
  for (std::size_t step = 0; step < steps && !poll_.empty(); ++step) {
    if (cursor_ >= poll_.size()) cursor_ = 0;
    PollEntry& entry = poll_[cursor_];
    if (turn_left_ > 0 && CellConsumer<PacketHeader>::word_ready(entry.word, entry.lap)) {
      --turn_left_;
      if (take_packet(entry, packet)) return true;
      continue;
    }
    if (poll_.size() <= kPrefetchedSources) CellConsumer<PacketHeader>::prefetch_payload(entry.word);
    const bool finished = turn_left_ > 0 && entry.attention && attend_silent(entry);
    turn_left_ = kTurnPackets;
    // A finished source has left its place to another one, which must be looked at too.
    if (!finished) ++cursor_;
  }
  return false;
}

bool SourceSet::take_packet(PollEntry& entry, Packet& packet) {
  ShmSource& source = *entry.source;
  if (source.consumer.take(packet.header, &packet.payload) == TakeResult::kLie) {
    evict_source(source);
    return false;
  }
  packet.source = source.id;
  packet.source_context = &source.context;
  held_ = &source;
  return true;
}

void SourceSet::release() {
  PORTOFU_ASSERT(held_ != nullptr);
  ShmSource& source = *held_;
  held_ = nullptr;
  const bool gave_room = source.consumer.release();
  refresh_entry(source);
  if (gave_room) wake_blocked_sender(source);
}

bool SourceSet::has_packets() {
  if (directory_changed()) scan_directory();
  for (std::size_t i = 0; i < poll_.size();) {
    PollEntry& entry = poll_[i];
    if (CellConsumer<PacketHeader>::word_ready(entry.word, entry.lap)) return true;
    if (!entry.attention || !attend_silent(entry)) ++i;
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
  // Store-load barrier between the room that was given back and the look whether anybody wants it; a registered process
  // leaves it to the membarrier of the sender, who calls it before it sleeps (engine/segment/doorbell.h).
  if (barrier_ == WakeBarrier::kFence) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  if (!source.consumer.producer_wants_room()) [[likely]] return;
  if (!attach_sender(source)) return;
  if (ring_if_asleep(source.segment->control().doorbell, barrier_, &source.rung_generation)) {
    counters_.add(Counter::kDoorbellsRung);
  }
}

}  // namespace portofu
