#include "engine/target/answer_out.h"

#include <cstring>
#include <memory>

#include "engine/mailbox/connect.h"
#include "engine/mailbox/outbox.h"
#include "engine/mailbox/stamped_header.h"
#include "engine/queue/fresh_line.h"
#include "engine/queue/ring_geometry.h"
#include "engine/target/complete.h"
#include "engine/target/tofu_request.h"

namespace portofu {
namespace {

[[gnu::always_inline]] inline PacketHeader answer_header(const Core& core, const AnswerContent& content) {
  PacketHeader header = stamped_header(core, PacketType::kAnswer);
  header.flags = static_cast<std::uint8_t>((content.silent ? kFlagSilent : 0) | (content.ordered ? 0 : kFlagUnordered) |
                                           (content.list == ListKind::kOverflow ? kFlagOverflowList : 0));
  if (content.published) [[unlikely]] {
    header.flags |= kFlagPublished;
    header.pt_index = content.pt_index;
    header.match_bits = content.match_bits;
  }
  header.ni_fail_type = static_cast<std::uint8_t>(content.fail);
  header.operation_id = content.operation_id;
  header.remote_offset = fresh(content.remote_offset);
  header.length = fresh(content.mlength);
  return header;
}

/// A get whose data has left, or never will, is complete at the target.
void complete_get(Core& core, Peer& peer, std::uint32_t interface_index, Arrival& arrival, NiFail fail) {
  if (interface_index == kTofuInterface) return complete_tofu_arrival(core, peer, arrival, fail);
  Interface* ni = core.interface(interface_index);
  if (ni == nullptr) return;
  if (fail != NiFail::kOk) arrival.fail = fail;
  complete_arrival(core, *ni, peer, arrival);
}

/// OutgoingHooks::finish.
void finish_reply(Core& core, Peer& peer, OutgoingMessage& message, NiFail fail) {
  complete_get(core, peer, message.interface_index, message.words.answer.get, fail);
}

constexpr OutgoingHooks kReplyHooks{.finish = finish_reply};

bool may_send_now(Core& core, Peer& peer) {
  return peer.answers.waiting.empty() && reach_for_new(core, peer) == Reach::kNow;
}

/// Packets of one answer that leave at once at most; the rest leaves from the loop, fairly among peers.
constexpr int kImmediatePackets = 8;

void send_or_queue(Core& core, Peer& peer, OutgoingMessage& message) {
  core.counters.add(Counter::kAnswersSent);
  send_or_wait(core, peer, message, may_send_now(core, peer) ? kImmediatePackets : 0);
}

/// Claims a packet for an answer of one that has nothing before it: it needs no OutgoingMessage.
/// @return nullptr if it cannot leave now
std::byte* claim_now(Core& core, Peer& peer, std::uint64_t bytes) {
  if (!may_send_now(core, peer) || !fits_packet(peer, bytes)) return nullptr;
  return peer.wire->claim_answer(*peer.link, static_cast<std::uint32_t>(bytes));
}

/// Publishes it. The header was made before the payload was written, see publish_packet.
[[gnu::always_inline]] inline void publish_now(Core& core, Peer& peer, const PacketHeader& header,
                                               std::uint64_t bytes) {
  publish_packet(core, peer, header, bytes);
  core.counters.add(Counter::kAnswersSent);
}

[[gnu::always_inline]] inline PacketHeader whole_header(const Core& core, const AnswerContent& content,
                                                        std::uint64_t bytes) {
  PacketHeader header = answer_header(core, content);
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  return header;
}

/// @return false if it cannot leave now
[[gnu::always_inline]] inline bool send_now(Core& core, Peer& peer, const AnswerContent& content, const std::byte* data,
                                            std::uint64_t bytes) {
  std::byte* payload = claim_now(core, peer, bytes);
  if (payload == nullptr) return false;
  const PacketHeader header = whole_header(core, content, bytes);
  if (bytes > 0) std::memcpy(payload, data, bytes);
  publish_now(core, peer, header, bytes);
  return true;
}

/// An answer that cannot leave now. Apart, so that one that can needs little room on the stack.
[[gnu::noinline]] void send_as_message(Core& core, Peer& peer, const AnswerContent& content, const std::byte* data,
                                       std::uint64_t bytes) {
  OutgoingMessage message(answer_header(core, content));
  if (bytes > 0) {
    message.source = SourceKind::kCopy;
    message.length = bytes;
    message.copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
    std::memcpy(message.copy.get(), data, bytes);
  }
  send_or_queue(core, peer, message);
}

/// @return false if it cannot leave now, if its data cannot be read, or if its end is told behind that of another
bool send_reply_now(Core& core, Peer& peer, const AnswerContent& content, const Arrival& arrival) {
  if (content.ordered && !peer.answers.lent.empty()) return false;
  std::byte* payload = claim_now(core, peer, content.mlength);
  if (payload == nullptr) return false;
  const PacketHeader header = whole_header(core, content, content.mlength);
  const bool streaming = content.mlength > kInlineBytes && peer.link->streaming;
  if (content.mlength > 0 && !arrival.entry->segment.read(arrival.offset, payload, content.mlength, streaming))
      [[unlikely]] {
    peer.wire->discard(*peer.link);
    return false;
  }
  publish_now(core, peer, header, content.mlength);
  return true;
}

}  // namespace

void send_answer(Core& core, Peer& peer, const AnswerContent& content) {
  if (!send_now(core, peer, content, nullptr, 0)) [[unlikely]]
    send_as_message(core, peer, content, nullptr, 0);
}

void send_answer_data(Core& core, Peer& peer, const AnswerContent& content, const std::byte* data) {
  if (!send_now(core, peer, content, data, content.mlength)) [[unlikely]]
    send_as_message(core, peer, content, data, content.mlength);
}

void send_reply(Core& core, Peer& peer, std::uint32_t interface_index, const AnswerContent& content, Arrival& arrival) {
  if (send_reply_now(core, peer, content, arrival)) {
    return complete_get(core, peer, interface_index, arrival, NiFail::kOk);
  }
  OutgoingMessage message(answer_header(core, content), arrival);
  message.hooks = &kReplyHooks;
  message.interface_index = static_cast<std::uint8_t>(interface_index);
  message.is_told_in_order = content.ordered;
  message.is_end_awaited = interface_index != kTofuInterface || (arrival.header.tofu_meta & kTofuRemoteNotice) != 0;
  if (content.mlength > 0) {
    message.source = SourceKind::kSegment;
    message.segment = &arrival.entry->segment;
    message.offset = arrival.offset;
    message.length = content.mlength;
  }
  // 2.7.1: a short get reads before a later put of the same initiator writes, so its data is taken now.
  message.is_copied_to_wait = content.mlength <= kMaxWarOrderedBytes;
  message.may_be_lent = content.mlength > kMaxWarOrderedBytes;
  send_or_queue(core, peer, message);
}

void send_fault(Core& core, Peer& peer, const PacketHeader& header) {
  OutgoingMessage message(header);
  send_or_queue(core, peer, message);
}

}  // namespace portofu
