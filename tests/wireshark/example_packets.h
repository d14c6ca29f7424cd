#pragma once
// An exchange between two processes that has every type of packet, and what can go wrong. The values differ from field
// to field, so that a field that is read from another's place shows.

#include <cstdint>
#include <vector>

#include "engine/wire/header.h"
#include "tests/wireshark/ip_capture.h"

namespace portofu::wireshark {

inline constexpr ProcessId kAsks{0x0a000001, 1001};     ///< Who asks.
inline constexpr ProcessId kAnswers{0x0a000002, 1002};  ///< Who is asked.
inline constexpr std::uint32_t kUid = 1000;
inline constexpr std::uint32_t kJobKey = 0x4a4b4c4d;

struct ExamplePacket {
  bool of_asker = true;  ///< Who sends it.
  PacketHeader header{};
  Bytes payload;
};

/// Header and payload, as they lie on a wire.
Bytes whole(const ExamplePacket& packet);

/// A put of one packet that nobody answers.
ExamplePacket example_put(std::uint32_t bytes);

/// All of them, in order.
std::vector<ExamplePacket> example_packets();

}  // namespace portofu::wireshark
