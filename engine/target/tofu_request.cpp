#include "engine/target/tofu_request.h"

#include <array>
#include <cstring>

#include "engine/initiator/send.h"
#include "engine/initiator/tofu_report.h"
#include "engine/target/answer_out.h"
#include "engine/target/atomic_unit.h"
#include "engine/target/deliver.h"
#include "engine/target/request.h"
#include "engine/target/stadd_access.h"

namespace portofu {
namespace {

/// Notices that wait behind gets of a peer that does not take their data; those that follow do not wait.
constexpr std::size_t kMostHeldNotices = 131072;

bool is_armw(const PacketHeader& header) {
  const auto type = static_cast<AtomicType>(header.atomic_type);
  return is_armw_operation(static_cast<AtomicOperation>(header.atomic_operation)) &&
         ((type == AtomicType::kUint32 && header.length == 4) || (type == AtomicType::kUint64 && header.length == 8));
}

std::uint32_t operand_bytes(const PacketHeader& header) {
  return header.atomic_operation == static_cast<std::uint8_t>(AtomicOperation::kCswap) ? kOperandBytes : 0;
}

bool is_placed(const PacketHeader& header) { return (header.flags & kFlagPlaced) != 0; }

bool is_sane(const PacketHeader& header) {
  if (header.interface_index != kTofuInterface || header.length > kMaxRegionBytes) return false;
  const bool answered = (header.flags & kFlagAnswerWanted) != 0;
  if (is_placed(header)) return header.type == PacketType::kTofuPut && header.payload_bytes == 0;
  if (header.type == PacketType::kTofuPut) return header.payload_bytes <= header.length;
  if (!answered) return false;
  if (header.type == PacketType::kTofuGet) return header.payload_bytes == 0;
  return is_armw(header) && header.payload_bytes == header.length + operand_bytes(header);
}

AnswerContent content_of(const Arrival& arrival) {
  AnswerContent content;
  content.ordered = true;  // 2.2.10: local notices are in the order of posting.
  content.operation_id = arrival.header.operation_id;
  content.fail = arrival.fail;
  const bool is_put = arrival.header.type == PacketType::kTofuPut;
  content.mlength = arrival.fail == NiFail::kOk ? arrival.header.length : 0;
  content.remote_offset = arrival.header.remote_offset + (is_put ? arrival.header.length : 0);
  return content;
}

/// Tells the initiator, in order with the answers.
void tell(Core& core, Peer& peer, const Arrival& arrival) {
  const PacketHeader& header = arrival.header;
  if ((header.flags & kFlagAnswerWanted) != 0) return send_answer(core, peer, content_of(arrival));
  if (arrival.fail == NiFail::kOk) return;
  PacketHeader fault = stamped_header(core, PacketType::kTofuFault);
  fault.ni_fail_type = static_cast<std::uint8_t>(arrival.fail);
  fault.pt_index = header.pt_index & 0xff;
  fault.initiator_rank = queue_number(header.hdr_data);
  fault.hdr_data = make_tofu_id(TofuIdKind::kVcq, core.tofu != nullptr ? core.tofu->coordinates : Coordinates{},
                                header.initiator_rank & 0x0fffffff);
  fault.remote_offset = header.remote_offset + header.length;
  send_fault(core, peer, fault);
}

void refuse(Core& core, Peer& peer, Arrival& arrival, NiFail fail) {
  const PacketHeader& header = arrival.header;
  core.counters.add(Counter::kHeadersDropped);
  arrival.fail = fail;
  arrival.received = header.payload_bytes;
  const bool more = header.type == PacketType::kTofuPut && !is_placed(header) && arrival.received < header.length;
  arrival.mode = more ? ArrivalMode::kDiscard : ArrivalMode::kIdle;
  tell(core, peer, arrival);
}

void finish(Core& core, Peer& peer, Arrival& arrival) {
  arrival.mode = ArrivalMode::kIdle;
  complete_tofu_arrival(core, peer, arrival, arrival.fail);
  tell(core, peer, arrival);
}

void run_armw(Core& core, Peer& peer, Arrival& arrival, const std::byte* payload) {
  std::array<std::byte, kOperandBytes + 8> data;  // A private copy: the peer may still write the packet.
  std::array<std::byte, 8> fetched{};
  std::memcpy(data.data(), payload, arrival.header.payload_bytes);
  const std::uint32_t operand = operand_bytes(arrival.header);
  const bool aligned =
      deliver_atomic(arrival, data.data() + operand, operand != 0 ? data.data() : nullptr, fetched.data());
  if (!aligned) arrival.fail = NiFail::kBadStadd;
  arrival.mode = ArrivalMode::kIdle;
  complete_tofu_arrival(core, peer, arrival, arrival.fail);
  if (arrival.fail != NiFail::kOk) return tell(core, peer, arrival);
  send_answer_data(core, peer, content_of(arrival), fetched.data());
}

Notice notice_of(const Arrival& arrival) {
  const PacketHeader& header = arrival.header;
  Notice notice;
  notice.vcq_id = header.hdr_data;
  notice.edata = header.pt_index & 0xff;
  notice.remote_stadd = header.remote_offset + header.length;
  notice.kind = NoticeKind::kRemotePut;
  if (header.type == PacketType::kTofuGet) {
    notice.kind = NoticeKind::kRemoteGet;
    notice.local_stadd = header.match_bits + header.length;
  } else if (header.type == PacketType::kTofuArmw) {
    notice.kind = NoticeKind::kRemoteArmw;
    notice.remote_stadd = header.remote_offset;
  }
  return notice;
}

void post_to(Core& core, Handle vcq_handle, const Notice& notice) {
  if (VirtualControlQueue* vcq = core.tofu->vcq(vcq_handle)) post_notice(core, *vcq, notice);
}

/// Keeps a place for the notice of a get whose data is still to leave.
void await_notice(Core& core, Peer& peer, const Arrival& arrival) {
  if ((arrival.header.pt_index & kTofuRemoteNotice) == 0) return;
  const Handle handle = core.tofu->vcq_of_number(arrival.header.initiator_rank)->handle;
  peer.held_notices.push_back({handle, notice_of(arrival), true});
}

/// The data of the oldest get that is awaited has left, or never will: what waited for it is told.
void release_notices(Core& core, Peer& peer, NiFail fail) {
  auto& held = peer.held_notices;
  if (fail != NiFail::kOk) held.pop_front();
  for (bool first = fail == NiFail::kOk; !held.empty() && (first || !held.front().awaited); first = false) {
    const HeldNotice next = held.front();
    held.pop_front();
    post_to(core, next.vcq_handle, next.notice);
  }
}

void tell_target(Core& core, Peer& peer, const Arrival& arrival, NiFail fail) {
  if ((arrival.header.pt_index & kTofuRemoteNotice) == 0) return;
  if (arrival.header.type == PacketType::kTofuGet) return release_notices(core, peer, fail);
  const VirtualControlQueue* vcq = core.tofu->vcq_of_number(arrival.header.initiator_rank);
  if (vcq == nullptr || fail != NiFail::kOk) return;
  const std::size_t held = peer.held_notices.size();
  if (held == 0 || held >= kMostHeldNotices) return post_to(core, vcq->handle, notice_of(arrival));
  peer.held_notices.push_back({vcq->handle, notice_of(arrival), false});
}

void run_get(Core& core, Peer& peer, Arrival& arrival) {
  Arrival reply = arrival;
  reply.mode = ArrivalMode::kDeliver;
  arrival.mode = ArrivalMode::kIdle;
  await_notice(core, peer, reply);
  send_reply(core, peer, kTofuInterface, content_of(reply), reply);
}

/// Finds what the request is about. @return kOk with entry, offset and mlength set
NiFail locate(Core& core, Arrival& arrival) {
  const PacketHeader& header = arrival.header;
  const std::uint32_t number = header.initiator_rank;
  if (core.tofu == nullptr || core.tofu->vcq_of_number(number) == nullptr) return NiFail::kUndeliverable;
  // A put or get of nothing touches no memory, so it needs none.
  NiFail fail = NiFail::kOk;
  RegisteredRegion* region = find_region(core.tofu->queue(number)->stadds,
                                         {fresh(header.remote_offset), fresh(header.length), header.type}, &fail);
  if (region == nullptr) return fail;
  arrival.entry = region;
  arrival.offset = stadd_offset(header.remote_offset);
  arrival.mlength = header.length;
  ++region->pending;
  return NiFail::kOk;
}

}  // namespace

void receive_tofu_request(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  if (peer.request_stream.mode != ArrivalMode::kIdle) {
    core.counters.add(Counter::kPacketsRefusedMalformed);
    cut_request(core, peer, NiFail::kUndeliverable);
  }
  if (!is_sane(header) || peer.answer_count >= kMostWaitingAnswers) {
    return core.counters.add(Counter::kPacketsRefusedMalformed);
  }
  Arrival& arrival = peer.request_stream;
  begin_arrival(arrival, header, peer.id);
  const NiFail fail = locate(core, arrival);
  if (fail != NiFail::kOk) return refuse(core, peer, arrival, fail);
  core.counters.add(header.type == PacketType::kTofuPut   ? Counter::kPutsMatched
                    : header.type == PacketType::kTofuGet ? Counter::kGetsMatched
                                                          : Counter::kAtomicsMatched);
  core.counters.add(Counter::kBytesReceived, header.payload_bytes);
  if (header.type == PacketType::kTofuArmw) return run_armw(core, peer, arrival, payload.here());
  if (header.type == PacketType::kTofuGet) return run_get(core, peer, arrival);
  if (is_placed(header)) return finish(core, peer, arrival);
  if (!payload.is_here()) {
    // 2.2.3: the last line is written last, by us.
    const MemorySegment& segment = arrival.entry->segment;
    const auto end = reinterpret_cast<std::uintptr_t>(segment.address(arrival.offset + header.length));
    offer_place(peer, header, payload, segment, arrival.offset, header.length - tofu_tail_bytes(end, header.length));
  }
  arrival.mode = ArrivalMode::kDeliver;
  deliver_tofu_payload(core, peer, arrival, payload, header.payload_bytes);
}

void deliver_tofu_payload(Core& core, Peer& peer, Arrival& arrival, Payload payload, std::uint32_t bytes) {
  const bool last = arrival.received + bytes == arrival.header.length;
  if (last && bytes > 0) {
    const std::byte* const end = arrival.entry->segment.address(arrival.offset + arrival.header.length);
    const std::uint64_t body = bytes - tofu_tail_bytes(reinterpret_cast<std::uintptr_t>(end), bytes);
    deliver_payload(arrival, payload, body);
    deliver_payload(arrival, payload.behind(body), bytes - body);
  } else {
    deliver_payload(arrival, payload, bytes);
  }
  if (last) finish(core, peer, arrival);
}

void complete_tofu_arrival(Core& core, Peer& peer, Arrival& arrival, NiFail fail) {
  const PacketHeader& header = arrival.header;
  if (arrival.entry != nullptr) --arrival.entry->pending;
  arrival.entry = nullptr;
  ++core.activity;
  if (core.tofu == nullptr) return;
  tell_target(core, peer, arrival, fail);
  VirtualControlQueue* vcq = core.tofu->vcq_of_number(header.initiator_rank);
  if (vcq == nullptr || fail != NiFail::kOk) return;
  const std::uint32_t steps = header.pt_index >> kTofuStepsShift;
  if (vcq->session && steps != 0 && header.type == PacketType::kTofuPut) {
    vcq->steps.add_success_on_duty(steps, core.fired);
  }
}

void drop_tofu_put(Arrival& arrival) {
  --arrival.entry->pending;
  arrival.entry = nullptr;
}

void leave_region(Core& core, const RegisteredRegion& region) {
  if (region.pending == 0) return;
  for (auto& [key, peer] : core.peers) {
    Arrival& arrival = peer->request_stream;
    if (arrival.mode == ArrivalMode::kDeliver && arrival.entry == &region) {
      peer->wire->take_offers_back(peer->id);
      arrival.entry = nullptr;
      arrival.mode = ArrivalMode::kDiscard;
      arrival.fail = NiFail::kBadStadd;
      tell(core, *peer, arrival);
    }
    for (auto* answers : {&peer->answers, &peer->lent_answers}) {
      for (OutgoingAnswer& answer : *answers) {
        if (answer.arrival.entry == &region) answer.arrival.entry = nullptr;
      }
    }
  }
}

}  // namespace portofu
