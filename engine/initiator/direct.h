#pragma once
// Direct access: the initiator's CPU does steps 3 to 9 itself, in memory of a peer that both map. What both APIs do
// alike, in the order in which they do it: find a region that the peer has published, judge whether it may be used so,
// guard what has to come before and the region against its owner, move the data, report. Whatever cannot be done so is
// left untouched for packets, which find out, too, what is wrong. Before it: initiator/send and initiator/tofu_send.

#include <atomic>

#include "engine/atomic/atomic_unit.h"
#include "engine/core/core.h"
#include "engine/queue/asymmetric_guard.h"
#include "engine/segment/region_table.h"
#include "engine/wire/peer_memory.h"

namespace portofu {

// ---- Find ----

/// @param key  region_key or entry_key
/// @return false if this process does not map it, or the peer has not published it
/// @pre the peer is connected
inline bool find_direct(const Peer& peer, std::uint64_t key, MappedRegion* region) {
  PeerMemory* const memory = peer.wire->peer_memory();
  return memory != nullptr && memory->find_mapped(*peer.link, key, region);
}

// ---- Judge ----

/// What a transfer does with a region.
struct DirectUse {
  std::uint32_t user = 0;  ///< Whom the region has to be for: a usage ID, or the component of the remote VCQ.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool reads = false;
  bool writes = false;
};

/// What the owner would refuse, or cut, it refuses or cuts itself.
inline bool may_use(const MappedRegion& region, const DirectUse& use) {
  if (region.user != kUidAny && region.user != use.user) return false;
  if (use.bytes == 0 || (use.reads && !region.readable)) return false;
  return judge_region(region.bytes, region.writable, use.offset, use.bytes, use.writes) == RegionVerdict::kFine;
}

// ---- Guard ----

/// Whether the peer has taken all requests that were posted before, so that what is done now comes behind them.
/// @pre the peer's wire has peer memory
inline bool has_taken_requests(const Peer& peer) {
  return peer.requests.waiting.empty() && peer.wire->peer_memory()->has_settled(*peer.link);
}

/// Whether the owner has not taken the region back since it was found.
inline bool is_still(const MappedRegion& region) {
  return region.sequence->load(std::memory_order_acquire) == region.seen;
}

/// Tells the owner what is in use. Nobody takes it away while this lives and is_allowed.
class Visit {
 public:
  Visit(std::uint64_t key, const MappedRegion& region) : visited_(*region.visited) {
    say_before_look(visited_, key);  // (V1)
    allowed_ = is_still(region);
  }
  ~Visit() { visited_.store(0, std::memory_order_release); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  bool is_allowed() const { return allowed_; }

 private:
  std::atomic<std::uint64_t>& visited_;
  bool allowed_;
};

// ---- Move ----

/// The atomic of a descriptor on memory of a peer, of one item.
inline AtomicRequest atomic_of(const Descriptor& d, std::byte* target) {
  AtomicRequest request{static_cast<AtomicOperation>(d.atomic_operation), static_cast<AtomicType>(d.atomic_type)};
  request.target = target;
  request.operand = d.operand.data();
  request.item_count = 1;
  return request;
}

/// Carries it out. @return false if nothing was done: it is for the owner to do, or to refuse
inline bool compute(const AtomicRequest& request) {
  return is_atomic_for_all(request.type, request.target) && execute_atomic(request) == AtomicResult::kDone;
}

// ---- Report ----

/// Puts that were done, with so many bytes together.
inline void count_direct_puts(Core& core, std::uint64_t puts, std::uint64_t bytes) {
  core.counters.add(Counter::kPutsDirect, puts);
  core.counters.add(Counter::kBytesSent, bytes);
}

}  // namespace portofu
