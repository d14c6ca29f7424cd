#include "engine/initiator/send.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/initiator/answer_in.h"
#include "engine/initiator/connect.h"
#include "engine/initiator/report.h"
#include "engine/target/answer_out.h"

namespace portofu {
namespace {

/// Packets of one peer that one call of advance_peer publishes at most, so that no peer takes the duty for itself.
constexpr int kPacketBudget = 32;

/// What became of an attempt to send.
enum class SendResult : std::uint8_t {
  kDone,     ///< Nothing of the request is left to send.
  kBlocked,  ///< No room, no window: later.
};

bool is_fetching(DescriptorKind kind) { return kind == DescriptorKind::kFetchAtomic || kind == DescriptorKind::kSwap; }

std::uint64_t payload_length(const Descriptor& descriptor) {
  return descriptor.kind == DescriptorKind::kGet ? 0 : descriptor.length;
}

PacketType packet_type_of(DescriptorKind kind) {
  switch (kind) {
    case DescriptorKind::kPut: return PacketType::kPut;
    case DescriptorKind::kGet: return PacketType::kGet;
    case DescriptorKind::kAtomic: return PacketType::kAtomic;
    case DescriptorKind::kFetchAtomic: return PacketType::kFetchAtomic;
    case DescriptorKind::kSwap: return PacketType::kSwap;
    case DescriptorKind::kCountIncrement:
    case DescriptorKind::kCountSet: break;
  }
  return PacketType::kInvalid;
}

/// Opens the outstanding entry if an answer is due.
/// @return false if the window of the peer is full
bool open_operation(Core& core, Interface& ni, Peer& peer, OutgoingRequest& request) {
  const Descriptor& d = request.descriptor;
  const bool is_get = d.kind == DescriptorKind::kGet;
  MemoryDescriptor* md = ni.mds.find(d.md_handle);
  const bool ack = !is_get && md != nullptr && acknowledgement_is_noticed(*md, d.ack_req);
  if (!is_get && !is_fetching(d.kind) && !ack) return true;
  if (peer.outstanding >= core.settings.window_operations) return false;
  OutstandingOperation* operation = core.outstanding.open(&request.operation_id);
  if (operation == nullptr) return false;
  operation->peer = &peer;
  operation->kind = d.kind;
  operation->interface_index = d.interface_index;
  operation->ack_req = ack ? d.ack_req : AckRequest::kNone;
  operation->md_handle = d.md_handle;
  operation->get_md_handle = is_get ? d.md_handle : d.get_md_handle;
  operation->get_offset = is_get ? d.local_offset : d.local_get_offset;
  operation->length = d.length;
  operation->user_ptr = d.user_ptr;
  // A full acknowledgement tells the fate of the put, so SEND waits for it and agrees with it.
  operation->send_due = ack && d.ack_req == AckRequest::kFull && md->eq_handle != 0 && (md->options & kMdEventSendDisable) == 0;
  ++peer.outstanding;
  ++ni.outstanding;
  return true;
}

PacketHeader first_header(const Core& core, const Interface& ni, const OutgoingRequest& request) {
  const Descriptor& d = request.descriptor;
  PacketHeader header = stamped_header(core, packet_type_of(d.kind));
  header.flags = request.operation_id != 0 ? kFlagAnswerWanted : 0;
  header.interface_index = d.interface_index;
  header.pt_index = d.pt_index;
  header.atomic_operation = d.atomic_operation;
  header.atomic_type = d.atomic_type;
  header.operation_id = request.operation_id;
  header.match_bits = d.match_bits;
  header.hdr_data = d.hdr_data;
  header.remote_offset = d.remote_offset;
  header.length = d.length;
  header.initiator_rank = ni.map.own_rank();
  return header;
}

/// All data has left, or none will: SEND, unless it waits for the answer.
void finish_sending(Core& core, Interface& ni, OutgoingRequest& request, NiFail fail) {
  const Descriptor& d = request.descriptor;
  if (d.kind == DescriptorKind::kGet) return;
  OutstandingOperation* operation = request.operation_id != 0 ? core.outstanding.find(request.operation_id) : nullptr;
  MemoryDescriptor* md = ni.mds.find(d.md_handle);
  const bool held = operation != nullptr && operation->send_due;
  if (md != nullptr) {
    const SendReport report{d.length, d.user_ptr, fail};
    report_send_count(core, ni, *md, report);
    if (!held) {
      report_send_event(core, ni, *md, report);
      end_operation(ni, *md);
    }
  }
  if (operation == nullptr) return;
  operation->sent = true;
  if (operation->answered) finish_answer(core, request.operation_id);
}

bool read_payload(Interface& ni, const OutgoingRequest& request, std::byte* target, std::uint64_t bytes) {
  if (bytes == 0) return true;
  const Descriptor& d = request.descriptor;
  if (request.private_data != nullptr) {
    std::memcpy(target, request.private_data.get() + request.sent, bytes);
    return true;
  }
  MemoryDescriptor* md = ni.mds.find(d.md_handle);
  return md != nullptr && md->segment.read(d.local_offset + request.sent, target, bytes);
}

/// The rest of a message whose memory turned out to be inaccessible: an empty last packet tells the target.
void cut_short(Core& core, Interface& ni, Peer& peer, OutgoingRequest& request) {
  PacketHeader header = stamped_header(core, PacketType::kData);
  header.flags = kFlagCut;
  header.ni_fail_type = static_cast<std::uint8_t>(NiFail::kSegv);
  peer.wire->publish(*peer.link, header);
  finish_sending(core, ni, request, NiFail::kSegv);
}

/// Publishes the next packet of the request.
SendResult send_packet(Core& core, Interface& ni, Peer& peer, OutgoingRequest& request) {
  const Descriptor& d = request.descriptor;
  const std::uint64_t left = payload_length(d) - request.sent;
  const std::uint32_t operand = request.started ? 0 : d.operand_bytes == 0 ? 0 : kOperandBytes;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, peer.wire->max_payload_bytes() - operand));
  std::byte* payload = peer.wire->claim(*peer.link, bytes + operand);
  if (payload == nullptr) return SendResult::kBlocked;
  if (operand != 0) std::memcpy(payload, d.operand.data(), kOperandBytes);
  if (!read_payload(ni, request, payload + operand, bytes)) {
    if (request.started) {
      cut_short(core, ni, peer, request);
    } else {
      peer.wire->discard(*peer.link);
      abandon_request(core, request, NiFail::kSegv);
    }
    return SendResult::kDone;
  }
  PacketHeader header = request.started ? stamped_header(core, PacketType::kData) : first_header(core, ni, request);
  if (request.started) header.remote_offset = request.sent;
  header.payload_bytes = bytes + operand;
  peer.wire->publish(*peer.link, header);
  core.counters.add(Counter::kPacketsSent);
  core.counters.add(Counter::kBytesSent, bytes);
  request.started = true;
  request.sent += bytes;
  if (bytes < left) return SendResult::kBlocked;
  finish_sending(core, ni, request, NiFail::kOk);
  return SendResult::kDone;
}

/// Publishes packets of the request until it is done, blocked, or the budget is used.
SendResult send_request(Core& core, Peer& peer, OutgoingRequest& request, int& budget) {
  Interface* ni = core.interface(request.descriptor.interface_index);
  if (ni == nullptr) return SendResult::kDone;
  if (!request.started && request.operation_id == 0 && !open_operation(core, *ni, peer, request)) return SendResult::kBlocked;
  while (budget > 0) {
    const std::uint64_t before = request.sent;
    const bool was_started = request.started;
    if (send_packet(core, *ni, peer, request) == SendResult::kDone) {
      --budget;
      return SendResult::kDone;
    }
    if (request.sent == before && request.started == was_started) return SendResult::kBlocked;
    --budget;
  }
  return SendResult::kBlocked;
}

void count_request(Core& core, DescriptorKind kind) {
  core.counters.add(kind == DescriptorKind::kPut   ? Counter::kPutsSent
                    : kind == DescriptorKind::kGet ? Counter::kGetsSent
                                                   : Counter::kAtomicsSent);
}

/// Keeps the memory descriptors of the descriptor from being freed until its SEND and REPLY.
/// @return false if one is gone
bool hold_memory(Interface& ni, const Descriptor& d) {
  MemoryDescriptor* md = ni.mds.find(d.md_handle);
  MemoryDescriptor* get_md = is_fetching(d.kind) ? ni.mds.find(d.get_md_handle) : md;
  if (md == nullptr || get_md == nullptr || md->released || get_md->released) return false;
  ++md->pending;
  if (is_fetching(d.kind)) ++get_md->pending;
  return true;
}

/// PTL_MD_VOLATILE: the caller may change its buffer as soon as the call returns, so what waits needs a copy.
void copy_volatile_data(Interface& ni, OutgoingRequest& request) {
  const Descriptor& d = request.descriptor;
  MemoryDescriptor* md = ni.mds.find(d.md_handle);
  if (d.kind == DescriptorKind::kGet || md == nullptr || (md->options & kMdVolatile) == 0) return;
  if (d.length == 0 || d.length > ni.limits.max_volatile_size) return;
  auto copy = std::make_unique<std::byte[]>(d.length);
  if (md->segment.read(d.local_offset, copy.get(), d.length)) request.private_data = std::move(copy);
}

/// Puts the request behind what waits at the peer already.
void queue_request(Core& core, Interface& ni, Peer& peer, const OutgoingRequest& tried) {
  auto* request = new OutgoingRequest;
  request->descriptor = tried.descriptor;
  request->sent = tried.sent;
  request->operation_id = tried.operation_id;
  request->started = tried.started;
  if (!request->started) copy_volatile_data(ni, *request);
  peer.requests.push_back(*request);
  core.wait_for_room(peer);
}

void start_transfer(Core& core, Interface& ni, const Descriptor& d) {
  ProcessId target = d.target;
  if (ni.is_logical()) {
    const ProcessId* process = ni.map.process_of(d.target.nid);
    if (process == nullptr) return report_not_started(core, ni, d, NiFail::kUndeliverable);
    target = *process;
  }
  Peer& peer = core.peer(target);
  const Reach reach = peer.state == PeerState::kConnected ? Reach::kNow : ensure_connected(core, peer);
  if (reach == Reach::kNever) return report_not_started(core, ni, d, NiFail::kUndeliverable);
  if (!hold_memory(ni, d)) return;
  count_request(core, d.kind);
  OutgoingRequest request;
  request.descriptor = d;
  int budget = kPacketBudget;
  if (reach == Reach::kNow && peer.requests.empty() && send_request(core, peer, request, budget) == SendResult::kDone) return;
  queue_request(core, ni, peer, request);
}

}  // namespace

PacketHeader stamped_header(const Core& core, PacketType type) {
  PacketHeader header{};
  header.type = type;
  header.uid = core.uid;
  header.job_key = core.settings.job_key;
  return header;
}

void start_descriptor(Core& core, const Descriptor& descriptor) {
  Interface* ni = core.interface(descriptor.interface_index);
  if (ni == nullptr) return;
  if (descriptor.kind != DescriptorKind::kCountIncrement && descriptor.kind != DescriptorKind::kCountSet) {
    return start_transfer(core, *ni, descriptor);
  }
  CountingEvent* counter = ni->cts.find(descriptor.md_handle);
  if (counter == nullptr) return;
  ++core.activity;
  if (descriptor.kind == DescriptorKind::kCountSet) {
    counter->set_on_duty(descriptor.length, descriptor.remote_offset, core.fired);
  } else {
    counter->add_failure_on_duty(descriptor.remote_offset);
    counter->add_success_on_duty(descriptor.length, core.fired);
  }
}

void abandon_request(Core& core, OutgoingRequest& request, NiFail fail) {
  Interface* ni = core.interface(request.descriptor.interface_index);
  if (ni == nullptr) return;
  const Descriptor& d = request.descriptor;
  OutstandingOperation* operation = request.operation_id != 0 ? core.outstanding.find(request.operation_id) : nullptr;
  if (operation == nullptr) {  // No answer is due, or the operation was never opened.
    report_not_started(core, *ni, d, fail);
    if (MemoryDescriptor* md = ni->mds.find(d.md_handle)) end_operation(*ni, *md);
    if (is_fetching(d.kind)) {
      if (MemoryDescriptor* md = ni->mds.find(d.get_md_handle)) end_operation(*ni, *md);
    }
    return;
  }
  operation->fail = fail;
  operation->silent = fail == NiFail::kSegv;  // Told by SEND; no ACK follows (3.13.3).
  operation->answered = true;
  finish_sending(core, *ni, request, fail);
  if (d.kind == DescriptorKind::kGet) finish_answer(core, request.operation_id);
}

int advance_peer(Core& core, Peer& peer) {
  const Reach reach = ensure_connected(core, peer);
  if (reach == Reach::kNever) lose_peer(core, peer);
  if (reach != Reach::kNow) return 0;
  int published = advance_answers(core, peer, kPacketBudget);
  int budget = kPacketBudget;
  while (!peer.requests.empty() && budget > 0) {
    OutgoingRequest& request = peer.requests.front();
    if (send_request(core, peer, request, budget) == SendResult::kBlocked) break;
    peer.requests.pop_front();
    delete &request;
  }
  return published + kPacketBudget - budget;
}

}  // namespace portofu
