#include "engine/target/answer_out.h"

#include <algorithm>
#include <cstring>

#include "engine/mailbox/connect.h"
#include "engine/mailbox/send_steps.h"
#include "engine/queue/fresh_line.h"
#include "engine/queue/ring_geometry.h"
#include "engine/target/complete.h"
#include "engine/target/tofu_request.h"

namespace portofu {
namespace {

/// What became of an attempt to send.
enum class AnswerResult : std::uint8_t {
  kDone,
  kBlocked,
  kLent,  ///< Nothing is left to send, but the initiator may still read the entry's memory.
};

/// Inlined, so that in_words finds the fields in registers.
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

/// Claims a packet for data that stays in the entry's memory. @return its bytes; 0: the data has to be copied
std::uint32_t lend(const Peer& peer, const OutgoingAnswer& answer, std::uint64_t left) {
  // 2.7.1: a short get reads before a later put of the same initiator writes, so its data is read now.
  // NOLINTNEXTLINE(misc-redundant-expression): the two bounds need not be equal.
  if (answer.data_bytes < kLendFromBytes || answer.data_bytes <= kMaxWarOrderedBytes) return 0;
  if (answer.private_data != nullptr || answer.arrival.entry == nullptr) return 0;
  const MemorySegment::Run run = answer.arrival.entry->segment.run_at(answer.arrival.offset + answer.sent, left);
  return lend_run(peer, run, {.message = answer.first_packet, .offset = answer.sent, .length = answer.data_bytes});
}

/// uTofu tells of gets in the order in which they came (guide, 2.2.10), also of one that could leave at once while the
/// data of another is still being read.
bool is_told_behind_lent(const Peer& peer, const OutgoingAnswer& answer) {
  return answer.interface_index == kTofuInterface && !peer.lent_answers.empty() &&
         answer.arrival.mode == ArrivalMode::kDeliver;
}

/// Publishes the next packet of the answer.
AnswerResult send_packet(Core& core, Peer& peer, OutgoingAnswer& answer) {
  const std::uint64_t left = answer.data_bytes - answer.sent;
  if (!answer.started) answer.first_packet = peer.wire->next_packet(*peer.link);
  std::uint32_t bytes = lend(peer, answer, left);
  if (bytes != 0) answer.lent_end = peer.wire->next_packet(*peer.link) + 1;
  std::byte* payload = nullptr;
  if (bytes == 0) {
    bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, peer.wire->max_payload_bytes()));
    payload = peer.wire->claim_answer(*peer.link, bytes);
    if (payload == nullptr) return AnswerResult::kBlocked;
  }
  PacketHeader header = answer.started ? stamped_header(core, PacketType::kData) : answer.header;
  header.payload_bytes = bytes;
  if (answer.started) {
    header.flags = kFlagAnswerStream;
    header.remote_offset = answer.sent;
  }
  PacketHeader words = in_words(header);  // Before the payload, see initiator/send.cpp.
  const bool readable = payload == nullptr || read_data(peer, answer, payload, bytes);
  if (!readable) {  // The initiator learns how far the data was good.
    header.payload_bytes = 0;
    header.ni_fail_type = static_cast<std::uint8_t>(fail_of_reading(answer));
    if (answer.started) header.flags |= kFlagCut;
    if (!answer.started) header.length = 0;
    words = in_words(header);
  }
  peer.wire->publish(*peer.link, words);
  core.counters.add(Counter::kPacketsSent);
  core.counters.add(Counter::kBytesSent, header.payload_bytes);
  answer.started = true;
  answer.sent += bytes;
  if (readable && answer.sent < answer.data_bytes) return AnswerResult::kBlocked;
  const NiFail fail = readable ? NiFail::kOk : fail_of_reading(answer);
  if ((readable && answer.lent_end != 0) || is_told_behind_lent(peer, answer)) {
    answer.arrival.fail = fail;
    return AnswerResult::kLent;
  }
  complete_reply(core, peer, answer, fail);
  return AnswerResult::kDone;
}

/// Publishes packets until the answer is done, blocked, or the budget is used.
AnswerResult send_packets(Core& core, Peer& peer, OutgoingAnswer& answer, int& budget) {
  while (budget > 0) {
    const std::uint64_t before = answer.sent;
    const AnswerResult result = send_packet(core, peer, answer);
    if (result == AnswerResult::kBlocked && answer.sent == before) return AnswerResult::kBlocked;
    budget -= packets_worth(answer.sent - before);
    if (result != AnswerResult::kBlocked) return result;
  }
  return AnswerResult::kBlocked;
}

bool may_send_now(Core& core, Peer& peer) { return peer.answers.empty() && reach_for_new(core, peer) == Reach::kNow; }

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
  const AnswerResult result =
      may_send_now(core, peer) ? send_packets(core, peer, answer, budget) : AnswerResult::kBlocked;
  if (result == AnswerResult::kDone) return;
  auto* waiting = new OutgoingAnswer;
  waiting->header = answer.header;
  waiting->arrival = answer.arrival;
  waiting->interface_index = answer.interface_index;
  waiting->data_bytes = answer.data_bytes;
  waiting->sent = answer.sent;
  waiting->started = answer.started;
  waiting->lent_end = answer.lent_end;
  waiting->first_packet = answer.first_packet;
  waiting->private_data = std::move(answer.private_data);
  waiting->finish = complete_reply;
  if (result == AnswerResult::kLent) {
    peer.lent_answers.push_back(*waiting);
    return core.look_after(peer);
  }
  if (!waiting->started && waiting->arrival.mode == ArrivalMode::kDeliver) take_short_data(*waiting);
  queue_answer(core, peer, waiting);
}

/// An answer of one packet that has nothing before it needs no state. @return false: it cannot leave now
bool send_now(Core& core, Peer& peer, const AnswerContent& content, const std::byte* data, std::uint64_t bytes) {
  if (!may_send_now(core, peer) || bytes > kInlineBytes) return false;
  std::byte* payload = peer.wire->claim_answer(*peer.link, static_cast<std::uint32_t>(bytes));
  if (payload == nullptr) return false;
  PacketHeader header = answer_header(core, content);
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  const PacketHeader words = in_words(header);  // Before the payload, see initiator/send.cpp.
  if (bytes > 0) std::memcpy(payload, data, bytes);
  peer.wire->publish(*peer.link, words);
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
    const AnswerResult result = send_packets(core, peer, answer, budget);
    if (result == AnswerResult::kBlocked) break;
    peer.answers.pop_front();
    --peer.answer_count;
    if (result == AnswerResult::kLent) {
      peer.lent_answers.push_back(answer);
    } else {
      delete &answer;
    }
  }
  return given - budget;
}

int finish_taken_answers(Core& core, Peer& peer) {
  int finished = 0;
  auto& lent = peer.lent_answers;
  for (; !lent.empty() && peer.wire->has_taken(*peer.link, lent.front().lent_end); ++finished) {
    OutgoingAnswer& answer = lent.front();
    lent.pop_front();
    complete_reply(core, peer, answer, answer.arrival.fail);
    delete &answer;
  }
  return finished;
}

}  // namespace portofu
