#include "engine/mailbox/outbox.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/mailbox/stamped_header.h"
#include "engine/memory/guarded_copy.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/ring_geometry.h"
#include "engine/wire/copies.h"

namespace portofu {
namespace {

/// What became of an attempt to send.
enum class SendResult : std::uint8_t {
  kDone,     ///< Nothing of the message is left.
  kBlocked,  ///< No room, no window: later.
  kLent,     ///< Nothing is left to send, but its end cannot be told yet: the peer may still read our memory.
};

Outbox& outbox_of(Peer& peer, const OutgoingMessage& message) {
  return message.is_answer ? peer.answers : peer.requests;
}

void finish(Core& core, Peer& peer, OutgoingMessage& message, NiFail fail) {
  if (message.hooks->finish != nullptr) message.hooks->finish(core, peer, message, fail);
}

/// Number of the packet that comes next, for what may be lent.
std::uint64_t next_packet(const Peer& peer) {
  const Loans* const loans = peer.wire->loans();
  return loans != nullptr ? loans->next_packet(*peer.link) : 0;
}

/// Claims a packet for data that stays where it is, or for the beginning of it.
/// @return its bytes; 0: it has to be copied
std::uint32_t lend(const Peer& peer, const OutgoingMessage& message) {
  if (!message.may_be_lent || message.source != SourceKind::kSegment || message.length < kLendFromBytes) return 0;
  const std::uint64_t left = message.length - message.sent;
  const MemorySegment::Run run = message.segment->run_at(message.offset + message.sent, left);
  Loans* const loans = peer.wire->loans();
  Copies* const copies = peer.wire->copies();
  const std::uint64_t most = loans != nullptr ? loans->most_lent_bytes(*peer.link) : 0;
  if (run.bytes == 0 || most == 0) return 0;
  const bool shared =
      copies != nullptr && message.length >= copies->shares_from_bytes(*peer.link, message.first_packet);
  const std::uint64_t bytes = cut_lent(message.length, left, run.bytes, most, shared);
  const Loan loan{run.start, static_cast<std::uint32_t>(bytes), message.first_packet, message.sent, bytes == left};
  if (!loans->lend(*peer.link, loan)) return 0;
  if (guarded_look(run.start, bytes)) return loan.bytes;
  peer.wire->discard(*peer.link);  // Whoever copies it will find the fault.
  return 0;
}

/// Claims a packet for the next bytes of a message, or for the news that no more of it comes.
std::byte* claim(const Peer& peer, const OutgoingMessage& message, std::uint32_t bytes) {
  return message.is_answer ? peer.wire->claim_answer(*peer.link, bytes) : peer.wire->claim(*peer.link, bytes);
}

bool read_source(const Peer& peer, const OutgoingMessage& message, std::byte* target, std::uint64_t bytes) {
  if (message.source == SourceKind::kGone) return false;
  if (bytes == 0) return true;
  const std::uint64_t at = message.offset + message.sent;
  switch (message.source) {
    case SourceKind::kSegment: return message.segment->read(at, target, bytes, peer.link->streaming);
    case SourceKind::kCopy: std::memcpy(target, message.copy.get() + message.sent, bytes); return true;
    case SourceKind::kOperand: std::memcpy(target, message.words.request.operand.data() + at, bytes); return true;
    case SourceKind::kNone:
    case SourceKind::kGone: break;
  }
  return false;
}

/// The header of the next packet. To be made before its payload is written, which may wait for lines of the peer's:
/// what is written behind it waits, too.
PacketHeader next_header(const Core& core, const OutgoingMessage& message, std::uint32_t payload_bytes) {
  PacketHeader header = message.started ? stamped_header(core, PacketType::kData) : message.header();
  if (message.started) {
    header.flags = message.is_answer ? kFlagAnswerStream : 0;
    header.remote_offset = message.sent;
  }
  header.payload_bytes = payload_bytes;
  return header;
}

/// On a link that tells departures: the message ends when it has left, if anybody wants to know.
void ask_for_departure(Core& core, OutgoingMessage& message, PacketHeader& header) {
  if (message.is_end_awaited) message.lent_end = core.departures = core.departures % kMostDeparture + 1;
  const bool in_command = message.source == SourceKind::kOperand;
  header.wire_word = departure_word(static_cast<std::uint32_t>(message.lent_end), in_command);
}

/// Everything has left, or the rest never will (`fail`).
SendResult end(Core& core, Peer& peer, OutgoingMessage& message, NiFail fail) {
  message.fail = fail;
  const bool is_lent = fail == NiFail::kOk && message.lent_end != 0;
  const bool waits_for_lent = message.is_told_in_order && !outbox_of(peer, message).lent.empty();
  if (is_lent || waits_for_lent) return SendResult::kLent;
  finish(core, peer, message, fail);
  return SendResult::kDone;
}

/// Whether the peer need not know that the message will never come.
bool is_secret(const OutgoingMessage& message) { return !message.started && !message.is_answer; }

/// The payload cannot be read into the packet that was claimed. The peer learns how far the data was good.
SendResult end_unreadable(Core& core, Peer& peer, OutgoingMessage& message, PacketHeader& header) {
  const NiFail fail = message.source == SourceKind::kGone ? message.fail : NiFail::kSegv;
  if (is_secret(message)) {
    peer.wire->discard(*peer.link);
    return end(core, peer, message, fail);
  }
  header.payload_bytes = 0;
  header.ni_fail_type = static_cast<std::uint8_t>(fail);
  if (message.started) header.flags |= kFlagCut;
  if (!message.started) header.length = 0;
  publish_packet(core, peer, header, 0);
  message.started = true;
  return end(core, peer, message, fail);
}

/// Publishes the next packet of the message.
SendResult send_packet(Core& core, Peer& peer, OutgoingMessage& message) {
  if (message.source == SourceKind::kGone && is_secret(message)) return end(core, peer, message, message.fail);
  const std::uint64_t left = message.length - message.sent;
  const std::uint32_t front = message.started ? 0 : message.front_bytes;
  if (!message.started && message.may_be_lent) message.first_packet = next_packet(peer);
  std::uint32_t bytes = lend(peer, message);
  std::byte* payload = nullptr;
  if (bytes != 0) {
    message.lent_end = next_packet(peer) + 1;
  } else {
    const std::uint64_t most = message.source == SourceKind::kGone ? 0 : peer.wire->max_payload_bytes() - front;
    bytes = static_cast<std::uint32_t>(std::min(left, most));
    payload = claim(peer, message, bytes + front);
    if (payload == nullptr) return SendResult::kBlocked;
  }
  PacketHeader header = next_header(core, message, bytes + front);
  if (peer.link->tells_departures() && !message.started) [[unlikely]]
    ask_for_departure(core, message, header);
  if (front != 0) std::memcpy(payload, message.words.request.operand.data(), front);
  if (payload != nullptr && !read_source(peer, message, payload + front, bytes)) [[unlikely]]
    return end_unreadable(core, peer, message, header);
  publish_packet(core, peer, header, bytes);
  message.started = true;
  message.sent += bytes;
  return bytes < left ? SendResult::kBlocked : end(core, peer, message, NiFail::kOk);
}

/// Publishes packets of the message until it is done, blocked, or the budget is used.
SendResult send_packets(Core& core, Peer& peer, OutgoingMessage& message, int& budget) {
  const bool opens = message.hooks->open != nullptr && !message.started && message.header().operation_id == 0;
  if (budget > 0 && opens && !message.hooks->open(core, peer, message)) return SendResult::kBlocked;
  while (budget > 0) {
    const std::uint64_t before = message.sent;
    const bool was_started = message.started;
    const SendResult result = send_packet(core, peer, message);
    const bool is_stuck = message.sent == before && message.started == was_started;
    if (result == SendResult::kBlocked && is_stuck) return SendResult::kBlocked;
    budget -= packets_worth(message.sent - before);
    if (result != SendResult::kBlocked) return result;
  }
  return SendResult::kBlocked;
}

/// The memory may change while the message waits, and what it holds now is what shall arrive. If it cannot be read, the
/// fault is found when the message leaves. Without memory for a copy it ends.
void copy_to_wait(OutgoingMessage& message) {
  if (!message.is_copied_to_wait || message.started || message.source != SourceKind::kSegment || message.length == 0)
    return;
  std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[message.length]);
  if (copy == nullptr) {
    tell_of_memory("a message that waits");
    return take_source_away(message, NiFail::kUndeliverable);
  }
  if (!message.segment->read(message.offset, copy.get(), message.length)) return;
  message.copy = std::move(copy);
  message.source = SourceKind::kCopy;
}

int finish_taken(Core& core, Peer& peer, Outbox& outbox) {
  int finished = 0;
  auto& lent = outbox.lent;
  if (lent.empty() || peer.link->tells_departures()) return 0;
  for (; !lent.empty() && peer.wire->loans()->has_taken(*peer.link, lent.front().lent_end); ++finished) {
    const std::unique_ptr<OutgoingMessage> message(&lent.front());
    lent.pop_front();
    finish(core, peer, *message, message->fail);
  }
  return finished;
}

}  // namespace

void send_or_wait(Core& core, Peer& peer, OutgoingMessage& message, int budget) {
  if (!endure([&] { core.spare_message.ensure(); })) [[unlikely]] {
    finish(core, peer, message, NiFail::kUndeliverable);
    if (message.is_answer) throw std::bad_alloc();  // Who waits for it is told as of a packet that was lost.
    return;
  }
  const SendResult result = send_packets(core, peer, message, budget);
  if (result == SendResult::kDone) return;
  if (result == SendResult::kBlocked) copy_to_wait(message);
  Outbox& outbox = outbox_of(peer, message);
  OutgoingMessage* const kept = core.spare_message.keep(std::move(message));
  if (result == SendResult::kLent) {
    outbox.lent.push_back(*kept);
    return core.look_after(peer);
  }
  const bool was_connecting = peer.state == PeerState::kConnecting && peer.waiting;
  kept->anew = !kept->is_answer && (peer.lost_since_ns != 0 || was_connecting);
  outbox.waiting.push_back(*kept);
  core.wait_for_room(peer);
}

int advance_outbox(Core& core, Peer& peer, Outbox& outbox, int budget) {
  const int given = budget;
  while (!outbox.waiting.empty() && budget > 0) {
    OutgoingMessage& message = outbox.waiting.front();
    const SendResult result = send_packets(core, peer, message, budget);
    if (result == SendResult::kBlocked) break;
    outbox.waiting.pop_front();
    if (result == SendResult::kLent) {
      outbox.lent.push_back(message);
    } else {
      delete &message;
    }
  }
  return given - budget;
}

int finish_taken(Core& core, Peer& peer) {
  const int answers = finish_taken(core, peer, peer.answers);
  const int finished = answers + finish_taken(core, peer, peer.requests);
  if (finished > 0) ++core.activity;
  return finished;
}

namespace {

/// What has left ends, but behind those before it if it is told in order.
void finish_departed(Core& core, Peer& peer, Outbox& outbox) {
  auto& lent = outbox.lent;
  for (auto at = lent.begin(); at != lent.end();) {
    const bool is_over = at->lent_end == 0 && (!at->is_told_in_order || at == lent.begin());
    OutgoingMessage& message = *at++;
    if (!is_over) continue;
    const std::unique_ptr<OutgoingMessage> owned(&message);
    lent.erase(lent.iterator_to(message));
    finish(core, peer, message, message.fail);
    ++core.activity;
  }
}

}  // namespace

void finish_departed(Core& core, std::uint32_t number) {
  const auto note = [number](OutgoingMessage& message) {
    if (message.lent_end == number) message.lent_end = 0;
  };
  for (std::size_t i = 0; i < core.waiting_peers.size(); ++i) {
    Peer& peer = *core.waiting_peers[i];
    if (peer.link == nullptr || !peer.link->tells_departures()) continue;
    for (Outbox* const outbox : {&peer.requests, &peer.answers}) {
      outbox->for_each(note);
      finish_departed(core, peer, *outbox);
    }
  }
}

void abandon_outbox(Core& core, Peer& peer, Outbox& outbox) {
  boost::intrusive::list<OutgoingMessage> kept;
  outbox.waiting.splice(outbox.waiting.begin(), outbox.lent);
  while (!outbox.waiting.empty()) {
    OutgoingMessage& message = outbox.waiting.front();
    outbox.waiting.pop_front();
    if (std::exchange(message.anew, false)) {
      kept.push_back(message);
      continue;
    }
    const std::unique_ptr<OutgoingMessage> owned(&message);
    finish(core, peer, message, NiFail::kUndeliverable);
  }
  outbox.waiting.splice(outbox.waiting.end(), kept);
}

void take_source_away(OutgoingMessage& message, NiFail fail) {
  if (message.source != SourceKind::kSegment) return;
  message.source = SourceKind::kGone;
  message.fail = fail;
}

void disown(OutgoingMessage& message, NiFail fail) {
  take_source_away(message, fail);
  message.hooks = &kNoHooks;
}

}  // namespace portofu
