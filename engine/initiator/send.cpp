#include "engine/initiator/send.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/initiator/answer_in.h"
#include "engine/initiator/portals_direct.h"
#include "engine/initiator/report.h"
#include "engine/initiator/tofu_send.h"
#include "engine/mailbox/connect.h"
#include "engine/mailbox/send_steps.h"
#include "engine/queue/fresh_line.h"
#include "engine/queue/ring_geometry.h"

namespace portofu {
namespace {

/// One request and what it is about. Short-lived: everything it points to outlives it, because the memory descriptors
/// are held by the request.
struct Sending {
  Core& core;
  Interface& ni;
  Peer& peer;
  const Descriptor& descriptor;
  MemoryDescriptor& md;  ///< Of descriptor.md_handle.
  SendProgress& progress;
};

std::uint64_t payload_length(const Sending& s) {
  return s.descriptor.kind == DescriptorKind::kGet ? 0 : s.descriptor.length;
}

std::uint32_t operand_length(const Sending& s) { return s.descriptor.operand_bytes == 0 ? 0 : kOperandBytes; }

PacketType packet_type_of(DescriptorKind kind) {
  switch (kind) {
    case DescriptorKind::kPut: return PacketType::kPut;
    case DescriptorKind::kGet: return PacketType::kGet;
    case DescriptorKind::kAtomic: return PacketType::kAtomic;
    case DescriptorKind::kFetchAtomic: return PacketType::kFetchAtomic;
    case DescriptorKind::kSwap: return PacketType::kSwap;
    case DescriptorKind::kCountIncrement:
    default: break;
  }
  return PacketType::kInvalid;
}

bool wants_acknowledgement(const MemoryDescriptor& md, const Descriptor& d) {
  return d.ack_req != AckRequest::kNone && d.kind != DescriptorKind::kGet && acknowledgement_is_noticed(md, d.ack_req);
}

/// Opens the outstanding entry of a request that will be answered.
/// @return nullptr if the window of the peer is full
OutstandingOperation* open_answered(Core& core, Interface& ni, Peer& peer, MemoryDescriptor& md, const Descriptor& d,
                                    std::uint32_t* operation_id) {
  if (peer.outstanding >= core.settings.window_operations) return nullptr;
  OutstandingOperation* operation = core.outstanding.open(operation_id);
  if (operation == nullptr) return nullptr;
  const bool is_get = d.kind == DescriptorKind::kGet;
  const bool ack = wants_acknowledgement(md, d);
  operation->peer = &peer;
  operation->kind = d.kind;
  operation->interface_index = d.interface_index;
  operation->ack_req = ack ? d.ack_req : AckRequest::kNone;
  operation->md_handle = d.md_handle;
  operation->get_md_handle = is_get ? d.md_handle : d.get_md_handle;
  operation->get_offset = is_get ? d.local_offset : d.local_get_offset;
  operation->length = d.length;
  operation->put_offset = d.remote_offset;
  operation->user_ptr = d.user_ptr;
  if (ack && (md.options & kMdOneShot) != 0) ++md.pending;
  ++peer.outstanding;
  ++ni.outstanding;
  if (!peer.awaited) core.await(peer);
  return operation;
}

/// The request will not be sent, so nobody answers it.
void close_unsent(Core& core, Interface& ni, Peer& peer, MemoryDescriptor& md, std::uint32_t operation_id) {
  const bool held = core.outstanding.find(operation_id)->ack_req != AckRequest::kNone;
  if (held && (md.options & kMdOneShot) != 0) --md.pending;
  core.outstanding.close(operation_id);
  --peer.outstanding;
  --ni.outstanding;
}

/// Opens the outstanding entry if an answer is due.
/// @return false if the window of the peer is full
bool open_operation(const Sending& s) {
  const Descriptor& d = s.descriptor;
  const bool answered = d.kind == DescriptorKind::kGet || is_fetching(d.kind) || wants_acknowledgement(s.md, d);
  return !answered || open_answered(s.core, s.ni, s.peer, s.md, d, &s.progress.operation_id) != nullptr;
}

/// Inlined, so that in_words finds the fields in registers.
[[gnu::always_inline]] inline PacketHeader request_header(const Core& core, const Interface& ni,
                                                          const MemoryDescriptor& md, const Descriptor& d) {
  PacketHeader header = stamped_header(core, packet_type_of(d.kind));
  header.flags = ((md.options & kMdUnordered) != 0 ? kFlagUnordered : 0) | (d.tells_data ? kFlagTellsData : 0);
  header.interface_index = d.interface_index;
  header.pt_index = d.pt_index;
  header.atomic_operation = d.atomic_operation;
  header.atomic_type = d.atomic_type;
  header.match_bits = d.match_bits;
  header.hdr_data = d.hdr_data;
  header.remote_offset = d.remote_offset;
  header.length = d.length;
  header.initiator_rank = d.interface_index == kFabricInterface ? d.endpoint : ni.map.own_rank();
  header.wire_word = (md.options & kMdUnreliable) != 0 ? kMayBeLost : 0;
  return header;
}

PacketHeader first_header(const Sending& s) {
  PacketHeader header = request_header(s.core, s.ni, s.md, s.descriptor);
  header.operation_id = s.progress.operation_id;
  if (s.progress.operation_id != 0) header.flags |= kFlagAnswerWanted;
  return header;
}

/// All data has left, or none will: SEND, which knows nothing of the target (3.13.3).
void finish_sending(const Sending& s, NiFail fail) {
  const Descriptor& d = s.descriptor;
  const std::uint32_t operation_id = s.progress.operation_id;
  OutstandingOperation* operation = operation_id != 0 ? s.core.outstanding.find(operation_id) : nullptr;
  if (d.kind != DescriptorKind::kGet) {
    const SendReport report{d.length, d.user_ptr, fail};
    report_send_count(s.core, s.ni, s.md, report);
    report_send_event(s.core, s.ni, s.md, report);
    end_operation(s.ni, s.md);
  }
  if (operation == nullptr) return;
  operation->sent = true;
  if (operation->answered) finish_answer(s.core, operation_id, *operation);
}

bool read_payload(const Sending& s, std::byte* target, std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (s.progress.private_data != nullptr) {
    std::memcpy(target, s.progress.private_data.get() + s.progress.sent, bytes);
    return true;
  }
  return s.md.segment.read(s.descriptor.local_offset + s.progress.sent, target, bytes, s.peer.link->streaming);
}

MemorySegment::Run lendable(const Sending& s, std::uint64_t left) {
  // What PTL_MD_VOLATILE promises needs a copy before the call returns.
  if (s.descriptor.kind != DescriptorKind::kPut || (s.md.options & kMdVolatile) != 0) return {nullptr, 0};
  return s.md.segment.run_at(s.descriptor.local_offset + s.progress.sent, left);
}

void end_hold(Interface& ni, Handle md_handle) {
  if (MemoryDescriptor* md = ni.mds.find(md_handle)) end_operation(ni, *md);
}

/// The request ends before all of it has left.
void abandon(const Sending& s, NiFail fail) {
  const Descriptor& d = s.descriptor;
  const std::uint32_t operation_id = s.progress.operation_id;
  OutstandingOperation* operation = operation_id != 0 ? s.core.outstanding.find(operation_id) : nullptr;
  if (operation == nullptr) {  // No answer is due, or the operation was never opened.
    report_not_started(s.core, s.ni, d, fail);
    end_hold(s.ni, d.md_handle);
    if (is_fetching(d.kind)) end_hold(s.ni, d.get_md_handle);
    return;
  }
  // What has been answered is as the answer says, also if that came before its memory was given back.
  if (operation->answered && s.progress.sent == d.length) return finish_sending(s, NiFail::kOk);
  operation->fail = fail;
  operation->silent = fail == NiFail::kSegv && failed_send_is_noticed(s.md);  // Then no ACK follows (3.13.3).
  operation->answered = true;
  finish_sending(s, fail);
}

/// The rest of a message whose memory turned out to be inaccessible.
void cut_short(const Sending& s) {
  publish_cut(s.core, s.peer, NiFail::kSegv);
  finish_sending(s, NiFail::kSegv);
}

void count_request(Core& core, DescriptorKind kind) {
  core.counters.add(kind == DescriptorKind::kPut   ? Counter::kPutsSent
                    : kind == DescriptorKind::kGet ? Counter::kGetsSent
                                                   : Counter::kAtomicsSent);
}

/// Where the data of a reply goes; nullptr if there is no reply.
MemoryDescriptor* reply_memory(Interface& ni, MemoryDescriptor& md, const Descriptor& d) {
  if (d.kind == DescriptorKind::kGet) return &md;
  return is_fetching(d.kind) ? ni.mds.find(d.get_md_handle) : nullptr;
}

void hold(MemoryDescriptor& md) {
  ++md.pending;
  md.released = (md.options & kMdOneShot) != 0;
}

/// Keeps the memory descriptors of the descriptor from being freed until its SEND and REPLY.
/// @return the one of md_handle, nullptr if one of them is gone
MemoryDescriptor* hold_memory(Interface& ni, const Descriptor& d) {
  MemoryDescriptor* md = ni.mds.find(d.md_handle);
  if (md == nullptr || md->released) return nullptr;
  if (is_fetching(d.kind)) {
    MemoryDescriptor* get_md = ni.mds.find(d.get_md_handle);
    if (get_md == nullptr || get_md->released) return nullptr;
    hold(*get_md);
  }
  hold(*md);
  return md;
}

/// Does a request of which the target need not know. @return false: it is none, or packets have to do it
bool use_published(const Sending& s) {
  const Descriptor& d = s.descriptor;
  if (s.peer.published == nullptr) return false;
  MemoryDescriptor* reply_md = reply_memory(s.ni, s.md, d);
  if (!use_published(s.core, s.ni, s.peer, s.md, reply_md, d)) return false;
  end_operation(s.ni, s.md);
  if (reply_md != nullptr && is_fetching(d.kind)) end_operation(s.ni, *reply_md);
  return true;
}

/// PTL_MD_VOLATILE: the caller may change its buffer as soon as the call returns, so what waits needs a copy.
void keep_data(const Sending& s) {
  const Descriptor& d = s.descriptor;
  if (s.progress.started) return;
  if ((s.md.options & kMdVolatile) == 0 || d.kind == DescriptorKind::kGet) return;
  if (d.length == 0 || d.length > s.ni.limits.max_volatile_size) return;
  auto copy = std::make_unique<std::byte[]>(d.length);
  if (s.md.segment.read(d.local_offset, copy.get(), d.length)) s.progress.private_data = std::move(copy);
}

/// Whom a descriptor is for; nullptr if its rank is nobody's.
const ProcessId* target_of(const Interface& ni, const Descriptor& d) {
  return ni.is_logical() ? ni.map.process_of(d.target.nid) : &d.target;
}

void start_transfer(Core& core, Interface& ni, const Descriptor& d) {
  const ProcessId* target = target_of(ni, d);
  if (target == nullptr) return report_not_started(core, ni, d, NiFail::kUndeliverable);
  Peer& peer = core.peer(*target);
  follow_moved_name(core, peer);
  const bool connected = peer.state == PeerState::kConnected && peer.lost_since_ns == 0;
  const Reach reach = connected ? Reach::kNow : reach_for_new(core, peer);
  MemoryDescriptor* md = hold_memory(ni, d);
  if (md == nullptr) return;
  SendProgress progress;
  const Sending sending{core, ni, peer, d, *md, progress};
  if (reach == Reach::kNever) return abandon(sending, NiFail::kUndeliverable);
  if (reach == Reach::kNow && use_published(sending)) return;
  count_request(core, d.kind);
  send_or_wait(sending, reach == Reach::kNow && peer.requests.empty());
}

void change_counter(Core& core, Interface& ni, const Descriptor& descriptor) {
  CountingEvent* counter = ni.cts.find(descriptor.md_handle);
  if (counter == nullptr) return;
  ++core.activity;
  if (descriptor.kind == DescriptorKind::kCountSet) {
    counter->set_on_duty(descriptor.length, descriptor.remote_offset, core.fired);
  } else {
    counter->add_failure_on_duty(descriptor.remote_offset);
    counter->add_success_on_duty(descriptor.length, core.fired);
  }
}

/// Calls `use(sending)` for a request that waits; one whose interface or memory is gone has nothing left to do.
/// @return what `use` returns
template <class Use>
SendResult with_waiting(Core& core, Peer& peer, OutgoingRequest& request, Use&& use) {
  Interface* ni = core.interface(request.descriptor.interface_index);
  MemoryDescriptor* md = ni != nullptr ? ni->mds.find(request.descriptor.md_handle) : nullptr;
  if (md == nullptr) return SendResult::kDone;
  return use(Sending{core, *ni, peer, request.descriptor, *md, request.progress});
}

SendResult advance_request(Core& core, Peer& peer, OutgoingRequest& request, int& budget) {
  if (request.descriptor.interface_index == kTofuInterface) return advance_tofu_request(core, peer, request, budget);
  if (core.interface(request.descriptor.interface_index) == nullptr) return cut_orphan(core, peer);
  return with_waiting(core, peer, request, [&budget](const Sending& s) { return send_request(s, budget); });
}

}  // namespace

bool send_at_once(Core& core, Interface& ni, MemoryDescriptor& md, const Descriptor& d) {
  const ProcessId* target = target_of(ni, d);
  if (target == nullptr) return false;
  Peer& peer = core.peer(*target);
  if (peer.state != PeerState::kConnected) return false;
  MemoryDescriptor* reply_md = reply_memory(ni, md, d);
  if (peer.published != nullptr && use_published(core, ni, peer, md, reply_md, d)) return true;
  if (peer.link->may_have_moved()) return false;
  const bool is_get = d.kind == DescriptorKind::kGet;
  const std::uint64_t bytes = is_get ? 0 : d.length;
  if (bytes > kInlineBytes || d.operand_bytes != 0 || !peer.requests.empty()) return false;
  std::byte* payload = peer.wire->claim(*peer.link, static_cast<std::uint32_t>(bytes));
  if (payload == nullptr) return false;
  OutstandingOperation* operation = nullptr;
  std::uint32_t operation_id = 0;
  const bool answered = reply_md != nullptr || wants_acknowledgement(md, d);
  if (answered) operation = open_answered(core, ni, peer, md, d, &operation_id);
  PacketHeader header = request_header(core, ni, md, d);
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  header.operation_id = operation_id;
  if (answered) header.flags |= kFlagAnswerWanted;
  // Before the payload, which may wait for a line of the peer's: what is written behind it waits, too.
  const PacketHeader words = in_words(header);
  const bool goes =
      (bytes == 0 || md.segment.read(d.local_offset, payload, bytes)) && (operation != nullptr) == answered;
  if (!goes) [[unlikely]] {
    if (operation != nullptr) close_unsent(core, ni, peer, md, operation_id);
    peer.wire->discard(*peer.link);
    return false;
  }
  peer.wire->publish(*peer.link, words);
  count_request(core, d.kind);
  core.counters.add(Counter::kPacketsSent);
  core.counters.add(Counter::kBytesSent, bytes);
  if (operation != nullptr) operation->sent = true;
  if (reply_md != nullptr) ++reply_md->pending;  // Until REPLY.
  if (is_get || (md.ct_handle == 0 && md.eq_handle == 0)) return true;
  const SendReport report{d.length, d.user_ptr, NiFail::kOk};
  report_send_count(core, ni, md, report);
  report_send_event(core, ni, md, report);
  return true;
}

void start_descriptor(Core& core, const Descriptor& descriptor) {
  Interface* ni = core.interface(descriptor.interface_index);
  if (ni == nullptr) return start_tofu_descriptor(core, descriptor);
  const bool counts =
      descriptor.kind == DescriptorKind::kCountIncrement || descriptor.kind == DescriptorKind::kCountSet;
  return counts ? change_counter(core, *ni, descriptor) : start_transfer(core, *ni, descriptor);
}

void abandon_requests(Core& core, Peer& peer, NiFail fail) {
  boost::intrusive::list<OutgoingRequest> kept;
  peer.requests.splice(peer.requests.begin(), peer.lent_requests);
  while (!peer.requests.empty()) {
    OutgoingRequest& request = peer.requests.front();
    peer.requests.pop_front();
    if (std::exchange(request.anew, false)) {
      kept.push_back(request);
      continue;
    }
    if (request.descriptor.interface_index == kTofuInterface) {
      abandon_tofu_request(core, peer, request, fail);
    } else {
      with_waiting(core, peer, request, [fail](const Sending& s) {
        abandon(s, fail);
        return SendResult::kDone;
      });
    }
    delete &request;
  }
  peer.requests.splice(peer.requests.end(), kept);
}

int finish_taken_requests(Core& core, Peer& peer) {
  int finished = 0;
  auto& lent = peer.lent_requests;
  for (; !lent.empty() && peer.wire->has_taken(*peer.link, lent.front().progress.lent_end); ++finished) {
    OutgoingRequest& request = lent.front();
    lent.pop_front();
    const std::unique_ptr<OutgoingRequest> owned(&request);
    if (request.descriptor.interface_index == kTofuInterface) {
      finish_tofu_request(core, peer, request);
      continue;
    }
    with_waiting(core, peer, request, [](const Sending& s) {
      finish_sending(s, NiFail::kOk);
      return SendResult::kDone;
    });
  }
  return finished;
}

int advance_requests(Core& core, Peer& peer, int budget) {
  const int given = budget;
  while (!peer.requests.empty() && budget > 0) {
    OutgoingRequest& request = peer.requests.front();
    const SendResult result = advance_request(core, peer, request, budget);
    if (result == SendResult::kBlocked) break;
    peer.requests.pop_front();
    if (result == SendResult::kLent) {
      peer.lent_requests.push_back(request);
    } else {
      delete &request;
    }
  }
  return given - budget;
}

}  // namespace portofu
