#pragma once
// A machine as its file describes it: how its nodes are connected, and what its links, interfaces and processors cost.
// README.md explains each key. Times are picoseconds, rates GB/s (bytes per nanosecond).

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace portofu::sim {

enum class TopologyKind : std::uint8_t { kTorus, kHypercube, kFatTree, kDragonfly, kCrossbar };

struct TopologyFigures {
  TopologyKind kind = TopologyKind::kCrossbar;
  std::array<std::uint32_t, 6> lengths{};  ///< Of a torus; 0: the job decides.
  std::array<bool, 6> wraps{};             ///< Of a torus: which dimensions are rings.
  std::uint32_t switch_ports = 0;          ///< Of a fat tree.
  std::uint32_t routers_per_group = 0;     ///< Of a dragonfly, as the next two.
  std::uint32_t nodes_per_router = 0;
  std::uint32_t global_links_per_router = 0;
};

/// Of each direction of a link between neighbours.
struct LinkCosts {
  std::uint32_t lanes = 1;
  double lane_gb_s = 1;
  std::uint64_t latency_ps = 0;    ///< Of the first byte, from the beginning of one link to that of the next.
  std::uint32_t mtu_bytes = 64;    ///< Payload of a packet, at most.
  std::uint32_t header_bytes = 0;  ///< That a packet takes on a link beside its payload.
  std::uint32_t buffer_bytes = 0;  ///< Behind the link, for what waits for the next; 0: without limit.

  double gb_s() const { return lanes * lane_gb_s; }
};

struct NodeCosts {
  double injection_gb_s = 1;  ///< Between all interfaces of a node and its router, in each direction.
};

/// Of one network interface (TNI); it sends and receives at the same time.
struct InterfaceCosts {
  std::uint32_t count = 1;       ///< Of a node.
  double gb_s = 1;               ///< In each direction.
  std::uint64_t gap_ps = 0;      ///< From the beginning of one message to that of the next, at least.
  std::uint64_t command_ps = 0;  ///< From the processor's last store to the command at hand.
  std::uint64_t dma_read_ps = 0;
  std::uint64_t dma_write_ps = 0;
  std::uint64_t atomic_ps = 0;   ///< To read, compute and write a word of the memory.
  std::uint64_t send_ps = 0;     ///< From a packet at hand to its first byte on a link.
  std::uint64_t receive_ps = 0;  ///< From its last byte to the packet at hand.
  std::uint64_t request_ps = 0;  ///< To begin what a packet that came asks for.
  std::uint64_t notice_ps = 0;   ///< To write that something is complete, behind its data.
  std::uint64_t gate_ps = 0;     ///< From the packet and signal that a barrier gate awaits to those that it sends.
};

/// What the processor spends in calls, and with memory that it polls.
struct ProcessorCosts {
  std::uint64_t put_ps = 0;
  std::uint64_t get_ps = 0;
  std::uint64_t atomic_ps = 0;
  std::uint64_t barrier_ps = 0;
  std::uint64_t poll_ps = 0;        ///< A call that takes a notice or an event.
  std::uint64_t empty_poll_ps = 0;  ///< The same if there is none.
  std::uint64_t look_ps = 0;        ///< From data in memory to a loop over its last word that has seen it.
};

/// 0: without limit.
struct MachineLimits {
  std::uint32_t queues_per_interface = 0;
  std::uint32_t virtual_queues_per_queue = 0;
  std::uint32_t gates_per_interface = 0;
  std::uint32_t inline_bytes = 0;  ///< Of a message whose payload may be in its command; 0: there is none.
  std::uint32_t most_transfer_bytes = 0;
};

struct Machine {
  std::string name;
  std::string about;
  TopologyFigures topology;
  LinkCosts links;
  NodeCosts node;
  InterfaceCosts interfaces;
  ProcessorCosts processor;
  MachineLimits limits;
  std::map<std::string, std::string> sources;  ///< Where each number comes from, by its key: "links.lanes".
};

/// Reads the text of a file.
/// @param file  its name, for `why`
/// @param why   on failure one sentence that names file, key, and what is allowed
std::optional<Machine> parse_machine(const std::string& text, const std::string& file, std::string* why);

/// Reads a file.
/// @param name  path of a file that ends in .json, or the name of a machine that comes with Portofu
std::optional<Machine> load_machine(const std::string& name, std::string* why);

/// Where the machines are that come with Portofu: beside the program, in ../share/portofu/machines.
std::filesystem::path machine_directory();

}  // namespace portofu::sim
