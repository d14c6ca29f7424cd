// Connecting, and the way back from a full ring.

#include "engine/wire/shm/link_set.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/segment/names_word.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/shared_heap.h"
#include "engine/segment/shared_room.h"
#include "engine/topology/node_id.h"
#include "engine/topology/tofu_id.h"
#include "engine/wire/mapped_region.h"
#include "engine/wire/ways.h"

namespace portofu {

namespace {

constinit ToldOnce told_of_no_channel;
constinit ToldOnce told_of_no_ring;
constinit ToldOnce told_of_refusal;

ConnectResult refuse(ProcessId peer, const char* reason) {
  if (told_of_refusal.is_first()) {
    log_warning("process %s:%u is not talked to: %s; what is to go there fails", node_id_text(peer.nid).c_str(),
                peer.pid, reason);
  }
  return ConnectResult::kRefused;
}

void tell_of_no_channel(const PeerSegment& peer) {
  if (!told_of_no_channel.is_first()) return;
  log_warning(
      "process %s:%u has no free channel for this one: all %u belong to living processes; what is to go there "
      "waits, and fails after a second; start that process with a higher PORTOFU_CHANNELS",
      node_id_text(peer.id().nid).c_str(), peer.id().pid, peer.layout().channel_count);
}

void tell_of_no_ring(const std::string& directory, ProcessId peer, std::uint64_t bytes, int error) {
  const std::string wanted = std::to_string(bytes) + " bytes in " + directory + " for messages to process " +
                             node_id_text(peer.nid) + ":" + std::to_string(peer.pid);
  tell_of_wait(told_of_no_ring, "fallocate", wanted, error);
}

/// Whether the kernel still lets processes of this user read ours: a program takes that right away when it likes, by
/// PR_SET_DUMPABLE or with its rights. A tenth of a microsecond, beside a copy of kKernelCopyFromBytes.
bool may_be_read() { return prctl(PR_GET_DUMPABLE) == 1; }

}  // namespace

LinkSet::LinkSet(ProcessSegment& own, PeerTable& peers, bool direct, LongData long_data, LongTraffic& traffic)
    : own_(own),
      peers_(peers),
      direct_(direct),
      lends_heap_(long_data == LongData::kMeasured),
      long_data_(long_data),
      claimer_{own.id(), own.incarnation(), own.directory()},
      ring_(own.layout().ring),
      job_key_(own.job_key()),
      guard_(own.node_guard()),
      fork_generation_(fork_generation()),
      counters_(own.counters()),
      traffic_(traffic),
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
    case AttachResult::kRefused: return refuse(peer, "its segment is of another version, or others may write to it");
    case AttachResult::kSystem: return ConnectResult::kShort;
  }
  // Payloads are cut for our own limit, so a peer with smaller packets cannot be served.
  if (segment->job_key() != job_key_) return refuse(peer, "it has another PORTOFU_JOB_KEY, or no launcher in common");
  if (segment->layout().ring.max_payload_bytes < ring_.max_payload_bytes)
    return refuse(peer, "its packets are smaller than ours");
  return open_link(std::move(segment), link);
}

ConnectResult LinkSet::open_link(std::shared_ptr<PeerSegment> segment, Link** link) {
  ChannelClaim claim;
  std::uint64_t repaired = 0;
  const bool claimed = claim_channel(*segment, claimer_, &claim, &repaired);
  counters_.add(Counter::kChannelsRepaired, repaired);
  if (!claimed) {
    tell_of_no_channel(*segment);
    return ConnectResult::kShort;
  }
  RingSize size = RingSize::kUsual;
  Mapping ring = take_ring(*segment, claim.slot_index, &size);
  if (!ring) {
    abandon_channel(*segment, claim);
    return ConnectResult::kShort;
  }
  if (!publish_channel(*segment, claimer_, &claim, size)) return ConnectResult::kShort;
  auto made = std::make_unique<ShmLink>();
  made->peer = segment->id();
  made->life = segment->incarnation();
  const SegmentLayout& layout = segment->layout();
  made->producer =
      CellProducer<PacketHeader>(RingView(ring.at(layout.ring_start(claim.slot_index, size)), layout.ring_of(size)));
  made->doorbell = &segment->control().doorbell;
  made->names = &made->doorbell->names;
  made->seen_names = kNamesMoving;  // It is looked at when the link is used.
  made->direct = direct_ && segment->memory().is_reachable();
  made->segment = std::move(segment);
  made->ring = std::move(ring);
  made->claim = claim;
  *link = made.get();
  links_.push_back(std::move(made));
  return ConnectResult::kConnected;
}

bool LinkSet::leads_to_name(ShmLink& link) {
  // Before the look at the name: a change after it moves the word once more.
  const std::uint64_t names = link.names_now();
  if (link.lost || !link.segment->check_alive() || link.segment->is_replaced()) {
    link.lost = true;
    return false;
  }
  link.seen_names = names % 2 == 0 ? names : kNamesMoving;
  return true;
}

/// Takes memory for a ring: as it should be from plenty, else as little as will do.
/// @param size  set to what was taken
/// @return an empty mapping if there is not even that
Mapping LinkSet::take_ring(const PeerSegment& peer, std::uint32_t slot_index, RingSize* size) {
  const SegmentLayout& layout = peer.layout();
  *size = RingSize::kUsual;
  if (shared_room(peers_.directory()).is_plenty_for(layout.ring_pages_bytes(*size))) {
    Mapping ring = peer.allocate_ring(slot_index, *size);
    if (ring) return ring;
  }
  *size = RingSize::kSmallest;
  Mapping ring = peer.allocate_ring(slot_index, *size);
  if (ring) {
    tell_of_little_room(peers_.directory());
  } else {
    tell_of_no_ring(peers_.directory(), peer.id(), layout.ring_pages_bytes(*size), errno);
  }
  return ring;
}

void LinkSet::disconnect(ShmLink& link) {
  say_goodbye(link);
  area_.forget(link.area);
  std::erase(blocked_, &link);
  std::erase_if(links_, [&link](const std::unique_ptr<ShmLink>& known) { return known.get() == &link; });
}

/// What choose_way asks of this wire.
struct LinkSet::WayFacts {
  LinkSet& set;
  ShmLink& link;
  const Loan* loan;  ///< nullptr: the payload has to be copied.

  bool may_lend() const { return loan != nullptr; }
  bool is_in_heap() const { return set.lends_heap_ && process_heap().holds(loan->payload, loan->bytes); }
  bool shares_heap() const { return set.shares_heap(link); }
  bool kernel_is_better() const { return set.kernel_may_copy(link, *loan); }
  bool streams() const { return link.area.stores.prefers_streaming(); }
};

/// Any payload, whether there seems to be room or not.
std::byte* LinkSet::claim_any(ShmLink& link, std::uint32_t payload_bytes) {
  if (link.lost) return nullptr;
  if (choose_way(payload_bytes, WayFacts{*this, link, nullptr}) == Way::kArea) {
    std::byte* chunk = area_.claim(link.area, link.producer, payload_bytes);
    link.streaming = link.area.streaming;
    if (chunk != nullptr) return chunk;
  }
  link.streaming = false;
  std::byte* room = link.producer.claim(payload_bytes);
  if (room == nullptr) note_blocked(link);
  return room;
}

std::uint64_t LinkSet::shares_from_bytes(ShmLink& link, std::uint64_t message) {
  forget_taken(link);
  const bool is_alone = link.loans.empty() || link.loans.front().loan.message == message;
  return choose_share(is_alone, traffic_.goes_both_ways());
}

bool LinkSet::lend(ShmLink& link, const Loan& loan) {
  if (link.lost) return false;
  const Way way = choose_way(loan.bytes, WayFacts{*this, link, &loan});
  if (way == Way::kLentHeap) {
    if (!link.producer.claim_lent({.place = process_heap().offset_of(loan.payload), .awaited = loan.last}))
      return false;
  } else if (way == Way::kLentMemory) {
    const auto address = reinterpret_cast<std::uintptr_t>(loan.payload);
    if (!endure([&] { link.loans.push_back({0, loan}); })) return false;
    if (!link.producer.claim_lent({.place = address, .awaited = loan.last, .in_memory = 1})) {
      link.loans.pop_back();
      return false;
    }
    link.loans.back().position = link.producer.position();
  } else {
    return false;
  }
  link.streaming = false;
  traffic_.note_sent(loan.bytes);
  counters_.add(Counter::kPacketsLent);
  return true;
}

bool LinkSet::shares_heap(ShmLink& link) {
  if (link.heap_mapped) return true;
  // A receiver maps the heap when it gets a long payload and finds the name.
  lends_heap_ = own_.publish_heap();
  link.heap_mapped = lends_heap_ && link.producer.receiver_maps_heap();
  return link.heap_mapped;
}

bool LinkSet::kernel_may_copy(ShmLink& link, const Loan& loan) {
  if (!link.direct || !link.producer.receiver_reads_memory()) return false;
  // What finds no cell is no trial of either way.
  if (!link.producer.has_cell() || !kernel_is_cheaper(link, loan)) return false;
  if (loan.offset == 0 && !kernel_reaches(loan.payload)) return false;
  if (!may_be_read()) return false;
  forget_taken(link);
  return true;
}

/// By the area each side copies once, at the same time, and where much goes the other way, too, has the other side's
/// work besides; by the kernel the receiver copies, or each side a half of a message of several packets. What that
/// costs is known once all of the area was used.
bool LinkSet::kernel_is_cheaper(ShmLink& link, const Loan& loan) {
  if (long_data_ != LongData::kMeasured) return long_data_ == LongData::kInPlace;
  const std::uint64_t store_cost = link.area.stores.cost(), load_cost = link.producer.receivers_area_cost();
  const std::uint64_t area_cost = traffic_.goes_both_ways() ? store_cost + load_cost : std::max(store_cost, load_cost);
  if (!area_.has_gone_round() || area_cost == 0) return false;
  const std::uint64_t read_cost = link.producer.receivers_read_cost();
  const bool shared = loan.offset != 0 || !loan.last;
  return link.ways.choose({.area = area_cost, .kernel = shared ? read_cost / 2 : read_cost}, loan);
}

/// Some memory is not for the kernel to copy, though we can read it: that of devices.
bool LinkSet::kernel_reaches(const std::byte* payload) {
  if (payload == reached_) return true;
  std::byte byte{};
  const iovec local{&byte, 1};
  const iovec remote{const_cast<std::byte*>(payload), 1};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) return false;
  reached_ = payload;
  return true;
}

void LinkSet::forget_taken(ShmLink& link) {
  auto& loans = link.loans;
  if (loans.empty()) return;
  link.producer.is_drained(loans.front().position + 1);  // Looks at what has come back.
  while (!loans.empty() && loans.front().position < link.producer.released_position()) loans.pop_front();
}

bool LinkSet::help(ShmLink& link) {
  auto& loans = link.loans;
  forget_taken(link);
  if (loans.empty() || link.lost) return false;
  // The receiver begins at the front, so this begins at the end.
  const std::uint64_t message = link.producer.offered_message();
  auto mine = std::find_if(loans.rbegin(), loans.rend(),
                           [message](const MemoryLoan& lent) { return lent.loan.message == message && !lent.tried; });
  // The receiver may not read, and asks for this packet alone.
  if (mine == loans.rend()) {
    mine = std::find_if(loans.rbegin(), loans.rend(), [&](const MemoryLoan& lent) {
      return lent.position == message && link.producer.is_laid_down(message);
    });
  }
  Offer offer;
  if (mine == loans.rend() || !link.producer.begin_placing(&offer)) return false;
  const bool placed = offer.message == message && place(link, *mine, offer);
  link.producer.end_placing();
  // The receiver may sleep because the packet was not to be had.
  if (ring_if_asleep(*link.doorbell, guard_, &link.rung_generation)) counters_.add(Counter::kDoorbellsRung);
  return placed;
}

/// Copies what was lent to where the receiver wants it, unless the receiver has begun to.
bool LinkSet::place(ShmLink& link, MemoryLoan& lent, const Offer& offer) {
  const Loan& loan = lent.loan;
  lent.tried = true;
  const std::uint64_t offset = lent.position == offer.message ? 0 : loan.offset;
  if (offset > offer.bytes || loan.bytes > offer.bytes - offset) return false;
  if (!link.producer.take_back(lent.position)) return false;
  const bool placed = link.segment->memory().write(offer.address + offset, loan.payload, loan.bytes, 0);
  link.producer.settle(lent.position, placed);
  if (placed) counters_.add(Counter::kPacketsPlaced);
  return placed;
}

bool LinkSet::has_taken(ShmLink& link, std::uint64_t packet) {
  if (link.producer.await_drained(packet)) return true;
  note_blocked(link);
  return false;
}

bool LinkSet::put_directly(ShmLink& link, const DirectPut& put) {
  if (!link.direct || link.lost) return false;
  const bool is_polled = (link.doorbell->sleepers.load(std::memory_order_relaxed) & kSleeperCountMask) == 0 &&
                         link.segment->control().unattended.load(std::memory_order_relaxed) == 0;
  if (!kernel_writes(put.bytes, is_polled) || !link.producer.is_drained()) return false;
  FoundRegion region;
  if (!find_published_region(link.segment->regions(), region_key(put.control_queue, put.stag), &region)) return false;
  const RegionVerdict verdict = judge_region(region.bytes, region.writable, put.offset, put.bytes, true);
  if (verdict != RegionVerdict::kFine || region.user != put.component) return false;
  const std::uint64_t address = region.start + put.offset;
  return link.segment->memory().write(address, put.data, put.bytes, tofu_tail_bytes(address + put.bytes, put.bytes));
}

bool LinkSet::find_mapped(ShmLink& link, std::uint64_t key, MappedRegion* mapped) {
  if (link.lost || !link.segment->has_heap()) return false;
  FoundRegion region;
  if (!find_published_region(link.segment->regions(), key, &region)) return false;
  std::byte* const memory = link.segment->find_mapped(region.start, region.bytes);
  if (memory == nullptr) return false;
  // Whoever takes an entry back relies on our part of its barrier.
  const bool can_visit = guard_ == NodeGuard::kMembarrier;
  *mapped = mapped_region(region, memory, can_visit ? &link.segment->slot(link.claim.slot_index).visited : nullptr);
  return true;
}

bool LinkSet::find_published(ShmLink& link, std::uint64_t key, MappedRegion* published) {
  FoundRegion region;
  if (!find_published_region(link.segment->regions(), key, &region)) return false;
  *published = mapped_region(region, nullptr, nullptr);
  return true;
}

void LinkSet::say_goodbye(ShmLink& link) {
  if (link.segment->is_dead()) return;
  close_channel(*link.segment, link.claim);
  ring_if_asleep(*link.doorbell, guard_, &link.rung_generation);
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

void LinkSet::lose(ProcessId peer, std::uint64_t life) {
  for (const auto& link : links_) {
    if (link->peer == peer && link->life == life) link->lost = true;
  }
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
