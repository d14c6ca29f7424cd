#pragma once
// What the tests of the simulated wire send and receive: numbered packets with a payload that follows from the number.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "engine/topology/process_id.h"
#include "engine/wire/header.h"
#include "engine/wire/sim/sim_medium.h"
#include "engine/wire/sim/sim_wire.h"
#include "engine/wire/wire.h"

namespace portofu::sim_traffic {

/// Two processes of one node, and a network in which every mechanism is on.
inline constexpr ProcessId kAnne{1, 10};
inline constexpr ProcessId kBen{1, 11};
inline constexpr SimOptions kAll{.max_payload_bytes = 4096,
                                 .max_link_packets = 1000,
                                 .max_delay_polls = 0,
                                 .max_connect_in_progress = 0,
                                 .max_ack_slots = 1000,
                                 .max_lent_bytes = 4096,
                                 .shows_memory = true};

inline constexpr int kManyPolls = 100;  ///< More than any delay in these tests.

/// Connects, however long it is in progress.
inline Link* connect(SimWire& wire, ProcessId peer) {
  Link* link = nullptr;
  for (int attempt = 0; attempt < kManyPolls; ++attempt) {
    const ConnectResult result = wire.connect(peer, &link);
    if (result == ConnectResult::kConnected) return link;
    EXPECT_EQ(result, ConnectResult::kInProgress);
  }
  ADD_FAILURE() << "never connected";
  return nullptr;
}

/// Sends packet `number`.
/// @return false if there was no room
inline bool send(SimWire& wire, Link& link, std::uint32_t number, std::uint32_t payload_bytes = 8) {
  std::byte* room = wire.claim(link, payload_bytes);
  if (room == nullptr) return false;
  std::memset(room, static_cast<int>(number & 0xff), payload_bytes);
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.operation_id = number;
  header.payload_bytes = payload_bytes;
  wire.publish(link, header);
  return true;
}

/// A packet that was received and released.
struct Received {
  ProcessId source;
  std::uint32_t number;
  bool payload_right;

  friend bool operator==(const Received&, const Received&) = default;
};

/// Takes the packet that one poll offers, if any.
inline std::optional<Received> receive(SimWire& wire) {
  Packet packet;
  if (!wire.peek(packet)) return std::nullopt;
  const std::byte expected = static_cast<std::byte>(packet.header.operation_id);
  const bool payload_right = std::all_of(packet.payload.here(), packet.payload.here() + packet.header.payload_bytes,
                                         [=](std::byte byte) { return byte == expected; });
  const Received received{packet.source, packet.header.operation_id, payload_right};
  wire.release();
  return received;
}

/// Takes everything that comes within many polls.
inline std::vector<Received> receive_all(SimWire& wire) {
  std::vector<Received> all;
  for (int idle_polls = 0; idle_polls < kManyPolls; ++idle_polls) {
    while (const auto received = receive(wire)) {
      all.push_back(*received);
      idle_polls = 0;
    }
  }
  return all;
}

/// Packets first .. last - 1 of a source, in order.
inline std::vector<Received> numbered(ProcessId source, std::uint32_t first, std::uint32_t last) {
  std::vector<Received> all;
  for (std::uint32_t number = first; number < last; ++number) all.push_back({source, number, true});
  return all;
}

}  // namespace portofu::sim_traffic
