// The model: the target's side of a transfer. Portals 4.3, 2.5, 2.8, 3.11-3.13.

#include <algorithm>
#include <cstring>

#include "engine/atomic/atomic_unit.h"
#include "tests/simulation/model.h"
#include "tests/unit/atomic/atomic_oracle.h"

namespace portofu::simulation {
namespace {

bool is_get(const ModelMessage& message) { return message.descriptor.type == PacketType::kGet; }
bool is_put(const ModelMessage& message) { return message.descriptor.type == PacketType::kPut; }
bool is_fetching(const ModelMessage& message) {
  return message.descriptor.type == PacketType::kFetchAtomic || message.descriptor.type == PacketType::kSwap;
}

/// 2.7.1: up to here a get's data is that of the moment when it is matched.
bool reads_at_once(const ModelMessage& message) { return message.answer.mlength <= kMaxWarOrderedBytes; }

/// One item of an integral type becomes what the operation makes of it.
template <class T>
void apply_to(AtomicOperation operation, std::byte* target, const std::byte* source, const std::byte* operand) {
  T values[3];
  std::memcpy(&values[0], target, sizeof(T));
  std::memcpy(&values[1], source, sizeof(T));
  std::memcpy(&values[2], operand, sizeof(T));
  const auto outcome = oracle::apply_integral<T>(operation, values[0], values[1], values[2]);
  using Kind = typename oracle::Outcome<T>::Kind;
  if (outcome.kind == Kind::kMoved) std::memcpy(target, source, sizeof(T));
  if (outcome.kind == Kind::kComputed) std::memcpy(target, outcome.item.data(), sizeof(T));
}

void apply_item(AtomicType type, AtomicOperation operation, std::byte* target, const std::byte* source,
                const std::byte* operand) {
  switch (type) {
    case AtomicType::kInt8: return apply_to<std::int8_t>(operation, target, source, operand);
    case AtomicType::kUint16: return apply_to<std::uint16_t>(operation, target, source, operand);
    case AtomicType::kInt32: return apply_to<std::int32_t>(operation, target, source, operand);
    case AtomicType::kUint64: return apply_to<std::uint64_t>(operation, target, source, operand);
    default: return;
  }
}

template <class T>
void remove_from(std::vector<T*>& list, const T* element) {
  list.erase(std::find(list.begin(), list.end(), element));
}

}  // namespace

// ---- Packets -------------------------------------------------------------------------------------------------------

void Model::arrive(std::size_t process, std::size_t source, const PacketHeader& header) {
  Pair& from = pair(source, process);
  if (from.in_flight.empty()) return complain("a message arrives that nobody has sent, or that has come already");
  ModelMessage& message = *from.in_flight.front();
  check_first_packet(message, header);
  const bool wanted = (header.flags & kFlagAnswerWanted) != 0;
  if (message.entry != nullptr || message.answer_due || message.received != 0) complain("a message inside another one");
  if (header.operation_id != message.operation_id && wanted) complain("a message that overtakes another one");
  if (!complaint_.empty()) return;
  ModelProcess& own = processes[process];
  const bool matched = match(own, message);
  if (matched && is_get(message)) {
    if (reads_at_once(message)) read(own, message, message.answer.mlength);
    message.answer_due = true;
    from.in_flight.pop_front();
    message.arrived = true;
    return;
  }
  if (matched && !is_put(message)) execute(own, message);
  arrive_more(process, source, header);
}

void Model::arrive_more(std::size_t process, std::size_t source, const PacketHeader& header) {
  Pair& from = pair(source, process);
  if (from.in_flight.empty()) return complain("data arrives for no message");
  ModelMessage& message = *from.in_flight.front();
  const bool first = header.type != PacketType::kData;
  const std::uint64_t operand = first && message.descriptor.portals.operand_bytes != 0 ? kOperandBytes : 0;
  const std::uint64_t bytes = header.payload_bytes - operand;
  if (message.received + bytes > message.data.size()) return complain("more data arrives than was sent");
  if (message.entry != nullptr && is_put(message)) deliver(processes[process], message, bytes);
  message.received += bytes;
  if (message.received < message.data.size()) return;
  from.in_flight.pop_front();
  message.arrived = true;
  if (message.entry == nullptr) return;  // It was refused.
  complete(processes[process], message);
  message.answer_due = message.operation_id != 0;
}

void Model::publish_answer(std::size_t process, std::size_t peer, const PacketHeader& header, std::uint64_t lent_end) {
  if (pair(peer, process).answering != nullptr) return complain("an answer begins inside another one");
  ModelMessage* message = check_answer(process, peer, header);
  if (message != nullptr) publish_answer_data(processes[process], *message, header, lent_end);
}

/// @return what it answers; nullptr: nothing
ModelMessage* Model::check_answer(std::size_t process, std::size_t peer, const PacketHeader& header) {
  ModelMessage* message = find_operation(peer, process, header.operation_id);
  if (message == nullptr || message->answer_sent) complain("an answer to what nobody has asked");
  if (message != nullptr && !message->answer_due) complain("an answer before the operation is done");
  if (!complaint_.empty()) return nullptr;
  const ModelAnswer& expected = message->answer;
  const bool in_overflow = (header.flags & kFlagOverflowList) != 0;
  if (header.ni_fail_type != static_cast<std::uint8_t>(expected.fail)) {
    complain("an answer with failure " + std::to_string(header.ni_fail_type) + ", expected " +
             std::to_string(static_cast<int>(expected.fail)));
  }
  if (header.length != expected.mlength || header.remote_offset != expected.remote_offset) {
    complain("an answer with the wrong mlength or remote_offset");
  }
  if (in_overflow != (expected.list == ListKind::kOverflow)) complain("an answer with the wrong list");
  if (((header.flags & kFlagSilent) != 0) != expected.silent) complain("an answer that is silent, or should be");
  return message;
}

void Model::publish_answer_data(ModelProcess& process, ModelMessage& message, const PacketHeader& header,
                                std::uint64_t lent_end) {
  Pair& own = pair(message.initiator, message.target);
  const std::uint64_t wanted = is_get(message) || is_fetching(message) ? message.answer.mlength : 0;
  if (message.answered + header.payload_bytes > wanted) return complain("an answer with too much data");
  if (is_get(message) && !reads_at_once(message)) read(process, message, header.payload_bytes);
  message.answered += header.payload_bytes;
  if (lent_end != 0) {
    message.answer_lent_end = lent_end;
    message.answer_lent_bytes = message.answered;
  }
  own.answering = message.answered < wanted ? &message : nullptr;
  if (own.answering != nullptr) return;
  message.answer_sent = true;
  if (message.answer_lent_end != 0) return own.lent_answers.push_back(&message);
  if (is_get(message) && message.entry != nullptr) complete(process, message);
}

// ---- Matching ------------------------------------------------------------------------------------------------------

bool Model::matches_entry(const ModelEntry& entry, const ModelMessage& message) {
  if (!matching()) return true;
  const EntryPlan& plan = entry.plan;
  const ProcessId source = processes[message.initiator].initiator_id;
  if (((message.descriptor.match_bits ^ plan.criteria.match_bits) & ~plan.criteria.ignore_bits) != 0) return false;
  if (!plan.criteria.any_nid && source.nid != plan.criteria.match_id.nid) return false;
  if (!plan.criteria.any_pid && source.pid != plan.criteria.match_id.pid) return false;
  if ((plan.options & kEntryNoTruncate) == 0 || message.descriptor.length == 0) return true;
  const bool local = (plan.options & kEntryManageLocal) != 0;
  return (local ? entry.local_offset : message.descriptor.remote_offset) + message.descriptor.length <=
         plan.region.length();
}

ModelEntry* Model::find_entry(const std::vector<ModelEntry*>& list, const ModelMessage& message) {
  for (ModelEntry* entry : list) {
    if (matches_entry(*entry, message)) return entry;
  }
  return nullptr;
}

bool Model::refuse(ModelProcess& process, ModelMessage& message, NiFail fail, bool silent) {
  StatusRegister which = StatusRegister::kDropCount;
  if (fail == NiFail::kPermViolation) which = StatusRegister::kPermissionViolations;
  if (fail == NiFail::kOpViolation) which = StatusRegister::kOperationViolations;
  ++process.status[static_cast<std::size_t>(which)];
  message.answer.fail = fail;
  message.answer.silent = silent;
  message.answer_due = message.operation_id != 0;
  return false;
}

/// 2.8. @param entry  where the message matched, nullptr if it did not
bool Model::exhausted(ModelProcess& process, ModelMessage& message, const ModelEntry* entry) {
  ModelPortal& portal = process.portals.at(message.descriptor.pt_index);
  if (!portal.flow_control) return refuse(process, message, NiFail::kDropped, true);
  portal.enabled = false;
  if (entry == nullptr || (entry->plan.options & kEntryEventFlowctrlDisable) == 0) {
    Event event;
    event.type = EventKind::kPtDisabled;
    event.pt_index = message.descriptor.pt_index;
    post(process, portal.eq, event);
  }
  return refuse(process, message, NiFail::kPtDisabled, false);
}

bool Model::judge(ModelProcess& process, ModelMessage& message, const ModelEntry& entry) {
  if (entry.plan.uid != kUidAny && entry.plan.uid != processes[message.initiator].uid) {
    return refuse(process, message, NiFail::kPermViolation, false);
  }
  const bool writes = !is_get(message);
  const bool reads = is_get(message) || is_fetching(message);
  const bool allowed =
      (!writes || (entry.plan.options & kEntryOpPut) != 0) && (!reads || (entry.plan.options & kEntryOpGet) != 0);
  return allowed || refuse(process, message, NiFail::kOpViolation, false);
}

/// Where the message begins in the entry, and how much of it is moved.
Model::Place Model::place_in(const ModelEntry& entry, const ModelMessage& message) {
  const bool local = (entry.plan.options & kEntryManageLocal) != 0;
  const std::uint64_t offset = local ? entry.local_offset : message.descriptor.remote_offset;
  const std::uint64_t length = entry.plan.region.length();
  const std::uint64_t moved = std::min(offset < length ? length - offset : 0, message.descriptor.length);
  if (is_put(message) || is_get(message)) return {offset, moved};
  return {offset, moved - moved % atomic_type_bytes(static_cast<AtomicType>(message.descriptor.atomic_type))};
}

/// 3.12.1: use once, min_free.
bool Model::is_used_up_by(const ModelEntry& entry, const ModelMessage& message) {
  if ((entry.plan.options & kEntryUseOnce) != 0) return true;
  const std::uint64_t end = entry.local_offset + place_in(entry, message).mlength;
  return (entry.plan.options & kEntryManageLocal) != 0 && entry.plan.region.length() - end < entry.plan.min_free;
}

/// 3.15.4: whether an atomic finds its items where the datatype may be. Entries of atomics have one piece.
bool Model::is_aligned(const ModelProcess& process, const ModelMessage& message, const ModelEntry& entry) {
  const Place place = place_in(entry, message);
  const std::uint64_t item = atomic_type_bytes(static_cast<AtomicType>(message.descriptor.atomic_type));
  if (place.mlength == 0) return true;  // Nothing is computed.
  return reinterpret_cast<std::uintptr_t>(process.real + entry.plan.region.place(place.offset)) % item == 0;
}

/// @return false if the message was refused
bool Model::match(ModelProcess& process, ModelMessage& message) {
  const auto found = process.portals.find(message.descriptor.pt_index);
  if (found == process.portals.end()) return refuse(process, message, NiFail::kDropped, false);
  ModelPortal& portal = found->second;
  if (!portal.enabled) return refuse(process, message, NiFail::kPtDisabled, false);
  ModelEntry* entry = find_entry(portal.priority, message);
  const bool in_overflow = entry == nullptr;
  if (in_overflow) entry = find_entry(portal.overflow, message);
  if (entry == nullptr) return exhausted(process, message, nullptr);
  if (!judge(process, message, *entry)) return false;
  const bool computes = !in_overflow && !is_put(message) && !is_get(message);
  if (computes && !is_aligned(process, message, *entry)) return refuse(process, message, NiFail::kDropped, false);
  const std::uint32_t options = entry->plan.options;
  const bool keeps_header = in_overflow && (options & kEntryUnexpectedHdrDisable) == 0;
  if (keeps_header && process.header_count >= static_cast<int>(process.limits.max_unexpected_headers)) {
    return exhausted(process, message, entry);
  }
  if (portal.flow_control) {
    // A failure is an event even where a success is none (3.12.1).
    const bool cannot_fail = is_put(message) && message.descriptor.length == 0;
    const bool quiet = cannot_fail && (options & kEntryEventSuccessDisable) != 0;
    if ((options & kEntryEventCommDisable) == 0 && !quiet) ++message.promised;
    const bool unlinks = is_used_up_by(*entry, message) && (options & kEntryEventUnlinkDisable) == 0;
    const std::uint64_t wanted = message.promised + (unlinks ? 1 : 0);
    ModelQueue& queue = process.queues.at(portal.eq);
    if (wanted > 0 && queue.used() + queue.promised + wanted > queue.capacity)
      return exhausted(process, message, entry);
    queue.promised += wanted;
    entry->unlink_promised = unlinks;
  }
  message.entry = entry;
  message.answer.list = in_overflow ? ListKind::kOverflow : ListKind::kPriority;
  take(process, portal, message);
  if (!keeps_header) return true;
  process.headers.push_back(std::make_unique<ModelHeader>());
  message.header = process.headers.back().get();
  message.header->message = &message;
  message.header->entry = entry;
  portal.unexpected.push_back(message.header);
  ++entry->headers;
  ++process.header_count;
  return true;
}

/// Offset, length, use once, min_free.
void Model::take(ModelProcess&, ModelPortal& portal, ModelMessage& message) {
  ModelEntry& entry = *message.entry;
  const Place place = place_in(entry, message);
  const bool unlinks = is_used_up_by(entry, message);
  message.offset = place.offset;
  message.answer.mlength = place.mlength;
  message.answer.remote_offset = message.offset;
  message.answer.silent = (entry.plan.options & kEntryAckDisable) != 0;
  ++entry.pending;
  if ((entry.plan.options & kEntryManageLocal) != 0) entry.local_offset += place.mlength;
  if (!unlinks) return;
  entry.state = EntryState::kUnlinking;
  remove_from(entry.plan.list == ListKind::kPriority ? portal.priority : portal.overflow, &entry);
}

// ---- Data ----------------------------------------------------------------------------------------------------------

void Model::deliver(ModelProcess& process, ModelMessage& message, std::uint64_t bytes) {
  for (std::uint64_t i = message.received; i < message.received + bytes && i < message.answer.mlength; ++i) {
    process.memory[message.entry->plan.region.place(message.offset + i)] = message.data[i];
  }
}

void Model::read(ModelProcess& process, ModelMessage& message, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    message.reply.push_back(process.memory[message.entry->plan.region.place(message.offset + message.reply.size())]);
  }
}

/// 3.15.4: in the priority list it is executed; in the overflow list only its data is left, or what is there is read.
void Model::execute(ModelProcess& process, ModelMessage& message) {
  const Descriptor& d = message.descriptor;
  const auto type = static_cast<AtomicType>(d.atomic_type);
  const std::uint64_t mlength = message.answer.mlength;
  if (is_fetching(message)) read(process, message, mlength);
  if (message.answer.list == ListKind::kOverflow) {
    if (!is_fetching(message)) deliver(process, message, message.data.size());
    return;
  }
  for (std::uint64_t done = 0; done < mlength; done += atomic_type_bytes(type)) {
    std::byte* item = &process.memory[message.entry->plan.region.place(message.offset + done)];
    apply_item(type, static_cast<AtomicOperation>(d.atomic_operation), item, &message.data[done], d.operand.data());
  }
}

// ---- Completion ----------------------------------------------------------------------------------------------------

Event Model::event_of(const ModelProcess& process, const ModelMessage& message) const {
  const Descriptor& d = message.descriptor;
  const bool is_atomic = !is_put(message) && !is_get(message);
  Event event;
  event.type = is_put(message)        ? EventKind::kPut
               : is_get(message)      ? EventKind::kGet
               : is_fetching(message) ? EventKind::kFetchAtomic
                                      : EventKind::kAtomic;
  event.start = process.real + message.entry->plan.region.place(message.offset);
  event.user_ptr = reinterpret_cast<void*>(message.entry->plan.name);
  event.hdr_data = d.hdr_data;
  event.match_bits = d.match_bits;
  event.rlength = d.length;
  event.mlength = message.answer.mlength;
  event.remote_offset = d.remote_offset;
  event.uid = processes[message.initiator].uid;
  event.initiator = processes[message.initiator].initiator_id;
  event.ptl_list = message.answer.list;
  event.atomic_operation = is_atomic ? d.atomic_operation : 0;
  event.atomic_type = is_atomic ? d.atomic_type : 0;
  event.pt_index = d.pt_index;
  return event;
}

void Model::complete(ModelProcess& process, ModelMessage& message) {
  ModelEntry& entry = *message.entry;
  const std::uint32_t options = entry.plan.options;
  const ModelPortal& portal = process.portals.at(entry.plan.pt_index);
  const Handle eq = portal.eq;
  if (message.promised != 0) process.queues.at(eq).promised -= message.promised;
  --entry.pending;
  withdraw_unlink_promise(process, entry);
  if ((options & (kEntryEventCommDisable | kEntryEventSuccessDisable)) == 0)
    post(process, eq, event_of(process, message), portal.flow_control);
  if ((options & kEntryEventCtComm) != 0) {
    count(process, entry.plan.ct, true, (options & kEntryEventCtBytes) != 0 ? message.answer.mlength : 1);
  }
  ModelHeader* header = message.header;
  advance_unlink(process, entry, portal.flow_control);
  if (header == nullptr) return;
  header->complete = true;
  if (!header->claimed) return;
  tell_overflow(process, *header);
  forget(process, *header);
}

void Model::tell_overflow(ModelProcess& process, ModelHeader& header) {
  const EntryPlan& claimer = header.claimer;
  const Handle eq = process.portals.at(header.entry->plan.pt_index).eq;
  Event event = event_of(process, *header.message);
  event.type = overflow_kind(event.type);
  event.user_ptr = reinterpret_cast<void*>(claimer.name);
  if ((claimer.options & (kEntryEventOverDisable | kEntryEventSuccessDisable)) == 0) post(process, eq, event);
  if (header.appended == nullptr) {  // 3.12.4: each match is counted once, and the end told behind all of them.
    count(process, claimer.ct, true, 1);
    if (header.unended != nullptr && --*header.unended == 0) end_search(process, claimer);
    return;
  }
  if ((claimer.options & kEntryEventCtOverflow) != 0) {
    count(process, claimer.ct, true, (claimer.options & kEntryEventCtBytes) != 0 ? event.mlength : 1);
  }
  --header.appended->pending;
  advance_unlink(process, *header.appended, withdraw_unlink_promise(process, *header.appended));
}

/// An append or search takes the header; its event comes when the data is there (2.5).
void Model::claim(ModelProcess& process, ModelPortal& portal, ModelHeader& header, const EntryPlan& claimer) {
  remove_from(portal.unexpected, &header);
  header.claimed = true;
  header.claimer = claimer;
  if (!header.complete) return;
  tell_overflow(process, header);
  forget(process, header);
}

void Model::forget(ModelProcess& process, ModelHeader& header) {
  --process.header_count;
  --header.entry->headers;
  advance_unlink(process, *header.entry);
}

/// What was promised to AUTO_UNLINK is there once the last message that is under way to the entry is complete, which
/// need not be the one that has used it up. @return whether it is
bool Model::withdraw_unlink_promise(ModelProcess& process, ModelEntry& entry) {
  if (!entry.unlink_promised || entry.pending != 0) return false;
  entry.unlink_promised = false;
  --process.queues.at(process.portals.at(entry.plan.pt_index).eq).promised;
  return true;
}

/// @param has_passed  what is told now follows from a message that has passed flow control
void Model::advance_unlink(ModelProcess& process, ModelEntry& entry, bool has_passed) {
  const Handle eq = process.portals.at(entry.plan.pt_index).eq;
  Event event;
  event.pt_index = entry.plan.pt_index;
  event.user_ptr = reinterpret_cast<void*>(entry.plan.name);
  const bool silent = (entry.plan.options & kEntryEventUnlinkDisable) != 0;
  if (entry.state == EntryState::kUnlinking && entry.pending == 0) {
    entry.state = EntryState::kUnlinked;
    event.type = EventKind::kAutoUnlink;
    if (!silent) post(process, eq, event, has_passed);
  }
  if (entry.state != EntryState::kUnlinked || entry.headers != 0) return;
  entry.state = EntryState::kGone;
  event.type = EventKind::kAutoFree;
  const bool is_buffer =
      entry.plan.list == ListKind::kOverflow && (entry.plan.options & kEntryUnexpectedHdrDisable) == 0;
  if (is_buffer && !silent) post(process, eq, event);
}

}  // namespace portofu::simulation
