// Connecting, and the way back from a full ring.

#include "engine/wire/shm/link_set.h"

#include <algorithm>

#include "engine/segment/own_segments.h"
#include "engine/segment/shared_heap.h"
#include "engine/topology/tofu_id.h"

namespace portofu {

namespace {

/// From here on one copy by the kernel beats two through the ring, whoever looks into that.
constexpr std::uint64_t kLongBytes = 32768;

}  // namespace

LinkSet::LinkSet(ProcessSegment& own, PeerTable& peers, bool direct, LongData long_data)
    : own_(own),
      peers_(peers),
      direct_(direct),
      lends_(long_data == LongData::kMeasured),
      claimer_{own.id(), own.incarnation(), own.directory()},
      ring_(own.layout().ring),
      job_key_(own.job_key()),
      barrier_(own.wake_barrier()),
      fork_generation_(fork_generation()),
      counters_(own.counters()),
      area_(own, long_data) {}

LinkSet::~LinkSet() {
  if (fork_generation_ != fork_generation()) return;
  for (const auto& link : links_) say_goodbye(*link);
}

ConnectResult LinkSet::connect(ProcessId peer, Link** link) {
  for (const auto& known : links_) {
    if (known->peer == peer && !known->lost) {
      *link = known.get();
      return ConnectResult::kConnected;
    }
  }
  if (peer.nid != claimer_.id.nid) return ConnectResult::kNoSuchPeer;  // On another node.
  std::shared_ptr<PeerSegment> segment;
  switch (peers_.attach(peer, 0, &segment)) {
    case AttachResult::kAttached: break;
    case AttachResult::kNoSuchSegment: return ConnectResult::kNoSuchPeer;
    case AttachResult::kRefused: return ConnectResult::kRefused;
    case AttachResult::kSystem: return ConnectResult::kInProgress;
  }
  // Payloads are cut for our own limit, so a peer with smaller packets cannot be served.
  if (segment->job_key() != job_key_ || segment->layout().ring.max_payload_bytes < ring_.max_payload_bytes) {
    return ConnectResult::kRefused;
  }
  return open_link(std::move(segment), link);
}

ConnectResult LinkSet::open_link(std::shared_ptr<PeerSegment> segment, Link** link) {
  ChannelClaim claim;
  std::uint64_t repaired = 0;
  const bool claimed = claim_channel(*segment, claimer_, &claim, &repaired);
  counters_.add(Counter::kChannelsRepaired, repaired);
  if (!claimed) return ConnectResult::kRefused;
  Mapping ring = segment->allocate_ring(claim.slot_index);
  if (!ring) {
    abandon_channel(*segment, claim);
    return ConnectResult::kRefused;
  }
  if (!publish_channel(*segment, claimer_, &claim)) return ConnectResult::kRefused;
  auto made = std::make_unique<ShmLink>();
  made->peer = segment->id();
  made->producer = CellProducer<PacketHeader>(
      RingView(ring.at(segment->layout().ring_start(claim.slot_index)), segment->layout().ring));
  made->doorbell = &segment->control().doorbell;
  made->direct = direct_ && segment->is_memory_reachable();
  made->segment = std::move(segment);
  made->ring = std::move(ring);
  made->claim = claim;
  *link = made.get();
  links_.push_back(std::move(made));
  return ConnectResult::kConnected;
}

void LinkSet::disconnect(ShmLink& link) {
  say_goodbye(link);
  area_.forget(link.area);
  std::erase(blocked_, &link);
  std::erase_if(links_, [&link](const std::unique_ptr<ShmLink>& known) { return known.get() == &link; });
}

bool LinkSet::lend(ShmLink& link, const std::byte* payload, std::uint32_t bytes, bool awaited) {
  if (!lends_ || link.lost || !process_heap().holds(payload, bytes)) return false;
  if (!link.heap_mapped) {
    // A receiver maps the heap when it gets a long payload and finds the name.
    lends_ = own_.publish_heap();
    link.heap_mapped = lends_ && link.producer.receiver_maps_heap();
    if (!link.heap_mapped) return false;
  }
  if (!link.producer.claim_lent({process_heap().offset_of(payload), awaited ? 1u : 0u})) return false;
  link.streaming = false;
  counters_.add(Counter::kPacketsLent);
  return true;
}

bool LinkSet::has_taken(ShmLink& link, std::uint64_t packet) {
  if (link.producer.await_drained(packet)) return true;
  note_blocked(link);
  return false;
}

bool LinkSet::put_directly(ShmLink& link, const DirectPut& put) {
  if (!link.direct || link.lost) return false;
  // Where somebody polls the ring a packet is quicker than a system call.
  const bool polled = (link.doorbell->sleepers.load(std::memory_order_relaxed) & kSleeperCountMask) == 0 &&
                      link.segment->control().unattended.load(std::memory_order_relaxed) == 0;
  if ((polled && put.bytes < kLongBytes) || !link.producer.is_drained()) return false;
  FoundRegion region;
  if (!find_published_region(link.segment->regions(), region_key(put.control_queue, put.stag), &region)) return false;
  const RegionVerdict verdict = judge_region(region.bytes, region.writable, put.offset, put.bytes, true);
  if (verdict != RegionVerdict::kFine || region.component != put.component) return false;
  const std::uint64_t address = region.start + put.offset;
  return link.segment->write_memory(address, put.data, put.bytes, tofu_tail_bytes(address + put.bytes, put.bytes));
}

bool LinkSet::find_mapped(ShmLink& link, const RegionName& name, MappedRegion* mapped) {
  if (!direct_ || link.lost || !link.segment->has_heap()) return false;
  FoundRegion region;
  const std::uint64_t key = region_key(name.control_queue, name.stag);
  if (!find_published_region(link.segment->regions(), key, &region) || region.component != name.component) return false;
  std::byte* const memory = link.segment->find_mapped(region.start, region.bytes);
  if (memory == nullptr) return false;
  *mapped = {memory, region.bytes, region.writable, region.sequence, region.seen};
  return true;
}

void LinkSet::say_goodbye(ShmLink& link) {
  if (link.segment->is_dead()) return;
  close_channel(*link.segment, link.claim);
  ring_if_asleep(*link.doorbell, barrier_, &link.rung_generation);
}

void LinkSet::note_blocked(ShmLink& link) {
  // A peer that gave back more than it got has corrupted its own ring: nothing can be sent there any more. The caller
  // learns of it from the next check_peers, like of a death.
  if (link.producer.receiver_lied() || link.blocked) return;
  link.blocked = true;
  blocked_.push_back(&link);
}

bool LinkSet::has_room_again() {
  const auto waiting = std::partition(blocked_.begin(), blocked_.end(), [](ShmLink* link) {
    // A claim may have succeeded meanwhile without this function's help: that is room as well.
    const bool waits = link->producer.waits_for_room() && !link->producer.has_room_again();
    link->blocked = !link->lost && (waits || link->producer.awaits_drain());
    return link->blocked;
  });
  const bool some = waiting != blocked_.end();
  blocked_.erase(waiting, blocked_.end());
  return some;
}

int LinkSet::mark_lost() {
  int newly_lost = 0;
  for (const auto& link : links_) {
    if (link->lost) continue;
    link->lost =
        link->segment->is_dead() || link->producer.receiver_lied() || !channel_is_heard(*link->segment, link->claim);
    if (link->lost) ++newly_lost;
  }
  return newly_lost;
}

}  // namespace portofu
