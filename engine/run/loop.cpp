// The table of contents of the engine.

#include "engine/run/loop.h"

#include <algorithm>
#include <new>

#include "engine/core/steps.h"
#include "engine/initiator/barrier.h"
#include "engine/initiator/circuit.h"
#include "engine/initiator/send.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/initiator/tofu_owner.h"
#include "engine/mailbox/connect.h"
#include "engine/mailbox/inbox.h"
#include "engine/mailbox/outbox.h"
#include "engine/run/death.h"
#include "engine/run/dispatch.h"
#include "engine/run/settle.h"
#include "engine/wire/completions.h"
#include "engine/wire/copies.h"
#include "engine/wire/other_nodes.h"

namespace portofu {
namespace {

/// Packets that one cycle takes from one wire, and gates that it lets fire, at most.
constexpr int kCycleBudget = 64;

/// Most packets that a cycle takes beyond the first one that a thread may wait for.
constexpr std::uint32_t kMostBurst = 16;

/// A packet with so many bytes of payload takes as long as one more.
constexpr std::uint32_t kLongPacketBytes = 8192;

/// Does what the packet in hand asks for, and gives it back, also when memory runs out in its middle: nothing that it
/// has done already may be done once more.
void receive_and_release(Core& core, Wire& wire, const Packet& packet) {
  struct InHand {
    Wire& wire;
    ~InHand() { wire.release(); }
  };
  try {
    const InHand in_hand{wire};
    receive_packet(core, packet);
  } catch (const std::bad_alloc&) {
    part_with(core, wire, packet.source);
    throw;
  }
}

/// Takes packets of one wire after the other until something happens that a thread may wait for: whoever ran the cycle
/// shall see it before the next look at a wire, which may have to wait for a cache line. While every cycle finds
/// packets they come in a stream, and each may take twice as many as the one before. The next cycle begins with the
/// wire behind, so that no wire keeps the others waiting.
/// @param closed  set if a wire that was looked at may have sources that are closed
int receive_packets(Core& core, bool* closed) {
  int received = 0;
  std::uint32_t weight = 0;
  Packet packet;
  const std::uint64_t seen_activity = core.activity;
  const auto is_over = [&] { return core.activity != seen_activity && weight >= core.burst; };
  for (std::size_t left = core.wires.size(); left > 0; --left) {
    Wire& wire = *core.wires[core.next_wire];
    const std::uint32_t before = weight;
    while (weight - before < kCycleBudget && !wire.is_silent() && wire.peek(packet)) {
      receive_and_release(core, wire, packet);
      ++received;
      weight += 1 + packet.header.payload_bytes / kLongPacketBytes;
      if (weight >= core.burst) finish_late_messages(core);
      if (is_over()) break;
    }
    finish_late_messages(core);
    *closed |= wire.may_have_closed_source();
    if (++core.next_wire == core.wires.size()) core.next_wire = 0;
    if (is_over()) break;
  }
  core.burst = received == 0 ? 1 : std::min(core.burst * 2, kMostBurst);
  return received;
}

/// What one cycle starts at most. The operations of interfaces all, each of which starts only once: what the
/// application sends next must not overtake them (2.7, 3.16). Gates may set off each other for ever.
std::uint64_t most_to_start(const Core& core) {
  std::uint64_t most = kCycleBudget;
  for (const auto& ni : core.interfaces) most += ni != nullptr ? ni->triggered_count : 0;
  return most;
}

int start_fired_operations(Core& core) {
  if (core.fired.empty()) return 0;
  int started = 0;
  for (std::uint64_t left = most_to_start(core); !core.fired.empty() && left > 0; --left) {
    TriggeredOperation& operation = core.fired.front();
    core.fired.pop_front();
    std::unique_ptr<TriggeredOperation> owned(&operation);
    Interface* const ni = core.interface(owned->descriptor.interface_index);
    if (ni != nullptr) --ni->triggered_count;
    const bool is_gone = ni != nullptr && uses_of(*ni, owned->descriptor) != owned->uses;  // What it is about.
    if (core.observers != nullptr) [[unlikely]]
      put_trigger(core, *owned);
    try {
      if (!is_gone) start_descriptor(core, owned->descriptor);
    } catch (const std::bad_alloc&) {  // It has done nothing, and is due in the next cycle.
      if (ni != nullptr) ++ni->triggered_count;
      core.fired.push_front(*owned.release());
      throw;
    }
    core.counters.add(Counter::kTriggersFired);
    ++started;
  }
  return started;
}

int advance_waiting_peers(Core& core) {
  int published = 0;
  for (std::size_t i = 0; i < core.waiting_peers.size();) {
    Peer& peer = *core.waiting_peers[i];
    published += advance_peer(core, peer);
    if (peer.has_unfinished()) {
      ++i;
      continue;
    }
    peer.waiting = false;
    ++core.activity;
    core.waiting_peers[i] = core.waiting_peers.back();
    core.waiting_peers.pop_back();
  }
  return published;
}

/// Nothing else is to do: copies a piece of what a peer has yet to copy.
int help_waiting_peers(const Core& core) {
  for (const Peer* peer : core.waiting_peers) {
    Copies* const copies = peer->wire->copies();
    if (copies != nullptr && peer->link != nullptr && copies->help(*peer->link)) return 1;
  }
  return 0;
}

/// @return number of sources closed
int close_sources(Core& core) {
  int closed = 0;
  ProcessId source;
  void* context = nullptr;
  for (Wire* wire : core.wires) {
    for (; wire->may_have_closed_source() && wire->take_closed_source(&source, &context); ++closed) {
      close_source(core, context);
      if (context == nullptr) fail_barriers_with(core, source);  // What it was waited for may have been its first word.
    }
  }
  return closed;
}

bool is_lost(const Peer& peer) { return peer.state == PeerState::kConnected && peer.link->lost; }

void lose_lost_peers(Core& core) {
  for (auto& [key, peer] : core.peers) {
    if (is_over(core, *peer)) lose_peer(core, *peer);
  }
}

}  // namespace

int advance_peer(Core& core, Peer& peer) {
  if (is_lost(peer)) {
    if (is_over(core, peer)) lose_peer(core, peer);
    return 0;
  }
  const Reach reach = ensure_connected(core, peer);
  if (reach == Reach::kNever) lose_peer(core, peer);
  if (reach != Reach::kNow) return 0;
  const int answers = advance_outbox(core, peer, peer.answers, kPacketBudget);
  const int requests = advance_outbox(core, peer, peer.requests, kPacketBudget);
  return answers + requests + finish_taken(core, peer);
}

/// What the dead have sent is taken before their death is acted upon.
void receive_arrived_on_duty(Core& core) {
  constexpr int kMostCycles = 1024;
  bool closed = false;
  for (int i = 0; i < kMostCycles && receive_packets(core, &closed) > 0; ++i) {
  }
}

int run_cycle_on_duty(Core& core) {
  bool closed = false;
  int work = receive_packets(core, &closed);
  if (!core.awaited_peers.empty()) work += take_acknowledgements(core);
  if (!core.waiting_peers.empty()) work += advance_waiting_peers(core);
  // Behind all that counts: what has fired does not wait for a call whose operation would overtake it.
  if (!core.fired.empty()) work += start_fired_operations(core);
  if (is_asking_on_duty(core)) [[unlikely]]
    work += advance_ownerless(core);
  if (work == 0 && !core.waiting_peers.empty()) work = help_waiting_peers(core);
  // A process that comes back is heard only once its former life is closed.
  return work == 0 && closed ? close_sources(core) : work;
}

int receive_own_packets_on_duty(Core& core, Wire& wire) {
  int received = 0;
  std::uint32_t weight = 0;
  Packet packet;
  while (weight < kCycleBudget && wire.peek(packet)) {
    receive_and_release(core, wire, packet);
    ++received;
    weight += 1 + packet.header.payload_bytes / kLongPacketBytes;
  }
  finish_late_messages(core);
  return received;
}

void run_timers_on_duty(Core& core) {
  for (Wire* wire : core.wires) wire->check_peers();
  // Not only those that this check has found: a wire looks after the dead at other times, too.
  const auto lost = [](const auto& entry) { return is_lost(*entry.second); };
  if (std::any_of(core.peers.begin(), core.peers.end(), lost)) {
    receive_arrived_on_duty(core);
    lose_lost_peers(core);
  }
  ask_sources_again(core);
  close_idle_lanes_on_duty(core);
  core.uses_published = false;
  close_sources(core);
}

bool needs_timers_on_duty(const Core& core) {
  if (core.outstanding.open_count() > 0 || !core.waiting_peers.empty()) return true;
  if (core.uses_published || (core.tofu != nullptr && core.tofu->has_lanes)) return true;
  for (const auto& [key, peer] : core.peers) {
    if (peer->request_stream.mode != ArrivalMode::kIdle || peer->answer_stream.mode != ArrivalMode::kIdle) return true;
  }
  return false;
}

bool has_work_on_duty(Core& core) {
  if (!core.fired.empty() || close_sources(core) > 0) return true;
  for (Wire* wire : core.wires) {
    if (wire->has_packets()) return true;
    if (!core.waiting_peers.empty() && wire->has_room_again()) return true;
  }
  return std::any_of(core.awaited_peers.begin(), core.awaited_peers.end(), [](const Peer* peer) {
    Completions* const completions = peer->wire->completions();
    return completions != nullptr && peer->link != nullptr && completions->has_acknowledgement(*peer->link);
  });
}

std::uint64_t next_due_on_duty(const Core& core) {
  std::uint64_t due_ns = UINT64_MAX;
  for (const Wire* wire : core.wires) {
    if (const OtherNodes* const nodes = wire->other_nodes()) due_ns = std::min(due_ns, nodes->next_due_ns());
  }
  return due_ns;
}

bool has_delivered_on_duty(const Core& core) {
  if (!core.waiting_peers.empty() || !core.fired.empty() || is_asking_on_duty(core)) return false;
  return std::all_of(core.wires.begin(), core.wires.end(), [](const Wire* wire) {
    return wire->other_nodes() == nullptr || wire->other_nodes()->has_delivered();
  });
}

int wait_fd_on_duty(const Core& core) {
  for (const Wire* wire : core.wires) {
    const OtherNodes* const nodes = wire->other_nodes();
    if (nodes == nullptr) continue;
    if (const int fd = nodes->wait_fd(); fd >= 0) return fd;
  }
  return -1;
}

}  // namespace portofu
