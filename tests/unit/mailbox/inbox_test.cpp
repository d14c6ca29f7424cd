// Messages on their way in, whoever takes them: where their data goes, packet by packet, what is cut, dropped, or read
// late, and how each ends. What requests and answers add is tested beside their steps.

#include "engine/mailbox/inbox.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/memory/guarded_copy.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override { install_fault_guard(); }

  /// An arrival of `length` bytes into `target`, of which `mlength` are granted from `offset` on.
  void arrive(void* target, std::uint64_t offset, std::uint64_t mlength, std::uint64_t length) {
    segment.describe(target, kBytes);
    arrival.hooks = &kHooks;
    arrival.header.length = length;
    arrival.offset = offset;
    arrival.mlength = mlength;
  }

  void deliver(std::uint64_t bytes) {
    const std::vector<std::byte> payload = pattern_bytes(arrival.received, bytes);
    store_payload(arrival, &segment, payload.data(), bytes);
  }

  static constexpr std::uint64_t kBytes = 256;
  static constexpr IncomingHooks kHooks{};
  alignas(64) std::array<std::byte, kBytes> memory{};
  FaultyMemory faulty;
  MemorySegment segment;
  Arrival arrival;
};

TEST_F(StoreTest, Payload__lies_at_its_offset_packet_behind_packet) {
  arrive(memory.data(), 10, 100, 100);
  deliver(30);
  deliver(30);
  deliver(40);
  EXPECT_EQ(arrival.received, 100u);
  EXPECT_EQ(arrival.fail, NiFail::kOk);
  EXPECT_TRUE(holds_pattern(memory.data() + 10, 100));
  EXPECT_TRUE(is_untouched(memory.data(), 10));
  EXPECT_TRUE(is_untouched(memory.data() + 110, kBytes - 110));
}

TEST_F(StoreTest, Payload__beyond_what_was_granted_is_counted_and_dropped) {
  arrive(memory.data(), 0, 50, 120);
  deliver(40);
  deliver(40);
  deliver(40);
  EXPECT_EQ(arrival.received, 120u);
  EXPECT_TRUE(holds_pattern(memory.data(), 50));
  EXPECT_TRUE(is_untouched(memory.data() + 50, kBytes - 50));
}

TEST_F(StoreTest, Payload__of_which_nothing_was_granted_touches_no_memory) {
  arrive(nullptr, UINT64_MAX, 0, 40);
  deliver(40);
  EXPECT_EQ(arrival.received, 40u);
  EXPECT_EQ(arrival.fail, NiFail::kOk);
}

TEST_F(StoreTest, Payload__of_no_bytes_is_nothing) {
  arrive(memory.data(), 0, 0, 0);
  deliver(0);
  EXPECT_EQ(arrival.received, 0u);
}

TEST_F(StoreTest, Fault__is_noted_and_the_rest_dropped) {
  arrive(faulty.edge() - 60, 0, 120, 120);
  deliver(40);
  EXPECT_EQ(arrival.fail, NiFail::kOk);
  deliver(40);
  EXPECT_EQ(arrival.fail, NiFail::kSegv);
  deliver(40);
  EXPECT_EQ(arrival.received, 120u);
  EXPECT_TRUE(holds_pattern(faulty.edge() - 60, 40));
}

TEST_F(StoreTest, Failure_before__stops_delivery) {
  arrive(memory.data(), 0, 40, 40);
  arrival.fail = NiFail::kUndeliverable;
  deliver(40);
  EXPECT_TRUE(is_untouched(memory.data(), kBytes));
  EXPECT_EQ(arrival.fail, NiFail::kUndeliverable) << "the first failure stays";
}

TEST_F(StoreTest, Memory_that_is_gone__is_a_fault) {
  arrive(memory.data(), 0, 40, 40);
  const std::vector<std::byte> payload = pattern_bytes(0, 40);
  store_payload(arrival, nullptr, payload.data(), 40);
  EXPECT_EQ(arrival.fail, NiFail::kSegv);
  EXPECT_EQ(arrival.received, 40u);
}

class InboxTest : public CoreTest {
 protected:
  static constexpr std::uint64_t kLength = 3 * kPacketBytes;

  void SetUp() override {
    segment.describe(memory.data(), memory.size());
    place = &segment;
    ended.clear();
    cut.clear();
  }

  static const MemorySegment* find_place(Core&, Arrival& arrival) {
    if (place == nullptr) arrival.fail = NiFail::kBadStadd;
    return place;
  }
  static void finish(Core&, Peer&, Arrival& arrival) {
    ended.push_back(arrival.fail);
    if (arrival.is_cut) cut.push_back(arrival.mlength);
  }
  static constexpr IncomingHooks kHooks{
      .memory = find_place, .finish = finish, .may_be_late = true, .may_be_offered = true};
  static constexpr IncomingHooks kTofuHooks{
      .memory = find_place, .finish = finish, .may_be_offered = true, .ends_with_last_line = true};

  /// The first packet of a message of kLength bytes comes in on the stream.
  void begin(Arrival& stream, const IncomingHooks& hooks = kHooks) {
    begin_arrival(stream, hooks, put_header(kLength), kPeer);
    stream.mlength = kLength;
    const std::vector<std::byte> payload = pattern_bytes(0, kPacketBytes);
    take_first(core, peer(), stream, payload.data());
  }
  void more(std::uint64_t offset, std::uint32_t bytes, std::uint8_t flags = 0) {
    receive(data_header(offset, bytes, flags));
  }

  inline static const MemorySegment* place = nullptr;
  inline static std::vector<NiFail> ended;
  inline static std::vector<std::uint64_t> cut;
  MemorySegment segment;
};

TEST_F(InboxTest, Both_streams__are_continued_apart_and_end_with_their_last_byte) {
  for (const bool of_answer : {false, true}) {
    const std::uint8_t flags = of_answer ? kFlagAnswerStream : 0;
    begin(of_answer ? peer().answer_stream : peer().request_stream);
    more(kPacketBytes, kPacketBytes, flags);
    EXPECT_THAT(ended, IsEmpty());
    more(2 * kPacketBytes, kPacketBytes, flags);
    EXPECT_THAT(ended, ElementsAre(NiFail::kOk));
    EXPECT_TRUE(holds_pattern(memory.data(), kLength));
    ended.clear();
    memory.assign(memory.size(), std::byte{0});
  }
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
  EXPECT_EQ(peer().answer_stream.mode, ArrivalMode::kIdle);
}

TEST_F(InboxTest, Data__that_no_message_waits_for_is_refused) {
  more(0, 8);
  begin(peer().request_stream);
  more(kPacketBytes, kPacketBytes, kFlagAnswerStream);
  more(kPacketBytes, 0);
  EXPECT_EQ(counted(Counter::kPacketsRefusedMalformed), 3u);
  cut_message(core, peer(), peer().request_stream, NiFail::kUndeliverable);
}

TEST_F(InboxTest, Cut__ends_with_what_has_come) {
  begin(peer().request_stream);
  more(0, 0, kFlagCut);
  EXPECT_THAT(ended, ElementsAre(NiFail::kUndeliverable));
  begin(peer().answer_stream);
  more(0, 0, kFlagCut | kFlagAnswerStream);
  EXPECT_THAT(ended, ElementsAre(NiFail::kUndeliverable, NiFail::kSegv));
  EXPECT_THAT(cut, ElementsAre(kPacketBytes, kPacketBytes));
  cut_message(core, peer(), peer().request_stream, NiFail::kUndeliverable);
  EXPECT_EQ(ended.size(), 2u) << "nothing was arriving";
}

TEST_F(InboxTest, Memory_that_goes_meanwhile__fails_the_message) {
  begin(peer().answer_stream);
  place = nullptr;
  more(kPacketBytes, kPacketBytes, kFlagAnswerStream);
  more(2 * kPacketBytes, kPacketBytes, kFlagAnswerStream);
  EXPECT_THAT(ended, ElementsAre(NiFail::kBadStadd));
  EXPECT_TRUE(is_untouched(memory.data() + kPacketBytes, kPacketBytes));
}

TEST_F(InboxTest, Discarded_message__is_taken_and_dropped) {
  begin(peer().request_stream);
  peer().request_stream.mode = ArrivalMode::kDiscard;
  more(kPacketBytes, kPacketBytes);
  more(2 * kPacketBytes, kPacketBytes);
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
  EXPECT_THAT(ended, IsEmpty());
}

TEST_F(InboxTest, Last_line_last__all_bytes_arrive) {
  segment.describe(memory.data() + 13, kLength);
  begin(peer().request_stream, kTofuHooks);
  more(kPacketBytes, kPacketBytes);
  more(2 * kPacketBytes, kPacketBytes);
  EXPECT_TRUE(holds_pattern(memory.data() + 13, kLength));
}

}  // namespace
}  // namespace portofu
