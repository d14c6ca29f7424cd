#pragma once
// The sending half of the shared-memory wire: links to peers, and the claims that wait for room.
// Before it: the initiator wants to send. After it: the packet lies in the peer's ring and the peer is awake.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/queue/cell_producer.h"
#include "engine/segment/mapping.h"
#include "engine/segment/process_segment.h"
#include "engine/wire/loans.h"
#include "engine/wire/peer_memory.h"
#include "engine/wire/shm/channel_directory.h"
#include "engine/wire/shm/peer_table.h"
#include "engine/wire/shm/send_area.h"
#include "engine/wire/shm/way_choice.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Memory of ours that a receiver may read until its cell has come back, or that we may copy for it.
struct MemoryLoan {
  std::uint64_t position = 0;  ///< Of the cell.
  Loan loan;
  bool tried = false;  ///< We have copied it, or could not.
};

/// A link of this wire.
struct ShmLink : Link {
  CellProducer<PacketHeader> producer;   ///< Our end of the ring in the peer's segment.
  DoorbellShared* doorbell = nullptr;    ///< Of the peer; in `segment`.
  std::uint64_t rung_generation = 0;     ///< For ring_if_asleep.
  bool direct = false;                   ///< Our kernel lets us write into the peer's memory.
  bool blocked = false;                  ///< A claim has failed for want of room and is listed in blocked_.
  std::shared_ptr<PeerSegment> segment;  ///< Of the peer.
  Mapping ring;                          ///< The ring in it.
  ChannelClaim claim;                    ///< Which ring.
  AreaLink area;                         ///< Its long payloads.
  bool heap_mapped = false;              ///< The receiver reads our heap.
  std::deque<MemoryLoan> loans;          ///< What it may read of our memory, in order, until it is seen to come back.
  WayChoice ways;                        ///< Of what is not in our heap.
  std::uint64_t unsettled_end = 0;       ///< Position behind the last packet that is not settled.
  std::uint64_t last_look = 0;           ///< At the last packet: how many looks for packets there had been.
};

/// All links of one wire. Used by the thread on duty.
class LinkSet {
 public:
  LinkSet(ProcessSegment& own, PeerTable& peers, bool direct, LongData long_data, LongTraffic& traffic);

  /// Says goodbye on every link; in a forked child it leaves them to the parent.
  ~LinkSet();
  LinkSet(const LinkSet&) = delete;
  LinkSet& operator=(const LinkSet&) = delete;

  ConnectResult connect(ProcessId peer, Link** link);
  void disconnect(ShmLink& link);
  static bool leads_to_name(ShmLink& link);

  std::byte* claim(ShmLink& link, std::uint32_t payload_bytes) {
    if (payload_bytes <= kInlineBytes && !link.lost) [[likely]] {
      link.streaming = false;
      std::byte* room = link.producer.try_claim_inline(payload_bytes);
      if (room != nullptr) [[likely]]
        return room;
    }
    return claim_any(link, payload_bytes);
  }

  /// @param look  number of looks for packets so far: packets between two looks follow each other at once
  void publish(ShmLink& link, const PacketHeader& header, std::uint64_t look) {
    if (!is_settled(header.flags)) [[likely]] {
      link.leave_order();
      link.unsettled_end = link.producer.position() + 1;
    }
    if (link.area.claimed_bytes != 0) [[unlikely]] {
      traffic_.note_sent(link.area.claimed_bytes);
      area_.publish(link.area, link.producer);
    }
    link.producer.publish(header);
    if (link.last_look == look) link.producer.hand_over_last_but_one();
    link.last_look = look;
    if (ring_if_asleep(*link.doorbell, guard_, &link.rung_generation)) counters_.add(Counter::kDoorbellsRung);
  }

  void discard(ShmLink& link) {
    area_.discard(link.area);
    if (!link.loans.empty() && link.loans.back().position == link.producer.position()) link.loans.pop_back();
    link.producer.discard();
  }

  std::uint32_t most_lent_bytes(const ShmLink& link) const {
    return long_data_ == LongData::kMeasured ? link.ways.most_bytes() : kMostLentBytes;
  }
  std::uint64_t shares_from_bytes(ShmLink& link, std::uint64_t message);
  bool lend(ShmLink& link, const Loan& loan);
  bool has_taken(ShmLink& link, std::uint64_t packet);
  bool help(ShmLink& link);

  bool put_directly(ShmLink& link, const DirectPut& put);
  bool find_mapped(ShmLink& link, std::uint64_t key, MappedRegion* region);
  static bool find_published(ShmLink& link, std::uint64_t key, MappedRegion* region);
  bool has_settled(ShmLink& link) { return link.producer.is_drained(link.unsettled_end); }

  bool has_room_again();

  /// What that life of a process sends is not heard any more, so nothing that is sent to it is answered.
  void lose(ProcessId peer, std::uint64_t life);

  /// To be called after PeerTable::check_alive. @return number of links newly lost
  int mark_lost();

 private:
  ConnectResult open_link(std::shared_ptr<PeerSegment> segment, Link** link);
  Mapping take_ring(const PeerSegment& peer, std::uint32_t slot_index, RingSize* size);
  std::byte* claim_any(ShmLink& link, std::uint32_t payload_bytes);
  struct WayFacts;
  bool shares_heap(ShmLink& link);
  bool kernel_may_copy(ShmLink& link, const Loan& loan);
  bool kernel_is_cheaper(ShmLink& link, const Loan& loan);
  bool kernel_reaches(const std::byte* payload);
  static void forget_taken(ShmLink& link);
  bool place(ShmLink& link, MemoryLoan& lent, const Offer& offer);
  void note_blocked(ShmLink& link);
  void say_goodbye(ShmLink& link);

  ProcessSegment& own_;
  PeerTable& peers_;
  bool direct_;                         ///< Whether the kernel may reach peers, and they us.
  bool lends_heap_;                     ///< Whether payloads may stay in the heap.
  LongData long_data_;                  ///< How payloads travel that are not in the heap.
  const std::byte* reached_ = nullptr;  ///< Where the kernel was last found to reach our memory.
  Claimer claimer_;                     ///< This process, as directories of peers know it.
  RingGeometry ring_;                   ///< Of this wire; a peer with another one is refused.
  std::uint32_t job_key_;               ///< A peer with another one is refused.
  NodeGuard guard_;                     ///< Of this process.
  std::uint64_t fork_generation_;       ///< Of the process that made the links.
  Counters counters_;
  LongTraffic& traffic_;  ///< Of this process.
  SendArea area_;
  std::vector<std::unique_ptr<ShmLink>> links_;
  std::vector<ShmLink*> blocked_;  ///< Links with `blocked` set.
};

}  // namespace portofu
