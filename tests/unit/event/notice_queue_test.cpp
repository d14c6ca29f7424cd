// The TCQ, which keeps the order of descriptors, and the MRQ, which is finite.

#include "engine/event/notice_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace portofu {
namespace {

void* data(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

class TransmitCompleteQueueTest : public testing::Test {
 protected:
  /// Reads one entry. @return its callback data; 0 if there is none
  std::uintptr_t read() {
    void* callback_data = nullptr;
    return queue.read(&callback_data, &fail) ? reinterpret_cast<std::uintptr_t>(callback_data) : 0;
  }

  TransmitCompleteQueue queue{3};
  NiFail fail = NiFail::kOk;
};

TEST_F(TransmitCompleteQueueTest, Notices__come_in_the_order_of_descriptors) {
  const std::uint64_t first = queue.take(data(1), true), second = queue.take(data(2), true);
  queue.complete(second, NiFail::kOk);
  EXPECT_EQ(read(), 0u) << "The first is still on its way.";
  queue.complete(first, NiFail::kOk);
  EXPECT_EQ(read(), 1u);
  EXPECT_EQ(read(), 2u);
  EXPECT_EQ(read(), 0u);
}

TEST_F(TransmitCompleteQueueTest, Success_without_notice__is_silent_and_failure_is_not) {
  const std::uint64_t first = queue.take(data(1), false), second = queue.take(data(2), false);
  const std::uint64_t third = queue.take(data(3), true);
  queue.complete(first, NiFail::kOk);
  queue.complete(second, NiFail::kBadStadd);
  queue.complete(third, NiFail::kOk);
  EXPECT_EQ(read(), 2u);
  EXPECT_EQ(fail, NiFail::kBadStadd);
  EXPECT_EQ(read(), 3u);
  EXPECT_EQ(fail, NiFail::kOk);
}

TEST_F(TransmitCompleteQueueTest, Silent_descriptor_on_its_way__holds_back_those_behind_it) {
  const std::uint64_t first = queue.take(data(1), false), second = queue.take(data(2), true);
  queue.complete(second, NiFail::kOk);
  EXPECT_EQ(read(), 0u);
  queue.complete(first, NiFail::kOk);
  EXPECT_EQ(read(), 2u);
}

TEST_F(TransmitCompleteQueueTest, Room__is_there_again_when_entries_are_read_or_silent) {
  EXPECT_TRUE(queue.has_room(3));
  EXPECT_FALSE(queue.has_room(4));
  const std::uint64_t first = queue.take(data(1), false), second = queue.take(data(2), true);
  queue.take(data(3), true);
  EXPECT_FALSE(queue.has_room(1));
  queue.complete(first, NiFail::kOk);
  EXPECT_TRUE(queue.has_room(1));
  queue.complete(second, NiFail::kOk);
  EXPECT_FALSE(queue.has_room(2)) << "It is not read.";
  EXPECT_EQ(read(), 2u);
  EXPECT_TRUE(queue.has_room(2));
  EXPECT_EQ(queue.unread(), 1u);
}

TEST_F(TransmitCompleteQueueTest, Places__are_used_again) {
  for (std::uintptr_t i = 1; i < 100; ++i) {
    queue.complete(queue.take(data(i), true), i % 7 == 0 ? NiFail::kSegv : NiFail::kOk);
    ASSERT_EQ(read(), i);
    EXPECT_EQ(fail, i % 7 == 0 ? NiFail::kSegv : NiFail::kOk);
  }
}

TEST(MessageReceiveQueue, Notices__come_in_order_until_it_is_full) {
  MessageReceiveQueue queue(2);
  Notice notice;
  EXPECT_FALSE(queue.read(&notice));
  notice.edata = 1;
  EXPECT_TRUE(queue.post(notice));
  notice.edata = 2;
  EXPECT_TRUE(queue.post(notice));
  EXPECT_FALSE(queue.post(notice));
  ASSERT_TRUE(queue.read(&notice));
  EXPECT_EQ(notice.edata, 1u);
  EXPECT_TRUE(queue.post(notice));
  ASSERT_TRUE(queue.read(&notice));
  EXPECT_EQ(notice.edata, 2u);
}

TEST(OwnNoticeQueue, Notices__are_read_in_order_with_those_of_the_mrq) {
  MessageReceiveQueue mrq(16);
  OwnNoticeQueue own;
  const auto post = [&mrq](std::uint64_t edata) { ASSERT_TRUE(mrq.post(Notice{.edata = edata})); };
  const auto add = [&](std::uint64_t edata) { own.add(mrq) = Notice{.edata = edata}; };
  add(0);
  post(1);
  add(2);
  add(3);
  post(4);
  post(5);
  add(6);
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 7; ++i) {
    Notice notice;
    if (const Notice* front = own.front(mrq)) {
      notice = *front;
      own.drop();
    } else {
      ASSERT_TRUE(mrq.read(&notice));
    }
    order.push_back(notice.edata);
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(own.front(mrq), nullptr);
}

TEST(MessageReceiveQueue, Notices__come_in_order_while_the_ring_grows_and_goes_round) {
  MessageReceiveQueue mrq(1000);
  std::uint64_t posted = 0, read = 0;
  Notice notice;
  for (const std::uint64_t waiting : {3u, 64u, 65u, 130u, 7u, 999u, 1000u, 0u, 100u}) {
    for (; posted - read < waiting; ++posted) ASSERT_TRUE(mrq.post(Notice{.edata = posted}));
    // Halfway round, so that it grows with its beginning in the middle.
    for (; posted - read > waiting / 2; ++read) {
      ASSERT_TRUE(mrq.read(&notice));
      ASSERT_EQ(notice.edata, read);
    }
  }
  for (; read < posted; ++read) {
    ASSERT_TRUE(mrq.read(&notice));
    ASSERT_EQ(notice.edata, read);
  }
  EXPECT_FALSE(mrq.read(&notice));
  EXPECT_TRUE(mrq.is_empty());
}

TEST(MessageReceiveQueue, Full__loses_what_is_posted_until_one_is_read) {
  for (const std::uint32_t entries : {1u, 16u, 64u, 100u}) {
    MessageReceiveQueue mrq(entries);
    for (std::uint32_t i = 0; i < entries; ++i) ASSERT_TRUE(mrq.post(Notice{.edata = i})) << entries;
    EXPECT_FALSE(mrq.post(Notice{.edata = 7777})) << entries;
    EXPECT_EQ(mrq.posted(), entries);
    Notice notice;
    ASSERT_TRUE(mrq.read(&notice));
    EXPECT_EQ(notice.edata, 0u);
    EXPECT_TRUE(mrq.post(Notice{.edata = 8888})) << entries;
    EXPECT_FALSE(mrq.post(Notice{.edata = 7777})) << entries;
  }
}

TEST(OwnNoticeQueue, Full__has_no_room_until_one_is_read) {
  const MessageReceiveQueue mrq(16);
  OwnNoticeQueue own;
  for (std::uint32_t i = 0; i < OwnNoticeQueue::kEntries; ++i) {
    ASSERT_TRUE(own.has_room());
    own.add(mrq) = Notice{.edata = i};
  }
  EXPECT_FALSE(own.has_room());
  EXPECT_EQ(own.front(mrq)->edata, 0u);
  own.drop();
  EXPECT_TRUE(own.has_room());
}

TEST(TransmitCompleteQueue, Descriptors_that_left_at_once__are_read_behind_those_on_their_way) {
  TransmitCompleteQueue tcq(4);
  int data[2];
  const std::uint64_t slow = tcq.take(&data[0], true);
  tcq.take_done(&data[1]);
  void* callback_data = nullptr;
  NiFail fail = NiFail::kOk;
  EXPECT_FALSE(tcq.read(&callback_data, &fail));
  tcq.complete(slow, NiFail::kOk);
  for (int& expected : data) {
    ASSERT_TRUE(tcq.read(&callback_data, &fail));
    EXPECT_EQ(callback_data, &expected);
  }
}

}  // namespace
}  // namespace portofu
