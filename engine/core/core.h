#pragma once
// What the steps of the data path share: one per engine, touched on duty only. No step has state of its own.

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/config/settings.h"
#include "engine/core/interface.h"
#include "engine/core/outstanding.h"
#include "engine/core/peer.h"
#include "engine/core/polled_objects.h"
#include "engine/core/sleeping_call.h"
#include "engine/core/swapped_words.h"
#include "engine/core/tofu.h"
#include "engine/observe/counters.h"
#include "engine/observe/recorder.h"
#include "engine/wire/wire.h"

namespace portofu {

class Checker;

/// Time for deadlines; a test brings its own. Nanoseconds from any origin, never backwards.
using Clock = std::uint64_t (*)(void* context);

/// A put or a reply that is complete but for its bytes (engine/mailbox/inbox.h).
struct LateMessage {
  Arrival arrival;
  Payload payload;
};

/// Who is told of what a core does.
struct Observers {
  Recorder* recorder = nullptr;  ///< nullptr: steps are not written down.
  Checker* checker = nullptr;    ///< nullptr: calls are not looked at (engine/check).
};

struct Core {
  Core(const Settings& wanted, ProcessId own, std::uint32_t user, Counters own_counters)
      : settings(wanted), self(own), uid(user), counters(own_counters) {}

  const Settings settings;
  const ProcessId self;
  const std::uint32_t uid;  ///< Stamped on every packet.
  Counters counters;
  /// Polled in this order. wires[0] reaches ourselves, wires[1] our node.
  std::vector<Wire*> wires;
  Wire* fabric = nullptr;     ///< Reaches other nodes; nullptr: nothing does. In `wires` once it is needed.
  std::size_t next_wire = 0;  ///< Where the next cycle begins.
  std::uint32_t burst = 1;    ///< Packets that the next cycle may take before it ends at what it has found.
  Clock clock = nullptr;
  void* clock_context = nullptr;
  /// Takes all packets that have arrived; nullptr: nobody polls the wires. Not while a packet is in hand.
  void (*receive_arrived)(Core&) = nullptr;
  /// Acts upon a peer that a step has found to be over (run/death.h). Set by whoever runs the steps.
  void (*lose_peer)(Core&, Peer&) = nullptr;
  std::array<std::unique_ptr<Interface>, kInterfaceCount> interfaces;  ///< nullptr: not open.
  OutstandingTable outstanding;
  FiredOperations fired;                                           ///< Started one by one by the loop.
  std::unordered_map<std::uint64_t, std::unique_ptr<Peer>> peers;  ///< By (nid, pid).
  std::vector<Peer*> waiting_peers;                                ///< Peers with something that could not go out yet.
  std::vector<Peer*> awaited_peers;                                ///< Peers that may acknowledge operations.
  SpareMessage spare_message;
  std::unique_ptr<Tofu> tofu;              ///< nullptr: uTofu is not used.
  NodeDirectory* directory = nullptr;      ///< For `tofu`; outlives the core.
  Peer* recent_peer = nullptr;             ///< The one looked up last.
  Peer* late_peer = nullptr;               ///< Who sent `late_messages`.
  std::vector<LateMessage> late_messages;  ///< In order. Empty between cycles.
  bool uses_published = false;             ///< Since the timers ran, some peer's memory was used.
  std::uint32_t direct_uses = 0;           ///< How often, since a call looked for packets because of it.
  bool gave_link = false;        ///< The event that was given last says that an entry of the caller is in its list.
  std::uint32_t departures = 0;  ///< Number of the last departure that was asked for (departure_of).
  std::uint64_t activity = 0;    ///< Raised whenever something happens that a waiting thread may wait for.
  /// Constant while calls go on. nullptr: nobody is told of anything, so that a step or a call asks one pointer only.
  const Observers* observers = nullptr;
  SleepingCalls sleeping_calls;
  PolledObjects polled;
  SwappedWords swapped_words;
  RefusedMessage last_astray;  ///< For onlookers: the last one to an interface that is not open.

  std::uint64_t now_ns() const { return clock(clock_context); }
  Recorder* recorder() const { return observers != nullptr ? observers->recorder : nullptr; }
  Checker* checker() const { return observers != nullptr ? observers->checker : nullptr; }
  Interface* interface(std::uint32_t index) const {
    return index < kInterfaceCount ? interfaces[index].get() : nullptr;
  }

  /// Finds or makes the peer. Never fails for a valid id; throws bad_alloc without memory.
  Peer& peer(ProcessId id) { return recent_peer != nullptr && recent_peer->id == id ? *recent_peer : look_up_peer(id); }

  /// From now on nothing reaches other nodes, whose peers are lost; `fabric` may be destroyed.
  void leave_other_nodes();

  /// Something for the peer has to wait for room. Makes sure that the loop looks at the peer again.
  void wait_for_room(Peer& waiting);

  /// The peer has yet to read what was lent to it. Makes sure that the loop looks at it again.
  void look_after(Peer& peer) {
    if (peer.waiting) return;
    peer.waiting = true;
    waiting_peers.push_back(&peer);
  }

  /// The peer has yet to answer an operation of Portals.
  void await(Peer& peer) {
    peer.awaited = true;
    awaited_peers.push_back(&peer);
  }

 private:
  Peer& look_up_peer(ProcessId id);
  Wire* wire_to(ProcessId id);
};

// What the checker is told here (engine/check).
/// It keeps what the memory of a new event holds, before its initiator can know of it.
void keep_arrival(Checker& checker, const Interface& ni, const EventQueue& queue);
/// A message is complete whose event, if it has one, comes next.
void note_arrival(Checker& checker, const Arrival& arrival);
/// Whoever hears of the operation knows what its counter has.
void note_start(Checker& checker, const Core& core, const TriggeredOperation& operation);
// Steps for the recorder (core/steps.h).
[[gnu::cold, gnu::noinline]] void put_event(const Core& core, const Interface& ni, Handle eq_handle,
                                            const EventQueue& queue, const Event& event);
[[gnu::cold, gnu::noinline]] void put_count(const Core& core, Handle ct_handle, std::uint64_t successes);

/// Events, counts and frees by handle: nothing happens if the object is gone or none was named.
/// @param fill  void(Event&), writes all of the event where it stays, which is whatever was there
template <class Fill>
[[gnu::always_inline]] inline void post_event_with(Core& core, Interface& ni, Handle eq_handle, Fill&& fill) {
  if (eq_handle == 0) return;
  EventQueue* queue = ni.eqs.find(eq_handle);
  if (queue == nullptr) return;
  if (queue->is_blocked()) [[unlikely]] {
    if (queue->make_way_on_duty()) core.counters.add(Counter::kEventsDropped);
  }
  Event& event = queue->append_on_duty();
  fill(event);
  if (core.observers != nullptr) [[unlikely]]
    put_event(core, ni, eq_handle, *queue, event);
  ++core.activity;
  core.counters.add(Counter::kEventsPosted);
}
/// The same; what `fill` does not write is as in a new Event. One that is made elsewhere and assigned is copied by
/// loads that wait (fresh_line.h).
template <class Fill>
[[gnu::always_inline]] inline void post_new_event(Core& core, Interface& ni, Handle eq_handle, Fill&& fill) {
  post_event_with(core, ni, eq_handle, [&fill](Event& event) {
    std::construct_at(&event);
    fill(event);
  });
}
/// What an event says that tells of an entry, and of no message.
struct EntryNews {
  void* user_ptr;
  std::uint32_t options;   ///< kEntry*: whether the event is wanted.
  std::uint16_t pt_index;  ///< Where the entry is, or was.
  NiFail fail = NiFail::kOk;
};
inline EntryNews news_of(const ListEntry& entry) {
  return {entry.user_ptr, entry.options, entry.pt_index, entry.canceled ? NiFail::kCanceled : NiFail::kOk};
}
inline void post_entry_event(Core& core, Interface& ni, Handle eq_handle, EventKind kind, EntryNews news) {
  post_new_event(core, ni, eq_handle, [=](Event& event) {
    event.type = kind;
    event.pt_index = news.pt_index;
    event.user_ptr = news.user_ptr;
    event.ni_fail_type = news.fail;
  });
}
/// Puts a notice of uTofu into an MRQ. One too many ends the program (guide, chapter 7).
void post_notice(Core& core, VirtualControlQueue& vcq, const Notice& notice);

inline void count_success(Core& core, Interface& ni, Handle ct_handle, std::uint64_t count) {
  if (ct_handle == 0) return;
  CountingEvent* counter = ni.cts.find(ct_handle);
  if (counter == nullptr) return;
  counter->add_success_on_duty(count, core.fired);
  if (core.observers != nullptr) [[unlikely]]
    put_count(core, ct_handle, counter->success());
  ++core.activity;
}
inline void count_failure(Core& core, Interface& ni, Handle ct_handle) {
  if (ct_handle == 0) return;
  CountingEvent* counter = ni.cts.find(ct_handle);
  if (counter == nullptr) return;
  counter->add_failure_on_duty(1, core.fired);
  ++core.activity;
}
/// @param amount  what a success counts
inline void count_outcome(Core& core, Interface& ni, Handle ct_handle, NiFail fail, std::uint64_t amount) {
  if (fail == NiFail::kOk) {
    count_success(core, ni, ct_handle, amount);
  } else {
    count_failure(core, ni, ct_handle);
  }
}

/// Which objects the handles in a descriptor name: after some thousand others one may name another object.
/// @param ni  its interface
std::uint64_t uses_of(const Interface& ni, const Descriptor& descriptor);

/// Lets an operation wait for a counter, whoever asks for it: Portals, libfabric, a VCQ in session mode, a barrier
/// gate. It starts at once, as everything in Core::fired does, if the threshold is reached. Limits are the caller's to
/// look at (Engine::arm_on_duty).
void arm_operation(Core& core, CountingEvent& counter, const Descriptor& descriptor, const Trigger& trigger,
                   const Claim& claim = {});

/// Deletes what waits for a counter of an interface.
void disarm_operations(Interface& ni, CountingEvent& counter);

/// Whether too many operations wait for an answer of a peer for one more. Marks take no place: they may be answered
/// late, and all else goes on meanwhile.
inline bool is_window_full(const Core& core, const Peer& peer) {
  return peer.outstanding - peer.marks >= core.settings.window_operations;
}

/// Ends an outstanding operation: its peer owes no answer to it any more.
inline void close_outstanding(Core& core, std::uint32_t operation_id, const OutstandingOperation& operation) {
  --operation.peer->outstanding;
  if (operation.is_mark) --operation.peer->marks;
  if (operation.kind == PacketType::kTofuGet) --operation.peer->gets_under_way;
  core.outstanding.close(operation_id);
}
/// Nobody wants the answer to an operation any more.
/// @param is_due  it is still to come
void forget_outstanding(Core& core, std::uint32_t operation_id, bool is_due);

/// An operation on the memory descriptor is over; frees it if it was released meanwhile.
void end_operation(Interface& ni, MemoryDescriptor& md);

}  // namespace portofu
