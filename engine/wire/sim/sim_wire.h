#pragma once
// What one simulated engine sees of the simulated network: wire.h to the letter, and asserts on misuse. It has all
// facets of the wire inside a node, each if SimOptions says so (sim_facets.cpp).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/topology/process_id.h"
#include "engine/wire/completions.h"
#include "engine/wire/copies.h"
#include "engine/wire/loans.h"
#include "engine/wire/peer_memory.h"
#include "engine/wire/sim/sim_medium.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Wire of one simulated process; made by SimNetwork::attach, and not usable after the network is gone. A wire whose
/// process was killed refuses everything: connect finds nobody, claim has no room, peek finds nothing.
class SimWire final : public Wire, public Loans, public Copies, public PeerMemory, public Completions {
 public:
  /// Use SimNetwork::attach.
  SimWire(SimMedium& medium, std::uint32_t endpoint_index);
  ~SimWire() override;

  SimWire(const SimWire&) = delete;
  SimWire& operator=(const SimWire&) = delete;

  ConnectResult connect(ProcessId peer, Link** link) override;
  void disconnect(Link* link) override;
  bool leads_to_name(Link& link) override { return !link.lost; }
  bool has_unheard(ProcessId peer, std::uint64_t life) override;
  /// Learns nothing from it.
  void give_up(ProcessId) override {}
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override;
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override { return claim(link, payload_bytes); }
  void publish(Link& link, const PacketHeader& header) override;
  void discard(Link& link) override;
  bool peek(Packet& packet) override;
  void release() override;
  bool has_packets() override;
  bool has_room_again() override;
  int check_peers() override;
  bool take_closed_source(ProcessId* source, void** engines) override;

  std::uint32_t most_lent_bytes(const Link& link) const override;
  bool lend(Link& link, const Loan& loan) override;
  std::uint64_t next_packet(const Link& link) const override { return static_cast<const SimLink&>(link).published; }
  bool has_taken(Link& link, std::uint64_t packet) override;

  std::uint64_t shares_from_bytes(Link& link, std::uint64_t message) override;
  bool help(Link& link) override;
  void offer(std::byte* target, std::uint64_t bytes) override;
  void take_offers_back(ProcessId source) override;
  bool read_later(std::byte* target, std::uint64_t bytes) override;
  std::uint32_t read_now() override;
  void give_back_read() override;

  bool put_directly(Link& link, const DirectPut& put) override;
  bool find_mapped(Link& link, std::uint64_t key, MappedRegion* region) override;
  bool find_published(Link& link, std::uint64_t key, MappedRegion* region) override;
  bool has_settled(Link& link) override;

  bool acknowledge(ProcessId sender, std::uint32_t operation_id) override;
  bool acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) override;
  std::uint32_t take_acknowledgement(Link& link) override;
  bool has_acknowledgement(Link& link) override;

 private:
  /// Copies::read_later.
  struct LateRead {
    std::byte* target;
    const std::byte* place;  ///< In the memory of the sender.
    std::uint64_t bytes;
  };

  bool alive() const { return medium_.endpoints[endpoint_index_].alive; }

  /// Checks that a link is this wire's and not given back.
  SimLink& own(Link& link) const;

  /// Finds the link to a living peer that connect made before; learns of the death of earlier lives of the peer.
  SimLink* find_link(ProcessId peer);

  /// Whether an earlier link of the same process, perhaps of an earlier life, is not over for us yet.
  bool must_wait_for_older(const SimLink& link);

  bool acknowledge(SimLink& link, std::uint32_t operation_id);

  /// Links from which the next poll may take a packet. Every call is a poll: it brings the others nearer.
  std::vector<SimLink*> poll_sources();

  SimMedium& medium_;
  std::uint32_t endpoint_index_;          ///< This process among medium_.endpoints.
  SimLink* held_link_ = nullptr;          ///< Where the peeked packet came from; nullptr if none is held.
  std::optional<SimPacket> held_packet_;  ///< The peeked packet; here, so that it survives the death of its sender.
  SimLink* late_link_ = nullptr;          ///< Of whose packets `late_` are, until give_back_read; nullptr: none.
  std::vector<LateRead> late_;            ///< In order; empty after read_now.
};

}  // namespace portofu
