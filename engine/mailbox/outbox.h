#pragma once
// Step 4: a message becomes packets, or waits in order at its peer and goes on when there is room. Before it: a request
// of initiator/send or initiator/tofu_send, or an answer of target/answer_out. After it: the wire. What is said here
// holds for all of them alike; what differs are the hooks of a message (core/outgoing.h).

#include <cstdint>

#include "engine/core/core.h"
#include "engine/core/steps.h"
#include "engine/wire/loans.h"
#include "engine/wire/ways.h"

namespace portofu {

/// Packets of one peer that one call of advance_outbox publishes at most, so that no peer takes the duty for itself.
inline constexpr int kPacketBudget = 32;

/// Whether so many bytes go into a packet as a copy: a message that does, and has nothing before it, needs no
/// OutgoingMessage.
/// @pre the peer is connected
inline bool fits_packet(const Peer& peer, std::uint64_t bytes) {
  if (bytes < peer.link->at_once_below_bytes) [[likely]]
    return true;
  if (peer.link->tells_departures()) return false;
  const Loans* const loans = peer.wire->loans();
  return bytes <= peer.wire->max_payload_bytes() && (loans == nullptr || loans->most_lent_bytes(*peer.link) == 0);
}

/// Publishes the packet that was claimed, of a request or an answer: the only place that does.
/// @param header  filled in before its payload was written, which may wait for a line of the peer's
/// @param bytes   of the message's data; an operand does not count
[[gnu::always_inline]] inline void publish_packet(Core& core, Peer& peer, const PacketHeader& header,
                                                  std::uint64_t bytes) {
  record_packet<Step::kPacketOut>(core, peer, header);
  peer.wire->publish(*peer.link, header);
  core.counters.add(Counter::kPacketsSent);
  core.counters.add(Counter::kBytesSent, bytes);
}

/// Sends a new message, or as much of it as can leave now. The rest, or what is still in use, waits at the peer.
/// @param message  moved from if something is left of it
/// @param budget   packets that leave now at most; 0: it has to wait, because something is before it
void send_or_wait(Core& core, Peer& peer, OutgoingMessage& message, int budget);

/// Goes on with the messages that wait at a peer that is connected.
/// @return number of packets published
int advance_outbox(Core& core, Peer& peer, Outbox& outbox, int budget);

/// Ends what was lent to a peer and is not read any more: SEND of requests, completion of replies. Before whatever else
/// the peer says.
/// @pre the peer is connected
/// @return number of messages ended
int finish_taken(Core& core, Peer& peer);

/// On links that tell departures: ends the message that has left.
/// @param number  departure_of; of a message that is gone meanwhile nothing happens
void finish_departed(Core& core, std::uint32_t number);

/// Ends all messages of a peer that nothing reaches any more, partly sent and lent ones too: their memory is free, and
/// their hooks are told. Those that were posted for the next link stay.
void abandon_outbox(Core& core, Peer& peer, Outbox& outbox);

/// The memory of a message that waits is not its any more. What has not begun ends with `fail`; what has begun is cut,
/// and the peer is told `fail`.
void take_source_away(OutgoingMessage& message, NiFail fail);

/// The same, and nobody wants to know how it ends.
void disown(OutgoingMessage& message, NiFail fail);

}  // namespace portofu
