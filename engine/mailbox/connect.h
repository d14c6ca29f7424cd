#pragma once
// Before step 4: makes sure that packets can go to a peer, and judges when they no longer can. What follows then is
// run/death.

#include "engine/core/core.h"

namespace portofu {

/// Outcome of ensure_connected.
enum class Reach : std::uint8_t {
  kNow,    ///< The link carries packets.
  kLater,  ///< Ask again; bounded by WireLimits::connect_timeout_ns.
  kNever,  ///< There is no such process, or it must not be talked to.
};

/// For the loop, which goes on with what waits for the peer, and ends it when the answer is kNever.
Reach ensure_connected(Core& core, Peer& peer);

/// The same for who has something new for the peer. As long as something waits for a link, only the loop finds out that
/// there will be none: else that would end the new one alone, and the others would begin to wait once more.
Reach reach_for_new(Core& core, Peer& peer);

/// Before something is sent that must reach who has the peer's PID now: if the link leads to an earlier process, or to
/// none, what that one has sent is taken, and it is lost. Not while a packet is in hand. On duty.
void follow_name(Core& core, Peer& peer);
inline void follow_moved_name(Core& core, Peer& peer) {
  if (peer.link != nullptr && peer.link->may_have_moved()) [[unlikely]]
    follow_name(core, peer);
}

/// The peer is lost, and all that it has sent before is taken: its answers count, though it is gone. Whoever acts upon
/// a lost link asks this, and if not, asks again in the next cycle.
/// @return false also while the link is sound
bool is_over(Core& core, Peer& peer);

/// What a lost peer has sent is waited for so long at most: it may not be to be had, or come in again and again.
inline constexpr std::uint64_t kMostUnheardNs = 1'000'000'000;

/// Memory has run out in the middle of what a process has sent, which is lost now. It may wait for an answer to that,
/// so its channel is taken from it, and its operations end. With them its answers may go, so what it was asked ends,
/// too.
void part_with(Core& core, Wire& wire, ProcessId id);

/// Somebody is heard, or reached, who is this life: answers that are left for another one are dropped.
void keep_answers_for(Core& core, Peer& peer, std::uint64_t life);

}  // namespace portofu
