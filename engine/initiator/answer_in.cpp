#include "engine/initiator/answer_in.h"

#include "engine/core/steps.h"
#include "engine/initiator/portals_direct.h"
#include "engine/initiator/report.h"
#include "engine/initiator/tofu_report.h"
#include "engine/mailbox/inbox.h"
#include "engine/mailbox/judge.h"

namespace portofu {
namespace {

void refuse(Core& core) { core.counters.add(Counter::kPacketsRefusedMalformed); }

bool is_of_tofu(const OutstandingOperation& operation) { return operation.interface_index == kTofuInterface; }

/// What the header of an answer may say. That of an ARMW has its eight bytes in one packet.
HeaderRule rule_of_answer(const OutstandingOperation& operation) {
  const bool is_armw = operation.kind == PacketType::kTofuArmw;
  const PayloadRule data = is_armw ? PayloadRule::kWhole : PayloadRule::kUpToLength;
  return {operation.length,
          operation.expects_data ? data : PayloadRule::kNothing,
          false,
          0,
          UINT8_MAX,
          operation.interface_index >= kTofuInterface ? kTofuNiFailCount : kNiFailCount};
}

/// Where the data of a reply goes: its memory, and `offset` bytes into it.
/// @return nullptr, with `fail` set: it is not there any more
const MemorySegment* reply_memory(Core& core, const OutstandingOperation& operation, std::uint64_t* offset,
                                  NiFail* fail) {
  if (is_of_tofu(operation)) return memory_of_get(core, operation, offset, fail);
  Interface* ni = core.interface(operation.interface_index);
  const MemoryDescriptor* md = ni != nullptr ? ni->mds.find(operation.portals.reply_md_handle) : nullptr;
  *offset = operation.portals.reply_offset;
  *fail = md != nullptr ? NiFail::kOk : NiFail::kSegv;
  return md != nullptr ? &md->segment : nullptr;
}

/// Stores the data of a reply that lies whole in its packet.
NiFail store(Core& core, OutstandingOperation& operation, const std::byte* data, std::uint64_t bytes) {
  core.counters.add(Counter::kBytesReceived, bytes);
  if (operation.kind == PacketType::kTofuArmw) return keep_old_value(operation, data, bytes);
  std::uint64_t offset = 0;
  NiFail fail = NiFail::kOk;
  const MemorySegment* memory = reply_memory(core, operation, &offset, &fail);
  if (memory != nullptr && !memory->write(offset, data, bytes)) fail = NiFail::kSegv;
  if (is_of_tofu(operation)) operation.silent = fail != NiFail::kOk;  // It is our own fault.
  return fail;
}

/// IncomingHooks::memory.
const MemorySegment* arriving_memory(Core& core, Arrival& arrival) {
  const OutstandingOperation* operation = core.outstanding.find(arrival.header.operation_id);
  if (operation == nullptr) return nullptr;
  NiFail fail = NiFail::kOk;
  const MemorySegment* memory = reply_memory(core, *operation, &arrival.offset, &fail);
  if (arrival.fail == NiFail::kOk) arrival.fail = fail;
  return memory;
}

/// IncomingHooks::finish.
void finish_reply(Core& core, Peer&, Arrival& reply) {
  OutstandingOperation* operation = core.outstanding.find(reply.header.operation_id);
  if (operation == nullptr) return;
  const bool told = reply.is_cut || reply.header.ni_fail_type != 0;
  if (is_of_tofu(*operation)) operation->silent = reply.fail != NiFail::kOk && !told;  // It is our own fault.
  operation->fail = reply.fail;
  if (reply.is_cut) operation->mlength = reply.mlength;
  operation->answered = true;
  finish_answer(core, reply.header.operation_id, *operation);
}

constexpr IncomingHooks kReplyHooks{
    .memory = arriving_memory, .finish = finish_reply, .may_be_late = true, .may_be_offered = true};

/// Nobody would take an offer back when a region is deregistered.
constexpr IncomingHooks kTofuReplyHooks{.memory = arriving_memory, .finish = finish_reply};

/// A reply of several packets, or whose data is at its sender.
void begin_reply(Core& core, Peer& peer, OutstandingOperation& operation, const PacketHeader& header, Payload payload) {
  Arrival& reply = peer.answer_stream;
  begin_arrival(reply, is_of_tofu(operation) ? kTofuReplyHooks : kReplyHooks, header, peer.id);
  reply.mlength = header.length;
  reply.fail = operation.fail;
  operation.answered = header.payload_bytes == header.length;
  core.counters.add(Counter::kBytesReceived, header.payload_bytes);
  take_first(core, peer, reply, payload);
}

}  // namespace

void receive_answer(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  OutstandingOperation* operation = core.outstanding.find(header.operation_id);
  if (operation == nullptr || operation->peer != &peer || operation->answered ||
      !is_sane(header, rule_of_answer(*operation)))
    return refuse(core);
  if (peer.answer_stream.mode != ArrivalMode::kIdle) return refuse(core);
  operation->fail = static_cast<NiFail>(header.ni_fail_type);
  if ((header.flags & kFlagSilent) != 0) operation->silent = true;
  operation->list = (header.flags & kFlagOverflowList) != 0 ? ListKind::kOverflow : ListKind::kPriority;
  if ((header.flags & kFlagPublished) != 0) [[unlikely]]
    remember_published(peer, operation->interface_index, header.pt_index, header.match_bits);
  operation->mlength = header.length;
  operation->remote_offset = header.remote_offset;
  if (operation->expects_data && (header.payload_bytes < header.length || !payload.is_here())) {
    return begin_reply(core, peer, *operation, header, payload);
  }
  // A get of nothing has its local end judged, too.
  const bool is_stored = header.payload_bytes != 0 || operation->kind == PacketType::kTofuGet;
  if (is_stored && operation->fail == NiFail::kOk) {
    operation->fail = store(core, *operation, payload.here(), header.payload_bytes);
  }
  operation->answered = true;
  finish_answer(core, header.operation_id, *operation);
}

void finish_answer(Core& core, std::uint32_t operation_id, const OutstandingOperation& operation) {
  // The target refused early, or it lies: it has not even got the request. SEND must still come first, and the request
  // that waits needs its operation.
  if (!operation.sent) {
    if (operation.interface_index == kForsaken) close_outstanding(core, operation_id, operation);
    return;
  }
  report_answer(core, operation);  // First: without memory for a notice it is still to come, with the end of the link.
  close_outstanding(core, operation_id, operation);
}

void receive_acknowledgement(Core& core, const Peer& peer, std::uint32_t operation_id) {
  OutstandingOperation* operation = core.outstanding.find(operation_id);
  if (operation == nullptr || operation->peer != &peer || operation->answered) return refuse(core);
  if (operation->expects_data || is_of_tofu(*operation)) return refuse(core);
  if (Recorder* const to = core.recorder()) [[unlikely]]
    put_acknowledgement<Step::kPacketIn>(*to, to->now(), {peer.id, operation_id, operation->length});
  operation->mlength = operation->length;
  operation->remote_offset = operation->portals.put_offset;
  operation->answered = true;
  finish_answer(core, operation_id, *operation);
}

void fail_outstanding(Core& core, Peer& peer, NiFail fail) {
  core.outstanding.for_each([&](std::uint32_t id, OutstandingOperation& operation) {
    if (operation.peer != &peer) return;
    Interface* const ni = core.interface(operation.interface_index);
    if (ni != nullptr && !operation.answered) note_undelivered(core, *ni, &peer.id);
    operation.fail = fail;
    if (is_of_tofu(operation)) operation.silent = false;
    operation.mlength = 0;
    operation.answered = true;
    finish_answer(core, id, operation);
  });
  peer.answer_stream.mode = ArrivalMode::kIdle;
}

}  // namespace portofu
