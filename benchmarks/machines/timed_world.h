#pragma once
// Any number of engines in one process over the network of a machine, in virtual time. A packet is at its receiver when
// the network says so, and what its engine does then takes the interface's time, since an interface of hardware would
// do it. Nothing is lost, and nobody dies.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "engine/wire/sim/sim_packet.h"
#include "engine/wire/wire.h"
#include "lib/sim/network.h"

namespace portofu::machines {

class TimedWire;

/// Outlives the wires that it makes. Used by one thread.
class TimedWorld {
 public:
  explicit TimedWorld(sim::Network network) : network_(std::move(network)), wires_(network_.node_count()) {}

  sim::Network& network() { return network_; }
  std::uint32_t rank_count() const { return network_.node_count(); }

  /// The process of a node; there is one on each.
  static ProcessId process_of(std::uint32_t node) { return {1 + node, 100}; }
  std::unique_ptr<Wire> attach(std::uint32_t node);

  /// What engines send from now on.
  /// @param by_processor  it begins with a command at that time; false: the interface does it by itself
  void set_time(std::uint64_t now_ps, bool by_processor) {
    now_ps_ = now_ps;
    by_processor_ = by_processor;
  }
  std::uint64_t now_ps() const { return now_ps_; }

  /// Lets the next packet arrive, at its time. Its engine has to be stepped.
  /// @return its node; nothing if none is on its way
  std::optional<std::uint32_t> deliver_next();

  std::uint64_t packet_count() const { return serial_; }

 private:
  friend class TimedWire;

  struct Flight {
    std::uint64_t at_ps;
    std::uint64_t serial;  ///< Among those of one time, in the order in which they left.
    std::uint32_t from_node;
    std::uint32_t to_node;
    PacketHeader header;
    std::shared_ptr<SimPayload> payload;
    bool operator>(const Flight& other) const {
      return at_ps != other.at_ps ? at_ps > other.at_ps : serial > other.serial;
    }
  };

  void send(std::uint32_t from_node, std::uint32_t to_node, const PacketHeader& header, SimPayload payload);

  sim::Network network_;
  std::vector<TimedWire*> wires_;  ///< By node.
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  std::uint64_t serial_ = 0;
  std::uint64_t now_ps_ = 0;
  bool by_processor_ = false;
};

/// What one engine sees of it: wire.h without facets.
class TimedWire final : public Wire {
 public:
  TimedWire(TimedWorld& world, std::uint32_t node);
  ~TimedWire() override { world_.wires_[node_] = nullptr; }
  TimedWire(const TimedWire&) = delete;
  TimedWire& operator=(const TimedWire&) = delete;

  ConnectResult connect(ProcessId peer, Link** link) override;
  void disconnect(Link*) override {}
  bool leads_to_name(Link&) override { return true; }
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override;
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override { return claim(link, payload_bytes); }
  void publish(Link& link, const PacketHeader& header) override;
  void discard(Link&) override { claimed_.reset(); }
  bool has_room_again() override { return false; }
  bool peek(Packet& packet) override;
  void release() override { arrived_.pop_front(); }
  bool has_packets() override { return !arrived_.empty(); }
  int check_peers() override { return 0; }
  bool take_closed_source(ProcessId*, void**) override { return false; }
  bool has_unheard(ProcessId, std::uint64_t) override { return false; }
  void give_up(ProcessId) override {}

 private:
  friend class TimedWorld;

  TimedWorld& world_;
  const std::uint32_t node_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<SourceContext>> sources_;  ///< By node of the sender; nullptr: it has sent nothing.
  std::optional<SimPayload> claimed_;
  std::deque<TimedWorld::Flight> arrived_;
};

}  // namespace portofu::machines
