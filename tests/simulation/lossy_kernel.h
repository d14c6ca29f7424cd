#pragma once
// Datagram ports of simulated nodes on a lossy network: what the directory between nodes has instead of UDP. They are
// lost, doubled, late and overtaken like all that is on that network, and a port that nobody has is told of.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/segment/kernel.h"
#include "engine/wire/sim/lossy_network.h"

namespace portofu::simulation {

/// A port that is taken, by one or by several who share it. On the network it is a process of its own.
struct LossyPort {
  struct Datagram {
    PortAddress from;
    std::vector<std::byte> bytes;
  };
  std::unique_ptr<LossyEndpoint> endpoint;
  std::map<std::uint64_t, std::deque<Datagram>> arrived;  ///< By socket. Whoever sends has always the same one.

  /// Gives out what has arrived.
  void advance();
};

/// All of them. Outlives the sockets.
class LossyPorts {
 public:
  /// @param node_of_nid  where a NID is in the topology
  LossyPorts(LossyNetwork& network, std::uint64_t seed, std::uint32_t (*node_of_nid)(std::uint32_t nid))
      : network_(network), random_(seed), node_of_(node_of_nid) {}

  LossyNetwork& network() { return network_; }
  SimRandom& random() { return random_; }

  /// Takes a port for a socket. @param at  port 0: any free one, soon again one that somebody has had
  PortAddress take(PortAddress at, std::uint64_t socket);
  void give_back(PortAddress at, std::uint64_t socket);
  LossyPort& port(PortAddress at) { return taken_.at(id_of(at)); }

  /// Something has arrived for a process of the network. @return nothing if that is no port
  std::optional<PortAddress> advance(ProcessId id);

  static ProcessId id_of(PortAddress at) { return {at.nid, kPorts + at.port}; }
  static PortAddress address_of(ProcessId id) { return {id.nid, static_cast<std::uint16_t>(id.pid - kPorts)}; }

 private:
  static constexpr std::uint32_t kPorts = 0x10000;  ///< Behind all PIDs.

  LossyNetwork& network_;
  SimRandom random_;
  std::uint32_t (*node_of_)(std::uint32_t nid);
  struct Less {
    bool operator()(ProcessId a, ProcessId b) const { return process_key(a) < process_key(b); }
  };
  std::map<ProcessId, LossyPort, Less> taken_;
};

/// That of one process.
class LossyKernel final : public Kernel {
 public:
  /// @param wait  lets the others go on
  LossyKernel(LossyPorts& ports, std::function<void(const Meanwhile& meanwhile)> wait)
      : ports_(ports), wait_(std::move(wait)) {}

  std::unique_ptr<DatagramSocket> open_socket(PortAddress at) override;
  std::uint64_t now_ns() override { return ports_.network().now_ns(); }
  bool draw_random(void* into, std::size_t bytes) override;
  void wait(std::span<DatagramSocket* const>, const Meanwhile& meanwhile) override { wait_(meanwhile); }

  /// The process dies, and has no port any more.
  void die();
  bool has(PortAddress at) const;

 private:
  friend class LossySocket;

  LossyPorts& ports_;
  const std::function<void(const Meanwhile& meanwhile)> wait_;
  std::map<std::uint64_t, PortAddress> open_;  ///< By socket.
};

}  // namespace portofu::simulation
