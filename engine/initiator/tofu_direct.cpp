#include "engine/initiator/tofu_direct.h"

#include <sched.h>

#include <algorithm>
#include <atomic>

#include "engine/core/steps.h"
#include "engine/initiator/direct.h"
#include "engine/initiator/tofu_report.h"
#include "engine/memory/stadd_access.h"
#include "engine/queue/lost_thread.h"
#include "engine/segment/shared_heap.h"
#include "engine/wire/ways.h"

namespace portofu {

constinit LaneSeat no_seat;
[[gnu::tls_model("initial-exec")]] constinit thread_local LaneSeat* own_seat = &no_seat;

namespace {

/// The first thread that calls for a VCQ is the user of its lane at once; who has sent it away only after more calls in
/// a row, and each time after so many times more: threads that take turns stay on duty, and one that takes over for
/// good does not.
constexpr std::uint32_t kMorePatience = 64;
constexpr std::uint32_t kMostCallsToEnter = 1u << 16;

/// Yields between two questions whether the thread that one waits for lives; a quarter of a second or more.
constexpr std::uint32_t kYieldsPerLook = 1u << 18;

/// Waits for one copy at most.
void wait_until_outside(const LaneSeat& seat) {
  const auto inside = [&seat] {
    return seat.busy.load(std::memory_order_acquire) ? seat.id.load(std::memory_order_relaxed) : 0;
  };
  for (std::uint32_t yields = 1; seat.busy.load(std::memory_order_acquire); ++yields) {
    sched_yield();
    if (yields % kYieldsPerLook == 0) expect_living(inside);
  }
}

/// All seats; none ever goes.
constinit std::atomic<LaneSeat*> all_seats{nullptr};

/// The seat of the calling thread, or of one that is gone and had the same thread pointer: so there are no more of them
/// than threads at a time. Nobody else looks for that one meanwhile. Holds no lock, which a fork would leave to the
/// child.
LaneSeat& find_seat(std::uintptr_t thread) {
  LaneSeat* seat = all_seats.load(std::memory_order_acquire);
  while (seat != nullptr && seat->thread != thread) seat = seat->next;
  if (seat == nullptr) {
    seat = new LaneSeat;
    seat->thread = thread;
    seat->next = all_seats.load(std::memory_order_relaxed);
    while (!all_seats.compare_exchange_weak(seat->next, seat, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  seat->busy.store(false, std::memory_order_relaxed);
  seat->id.store(this_thread_id(), std::memory_order_relaxed);
  return *seat;
}

/// Whether all that was posted to the peer has read and written what it had to.
bool has_settled(const Peer& peer) { return peer.gets_under_way == 0 && has_taken_requests(peer); }

/// Whether the local notices of all that was posted to the peer are there, or none will come: what asks for none and is
/// not sure to be good is outstanding, too (will_be_taken).
bool has_told(const Peer& peer) { return peer.requests.waiting.empty() && peer.outstanding == 0; }

/// Whether the descriptor may be done now. 2.2.10: only STRONG_ORDER orders what is read and written. Notices are in
/// the order of posting: a remote one travels by a packet in any case, a local one here only if it has no packet.
bool may_go_now(const Peer& peer, const Descriptor& d) {
  if (tells_target(d) && !(is_put(d) && d.length >= kPlacedFromBytes)) return false;
  if ((d.tofu_meta & kTofuStrongOrder) != 0 && !has_settled(peer)) return false;
  return (d.tofu_meta & kTofuLocalNotice) == 0 || tells_target(d) || has_told(peer);
}

std::uint64_t key_of(const Descriptor& d) {
  return region_key(queue_number(d.tofu.remote_vcq_id) >> 8, stag_of(d.remote_stadd));
}

DirectUse use_of(const Descriptor& d) {
  const bool reads = d.type == PacketType::kTofuGet || d.type == PacketType::kTofuArmw;
  const bool writes = d.type != PacketType::kTofuGet;
  return {component_of(d.tofu.remote_vcq_id), stadd_offset(d.remote_stadd), d.length, reads, writes};
}

/// The local end of a communication that has one.
RegisteredRegion* find_local(Core& core, const VirtualControlQueue& vcq, const Descriptor& d) {
  const PacketType use = d.type == PacketType::kTofuGet ? PacketType::kTofuPut : PacketType::kTofuGet;
  NiFail fail = NiFail::kOk;
  return find_region(core.tofu->stadds(vcq), {d.tofu.local_stadd, d.length, use}, &fail);
}

/// Moves the data, or computes. @return false after a fault, or if the atomic unit cannot do it
bool move_data(const Descriptor& d, std::byte* remote, std::byte* local, std::uint64_t* old_value) {
  switch (d.type) {
    case PacketType::kTofuPut: return place_data(remote, d.tofu.brings_data ? d.operand.data() : local, d.length);
    case PacketType::kTofuGet: return guarded_copy(local, remote, d.length);
    default: break;
  }
  AtomicRequest request = atomic_of(d, remote);
  request.source = d.operand.data() + 8;
  request.fetched = reinterpret_cast<std::byte*>(old_value);
  return compute(request);
}

/// TCQ and MRQ of what is complete.
void report_done(Core& core, VirtualControlQueue& vcq, const Descriptor& d, std::uint64_t old_value = 0) {
  vcq.tcq.complete(d.tofu.tcq_place, NiFail::kOk);
  ++core.activity;
  if ((d.tofu_meta & kTofuLocalNotice) != 0) report_at_once(core, vcq, d, old_value);
}

/// Whether the next communication of the VCQ may go at once: behind what waits for its owner, none may. That leaves
/// when no call is under way, so that the user may be inside the lane.
bool may_remember(const Core& core, const VirtualControlQueue& vcq) {
  return vcq.direct.allowed && vcq.ownerless == 0 && core.settings.progress_thread != 0;
}

/// Lets the next communication of the VCQ with the region go at once.
void remember(Core& core, Peer& peer, VirtualControlQueue& vcq, const Descriptor& d, const MappedRegion& region) {
  Link& link = *peer.link;
  if (link.lane == nullptr) {
    // No value is used twice, so a route of an earlier stretch stays closed.
    peer.lane.open.store(++core.tofu->lanes_opened, std::memory_order_relaxed);
    link.lane = &peer.lane;
    peer.had_lane = true;
    core.tofu->has_lanes = true;
  }
  const std::uint64_t stretch = peer.lane.open.load(std::memory_order_relaxed);
  if (has_told(peer) && has_settled(peer)) peer.lane.in_order.store(stretch, std::memory_order_relaxed);
  vcq.direct.remember(RemoteRoute{d.tofu.remote_vcq_id, &peer.lane, stretch, region.sequence, region.seen,
                                  region.memory, region.bytes, stag_of(d.remote_stadd), region.writable});
}

void remember_local(VirtualControlQueue& vcq, const RegisteredRegion& region) {
  const std::uint64_t generation = vcq.direct.stadds->generation().load(std::memory_order_relaxed);
  const std::uint64_t bytes = region.segment.length();
  const bool steady = process_heap().holds(region.start, bytes);
  vcq.direct.remember(LocalRoute{generation, region.start, bytes, region.stag, !region.is_read_only(), steady});
}

/// Calls `visit(lane)` for every VCQ of the process.
template <class Visit>
void for_each_lane(Core& core, Visit&& visit) {
  core.tofu->for_each_vcq([&visit](VirtualControlQueue& vcq) { visit(vcq.direct); });
}

}  // namespace

bool get_at_once(DirectLane& lane, const DirectCall& call, std::uint64_t local_stadd) {
  std::byte* const to = lane.find_local(local_stadd, call.bytes, true);
  if (to == nullptr) return false;
  const std::byte* const from = lane.find_remote(call.vcq_id, call.stadd, call.bytes, false, call.in_order);
  if (from == nullptr || !has_room_for_notices(lane, call.notices)) return false;
  if (!guarded_copy(to, from, call.bytes)) return false;
  raise(lane.gets);
  tell_at_once(lane, call, NoticeKind::kLocalGet,
               [&](Notice& notice) { notice.local_stadd = local_stadd + call.bytes; });
  return true;
}

bool can_have_lanes() { return register_thread_guard(); }

void count_lane_on_duty(Core& core, DirectLane& lane) {
  const auto tell = [](const std::atomic<std::uint64_t>& number, std::uint64_t& told) {
    const std::uint64_t before = told;
    told = number.load(std::memory_order_relaxed);
    return told - before;
  };
  const std::uint64_t words = tell(lane.words, lane.told_words);
  const std::uint64_t puts = words + tell(lane.puts, lane.told_puts);
  core.counters.add(Counter::kPutsSent, puts);
  count_direct_puts(core, puts, 8 * words + tell(lane.put_bytes, lane.told_bytes));
  core.counters.add(Counter::kGetsSent, tell(lane.gets, lane.told_gets));
  core.counters.add(Counter::kAtomicsSent, tell(lane.atomics, lane.told_atomics));
}

MappedResult use_mapped_on_duty(Core& core, Peer& peer, VirtualControlQueue& vcq, const Descriptor& d) {
  if (peer.wire->peer_memory() == nullptr || !may_go_now(peer, d)) return MappedResult::kNo;
  MappedRegion region;
  if (!find_direct(peer, key_of(d), &region) || !may_use(region, use_of(d))) return MappedResult::kNo;
  const bool has_local_end = d.type == PacketType::kTofuGet || is_put_of_memory(d);
  const RegisteredRegion* const local = has_local_end ? find_local(core, vcq, d) : nullptr;
  if (has_local_end && local == nullptr) return MappedResult::kNo;
  std::byte* const local_memory = local != nullptr ? local->start + stadd_offset(d.tofu.local_stadd) : nullptr;
  std::uint64_t old_value = 0;
  std::byte* const remote = region.memory + stadd_offset(d.remote_stadd);
  if (!move_data(d, remote, local_memory, &old_value)) return MappedResult::kNo;
  record_direct(core, peer, d);
  if (is_put(d)) count_direct_puts(core, 1, d.length);
  if (tells_target(d)) return MappedResult::kPlaced;
  report_done(core, vcq, d, old_value);
  if (!may_remember(core, vcq)) return MappedResult::kDone;
  remember(core, peer, vcq, d, region);
  if (local != nullptr) remember_local(vcq, *local);
  return MappedResult::kDone;
}

bool learn_put_region(Peer& peer, const Descriptor& d, PutRegion& near) {
  near = {};
  MappedRegion region;
  const bool found = peer.wire->peer_memory()->find_published(*peer.link, key_of(d), &region);
  const bool is_for_it = region.user == kUidAny || region.user == component_of(d.tofu.remote_vcq_id);
  if (!found || !is_for_it || !region.writable) return false;
  near = {d.tofu.remote_vcq_id, region.bytes, region.sequence, region.seen, stag_of(d.remote_stadd)};
  return true;
}

bool write_by_kernel_on_duty(Core& core, Peer& peer, VirtualControlQueue& vcq, const Descriptor& d,
                             const RegisteredRegion* local) {
  const bool tells_local = (d.tofu_meta & kTofuLocalNotice) != 0;
  if (!peer.requests.waiting.empty() || peer.gets_under_way != 0 || (tells_local && !has_told(peer))) return false;
  PeerMemory* const memory = peer.wire->peer_memory();
  const DirectPut put{.control_queue = queue_number(d.tofu.remote_vcq_id) >> 8,
                      .component = component_of(d.tofu.remote_vcq_id),
                      .stag = stag_of(d.remote_stadd),
                      .offset = stadd_offset(d.remote_stadd),
                      .data = local != nullptr ? local->start + stadd_offset(d.tofu.local_stadd) : d.operand.data(),
                      .bytes = d.length};
  if (memory == nullptr || !memory->put_directly(*peer.link, put)) return false;
  record_direct(core, peer, d);
  count_direct_puts(core, 1, d.length);
  report_done(core, vcq, d);
  return true;
}

void end_lane_on_duty(Core& core, Peer& peer) {
  if (peer.link != nullptr) peer.link->close_lane();
  if (!peer.had_lane || core.tofu == nullptr) return;
  peer.had_lane = false;
  // (L1) From here on every thread that becomes busy sees the lane closed, and those that did not are seen busy.
  before_rare_look_at_threads();
  for_each_lane(core, [](const DirectLane& lane) {
    const LaneSeat* const user = lane.door != nullptr ? lane.door->user.load(std::memory_order_relaxed) : nullptr;
    if (user != nullptr) wait_until_outside(*user);
  });
}

void shut_on_duty(LaneDoor& door) {
  const LaneSeat* const user = door.user.exchange(nullptr, std::memory_order_relaxed);
  if (user == nullptr) return;
  // (L2) From here on the user sees that it is none any more, or is seen busy.
  before_rare_look_at_threads();
  wait_until_outside(*user);
}

void change_user_on_duty(DirectLane& lane) {
  LaneDoor& door = *lane.door;
  if (door.user.load(std::memory_order_relaxed) != nullptr) {
    shut_on_duty(door);
    lane.calls_to_enter = std::min(lane.calls_to_enter * kMorePatience, kMostCallsToEnter);
    lane.last_caller = 0;
  }
  const auto self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  lane.calls_in_a_row = lane.last_caller == self ? lane.calls_in_a_row + 1 : 1;
  lane.last_caller = self;
  if (lane.calls_in_a_row < lane.calls_to_enter) return;
  if (own_seat == &no_seat) own_seat = &find_seat(self);
  door.user.store(own_seat, std::memory_order_relaxed);
}

std::uint64_t lane_uses_on_duty(Core& core) {
  std::uint64_t uses = 0;
  if (core.tofu == nullptr || !core.tofu->has_lanes) return uses;
  for_each_lane(core, [&uses](const DirectLane& lane) { uses += lane.uses(); });
  return uses;
}

void close_idle_lanes_on_duty(Core& core) {
  if (core.tofu == nullptr || !core.tofu->has_lanes) return;
  for_each_lane(core, [&core](DirectLane& lane) { count_lane_on_duty(core, lane); });
  const std::uint64_t uses = lane_uses_on_duty(core);
  if (uses != core.tofu->lane_uses) {
    core.tofu->lane_uses = uses;
    return;
  }
  core.tofu->has_lanes = false;
  for (auto& [key, peer] : core.peers) {
    if (peer->link != nullptr) peer->link->close_lane();
  }
}

}  // namespace portofu
