#include "engine/target/answer_out.h"

#include <algorithm>
#include <cstring>

#include "engine/initiator/connect.h"
#include "engine/initiator/send.h"
#include "engine/queue/ring_geometry.h"
#include "engine/target/complete.h"
#include "engine/target/tofu_request.h"

namespace portofu {
namespace {

/// What became of an attempt to send.
enum class AnswerResult : std::uint8_t { kDone, kBlocked };

PacketHeader answer_header(const Core& core, const AnswerContent& content) {
  PacketHeader header = stamped_header(core, PacketType::kAnswer);
  header.flags = static_cast<std::uint8_t>((content.silent ? kFlagSilent : 0) | (content.ordered ? 0 : kFlagUnordered) |
                                           (content.list == ListKind::kOverflow ? kFlagOverflowList : 0));
  header.ni_fail_type = static_cast<std::uint8_t>(content.fail);
  header.operation_id = content.operation_id;
  header.remote_offset = content.remote_offset;
  header.length = content.mlength;
  return header;
}

bool read_data(const Peer& peer, const OutgoingAnswer& answer, std::byte* target, std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (answer.private_data != nullptr) {
    std::memcpy(target, answer.private_data.get() + answer.sent, bytes);
    return true;
  }
  if (answer.arrival.entry == nullptr) return false;  // Its interface was closed.
  const MemorySegment& segment = answer.arrival.entry->segment;
  return segment.read(answer.arrival.offset + answer.sent, target, bytes, peer.link->streaming);
}

/// Why data could not be read.
NiFail fail_of_reading(const OutgoingAnswer& answer) {
  return answer.arrival.entry == nullptr ? NiFail::kDropped : NiFail::kSegv;
}

/// A get whose data has left, or never will, is complete at the target.
void complete_reply(Core& core, Peer& peer, OutgoingAnswer& answer, NiFail fail) {
  if (answer.arrival.mode != ArrivalMode::kDeliver) return;
  if (answer.interface_index == kTofuInterface) {
    answer.arrival.mode = ArrivalMode::kIdle;
    return complete_tofu_arrival(core, peer, answer.arrival, fail);
  }
  Interface* ni = core.interface(answer.interface_index);
  if (ni == nullptr) return;
  if (fail != NiFail::kOk) answer.arrival.fail = fail;
  answer.arrival.mode = ArrivalMode::kIdle;
  complete_arrival(core, *ni, peer, answer.arrival);
}

/// Publishes the next packet of the answer.
AnswerResult send_packet(Core& core, Peer& peer, OutgoingAnswer& answer) {
  const std::uint64_t left = answer.data_bytes - answer.sent;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, peer.wire->max_payload_bytes()));
  std::byte* payload = peer.wire->claim_answer(*peer.link, bytes);
  if (payload == nullptr) return AnswerResult::kBlocked;
  PacketHeader header = answer.started ? stamped_header(core, PacketType::kData) : answer.header;
  header.payload_bytes = bytes;
  const bool readable = read_data(peer, answer, payload, bytes);
  if (answer.started) {
    header.flags = kFlagAnswerStream;
    header.remote_offset = answer.sent;
  }
  if (!readable) {  // The initiator learns how far the data was good.
    header.payload_bytes = 0;
    header.ni_fail_type = static_cast<std::uint8_t>(fail_of_reading(answer));
    if (answer.started) header.flags |= kFlagCut;
    if (!answer.started) header.length = 0;
  }
  peer.wire->publish(*peer.link, header);
  core.counters.add(Counter::kPacketsSent);
  core.counters.add(Counter::kBytesSent, header.payload_bytes);
  answer.started = true;
  answer.sent += bytes;
  if (readable && answer.sent < answer.data_bytes) return AnswerResult::kBlocked;
  complete_reply(core, peer, answer, readable ? NiFail::kOk : fail_of_reading(answer));
  return AnswerResult::kDone;
}

/// Publishes packets until the answer is done, blocked, or the budget is used.
AnswerResult send_packets(Core& core, Peer& peer, OutgoingAnswer& answer, int& budget) {
  while (budget > 0) {
    const std::uint64_t before = answer.sent;
    if (send_packet(core, peer, answer) == AnswerResult::kDone) {
      --budget;
      return AnswerResult::kDone;
    }
    if (answer.sent == before) return AnswerResult::kBlocked;
    --budget;
  }
  return AnswerResult::kBlocked;
}

bool may_send_now(Core& core, Peer& peer) {
  return peer.answers.empty() && ensure_connected(core, peer) == Reach::kNow;
}

void queue_answer(Core& core, Peer& peer, OutgoingAnswer* answer) {
  peer.answers.push_back(*answer);
  ++peer.answer_count;
  core.wait_for_room(peer);
}

/// Packets of one answer that leave at once at most; the rest leaves from the loop, fairly among peers.
constexpr int kImmediatePackets = 8;

/// 2.7.1: a short get reads before a later put of the same initiator writes, so its data is taken now.
void take_short_data(OutgoingAnswer& answer) {
  if (answer.private_data != nullptr || answer.data_bytes == 0 || answer.data_bytes > kMaxWarOrderedBytes) return;
  auto copy = std::make_unique<std::byte[]>(answer.data_bytes);
  if (answer.arrival.entry->segment.read(answer.arrival.offset, copy.get(), answer.data_bytes)) {
    answer.private_data = std::move(copy);
  }
}

void send_or_queue(Core& core, Peer& peer, OutgoingAnswer& answer) {
  core.counters.add(Counter::kAnswersSent);
  int budget = kImmediatePackets;
  if (may_send_now(core, peer) && send_packets(core, peer, answer, budget) == AnswerResult::kDone) return;
  auto* waiting = new OutgoingAnswer;
  waiting->header = answer.header;
  waiting->arrival = answer.arrival;
  waiting->interface_index = answer.interface_index;
  waiting->data_bytes = answer.data_bytes;
  waiting->sent = answer.sent;
  waiting->started = answer.started;
  waiting->private_data = std::move(answer.private_data);
  if (!waiting->started && waiting->arrival.mode == ArrivalMode::kDeliver) take_short_data(*waiting);
  queue_answer(core, peer, waiting);
}

/// An answer of one packet that has nothing before it needs no state. @return false: it cannot leave now
bool send_now(Core& core, Peer& peer, const AnswerContent& content, const std::byte* data, std::uint64_t bytes) {
  if (!may_send_now(core, peer) || bytes > kInlineBytes) return false;
  std::byte* payload = peer.wire->claim_answer(*peer.link, static_cast<std::uint32_t>(bytes));
  if (payload == nullptr) return false;
  if (bytes > 0) std::memcpy(payload, data, bytes);
  PacketHeader header = answer_header(core, content);
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  peer.wire->publish(*peer.link, header);
  core.counters.add(Counter::kAnswersSent);
  core.counters.add(Counter::kPacketsSent);
  core.counters.add(Counter::kBytesSent, bytes);
  return true;
}

}  // namespace

void send_answer(Core& core, Peer& peer, const AnswerContent& content) {
  if (send_now(core, peer, content, nullptr, 0)) return;
  OutgoingAnswer answer;
  answer.header = answer_header(core, content);
  send_or_queue(core, peer, answer);
}

void send_answer_data(Core& core, Peer& peer, const AnswerContent& content, const std::byte* data) {
  if (send_now(core, peer, content, data, content.mlength)) return;
  OutgoingAnswer answer;
  answer.header = answer_header(core, content);
  answer.data_bytes = content.mlength;
  answer.private_data = std::make_unique_for_overwrite<std::byte[]>(content.mlength);
  if (content.mlength > 0) std::memcpy(answer.private_data.get(), data, content.mlength);
  send_or_queue(core, peer, answer);
}

void send_reply(Core& core, Peer& peer, std::uint32_t interface_index, const AnswerContent& content,
                const Arrival& arrival) {
  OutgoingAnswer answer;
  answer.header = answer_header(core, content);
  answer.arrival = arrival;
  answer.interface_index = static_cast<std::uint8_t>(interface_index);
  answer.data_bytes = content.mlength;
  send_or_queue(core, peer, answer);
}

void send_fault(Core& core, Peer& peer, const PacketHeader& header) {
  OutgoingAnswer answer;
  answer.header = header;
  send_or_queue(core, peer, answer);
}

int advance_answers(Core& core, Peer& peer, int budget) {
  const int given = budget;
  while (!peer.answers.empty() && budget > 0) {
    OutgoingAnswer& answer = peer.answers.front();
    if (send_packets(core, peer, answer, budget) == AnswerResult::kBlocked) break;
    peer.answers.pop_front();
    --peer.answer_count;
    delete &answer;
  }
  return given - budget;
}

void drop_answers(Core& core, Peer& peer) {
  while (!peer.answers.empty()) {
    OutgoingAnswer& answer = peer.answers.front();
    peer.answers.pop_front();
    --peer.answer_count;
    complete_reply(core, peer, answer, NiFail::kUndeliverable);
    delete &answer;
  }
}

}  // namespace portofu
