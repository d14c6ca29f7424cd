#include "engine/initiator/tofu_send.h"

#include <algorithm>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/answer_in.h"
#include "engine/initiator/barrier.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/initiator/tofu_owner.h"
#include "engine/initiator/tofu_report.h"
#include "engine/mailbox/connect.h"
#include "engine/mailbox/outbox.h"
#include "engine/mailbox/stamped_header.h"
#include "engine/memory/stadd_access.h"
#include "engine/queue/fresh_line.h"
#include "engine/queue/ring_geometry.h"

namespace portofu {
namespace {

/// Bounds for answers of answer_for_nobody: gates whose owners are looked for then, and what waits for one of them.
constexpr std::ptrdiff_t kMostAskedFor = 4096;
constexpr std::size_t kMostWaitingAnswers = 64;

bool compares(const Descriptor& d) {
  return fresh(d.type) == PacketType::kTofuArmw &&
         fresh(d.atomic_operation) == static_cast<std::uint8_t>(AtomicOperation::kCswap);
}

/// Opens the outstanding entry if an answer is due.
/// @param operation_id  0: none is due
/// @return false if that cannot be done now
bool open_operation(Core& core, Peer& peer, const Descriptor& d, std::uint32_t* operation_id) {
  *operation_id = 0;
  if (d.type == PacketType::kTofuGate) return true;
  if ((d.tofu_meta & kTofuStrongOrder) != 0 && peer.gets_under_way != 0) return false;
  const bool puts = is_put(d);
  const bool notice = (d.tofu_meta & kTofuLocalNotice) != 0;
  if (puts && !notice && will_be_taken(peer, d)) return true;
  if (is_window_full(core, peer)) return false;
  OutstandingOperation* operation = core.outstanding.open(operation_id);
  if (operation == nullptr) return false;
  operation->peer = &peer;
  operation->kind = d.type;
  operation->interface_index = kTofuInterface;
  operation->ack_req = notice ? AckRequest::kFull : AckRequest::kNone;
  operation->expects_data = !puts;
  operation->length = d.length;
  operation->tofu = {d.tofu.vcq_handle, edata_of(d.tofu_meta), with_own_path(d.tofu.remote_vcq_id), {0}};
  if (d.type == PacketType::kTofuGet) operation->tofu.local_stadd = d.tofu.local_stadd;
  operation->tcq_place = d.tofu.tcq_place;
  operation->remote_offset = d.remote_stadd + (puts ? d.length : 0);
  ++peer.outstanding;
  if (d.type == PacketType::kTofuGet) ++peer.gets_under_way;
  return true;
}

/// What waits for the answer to a request ends.
/// @param operation_id  0: nothing does
/// @param has_left      the peer knows of the request
void forget_operation(Core& core, std::uint32_t operation_id, bool has_left) {
  if (operation_id != 0 && core.outstanding.find(operation_id) != nullptr)
    forget_outstanding(core, operation_id, has_left);
}

std::uint32_t operand_length(const Descriptor& d) { return compares(d) ? kOperandBytes : 0; }

/// Fills in what a packet says and whoever posted it does not know.
/// @param vcq    nullptr: a packet of a gate
/// @param bytes  of its payload
[[gnu::always_inline]] inline void complete_header(const Core& core, const VirtualControlQueue* vcq, Descriptor& d,
                                                   bool placed, std::uint64_t bytes) {
  d.flags = placed ? kFlagPlaced : 0;
  d.payload_bytes = static_cast<std::uint32_t>(bytes);
  if (d.type == PacketType::kTofuGet) {
    d.local_stadd = d.tofu.local_stadd;
  } else {
    d.vcq_handle = d.tofu.vcq_handle;
  }
  if (vcq != nullptr) d.sender_id = vcq->id;
  d.tofu_queue = queue_number(d.tofu.remote_vcq_id);
  stamp(core, d);
}

/// The local end of a put.
/// @return nullptr, with `fail` set, if there is none such, as 2.2.12 wants it told by the TCQ
const RegisteredRegion* find_local(Core& core, const VirtualControlQueue& vcq, const Descriptor& d, NiFail* fail) {
  return find_region(core.tofu->stadds(vcq), {fresh(d.tofu.local_stadd), fresh(d.length), PacketType::kTofuGet}, fail);
}

void tell_tcq(Core& core, VirtualControlQueue* vcq, const Descriptor& d, NiFail fail) {
  if (vcq == nullptr) return;
  vcq->tcq.complete(d.tofu.tcq_place, fail);
  ++core.activity;
}

/// All data has left.
void finish_sending(Core& core, VirtualControlQueue* vcq, const Descriptor& d, std::uint32_t operation_id) {
  tell_tcq(core, vcq, d, NiFail::kOk);
  OutstandingOperation* operation = operation_id != 0 ? core.outstanding.find(operation_id) : nullptr;
  if (operation == nullptr) return;
  operation->sent = true;
  if (operation->answered) finish_answer(core, operation_id, *operation);
}

/// Whether the answer came before the peer gave back what it was lent.
bool is_answered(Core& core, const OutgoingMessage& message) {
  if (message.header().operation_id == 0 || message.sent != message.length) return false;
  const OutstandingOperation* operation = core.outstanding.find(message.header().operation_id);
  return operation != nullptr && operation->answered;
}

/// The request cannot go out. That the peer is not there comes after the descriptor has left our side: the TCQ says
/// nothing of it (2.2.12).
void refuse(Core& core, VirtualControlQueue& vcq, const Descriptor& d, NiFail fail) {
  const bool unreachable = fail == NiFail::kUndeliverable;
  const std::uint64_t end = (unreachable ? d.remote_stadd : d.tofu.local_stadd) + d.length;
  note_failure(core, vcq, {fail, unreachable, d.tofu.remote_vcq_id, end, 0});
  tell_tcq(core, &vcq, d, unreachable ? NiFail::kOk : fail);
  if (unreachable) report_unreachable(core, vcq, d);
}

/// OutgoingHooks::open.
bool open_tofu_request(Core& core, Peer& peer, OutgoingMessage& message) {
  if (!open_operation(core, peer, message.words.request, &message.header().operation_id)) return false;
  if (message.header().operation_id != 0) message.header().flags |= kFlagAnswerWanted;
  return true;
}

/// OutgoingHooks::finish. A VCQ that was freed is told nothing.
void finish_tofu_request(Core& core, Peer&, OutgoingMessage& message, NiFail fail) {
  const Descriptor& d = message.words.request;
  VirtualControlQueue* vcq = core.tofu->vcq(d.tofu.vcq_handle);
  const bool is_of_gate = d.type == PacketType::kTofuGate;
  if (vcq == nullptr && !is_of_gate) return forget_operation(core, message.header().operation_id, message.started);
  if (fail == NiFail::kOk || is_answered(core, message)) {
    return finish_sending(core, is_of_gate ? nullptr : vcq, d, message.header().operation_id);
  }
  if (is_of_gate) return fail_gate_packet(core, d);
  forget_operation(core, message.header().operation_id, message.started);
  refuse(core, *vcq, d, fail);
}

constexpr OutgoingHooks kTofuRequestHooks{.open = open_tofu_request, .finish = finish_tofu_request};

void count_tofu_request(Core& core, PacketType kind) {
  core.counters.add(kind == PacketType::kTofuGet    ? Counter::kGetsSent
                    : kind == PacketType::kTofuArmw ? Counter::kAtomicsSent
                                                    : Counter::kPutsSent);
}

/// A request and where its data lies.
struct Ready {
  Descriptor& descriptor;
  VirtualControlQueue* vcq = nullptr;   ///< nullptr: a packet of a gate.
  const MemorySegment* data = nullptr;  ///< kTofuPut from memory: where that is.
  const std::byte* value = nullptr;     ///< Data of all others, nullptr if they have none.
  bool placed = false;                  ///< The data is at its place, and only the packet goes out.

  std::uint64_t length() const { return descriptor.type == PacketType::kTofuGet || placed ? 0 : descriptor.length; }
};

/// Where the data of a request lies that brings its own.
const std::byte* own_data(const Descriptor& d) {
  if (is_put(d)) return d.tofu.brings_data ? d.operand.data() : nullptr;
  return d.type == PacketType::kTofuArmw ? d.operand.data() + 8 : nullptr;
}

bool read_data(const Peer& peer, const Ready& ready, std::byte* target, std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (ready.value == nullptr) {
    const bool streaming = bytes > kInlineBytes && peer.link->streaming;
    return ready.data->read(stadd_offset(ready.descriptor.tofu.local_stadd), target, bytes, streaming);
  }
  std::memcpy(target, ready.value, bytes);
  return true;
}

/// Sends a request of one packet that has nothing before it. @return false if nothing has happened
bool send_at_once(Core& core, Peer& peer, const Ready& ready) {
  Descriptor& d = ready.descriptor;
  const std::uint64_t bytes = ready.length();
  const std::uint32_t front = operand_length(d);
  std::uint32_t operation_id = 0;
  if (!peer.requests.waiting.empty() || !fits_packet(peer, bytes + front)) return false;
  if (!open_operation(core, peer, d, &operation_id)) return false;
  std::byte* payload = peer.wire->claim(*peer.link, static_cast<std::uint32_t>(bytes + front));
  complete_header(core, ready.vcq, d, ready.placed, bytes + front);  // Before the payload, see send.cpp.
  d.operation_id = operation_id;
  if (operation_id != 0) d.flags |= kFlagAnswerWanted;
  if (front != 0 && payload != nullptr) [[unlikely]]
    std::memcpy(payload, d.operand.data(), front);
  const bool goes = payload != nullptr && read_data(peer, ready, payload + front, bytes);
  if (!goes) [[unlikely]] {
    if (payload != nullptr) peer.wire->discard(*peer.link);
    forget_operation(core, operation_id, false);
    return false;
  }
  publish_packet(core, peer, d, bytes);
  finish_sending(core, ready.vcq, d, operation_id);
  return true;
}

std::unique_ptr<std::byte[]> copy_of(const GateValue& value) {
  const std::size_t bytes = gate_value_bytes(value);
  auto copy = std::make_unique<std::byte[]>(bytes);
  std::memcpy(copy.get(), &value, bytes);
  return copy;
}

/// Sends the request as a message: it does not fit a packet, or cannot leave now. Apart, so that one that can needs
/// little room on the stack.
/// @param copy  kTofuGate: its data, if it has any
[[gnu::noinline]] void send_as_message(Core& core, Peer& peer, const Ready& ready, bool reachable,
                                       std::unique_ptr<std::byte[]> copy) {
  Descriptor& d = ready.descriptor;
  complete_header(core, ready.vcq, d, ready.placed, 0);
  d.operation_id = 0;
  OutgoingMessage message(d);
  message.hooks = &kTofuRequestHooks;
  message.interface_index = kTofuInterface;
  message.front_bytes = static_cast<std::uint8_t>(operand_length(d));
  message.length = ready.length();
  message.is_end_awaited = ready.vcq != nullptr && (d.tofu_meta & kTofuTcqNotice) != 0;
  if (message.length == 0) {
    message.source = SourceKind::kNone;
  } else if (copy != nullptr) {
    message.source = SourceKind::kCopy;
    message.copy = std::move(copy);
  } else if (ready.data != nullptr) {
    message.source = SourceKind::kSegment;
    message.segment = ready.data;
    message.offset = stadd_offset(d.tofu.local_stadd);
    message.may_be_lent = true;
  } else {
    message.source = SourceKind::kOperand;
    message.offset = static_cast<std::uint64_t>(ready.value - d.operand.data());
  }
  send_or_wait(core, peer, message, reachable && peer.requests.waiting.empty() ? kPacketBudget : 0);
}

/// @param peer  nullptr: nobody has the VCQ
void send_to_owner(Core& core, Peer* peer, VirtualControlQueue& vcq, Descriptor& d) {
  if (peer == nullptr) {
    return refuse(core, vcq, d, NiFail::kUndeliverable);
  }
  NiFail fail = NiFail::kOk;
  const RegisteredRegion* local = is_put_of_memory(d) ? find_local(core, vcq, d, &fail) : nullptr;
  if (fail != NiFail::kOk) return refuse(core, vcq, d, fail);
  follow_moved_name(core, *peer);
  const Reach reach = reach_for_new(core, *peer);
  // What waits for a link all the same ends first (2.2.10).
  if (reach == Reach::kNever && peer->requests.waiting.empty()) return refuse(core, vcq, d, NiFail::kUndeliverable);
  count_tofu_request(core, d.type);
  Ready ready{d, &vcq, local != nullptr ? &local->segment : nullptr, own_data(d)};
  if (reach == Reach::kNow) {
    const MappedResult mapped = use_mapped_on_duty(core, *peer, vcq, d);
    if (mapped == MappedResult::kDone) return;
    const bool may_be_written = mapped == MappedResult::kNo && is_silent_put(d);
    if (may_be_written && write_by_kernel_on_duty(core, *peer, vcq, d, local)) return;
    ready.placed = mapped == MappedResult::kPlaced;
    if (send_at_once(core, *peer, ready)) return;
  }
  send_as_message(core, *peer, ready, reach == Reach::kNow, nullptr);
}

Descriptor gate_descriptor(const BarrierGate& gate, std::uint64_t target) {
  Descriptor d;
  d.type = PacketType::kTofuGate;
  d.interface_index = kTofuInterface;
  d.sender_id = gate.id;
  d.tofu = {};
  d.tofu.remote_vcq_id = target;
  d.tofu.vcq_handle = gate.setting;
  return d;
}

/// Whom a gate has met at that other one, if any: the circuit is with that process. Whoever has the number now may be
/// in another circuit, in which the source has this gate's number, too.
const ProcessId* met_by_sender(const Core& core, const Descriptor& d) {
  const BarrierGate* const gate = core.tofu->gate(queue_number(d.sender_id));
  if (gate == nullptr || gate->setting != d.tofu.vcq_handle) return nullptr;
  const ProcessId& met = d.tofu.remote_vcq_id == gate->remote_target ? gate->target.process : gate->source.process;
  return met == ProcessId{} ? nullptr : &met;
}

/// @param owner  who has the other gate now; nullptr: nobody
/// @param value  nullptr: it is in `waited`, or there is none
/// @return false if the packet cannot go there
bool send_gate_to_owner(Core& core, Peer* owner, Descriptor& d, const GateValue* value,
                        std::unique_ptr<std::byte[]> waited) {
  const ProcessId* const met = met_by_sender(core, d);
  Peer* const peer = met != nullptr ? &core.peer(*met) : owner;
  if (peer == nullptr) return false;
  follow_moved_name(core, *peer);
  const Reach reach = reach_for_new(core, *peer);
  if (reach == Reach::kNever) return false;
  const Ready ready{d, nullptr, nullptr, value != nullptr ? reinterpret_cast<const std::byte*>(value) : waited.get()};
  if (reach == Reach::kNow && send_at_once(core, *peer, ready)) return true;
  send_as_message(core, *peer, ready, reach == Reach::kNow, value != nullptr ? copy_of(*value) : std::move(waited));
  return true;
}

/// @param value  nullptr: there is none
/// @return false if the packet cannot go there
bool send_to_gate(Core& core, Descriptor& d, const GateValue* value) {
  Peer* owner = nullptr;
  if (find_owner(core, d.tofu.remote_vcq_id, &owner) != FindResult::kLater)
    return send_gate_to_owner(core, owner, d, value, nullptr);
  wait_for_owner(core, {d, value != nullptr ? copy_of(*value) : nullptr});
  return true;
}

}  // namespace

void start_tofu_descriptor(Core& core, Descriptor& d) {
  if (d.interface_index != kTofuInterface || core.tofu == nullptr) return;
  if (d.type == PacketType::kTofuGate) return pass_gate(core, d.gate_number);
  VirtualControlQueue* vcq = core.tofu->vcq(d.tofu.vcq_handle);
  if (vcq == nullptr) return;
  if (d.type == PacketType::kTofuNop) {
    vcq->tcq.complete(d.tofu.tcq_place, NiFail::kOk);
    ++core.activity;
    return;
  }
  Peer* peer = nullptr;
  if (find_owner(core, d.tofu.remote_vcq_id, &peer) != FindResult::kLater) return send_to_owner(core, peer, *vcq, d);
  wait_for_owner(core, {d, nullptr});
  // Nothing of the VCQ goes past it, nor past what a later call has to start (3.7.9.1).
  ++vcq->ownerless;
  vcq->direct.forget();
}

bool send_gate_packet(Core& core, const BarrierGate& gate, const GateValue& value) {
  Descriptor d = gate_descriptor(gate, gate.remote_target);
  d.length = gate_value_bytes(value);
  return send_to_gate(core, d, &value);
}

bool send_gate_notice(Core& core, const BarrierGate& gate, std::uint64_t other, std::uint64_t rounds_left) {
  Descriptor d = gate_descriptor(gate, other);
  d.rounds_left = rounds_left;
  return send_to_gate(core, d, nullptr);
}

void answer_for_nobody(Core& core, std::uint64_t gate, std::uint64_t other, std::uint64_t rounds_left) {
  BarrierGate nobody;
  nobody.id = gate;
  // Whoever asks honestly asks one gate once, and the answer soon leaves; more is a flood of a peer that lies.
  const auto& asked_for = core.tofu->ownerless;
  const auto waiting = asked_for.find(claim_key(other));
  const auto is_gate = [](const auto& entry) { return is_kind(entry.first, TofuIdKind::kVbg); };
  const bool is_new = waiting == asked_for.end();
  const bool is_one_of_many =
      asked_for.size() >= kMostAskedFor && std::ranges::count_if(asked_for, is_gate) >= kMostAskedFor;
  if (is_new ? is_one_of_many : waiting->second.size() >= kMostWaitingAnswers)
    return core.counters.add(Counter::kPacketsRefusedMalformed);
  Descriptor d = gate_descriptor(nobody, other);
  d.rounds_left = rounds_left;
  wait_for_owner(core, {d, nullptr});
}

void start_towards(Core& core, Peer* peer, OwnerlessRequest request) {
  Descriptor d = request.descriptor;
  if (d.type == PacketType::kTofuGate) {
    if (!send_gate_to_owner(core, peer, d, nullptr, std::move(request.gate_value))) fail_gate_packet(core, d);
  } else if (VirtualControlQueue* vcq = core.tofu->vcq(d.tofu.vcq_handle)) {
    send_to_owner(core, peer, *vcq, d);
    --vcq->ownerless;
  }
}

void leave_queue(Core& core, const VirtualControlQueue& vcq) {
  for (auto& [key, found] : core.peers) {
    Peer& peer = *found;
    const auto is_of_queue = [&vcq](const OutgoingMessage& message) {
      return message.interface_index == kTofuInterface && message.words.request.tofu.vcq_handle == vcq.handle &&
             message.words.request.type != PacketType::kTofuGate;
    };
    for (OutgoingMessage& message : peer.requests.waiting) {
      if (!is_of_queue(message)) continue;
      if (message.started) {
        take_source_away(message, NiFail::kUndeliverable);
      } else {
        forget_operation(core, message.header().operation_id, false);
      }
    }
    peer.requests.forget_if([&](const OutgoingMessage& message) { return is_of_queue(message) && !message.started; });
  }
}

}  // namespace portofu
