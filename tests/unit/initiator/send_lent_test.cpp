// What initiator/send lends instead of copying: SEND waits until the peer has read it.

#include "engine/initiator/send.h"

#include <gtest/gtest.h>

#include "engine/run/death.h"
#include "tests/unit/initiator/send_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SendLentTest : public SendTest {
 protected:
  void SetUp() override {
    SendTest::SetUp();
    wire.lends = true;
  }
};

/// 3.13.1: SEND says that the buffer may be used again, so it waits for whoever reads it.
TEST_F(SendLentTest, Lent_put__leaves_in_long_packets_and_SEND_waits_until_they_are_taken) {
  set_options(kMdEventCtSend);
  start(put(kMemoryBytes));
  EXPECT_EQ(wire.lent_count, 1);
  EXPECT_EQ(wire.take().payload, pattern_bytes(0, kMemoryBytes));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 0u);
  EXPECT_EQ(md().pending, 1u);
  EXPECT_THAT(core.waiting_peers, ElementsAre(&peer()));
  EXPECT_EQ(run_cycle_on_duty(core), 0);
  wire.taken_packets = 1;
  EXPECT_GT(run_cycle_on_duty(core), 0);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_THAT(core.waiting_peers, IsEmpty());
  EXPECT_EQ(counted(Counter::kSendsBlocked), 0u);
}

TEST_F(SendLentTest, Lent_puts__end_in_their_order_and_shorter_ones_do_not_wait) {
  for (std::uint64_t number = 0; number < 3; ++number) {
    Descriptor d = put(kLendFromBytes);
    d.portals.user_ptr = reinterpret_cast<void*>(number + 1);
    start(d);
  }
  start(put(kLendFromBytes - 1));
  EXPECT_EQ(wire.lent_count, 3);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend)) << "the short one";
  wire.taken_packets = 2;
  advance();
  EXPECT_EQ(next_event().user_ptr, reinterpret_cast<void*>(1));
  EXPECT_EQ(next_event().user_ptr, reinterpret_cast<void*>(2));
  EXPECT_THAT(kinds(), IsEmpty());
  wire.taken_packets = 4;
  advance();
  EXPECT_EQ(next_event().user_ptr, reinterpret_cast<void*>(3));
}

TEST_F(SendLentTest, Lent_put__SEND_comes_before_an_acknowledgement_that_is_there_already) {
  set_options(kMdEventCtAck);
  start(put(kMemoryBytes, AckRequest::kCount));
  receive(answer_header(next_sent().operation_id, kMemoryBytes));
  EXPECT_EQ(successes(), 0u);
  wire.taken_packets = 1;
  advance();
  EXPECT_EQ(successes(), 1u);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

/// The target took it and said so; that it was gone before it gave the memory back changes nothing.
TEST_F(SendLentTest, Lent_put_that_is_acknowledged__is_a_success_though_the_target_is_gone) {
  for (const bool acknowledged : {true, false}) {
    start(put(kMemoryBytes, AckRequest::kFull));
    const std::uint32_t id = next_sent().operation_id;
    if (acknowledged) receive(answer_header(id, kMemoryBytes));
    EXPECT_THAT(kinds(), IsEmpty());
    lose_peer(core, peer());
    for (const EventKind kind : {EventKind::kSend, EventKind::kAck}) {
      const Event event = next_event();
      EXPECT_EQ(event.type, kind);
      EXPECT_EQ(event.ni_fail_type, acknowledged ? NiFail::kOk : NiFail::kUndeliverable);
    }
    EXPECT_EQ(core.outstanding.open_count(), 0u);
    EXPECT_EQ(md().pending, 0u);
  }
}

/// Whoever has a put and then answers it by a put of its own is told of in that order.
TEST_F(SendLentTest, Lent_put_that_is_taken__is_told_before_what_the_target_sends_next) {
  start(put(kMemoryBytes));
  append(entry());
  wire.taken_packets = 1;
  receive(put_header(8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kPut));
}

/// PTL_MD_VOLATILE (3.10.1): the caller may change the buffer when the call returns.
TEST_F(SendLentTest, Volatile_memory__is_not_lent) {
  set_options(kMdVolatile);
  start(put(kMemoryBytes));
  EXPECT_EQ(wire.lent_count, 0);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(SendLentTest, Message_a_little_longer_than_a_packet__has_no_short_end) {
  const std::uint64_t length = kMostLentBytes + 3;
  memory = pattern_bytes(0, length);
  md().segment.describe(memory.data(), length);
  start(put(length));
  ASSERT_EQ(wire.lent_count, 2);
  EXPECT_EQ(wire.take().payload, pattern_bytes(0, length / 2 + 1));
  EXPECT_EQ(wire.take().payload, pattern_bytes(length / 2 + 1, length / 2));
}

TEST_F(SendLentTest, Message_that_either_side_may_copy__leaves_in_two_packets) {
  wire.shares_from = 20'000;
  memory = pattern_bytes(0, 20'000);
  md().segment.describe(memory.data(), memory.size());
  start(put(19'999));
  EXPECT_EQ(wire.lent_count, 1);
  start(put(20'000));
  EXPECT_EQ(wire.lent_count, 3);
}

TEST_F(SendLentTest, Message_that_both_may_copy__has_as_many_packets_for_either_all_alike) {
  wire.shares_from = 20'000;
  const std::uint64_t length = 2 * std::uint64_t{kMostLentBytes} + 4;
  memory = pattern_bytes(0, length);
  md().segment.describe(memory.data(), length);
  start(put(length));
  ASSERT_EQ(wire.lent_count, 4);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(wire.take().payload, pattern_bytes(i * length / 4, length / 4));
}

TEST_F(SendLentTest, Message_of_any_length_that_both_may_copy__has_no_short_packets) {
  wire.shares_from = 20'000;
  for (const std::uint64_t length : {std::uint64_t{131'073}, std::uint64_t{kMostLentBytes} + 1,
                                     5 * std::uint64_t{kMostLentBytes}, 6 * std::uint64_t{kMostLentBytes} - 1}) {
    memory = std::vector<std::byte>(length);
    md().segment.describe(memory.data(), length);
    start(put(length));
    while (!peer().requests.waiting.empty()) ASSERT_GT(advance(), 0);
    const std::size_t packets = wire.sent.size();
    EXPECT_EQ(packets, 2 * ((length + 2 * kMostLentBytes - 1) / (2 * kMostLentBytes))) << length;
    for (std::size_t i = 0; i < packets; ++i) {
      const std::uint64_t bytes = wire.take().payload.size();
      EXPECT_GE(bytes, length / packets - packets) << length;
      EXPECT_LE(bytes, length / packets + 1) << length;
    }
  }
}

TEST_F(SendLentTest, Volatile_memory_that_both_might_copy__is_not_lent) {
  wire.shares_from = 4096;
  set_options(kMdVolatile);
  start(put(kMemoryBytes));
  EXPECT_EQ(wire.lent_count, 0);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(SendLentTest, Pieces__are_lent_one_by_one) {
  const iovec pieces[] = {{memory.data(), 100}, {memory.data() + 200, 3000}, {memory.data() + 4000, 8192}};
  ASSERT_TRUE(md().segment.describe(pieces, 3));
  start(put(100 + 3000 + 8192));
  EXPECT_EQ(wire.lent_count, 3);
  EXPECT_EQ(wire.take().payload, pattern_bytes(0, 100));
  EXPECT_EQ(wire.take().payload, pattern_bytes(200, 3000));
  EXPECT_EQ(wire.take().payload, pattern_bytes(4000, 8192));
  wire.taken_packets = 2;
  advance();
  EXPECT_THAT(kinds(), IsEmpty());
  wire.taken_packets = 3;
  advance();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

/// What the last packets are copied into is the wire's: nobody waits until it comes back.
TEST_F(SendLentTest, Message_whose_end_is_copied__is_taken_with_its_last_packet_that_was_lent) {
  wire.shares_from = kMemoryBytes;
  wire.room = 1;
  start(put(kMemoryBytes));
  EXPECT_EQ(wire.lent_count, 1);
  wire.lends = false;
  wire.room = FakeWire::kPlentyOfRoom;
  EXPECT_GT(advance(), 0);
  EXPECT_EQ(wire.sent.size(), 3u);
  EXPECT_THAT(kinds(), IsEmpty());
  wire.taken_packets = 1;
  advance();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(SendLentTest, Lent_put_that_had_to_wait__ends_like_any_other) {
  wire.room = 0;
  start(put(kMemoryBytes));
  EXPECT_EQ(peer().requests.waiting.size(), 1u);
  wire.room = 1;
  EXPECT_EQ(advance(), 1);
  EXPECT_TRUE(peer().requests.waiting.empty());
  EXPECT_THAT(kinds(), IsEmpty());
  wire.taken_packets = 1;
  advance();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(SendLentTest, Peer_that_dies_with_what_was_lent__ends_puts_that_it_has_not_read) {
  start(put(kMemoryBytes));
  start(put(kMemoryBytes));
  start(put(kMemoryBytes, AckRequest::kFull));
  wire.taken_packets = 1;
  lose_peer(core, peer());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk) << "it has read that one";
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  for (const EventKind kind : {EventKind::kSend, EventKind::kAck}) {
    const Event event = next_event();
    EXPECT_EQ(event.type, kind);
    EXPECT_EQ(event.ni_fail_type, NiFail::kUndeliverable);
  }
  EXPECT_EQ(md().pending, 0u);
}

TEST_F(SendLentTest, Memory_descriptor_of_a_lent_put__lives_until_it_is_taken) {
  start(put(kMemoryBytes));
  const Handle handle = md().handle;
  release_md(ni, handle);
  EXPECT_NE(ni.mds.find(handle), nullptr);
  wire.taken_packets = 1;
  advance();
  EXPECT_EQ(ni.mds.find(handle), nullptr);
}

TEST_F(SendLentTest, Interface_that_is_closed__forgets_its_lent_puts) {
  start(put(kMemoryBytes));
  close_interface(kMatchingPhysical);
  EXPECT_TRUE(peer().requests.lent.empty());
  wire.taken_packets = 1;
  advance();
}

}  // namespace
}  // namespace portofu
