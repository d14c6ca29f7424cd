#pragma once
// Steps 3 and 4, what both APIs share: a request becomes packets, or waits in order at its peer. What differs are small
// functions on the request of either API, which are found by its type:
//   bool open_operation(s)            an outstanding entry, if an answer is due; false: not now
//   PacketHeader first_header(s)
//   std::uint64_t payload_length(s)   bytes of data
//   std::uint32_t operand_length(s)   0 or kOperandBytes, in front of the data
//   bool read_payload(s, to, bytes)   the next bytes; false: a fault
//   Run lendable(s, left)             where the next bytes lie that may stay there; none: they have to be read
//   void finish_sending(s, fail)      everything has left
//   void abandon(s, fail)             it ends before anything has left
//   void cut_short(s)                 it ends in the middle
//   void keep_data(s)                 it has to wait

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/core/core.h"
#include "engine/mailbox/stamped_header.h"
#include "engine/queue/ring_geometry.h"

namespace portofu {

/// Packets of one peer that one call of advance_peer publishes at most, so that no peer takes the duty for itself.
inline constexpr int kPacketBudget = 32;

/// What became of an attempt to send.
enum class SendResult : std::uint8_t {
  kDone,     ///< Nothing of the request is left to send.
  kBlocked,  ///< No room, no window: later.
  kLent,     ///< Nothing is left to send, but the peer may still read our memory.
};

/// Shorter messages are copied even if the peer maps their memory, so that SEND need not wait for the peer.
inline constexpr std::uint64_t kLendFromBytes = 4096;

/// What a packet that is lent belongs to.
struct LentMessage {
  std::uint64_t message = 0;  ///< Loan::message.
  std::uint64_t offset = 0;   ///< Bytes before the packet.
  std::uint64_t length = 0;   ///< Of all data.
};

/// No last packet of a message that is lent is shorter, if that can be had: short ones are copied, and come back late.
inline constexpr std::uint64_t kShortTailBytes = 16384;

/// Claims a packet for data that stays at `run`, or for the beginning of it. @return its bytes; 0: it has to be copied
inline std::uint32_t lend_run(const Peer& peer, MemorySegment::Run run, const LentMessage& lent) {
  std::uint64_t most = peer.wire->most_lent_bytes(*peer.link);
  if (run.bytes == 0 || most == 0) return 0;
  if (lent.length >= peer.wire->shares_from_bytes(*peer.link, lent.message)) {
    // As many packets for the receiver as for the sender.
    const std::uint64_t pairs = (lent.length + 2 * most - 1) / (2 * most);
    most = (lent.length + 2 * pairs - 1) / (2 * pairs);
  }
  const std::uint64_t left = lent.length - lent.offset;
  std::uint64_t bytes = std::min(run.bytes, most);
  if (bytes < left && left - bytes < kShortTailBytes) bytes = std::min(bytes, (left + 1) / 2);
  const Loan loan{run.start, static_cast<std::uint32_t>(bytes), lent.message, lent.offset, bytes == left};
  if (!peer.wire->lend(*peer.link, loan)) return 0;
  if (guarded_look(run.start, bytes)) return loan.bytes;
  peer.wire->discard(*peer.link);  // Whoever copies it will find the fault.
  return 0;
}

/// Publishes, into room that was claimed, the empty packet that tells the target that no more of the message comes.
inline void publish_cut(const Core& core, Peer& peer, NiFail fail) {
  PacketHeader header = stamped_header(core, PacketType::kData);
  header.flags = kFlagCut;
  header.ni_fail_type = static_cast<std::uint8_t>(fail);
  peer.wire->publish(*peer.link, in_words(header));
}

/// The header of the next packet. To be made before its payload is written, which may wait for lines of the peer's:
/// what is written behind it waits, too.
template <class Sending>
PacketHeader next_header(const Sending& s, std::uint32_t payload_bytes) {
  PacketHeader header = s.progress.started ? stamped_header(s.core, PacketType::kData) : first_header(s);
  if (s.progress.started) header.remote_offset = s.progress.sent;
  header.payload_bytes = payload_bytes;
  return in_words(header);
}

/// Publishes the packet that was claimed.
template <class Sending>
SendResult publish_next(const Sending& s, const PacketHeader& header, std::uint32_t bytes, std::uint64_t left) {
  s.peer.wire->publish(*s.peer.link, header);
  s.core.counters.add(Counter::kPacketsSent);
  s.core.counters.add(Counter::kBytesSent, bytes);
  s.progress.started = true;
  s.progress.sent += bytes;
  if (bytes < left) return SendResult::kBlocked;
  if (s.progress.lent_end != 0) return SendResult::kLent;
  finish_sending(s, NiFail::kOk);
  return SendResult::kDone;
}

/// Publishes the next packet of the request.
template <class Sending>
SendResult send_packet(const Sending& s) {
  const std::uint64_t left = payload_length(s) - s.progress.sent;
  if (payload_length(s) >= kLendFromBytes) {
    if (!s.progress.started) s.progress.first_packet = s.peer.wire->next_packet(*s.peer.link);
    const LentMessage lent{s.progress.first_packet, s.progress.sent, payload_length(s)};
    if (const std::uint32_t bytes = lend_run(s.peer, lendable(s, left), lent); bytes != 0) {
      s.progress.lent_end = s.peer.wire->next_packet(*s.peer.link) + 1;
      return publish_next(s, next_header(s, bytes), bytes, left);
    }
  }
  const std::uint32_t operand = s.progress.started ? 0 : operand_length(s);
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(left, s.peer.wire->max_payload_bytes() - operand));
  std::byte* payload = s.peer.wire->claim(*s.peer.link, bytes + operand);
  if (payload == nullptr) return SendResult::kBlocked;
  const PacketHeader header = next_header(s, bytes + operand);
  if (operand != 0) std::memcpy(payload, s.descriptor.operand.data(), kOperandBytes);
  if (!read_payload(s, payload + operand, bytes)) {
    if (s.progress.started) {
      cut_short(s);
    } else {
      s.peer.wire->discard(*s.peer.link);
      abandon(s, NiFail::kSegv);
    }
    return SendResult::kDone;
  }
  return publish_next(s, header, bytes, left);
}

/// Publishes packets of the request until it is done, blocked, or the budget is used.
template <class Sending>
SendResult send_request(const Sending& s, int& budget) {
  if (!s.progress.started && s.progress.operation_id == 0 && !open_operation(s)) return SendResult::kBlocked;
  while (budget > 0) {
    const std::uint64_t before = s.progress.sent;
    const bool was_started = s.progress.started;
    const SendResult result = send_packet(s);
    const bool is_stuck = s.progress.sent == before && s.progress.started == was_started;
    if (result == SendResult::kBlocked && is_stuck) return SendResult::kBlocked;
    budget -= packets_worth(s.progress.sent - before);
    if (result != SendResult::kBlocked) return result;
  }
  return SendResult::kBlocked;
}

/// Sends the request, or as much of it as can leave now; the rest, or what is still in use, waits at the peer.
/// @param first  nothing has to leave before it
template <class Sending>
void send_or_wait(const Sending& s, bool first) {
  int budget = kPacketBudget;
  const SendResult result = first ? send_request(s, budget) : SendResult::kBlocked;
  if (result == SendResult::kDone) return;
  if (result == SendResult::kBlocked) keep_data(s);
  auto* request = new OutgoingRequest;
  request->descriptor = s.descriptor;
  request->progress = std::move(s.progress);
  if (result == SendResult::kLent) {
    s.peer.lent_requests.push_back(*request);
    return s.core.look_after(s.peer);
  }
  request->anew = s.peer.lost_since_ns != 0;
  s.peer.requests.push_back(*request);
  s.core.wait_for_room(s.peer);
}

/// The rest of a message whose interface was closed.
inline SendResult cut_orphan(const Core& core, Peer& peer) {
  if (peer.wire->claim(*peer.link, 0) == nullptr) return SendResult::kBlocked;
  publish_cut(core, peer, NiFail::kUndeliverable);
  return SendResult::kDone;
}

}  // namespace portofu
