#pragma once
// The short way of a VCQ into memory that this process maps: what was judged once is remembered, and as long as nothing
// has changed a put, get or ARMW needs neither the duty nor a packet. initiator/tofu_direct uses it and fills it.
//
// Who may use it. One thread, the *user* of the lane: the guide allows only one at a time (2.5;
// UTOFU_VCQ_FLAG_THREAD_SAFE VCQs have no lane), but utofu.h lets any thread call at any time. The user goes in by a
// door (LaneDoor) and is `busy` while inside. Every other thread takes the duty, and before it touches anything of the
// VCQ it shuts the door: it takes the user's name off, and waits until the user is outside (L2). The two are the sides
// of an asymmetric guard (queue/asymmetric_guard.h): either the user sees that it is none any more, or it was inside
// before and is seen. So a second thread costs some microseconds once, and then all threads go by the duty, until one
// of them has called often enough in a row to become the user. Whoever takes mappings away closes the lane of the peer
// first, and then waits until nobody is busy (L1).
//
// What is remembered is good while three words have the values of then: that of Peer::lane, which is 0 once the link is
// given back; the sequence number of the region in the owner's segment (G1); the generation of our own table. By
// default the guide orders notices only (2.2.10), so a call may overtake packets that are under way. One that must not,
// because it is of STRONG_ORDER or tells the caller by a local notice, looks at LaneState::in_order.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/event/notice_queue.h"
#include "engine/memory/stadd_table.h"
#include "engine/queue/asymmetric_guard.h"
#include "engine/queue/direct_mapped.h"
#include "engine/segment/region_table.h"
#include "engine/wire/wire.h"

namespace portofu {

/// A region of a peer, as one remote VCQ ID and STag name it.
struct alignas(64) RemoteRoute {
  std::uint64_t vcq_id = 0;
  const LaneState* lane = nullptr;  ///< Peer::lane, and its value.
  std::uint64_t lane_value = 0;
  const std::atomic<std::uint64_t>* sequence = nullptr;  ///< See MappedRegion.
  std::uint64_t seen = 0;
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t stag = kNoStag;  ///< kNoStag: none is remembered, whatever VCQ ID is asked for.
  bool writable = false;
};
static_assert(sizeof(RemoteRoute) == 64);

/// A region of our own.
struct LocalRoute {
  std::uint64_t generation = 0;
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t stag = kNoStag;  ///< kNoStag: none is remembered.
  bool writable = false;
  bool steady = false;  ///< It lies in our own heap, which nobody can unmap.
};
static_assert(sizeof(LocalRoute) == 32);

class DirectLane;

/// What a thread that uses lanes has of its own. Never freed. A thread may be stopped on its way into a lane, and say
/// that it is busy when another one has long become the user; so each says it in a place of its own.
struct alignas(64) LaneSeat {
  std::atomic<bool> busy{false};  ///< (L1, L2) The thread is inside a lane. Writer: the thread.
  std::uintptr_t thread = 0;      ///< Its thread pointer, by which one that comes after it gets the seat.
  LaneSeat* next = nullptr;       ///< Of all seats.
  std::atomic<pid_t> id{0};       ///< Its TID, for those that wait until it is outside.
};

/// Of all threads that have not been users yet: the name at no door.
extern constinit LaneSeat no_seat;

/// Of the calling thread. Of a model that needs no call: the library is there when a program starts, or finds room.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local LaneSeat* own_seat;

/// The way into a lane for calls that name a VCQ by its handle. Never freed, so every thread may look at it at any
/// time; what is behind it belongs to who is inside (LaneUse), and to the thread on duty while the door is shut.
struct alignas(64) LaneDoor {
  std::atomic<std::uint64_t> handle{0};  ///< Of the VCQ; 0: of none. Writer: on duty, while it is shut.
  std::atomic<LaneSeat*> user{nullptr};  ///< The thread that may go in; nullptr: it is shut. Writer: on duty.
  DirectLane* lane = nullptr;            ///< Writer: on duty, while it is shut.
};

/// A stay inside a lane, of the thread that calls.
class LaneUse {
 public:
  LaneUse(const LaneDoor& door, std::uint64_t handle) : seat_(*own_seat) {
    if (door.user.load(std::memory_order_relaxed) != &seat_ || door.handle.load(std::memory_order_relaxed) != handle)
      return;
    say_before_look(seat_.busy, true);  // (L1, L2)
    if (door.user.load(std::memory_order_relaxed) != &seat_) [[unlikely]] {
      seat_.busy.store(false, std::memory_order_release);
      return;
    }
    lane_ = door.lane;
    if (lane_ == nullptr) __builtin_unreachable();  // A door with a user leads somewhere.
  }
  ~LaneUse() {
    if (lane_ != nullptr) seat_.busy.store(false, std::memory_order_release);
  }
  LaneUse(const LaneUse&) = delete;
  LaneUse& operator=(const LaneUse&) = delete;

  /// nullptr: the thread may not go in, or the VCQ has no lane.
  DirectLane* lane() const { return lane_; }

 private:
  LaneSeat& seat_;
  DirectLane* lane_ = nullptr;
};

class DirectLane {
 public:
  DirectLane(TransmitCompleteQueue& tcq_of_vcq, MessageReceiveQueue& mrq_of_vcq) : tcq(tcq_of_vcq), mrq(mrq_of_vcq) {}

  /// Where a range of a peer's memory lies here. Only while busy.
  /// @param in_order  behind all that was posted to the peer before
  /// @return nullptr if that is not known, or not allowed, or no longer true
  std::byte* find_remote(std::uint64_t vcq_id, std::uint64_t stadd, std::uint64_t bytes, bool writes,
                         bool in_order) const {
    const std::uint32_t stag = stag_of(stadd);
    const RemoteRoute& route = remote_.place(remote_key(vcq_id, stag));
    if (route.vcq_id != vcq_id || route.stag != stag) return nullptr;
    // (L1) Partner: whoever closes the lane.
    const std::atomic<std::uint64_t>& state = in_order ? route.lane->in_order : route.lane->open;
    if (state.load(std::memory_order_acquire) != route.lane_value) return nullptr;
    if (route.sequence->load(std::memory_order_acquire) != route.seen) return nullptr;
    const std::uint64_t offset = stadd_offset(stadd);
    const auto verdict = judge_region(route.bytes, route.writable, offset, bytes, writes);
    return verdict == RegionVerdict::kFine ? route.memory + offset : nullptr;
  }

  /// The same for memory of our own.
  /// @param steady  only memory that nobody can unmap will do
  std::byte* find_local(std::uint64_t stadd, std::uint64_t bytes, bool writes, bool steady = false) const {
    const std::uint32_t stag = stag_of(stadd);
    const LocalRoute& route = local_.place(stag);
    if (route.stag != stag || stadds->generation().load(std::memory_order_relaxed) != route.generation) return nullptr;
    const std::uint64_t offset = stadd_offset(stadd);
    const auto verdict = judge_region(route.bytes, route.writable, offset, bytes, writes);
    return verdict == RegionVerdict::kFine && (route.steady || !steady) ? route.memory + offset : nullptr;
  }

  void remember(const RemoteRoute& route) { remote_.place(remote_key(route.vcq_id, route.stag)) = route; }
  void remember(const LocalRoute& route) { local_.place(route.stag) = route; }

  /// How often calls have gone this way.
  std::uint64_t uses() const {
    return words.load(std::memory_order_relaxed) + puts.load(std::memory_order_relaxed) +
           gets.load(std::memory_order_relaxed) + atomics.load(std::memory_order_relaxed);
  }

  /// Whether a look that has found nothing may do without a cycle of the engine: the first behind a call that went at
  /// once, since the program is not waiting yet, or behind a look that has found something; and only so many in a row,
  /// so that a program that communicates and looks in turns makes progress with all else, too. A program that only
  /// looks runs a cycle each time.
  bool may_skip_cycle(bool behind_find = false) {
    const std::uint64_t now = uses();
    if ((now == looked_uses_ && !behind_find) || skipped_ == kMostSkipped) {
      skipped_ = 0;
      return false;
    }
    looked_uses_ = now;
    ++skipped_;
    return true;
  }
  static constexpr std::uint32_t kMostSkipped = 16;

  /// The next call of the VCQ has more to do than to communicate.
  void forget() { remote_.clear(); }

  TransmitCompleteQueue& tcq;
  MessageReceiveQueue& mrq;
  OwnNoticeQueue notices;
  const StaddTable* stadds = nullptr;  ///< Of the CQ.
  std::uint64_t most_bytes = 0;        ///< Of a put or get.
  bool tcq_gave = false;               ///< The last look at the TCQ has found something.
  bool allowed = false;                ///< Whether the VCQ may use it; constant once the VCQ is made.

  // On duty.
  LaneDoor* door = nullptr;          ///< Constant once the VCQ is made; nullptr: no call goes in.
  std::uintptr_t last_caller = 0;    ///< The thread of the last call while the door was shut; 0: there was none.
  std::uint32_t calls_in_a_row = 0;  ///< Of that thread.
  std::uint32_t calls_to_enter = 1;  ///< So many make it the user.

  std::atomic<std::uint64_t> words{0};  ///< Puts of 8 bytes done this way. Writer: the user.
  std::atomic<std::uint64_t> puts{0};   ///< Others.
  std::atomic<std::uint64_t> gets{0};
  std::atomic<std::uint64_t> atomics{0};
  std::atomic<std::uint64_t> put_bytes{0};  ///< Of `puts`.
  std::uint64_t told_words = 0;             ///< Of each, what the counters of the engine know. On duty.
  std::uint64_t told_puts = 0;
  std::uint64_t told_gets = 0;
  std::uint64_t told_atomics = 0;
  std::uint64_t told_bytes = 0;

 private:
  static constexpr std::size_t kRemoteRoutes = 64;
  static constexpr std::size_t kLocalRoutes = 64;
  /// Different for the regions of different VCQs, unless one has more than 256.
  static std::uint64_t remote_key(std::uint64_t vcq_id, std::uint32_t stag) { return vcq_id + stag; }

  std::uint64_t looked_uses_ = 0;  ///< `uses` when a look last found nothing and skipped its cycle.
  std::uint32_t skipped_ = 0;      ///< Such looks in a row.
  DirectMapped<RemoteRoute, kRemoteRoutes> remote_;
  DirectMapped<LocalRoute, kLocalRoutes> local_;
};

}  // namespace portofu
