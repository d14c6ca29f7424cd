// The end of an interface while messages arrive, leave and wait: everything lets go, what peers were promised is kept
// or cut, and an interface that is opened again at the same place knows nothing of the old one.

#include "engine/target/close_interface.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/initiator/send.h"
#include "engine/run/dispatch.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;

class CloseInterfaceTest : public CoreTest {
 protected:
  void close() { close_interface(kMatchingPhysical); }

  /// Opens it again, with a portal table entry, event queue, counter and descriptor that have the old handles.
  Interface& reopen() {
    Interface& fresh = open_interface(kMatchingPhysical);
    EXPECT_EQ(make_eq(fresh), eq);
    EXPECT_EQ(make_ct(fresh), ct);
    make_portal(fresh, kPt, eq);
    return fresh;
  }

  void start(const Descriptor& wanted, const MemoryDescriptor& md) {
    Descriptor d = wanted;
    d.portals.md_handle = md.handle;
    start_descriptor(core, d);
  }

  /// Appends an overflow entry and lets the first packet of a long message go there.
  void begin_unexpected() {
    append(entry(kEntryOpPut | kEntryOpGet, ListKind::kOverflow));
    receive(put_header(2 * kPacketBytes, 7));
  }
};

TEST_F(CloseInterfaceTest, Nothing_under_way__frees_all_objects) {
  append(entry());
  make_md(ni, memory.data(), 16);
  const std::uint64_t activity = core.activity;
  close();
  EXPECT_EQ(core.interface(kMatchingPhysical), nullptr);
  EXPECT_GT(core.activity, activity) << "who waits has to look again";
}

TEST_F(CloseInterfaceTest, Message_that_arrives__is_dropped_to_its_end) {
  append(entry());
  receive(put_header(3 * kPacketBytes, 7));
  close();
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kDiscard);
  receive(data_header(kPacketBytes, kPacketBytes));
  receive(data_header(2 * kPacketBytes, kPacketBytes));
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
  EXPECT_TRUE(is_untouched(memory.data() + kPacketBytes, 2 * kPacketBytes));
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CloseInterfaceTest, Message_that_arrives__does_not_reach_the_interface_that_is_opened_next) {
  append(entry());
  receive(put_header(2 * kPacketBytes, 7));
  close();
  reopen();
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_TRUE(is_untouched(memory.data() + kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre());
}

TEST_F(CloseInterfaceTest, Message_that_arrives_for_another_interface__goes_on) {
  Interface& other = open_interface(kNonMatchingPhysical);
  const Handle other_eq = make_eq(other);
  make_portal(other, kPt, other_eq);
  EntryRequest request = entry(kEntryOpPut | kEntryEventLinkDisable);
  request.ct_handle = 0;
  Handle handle = 0;
  ASSERT_EQ(append_entry(core, other, std::move(request), &handle), Status::kOk);
  PacketHeader header = put_header(2 * kPacketBytes);
  header.interface_index = kNonMatchingPhysical;
  receive(header);
  close();
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_TRUE(holds_pattern(memory.data(), 2 * kPacketBytes));
  EXPECT_THAT(kinds(other_eq), ElementsAre(EventKind::kPut));
}

TEST_F(CloseInterfaceTest, Unexpected_headers__are_freed_complete_or_not) {
  append(entry(kEntryOpPut | kEntryOpGet, ListKind::kOverflow));
  receive_put(8);
  receive_put(8);
  receive(put_header(2 * kPacketBytes));
  close();
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
}

// The leak checker of the asan preset judges this one and the next two.
TEST_F(CloseInterfaceTest, Unexpected_header__that_was_taken_before_its_message_is_complete_is_freed) {
  begin_unexpected();
  append(entry(kEntryOpPut | kEntryUseOnce));
  ASSERT_TRUE(portal.unexpected.empty());
  ASSERT_EQ(ni.unexpected_count, 1u);
  close();
  receive(data_header(kPacketBytes, kPacketBytes));
}

TEST_F(CloseInterfaceTest, Unexpected_headers__that_a_search_has_claimed_are_freed) {
  append(entry(kEntryOpPut, ListKind::kOverflow));
  receive(put_header(2 * kPacketBytes));
  receive(put_header(2 * kPacketBytes), kOther);
  search_entries(core, ni, entry(), SearchOperation::kDelete);
  ASSERT_EQ(ni.unexpected_count, 2u);
  EXPECT_THAT(kinds(), ElementsAre());
  close();
  receive(data_header(kPacketBytes, kPacketBytes));
  receive(data_header(kPacketBytes, kPacketBytes), kOther);
}

TEST_F(CloseInterfaceTest, Unexpected_header__of_a_get_that_was_taken_before_its_reply_has_left_is_freed) {
  append(entry(kEntryOpGet, ListKind::kOverflow));
  wire.room = 0;
  receive(get_header(2 * kPacketBytes, 7));
  append(entry(kEntryOpGet | kEntryUseOnce));
  ASSERT_TRUE(portal.unexpected.empty());
  ASSERT_EQ(ni.unexpected_count, 1u);
  close();
}

TEST_F(CloseInterfaceTest, Reply_that_waits_to_begin__ends_as_failed_without_reading_memory) {
  append(entry());
  wire.room = 0;
  receive(get_header(2 * kPacketBytes, 7));
  close();
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  ASSERT_EQ(wire.sent.size(), 1u);
  const PacketHeader header = next_sent();
  EXPECT_EQ(header.type, PacketType::kAnswer);
  EXPECT_EQ(header.operation_id, 7u);
  EXPECT_EQ(header.ni_fail_type, static_cast<std::uint8_t>(NiFail::kDropped));
  EXPECT_EQ(header.length, 0u);
  EXPECT_EQ(header.payload_bytes, 0u);
}

TEST_F(CloseInterfaceTest, Reply_that_has_begun__is_cut) {
  append(entry());
  wire.room = 1;
  receive(get_header(2 * kPacketBytes, 7));
  ASSERT_EQ(wire.sent.size(), 1u);
  next_sent();
  close();
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  ASSERT_EQ(wire.sent.size(), 1u);
  const PacketHeader header = next_sent();
  EXPECT_EQ(header.type, PacketType::kData);
  EXPECT_EQ(header.flags, kFlagAnswerStream | kFlagCut);
  EXPECT_EQ(header.payload_bytes, 0u);
  EXPECT_TRUE(peer().answers.waiting.empty());
}

TEST_F(CloseInterfaceTest, Reply_whose_data_was_taken_already__still_leaves) {
  append(entry());
  wire.room = 0;
  const std::vector<std::byte> data = pattern_bytes(0, 64);
  std::copy(data.begin(), data.end(), memory.begin());
  receive(get_header(64, 7));
  close();
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.take().payload, data);
}

TEST_F(CloseInterfaceTest, Reply_that_waits__knows_nothing_of_the_interface_that_is_opened_next) {
  append(entry());
  wire.room = 0;
  receive(get_header(2 * kPacketBytes, 7));
  close();
  reopen();
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre());
}

TEST_F(CloseInterfaceTest, Acknowledgement_that_waits__still_leaves) {
  append(entry());
  wire.room = 0;
  receive_put(8, 7);
  close();
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_EQ(next_sent().operation_id, 7u);
}

TEST_F(CloseInterfaceTest, Request_that_waits_to_begin__never_leaves) {
  const MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
  wire.room = 0;
  Descriptor d = descriptor(PacketType::kPut, 8);
  d.portals.ack_req = AckRequest::kFull;
  start(d, md);
  start(descriptor(PacketType::kGet, 8), md);
  ASSERT_EQ(peer().requests.waiting.size(), 2u);
  close();
  EXPECT_TRUE(peer().requests.waiting.empty());
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_EQ(peer().outstanding, 0u);
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(CloseInterfaceTest, Request_that_has_begun__is_cut_so_that_the_target_does_not_wait) {
  const MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
  wire.room = 1;
  Descriptor d = descriptor(PacketType::kPut, 2 * kPacketBytes);
  d.portals.ack_req = AckRequest::kFull;
  start(d, md);
  ASSERT_EQ(next_sent().type, PacketType::kPut);
  close();
  advance_peer(core, peer());
  EXPECT_TRUE(wire.sent.empty()) << "no room yet";
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  ASSERT_EQ(wire.sent.size(), 1u);
  const PacketHeader header = next_sent();
  EXPECT_EQ(header.type, PacketType::kData);
  EXPECT_EQ(header.flags, kFlagCut);
  EXPECT_EQ(header.payload_bytes, 0u);
  EXPECT_NE(header.ni_fail_type, static_cast<std::uint8_t>(NiFail::kOk));
  EXPECT_EQ(header.job_key, kJobKey);
  EXPECT_TRUE(peer().requests.waiting.empty());
}

TEST_F(CloseInterfaceTest, Request_that_has_begun__takes_nothing_from_the_interface_that_is_opened_next) {
  const MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
  const Handle md_handle = md.handle;
  wire.room = 1;
  start(descriptor(PacketType::kPut, 2 * kPacketBytes), md);
  next_sent();
  close();
  Interface& fresh = reopen();
  std::byte small[16]{};
  MemoryDescriptor& fresh_md = make_md(fresh, small, sizeof(small));
  ASSERT_EQ(fresh_md.handle, md_handle) << "the test needs the same handle";
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_EQ(fresh_md.pending, 0u);
  EXPECT_EQ(next_sent().flags, kFlagCut);
  EXPECT_EQ(fresh.eqs.find(eq)->empty(), true);
}

TEST_F(CloseInterfaceTest, Request_that_has_begun__is_dropped_if_its_peer_is_lost) {
  const MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
  wire.room = 1;
  start(descriptor(PacketType::kPut, 2 * kPacketBytes), md);
  close();
  wire.kill(kPeer);
  advance_peer(core, peer());
  EXPECT_TRUE(peer().requests.waiting.empty());
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
}

TEST_F(CloseInterfaceTest, Answer_that_comes_after_the_end__is_for_nobody) {
  const Handle md_handle = make_md(ni, memory.data(), memory.size()).handle;
  for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{2 * kPacketBytes}}) {
    start(descriptor(PacketType::kGet, bytes), *core.interface(kMatchingPhysical)->mds.find(md_handle));
    const std::uint32_t id = next_sent().operation_id;
    close();
    Interface& fresh = reopen();
    std::vector<std::byte> other(bytes);
    ASSERT_EQ(make_md(fresh, other.data(), other.size()).handle, md_handle) << "the test needs the same handle";
    receive(answer_header(id, bytes, static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kPacketBytes))));
    if (bytes > kPacketBytes) receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
    EXPECT_EQ(refused(), 0u);
    EXPECT_TRUE(is_untouched(other.data(), other.size()));
    EXPECT_EQ(fresh.outstanding, 0u);
    EXPECT_THAT(kinds(), ElementsAre());
    EXPECT_EQ(core.outstanding.open_count(), 0u);
    EXPECT_EQ(peer().outstanding, 0u);
  }
}

// The upper bits of a number wrap after some thousand uses of its slot, and the peer may be stopped for any time.
TEST_F(CloseInterfaceTest, Number_of_an_operation__is_used_anew_when_its_answer_has_come) {
  const Handle md_handle = make_md(ni, memory.data(), memory.size()).handle;
  Descriptor put = descriptor(PacketType::kPut, 2 * kPacketBytes);
  put.portals.ack_req = AckRequest::kFull;
  wire.room = 3;
  start(descriptor(PacketType::kGet, 8), *ni.mds.find(md_handle));
  start(put, *ni.mds.find(md_handle));  // All of it leaves.
  start(descriptor(PacketType::kSwap, 0), *ni.mds.find(md_handle));
  const std::set<std::uint32_t> owed{next_sent().operation_id, next_sent().operation_id};
  close();
  ASSERT_EQ(peer().outstanding, 2u) << "the third never left";
  wire.room = FakeWire::kPlentyOfRoom;
  wire.sent.clear();
  Interface& fresh = reopen();
  ASSERT_EQ(make_md(fresh, memory.data(), memory.size()).handle, md_handle);
  for (int i = 0; i < 5000; ++i) {
    Descriptor get = descriptor(PacketType::kGet, 8);
    get.portals.target = kOther;
    start(get, *fresh.mds.find(md_handle));
    const std::uint32_t id = next_sent().operation_id;
    ASSERT_EQ(owed.count(id), 0u) << "after " << i;
    receive(answer_header(id, 8, 8), kOther);
    ASSERT_THAT(kinds(), ElementsAre(EventKind::kReply));
  }
  for (const std::uint32_t id : owed) receive(answer_header(id, 0));
  EXPECT_EQ(peer().outstanding, 0u);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_THAT(kinds(), ElementsAre());
}

TEST_F(CloseInterfaceTest, Number_of_an_operation__is_used_anew_when_its_peer_is_lost) {
  start(descriptor(PacketType::kGet, 8), make_md(ni, memory.data(), memory.size()));
  next_sent();
  close();
  EXPECT_EQ(core.outstanding.open_count(), 1u);
  wire.kill(kPeer);
  run_timers_on_duty(core);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_EQ(peer().outstanding, 0u);
}

TEST_F(CloseInterfaceTest, Reply_that_arrives__is_dropped_to_its_end_and_the_next_answer_is_heard) {
  const MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
  start(descriptor(PacketType::kGet, 3 * kPacketBytes), md);
  const std::uint32_t id = next_sent().operation_id;
  receive(answer_header(id, 3 * kPacketBytes, kPacketBytes));
  close();
  Interface& fresh = reopen();
  std::vector<std::byte> other(64);
  MemoryDescriptor& fresh_md = make_md(fresh, other.data(), other.size());
  start(descriptor(PacketType::kGet, 64), fresh_md);
  const std::uint32_t next_id = next_sent().operation_id;
  receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
  receive(data_header(2 * kPacketBytes, kPacketBytes, kFlagAnswerStream));
  EXPECT_TRUE(is_untouched(other.data(), other.size()));
  receive(answer_header(next_id, 64, 64));
  EXPECT_TRUE(holds_pattern(other.data(), 64));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(fresh_md.pending, 0u);
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CloseInterfaceTest, Reply_that_arrives__and_is_cut_after_the_end_lets_the_next_answer_be_heard) {
  const MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
  start(descriptor(PacketType::kGet, 3 * kPacketBytes), md);
  receive(answer_header(next_sent().operation_id, 3 * kPacketBytes, kPacketBytes));
  close();
  receive(data_header(kPacketBytes, 0, kFlagAnswerStream | kFlagCut));
  EXPECT_EQ(peer().answer_stream.mode, ArrivalMode::kIdle);
}

TEST_F(CloseInterfaceTest, Operations_of_another_interface__go_on) {
  Interface& other = open_interface(kNonMatchingPhysical);
  MemoryDescriptor& md = make_md(other, memory.data(), memory.size());
  Descriptor d = descriptor(PacketType::kGet, 8);
  d.interface_index = kNonMatchingPhysical;
  start(d, md);
  const std::uint32_t id = next_sent().operation_id;
  close();
  EXPECT_EQ(other.outstanding, 1u);
  receive(answer_header(id, 8, 8));
  EXPECT_EQ(other.outstanding, 0u);
  EXPECT_EQ(md.pending, 0u);
  EXPECT_TRUE(holds_pattern(memory.data(), 8));
}

TEST_F(CloseInterfaceTest, Triggered_operations__are_deleted_whether_they_wait_or_have_fired) {
  for (const std::uint64_t threshold : {std::uint64_t{0}, std::uint64_t{100}}) {
    arm_operation(core, *ni.cts.find(ct), descriptor(PacketType::kPut, 8), {ct, threshold});
  }
  auto* of_another = new TriggeredOperation;
  of_another->descriptor.interface_index = kNonMatchingPhysical;
  core.fired.push_back(*of_another);
  close();
  ASSERT_EQ(core.fired.size(), 1u);
  EXPECT_EQ(&core.fired.front(), of_another);
  core.fired.clear_and_dispose([](TriggeredOperation* operation) { delete operation; });
}

TEST_F(CloseInterfaceTest, Everything_under_way_at_once__lets_go) {
  const MemoryDescriptor& md = make_md(ni, memory.data(), memory.size());
  begin_unexpected();
  append(entry(kEntryOpPut | kEntryUseOnce));
  append(entry());
  receive(put_header(2 * kPacketBytes, 8), kOther);
  start(descriptor(PacketType::kGet, 2 * kPacketBytes), md);
  receive(answer_header(next_sent().operation_id, 2 * kPacketBytes, kPacketBytes));
  wire.room = 1;
  receive(get_header(2 * kPacketBytes, 9), ProcessId{1, 1});
  start(descriptor(PacketType::kPut, 2 * kPacketBytes), md);
  start(descriptor(PacketType::kPut, 8), md);
  close();
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  for (auto& [key, known] : core.peers) {
    EXPECT_EQ(known->outstanding, 0u);
    EXPECT_NE(known->request_stream.mode, ArrivalMode::kDeliver);
    EXPECT_NE(known->answer_stream.mode, ArrivalMode::kDeliver);
  }
}

}  // namespace
}  // namespace portofu
