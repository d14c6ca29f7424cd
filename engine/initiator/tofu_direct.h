#pragma once
// uTofu in memory that both sides map: the initiator's CPU does steps 3 to 9 itself. The first communication with a
// region goes by use_mapped_on_duty, which judges and remembers; those after it by the *_at_once functions, which need
// neither the duty nor a packet. What these cannot do they leave untouched for the ordinary way.

#include <cstring>

#include "engine/atomic/atomic_access.h"
#include "engine/atomic/atomic_word.h"
#include "engine/core/core.h"
#include "engine/core/direct_lane.h"
#include "engine/memory/guarded_copy.h"

namespace portofu {

// The *_at_once functions are for a thread that is inside the lane (LaneUse).

/// What a call of the application asks for. Of all flags it has only those that are said here, or that change nothing.
struct DirectCall {
  std::uint64_t vcq_id = 0;  ///< Remote, as the application has it.
  std::uint64_t stadd = 0;   ///< Remote.
  std::uint64_t bytes = 0;   ///< Not 0.
  std::uint64_t edata = 0;
  std::uint64_t notices = 0;  ///< kTofuTcqNotice, kTofuLocalNotice.
  void* callback_data = nullptr;
  bool in_order = false;  ///< It overtakes nothing: STRONG_ORDER, or kTofuLocalNotice.
};

/// Copies the data of a put: the last line of the range last (6.1.3.1), an aligned word in one.
/// @return false after a fault
inline bool place_data(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t tail = tofu_tail_bytes(reinterpret_cast<std::uintptr_t>(to) + bytes, bytes);
  if (tail == bytes) [[likely]]
    return guarded_copy(to, from, bytes);
  const std::uint64_t body = bytes - tail;
  if (!guarded_copy(to, from, body)) return false;
  std::atomic_thread_fence(std::memory_order_release);
  return guarded_copy(to + body, from + body, tail);
}

inline bool has_room_for_notices(DirectLane& lane, std::uint64_t notices) {
  if ((notices & kTofuTcqNotice) != 0 && !lane.tcq.has_room(1)) return false;
  return (notices & kTofuLocalNotice) == 0 || lane.notices.has_room();
}

/// Tells the caller of a communication that is complete.
/// @param fill  void(Notice&): what only this kind of notice says
template <class Fill>
inline void tell_at_once(DirectLane& lane, const DirectCall& call, NoticeKind kind, Fill&& fill) {
  if ((call.notices & kTofuTcqNotice) != 0) lane.tcq.take_done(call.callback_data);
  if ((call.notices & kTofuLocalNotice) == 0) return;
  Notice& notice = lane.notices.add(lane.mrq);
  notice = Notice{.kind = kind, .vcq_id = with_own_path(call.vcq_id), .edata = call.edata};
  fill(notice);
}

/// Adds to a number that only this thread writes.
inline void raise(std::atomic<std::uint64_t>& number, std::uint64_t by = 1) {
  number.store(number.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

/// A put of data that needs no judgement. @return false if nothing was done, and the ordinary way has to do it
inline bool put_data_at_once(DirectLane& lane, const DirectCall& call, const std::byte* data) {
  std::byte* const to = lane.find_remote(call.vcq_id, call.stadd, call.bytes, true, call.in_order);
  if (to == nullptr || (call.notices != 0 && !has_room_for_notices(lane, call.notices))) return false;
  if (!place_data(to, data, call.bytes)) return false;
  raise(lane.puts);
  raise(lane.put_bytes, call.bytes);
  if (call.notices == 0) return true;
  tell_at_once(lane, call, NoticeKind::kLocalPut,
               [&call](Notice& notice) { notice.remote_stadd = call.stadd + call.bytes; });
  return true;
}

inline bool piggyback_at_once(DirectLane& lane, const DirectCall& call, const std::byte* data) {
  return put_data_at_once(lane, call, data);
}

inline bool put_at_once(DirectLane& lane, const DirectCall& call, std::uint64_t local_stadd) {
  const std::byte* const from = lane.find_local(local_stadd, call.bytes, false);
  return from != nullptr && put_data_at_once(lane, call, from);
}

/// A put of 8 bytes of which the MRQs hear nothing: the shortest way of all. The store needs no guard: the peer's heap
/// has its memory, and the data lies on the stack or in our own heap. Of `call` its bytes are not looked at.
[[gnu::always_inline]] inline bool put_word_at_once(DirectLane& lane, const DirectCall& call, std::uint64_t word) {
  std::byte* const to = lane.find_remote(call.vcq_id, call.stadd, sizeof word, true, call.in_order);
  if (to == nullptr || (call.notices != 0 && !lane.tcq.has_room(1))) return false;
  // What was put before is seen before (STRONG_ORDER). Compilers make one store of the copy.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(to, &word, sizeof word);
  raise(lane.words);
  if (call.notices != 0) lane.tcq.take_done(call.callback_data);
  return true;
}

bool get_at_once(DirectLane& lane, const DirectCall& call, std::uint64_t local_stadd);

/// @tparam Word  of call.bytes
/// @param compared  for kCswap
template <class Word>
inline bool armw_at_once(DirectLane& lane, const DirectCall& call, AtomicOperation operation, Word value,
                         Word compared) {
  std::byte* const at = lane.find_remote(call.vcq_id, call.stadd, sizeof(Word), true, call.in_order);
  if (at == nullptr || !is_aligned_for<Word>(at) || !has_room_for_notices(lane, call.notices)) return false;
  const Word old_value = update_plain_word<Word>(operation, at, value, compared);
  raise(lane.atomics);
  tell_at_once(lane, call, NoticeKind::kLocalArmw, [&](Notice& notice) {
    notice.remote_stadd = call.stadd;
    notice.remote_value = old_value;
  });
  return true;
}

/// A thread that is not the user of the lane has called for its VCQ.
void change_user_on_duty(DirectLane& lane);

/// The thread on duty calls for the VCQ: nobody else is inside its lane from here on until the duty is given.
inline void enter_on_duty(VirtualControlQueue& vcq) {
  const LaneDoor* const door = vcq.direct.door;
  if (door != nullptr && door->user.load(std::memory_order_relaxed) != own_seat) [[unlikely]]
    change_user_on_duty(vcq.direct);
}

/// Nobody is inside the lane, and nobody goes in until a caller on duty has become the user. Waits for who is: a copy.
/// To be called outside.
void shut_on_duty(LaneDoor& door);

/// Whether this kernel has the barrier that lanes need (L1, L2). Registers the process for it.
bool can_have_lanes();

/// Adds to the counters of the engine what was done at once.
void count_lane_on_duty(Core& core, DirectLane& lane);

/// What became of use_mapped_on_duty.
enum class MappedResult : std::uint8_t {
  kNo,      ///< Nothing was done that counts; another way has to do it, or to find out what is wrong.
  kDone,    ///< All is done and told.
  kPlaced,  ///< The data of a put is at its place; the target is to be told by a packet.
};

/// Does a put, get or ARMW whose local side was judged, if the remote side is mapped and nothing is under way to the
/// peer that has to come before it (2.2.10).
MappedResult use_mapped_on_duty(Core& core, Peer& peer, VirtualControlQueue& vcq, const Descriptor& descriptor);

inline bool is_put(const Descriptor& d) { return d.type == PacketType::kTofuPut; }

/// Of registered memory, and not of data that the descriptor brings.
inline bool is_put_of_memory(const Descriptor& d) { return is_put(d) && !d.tofu.brings_data; }

inline bool tells_target(const Descriptor& d) {
  return (d.tofu_meta & kTofuRemoteNotice) != 0 || d.tofu_meta >> kTofuStepsShift != 0;
}

/// A put of data of which the target is told nothing: nobody is needed there.
inline bool is_silent_put(const Descriptor& d) { return is_put(d) && d.length != 0 && !tells_target(d); }

/// Looks up the region of a put. @param near  set to it, or to none
/// @return false if there is none, or puts there may fail
bool learn_put_region(Peer& peer, const Descriptor& descriptor, PutRegion& near);

/// Whether a put that goes by packet will not fail at the peer, or nothing can overtake packets to that. A put of which
/// that is not sure has to be answered: its error is a local notice, whatever it asks for, and must not come behind
/// those of later communications (2.2.10). No program takes memory away from a put under way (3.6).
/// @pre the peer is connected
inline bool will_be_taken(Peer& peer, const Descriptor& d) {
  if (peer.wire->peer_memory() == nullptr) return true;
  const std::uint32_t stag = stag_of(d.remote_stadd);
  PutRegion& near = peer.put_regions.place(d.tofu.remote_vcq_id + stag);
  const bool is_known = near.vcq_id == d.tofu.remote_vcq_id && near.stag == stag &&
                        near.sequence->load(std::memory_order_acquire) == near.seen;
  if (!is_known && !learn_put_region(peer, d, near)) return false;
  return judge_region(near.bytes, true, stadd_offset(d.remote_stadd), d.length, true) == RegionVerdict::kFine;
}

/// Lets the kernel write a silent put into memory of the peer that need not be mapped. It stays behind all that was
/// sent to the peer before.
/// @param local  of the put; nullptr: its data is in the descriptor
/// @return false if packets have to do it
bool write_by_kernel_on_duty(Core& core, Peer& peer, VirtualControlQueue& vcq, const Descriptor& descriptor,
                             const RegisteredRegion* local);

/// Before the link to a peer is given back: nobody uses the peer's memory any more.
void end_lane_on_duty(Core& core, Peer& peer);

/// How often calls have gone at once, by any lane that is open; 0 if there is none.
std::uint64_t lane_uses_on_duty(Core& core);

/// With the timers: lanes that nobody uses are closed, so that a peer's death is looked for only while it matters.
void close_idle_lanes_on_duty(Core& core);

}  // namespace portofu
