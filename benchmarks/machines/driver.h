#pragma once
// Calls of programs on the network of a machine: what processors and interfaces do one after the other, without an
// engine between them.

#include <cstdint>
#include <vector>

#include "lib/sim/network.h"

namespace portofu::machines {

/// A network of its own for a job. Ends the program if machine or nodes are not to be had.
sim::Network make_network(const sim::Machine& machine, const char* nodes);

/// The machine that comes with Portofu. Ends the program if it is not to be had.
sim::Machine get_machine(const char* name);

/// Whole operations of two nodes that do nothing else, from the call to the loop over memory that has seen its end.
double put_us(sim::Network& network, std::uint32_t to, std::uint32_t bytes,
              sim::PacketKind kind = sim::PacketKind::kPut);
double get_us(sim::Network& network, std::uint32_t to, std::uint32_t bytes);
double atomic_us(sim::Network& network, std::uint32_t to);

/// A message round all nodes, each of which takes a notice before it goes on. @return of one hop
double ring_hop_us(sim::Network& network, std::uint32_t bytes);

/// A barrier of a power of two of nodes by recursive doubling, in which processors do all of it: they put, take
/// notices, and put again.
/// @param bytes  of a message
double barrier_of_calls_us(sim::Network& network, std::uint32_t bytes);

struct Message {
  std::uint32_t to;
  std::uint32_t bytes;
  std::uint64_t given_ps;  ///< When the processor has given the command.
};

/// The commands of one interface, one after the other.
struct Sender {
  std::uint32_t node;
  std::uint32_t interface;
  std::vector<Message> messages;
  bool awaits_ack = false;  ///< The processor gives the next command when it has the notice of the one before.
};

/// Sends all of them packet by packet, so that what shares a link takes turns.
/// @return when the last one is in memory
std::uint64_t run_senders(sim::Network& network, const std::vector<Sender>& senders);

/// Puts of one size from node 0, as fast as the processor and each of the interfaces can.
/// @param to  receiver of each interface
double stream_gb_s(sim::Network& network, const std::vector<std::uint32_t>& to, std::uint32_t bytes);

/// Everybody sends to everybody else, to the next node first, several times after each other. Each of his interfaces
/// has a part of the others, and one message under way. @return of all nodes together
double all_to_all_gb_s(sim::Network& network, std::uint32_t interface_count, std::uint32_t bytes, std::uint32_t times);

}  // namespace portofu::machines
