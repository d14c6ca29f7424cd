// Both ends of a ring in one process: contents, order, room, and what each end does when the other one lies.

#include "engine/queue/cell_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <thread>

#include "tests/unit/support/test_ring.h"

namespace portofu {
namespace {

std::string text_of(std::size_t bytes, std::uint64_t seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(seed * 31 + i * 7);
  return text;
}

TEST(CellRing, New_ring__is_empty) {
  Ring ring;
  EXPECT_FALSE(ring.consumer.ready());
  EXPECT_FALSE(ring.consumer.publish_released());
}

TEST(CellRing, Header__arrives_whole) {
  Ring ring;
  PacketHeader sent{};
  std::memset(static_cast<void*>(&sent), 0x5a, sizeof sent);
  sent.payload_bytes = 0;
  ASSERT_NE(ring.producer.claim(0), nullptr);
  ring.producer.publish(sent);
  PacketHeader received{};
  const std::byte* payload = nullptr;
  ASSERT_TRUE(ring.consumer.ready());
  ASSERT_EQ(ring.consumer.take(received, &payload), TakeResult::kPacket);
  EXPECT_EQ(std::memcmp(&sent, &received, 60), 0);
}

TEST(CellRing, Payload__of_every_length_arrives) {
  Ring ring(kSmall);
  for (std::uint32_t bytes = 0; bytes <= kSmall.max_payload_bytes; ++bytes) {
    ASSERT_TRUE(ring.send(text_of(bytes, bytes))) << bytes;
    ASSERT_EQ(ring.receive(), text_of(bytes, bytes));
    ring.consumer.publish_released();
  }
}

TEST(CellRing, Claim__gives_whole_lines) {
  Ring ring;
  for (const std::uint32_t bytes : {0u, 1u, 64u, 65u, 8192u}) {
    std::byte* room = ring.producer.claim(bytes);
    ASSERT_NE(room, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 64, 0u);
    ring.producer.discard();
  }
}

TEST(CellRing, Try_claim_inline__does_not_look_for_room) {
  Ring ring(kSmall);
  PacketHeader header{};
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) {
    ASSERT_NE(ring.producer.try_claim_inline(0), nullptr) << i;
    ring.producer.publish(header);
  }
  EXPECT_EQ(ring.producer.try_claim_inline(0), nullptr);
  EXPECT_FALSE(ring.producer.waits_for_room());
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_EQ(ring.receive(), "");
  ring.consumer.publish_released();
  EXPECT_EQ(ring.producer.try_claim_inline(0), nullptr);  // It is there, and not known to be.
  ASSERT_NE(ring.producer.claim(kInlineBytes), nullptr);
  ring.producer.discard();
  ASSERT_NE(ring.producer.try_claim_inline(kInlineBytes), nullptr);
}

TEST(CellRing, Discard__leaves_no_trace) {
  Ring ring(kSmall);
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(ring.producer.claim(512), nullptr);
    ring.producer.discard();
  }
  EXPECT_FALSE(ring.consumer.ready());
  ASSERT_TRUE(ring.send("after"));
  EXPECT_EQ(ring.receive(), "after");
}

TEST(CellRing, Publish__of_less_than_claimed_gives_the_rest_back) {
  Ring ring(kSmall);
  for (const std::uint32_t used : {0u, 1u, 64u, 65u, 300u}) {
    std::byte* room = ring.producer.claim(512);
    ASSERT_NE(room, nullptr);
    const std::string text = text_of(used, used);
    std::memcpy(room, text.data(), used);
    PacketHeader header{};
    header.payload_bytes = used;
    ring.producer.publish(header);
    EXPECT_EQ(ring.receive(), text);
    ring.consumer.publish_released();
  }
}

TEST(CellRing, Full_of_cells__refuses_until_some_come_back) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x", i));
  EXPECT_FALSE(ring.consumer.producer_wants_room());
  EXPECT_FALSE(ring.send("too much"));
  EXPECT_TRUE(ring.consumer.producer_wants_room());
  EXPECT_FALSE(ring.producer.has_room_again());
  EXPECT_FALSE(ring.producer.has_cell());
  ring.receive();
  EXPECT_FALSE(ring.producer.has_room_again()) << "less than a quarter is withheld";
  ring.receive();
  EXPECT_TRUE(ring.producer.has_cell());
  EXPECT_TRUE(ring.producer.has_room_again());
  EXPECT_FALSE(ring.consumer.producer_wants_room());
  EXPECT_TRUE(ring.send("now"));
}

TEST(CellRing, Full_of_data__refuses_long_payloads_only) {
  Ring ring(kSmall);
  ASSERT_TRUE(ring.send(text_of(512, 1)));
  ASSERT_TRUE(ring.send(text_of(512, 2)));
  EXPECT_FALSE(ring.send(text_of(65, 3)));
  EXPECT_TRUE(ring.send(text_of(64, 4)));
  EXPECT_EQ(ring.receive(), text_of(512, 1)) << "a quarter of the data area: its room comes back at once";
  EXPECT_TRUE(ring.send(text_of(65, 3)));
}

TEST(CellRing, Withheld_room__comes_back_when_the_receiver_runs_dry) {
  Ring ring(kSmall);
  ring.send("x");
  ring.receive();
  EXPECT_TRUE(ring.consumer.withholds_room());
  EXPECT_TRUE(ring.consumer.publish_released());
  EXPECT_FALSE(ring.consumer.withholds_room());
}

TEST(CellRing, Claim__that_succeeds_ends_the_wait_for_room) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x"));
  ASSERT_FALSE(ring.send("x"));
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ring.receive();
  EXPECT_TRUE(ring.send("x"));
  EXPECT_FALSE(ring.producer.waits_for_room());
  EXPECT_FALSE(ring.consumer.producer_wants_room());
}

TEST(CellRing, Laps__beyond_the_range_of_the_sequence_word_stay_apart) {
  Ring ring(kSmall);
  for (std::uint64_t i = 0; i < 3 * 65536 + 5; ++i) {
    ASSERT_FALSE(ring.consumer.ready()) << "a packet of an old lap looks new at " << i;
    ASSERT_TRUE(ring.send("", i));
    std::uint64_t seen = 0;
    ring.receive(&seen);
    ASSERT_EQ(seen, i);
    ring.consumer.publish_released();
  }
}

TEST(CellRing, Random_traffic__arrives_as_sent) {
  const unsigned seed = std::getenv("SEED") != nullptr ? static_cast<unsigned>(std::atoi(std::getenv("SEED"))) : 1;
  SCOPED_TRACE("SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&random] { return static_cast<std::uint32_t>(random()); };
  for (const RingGeometry& sizes : {kSmall, RingGeometry{}, RingGeometry{4, 128, 64}, RingGeometry{64, 4096, 2048}}) {
    Ring ring(sizes);
    std::deque<std::string> expected;
    for (int step = 0; step < 20000; ++step) {
      if (random() % 2 == 0) {
        const std::uint32_t bytes = draw() % 3 == 0 ? draw() % (sizes.max_payload_bytes + 1) : draw() % 70;
        const std::string text = text_of(std::min(bytes, sizes.max_payload_bytes), random());
        if (ring.send(text)) expected.push_back(text);
      } else if (!expected.empty()) {
        ASSERT_EQ(ring.receive(), expected.front());
        expected.pop_front();
      } else {
        ASSERT_FALSE(ring.consumer.ready());
        ring.consumer.publish_released();
        ASSERT_TRUE(ring.producer.claim(sizes.max_payload_bytes) != nullptr) << "an empty ring has room for everything";
        ring.producer.discard();
      }
    }
  }
}

// What a lying sender may write into the cell at the front. Only the header's line may have been touched.
TakeResult take_after(std::uint32_t payload_bytes, std::uint32_t granule_plus_one) {
  Ring ring(kSmall);
  CellShared& cell = ring.view.cells[0];
  PacketHeader header{};
  header.payload_bytes = payload_bytes;
  std::memcpy(cell.head, &header, sizeof cell.head);
  cell.wire_word.store(granule_plus_one << 16 | lap_of(0), std::memory_order_release);
  const std::byte* payload = nullptr;
  EXPECT_TRUE(ring.consumer.ready());
  return ring.consumer.take(header, &payload);
}

TEST(CellRing, Lying_sender__is_found_out) {
  EXPECT_EQ(take_after(64, 0), TakeResult::kPacket);
  EXPECT_EQ(take_after(65, 0), TakeResult::kLie);
  EXPECT_EQ(take_after(0xffffffff, 0), TakeResult::kLie);
  EXPECT_EQ(take_after(512, 1), TakeResult::kPacket);
  EXPECT_EQ(take_after(513, 1), TakeResult::kLie);
  EXPECT_EQ(take_after(0xffffffff, 1), TakeResult::kLie);
  EXPECT_EQ(take_after(512, 9), TakeResult::kPacket) << "ends where the data area ends";
  EXPECT_EQ(take_after(512, 10), TakeResult::kLie);
  EXPECT_EQ(take_after(64, 16), TakeResult::kPacket);
  EXPECT_EQ(take_after(65, 16), TakeResult::kLie);
  EXPECT_EQ(take_after(0, 0xfffe), TakeResult::kLie);
  EXPECT_EQ(take_after(1, 0xfffe), TakeResult::kLie);
  EXPECT_EQ(take_after(8, kInHeader), TakeResult::kPacket);
  EXPECT_EQ(take_after(9, kInHeader), TakeResult::kLie);
  EXPECT_EQ(take_after(0xffffffff, kInHeader), TakeResult::kLie);
}

TEST(CellRing, Short_payload__arrives_whole_whatever_the_length_of_its_message) {
  for (std::uint32_t bytes = 0; bytes <= 9; ++bytes) {
    for (const std::uint64_t length : {std::uint64_t{bytes}, std::uint64_t{0}, std::uint64_t{1} << 40}) {
      Ring ring(kSmall);
      std::byte* room = ring.producer.claim(bytes);
      for (std::uint32_t i = 0; i < bytes; ++i) room[i] = std::byte(0xf0 + i);
      PacketHeader sent{};
      sent.payload_bytes = bytes;
      sent.length = length;
      ring.producer.publish(sent);
      PacketHeader header{};
      const std::byte* payload = nullptr;
      ASSERT_EQ(ring.consumer.take(header, &payload), TakeResult::kPacket);
      EXPECT_EQ(header.payload_bytes, bytes);
      EXPECT_EQ(header.length, length);
      for (std::uint32_t i = 0; i < bytes; ++i) EXPECT_EQ(payload[i], std::byte(0xf0 + i));
      EXPECT_TRUE(ring.view.cells[0].wire_word.load() >> 16 == (length == bytes && bytes <= 8 ? kInHeader : 0u));
    }
  }
}

TEST(CellRing, Random_bytes__never_lead_outside) {
  std::mt19937 random(7);
  const auto draw = [&random] { return static_cast<std::uint32_t>(random()); };
  std::uint64_t sum = 0;
  for (int round = 0; round < 2000; ++round) {
    Ring ring(kSmall);
    for (std::size_t i = kRingControlBytes; i < kSmall.bytes(); ++i) ring.memory.get()[i] = std::byte(random());
    for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) {
      CellShared& cell = ring.view.cells[i];
      const std::uint32_t granule = random() % 8 == 0 ? kInHeader : random() % 24;
      const std::uint32_t word = granule << 16 | lap_of(i);
      cell.wire_word.store(word, std::memory_order_relaxed);
      const std::uint32_t bytes = draw() % 2 == 0 ? draw() % 700 : draw();
      std::memcpy(cell.head + offsetof(PacketHeader, payload_bytes), &bytes, sizeof bytes);
    }
    PacketHeader header{};
    const std::byte* payload = nullptr;
    while (ring.consumer.ready() && ring.consumer.take(header, &payload) == TakeResult::kPacket) {
      for (std::uint32_t i = 0; i < header.payload_bytes; ++i) sum += std::to_integer<unsigned>(payload[i]);
      ring.consumer.release();
    }
  }
  EXPECT_NE(sum, 0u);
}

TEST(CellRing, Lying_receiver__is_found_out) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x"));
  ring.view.control->released.store(kSmall.cell_count + 1, std::memory_order_release);
  EXPECT_FALSE(ring.send("x"));
  EXPECT_TRUE(ring.producer.receiver_lied());
}

TEST(CellRing, Receiver_that_takes_room_back__is_found_out) {
  Ring ring(kSmall);
  for (std::uint32_t i = 0; i < kSmall.cell_count; ++i) ASSERT_TRUE(ring.send("x"));
  for (std::uint32_t i = 0; i < 4; ++i) ring.receive();
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(ring.send("x"));
  ring.view.control->released.store(1, std::memory_order_release);
  EXPECT_FALSE(ring.send("x"));
  EXPECT_TRUE(ring.producer.receiver_lied());
}

TEST(CellRing, Two_threads__hand_over_whole_packets) {
  constexpr std::uint64_t kMessages = 30000;
  Ring ring;
  std::thread sender([&ring] {
    for (std::uint64_t i = 0; i < kMessages;) {
      if (ring.send(text_of(i % 7 == 0 ? 1000 + i % 3000 : i % 65, i), i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::uint64_t i = 0; i < kMessages;) {
    if (!ring.consumer.ready()) {
      ring.consumer.publish_released();
      std::this_thread::yield();
      continue;
    }
    std::uint64_t seen = 0;
    const std::string text = ring.receive(&seen);
    EXPECT_EQ(seen, i);
    EXPECT_EQ(text, text_of(i % 7 == 0 ? 1000 + i % 3000 : i % 65, i));
    ++i;
  }
  sender.join();
}

}  // namespace
}  // namespace portofu
