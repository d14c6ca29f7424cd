// Messages on their way out, whoever sends them: what leaves at once, what waits, what is lent, and how each ends. What
// requests and answers add is tested beside their steps.

#include "engine/mailbox/outbox.h"

#include <gtest/gtest.h>

#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OutboxTest : public CoreTest {
 protected:
  void SetUp() override {
    memory = pattern_bytes(0, memory.size());
    segment.describe(memory.data(), memory.size());
    ended.clear();
    may_open = true;
    wire.connect(kPeer, &peer().link);
    peer().state = PeerState::kConnected;
  }

  /// OutgoingHooks of these tests: operation ids are told apart by `first_packet`, which copied messages do not use.
  static bool open(Core&, Peer&, OutgoingMessage& message) {
    if (may_open) message.header().operation_id = 77;
    return may_open;
  }
  static void finish(Core&, Peer&, OutgoingMessage&, NiFail fail) { ended.push_back(fail); }
  static constexpr OutgoingHooks kHooks{nullptr, finish};
  static constexpr OutgoingHooks kOpeningHooks{open, finish};

  OutgoingMessage message(std::uint64_t length, bool is_answer = false) {
    OutgoingMessage made = is_answer ? OutgoingMessage(PacketHeader{}) : OutgoingMessage(Descriptor{});
    made.header().type = is_answer ? PacketType::kAnswer : PacketType::kPut;
    made.header().length = length;
    made.hooks = &kHooks;
    made.source = SourceKind::kSegment;
    made.segment = &segment;
    made.length = length;
    return made;
  }
  void send(OutgoingMessage&& sent, int budget = kPacketBudget) { send_or_wait(core, peer(), sent, budget); }
  int advance() { return advance_peer(core, peer()); }

  MemorySegment segment;
  inline static std::vector<NiFail> ended;
  inline static bool may_open = true;
};

TEST_F(OutboxTest, Room__the_message_leaves_and_its_memory_is_free) {
  send(message(kPacketBytes + 5));
  ASSERT_EQ(wire.sent.size(), 2u);
  EXPECT_EQ(wire.sent[0].payload, pattern_bytes(0, kPacketBytes));
  EXPECT_EQ(wire.sent[1].header.type, PacketType::kData);
  EXPECT_EQ(wire.sent[1].header.remote_offset, kPacketBytes);
  EXPECT_EQ(wire.sent[1].payload, pattern_bytes(kPacketBytes, 5));
  EXPECT_THAT(ended, ElementsAre(NiFail::kOk));
  EXPECT_EQ(counted(Counter::kPacketsSent), 2u);
  EXPECT_EQ(counted(Counter::kBytesSent), kPacketBytes + 5u);
}

TEST_F(OutboxTest, Both_directions__wait_apart_and_answers_leave_first) {
  send(message(1), 0);
  send(message(2, true), 0);
  EXPECT_EQ(peer().requests.waiting.size(), 1u);
  EXPECT_EQ(peer().answers.waiting.size(), 1u);
  EXPECT_EQ(advance(), 2);
  EXPECT_EQ(next_sent().type, PacketType::kAnswer);
  EXPECT_EQ(next_sent().type, PacketType::kPut);
  EXPECT_FALSE(peer().has_unfinished());
}

TEST_F(OutboxTest, Operation_that_cannot_be_opened__nothing_leaves_until_it_can) {
  may_open = false;
  OutgoingMessage asking = message(8);
  asking.hooks = &kOpeningHooks;
  send(std::move(asking));
  EXPECT_EQ(advance(), 0);
  EXPECT_THAT(wire.sent, IsEmpty());
  may_open = true;
  EXPECT_EQ(advance(), 1);
  EXPECT_EQ(next_sent().operation_id, 77u);
}

TEST_F(OutboxTest, Memory_that_may_change__is_copied_to_wait) {
  OutgoingMessage now = message(100);
  now.is_copied_to_wait = true;
  send(std::move(now), 0);
  send(message(100), 0);
  memory.assign(memory.size(), std::byte{0});
  advance();
  EXPECT_EQ(wire.take().payload, pattern_bytes(0, 100));
  EXPECT_EQ(wire.take().payload, std::vector<std::byte>(100));
}

TEST_F(OutboxTest, Lent_message__ends_when_it_was_taken) {
  wire.lends = true;
  OutgoingMessage lent = message(2 * kPacketBytes);
  lent.may_be_lent = true;
  send(std::move(lent));
  EXPECT_EQ(peer().requests.lent.size(), 1u);
  EXPECT_EQ(finish_taken(core, peer()), 0);
  EXPECT_THAT(ended, IsEmpty());
  wire.taken_packets = 2;
  EXPECT_EQ(finish_taken(core, peer()), 1);
  EXPECT_THAT(ended, ElementsAre(NiFail::kOk));
}

TEST_F(OutboxTest, Departure__ends_the_message_that_asked_for_it) {
  peer().link->at_once_below_bytes = 0;
  EXPECT_FALSE(fits_packet(peer(), 0)) << "each is a message of its own";
  send(message(8));
  EXPECT_THAT(ended, ElementsAre(NiFail::kOk)) << "nobody wants to know when it leaves";
  EXPECT_EQ(departure_of(wire.take().header), 0u);
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{2 * kPacketBytes}}) {
    OutgoingMessage asking = message(bytes);
    asking.is_end_awaited = true;
    send(std::move(asking));
  }
  const std::uint32_t first = departure_of(wire.take().header);
  const std::uint32_t second = departure_of(wire.take().header);
  EXPECT_NE(first, 0u);
  EXPECT_NE(second, 0u);
  EXPECT_NE(first, second);
  EXPECT_EQ(departure_of(wire.take().header), 0u) << "of a later packet";
  EXPECT_EQ(advance(), 0);
  EXPECT_EQ(ended.size(), 1u);
  finish_departed(core, second);
  EXPECT_EQ(ended.size(), 2u);
  finish_departed(core, second);
  EXPECT_EQ(ended.size(), 2u) << "once";
  finish_departed(core, first);
  EXPECT_EQ(ended.size(), 3u);
  EXPECT_FALSE(peer().has_unfinished());
}

TEST_F(OutboxTest, Departure__is_told_in_order_if_that_is_asked_for) {
  peer().link->at_once_below_bytes = 0;
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < 2; ++i) {
    OutgoingMessage answer = message(8, true);
    answer.is_end_awaited = true;
    answer.is_told_in_order = true;
    send(std::move(answer));
    numbers.push_back(departure_of(wire.take().header));
  }
  finish_departed(core, numbers[1]);
  EXPECT_THAT(ended, IsEmpty());
  finish_departed(core, numbers[0]);
  EXPECT_EQ(ended.size(), 2u);
}

TEST_F(OutboxTest, End_that_is_told_in_order__waits_for_those_that_are_lent) {
  wire.lends = true;
  OutgoingMessage lent = message(2 * kPacketBytes, true);
  lent.may_be_lent = true;
  send(std::move(lent));
  OutgoingMessage next = message(8, true);
  next.is_told_in_order = true;
  send(std::move(next));
  EXPECT_EQ(wire.sent.size(), 2u) << "it has left";
  EXPECT_THAT(ended, IsEmpty());
  wire.taken_packets = 2;
  EXPECT_EQ(finish_taken(core, peer()), 2);
}

TEST_F(OutboxTest, Source_that_is_taken_away__ends_what_has_not_begun) {
  send(message(8), 0);
  take_source_away(peer().requests.waiting.front(), NiFail::kSegv);
  advance();
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_THAT(ended, ElementsAre(NiFail::kSegv));
}

TEST_F(OutboxTest, Source_that_is_taken_away__cuts_what_has_begun) {
  for (const bool is_answer : {false, true}) {
    wire.room = 1;
    send(message(2 * kPacketBytes, is_answer));
    Outbox& outbox = is_answer ? peer().answers : peer().requests;
    take_source_away(outbox.waiting.front(), NiFail::kDropped);
    wire.room = FakeWire::kPlentyOfRoom;
    EXPECT_EQ(advance(), 1);
    next_sent();
    const PacketHeader cut = next_sent();
    EXPECT_EQ(cut.type, PacketType::kData);
    EXPECT_EQ(cut.flags, is_answer ? kFlagCut | kFlagAnswerStream : kFlagCut);
    EXPECT_EQ(cut.ni_fail_type, static_cast<std::uint8_t>(NiFail::kDropped));
    EXPECT_EQ(cut.payload_bytes, 0u);
  }
  EXPECT_THAT(ended, ElementsAre(NiFail::kDropped, NiFail::kDropped));
}

TEST_F(OutboxTest, Source_that_is_taken_away__is_told_in_the_header_of_an_answer) {
  send(message(8, true), 0);
  take_source_away(peer().answers.waiting.front(), NiFail::kDropped);
  advance();
  const PacketHeader told = next_sent();
  EXPECT_EQ(told.ni_fail_type, static_cast<std::uint8_t>(NiFail::kDropped));
  EXPECT_EQ(told.length, 0u);
}

TEST_F(OutboxTest, Message_of_nobody__ends_unheard) {
  wire.room = 1;
  send(message(2 * kPacketBytes));
  disown(peer().requests.waiting.front(), NiFail::kUndeliverable);
  wire.room = FakeWire::kPlentyOfRoom;
  advance();
  next_sent();
  EXPECT_EQ(next_sent().flags, kFlagCut);
  EXPECT_THAT(ended, IsEmpty());
}

TEST_F(OutboxTest, Abandoned__all_end_but_those_for_the_next_link) {
  send(message(1), 0);
  peer().lost_since_ns = 1;
  send(message(2), 0);
  send(message(3, true), 0);
  abandon_outbox(core, peer(), peer().requests);
  EXPECT_EQ(peer().requests.waiting.size(), 1u);
  abandon_outbox(core, peer(), peer().answers);
  EXPECT_TRUE(peer().answers.waiting.empty());
  EXPECT_THAT(ended, ElementsAre(NiFail::kUndeliverable, NiFail::kUndeliverable));
}

}  // namespace
}  // namespace portofu
