#include "engine/initiator/answer_in.h"

#include <utility>
#include <vector>

#include "engine/initiator/portals_direct.h"
#include "engine/initiator/report.h"
#include "engine/initiator/send.h"
#include "engine/initiator/tofu_report.h"
#include "engine/mailbox/destination.h"
#include "engine/mailbox/late.h"

namespace portofu {
namespace {

void refuse(Core& core) { core.counters.add(Counter::kPacketsRefusedMalformed); }

bool is_sane(const PacketHeader& header, const OutstandingOperation& operation) {
  if (header.ni_fail_type >= (operation.interface_index == kTofuInterface ? kTofuNiFailCount : kNiFailCount) ||
      header.length > operation.length)
    return false;
  return header.payload_bytes <= (operation.get_md_handle != 0 ? header.length : 0);
}

/// Stores reply data; what goes wrong is remembered and told by REPLY.
void store(Core& core, OutstandingOperation& operation, std::uint64_t offset, Payload data, std::uint64_t bytes) {
  if (bytes == 0 || operation.fail != NiFail::kOk) return;
  Interface* ni = core.interface(operation.interface_index);
  if (ni == nullptr) {
    operation.fail = store_tofu_reply(core, operation, offset, data, bytes);
    return core.counters.add(Counter::kBytesReceived, bytes);
  }
  MemoryDescriptor* md = ni->mds.find(operation.get_md_handle);
  if (md == nullptr || !md->segment.write(operation.get_offset + offset, data, bytes)) {
    operation.fail = fail_of_storing(data);
  }
  core.counters.add(Counter::kBytesReceived, bytes);
}

/// A reply that was put off has its bytes, or will never have them (`fail`).
void finish_late_reply(Core& core, Peer&, Arrival& reply) {
  OutstandingOperation* operation = core.outstanding.find(reply.header.operation_id);
  if (operation == nullptr) return;
  operation->fail = reply.fail;
  core.counters.add(Counter::kBytesReceived, reply.header.length);
  finish_answer(core, reply.header.operation_id, *operation);
}

/// A reply whose data is at its sender is put off, or offered its place. Those of Portals only: nobody would take the
/// offer back when a region of uTofu is deregistered.
/// @return whether it was put off
bool prepare_to_read(Core& core, Peer& peer, const OutstandingOperation& operation, const PacketHeader& header,
                     Payload payload) {
  Interface* ni = core.interface(operation.interface_index);
  const MemoryDescriptor* md = ni != nullptr ? ni->mds.find(operation.get_md_handle) : nullptr;
  if (md != nullptr && header.payload_bytes == header.length && operation.fail == NiFail::kOk) {
    LateMessage reply{{}, payload, finish_late_reply};
    reply.arrival.header = header;
    if (put_off(core, peer, reply, {md->segment, operation.get_offset, header.length})) return true;
  }
  finish_late_messages(core);
  if (md != nullptr) offer_place(peer, header, payload, {md->segment, operation.get_offset, header.length});
  return false;
}

}  // namespace

void receive_answer(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  OutstandingOperation* operation = core.outstanding.find(header.operation_id);
  if (operation == nullptr || operation->peer != &peer || operation->answered || !is_sane(header, *operation))
    return refuse(core);
  if (peer.answer_stream.mode != ArrivalMode::kIdle) return refuse(core);
  operation->fail = static_cast<NiFail>(header.ni_fail_type);
  operation->silent = (header.flags & kFlagSilent) != 0;
  operation->list = (header.flags & kFlagOverflowList) != 0 ? ListKind::kOverflow : ListKind::kPriority;
  if ((header.flags & kFlagPublished) != 0) [[unlikely]]
    remember_published(peer, operation->interface_index, header.pt_index, header.match_bits);
  operation->mlength = header.length;
  operation->remote_offset = header.remote_offset;
  if (!payload.is_here() && prepare_to_read(core, peer, *operation, header, payload)) [[unlikely]] {
    operation->answered = true;
    return;
  }
  store(core, *operation, 0, payload, header.payload_bytes);
  if (operation->get_md_handle != 0 && header.payload_bytes < header.length) {
    peer.answer_stream.mode = ArrivalMode::kReply;
    peer.answer_stream.header = header;
    peer.answer_stream.received = header.payload_bytes;
    return;
  }
  operation->answered = true;
  finish_answer(core, header.operation_id, *operation);
}

void receive_answer_data(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  Arrival& arrival = peer.answer_stream;
  if (arrival.mode == ArrivalMode::kIdle) return refuse(core);
  const std::uint64_t left = arrival.header.length - arrival.received;
  const bool cut = (header.flags & kFlagCut) != 0;
  if (cut)
    return cut_answer(core, peer, header.ni_fail_type == 0 ? NiFail::kSegv : static_cast<NiFail>(header.ni_fail_type));
  if (header.payload_bytes > left || header.payload_bytes == 0) return refuse(core);
  OutstandingOperation* operation = core.outstanding.find(arrival.header.operation_id);
  if (operation != nullptr) store(core, *operation, arrival.received, payload, header.payload_bytes);
  arrival.received += header.payload_bytes;
  if (arrival.received < arrival.header.length) return;
  arrival.mode = ArrivalMode::kIdle;
  if (operation == nullptr) return;  // kDiscard
  operation->answered = true;
  finish_answer(core, arrival.header.operation_id, *operation);
}

void cut_answer(Core& core, Peer& peer, NiFail fail) {
  Arrival& arrival = peer.answer_stream;
  const ArrivalMode mode = std::exchange(arrival.mode, ArrivalMode::kIdle);
  OutstandingOperation* operation = core.outstanding.find(arrival.header.operation_id);
  if (mode != ArrivalMode::kReply || operation == nullptr) return;
  operation->fail = fail;
  operation->mlength = arrival.received;
  operation->answered = true;
  finish_answer(core, arrival.header.operation_id, *operation);
}

void finish_answer(Core& core, std::uint32_t operation_id, const OutstandingOperation& operation) {
  // The target refused early, or it lies: it has not even got the request. SEND must still come first, and the request
  // that waits needs its operation.
  if (!operation.sent) return;
  --operation.peer->outstanding;
  report_answer(core, operation);
  core.outstanding.close(operation_id);
}

void receive_acknowledgement(Core& core, const Peer& peer, std::uint32_t operation_id) {
  OutstandingOperation* operation = core.outstanding.find(operation_id);
  if (operation == nullptr || operation->peer != &peer || operation->answered) return refuse(core);
  if (operation->get_md_handle != 0 || operation->interface_index == kTofuInterface) return refuse(core);
  operation->mlength = operation->length;
  operation->remote_offset = operation->put_offset;
  operation->answered = true;
  finish_answer(core, operation_id, *operation);
}

void fail_outstanding(Core& core, Peer& peer, NiFail fail) {
  std::vector<std::uint32_t> ids;
  core.outstanding.for_each([&](std::uint32_t id, OutstandingOperation& operation) {
    if (operation.peer == &peer) ids.push_back(id);
  });
  for (const std::uint32_t id : ids) {
    OutstandingOperation* operation = core.outstanding.find(id);
    operation->fail = fail;
    operation->silent = false;
    operation->mlength = 0;
    operation->answered = true;
    finish_answer(core, id, *operation);
  }
  peer.answer_stream.mode = ArrivalMode::kIdle;
}

}  // namespace portofu
