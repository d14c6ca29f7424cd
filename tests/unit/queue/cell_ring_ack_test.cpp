// Acknowledgements beside the cells: in order, once, never more than there is room for.

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/support/test_ring.h"

namespace portofu {
namespace {

TEST(CellRingAck, Nothing__is_there_in_a_new_ring) {
  Ring ring(kSmall);
  EXPECT_FALSE(ring.producer.has_ack());
  EXPECT_EQ(ring.producer.take_ack(), 0u);
}

TEST(CellRingAck, Operations__come_in_order_and_once) {
  Ring ring(kSmall);
  for (const std::uint32_t id : {7u, 0xffffffffu, 7u}) ASSERT_TRUE(ring.consumer.acknowledge(id));
  EXPECT_TRUE(ring.producer.has_ack());
  EXPECT_EQ(ring.producer.take_ack(), 7u);
  EXPECT_EQ(ring.producer.take_ack(), 0xffffffffu);
  EXPECT_EQ(ring.producer.take_ack(), 7u);
  EXPECT_EQ(ring.producer.take_ack(), 0u);
  EXPECT_FALSE(ring.producer.has_ack());
}

TEST(CellRingAck, No_more_than_there_are_slots__until_a_quarter_is_taken) {
  Ring ring(kSmall);
  for (std::uint32_t i = 1; i <= kAckSlots; ++i) ASSERT_TRUE(ring.consumer.acknowledge(i));
  EXPECT_FALSE(ring.consumer.acknowledge(99));
  for (std::uint32_t i = 1; i < kAckSlots / 4; ++i) EXPECT_EQ(ring.producer.take_ack(), i);
  EXPECT_FALSE(ring.consumer.acknowledge(99));
  EXPECT_EQ(ring.producer.take_ack(), kAckSlots / 4);
  for (std::uint32_t i = 0; i < kAckSlots / 4; ++i) ASSERT_TRUE(ring.consumer.acknowledge(100 + i));
  EXPECT_FALSE(ring.consumer.acknowledge(99));
  for (std::uint32_t i = kAckSlots / 4 + 1; i <= kAckSlots; ++i) EXPECT_EQ(ring.producer.take_ack(), i);
  for (std::uint32_t i = 0; i < kAckSlots / 4; ++i) EXPECT_EQ(ring.producer.take_ack(), 100 + i);
  EXPECT_EQ(ring.producer.take_ack(), 0u) << "what the last lap has left is not taken for new";
}

TEST(CellRingAck, Cells__are_not_touched) {
  Ring ring(kSmall);
  ASSERT_TRUE(ring.send("first"));
  for (std::uint32_t i = 1; i <= kAckSlots; ++i) ASSERT_TRUE(ring.consumer.acknowledge(~i));
  ASSERT_TRUE(ring.send("second"));
  EXPECT_EQ(ring.receive(), "first");
  EXPECT_EQ(ring.receive(), "second");
}

TEST(CellRingAck, Two_threads__lose_and_double_none) {
  constexpr std::uint32_t kCount = 100000;
  Ring ring(kSmall);
  std::thread receiver([&ring] {
    for (std::uint32_t i = 1; i <= kCount;) {
      if (ring.consumer.acknowledge(i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::uint32_t i = 1; i <= kCount;) {
    const std::uint32_t id = ring.producer.take_ack();
    if (id == 0) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(id, i);
    ++i;
  }
  receiver.join();
}

}  // namespace
}  // namespace portofu
