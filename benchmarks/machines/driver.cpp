#include "benchmarks/machines/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace portofu::machines {
namespace {

using sim::Packet;
using sim::PacketKind;

constexpr double kPsPerUs = 1e6;

template <typename Value>
Value or_end(std::optional<Value> value, const std::string& why) {
  if (value) return std::move(*value);
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}

/// @return when the loop has seen it, if the call has just begun
double seen_us(const sim::Network& network, std::uint64_t arrived_ps) {
  return static_cast<double>(arrived_ps + network.machine().processor.look_ps) / kPsPerUs;
}

/// Interfaces that work off their commands.
class SendersRun {
 public:
  SendersRun(sim::Network& network, const std::vector<Sender>& senders) : network_(network) {
    for (const Sender& sender : senders) {
      states_.push_back({&sender});
      await_turn(states_.size() - 1);
    }
  }

  std::uint64_t run() {
    while (!turns_.empty()) {
      const Turn turn = turns_.top();
      turns_.pop();
      turn.is_ack ? acknowledge(turn) : send_packet(turn);
    }
    return end_ps_;
  }

 private:
  /// One interface, as far as it has come.
  struct State {
    const Sender* sender;
    std::size_t message = 0;
    std::uint32_t left_bytes = 0;
    std::uint64_t free_ps = 0;
    std::uint64_t told_ps = 0;  ///< When the processor has learned of the message before.
  };

  struct Turn {
    std::uint64_t at_ps;
    std::size_t sender;
    bool is_ack;  ///< The receiver's, of the message at hand.
    bool operator>(const Turn& other) const { return std::tie(at_ps, sender) > std::tie(other.at_ps, other.sender); }
  };

  void await_turn(std::size_t i) {
    const State& state = states_[i];
    if (state.message == state.sender->messages.size()) return;
    // An interface fetches the next command and its payload while the one before leaves.
    const std::uint64_t given_ps = std::max(state.sender->messages[state.message].given_ps, state.told_ps);
    const std::uint64_t ready_ps = given_ps + network_.before_ps(PacketKind::kPut);
    turns_.push({state.left_bytes > 0 ? state.free_ps : std::max(state.free_ps, ready_ps), i, false});
  }

  void send_packet(const Turn& turn) {
    State& state = states_[turn.sender];
    const Message& message = state.sender->messages[state.message];
    if (state.left_bytes == 0) state.left_bytes = message.bytes;
    const std::uint32_t bytes = std::min(state.left_bytes, network_.machine().links.mtu_bytes);
    const sim::Passage passage = network_.send(turn.at_ps, {.from_node = state.sender->node,
                                                            .to_node = message.to,
                                                            .interface = state.sender->interface,
                                                            .bytes = bytes,
                                                            .kind = PacketKind::kNextPut});
    state.left_bytes -= bytes;
    state.free_ps = passage.left_ps;
    end_ps_ = std::max(end_ps_, passage.arrived_ps);
    if (state.left_bytes == 0 && state.sender->awaits_ack) {
      turns_.push({passage.arrived_ps, turn.sender, true});
    } else {
      if (state.left_bytes == 0) ++state.message;
      await_turn(turn.sender);
    }
  }

  void acknowledge(const Turn& turn) {
    State& state = states_[turn.sender];
    const sim::Packet ack{.from_node = state.sender->messages[state.message].to,
                          .to_node = state.sender->node,
                          .interface = state.sender->interface,
                          .bytes = 0,
                          .kind = PacketKind::kAck};
    const sim::Machine& machine = network_.machine();
    state.told_ps = network_.send(turn.at_ps, ack).arrived_ps + machine.interfaces.notice_ps +
                    machine.processor.poll_ps + machine.processor.put_ps;
    ++state.message;
    await_turn(turn.sender);
  }

  sim::Network& network_;
  std::vector<State> states_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::uint64_t end_ps_ = 0;
};

}  // namespace

sim::Machine get_machine(const char* name) {
  std::string why;
  auto machine = sim::load_machine(name, &why);
  return or_end(std::move(machine), why);
}

sim::Network make_network(const sim::Machine& machine, const char* nodes) {
  std::string why;
  auto layout = sim::lay_out(machine, nodes, &why);
  return {machine, or_end(std::move(layout), why)};
}

double put_us(sim::Network& network, std::uint32_t to, std::uint32_t bytes, PacketKind kind) {
  const Packet put{.from_node = 0, .to_node = to, .bytes = bytes, .kind = kind};
  return seen_us(network, network.send(network.machine().processor.put_ps, put).arrived_ps);
}

double get_us(sim::Network& network, std::uint32_t to, std::uint32_t bytes) {
  const Packet request{.from_node = 0, .to_node = to, .bytes = 0, .kind = PacketKind::kGetRequest};
  const std::uint64_t there_ps = network.send(network.machine().processor.get_ps, request).arrived_ps;
  const Packet reply{.from_node = to, .to_node = 0, .bytes = bytes, .kind = PacketKind::kGetReply};
  return seen_us(network, network.send(there_ps, reply).arrived_ps);
}

double atomic_us(sim::Network& network, std::uint32_t to) {
  const Packet request{.from_node = 0, .to_node = to, .bytes = 8, .kind = PacketKind::kAtomicRequest};
  const std::uint64_t there_ps = network.send(network.machine().processor.atomic_ps, request).arrived_ps;
  const Packet reply{.from_node = to, .to_node = 0, .bytes = 8, .kind = PacketKind::kAtomicReply};
  return seen_us(network, network.send(there_ps, reply).arrived_ps);
}

double ring_hop_us(sim::Network& network, std::uint32_t bytes) {
  const sim::ProcessorCosts& processor = network.machine().processor;
  const std::uint32_t count = network.node_count();
  std::uint64_t now_ps = 0;
  for (std::uint32_t node = 0; node < count; ++node) {
    const Packet put{.from_node = node, .to_node = (node + 1) % count, .bytes = bytes};
    now_ps = network.send(now_ps + processor.put_ps, put).arrived_ps;
    now_ps += network.machine().interfaces.notice_ps + processor.poll_ps;
  }
  return static_cast<double>(now_ps) / kPsPerUs / count;
}

double barrier_of_calls_us(sim::Network& network, std::uint32_t bytes) {
  const sim::Machine& machine = network.machine();
  std::vector<std::uint64_t> clocks_ps(network.node_count());
  for (std::uint32_t distance = 1; distance < clocks_ps.size(); distance *= 2) {
    // The network is called in the order of time.
    std::vector<std::uint32_t> order(clocks_ps.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return clocks_ps[a] < clocks_ps[b]; });
    std::vector<std::uint64_t> arrived_ps(clocks_ps.size());
    for (const std::uint32_t node : order) {
      clocks_ps[node] += machine.processor.put_ps;
      const Packet put{.from_node = node, .to_node = node ^ distance, .bytes = bytes};
      arrived_ps[put.to_node] = network.send(clocks_ps[node], put).arrived_ps;
    }
    for (std::uint32_t node = 0; node < clocks_ps.size(); ++node) {
      clocks_ps[node] = std::max(clocks_ps[node], arrived_ps[node] + machine.interfaces.notice_ps);
      clocks_ps[node] += machine.processor.poll_ps;
    }
  }
  return static_cast<double>(*std::max_element(clocks_ps.begin(), clocks_ps.end())) / kPsPerUs;
}

std::uint64_t run_senders(sim::Network& network, const std::vector<Sender>& senders) {
  return SendersRun(network, senders).run();
}

double stream_gb_s(sim::Network& network, const std::vector<std::uint32_t>& to, std::uint32_t bytes) {
  // So much of each interface that the beginning does not count.
  const std::uint32_t message_count = std::clamp((4u << 20) / bytes, 8u, 500u);
  const sim::ProcessorCosts& processor = network.machine().processor;
  std::vector<Sender> senders;
  for (std::uint32_t interface = 0; interface < to.size(); ++interface) senders.push_back({0, interface, {}});
  std::uint64_t now_ps = 0;
  for (std::uint32_t i = 0; i < message_count; ++i) {
    for (Sender& sender : senders) {
      now_ps += processor.put_ps;
      sender.messages.push_back({to[sender.interface], bytes, now_ps});
      now_ps += processor.poll_ps;  // Of what left earlier.
    }
  }
  const double total = static_cast<double>(bytes) * message_count * static_cast<double>(to.size());
  return total * 1000 / static_cast<double>(run_senders(network, senders));
}

double all_to_all_gb_s(sim::Network& network, std::uint32_t interface_count, std::uint32_t bytes, std::uint32_t times) {
  const std::uint32_t count = network.node_count();
  const std::uint32_t others = count - 1;
  std::vector<Sender> senders;
  for (std::uint32_t i = 0; i < count * interface_count; ++i)
    senders.push_back({i / interface_count, i % interface_count, {}, /*awaits_ack=*/true});
  for (std::uint32_t i = 0; i < times * others; ++i) {
    const std::uint32_t distance = i % others;
    for (std::uint32_t node = 0; node < count; ++node) {
      Sender& sender = senders[node * interface_count + distance * interface_count / others];
      sender.messages.push_back({(node + 1 + distance) % count, bytes, 0});
    }
  }
  const double total = static_cast<double>(bytes) * times * count * others;
  return total * 1000 / static_cast<double>(run_senders(network, senders));
}

}  // namespace portofu::machines
