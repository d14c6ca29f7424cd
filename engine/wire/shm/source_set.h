#pragma once
// The receiving half of the shared-memory wire: the rings of all peers that send to this process.
// Before it: a peer has published a packet. After it: run/dispatch has a checked copy of the header.
//
// A poll looks at one word a source. Those words' addresses and expected values lie side by side in poll_, so that
// looking at 64 silent sources costs about 60 ns (benchmarks/micro/wire_bench.cpp).

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/queue/cell_consumer.h"
#include "engine/queue/clock.h"
#include "engine/segment/mapping.h"
#include "engine/segment/process_segment.h"
#include "engine/wire/copies.h"
#include "engine/wire/shm/channel_directory.h"
#include "engine/wire/shm/copy_cost.h"
#include "engine/wire/shm/peer_table.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Life of a source, in this order.
enum class SourceState : std::uint8_t {
  kOpen,     ///< Polled.
  kClosing,  ///< Its sender is closed or dead: polled until it is empty.
  kDrained,  ///< Not polled; waits for take_closed_source.
  kTaken,    ///< Evicted for writing nonsense, and taken: keeps its channel until the sender has noticed or died.
};

/// One sender, for as long as it has a channel in our directory.
struct ShmSource : SourceContext {
  ProcessId id;
  std::uint64_t order = 0;       ///< ChannelSlotShared::publish_order.
  std::uint32_t slot_index = 0;  ///< Its channel.
  std::uint32_t poll_index = 0;  ///< Its place in poll_, while kOpen or kClosing.
  SourceState state = SourceState::kOpen;
  CellConsumer<PacketHeader> consumer;   ///< Our end of its ring.
  std::uint64_t rung_generation = 0;     ///< For ring_if_asleep at its doorbell.
  bool unreachable = false;              ///< Attaching to its segment failed; tried again by close_dead_sources.
  std::shared_ptr<PeerSegment> segment;  ///< Of the sender, once it was needed; else nullptr.
  Mapping ring;                          ///< The ring in our own segment.
  Mapping area;                          ///< The sender's send area, once it has sent something long.
  bool area_asked = false;               ///< It was tried to map it, and to read the sender's memory.
  bool was_asked = false;                ///< To bring what it has lent; that was said.
  bool heap_asked = false;               ///< The same for the sender's heap, once that has a name.
  CopyCost<4> area_cost;                 ///< Of payloads in the area, once all of that was used.
  CopyCost<4> read_cost{4};              ///< Of payloads that the kernel reads.
  std::uint64_t area_payloads = 0;       ///< Those that have come by the area.
};

/// A payload that its sender has brought, because we may not read it any more.
struct Brought {
  ShmSource* source = nullptr;
  std::uint64_t position = 0;  ///< Of its packet.
  std::uint64_t start = 0;     ///< In the memory of the sender.
  std::uint32_t bytes = 0;
  std::unique_ptr<std::byte[]> data;
};

class LinkSet;

/// All sources of one wire. Used by the thread on duty.
class SourceSet final : public MemoryBringer {
 public:
  /// @param links         to whom this process sends; outlives this object
  /// @param closed_count  how many sources wait for take_closed_source: kept up to date; outlives this object
  SourceSet(ProcessSegment& own, PeerTable& peers, LinkSet& links, std::uint32_t& closed_count, LongTraffic& traffic);

  bool peek(Packet& packet);
  void release();
  bool has_packets();
  bool take_closed_source(ProcessId* source, void** engines);
  void offer(std::byte* target, std::uint64_t bytes);
  bool read_later(std::byte* target, std::uint64_t bytes);
  std::uint32_t read_now();
  void give_back_read();
  bool acknowledge(ProcessId sender, std::uint32_t operation_id);
  bool acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id);
  void take_offers_back(ProcessId id);
  bool has_unheard(ProcessId id, std::uint64_t incarnation);

  /// This process cannot answer a sender: its channels are taken from it, so that it fails what it waits for. What it
  /// has sent is still received.
  void give_up(ProcessId id);

  bool bring(std::uint64_t address, std::byte* target, std::uint64_t bytes) override;

  /// To be called after PeerTable::check_alive: whose sender is dead is drained and then reported.
  void close_dead_sources();

 private:
  /// What a poll needs to know of a source.
  struct PollEntry {
    const std::atomic<std::uint32_t>* word;  ///< Where the next packet shows.
    std::uint32_t lap;                       ///< What it shows.
    bool attention;                          ///< When nothing is there: room is withheld, or the source is closing.
    ShmSource* source;
  };

  bool directory_changed() const {
    // (S1) acquire: partner is raise_epoch of a claimer; the slots that it changed are seen by the scan that follows.
    return epoch_.load(std::memory_order_acquire) != seen_epoch_;
  }
  void scan_directory();
  void scan_slot(std::uint32_t slot_index);
  bool must_wait_for_earlier(std::uint32_t slot_index, ProcessId id);
  ShmSource* open_source(std::uint32_t slot_index, ProcessId id);
  void refuse_unmapped(std::uint32_t slot_index, ProcessId id, int error);
  void close_source(ShmSource& source);
  void evict_source(ShmSource& source);
  void finish_source(ShmSource& source);
  void free_slot(std::uint32_t slot_index);
  void close_if_dead(ShmSource& source);
  void repair_claimed_slot(std::uint32_t slot_index);

  static bool is_ready(const PollEntry& entry) { return CellConsumer<PacketHeader>::word_ready(entry.word, entry.lap); }
  bool peek_round(Packet& packet);
  void begin_timing(ShmSource& source, TakenFrom from, std::uint32_t bytes);
  void end_timing(ShmSource& source);
  bool take_packet(PollEntry& entry, Packet& packet);
  bool attend_silent(PollEntry& entry);
  void refresh_entry(ShmSource& source);
  void wake_blocked_sender(ShmSource& source);
  bool acknowledge(ShmSource& source, std::uint32_t operation_id);
  bool attach_sender(ShmSource& source);
  bool find_lent(std::uint64_t address, std::uint64_t bytes, Brought* lent);
  bool bring(Brought& lent);
  void map_memory(ShmSource& source);
  std::uint32_t slots_in_use();

  ProcessSegment& own_;
  PeerTable& peers_;
  LinkSet& links_;
  const std::atomic<std::uint64_t>& epoch_;  ///< SegmentControlShared::directory_epoch of the own segment.
  std::uint32_t& closed_count_;              ///< Length of drained_, for whoever made this object.
  NodeGuard guard_;                          ///< Of this process.
  Counters counters_;
  LongTraffic& traffic_;                     ///< Of this process.
  std::vector<PollEntry> poll_;              ///< Sources that are kOpen or kClosing.
  std::uint32_t cursor_ = 0;                 ///< Whose turn it is in poll_.
  std::uint32_t turn_left_ = 0;              ///< Packets that it may still deliver in this turn; 0 if it is gone.
  ShmSource* held_ = nullptr;                ///< Source of the packet between peek and release.
  const std::byte* held_payload_ = nullptr;  ///< Of that packet.
  std::uint32_t held_bytes_ = 0;             ///< Of it, if it is not in the ring.
  Brought brought_;                          ///< The last one.
  ShmSource* late_source_ = nullptr;         ///< Whose payloads are to be read later; nullptr: there are none.
  ShmSource* read_source_ = nullptr;         ///< Between read_now and give_back_read: whose payloads were read.
  std::uint32_t late_count_ = 0;             ///< How many.
  std::uint32_t read_count_ = 0;             ///< In read_now: how many.
  std::array<iovec, Copies::kMostReadLater + 1> late_targets_{};
  std::array<iovec, Copies::kMostReadLater + 1> late_places_{};  ///< In the memory of the sender.
  std::array<Brought, Copies::kMostReadLater> late_packets_;     ///< Whose they are; without data.
  CopyCost<4>* timed_ = nullptr;                     ///< What is being measured between peek and release; or nothing.
  std::uint32_t timed_bytes_ = 0;                    ///< Of the payload.
  std::uint64_t read_before_ = 0;                    ///< ProcessMemory::bytes_read when peek returned.
  MonotonicClock::time_point started_;               ///< When peek returned.
  std::uint64_t seen_epoch_;                         ///< directory_epoch at the last scan.
  std::vector<std::unique_ptr<ShmSource>> by_slot_;  ///< One entry a channel; nullptr where we hear nobody.
  std::vector<ShmSource*> drained_;                  ///< Waiting for take_closed_source.
};

/// Packets of one source before the next one gets its turn; long ones count for more (packets_worth).
inline constexpr std::uint32_t kTurnPackets = 16;

/// While so few sources are heard, their next inline payloads are prefetched by a look that found nothing.
inline constexpr std::size_t kPrefetchedSources = 4;

}  // namespace portofu
