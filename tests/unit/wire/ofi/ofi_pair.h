#pragma once
// OfiWires of two nodes in one process, at two addresses of the test's own.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/wire/ofi/ofi_wire.h"
#include "tests/process/test_network.h"
#include "tests/support/eventually.h"

namespace portofu {

inline const std::uint32_t kNodeA = test_network() + 2;
inline const std::uint32_t kNodeB = test_network() + 3;

/// The first of kTestPids ports that no other test uses at the same time, most likely; they are PIDs, too. Tests that
/// start together have neighbouring process numbers.
inline constexpr std::uint32_t kTestPids = 4;
inline std::uint32_t test_pid() {
  static const auto number = static_cast<std::uint32_t>(getpid());  // Children keep it.
  return 10000 + number % 5000 * kTestPids;
}

inline OfiOptions ofi_options(std::uint32_t nid, std::uint64_t life = 1) {
  OfiOptions options;
  options.self = {nid, test_pid()};
  options.life = life;
  options.job_key = 77;
  options.uid = geteuid();
  return options;
}

/// A wire and what it counts.
struct OfiEnd {
  explicit OfiEnd(const OfiOptions& options)
      : id(options.self), wire(std::make_unique<OfiWire>(options, Counters(*shared))) {
    std::string why;
    EXPECT_TRUE(wire->open(&why)) << why;
  }

  std::uint64_t count(Counter counter) const { return Counters(*shared).get(counter); }

  /// Takes a packet, as an engine does. @return false if there is none
  bool take(std::vector<std::uint64_t>* hdr_data) {
    Packet packet;
    if (!wire->peek(packet)) return false;
    hdr_data->push_back(packet.header.hdr_data);
    last_payload.assign(packet.payload.here(), packet.payload.here() + packet.header.payload_bytes);
    last_source = packet.source;
    wire->release();
    return true;
  }

  std::unique_ptr<CountersShared> shared = std::make_unique<CountersShared>();
  ProcessId id;
  std::unique_ptr<OfiWire> wire;
  std::vector<std::byte> last_payload;
  ProcessId last_source;
};

/// Connects; the other end has to look meanwhile.
inline Link* connect(OfiEnd& from, OfiEnd& to) {
  Link* link = nullptr;
  const bool connected = eventually([&] {
    to.wire->has_packets();
    return from.wire->connect(to.id, &link) == ConnectResult::kConnected;
  });
  EXPECT_TRUE(connected);
  return link;
}

/// @return false if there is no room
inline bool send(OfiEnd& from, Link& link, std::uint64_t hdr_data, const std::string& payload = "") {
  std::byte* room = from.wire->claim(link, static_cast<std::uint32_t>(payload.size()));
  if (room == nullptr) return false;
  std::memcpy(room, payload.data(), payload.size());
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.hdr_data = hdr_data;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.uid = geteuid();
  from.wire->publish(link, header);
  return true;
}

}  // namespace portofu
