// Event queues: order, overflow, places kept for flow control, promises, memory.

#include "engine/event/event_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <unistd.h>
#include <array>

#include <cstdio>

namespace portofu {
namespace {

constexpr bool kAfterLoss = true;

class EventQueueTest : public testing::Test {
 protected:
  static Event numbered(std::uint64_t number) {
    Event event;
    event.hdr_data = number;
    return event;
  }
  static Event disabled(std::uint64_t number) {
    Event event = numbered(number);
    event.type = EventKind::kPtDisabled;
    return event;
  }
  /// @return false if the oldest event had to go
  bool post(std::uint64_t number) {
    const bool lost = queue.is_blocked() && queue.make_way_on_duty();
    queue.append_on_duty() = numbered(number);
    return !lost;
  }

  void expect_taken(std::uint64_t number, bool after_loss = false) {
    ASSERT_FALSE(queue.empty()) << number;
    EXPECT_EQ(queue.oldest_on_duty().hdr_data, number);
    EXPECT_EQ(queue.remove_oldest_on_duty(), after_loss) << number;
  }
  void expect_empty() { EXPECT_TRUE(queue.empty()); }

  EventQueue queue;
};

TEST_F(EventQueueTest, Events__come_out_in_the_order_of_posting) {
  ASSERT_TRUE(queue.open(4));
  expect_empty();
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(post(i));
  EXPECT_FALSE(queue.empty());
  for (std::uint64_t i = 0; i < 4; ++i) expect_taken(i);
  expect_empty();
}

TEST_F(EventQueueTest, Ring__goes_round_and_round) {
  ASSERT_TRUE(queue.open(3));
  post(0);
  for (std::uint64_t i = 1; i < 100; ++i) {
    post(i);
    expect_taken(i - 1);
  }
  expect_taken(99);
  expect_empty();
}

TEST_F(EventQueueTest, Full__loses_the_oldest_and_says_so_once) {
  ASSERT_TRUE(queue.open(3));
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(post(i));
  EXPECT_FALSE(post(3));
  EXPECT_FALSE(post(4));
  expect_taken(2, kAfterLoss);
  expect_taken(3);
  EXPECT_TRUE(post(5));
  expect_taken(4);
  expect_taken(5);
  expect_empty();
}

TEST_F(EventQueueTest, Count_0__is_taken_as_1) {
  ASSERT_TRUE(queue.open(0));
  EXPECT_EQ(queue.capacity(), 1u);
  EXPECT_TRUE(post(0));
  EXPECT_FALSE(post(1));
  expect_taken(1, kAfterLoss);
}

TEST_F(EventQueueTest, Capacity__is_the_count_or_generously_more) {
  ASSERT_TRUE(queue.open(EventQueue::kGenerousFrom - 1));
  EXPECT_EQ(queue.capacity(), EventQueue::kGenerousFrom - 1);
  queue.close();
  ASSERT_TRUE(queue.open(EventQueue::kGenerousFrom));
  EXPECT_EQ(queue.capacity(), EventQueue::kGenerousFrom + EventQueue::kGenerosity);
}

TEST_F(EventQueueTest, Open__refuses_more_than_its_limit) {
  EXPECT_FALSE(queue.open(EventQueue::kMaxCount + 1));
  EXPECT_FALSE(queue.open(UINT64_MAX));
}

std::uint64_t resident_bytes() {
  unsigned long long size = 0;
  unsigned long long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%llu %llu", &size, &resident) != 2) ADD_FAILURE() << "statm cannot be read";
  if (file != nullptr) std::fclose(file);
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(EventQueueTest, Generous_queue__takes_no_memory_before_it_holds_events) {
  const std::uint64_t before = resident_bytes();
  ASSERT_TRUE(queue.open(65536));  // Some 600 MB of room.
  EXPECT_LT(resident_bytes(), before + (std::uint64_t{64} << 20));
}

TEST_F(EventQueueTest, Close__gives_up_everything_and_open_begins_anew) {
  ASSERT_TRUE(queue.open(2));
  for (std::uint64_t i = 0; i < 3; ++i) post(i);
  queue.promise_on_duty(1);
  queue.close();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.capacity(), 0u);
  ASSERT_TRUE(queue.open(2));
  EXPECT_TRUE(queue.has_room_on_duty(2)) << "no promise is left";
  post(7);
  expect_taken(7);  // And no sign of the loss before.
}

TEST_F(EventQueueTest, Room__is_what_neither_events_nor_promises_take) {
  ASSERT_TRUE(queue.open(4));
  EXPECT_TRUE(queue.has_room_on_duty(4));
  EXPECT_FALSE(queue.has_room_on_duty(5));
  queue.promise_on_duty(2);
  EXPECT_TRUE(queue.has_room_on_duty(2));
  EXPECT_FALSE(queue.has_room_on_duty(3));
  post(0);
  EXPECT_TRUE(queue.has_room_on_duty(1));
  EXPECT_FALSE(queue.has_room_on_duty(2));
  queue.withdraw_promise_on_duty(2);
  EXPECT_TRUE(queue.has_room_on_duty(3));
  expect_taken(0);
  EXPECT_TRUE(queue.has_room_on_duty(4));
}

TEST_F(EventQueueTest, Held_room__is_there_although_others_have_taken_it) {
  ASSERT_TRUE(queue.open(3));  // In four slots.
  ASSERT_TRUE(queue.reserve_on_duty());
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(post(i));
  EXPECT_TRUE(queue.hold_on_duty(2));
  EXPECT_TRUE(post(3));
  EXPECT_TRUE(post(4));
  queue.let_go_on_duty();
  EXPECT_FALSE(queue.has_room_on_duty(0));
  queue.post_reserved_on_duty(disabled(5));
  for (std::uint64_t i = 0; i < 6; ++i) expect_taken(i);
  expect_empty();
  EXPECT_TRUE(queue.has_room_on_duty(3));
  EXPECT_FALSE(queue.has_room_on_duty(4)) << "it holds no more than before";
}

TEST_F(EventQueueTest, Held_room__is_gone_when_it_is_let_go) {
  ASSERT_TRUE(queue.open(2));
  EXPECT_TRUE(post(0));
  EXPECT_TRUE(queue.hold_on_duty(2)) << "one more would fit";
  EXPECT_TRUE(post(1));
  queue.let_go_on_duty();
  EXPECT_FALSE(post(2)) << "although what was held was not used";
  EXPECT_TRUE(queue.hold_on_duty(1));
  EXPECT_TRUE(post(3));
  queue.let_go_on_duty();
  EXPECT_FALSE(post(4));
  expect_taken(2, kAfterLoss);
  expect_taken(3);
  expect_taken(4);
}

TEST_F(EventQueueTest, Held_room__is_not_needed_where_there_is_room) {
  ASSERT_TRUE(queue.open(2));
  EXPECT_FALSE(queue.hold_on_duty(2));
  EXPECT_TRUE(post(0));
  EXPECT_FALSE(queue.hold_on_duty(1));
}

// Each time the slots are used up, also by what was held, PT_DISABLED finds a place.
TEST_F(EventQueueTest, Held_room__takes_no_place_of_PT_DISABLED) {
  ASSERT_TRUE(queue.open(1));
  ASSERT_TRUE(queue.reserve_on_duty());
  std::uint64_t next = 0;
  post(next++);
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(queue.hold_on_duty(1));
    EXPECT_TRUE(post(next++));
    queue.let_go_on_duty();
    queue.post_reserved_on_duty(disabled(next++));
  }
  for (std::uint64_t i = 0; i < next; ++i) expect_taken(i);
  expect_empty();
  EXPECT_TRUE(queue.has_room_on_duty(1));
  EXPECT_FALSE(queue.has_room_on_duty(2));
}

TEST_F(EventQueueTest, Reserved_place__keeps_the_event_of_flow_control_when_all_others_are_taken) {
  ASSERT_TRUE(queue.open(2));
  ASSERT_TRUE(queue.reserve_on_duty());
  post(0);
  post(1);
  queue.post_reserved_on_duty(disabled(2));
  for (std::uint64_t i = 0; i < 3; ++i) expect_taken(i);
  expect_empty();
}

TEST_F(EventQueueTest, Reserved_place__is_not_taken_by_other_events) {
  ASSERT_TRUE(queue.open(2));
  ASSERT_TRUE(queue.reserve_on_duty());
  post(0);
  post(1);
  EXPECT_FALSE(post(2)) << "the capacity is what it was";
  queue.post_reserved_on_duty(disabled(3));
  EXPECT_TRUE(queue.has_room_on_duty(0));
  EXPECT_FALSE(queue.has_room_on_duty(1));
  expect_taken(1, kAfterLoss);
  expect_taken(2);
  expect_taken(3);
}

// Implementation note 13: the reserved places come on top of what was asked for.
TEST_F(EventQueueTest, Reserved_event__takes_no_place_of_other_events) {
  ASSERT_TRUE(queue.open(2));
  ASSERT_TRUE(queue.reserve_on_duty());
  post(0);
  queue.post_reserved_on_duty(disabled(1));
  EXPECT_TRUE(queue.has_room_on_duty(1));
  EXPECT_TRUE(post(2));
  EXPECT_FALSE(queue.has_room_on_duty(1));
  expect_taken(0);
  expect_taken(1);
  EXPECT_TRUE(post(3)) << "the reserved place is free again, and one other event waits";
  EXPECT_FALSE(post(4));
}

TEST_F(EventQueueTest, Reserving__while_events_wait_keeps_them_in_order) {
  ASSERT_TRUE(queue.open(3));
  post(0);
  post(1);
  expect_taken(0);
  post(2);
  post(3);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(queue.reserve_on_duty());  // Grows several times.
  for (std::uint64_t i = 0; i < 20; ++i) queue.post_reserved_on_duty(disabled(4 + i));
  for (std::uint64_t i = 1; i < 24; ++i) expect_taken(i);
  expect_empty();
}

TEST_F(EventQueueTest, Unreserving__makes_place_for_the_next_to_reserve) {
  ASSERT_TRUE(queue.open(2));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(queue.reserve_on_duty());
    queue.unreserve_on_duty();
  }
  EXPECT_EQ(queue.capacity(), 2u);
  post(0);
  post(1);
  EXPECT_FALSE(post(2));
}

// A portal table entry is enabled again, or freed and another one allocated, while its last PT_DISABLED waits.
TEST_F(EventQueueTest, Reserved_event__more_than_were_reserved_push_out_nothing) {
  for (const std::uint64_t count : {1, 2, 3}) {
    ASSERT_TRUE(queue.open(count));
    std::uint64_t next = 0;
    while (next < count) post(next++);
    for (int round = 0; round < 10; ++round) {
      ASSERT_TRUE(queue.reserve_on_duty());
      queue.post_reserved_on_duty(disabled(next++));
      queue.post_reserved_on_duty(disabled(next++));
      queue.unreserve_on_duty();
    }
    EXPECT_TRUE(queue.has_room_on_duty(0));
    EXPECT_FALSE(queue.has_room_on_duty(1)) << "they take no place, and give none";
    for (std::uint64_t i = 0; i < next; ++i) expect_taken(i);
    expect_empty();
    EXPECT_TRUE(queue.has_room_on_duty(static_cast<std::uint32_t>(count)));
    EXPECT_FALSE(queue.has_room_on_duty(static_cast<std::uint32_t>(count + 1)));
    queue.close();
  }
}

TEST_F(EventQueueTest, Growing_queue__loses_nothing) {
  ASSERT_TRUE(queue.open(2));
  queue.let_grow();
  for (std::uint64_t i = 0; i < 1000; ++i) post(i);
  for (std::uint64_t i = 0; i < 1000; ++i) expect_taken(i);
  expect_empty();
}

TEST_F(EventQueueTest, Armed_queue__wakes_by_an_event_in_held_room) {
  ASSERT_TRUE(queue.open(1));
  post(0);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  queue.arm_on_duty(ends[1]);
  EXPECT_TRUE(queue.hold_on_duty(1));
  EXPECT_TRUE(post(1)) << "nothing is lost";
  EXPECT_FALSE(queue.is_armed());
  queue.let_go_on_duty();
  EXPECT_FALSE(post(2));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(EventQueueTest, Armed_queue__is_armed_until_it_wakes) {
  ASSERT_TRUE(queue.open(2));
  EXPECT_FALSE(queue.is_armed());
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  queue.arm_on_duty(ends[1]);
  EXPECT_TRUE(queue.is_armed());
  EXPECT_TRUE(post(1)) << "nothing is lost";
  EXPECT_FALSE(queue.is_armed());
  std::uint64_t told = 0;
  EXPECT_EQ(read(ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
  EXPECT_TRUE(post(2));
  expect_taken(1);
  expect_taken(2);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace portofu
