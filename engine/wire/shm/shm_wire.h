#pragma once
// The wire inside a node: every process owns a segment with one ring for each peer that sends to it. A packet is
// written by the sender straight into the receiver's ring, and read there.

#include "engine/segment/process_segment.h"
#include "engine/wire/completions.h"
#include "engine/wire/copies.h"
#include "engine/wire/loans.h"
#include "engine/wire/peer_memory.h"
#include "engine/wire/shm/link_set.h"
#include "engine/wire/shm/peer_table.h"
#include "engine/wire/shm/source_set.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Shared-memory wire of one engine. Reliable and ordered, so never wrapped. Used by the thread on duty. One disconnect
/// ends a link, however often it was found by connect. In a forked child it must not be used, only destroyed.
///
/// Before the engine sleeps on its doorbell it announces that, and then calls has_packets, has_room_again (if a claim
/// has failed) and take_closed_source once more; peers ring for all three.
class ShmWire final : public Wire, public Loans, public Copies, public PeerMemory, public Completions {
 public:
  /// @param own     must outlive the wire
  /// @param direct  false: all goes by packets
  explicit ShmWire(ProcessSegment& own, bool direct = true, LongData long_data = LongData::kMeasured)
      : Wire({.max_payload_bytes = own.layout().ring.max_payload_bytes}, {.loans = this,
                                                                          .copies = this,
                                                                          .peer_memory = direct ? this : nullptr,
                                                                          .completions = this,
                                                                          .other_nodes = nullptr}),
        peers_(own.directory()),
        links_(own, peers_, direct, long_data, traffic_),
        sources_(own, peers_, links_, closed_sources_, traffic_) {
    closed_sources_ = 0;
  }

  ConnectResult connect(ProcessId peer, Link** link) override { return links_.connect(peer, link); }
  void disconnect(Link* link) override { links_.disconnect(static_cast<ShmLink&>(*link)); }
  bool leads_to_name(Link& link) override { return LinkSet::leads_to_name(static_cast<ShmLink&>(link)); }

  void give_up(ProcessId peer) override { sources_.give_up(peer); }

  bool has_unheard(ProcessId peer, std::uint64_t life) override { return sources_.has_unheard(peer, life); }

  std::byte* claim(Link& link, std::uint32_t payload_bytes) override {
    return links_.claim(static_cast<ShmLink&>(link), payload_bytes);
  }
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override { return claim(link, payload_bytes); }
  void publish(Link& link, const PacketHeader& header) override {
    links_.publish(static_cast<ShmLink&>(link), header, looks_);
  }
  void discard(Link& link) override { links_.discard(static_cast<ShmLink&>(link)); }

  std::uint32_t most_lent_bytes(const Link& link) const override {
    return links_.most_lent_bytes(static_cast<const ShmLink&>(link));
  }
  std::uint64_t shares_from_bytes(Link& link, std::uint64_t message) override {
    return links_.shares_from_bytes(static_cast<ShmLink&>(link), message);
  }
  bool lend(Link& link, const Loan& loan) override { return links_.lend(static_cast<ShmLink&>(link), loan); }
  std::uint64_t next_packet(const Link& link) const override {
    return static_cast<const ShmLink&>(link).producer.position();
  }
  bool has_taken(Link& link, std::uint64_t packet) override {
    return links_.has_taken(static_cast<ShmLink&>(link), packet);
  }
  bool help(Link& link) override { return links_.help(static_cast<ShmLink&>(link)); }
  void offer(std::byte* target, std::uint64_t bytes) override { sources_.offer(target, bytes); }
  bool read_later(std::byte* target, std::uint64_t bytes) override { return sources_.read_later(target, bytes); }
  std::uint32_t read_now() override { return sources_.read_now(); }
  void give_back_read() override { sources_.give_back_read(); }
  void take_offers_back(ProcessId source) override { sources_.take_offers_back(source); }

  bool acknowledge(ProcessId sender, std::uint32_t operation_id) override {
    return sources_.acknowledge(sender, operation_id);
  }
  bool acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) override {
    return sources_.acknowledge_released(sender, life, operation_id);
  }
  std::uint32_t take_acknowledgement(Link& link) override { return static_cast<ShmLink&>(link).producer.take_ack(); }
  bool has_acknowledgement(Link& link) override { return static_cast<ShmLink&>(link).producer.has_ack(); }

  bool put_directly(Link& link, const DirectPut& put) override {
    return links_.put_directly(static_cast<ShmLink&>(link), put);
  }
  bool find_mapped(Link& link, std::uint64_t key, MappedRegion* region) override {
    return links_.find_mapped(static_cast<ShmLink&>(link), key, region);
  }
  bool find_published(Link& link, std::uint64_t key, MappedRegion* region) override {
    return LinkSet::find_published(static_cast<ShmLink&>(link), key, region);
  }
  bool has_settled(Link& link) override { return links_.has_settled(static_cast<ShmLink&>(link)); }

  bool peek(Packet& packet) override {
    ++looks_;
    return sources_.peek(packet);
  }
  void release() override { sources_.release(); }
  bool has_packets() override { return sources_.has_packets(); }
  bool has_room_again() override { return links_.has_room_again(); }

  int check_peers() override;
  bool take_closed_source(ProcessId* source, void** engines) override {
    return sources_.take_closed_source(source, engines);
  }

 private:
  PeerTable peers_;          ///< Shared by both halves, and so made first and destroyed last.
  LongTraffic traffic_;      ///< Shared by both halves.
  LinkSet links_;            ///< The sending half.
  SourceSet sources_;        ///< The receiving half.
  std::uint64_t looks_ = 0;  ///< Looks for packets so far.
};

}  // namespace portofu
