#include "engine/target/request.h"

#include <array>
#include <cstring>

#include "engine/atomic/atomic_unit.h"
#include "engine/core/steps.h"
#include "engine/mailbox/inbox.h"
#include "engine/mailbox/judge.h"
#include "engine/memory/guarded_copy.h"
#include "engine/queue/fresh_line.h"
#include "engine/target/answer_out.h"
#include "engine/target/complete.h"
#include "engine/target/deliver.h"
#include "engine/target/match_header.h"
#include "engine/target/match_steps.h"
#include "engine/target/new_request.h"
#include "engine/target/permission.h"
#include "engine/target/published_entry.h"
#include "engine/wire/completions.h"

namespace portofu {
namespace {

/// Who a message is from, as matching and events show it.
ProcessId initiator_of(const Interface& ni, const Peer& peer, const PacketHeader& header) {
  // Made of its parts in registers: who wrote the parts to memory and read the whole would wait (fresh_line.h).
  std::uint32_t nid = peer.id.nid, pid = peer.id.pid;
  if (ni.is_logical()) {
    nid = ni.map.rank_of(peer.id, header.initiator_rank);
    pid = 0;
  } else if (ni.is_fabric()) {
    pid = endpoint_of(peer.id, static_cast<std::uint16_t>(header.initiator_rank)).pid;
  }
  return {nid, pid};
}

/// What a refusal is told as: to the initiator, to whoever asks later, and in numbers.
struct RefusalWords {
  NiFail fail;
  RefusedFor reason;
  Counter counter = Counter::kHeadersDropped;
  StatusRegister status = StatusRegister::kDropCount;
};

RefusalWords words_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNoPortal: return {NiFail::kDropped, RefusedFor::kNoPortal};
    case Refusal::kDisabled:
    case Refusal::kFlowControl: return {NiFail::kPtDisabled, RefusedFor::kDisabled};
    case Refusal::kPermission:
      return {NiFail::kPermViolation, RefusedFor::kPermission, Counter::kPermissionViolations,
              StatusRegister::kPermissionViolations};
    case Refusal::kOperation:
      return {NiFail::kOpViolation, RefusedFor::kOperation, Counter::kOperationViolations,
              StatusRegister::kOperationViolations};
    case Refusal::kNotAligned: return {NiFail::kDropped, RefusedFor::kNotAligned};
    case Refusal::kNone:
    case Refusal::kNoMatch: break;
  }
  return {NiFail::kDropped, RefusedFor::kNoMatch};
}

/// For whoever asks later why a message is not there.
void note_refusal(Core& core, Interface* ni, const Arrival& arrival, RefusedFor reason) {
  const PacketHeader& header = arrival.header;
  const ProcessId from = arrival.initiator;
  (ni != nullptr ? ni->last_refused : core.last_astray) = {reason,        header.pt_index,        from.pid,
                                                           from.nid,      header.match_bits,      core.now_ns(),
                                                           header.length, header.interface_index, header.remote_offset};
}

/// Tells the initiator, and drops the data that is still to come.
void refuse(Core& core, Interface* ni, Peer& peer, Arrival& arrival, Refusal refusal) {
  const RefusalWords words = words_of(refusal);
  core.counters.add(words.counter);
  if (ni != nullptr) ni->count_status(words.status);
  note_refusal(core, ni, arrival, words.reason);
  const PacketHeader& header = arrival.header;
  arrival.mode =
      header.type == PacketType::kPut && arrival.received < header.length ? ArrivalMode::kDiscard : ArrivalMode::kIdle;
  if ((header.flags & kFlagAnswerWanted) == 0) return;
  AnswerContent content;
  content.operation_id = header.operation_id;
  content.fail = words.fail;
  // SPEC: 2.8 and 3.13.3 give no ACK for a put that matches nothing without flow control; a get is always told, because
  // its memory descriptor could never be released otherwise.
  // libfabric tells of everything.
  content.silent = refusal == Refusal::kNoMatch && header.interface_index != kFabricInterface;
  send_answer(core, peer, content);
}

void count_match(Core& core, const Arrival& arrival) {
  core.counters.add(arrival.header.type == PacketType::kPut   ? Counter::kPutsMatched
                    : arrival.header.type == PacketType::kGet ? Counter::kGetsMatched
                                                              : Counter::kAtomicsMatched);
  if (arrival.unexpected != nullptr) core.counters.add(Counter::kHeadersUnexpected);
}

AnswerContent content_of(Core& core, Interface& ni, const PacketHeader& header, const Placement& placement) {
  AnswerContent content;
  content.operation_id = header.operation_id;
  content.fail = fresh(placement.fail);
  content.list = fresh(placement.list);
  content.silent = (placement.entry->options & kEntryAckDisable) != 0;
  content.mlength = fresh(placement.mlength);
  content.remote_offset = fresh(placement.offset);
  if (placement.entry->publication != Publication::kNever) [[unlikely]] {
    content.published = publish_entry(core, ni, *placement.entry);
    content.pt_index = header.pt_index;
    content.match_bits = header.match_bits;
  }
  return content;
}

/// Completions::acknowledge, written down with the time before anybody can see it.
[[gnu::cold, gnu::noinline]] bool acknowledge_and_record(const Core& core, Completions& completions, const Peer& peer,
                                                         const PacketHeader& header) {
  Recorder* const to = core.recorder();
  const std::uint64_t ticks = to != nullptr ? to->now() : 0;
  if (!completions.acknowledge(peer.id, header.operation_id)) return false;
  if (to != nullptr) put_acknowledgement<Step::kPacketOut>(*to, ticks, {peer.id, header.operation_id, header.length});
  return true;
}

/// Tells the initiator that all is done as it was asked for, if it is, and the wire can say that without a packet.
/// @return false if nobody was told
[[gnu::always_inline]] inline bool acknowledge_as_asked(Core& core, const Peer& peer, const PacketHeader& header,
                                                        std::uint64_t mlength, std::uint64_t offset) {
  if (mlength != header.length || offset != header.remote_offset) return false;
  Completions* const completions = peer.wire->completions();
  if (completions == nullptr) return false;
  if (core.observers != nullptr) [[unlikely]] {
    if (!acknowledge_and_record(core, *completions, peer, header)) return false;
  } else if (!completions->acknowledge(peer.id, header.operation_id)) {
    return false;
  }
  core.counters.add(Counter::kAnswersSent);
  return true;
}

/// A whole put of the priority list has its data in place: tells so before its event is written, because its initiator
/// may wait for that. Whoever holds the duty is the only one who could find that the event is not there yet. A count
/// can be seen without the duty, so it comes first.
/// @return false if it has to be answered later, when all is done
[[gnu::noinline]] bool acknowledge_early(Core& core, const Peer& peer, const PacketHeader& header,
                                         const ListEntry& entry, std::uint64_t mlength, std::uint64_t offset) {
  if ((entry.options & (kEntryAckDisable | kEntryEventCtComm)) != 0 || entry.publication != Publication::kNever)
    return false;
  return acknowledge_as_asked(core, peer, header, mlength, offset);
}

/// A put, or an atomic without reply, is complete.
void acknowledge(Core& core, Peer& peer, const PacketHeader& header, const AnswerContent& content) {
  const bool is_plain = fresh(content.fail) == NiFail::kOk && fresh(content.list) == ListKind::kPriority &&
                        !fresh(content.silent) && !fresh(content.published);
  if (is_plain && acknowledge_as_asked(core, peer, header, content.mlength, content.remote_offset)) return;
  send_answer(core, peer, content);
}

/// A put, or an atomic without reply, has all its data: completes it and acknowledges.
void finish(Core& core, Interface& ni, Peer& peer, Arrival& arrival) {
  arrival.mode = ArrivalMode::kIdle;
  const AnswerContent content = content_of(core, ni, arrival.header, arrival);
  const bool answered = (arrival.header.flags & kFlagAnswerWanted) != 0;
  const bool late = (arrival.entry->options & kEntryAnswersLate) != 0;
  complete_arrival(core, ni, peer, arrival);
  if (!answered) return;
  if (!late) return acknowledge(core, peer, arrival.header, content);
  ni.late_answers.push_back({peer.id, content.operation_id});
  give_late_answers(core, ni);
}

/// The end of a whole put whose initiator still waits for an answer. Apart, like the other two here, so that what most
/// puts run needs little room on the stack.
[[gnu::noinline]] void unlink_and_answer(Core& core, Interface& ni, Peer& peer, const PacketHeader& header,
                                         const Placement& place) {
  const AnswerContent content = content_of(core, ni, header, place);  // Of the entry, which may go.
  if (place.entry->state != EntryState::kLinked) advance_unlink(core, ni, *place.entry, header.pt_index);
  acknowledge(core, peer, header, content);
}

/// IncomingHooks::finish.
void finish_put(Core& core, Peer& peer, Arrival& arrival) {
  finish(core, *core.interface(arrival.header.interface_index), peer, arrival);
}

constexpr IncomingHooks kPutHooks{
    .memory = entry_memory, .finish = finish_put, .may_be_late = true, .may_be_offered = true};

/// For whoever asks later who holds a lock that lies in memory.
void note_word(Core& core, const Arrival& arrival, const std::byte* operand, const std::byte* fetched) {
  const PacketHeader& header = arrival.header;
  const SwappedWord word{arrival.offset, header.match_bits, header.pt_index, header.interface_index};
  if (static_cast<AtomicOperation>(header.atomic_operation) != AtomicOperation::kCswap)
    return core.swapped_words.changes(word, arrival.initiator);
  const bool took = std::memcmp(operand, fetched, arrival.mlength) == 0;
  core.swapped_words.swaps(word, arrival.initiator, took, [&core] { return core.now_ns(); });
}

/// What is not executed leaves only its data there, or reads (3.15.4).
[[gnu::noinline]] void run_atomic(Core& core, Interface& ni, Peer& peer, Arrival& arrival, const std::byte* payload) {
  const PacketHeader& header = arrival.header;
  const std::uint32_t operand = operand_bytes(header);
  const bool fetching = header.type != PacketType::kAtomic;
  // A private copy: the peer may still write the packet, or unmake it.
  std::array<std::byte, kMaxAtomicBytes + kOperandBytes> data;
  std::array<std::byte, kMaxAtomicBytes> fetched;
  if (header.payload_bytes > 0 && !guarded_copy(data.data(), payload, header.payload_bytes)) [[unlikely]]
    arrival.fail = NiFail::kSegv;
  if (arrival.fail != NiFail::kOk) {
    arrival.received = header.length;
  } else if (executes(arrival)) {
    deliver_atomic(arrival, data.data() + operand, operand != 0 ? data.data() : nullptr,
                   fetching ? fetched.data() : nullptr);
    if (arrival.fail == NiFail::kOk) note_word(core, arrival, data.data(), fetched.data());
  } else if (fetching) {
    if (!arrival.entry->segment.read(arrival.offset, fetched.data(), arrival.mlength)) arrival.fail = NiFail::kSegv;
  } else {
    store_payload(arrival, &arrival.entry->segment, data.data(), header.payload_bytes);
  }
  if (arrival.fail != NiFail::kOk) arrival.mlength = 0;
  if (!fetching) return finish(core, ni, peer, arrival);
  const AnswerContent content = content_of(core, ni, arrival.header, arrival);
  arrival.mode = ArrivalMode::kIdle;
  complete_arrival(core, ni, peer, arrival);
  send_answer_data(core, peer, content, fetched.data());
}

[[gnu::noinline]] void run_get(Core& core, Interface& ni, Peer& peer, Arrival& arrival) {
  Arrival reply = arrival;
  arrival.mode = ArrivalMode::kIdle;
  send_reply(core, peer, ni.index, content_of(core, ni, reply.header, reply), reply);
}

/// A put that lies whole in its packet and matches in the priority list is over before the next packet: it goes through
/// the same steps as any other, and needs no state. Most puts are such ones.
/// @param kRecorded  its steps are written down; so nothing below has to ask
/// @return false if it is no such put, or something has to be refused; nothing was done
template <bool kRecorded>
[[gnu::always_inline]] inline bool receive_whole_put(Core& core, Peer& peer, const PacketHeader& header,
                                                     Payload payload) {
  constexpr PacketType kType = PacketType::kPut;
  if (header.payload_bytes != header.length || !payload.is_here()) return false;
  if (peer.request_stream.mode != ArrivalMode::kIdle || peer.answers.waiting.size() >= kMostWaitingAnswers)
    return false;
  Interface* ni = core.interface(header.interface_index);
  PortalTableEntry* portal = ni != nullptr ? ni->portal(header.pt_index) : nullptr;
  if (portal == nullptr || !portal->enabled || (!ni->is_matching() && header.match_bits != 0)) return false;
  Placement place;
  place.initiator = initiator_of(*ni, peer, header);
  place.entry = find_entry(portal->priority, *ni, header, place.initiator);
  if (place.entry == nullptr || judge(*place.entry, header, kType) != Refusal::kNone) return false;
  find_place(header, kType, place);
  if (portal->flow_control) [[unlikely]] {
    const EventQueue* queue = ni->eqs.find(portal->eq_handle);
    const std::uint32_t unlinks = unlinks_due(*place.entry, place.mlength);
    if (unlinks != 0 && place.entry->pending != 0) return false;  // Another message raises it, and is promised room.
    if (queue != nullptr && !queue->has_room_on_duty(events_due(*place.entry, header, kType) + unlinks)) return false;
  }
  if constexpr (kRecorded) put_match(core, peer, header, portal->priority, *place.entry);
  take(*portal, place);
  if (place.mlength != 0 && !place.entry->segment.write(place.offset, payload.here(), place.mlength)) [[unlikely]] {
    place.fail = fail_of_storing(payload);
  }
  if constexpr (kRecorded) put_message<Step::kDeliver>(core, peer, header, place.mlength);
  bool answered = (header.flags & kFlagAnswerWanted) == 0;
  if (!answered && place.fail == NiFail::kOk)
    answered = acknowledge_early(core, peer, header, *place.entry, place.mlength, place.offset);
  core.counters.add(Counter::kPutsMatched);
  core.counters.add(Counter::kBytesReceived, header.payload_bytes);
  ++core.activity;
  report_communication(core, *ni, portal->eq_handle, header, kType, place);
  if (!answered) {
    const Placement copy = place;  // Whose address is taken, so that `place` itself needs none.
    unlink_and_answer(core, *ni, peer, header, copy);
  } else if (place.entry->state != EntryState::kLinked) {
    advance_unlink(core, *ni, *place.entry, header.pt_index);
  }
  return true;
}

/// The same while somebody is told of steps. The checker is told by the way of all other messages only.
[[gnu::cold, gnu::noinline]] bool receive_told_put(Core& core, Peer& peer, const PacketHeader& header,
                                                   Payload payload) {
  return core.checker() == nullptr && receive_whole_put<true>(core, peer, header, payload);
}

}  // namespace

void receive_request(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  if (!is_taken_in(core, peer, header)) return;
  Interface* ni = core.interface(header.interface_index);
  Arrival& arrival = peer.request_stream;
  begin_arrival(arrival, kPutHooks, header, ni != nullptr ? initiator_of(*ni, peer, header) : peer.id);
  if (ni != nullptr && !ni->is_matching()) arrival.header.match_bits = 0;
  // Flow control may post PT_DISABLED here, before the events of puts that are put off: both have happened.
  const Refusal refusal = ni != nullptr ? match_header(core, *ni, peer, arrival) : Refusal::kNoPortal;
  if (refusal != Refusal::kNone) {
    finish_late_messages(core);
    arrival.received = header.payload_bytes;
    return refuse(core, ni, peer, arrival, refusal);
  }
  count_match(core, arrival);
  core.counters.add(Counter::kBytesReceived, header.payload_bytes);
  if (is_atomic(header.type)) return run_atomic(core, *ni, peer, arrival, payload.here());
  if (header.type == PacketType::kGet) return run_get(core, *ni, peer, arrival);
  take_first(core, peer, arrival, payload);
}

void receive_put(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  if (core.observers != nullptr) [[unlikely]] {
    if (receive_told_put(core, peer, header, payload)) return;
  } else if (receive_whole_put<false>(core, peer, header, payload)) {
    return;
  }
  receive_request(core, peer, header, payload);
}

}  // namespace portofu
