#pragma once
// The two ends of a link of the reliable wire. A link is one direction; each end is a machine of its own, and they
// agree by frames only (frame.h).
//
// Its sender opens it with a number of its own (`id`), its receiver accepts it with a number of its own (`acceptance`).
// Data is taken under both numbers only, and a receiver believes that an opening is not an old one when it has heard
// the sender use the acceptance. So nothing of a former life of either process, of an earlier link, or of an
// earlier connection across which both have forgotten each other, is ever taken, and nothing is taken twice.

#include <array>
#include <cstdint>
#include <vector>

#include "engine/topology/process_id.h"
#include "engine/wire/reliable/frame.h"
#include "engine/wire/reliable/liveness.h"
#include "engine/wire/reliable/packet_buffer.h"
#include "engine/wire/reliable/receive_window.h"
#include "engine/wire/reliable/round_trip.h"
#include "engine/wire/reliable/send_window.h"
#include "engine/wire/wire.h"

namespace portofu {

/// How far the sender of a link is.
enum class SendingState : std::uint8_t {
  kOpening,  ///< kOpen was sent, kAccept has not come.
  kOpen,     ///< Accepted.
  kClosing,  ///< The engine has given it back; what was published is still delivered, then kClose is sent.
  kOver,     ///< Nobody receives it any more, and nothing more is sent.
};

/// The sender's end.
struct OutgoingLink : Link {
  /// @param count  outlives the link
  OutgoingLink(ProcessId receiver, std::uint64_t number, std::uint32_t frame_bytes, HeldBytes& count)
      : id(number), windows{SendWindow(frame_bytes, count), SendWindow(frame_bytes, count)} {
    peer = receiver;
  }

  std::uint64_t id;
  std::uint64_t ordinal = 0;     ///< Openings and offers are numbered together, as they were made.
  std::uint64_t acceptance = 0;  ///< 0 until kAccept has come.
  SendingState state = SendingState::kOpening;
  bool held = false;                       ///< The engine has it.
  bool for_source = false;                 ///< Made as the way back to a source; connect has not asked for it.
  bool life_over = false;                  ///< That of the receiver is, as its node says.
  std::vector<std::uint64_t> ended_lives;  ///< kOpening: of the receiver, the same. Their words may still be under way.
  bool news = false;         ///< Accepted, or lost before it was; connect and has_room_again have not said so.
  bool replaced = false;     ///< Another life of the peer has been heard.
  bool unreachable = false;  ///< kOver: it never opened, because nobody has the address.
  std::array<SendWindow, kTrafficClassCount> windows;
  /// Bytes of the packet for which a claim failed and has_room_again has not answered; 0: none.
  std::array<std::uint32_t, kTrafficClassCount> room_wanted{};
  RoundTrip round_trip;
  std::uint64_t echoed_ns = 0;  ///< AckBody::echo_ns of the latest measured round trip.
  Liveness liveness;
  std::uint64_t wanted_ns = 0;         ///< kOpening: when connect last asked for it.
  std::uint64_t next_question_ns = 0;  ///< When kOpen, kClose or kProbe is sent again; 0: at once.
  std::uint32_t questions = 0;         ///< Of them since the receiver was heard.
  std::uint64_t watched_until_ns = 0;  ///< Until then silence is questioned, though nothing is on its way.
  PacketBuffer claimed;                ///< Between claim and publish or discard; header and payload.
  std::uint32_t claimed_bytes = 0;     ///< Of payload.
  TrafficClass claimed_class = TrafficClass::kRequest;

  bool all_acknowledged() const { return windows[0].empty() && windows[1].empty(); }
};

/// How far the receiver of a link is.
enum class ReceivingState : std::uint8_t {
  kOffered,  ///< kAccept was sent; whether the sender is still there is not known.
  kOpen,     ///< The sender has used the acceptance.
  kEnded,    ///< Nothing more comes; what is complete is still given to the engine.
};

/// The receiver's end.
struct IncomingLink : SourceContext {
  /// @param count  outlives the link
  IncomingLink(ProcessId sender, std::uint64_t number, std::uint32_t max_packet_bytes, HeldBytes& count)
      : source(sender),
        id(number),
        windows{ReceiveWindow(max_packet_bytes, count), ReceiveWindow(max_packet_bytes, count)} {}

  ProcessId source;
  std::uint64_t id;
  std::uint64_t acceptance = 0;
  std::uint64_t ordinal = 0;  ///< As that of an OutgoingLink.
  ReceivingState state = ReceivingState::kOffered;
  std::array<ReceiveWindow, kTrafficClassCount> windows;
  Liveness liveness;
  bool listed = false;                 ///< In ReliableWire::ready_.
  bool held_back = false;              ///< The way back to the sender is being opened; nothing is given out until then.
  bool ack_wanted = false;             ///< In ReliableWire::acks_.
  bool ack_urgent = false;             ///< The sender waits for it, or can use what it says at once.
  std::uint32_t released = 0;          ///< Packets released since the last kAck.
  std::uint64_t echo_ns = 0;           ///< Latest sent_ns that has arrived.
  std::uint64_t echo_arrived_ns = 0;   ///< When it did.
  std::uint64_t next_question_ns = 0;  ///< When kCheck is sent again.
  std::uint32_t questions = 0;         ///< Of them since the sender was heard.
  std::uint64_t watched_until_ns = 0;  ///< Until then the sender's silence is questioned.
};

}  // namespace portofu
