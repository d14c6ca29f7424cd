#pragma once
// Reliable wires over a lossy network, and numbered packets on them whose payload follows from the number.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/wire/reliable/reliable_wire.h"
#include "engine/wire/sim/lossy_network.h"

namespace portofu::reliable_test {

inline constexpr std::uint64_t kMillisecond = 1'000'000;
inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr LinkFigures kLink{.latency_ns = 2000, .bytes_per_us = 10'000};

/// A bit of everything.
inline LossyOptions bad_network() {
  LossyOptions options;
  options.loss = 100;
  options.duplicates = 50;
  options.damaged = 10;
  options.reordered = 200;
  return options;
}

/// A packet that a process has taken.
struct Taken {
  ProcessId source;
  std::uint32_t number;
  bool answer;
};

/// One process: its wire, what it has taken, and which sources were closed.
struct Party {
  ProcessId id;
  std::unique_ptr<ReliableWire> wire;
  CountersShared counters{};
  std::vector<Taken> taken;
  std::vector<ProcessId> closed;
  std::uint64_t life = 0;
  bool stopped = false;  ///< Nobody calls its wire.

  std::uint64_t count(Counter which) { return Counters(counters).get(which); }
};

/// Everything in virtual time, decided by one seed.
struct ReliableWorld {
  explicit ReliableWorld(const LossyOptions& options = {}, std::uint64_t seed = 1, std::uint32_t nodes = 4)
      : network(seed, Topology::crossbar(nodes, kLink), options), random(seed + 1), parties(nodes) {
    for (std::uint32_t i = 0; i < nodes; ++i) start(i);
  }

  void start(std::uint32_t i) {
    Party& party = parties[i];
    party.id = {1, 100 + i};
    party.life = random.next();
    party.wire = std::make_unique<ReliableWire>(network.attach(party.id, i), ReliableOptions{.life = party.life},
                                                Counters(party.counters));
  }

  /// Ends it as kill -9 does; its wire says nothing any more.
  void kill(std::uint32_t i) {
    network.kill(parties[i].id);
    parties[i].wire.reset();
  }

  /// Takes what is there, and looks after the dead if it is time.
  void look(Party& party) {
    if (party.wire == nullptr || party.stopped) return;
    Packet packet;
    while (party.wire->peek(packet)) {
      packet.source_context->engines = &party;
      std::uint32_t payload_ok = 1;
      for (std::uint32_t i = 0; i < packet.header.payload_bytes; ++i)
        payload_ok &= packet.payload.here()[i] == static_cast<std::byte>(packet.header.operation_id + i) ? 1u : 0u;
      EXPECT_EQ(payload_ok, 1u) << "payload of packet " << packet.header.operation_id;
      party.taken.push_back({packet.source, packet.header.operation_id, is_of_answer(packet.header)});
      party.wire->release();
    }
    ProcessId source;
    void* context = nullptr;
    while (party.wire->take_closed_source(&source, &context)) party.closed.push_back(source);
  }

  /// Runs for a while of virtual time; peers are checked ten times a second if `checks`.
  void run(std::uint64_t for_ns, bool checks = false) {
    const std::uint64_t end_ns = network.now_ns() + for_ns;
    while (network.now_ns() < end_ns) {
      for (Party& party : parties) look(party);
      std::uint64_t next_ns = std::min(end_ns, network.next_event_ns());
      for (const Party& party : parties) {
        if (party.wire != nullptr && !party.stopped) next_ns = std::min(next_ns, party.wire->next_due_ns());
      }
      if (checks) {
        if (network.now_ns() >= next_check_ns) {
          for (Party& party : parties) {
            if (party.wire != nullptr && !party.stopped) party.wire->check_peers();
          }
          next_check_ns = network.now_ns() + 100 * kMillisecond;
        }
        next_ns = std::min(next_ns, next_check_ns);
      }
      network.advance(std::max(next_ns, network.now_ns() + 1));
    }
    for (Party& party : parties) look(party);
  }

  /// Runs until nothing is under way between those that live.
  bool settle(std::uint64_t limit_ns = 60 * kSecond) {
    const std::uint64_t end_ns = network.now_ns() + limit_ns;
    while (network.now_ns() < end_ns) {
      run(kMillisecond);
      const bool settled = std::all_of(parties.begin(), parties.end(), [](const Party& party) {
        return party.wire == nullptr || party.wire->is_settled();
      });
      if (settled) return true;
    }
    return false;
  }

  /// Connects, however long it takes, up to a second.
  Link* connect(std::uint32_t from, std::uint32_t to) {
    Link* link = nullptr;
    for (int i = 0; i < 1000; ++i) {
      const ConnectResult result = parties[from].wire->connect(parties[to].id, &link);
      if (result == ConnectResult::kConnected) return link;
      if (result == ConnectResult::kNoSuchPeer) return nullptr;
      run(kMillisecond);
    }
    return nullptr;
  }

  /// @return false if there is no room
  bool send(std::uint32_t from, Link& link, std::uint32_t number, bool answer = false, std::uint32_t bytes = 24) {
    ReliableWire& wire = *parties[from].wire;
    std::byte* room = answer ? wire.claim_answer(link, bytes) : wire.claim(link, bytes);
    if (room == nullptr) return false;
    for (std::uint32_t i = 0; i < bytes; ++i) room[i] = static_cast<std::byte>(number + i);
    PacketHeader header{};
    header.type = answer ? PacketType::kAnswer : PacketType::kPut;
    header.operation_id = number;
    header.payload_bytes = bytes;
    wire.publish(link, header);
    return true;
  }

  /// Sends packets first .. last - 1, waiting for room.
  void send_all(std::uint32_t from, Link& link, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t number = first; number < last && !link.lost;) {
      if (send(from, link, number, false, number % 7 == 0 ? 4096 : number % 100)) {
        ++number;
      } else {
        run(kMillisecond / 10);
      }
    }
  }

  /// Whether a process has taken exactly the packets first .. last - 1 from another, in order, since the last call.
  void expect_taken(std::uint32_t at, std::uint32_t from, std::uint32_t first, std::uint32_t last) {
    std::vector<std::uint32_t> numbers;
    for (const Taken& one : parties[at].taken) {
      if (one.source == parties[from].id) numbers.push_back(one.number);
    }
    ASSERT_EQ(numbers.size(), last - first);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], first + i);
    std::erase_if(parties[at].taken, [&](const Taken& one) { return one.source == parties[from].id; });
  }

  LossyNetwork network;
  SimRandom random;
  std::vector<Party> parties;
  std::uint64_t next_check_ns = 0;
};

}  // namespace portofu::reliable_test
