#pragma once
// Processes of a test that live in one process: each has a segment and a wire. They die when they are told to.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "engine/observe/counters.h"
#include "engine/wire/shm/shm_wire.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {

/// A segment and the wire on it.
struct WirePeer {
  explicit WirePeer(const SegmentOptions& options) {
    SegmentError error{};
    std::string why;
    segment = ProcessSegment::create(options, &error, &why);
    if (segment == nullptr) throw std::runtime_error(why);
    wire = std::make_unique<ShmWire>(*segment);
  }

  ProcessId id() const { return segment->id(); }
  std::uint64_t counter(Counter which) const { return Counters(segment->counters()).get(which); }

  Link* connect(const WirePeer& to) {
    Link* link = nullptr;
    EXPECT_EQ(wire->connect(to.id(), &link), ConnectResult::kConnected);
    return link;
  }

  /// @return false if there is no room
  bool send(Link* link, const std::string& payload, std::uint64_t hdr_data = 0) {
    std::byte* room = wire->claim(*link, static_cast<std::uint32_t>(payload.size()));
    if (room == nullptr) return false;
    std::memcpy(room, payload.data(), payload.size());
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    header.hdr_data = hdr_data;
    wire->publish(*link, header);
    return true;
  }

  /// @return nothing if no packet is there
  std::optional<std::string> receive(Packet* seen = nullptr) {
    Packet packet;
    if (!wire->peek(packet)) return std::nullopt;
    std::string text(reinterpret_cast<const char*>(packet.payload.here()), packet.header.payload_bytes);
    if (seen != nullptr) *seen = packet;
    wire->release();
    return text;
  }

  /// Is dead for everybody without having closed its channels, as if killed.
  void die() { segment.reset(); }

  std::unique_ptr<ProcessSegment> segment;
  std::unique_ptr<ShmWire> wire;
};

}  // namespace portofu
