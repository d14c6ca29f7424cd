#include "engine/initiator/tofu_send.h"

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/answer_in.h"
#include "engine/initiator/barrier.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/initiator/tofu_owner.h"
#include "engine/initiator/tofu_report.h"
#include "engine/mailbox/connect.h"
#include "engine/memory/stadd_access.h"
#include "engine/queue/fresh_line.h"
#include "engine/queue/ring_geometry.h"

namespace portofu {
namespace {

/// A request of uTofu on its way out. @see send_steps.h
struct TofuSending {
  Core& core;
  Peer& peer;
  const Descriptor& descriptor;
  VirtualControlQueue* vcq;  ///< nullptr: a packet of a gate.
  SendProgress& progress;
  const RegisteredRegion* local = nullptr;  ///< kTofuPut: where its data lies, if that was looked up in this call.
  const GateValue* value = nullptr;         ///< kTofuGate: its data in the first attempt; then it is private_data.
};

bool compares(const Descriptor& d) {
  return fresh(d.kind) == DescriptorKind::kTofuArmw &&
         fresh(d.atomic_operation) == static_cast<std::uint8_t>(AtomicOperation::kCswap);
}

PacketType packet_type_of(DescriptorKind kind) {
  switch (kind) {
    case DescriptorKind::kTofuGet: return PacketType::kTofuGet;
    case DescriptorKind::kTofuArmw: return PacketType::kTofuArmw;
    case DescriptorKind::kTofuGate: return PacketType::kTofuGate;
    default: return PacketType::kTofuPut;
  }
}

bool open_operation(const TofuSending& s) {
  const Descriptor& d = s.descriptor;
  if (d.kind == DescriptorKind::kTofuGate) return true;
  if ((d.hdr_data & kTofuStrongOrder) != 0 && s.peer.gets_under_way != 0) return false;
  const bool is_put = d.kind == DescriptorKind::kTofuPut || d.kind == DescriptorKind::kTofuPiggyback;
  const bool notice = (d.hdr_data & kTofuLocalNotice) != 0;
  if (is_put && !notice) return true;
  if (s.peer.outstanding >= s.core.settings.window_operations) return false;
  OutstandingOperation* operation = s.core.outstanding.open(&s.progress.operation_id);
  if (operation == nullptr) return false;
  operation->peer = &s.peer;
  operation->kind = d.kind;
  operation->interface_index = kTofuInterface;
  operation->ack_req = notice ? AckRequest::kFull : AckRequest::kNone;
  operation->md_handle = d.md_handle;
  operation->get_md_handle = is_put ? 0 : 1;  // Data is expected; where it goes, get_offset says.
  operation->get_offset = d.kind == DescriptorKind::kTofuGet ? d.local_offset : 0;
  operation->length = d.length;
  operation->user_ptr = reinterpret_cast<void*>(with_own_path(d.match_bits));
  operation->edata = static_cast<std::uint32_t>(d.hdr_data & 0xff);
  operation->remote_offset = d.remote_offset + (is_put ? d.length : 0);
  ++s.peer.outstanding;
  if (d.kind == DescriptorKind::kTofuGet) ++s.peer.gets_under_way;
  return true;
}

std::uint64_t payload_length(const TofuSending& s) {
  return s.descriptor.kind == DescriptorKind::kTofuGet || s.progress.placed ? 0 : s.descriptor.length;
}

std::uint32_t operand_length(const TofuSending& s) { return compares(s.descriptor) ? kOperandBytes : 0; }

/// Inlined, so that in_words finds the fields in registers.
[[gnu::always_inline]] inline PacketHeader first_header(const TofuSending& s) {
  const Descriptor& d = s.descriptor;
  PacketHeader header = stamped_header(s.core, packet_type_of(d.kind));
  header.flags = (s.progress.operation_id != 0 ? kFlagAnswerWanted : 0) | (s.progress.placed ? kFlagPlaced : 0);
  header.interface_index = kTofuInterface;
  header.pt_index = static_cast<std::uint16_t>(d.hdr_data);
  header.atomic_operation = d.atomic_operation;
  header.atomic_type = d.atomic_type;
  header.operation_id = s.progress.operation_id;
  header.match_bits = d.kind == DescriptorKind::kTofuGet ? d.local_offset : d.md_handle;
  header.hdr_data = s.vcq != nullptr ? s.vcq->id : d.hdr_data;
  header.remote_offset = d.remote_offset;
  header.length = d.length;
  header.initiator_rank = queue_number(d.match_bits);
  return header;
}

/// The local end of a put.
/// @return nullptr, with `fail` set, if there is none such, as 2.2.12 wants it told by the TCQ
const RegisteredRegion* find_local(Core& core, const VirtualControlQueue& vcq, const Descriptor& d, NiFail* fail) {
  return find_region(core.tofu->stadds(vcq), {d.local_offset, d.length, PacketType::kTofuGet}, fail);
}

const RegisteredRegion* local_of(const TofuSending& s) {
  if (s.local != nullptr) return s.local;
  NiFail fail = NiFail::kOk;
  return find_local(s.core, *s.vcq, s.descriptor, &fail);
}

bool read_payload(const TofuSending& s, std::byte* target, std::uint64_t bytes) {
  const Descriptor& d = s.descriptor;
  if (bytes == 0) return true;
  switch (d.kind) {
    case DescriptorKind::kTofuPiggyback: std::memcpy(target, d.operand.data() + s.progress.sent, bytes); return true;
    case DescriptorKind::kTofuArmw: std::memcpy(target, d.operand.data() + 8, bytes); return true;
    case DescriptorKind::kTofuGate: {
      const auto* const value = reinterpret_cast<const std::byte*>(s.value);
      std::memcpy(target, value != nullptr ? value : s.progress.private_data.get(), bytes);
      return true;
    }
    default: break;
  }
  const RegisteredRegion* region = local_of(s);
  if (region == nullptr) return false;
  return region->segment.read(stadd_offset(d.local_offset) + s.progress.sent, target, bytes, s.peer.link->streaming);
}

MemorySegment::Run lendable(const TofuSending& s, std::uint64_t left) {
  if (s.descriptor.kind != DescriptorKind::kTofuPut) return {nullptr, 0};
  const RegisteredRegion* region = local_of(s);
  if (region == nullptr) return {nullptr, 0};
  return region->segment.run_at(stadd_offset(s.descriptor.local_offset) + s.progress.sent, left);
}

void close_operation(const TofuSending& s) {
  const std::uint32_t id = s.progress.operation_id;
  if (id == 0 || s.core.outstanding.find(id) == nullptr) return;
  --s.peer.outstanding;
  if (s.descriptor.kind == DescriptorKind::kTofuGet) --s.peer.gets_under_way;
  s.core.outstanding.close(id);
}

void tell_tcq(const TofuSending& s, NiFail fail) {
  if (s.vcq == nullptr) return;
  s.vcq->tcq.complete(s.descriptor.local_get_offset, fail);
  ++s.core.activity;
}

void finish_sending(const TofuSending& s, NiFail fail) {
  tell_tcq(s, fail);
  OutstandingOperation* operation =
      s.progress.operation_id != 0 ? s.core.outstanding.find(s.progress.operation_id) : nullptr;
  if (operation == nullptr) return;
  operation->sent = true;
  if (operation->answered) finish_answer(s.core, s.progress.operation_id, *operation);
}

/// Whether the answer came before the peer gave back what it was lent.
bool is_answered(const TofuSending& s) {
  if (s.progress.operation_id == 0 || s.progress.sent != payload_length(s)) return false;
  const OutstandingOperation* operation = s.core.outstanding.find(s.progress.operation_id);
  return operation != nullptr && operation->answered;
}

/// That the peer is not there comes after the descriptor has left our side: the TCQ says nothing of it (2.2.12).
void abandon(const TofuSending& s, NiFail fail) {
  if (is_answered(s)) return finish_sending(s, NiFail::kOk);
  close_operation(s);
  if (s.descriptor.kind == DescriptorKind::kTofuGate) return fail_barrier(s.core, s.descriptor.hdr_data);
  const bool unreachable = fail == NiFail::kUndeliverable;
  tell_tcq(s, unreachable ? NiFail::kOk : fail);
  if (unreachable) report_at_once(s.core, *s.vcq, s.descriptor, NiFail::kUndeliverable);
}

void cut_short(const TofuSending& s) {
  publish_cut(s.core, s.peer, NiFail::kSegv);
  close_operation(s);
  tell_tcq(s, NiFail::kSegv);
}

void keep_data(const TofuSending&) {}

/// A put of which the target is told nothing needs nobody there. It stays behind all that was sent to the peer before.
/// @return false if packets have to do it
bool put_directly(const TofuSending& s) {
  const Descriptor& d = s.descriptor;
  const bool piggyback = d.kind == DescriptorKind::kTofuPiggyback;
  if ((!piggyback && d.kind != DescriptorKind::kTofuPut) || d.length == 0) return false;
  const bool tells_local = (d.hdr_data & kTofuLocalNotice) != 0;
  if ((d.hdr_data & kTofuRemoteNotice) != 0 || (d.hdr_data & 0xffff) >> kTofuStepsShift != 0) return false;
  if (!s.peer.requests.empty() || s.peer.gets_under_way != 0 || (tells_local && s.peer.outstanding != 0)) return false;
  DirectPut put;
  put.control_queue = queue_number(d.match_bits) >> 8;
  put.component = component_of(d.match_bits);
  put.stag = stag_of(d.remote_offset);
  put.offset = stadd_offset(d.remote_offset);
  put.bytes = d.length;
  put.data = d.operand.data();
  if (!piggyback) put.data = s.local->segment.address(stadd_offset(d.local_offset));
  if (!s.peer.wire->put_directly(*s.peer.link, put)) return false;
  s.core.counters.add(Counter::kPutsDirect);
  s.core.counters.add(Counter::kBytesSent, d.length);
  tell_tcq(s, NiFail::kOk);
  if (tells_local) report_at_once(s.core, *s.vcq, d, NiFail::kOk);
  return true;
}

void count_request(Core& core, DescriptorKind kind) {
  core.counters.add(kind == DescriptorKind::kTofuGet    ? Counter::kGetsSent
                    : kind == DescriptorKind::kTofuArmw ? Counter::kAtomicsSent
                                                        : Counter::kPutsSent);
}

/// Sends a request of one short packet that has nothing before it. @return false: nothing has happened
bool send_at_once(const TofuSending& s) {
  const std::uint64_t bytes = payload_length(s);
  if (bytes > kInlineBytes || operand_length(s) != 0 || !s.peer.requests.empty() || !open_operation(s)) return false;
  std::byte* payload = s.peer.wire->claim(*s.peer.link, static_cast<std::uint32_t>(bytes));
  PacketHeader header = first_header(s);
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  const PacketHeader words = in_words(header);  // Before the payload, see send.cpp.
  const bool goes = payload != nullptr && read_payload(s, payload, bytes);
  if (!goes) [[unlikely]] {
    if (payload != nullptr) s.peer.wire->discard(*s.peer.link);
    close_operation(s);
    s.progress.operation_id = 0;
    return false;
  }
  s.peer.wire->publish(*s.peer.link, words);
  s.core.counters.add(Counter::kPacketsSent);
  s.core.counters.add(Counter::kBytesSent, bytes);
  finish_sending(s, NiFail::kOk);
  return true;
}

/// @param peer  nullptr: nobody has the VCQ
void send_to_owner(Core& core, Peer* peer, VirtualControlQueue& vcq, const Descriptor& d) {
  if (peer == nullptr) {
    vcq.tcq.complete(d.local_get_offset, NiFail::kOk);
    return report_at_once(core, vcq, d, NiFail::kUndeliverable);
  }
  SendProgress progress;
  NiFail fail = NiFail::kOk;
  const RegisteredRegion* local = d.kind == DescriptorKind::kTofuPut ? find_local(core, vcq, d, &fail) : nullptr;
  const TofuSending sending{core, *peer, d, &vcq, progress, local};
  if (fail != NiFail::kOk) return abandon(sending, fail);
  follow_moved_name(core, *peer);
  const Reach reach = reach_for_new(core, *peer);
  if (reach == Reach::kNever) return abandon(sending, NiFail::kUndeliverable);
  count_request(core, d.kind);
  if (reach == Reach::kNow) {
    const MappedResult mapped = use_mapped_on_duty(core, *peer, vcq, d);
    if (mapped == MappedResult::kDone || (mapped == MappedResult::kNo && put_directly(sending))) return;
    progress.placed = mapped == MappedResult::kPlaced;
    if (send_at_once(sending)) return;
  }
  send_or_wait(sending, reach == Reach::kNow && peer->requests.empty());
}

std::unique_ptr<std::byte[]> copy_of(const GateValue& value) {
  const std::size_t bytes = gate_value_bytes(value);
  auto copy = std::make_unique<std::byte[]>(bytes);
  std::memcpy(copy.get(), &value, bytes);
  return copy;
}

/// @param peer   nullptr: nobody has the gate
/// @param value  nullptr: it is in `waited`
/// @return false if the packet cannot go there
bool send_gate_to_owner(Core& core, Peer* peer, const Descriptor& d, const GateValue* value,
                        std::unique_ptr<std::byte[]> waited) {
  if (peer == nullptr) return false;
  follow_moved_name(core, *peer);
  const Reach reach = reach_for_new(core, *peer);
  if (reach == Reach::kNever) return false;
  SendProgress progress;
  progress.private_data = std::move(waited);
  const TofuSending sending{core, *peer, d, nullptr, progress, nullptr, value};
  if (reach == Reach::kNow && send_at_once(sending)) return true;
  if (value != nullptr) progress.private_data = copy_of(*value);
  send_or_wait(sending, reach == Reach::kNow && peer->requests.empty());
  return true;
}

}  // namespace

void start_tofu_descriptor(Core& core, const Descriptor& d) {
  if (d.interface_index != kTofuInterface || core.tofu == nullptr) return;
  if (d.kind == DescriptorKind::kTofuGate) return pass_gate(core, d.md_handle);
  VirtualControlQueue* vcq = core.tofu->vcq(d.md_handle);
  if (vcq == nullptr) return;
  if (d.kind == DescriptorKind::kTofuNop) {
    vcq->tcq.complete(d.local_get_offset, NiFail::kOk);
    ++core.activity;
    return;
  }
  Peer* peer = nullptr;
  if (find_owner(core, d.match_bits, &peer) == FindResult::kLater) return wait_for_owner(core, {d, nullptr});
  send_to_owner(core, peer, *vcq, d);
}

bool send_gate_packet(Core& core, const BarrierGate& gate, const GateValue& value) {
  Descriptor d;
  d.kind = DescriptorKind::kTofuGate;
  d.interface_index = kTofuInterface;
  d.match_bits = gate.remote_target;
  d.hdr_data = gate.id;
  d.length = gate_value_bytes(value);
  Peer* peer = nullptr;
  if (find_owner(core, gate.remote_target, &peer) != FindResult::kLater) {
    return send_gate_to_owner(core, peer, d, &value, nullptr);
  }
  wait_for_owner(core, {d, copy_of(value)});
  return true;
}

void start_towards(Core& core, Peer* peer, OwnerlessRequest request) {
  const Descriptor d = request.descriptor;
  if (d.kind == DescriptorKind::kTofuGate) {
    if (!send_gate_to_owner(core, peer, d, nullptr, std::move(request.gate_value))) fail_barrier(core, d.hdr_data);
  } else if (VirtualControlQueue* vcq = core.tofu->vcq(d.md_handle)) {
    send_to_owner(core, peer, *vcq, d);
  }
}

SendResult advance_tofu_request(Core& core, Peer& peer, OutgoingRequest& request, int& budget) {
  VirtualControlQueue* vcq = core.tofu->vcq(request.descriptor.md_handle);
  const bool orphaned = vcq == nullptr && request.descriptor.kind != DescriptorKind::kTofuGate;
  const TofuSending sending{core, peer, request.descriptor, vcq, request.progress};
  if (!orphaned) return send_request(sending, budget);
  if (request.progress.started && cut_orphan(core, peer) == SendResult::kBlocked) return SendResult::kBlocked;
  close_operation(sending);
  return SendResult::kDone;
}

void finish_tofu_request(Core& core, Peer& peer, OutgoingRequest& request) {
  VirtualControlQueue* vcq = core.tofu->vcq(request.descriptor.md_handle);
  const TofuSending sending{core, peer, request.descriptor, vcq, request.progress};
  vcq != nullptr ? finish_sending(sending, NiFail::kOk) : close_operation(sending);
}

void abandon_tofu_request(Core& core, Peer& peer, OutgoingRequest& request, NiFail fail) {
  VirtualControlQueue* vcq = core.tofu->vcq(request.descriptor.md_handle);
  const TofuSending sending{core, peer, request.descriptor, vcq, request.progress};
  const bool orphaned = vcq == nullptr && request.descriptor.kind != DescriptorKind::kTofuGate;
  orphaned ? close_operation(sending) : abandon(sending, fail);
}

}  // namespace portofu
