#include "engine/run/dispatch.h"

#include "engine/core/steps.h"
#include "engine/initiator/answer_in.h"
#include "engine/initiator/barrier.h"
#include "engine/initiator/tofu_report.h"
#include "engine/mailbox/connect.h"
#include "engine/mailbox/inbox.h"
#include "engine/mailbox/outbox.h"
#include "engine/observe/system_failure.h"
#include "engine/run/death.h"
#include "engine/target/request.h"
#include "engine/target/tofu_request.h"

namespace portofu {
namespace {

/// The first packet of a source. Our own link may lead to an earlier life of the process, whose death was not noticed
/// yet: an answer would go there, and the one who asked would wait for ever.
void meet_source(Core& core, const Packet& packet) {
  Peer& peer = core.peer(packet.source);
  packet.source_context->engines = &peer;
  if (peer.state != PeerState::kConnected) return keep_answers_for(core, peer, packet.source_context->life);
  peer.wire->check_peers();
  if (!peer.link->lost) return;
  expect_words(core, peer, packet.source_context->life);
  if (packet.source_context->life != peer.link->life && is_over(core, peer)) lose_peer(core, peer);
}

Peer& source_peer(Core& core, const Packet& packet) {
  if (packet.source_context->engines == nullptr) [[unlikely]]
    meet_source(core, packet);
  return *static_cast<Peer*>(packet.source_context->engines);
}

/// Whether an answer is of a life that is lost, with all operations that it could answer.
bool is_late(const Peer& peer, const Packet& packet) {
  if (!peer.was_lost_unheard) [[likely]]
    return false;
  return peer.link == nullptr || peer.link->life != packet.source_context->life;
}

/// Nobody waits any more for an answer to what a source has asked that is closed. A later life of its process might
/// take one for its own.
void forget_answers(Core& core, Peer& peer) {
  peer.request_stream.header.flags &= static_cast<std::uint8_t>(~kFlagAnswerWanted);
  for (const auto& ni : core.interfaces) {
    if (ni != nullptr) std::erase_if(ni->late_answers, [&peer](const LateAnswer& due) { return due.peer == peer.id; });
  }
}

bool is_well_formed(const PacketHeader& header) {
  if ((header.flags & ~kKnownFlags) != 0) return false;
  if (header.ni_fail_type < kNiFailCount) return true;
  // uTofu has more of them, in what answers it only; whether an answer does is seen when its operation is found.
  const bool answers = header.type == PacketType::kAnswer || header.type == PacketType::kTofuFault;
  return answers && header.ni_fail_type < kTofuNiFailCount;
}

}  // namespace

void receive_packet(Core& core, const Packet& packet) {
  const PacketHeader& header = packet.header;
  core.counters.add(Counter::kPacketsReceived);
  if (header.job_key != core.settings.job_key) return core.counters.add(Counter::kPacketsRefusedKey);
  if (!is_well_formed(header)) return core.counters.add(Counter::kPacketsRefusedMalformed);
  if (!core.late_messages.empty() && !may_join_late_messages(core, packet)) [[unlikely]]
    read_late_messages(core);
  Peer& peer = source_peer(core, packet);
  record_packet<Step::kPacketIn>(core, peer, header);
  // What it gave back before it sent this is told before this. Whoever has lent waits.
  if (peer.waiting && peer.has_lent()) [[unlikely]]
    finish_taken(core, peer);
  switch (header.type) {
    case PacketType::kPut: return receive_put(core, peer, header, packet.payload);
    case PacketType::kGet:
    case PacketType::kAtomic:
    case PacketType::kFetchAtomic:
    case PacketType::kSwap: return receive_request(core, peer, header, packet.payload);
    case PacketType::kData: return receive_data(core, peer, header, packet.payload);
    case PacketType::kAnswer:
      if (is_late(peer, packet)) [[unlikely]]
        break;
      return receive_answer(core, peer, header, packet.payload);
    case PacketType::kTofuPut:
    case PacketType::kTofuGet:
    case PacketType::kTofuArmw: return receive_tofu_request(core, peer, header, packet.payload);
    case PacketType::kTofuFault: return receive_tofu_fault(core, peer, header);
    case PacketType::kTofuGate: return receive_gate_packet(core, header, packet.payload.here());
    case PacketType::kInvalid:
    case PacketType::kTofuPiggyback:
    case PacketType::kTofuNop:
    case PacketType::kCountIncrement:
    case PacketType::kCountSet:
    case PacketType::kLocalCall: break;
  }
  core.counters.add(Counter::kPacketsRefusedMalformed);
}

void close_source(Core& core, void* context) {
  if (context == nullptr) return;
  Peer& peer = *static_cast<Peer*>(context);
  forget_answers(core, peer);
  for (Arrival* const stream : {&peer.request_stream, &peer.answer_stream})
    endure([&] { cut_message(core, peer, *stream, NiFail::kUndeliverable); });
  fail_barriers_with(core, peer.id);
}

}  // namespace portofu
