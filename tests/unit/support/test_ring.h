#pragma once
// A ring of cells and both of its ends in one process, for the tests of queue/cell_ring.h.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/queue/cell_ring.h"
#include "engine/wire/header.h"

namespace portofu {

inline constexpr RingGeometry kSmall{8, 1024, 512};

/// Memory of exactly one ring, so that AddressSanitizer sees every step outside.
class RingMemory {
 public:
  explicit RingMemory(const RingGeometry& ring) : bytes_(ring.bytes()) {
    memory_ = static_cast<std::byte*>(std::aligned_alloc(128, bytes_));
    std::memset(memory_, 0, bytes_);
  }
  ~RingMemory() { std::free(memory_); }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;
  std::byte* get() { return memory_; }

 private:
  std::size_t bytes_;
  std::byte* memory_;
};

/// A ring and both of its ends.
struct Ring {
  explicit Ring(const RingGeometry& sizes = {})
      : memory(sizes), view(memory.get(), sizes), producer(view), consumer(view) {}

  /// @return false if there is no room
  bool send(const std::string& payload, std::uint64_t hdr_data = 0) {
    std::byte* room = producer.claim(static_cast<std::uint32_t>(payload.size()));
    if (room == nullptr) return false;
    std::memcpy(room, payload.data(), payload.size());
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.hdr_data = hdr_data;
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    producer.publish(header);
    return true;
  }

  std::string receive(std::uint64_t* hdr_data = nullptr) {
    PacketHeader header{};
    const std::byte* payload = nullptr;
    EXPECT_TRUE(consumer.ready());
    EXPECT_EQ(consumer.take(header, &payload), TakeResult::kPacket);
    std::string text(reinterpret_cast<const char*>(payload), header.payload_bytes);
    if (hdr_data != nullptr) *hdr_data = header.hdr_data;
    consumer.release();
    return text;
  }

  RingMemory memory;
  RingView view;
  CellProducer<PacketHeader> producer;
  CellConsumer<PacketHeader> consumer;
};

}  // namespace portofu
