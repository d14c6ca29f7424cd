// Atomic requests: nonsense is refused before anything is touched, the rest is executed, stored or read as its list
// says.

#include <gtest/gtest.h>

#include <cstring>

#include "engine/atomic/atomic_unit.h"
#include "engine/memory/guarded_copy.h"
#include "engine/target/request.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kSum = static_cast<std::uint8_t>(AtomicOperation::kSum);
constexpr auto kPlainSwap = static_cast<std::uint8_t>(AtomicOperation::kSwap);
constexpr auto kCswap = static_cast<std::uint8_t>(AtomicOperation::kCswap);
constexpr auto kInt32 = static_cast<std::uint8_t>(AtomicType::kInt32);

class RequestAtomicTest : public CoreTest {
 protected:
  void SetUp() override { install_fault_guard(); }

  static std::vector<std::byte> bytes_of(const std::vector<std::int32_t>& values) {
    std::vector<std::byte> bytes(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  std::int32_t item(std::size_t index) const {
    std::int32_t value = 0;
    std::memcpy(&value, memory.data() + index * 4, 4);
    return value;
  }
  void set_item(std::size_t index, std::int32_t value) { std::memcpy(memory.data() + index * 4, &value, 4); }

  PacketHeader header(PacketType type, std::uint8_t operation, std::uint64_t length) const {
    return atomic_header(type, operation, kInt32, length);
  }

  void expect_refused(const PacketHeader& wrong) {
    const std::uint64_t before = refused();
    receive(wrong);
    EXPECT_EQ(refused(), before + 1) << packet_type_name(wrong.type) << " operation " << int{wrong.atomic_operation}
                                     << " type " << int{wrong.atomic_type};
    EXPECT_THAT(kinds(), IsEmpty());
    EXPECT_THAT(wire.sent, IsEmpty());
  }

  FaultyMemory faulty;
};

TEST_F(RequestAtomicTest, Malformed__operations_and_datatypes_that_do_not_exist) {
  append(entry());
  for (const PacketType type : {PacketType::kAtomic, PacketType::kFetchAtomic, PacketType::kSwap}) {
    for (const std::uint8_t datatype : {0, 1, 34, 63, 78, 128, 255})
      expect_refused(atomic_header(type, kSum, datatype, 32));
    for (const std::uint8_t operation : {0, 2, 31, 53, 64, 255}) expect_refused(header(type, operation, 32));
  }
  EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
}

TEST_F(RequestAtomicTest, Packet_that_its_sender_has_unmade__fails_and_changes_nothing) {
  append(entry());
  set_item(0, 40);
  for (const PacketType type : {PacketType::kAtomic, PacketType::kFetchAtomic}) {
    PacketHeader wanted = header(type, kSum, 4);
    wanted.flags |= kFlagAnswerWanted;
    wanted.operation_id = 9;
    receive(wanted, Payload(faulty.edge()));
    const Event event = next_event();
    EXPECT_EQ(event.ni_fail_type, NiFail::kSegv);
    EXPECT_EQ(event.mlength, 0u);
    const FakePacket answer = wire.take();
    EXPECT_EQ(static_cast<NiFail>(answer.header.ni_fail_type), NiFail::kSegv);
    EXPECT_TRUE(answer.payload.empty());
  }
  EXPECT_EQ(item(0), 40);
}

TEST_F(RequestAtomicTest, Malformed__operation_that_the_function_or_the_datatype_does_not_have) {
  append(entry());
  expect_refused(header(PacketType::kAtomic, kPlainSwap, 4));
  expect_refused(header(PacketType::kFetchAtomic, kCswap, 4));
  expect_refused(header(PacketType::kSwap, kSum, 4));
  const auto bor = static_cast<std::uint8_t>(AtomicOperation::kBor);
  expect_refused(atomic_header(PacketType::kAtomic, bor, static_cast<std::uint8_t>(AtomicType::kDouble), 8));
  const auto read = static_cast<std::uint8_t>(AtomicOperation::kAtomicRead);
  expect_refused(header(PacketType::kFetchAtomic, read, 4));
}

TEST_F(RequestAtomicTest, Malformed__lengths) {
  append(entry());
  PacketHeader longest = header(PacketType::kAtomic, kSum, kMaxAtomicBytes);
  receive(longest);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kAtomic));
  wire.sent.clear();
  longest.length += 4;
  expect_refused(longest);
  PacketHeader short_of_data = header(PacketType::kAtomic, kSum, 8);
  short_of_data.payload_bytes = 4;
  expect_refused(short_of_data);
  PacketHeader without_operand = header(PacketType::kSwap, kCswap, 4);
  expect_refused(without_operand);
  PacketHeader with_operand = header(PacketType::kSwap, kPlainSwap, 4);
  with_operand.payload_bytes += kOperandBytes;
  expect_refused(with_operand);
}

TEST_F(RequestAtomicTest, Malformed__fetching_without_wish_for_an_answer) {
  append(entry());
  for (const auto& [type, operation] : {std::pair{PacketType::kFetchAtomic, kSum}, {PacketType::kSwap, kPlainSwap}}) {
    PacketHeader unanswered = header(type, operation, 4);
    unanswered.flags = 0;
    expect_refused(unanswered);
  }
}

TEST_F(RequestAtomicTest, Data_behind_an_atomic__is_refused) {
  append(entry());
  receive(header(PacketType::kAtomic, kSum, 4));
  kinds();
  wire.sent.clear();
  expect_refused(data_header(4, 4));
}

TEST_F(RequestAtomicTest, Atomic__is_executed_told_and_acknowledged) {
  append(entry(kEntryOpPut | kEntryEventCtComm | kEntryEventCtBytes));
  set_item(0, 10);
  set_item(1, 20);
  receive(header(PacketType::kAtomic, kSum, 8), bytes_of({1, 2}));
  EXPECT_EQ(item(0), 11);
  EXPECT_EQ(item(1), 22);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kAtomic));
  EXPECT_EQ(successes(), 8u);
  EXPECT_EQ(counted(Counter::kAtomicsMatched), 1u);
  const FakePacket answer = wire.take();
  EXPECT_EQ(answer.header.operation_id, 9u);
  EXPECT_EQ(answer.header.length, 8u);
  EXPECT_THAT(answer.payload, IsEmpty());
}

TEST_F(RequestAtomicTest, Atomic__without_wish_for_an_answer_gets_none) {
  append(entry());
  PacketHeader unanswered = header(PacketType::kAtomic, kSum, 4);
  unanswered.flags = 0;
  receive(unanswered);
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kAtomic));
}

TEST_F(RequestAtomicTest, Fetch_atomic__answers_with_what_was_there) {
  append(entry());
  set_item(0, 10);
  receive(header(PacketType::kFetchAtomic, kSum, 4), bytes_of({5}));
  EXPECT_EQ(item(0), 15);
  const FakePacket answer = wire.take();
  EXPECT_EQ(answer.payload, bytes_of({10}));
  EXPECT_EQ(answer.header.length, 4u);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kFetchAtomic));
}

TEST_F(RequestAtomicTest, Swap__plain_and_with_an_operand) {
  append(entry());
  set_item(0, 10);
  receive(header(PacketType::kSwap, kPlainSwap, 4), bytes_of({5}));
  EXPECT_EQ(item(0), 5);
  EXPECT_EQ(wire.take().payload, bytes_of({10}));
  PacketHeader conditional = header(PacketType::kSwap, kCswap, 4);
  conditional.payload_bytes = kOperandBytes + 4;
  std::vector<std::byte> payload = bytes_of({4, 0, 0, 0, 0, 0, 0, 0, 77});
  receive(conditional, payload);
  EXPECT_EQ(item(0), 5) << "the operand is not equal";
  payload = bytes_of({5, 0, 0, 0, 0, 0, 0, 0, 77});
  receive(conditional, payload);
  EXPECT_EQ(item(0), 77);
  EXPECT_EQ(wire.take().payload, bytes_of({5}));
  EXPECT_EQ(wire.take().payload, bytes_of({5}));
}

TEST_F(RequestAtomicTest, Conditional_swap_of_several__compares_each_with_its_own_operand_in_each_piece) {
  EntryRequest request = entry();
  const std::array<iovec, 2> pieces{{{memory.data(), 4}, {memory.data() + 8, 4}}};
  ASSERT_TRUE(request.segment.describe(pieces.data(), pieces.size()));
  append(std::move(request));
  set_item(0, 10);
  set_item(2, 20);
  PacketHeader conditional = header(PacketType::kSwap, kCswap, 8);
  conditional.payload_bytes = kOperandBytes + 8;
  std::vector<std::byte> payload = bytes_of({10, 20});
  payload.resize(kOperandBytes);
  for (const std::byte byte : bytes_of({77, 88})) payload.push_back(byte);
  receive(conditional, payload);
  EXPECT_EQ(item(0), 77);
  EXPECT_EQ(item(2), 88);
  EXPECT_EQ(wire.take().payload, bytes_of({10, 20}));
}

TEST_F(RequestAtomicTest, Longer_than_the_entry__is_truncated_to_whole_items) {
  EntryRequest request = entry();
  request.segment.describe(memory.data(), 7);
  append(std::move(request));
  receive(header(PacketType::kFetchAtomic, kSum, 8), bytes_of({1, 2}));
  EXPECT_EQ(item(0), 1);
  EXPECT_EQ(item(1), 0);
  const FakePacket answer = wire.take();
  EXPECT_EQ(answer.header.length, 4u);
  EXPECT_EQ(answer.payload.size(), 4u);
  EXPECT_EQ(next_event().mlength, 4u);
}

TEST_F(RequestAtomicTest, Not_aligned__touches_nothing_and_is_told_to_the_initiator_as_dropped) {
  EntryRequest request = entry(kPutsAndGets | kEntryUseOnce | kEntryEventCtComm);
  request.segment.describe(memory.data() + 2, 64);
  append(std::move(request));
  for (const PacketType type : {PacketType::kAtomic, PacketType::kFetchAtomic}) {
    receive(header(type, kSum, 4), bytes_of({1}));
    const FakePacket answer = wire.take();
    EXPECT_EQ(answer.header.ni_fail_type, static_cast<std::uint8_t>(NiFail::kDropped));
    EXPECT_EQ(answer.header.flags & kFlagSilent, 0);
    EXPECT_EQ(answer.header.length, 0u);
    EXPECT_THAT(answer.payload, IsEmpty());
    EXPECT_EQ(ni.last_refused.reason, RefusedFor::kNotAligned) << "for who asks later";
    EXPECT_EQ(ni.last_refused.length, 4u);
  }
  EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
  EXPECT_THAT(kinds(), IsEmpty()) << "3.13.3: this failure is for events of the initiator";
  EXPECT_EQ(portal.priority.size(), 1u) << "the entry is not used up";
  EXPECT_EQ(ni.status_registers[static_cast<std::size_t>(StatusRegister::kDropCount)], 2);
  EXPECT_EQ(counted(Counter::kAtomicsMatched), 0u);
}

TEST_F(RequestAtomicTest, Not_aligned__does_not_matter_where_nothing_is_computed) {
  EntryRequest request = entry(kPutsAndGets, ListKind::kOverflow);
  request.segment.describe(memory.data() + 2, 64);
  append(std::move(request));
  receive(header(PacketType::kAtomic, kSum, 4), bytes_of({1}));
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kOk));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kAtomic));
}

TEST_F(RequestAtomicTest, Not_aligned__is_no_matter_of_flow_control) {
  portal.eq_handle = make_eq(ni, 1);
  portal.flow_control = true;
  EntryRequest request = entry();
  request.segment.describe(memory.data() + 2, 64);
  append(std::move(request));
  post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  receive(header(PacketType::kAtomic, kSum, 4), bytes_of({1}));
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kDropped));
  EXPECT_TRUE(portal.enabled);
}

TEST_F(RequestAtomicTest, Fault__is_told_on_both_lists_and_by_every_kind) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer executes atomics itself, under a lock of its own that a fault leaves held";
#endif
  for (const ListKind list : {ListKind::kPriority, ListKind::kOverflow}) {
    for (const PacketType type : {PacketType::kAtomic, PacketType::kFetchAtomic}) {
      EntryRequest request =
          entry(kPutsAndGets | kEntryUseOnce | kEntryEventUnlinkDisable | kEntryUnexpectedHdrDisable, list);
      request.segment.describe(faulty.edge(), 64);
      append(std::move(request));
      receive(header(type, kSum, 4));
      EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv));
      const Event event = next_event();
      EXPECT_EQ(event.ni_fail_type, NiFail::kSegv);
      EXPECT_EQ(event.mlength, 0u);
    }
  }
}

TEST_F(RequestAtomicTest, Overflow_list__stores_what_came_and_reads_what_is_there_but_computes_nothing) {
  append(entry(kPutsAndGets, ListKind::kOverflow));
  set_item(0, 10);
  receive(header(PacketType::kFetchAtomic, kSum, 4), bytes_of({5}));
  EXPECT_EQ(item(0), 10);
  EXPECT_EQ(wire.take().payload, bytes_of({10}));
  receive(header(PacketType::kAtomic, kSum, 4), bytes_of({5}));
  EXPECT_EQ(item(0), 5);
  EXPECT_EQ(next_sent().flags, kFlagOverflowList | kFlagUnordered);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kFetchAtomic, EventKind::kAtomic));
  EXPECT_EQ(counted(Counter::kHeadersUnexpected), 2u);
}

TEST_F(RequestAtomicTest, Refused__is_answered_and_leaves_nothing_to_discard) {
  receive(header(PacketType::kFetchAtomic, kSum, 4));
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kDropped));
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
}

TEST_F(RequestAtomicTest, No_room_for_the_answer__keeps_what_was_fetched) {
  append(entry());
  set_item(0, 10);
  wire.room = 0;
  receive(header(PacketType::kFetchAtomic, kSum, 4), bytes_of({5}));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kFetchAtomic)) << "the operation is over all the same";
  set_item(0, 99);
  ASSERT_EQ(peer().answers.waiting.size(), 1u);
  EXPECT_EQ(core.waiting_peers.size(), 1u);
}

}  // namespace
}  // namespace portofu
