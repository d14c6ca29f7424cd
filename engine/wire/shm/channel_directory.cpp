// The claimer's side of the directory, and the transitions that both sides use.

#include "engine/wire/shm/channel_directory.h"

namespace portofu {
namespace {

/// Tells the owner that something in its directory has changed.
void raise_epoch(PeerSegment& peer) {
  // (S1) release: partner is the acquire of the owner's poll (SourceSet::directory_changed).
  peer.control().directory_epoch.fetch_add(1, std::memory_order_release);
}

/// The owner scans the slots below slots_used only.
void raise_slots_used(PeerSegment& peer, std::uint32_t slot_index) {
  std::atomic<std::uint32_t>& used = peer.control().slots_used;
  std::uint32_t seen = used.load(std::memory_order_relaxed);
  // Bounded by the number of claimers that raise it at the same time. Released to the owner with the epoch (S1).
  while (seen <= slot_index && !used.compare_exchange_weak(seen, slot_index + 1, std::memory_order_release)) {
  }
}

bool take_free_slot(PeerSegment& peer, ProcessId claimer, ChannelClaim* claim) {
  for (std::uint32_t i = 0; i < peer.layout().channel_count; ++i) {
    const SlotWord word = read_slot(peer.slot(i));
    if (word.state != SlotState::kFree) continue;
    const SlotWord mine{SlotState::kClaimed, static_cast<std::uint8_t>(word.generation + 1), claimer};
    std::uint64_t expected = word.pack();
    // (S2) acquire: the owner zeroed the ring before it freed the slot.
    if (peer.slot(i).word.compare_exchange_strong(expected, mine.pack(), std::memory_order_acq_rel)) {
      *claim = {i, mine};
      return true;
    }
  }
  return false;
}

/// @return true if the slot was left by a dead claimer and is free now
bool repair_slot(ChannelSlotShared& slot, const Claimer& by) {
  const SlotWord word = read_slot(slot);
  if (word.state != SlotState::kClaimed) return false;
  const std::uint64_t incarnation = slot.claimer_incarnation.load(std::memory_order_relaxed);
  // We claim one channel at a time, so one in our name that is not ours is from an earlier life.
  const bool gone = word.claimer == by.id || process_is_gone(by.directory, word.claimer, incarnation);
  return gone && move_slot(slot, word, SlotState::kFree);
}

}  // namespace

SlotWord read_slot(const ChannelSlotShared& slot) {
  return SlotWord::unpack(slot.word.load(std::memory_order_acquire));
}

bool move_slot(ChannelSlotShared& slot, const SlotWord& from, SlotState to) {
  if (to == SlotState::kFree) slot.claimer_incarnation.store(0, std::memory_order_relaxed);
  std::uint64_t expected = from.pack();
  // (S2) release: what the mover did to slot and ring before is visible to who reads the new word.
  return slot.word.compare_exchange_strong(expected, from.in_state(to).pack(), std::memory_order_acq_rel);
}

bool claim_channel(PeerSegment& peer, const Claimer& claimer, ChannelClaim* claim, std::uint64_t* repaired) {
  if (take_free_slot(peer, claimer.id, claim)) return true;
  int tried = 0;
  for (std::uint32_t i = 0; i < peer.layout().channel_count && tried < kMaxRepairsTried; ++i) {
    if (read_slot(peer.slot(i)).state != SlotState::kClaimed) continue;
    ++tried;
    if (repair_slot(peer.slot(i), claimer)) ++*repaired;
  }
  return take_free_slot(peer, claimer.id, claim);
}

bool publish_channel(PeerSegment& peer, const Claimer& claimer, ChannelClaim* claim, RingSize size) {
  ChannelSlotShared& slot = peer.slot(claim->slot_index);
  slot.is_small.store(size == RingSize::kSmallest ? 1 : 0, std::memory_order_relaxed);
  slot.claimer_incarnation.store(claimer.incarnation, std::memory_order_relaxed);
  slot.visited.store(0, std::memory_order_relaxed);
  // Released to the owner by move_slot (S2).
  slot.publish_order.store(peer.control().publish_count.fetch_add(1, std::memory_order_relaxed),
                           std::memory_order_relaxed);
  raise_slots_used(peer, claim->slot_index);
  if (!move_slot(slot, claim->word, SlotState::kPublished)) return false;
  claim->word = claim->word.in_state(SlotState::kPublished);
  raise_epoch(peer);
  return true;
}

void abandon_channel(PeerSegment& peer, const ChannelClaim& claim) {
  move_slot(peer.slot(claim.slot_index), claim.word, SlotState::kFree);
}

void close_channel(PeerSegment& peer, const ChannelClaim& claim) {
  ChannelSlotShared& slot = peer.slot(claim.slot_index);
  const SlotWord evicted = claim.word.in_state(SlotState::kEvicted);
  // The owner may evict between the two attempts, but not undo it.
  if (!move_slot(slot, claim.word, SlotState::kClosed)) move_slot(slot, evicted, SlotState::kClosed);
  raise_epoch(peer);
}

bool channel_is_heard(PeerSegment& peer, const ChannelClaim& claim) {
  return read_slot(peer.slot(claim.slot_index)) == claim.word;
}

}  // namespace portofu
