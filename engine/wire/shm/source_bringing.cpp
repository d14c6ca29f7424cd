// What was lent to us when the kernel let us read the sender's memory, and does so no more: the program has taken that
// right away meanwhile (PR_SET_DUMPABLE, other user rights). The sender is there and may write to us, so it is asked
// to. Nothing more is lent afterwards.

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/observe/log.h"
#include "engine/wire/shm/source_set.h"

namespace portofu {
namespace {

/// The sender's engine does it when it has nothing else to do.
constexpr std::chrono::seconds kMostBringing{1};

}  // namespace

/// Which packet memory of a sender belongs to: the one in hand, or one that is read late.
bool SourceSet::find_lent(std::uint64_t address, std::uint64_t bytes, Brought* lent) {
  const auto holds = [&](std::uint64_t start, std::uint64_t length) {
    return address >= start && bytes <= length && address - start <= length - bytes;
  };
  const auto held_start = reinterpret_cast<std::uintptr_t>(held_payload_);
  if (held_ != nullptr && held_->consumer.taken_from() == TakenFrom::kMemory && holds(held_start, held_bytes_)) {
    *lent = {held_, held_->consumer.position(), held_start, held_bytes_, nullptr};
    return true;
  }
  for (std::uint32_t i = 0; i < read_count_; ++i) {
    const Brought& late = late_packets_[i];
    if (!holds(late.start, late.bytes)) continue;
    *lent = {late.source, late.position, late.start, late.bytes, nullptr};
    return true;
  }
  return false;
}

bool SourceSet::bring(std::uint64_t address, std::byte* target, std::uint64_t bytes) {
  Brought lent;
  if (!find_lent(address, bytes, &lent)) return false;
  if (lent.source != brought_.source || lent.position != brought_.position || brought_.data == nullptr) {
    if (!bring(lent)) return false;
    brought_ = std::move(lent);
  }
  std::memcpy(target, brought_.data.get() + (address - brought_.start), bytes);
  return true;
}

/// Waits for the sender, in a call; that happens once in the life of a link.
bool SourceSet::bring(Brought& lent) {
  ShmSource& source = *lent.source;
  source.consumer.stop_reading();
  if (!std::exchange(source.was_asked, true))
    log_warning("process %u:%u does not let us read its memory any more; it is asked to write what it has lent",
                source.id.nid, source.id.pid);
  const auto end = MonotonicClock::now() + kMostBringing;
  // The packet's message may have been offered a place before: who has begun to read that offer ends first (R4).
  while (!source.consumer.take_offer_back()) {
    if (MonotonicClock::now() >= end || !source.segment->check_alive()) return false;
    std::this_thread::yield();
  }
  lent.data = std::make_unique_for_overwrite<std::byte[]>(lent.bytes);
  source.consumer.lay_down(lent.position, reinterpret_cast<std::uintptr_t>(lent.data.get()), lent.bytes);
  for (bool is_last = false;; is_last = MonotonicClock::now() >= end || !source.segment->check_alive()) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ring_if_asleep(source.segment->control().doorbell, guard_, &source.rung_generation);
    if (source.consumer.taker_at(lent.position) == Taker::kPlaced) return true;
    if (is_last) break;
    std::this_thread::yield();
  }
  source.consumer.take_offer_back();
  const Taker had = source.consumer.pick_up(lent.position);
  // It may be writing, and go on with that later: the place stays its own.
  if (had == Taker::kSender) (void)lent.data.release();
  return had == Taker::kPlaced;
}

}  // namespace portofu
