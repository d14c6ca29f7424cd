#include "engine/target/tofu_request.h"

#include <array>
#include <cstring>

#include "engine/atomic/atomic_unit.h"
#include "engine/core/steps.h"
#include "engine/mailbox/inbox.h"
#include "engine/mailbox/judge.h"
#include "engine/mailbox/outbox.h"
#include "engine/mailbox/stamped_header.h"
#include "engine/memory/guarded_copy.h"
#include "engine/memory/stadd_access.h"
#include "engine/target/answer_out.h"
#include "engine/target/new_request.h"

namespace portofu {
namespace {

/// Notices that wait behind gets of a peer that does not take their data; those that follow do not wait.
constexpr std::size_t kMostHeldNotices = 131072;

/// The VCQ that a request is for. @return nullptr if there is none
VirtualControlQueue* vcq_of(const Core& core, const PacketHeader& header) {
  return core.tofu != nullptr ? core.tofu->vcq_of_number(header.tofu_queue) : nullptr;
}

/// What a request is about.
struct Target {
  VirtualControlQueue* vcq = nullptr;
  RegisteredRegion* region = nullptr;
};

/// @return kOk, or why the initiator may not have it
NiFail locate(const Core& core, const PacketHeader& header, Target* target) {
  target->vcq = vcq_of(core, header);
  if (target->vcq == nullptr) return NiFail::kUndeliverable;
  const StaddAccess access{fresh(header.remote_stadd), fresh(header.length), header.type};
  NiFail fail = NiFail::kOk;
  target->region = find_region(core.tofu->queue(header.tofu_queue)->stadds, access, &fail);
  return target->region != nullptr ? NiFail::kOk : fail;
}

bool is_placed(const PacketHeader& header) { return (header.flags & kFlagPlaced) != 0; }

AnswerContent content_of(const PacketHeader& header, NiFail fail) {
  AnswerContent content;
  content.ordered = true;  // 2.2.10: local notices are in the order of posting.
  content.operation_id = header.operation_id;
  content.fail = fail;
  const bool is_put = header.type == PacketType::kTofuPut;
  content.mlength = fail == NiFail::kOk ? header.length : 0;
  content.remote_offset = header.remote_stadd + (is_put ? header.length : 0);
  return content;
}

/// Tells the initiator, in order with the answers.
void tell(Core& core, Peer& peer, const PacketHeader& header, NiFail fail) {
  if ((header.flags & kFlagAnswerWanted) != 0) return send_answer(core, peer, content_of(header, fail));
  if (fail == NiFail::kOk) return;
  PacketHeader fault = stamped_header(core, PacketType::kTofuFault);
  fault.ni_fail_type = static_cast<std::uint8_t>(fail);
  fault.tofu_meta = edata_of(header.tofu_meta);
  fault.vcq_handle = header.vcq_handle;
  fault.tofu_queue = queue_number(header.sender_id);
  fault.sender_id = make_tofu_id(TofuIdKind::kVcq, core.tofu != nullptr ? core.tofu->coordinates : Coordinates{},
                                 header.tofu_queue & 0x0fffffff);
  fault.remote_stadd = header.remote_stadd + header.length;
  send_fault(core, peer, fault);
}

/// Whether more packets follow.
bool has_more(const PacketHeader& header) {
  return header.type == PacketType::kTofuPut && !is_placed(header) && header.payload_bytes < header.length;
}

/// IncomingHooks::finish. Of a put whose rest never comes nobody is told here. Its sender knows, but keeps the number
/// of the operation until it is answered.
void finish(Core& core, Peer& peer, Arrival& arrival) {
  arrival.mode = ArrivalMode::kIdle;
  if (arrival.is_cut) {
    --arrival.entry->pending;
    arrival.entry = nullptr;
    if ((arrival.header.flags & kFlagAnswerWanted) != 0) tell(core, peer, arrival.header, arrival.fail);
    return;
  }
  complete_tofu_arrival(core, peer, arrival, arrival.fail);
  tell(core, peer, arrival.header, arrival.fail);
}

constexpr IncomingHooks kTofuPutHooks{
    .memory = entry_memory, .finish = finish, .may_be_offered = true, .ends_with_last_line = true};

/// Tells the initiator, and drops the data that is still to come.
[[gnu::cold, gnu::noinline]] void refuse(Core& core, Peer& peer, const PacketHeader& header, NiFail fail) {
  core.counters.add(Counter::kHeadersDropped);
  Arrival& arrival = peer.request_stream;
  begin_arrival(arrival, kTofuPutHooks, header, peer.id);
  arrival.fail = fail;
  arrival.received = header.payload_bytes;
  if (has_more(header)) arrival.mode = ArrivalMode::kDiscard;
  tell(core, peer, header, fail);
}

Notice notice_of(const PacketHeader& header) {
  Notice notice;
  notice.vcq_id = header.sender_id;
  notice.edata = edata_of(header.tofu_meta);
  notice.remote_stadd = header.remote_stadd + header.length;
  notice.kind = NoticeKind::kRemotePut;
  if (header.type == PacketType::kTofuGet) {
    notice.kind = NoticeKind::kRemoteGet;
    notice.local_stadd = header.local_stadd + header.length;
  } else if (header.type == PacketType::kTofuArmw) {
    notice.kind = NoticeKind::kRemoteArmw;
    notice.remote_stadd = header.remote_stadd;
  }
  return notice;
}

void post_to(Core& core, Handle vcq_handle, const Notice& notice) {
  if (VirtualControlQueue* vcq = core.tofu->vcq(vcq_handle)) post_notice(core, *vcq, notice);
}

/// Keeps a place for the notice of a get whose data is still to leave.
void await_notice(Core& core, Peer& peer, const Arrival& arrival) {
  if ((arrival.header.tofu_meta & kTofuRemoteNotice) == 0) return;
  const Handle handle = core.tofu->vcq_of_number(arrival.header.tofu_queue)->handle;
  peer.held_notices.push_back({handle, notice_of(arrival.header), true});
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

/// What the VCQ that a request was for hears of its success: the remote notice, unless the data of a get is to leave
/// first, and session steps.
void tell_target(Core& core, Peer& peer, const PacketHeader& header, VirtualControlQueue& vcq) {
  const bool is_get = header.type == PacketType::kTofuGet;
  record_deliver(core, peer, header, header.length);
  if ((header.tofu_meta & kTofuRemoteNotice) != 0 && !is_get) {
    if (peer.held_notices.empty() || peer.held_notices.size() >= kMostHeldNotices) {
      post_notice(core, vcq, notice_of(header));
    } else {
      peer.held_notices.push_back({vcq.handle, notice_of(header), false});
    }
  }
  const std::uint32_t steps = header.tofu_meta >> kTofuStepsShift;
  if (steps == 0 || header.type != PacketType::kTofuPut) return;
  if (!vcq.session) {
    vcq.astray_steps += steps;
    vcq.astray_from = peer.id;
  } else {
    vcq.steps.add_success_on_duty(steps, core.fired);
    if (core.observers != nullptr) [[unlikely]]
      put_count(core, vcq.handle, vcq.steps.success());
  }
}

void run_get(Core& core, Peer& peer, Arrival& arrival) {
  Arrival reply = arrival;
  arrival.mode = ArrivalMode::kIdle;
  await_notice(core, peer, reply);
  send_reply(core, peer, kTofuInterface, content_of(reply.header, reply.fail), reply);
}

/// For whoever asks later who holds a lock that lies in memory.
void note_word(Core& core, const Peer& peer, const PacketHeader& header, bool took) {
  const SwappedWord word{header.remote_stadd, core.tofu->vcq_of_number(header.tofu_queue)->id, 0, kTofuInterface};
  if (static_cast<AtomicOperation>(header.atomic_operation) != AtomicOperation::kCswap)
    return core.swapped_words.changes(word, peer.id);
  core.swapped_words.swaps(word, peer.id, took, [&core] { return core.now_ns(); });
}

/// What an ARMW does to its word. @param fetched  what that was before
/// @param took  set: a compare-and-swap has found what it compares with
NiFail compute(const PacketHeader& header, std::byte* word, const std::byte* payload, std::byte* fetched, bool* took) {
  std::array<std::byte, kOperandBytes + 8> data;  // A private copy: the peer may still write the packet, or unmake it.
  if (!guarded_copy(data.data(), payload, header.payload_bytes)) return NiFail::kSegv;
  const std::uint32_t operand = operand_bytes(header);
  const AtomicRequest request{static_cast<AtomicOperation>(header.atomic_operation),
                              static_cast<AtomicType>(header.atomic_type),
                              word,
                              data.data() + operand,
                              fetched,
                              operand != 0 ? data.data() : nullptr,
                              1};
  const AtomicResult result = execute_atomic(request);
  if (result == AtomicResult::kFault) return NiFail::kSegv;
  *took = std::memcmp(data.data(), fetched, header.length) == 0;
  return result == AtomicResult::kDone ? NiFail::kOk : NiFail::kBadStadd;  // Not aligned.
}

/// An ARMW is one packet, and over before the next.
void run_armw(Core& core, Peer& peer, const PacketHeader& header, const std::byte* payload, const Target& target) {
  ++core.activity;
  std::array<std::byte, 8> fetched{};
  bool took = false;
  std::byte* const word = target.region->segment.address(stadd_offset(header.remote_stadd));
  const NiFail fail = compute(header, word, payload, fetched.data(), &took);
  if (fail != NiFail::kOk) return tell(core, peer, header, fail);
  note_word(core, peer, header, took);
  tell_target(core, peer, header, *target.vcq);
  send_answer_data(core, peer, content_of(header, NiFail::kOk), fetched.data());
}

/// A put that lies whole in its packet is over before the next, too, and needs no state. Most puts are such ones.
void run_whole_put(Core& core, Peer& peer, const PacketHeader& header, Payload payload, const Target& target) {
  const std::uint64_t offset = stadd_offset(header.remote_stadd);
  ++core.activity;
  if (!write_last_line_last(target.region->segment, offset, payload, header.payload_bytes)) [[unlikely]]
    return tell(core, peer, header, fail_of_storing(payload));
  tell_target(core, peer, header, *target.vcq);
  if ((header.flags & kFlagAnswerWanted) != 0) send_answer(core, peer, content_of(header, NiFail::kOk));
}

Counter counter_of(PacketType type) {
  switch (type) {
    case PacketType::kTofuGet: return Counter::kGetsMatched;
    case PacketType::kTofuArmw: return Counter::kAtomicsMatched;
    default: return Counter::kPutsMatched;
  }
}

}  // namespace

void receive_tofu_request(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  if (!is_taken_in(core, peer, header)) return;
  Target target;
  const NiFail fail = locate(core, header, &target);
  if (fail != NiFail::kOk) return refuse(core, peer, header, fail);
  core.counters.add(counter_of(header.type));
  core.counters.add(Counter::kBytesReceived, header.payload_bytes);
  if (header.type == PacketType::kTofuArmw) return run_armw(core, peer, header, payload.here(), target);
  const bool is_put = header.type == PacketType::kTofuPut && !is_placed(header);
  if (is_put && !has_more(header) && payload.is_here()) return run_whole_put(core, peer, header, payload, target);
  Arrival& arrival = peer.request_stream;
  begin_arrival(arrival, kTofuPutHooks, header, peer.id);
  arrival.entry = target.region;
  arrival.offset = stadd_offset(header.remote_stadd);
  arrival.mlength = header.length;
  ++target.region->pending;
  if (header.type == PacketType::kTofuGet) return run_get(core, peer, arrival);
  if (is_placed(header)) return finish(core, peer, arrival);
  take_first(core, peer, arrival, payload);
}

void complete_tofu_arrival(Core& core, Peer& peer, Arrival& arrival, NiFail fail) {
  const PacketHeader& header = arrival.header;
  if (arrival.entry != nullptr) --arrival.entry->pending;
  arrival.entry = nullptr;
  ++core.activity;
  if (core.tofu == nullptr) return;
  const bool is_told_get = header.type == PacketType::kTofuGet && (header.tofu_meta & kTofuRemoteNotice) != 0;
  if (is_told_get) release_notices(core, peer, fail);
  VirtualControlQueue* vcq = core.tofu->vcq_of_number(header.tofu_queue);
  if (vcq != nullptr && fail == NiFail::kOk) tell_target(core, peer, header, *vcq);
}

void leave_region(Core& core, const RegisteredRegion& region) {
  // What waits to go out of it is not counted as pending.
  if (region.pending == 0 && core.waiting_peers.empty()) return;
  for (auto& [key, peer] : core.peers) {
    Arrival& arrival = peer->request_stream;
    if (arrival.mode == ArrivalMode::kDeliver && arrival.entry == &region) {
      take_offers_back(*peer);
      arrival.entry = nullptr;
      arrival.mode = ArrivalMode::kDiscard;
      arrival.fail = NiFail::kBadStadd;
      tell(core, *peer, arrival.header, arrival.fail);
    }
    peer->answers.for_each([&region](OutgoingMessage& message) {
      if (message.hooks == &kNoHooks) return;
      Arrival& get = message.words.answer.get;
      if (get.entry == &region) get.entry = nullptr;
    });
    for (Outbox* outbox : {&peer->requests, &peer->answers}) {
      for (OutgoingMessage& message : outbox->waiting) {
        if (message.segment == &region.segment)
          take_source_away(message, message.is_answer ? NiFail::kDropped : NiFail::kSegv);
      }
    }
  }
}

}  // namespace portofu
