#pragma once
// The directory of a segment's channels: who may send into which ring. A channel belongs to one sender at a time.
//
//   kFree       -> kClaimed    claimer: one compare-and-swap that also names the claimer
//   kClaimed    -> kPublished  claimer: the ring has memory, the incarnation is written; packets may follow
//   kClaimed    -> kFree       claimer: no memory; or anybody: the claimer is dead (repair)
//   kPublished  -> kClosed     claimer: nothing more will come; or the owner: the claimer is dead
//   kPublished  -> kEvicted    owner: the claimer has written nonsense and is not heard any more
//   kEvicted    -> kClosed     claimer: it has noticed; or the owner: the claimer is dead
//   kClosed     -> kFree       owner: all packets are taken, the ring is zeroed
//
// Every transition is a compare-and-swap of the whole word, and a claim changes its generation, so a late step of a
// dead or stopped claimer's past never hits a later user's channel.

#include <cstdint>
#include <string>

#include "engine/segment/layout.h"
#include "engine/segment/peer_segment.h"
#include "engine/topology/process_id.h"

namespace portofu {

/// State of a channel, low byte of its word.
enum class SlotState : std::uint8_t {
  kFree = 0,       ///< Nobody's; its ring is zero and has no memory.
  kClaimed = 1,    ///< Somebody prepares it; the owner does not look at the ring.
  kPublished = 2,  ///< In use.
  kClosed = 3,     ///< The sender will not touch the ring again; the owner still drains it.
  kEvicted = 4,    ///< The owner will not look at the ring again; the sender does not know yet.
};

/// Name for logs and tests.
constexpr const char* slot_state_name(SlotState state) {
  switch (state) {
    case SlotState::kFree: return "free";
    case SlotState::kClaimed: return "claimed";
    case SlotState::kPublished: return "published";
    case SlotState::kClosed: return "closed";
    case SlotState::kEvicted: return "evicted";
  }
  return "unknown";
}

/// What ChannelSlotShared::word says: bits 0..7 state, 8..15 generation, 16..31 PID, 32..63 NID of the claimer.
struct SlotWord {
  SlotState state = SlotState::kFree;
  std::uint8_t generation = 0;  ///< Raised by every claim, mod 256.
  ProcessId claimer;            ///< Meaningless while free.

  friend bool operator==(const SlotWord&, const SlotWord&) = default;

  static constexpr SlotWord unpack(std::uint64_t word) {
    return {static_cast<SlotState>(word & 0xff),
            static_cast<std::uint8_t>(word >> 8),
            {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint16_t>(word >> 16)}};
  }
  constexpr std::uint64_t pack() const {
    return static_cast<std::uint64_t>(state) | std::uint64_t{generation} << 8 |
           std::uint64_t{claimer.pid & 0xffff} << 16 | std::uint64_t{claimer.nid} << 32;
  }
  constexpr SlotWord in_state(SlotState next) const { return {next, generation, claimer}; }
};

/// @return the word as it is now; acquire, partner is move_slot (S2)
SlotWord read_slot(const ChannelSlotShared& slot);

/// One transition. @return false if the slot is not as `from` says any more
bool move_slot(ChannelSlotShared& slot, const SlotWord& from, SlotState to);

/// A channel that this process has claimed in a peer's directory.
struct ChannelClaim {
  std::uint32_t slot_index = 0;
  SlotWord word;  ///< As the claim has left it: kClaimed, our ProcessId.
};

/// Who claims, and where the segments of others lie, for repairs.
struct Claimer {
  ProcessId id;
  std::uint64_t incarnation = 0;
  std::string directory;
};

/// Takes a free channel; if there is none, frees some that the dead have left claimed and tries again.
/// @param repaired  raised by the number of channels freed on the way
/// @return false if all channels are taken by the living
bool claim_channel(PeerSegment& peer, const Claimer& claimer, ChannelClaim* claim, std::uint64_t* repaired);

/// The ring is ready: the owner may look at it. @return false if the owner has taken the channel away
bool publish_channel(PeerSegment& peer, const Claimer& claimer, ChannelClaim* claim, RingSize size = RingSize::kUsual);

/// Gives a claimed, not yet published channel back.
void abandon_channel(PeerSegment& peer, const ChannelClaim& claim);

/// Nothing more will come. The ring may not be touched afterwards.
void close_channel(PeerSegment& peer, const ChannelClaim& claim);

/// @return true if the owner still listens to the channel
bool channel_is_heard(PeerSegment& peer, const ChannelClaim& claim);

/// Bound of the work of one claim: claimed channels whose claimers are asked after.
inline constexpr int kMaxRepairsTried = 16;

}  // namespace portofu
