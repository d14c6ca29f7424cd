// Transfers into entries that a peer has published: what the initiator does itself, in which order, what it tells, and
// what it leaves to packets.

#include "engine/initiator/portals_direct.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/send.h"
#include "engine/memory/guarded_copy.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PortalsDirectTest : public CoreTest {
 protected:
  void SetUp() override {
    install_fault_guard();
    memory = pattern_bytes(0, memory.size());
    md = &make_md(ni, memory.data(), memory.size(), kMdEventCtSend | kMdEventCtAck | kMdEventCtReply);
    wire.mapped.memory = remote.data();
    wire.mapped.bytes = remote.size();
    wire.mapped.writable = true;
    wire.mapped.sequence = &sequence;
    wire.mapped.seen = 2;
    wire.mapped.user = kUidAny;
    wire.mapped.match_bits = kBits;
    wire.mapped.visited = &visited;
  }

  /// A put that is answered by an answer that says so.
  void learn() {
    start(transfer(PacketType::kPut, 8, AckRequest::kCount));
    PacketHeader answer = answer_header(next_sent().operation_id, 8);
    answer.flags = kFlagPublished;
    answer.pt_index = kPt;
    answer.match_bits = kBits;
    receive(answer);
    kinds();
    ni.cts.find(ct)->reset_on_duty();
  }

  Descriptor transfer(PacketType kind, std::uint64_t length, AckRequest ack_req = AckRequest::kNone) {
    Descriptor d = descriptor(kind, length);
    d.portals.md_handle = md->handle;
    d.portals.ack_req = ack_req;
    if (is_fetching(kind)) d.portals.get_md_handle = md->handle;
    return d;
  }
  Descriptor sum(PacketType kind) {
    Descriptor d = transfer(kind, 8);
    d.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
    d.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
    d.portals.local_offset = 64;
    d.portals.local_get_offset = 128;
    return d;
  }

  /// Both ways in which a call of the application starts it.
  void start(Descriptor d) {
    if (!send_at_once(core, ni, *md, d)) start_descriptor(core, d);
  }
  /// @return whether a packet had to do it
  bool goes_by_packet(const Descriptor& d) {
    const std::size_t before = wire.sent.size();
    start(d);
    return wire.sent.size() > before;
  }
  std::uint64_t remote_word(std::size_t index = 0) const {
    std::uint64_t value = 0;
    std::memcpy(&value, remote.data() + 8 * index, sizeof value);
    return value;
  }
  std::uint64_t own_word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }

  MemoryDescriptor* md = nullptr;
  alignas(64) std::array<std::byte, 8192> remote{};
  std::atomic<std::uint64_t> sequence{2};
  std::atomic<std::uint64_t> visited{0};
};

TEST_F(PortalsDirectTest, Nothing__is_used_before_an_answer_has_told_of_it) {
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8, AckRequest::kCount)));
  receive(answer_header(next_sent().operation_id, 8));
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
}

/// 3.13.1: SEND, then ACK, as of a put that was answered.
TEST_F(PortalsDirectTest, Put__needs_no_packet_and_is_complete_at_once) {
  learn();
  for (const std::uint64_t length : {std::uint64_t{8}, std::uint64_t{3000}}) {
    Descriptor d = transfer(PacketType::kPut, length, AckRequest::kFull);
    d.portals.local_offset = 5;
    d.remote_offset = 16;
    d.portals.user_ptr = &d;
    EXPECT_FALSE(goes_by_packet(d));
    EXPECT_TRUE(holds_pattern(remote.data() + 16, length, 5));
    EXPECT_TRUE(is_untouched(remote.data() + 16 + length, 100));
    const Event send = next_event();
    EXPECT_EQ(send.type, EventKind::kSend);
    EXPECT_EQ(send.mlength, length);
    EXPECT_EQ(send.user_ptr, &d);
    const Event ack = next_event();
    EXPECT_EQ(ack.type, EventKind::kAck);
    EXPECT_EQ(ack.ni_fail_type, NiFail::kOk);
    EXPECT_EQ(ack.mlength, length);
    EXPECT_EQ(ack.remote_offset, 16u);
    EXPECT_EQ(ack.user_ptr, &d);
    EXPECT_EQ(ack.ptl_list, ListKind::kPriority);
  }
  EXPECT_EQ(successes(), 4u) << "SEND and ACK of two puts";
  EXPECT_EQ(counted(Counter::kPutsDirect), 2u);
  EXPECT_EQ(md->pending, 0u);
  EXPECT_EQ(ni.outstanding, 0u);
  EXPECT_EQ(visited.load(), 0u);
}

TEST_F(PortalsDirectTest, Acknowledgement__is_told_as_it_was_asked_for) {
  learn();
  start(transfer(PacketType::kPut, 8, AckRequest::kNone));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  EXPECT_EQ(successes(), 1u);
  start(transfer(PacketType::kPut, 8, AckRequest::kCount));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  EXPECT_EQ(successes(), 3u);
  md->options |= kMdEventSendDisable | kMdEventCtBytes;
  start(transfer(PacketType::kPut, 8, AckRequest::kFull));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kAck));
  EXPECT_EQ(successes(), 19u);
  start(transfer(PacketType::kPut, 8, AckRequest::kOperation));
  EXPECT_EQ(successes(), 28u) << "3.15.1: an operation is one, not its bytes";
}

TEST_F(PortalsDirectTest, Get__brings_what_is_there) {
  learn();
  std::memcpy(remote.data() + 100, pattern_bytes(7, 2000).data(), 2000);
  Descriptor d = transfer(PacketType::kGet, 2000);
  d.portals.local_offset = 3000;
  d.remote_offset = 100;
  EXPECT_FALSE(goes_by_packet(d));
  EXPECT_TRUE(holds_pattern(memory.data() + 3000, 2000, 7));
  const Event reply = next_event();
  EXPECT_EQ(reply.type, EventKind::kReply);
  EXPECT_EQ(reply.mlength, 2000u);
  EXPECT_EQ(reply.remote_offset, 100u);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(md->pending, 0u);
}

TEST_F(PortalsDirectTest, Atomics__combine_and_fetch) {
  learn();
  const std::uint64_t operand = own_word(64);
  Descriptor add = sum(PacketType::kAtomic);
  add.portals.ack_req = AckRequest::kFull;
  EXPECT_FALSE(goes_by_packet(add));
  EXPECT_EQ(remote_word(), operand);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kAck));
  EXPECT_FALSE(goes_by_packet(sum(PacketType::kFetchAtomic)));
  EXPECT_EQ(remote_word(), 2 * operand);
  EXPECT_EQ(own_word(128), operand);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kReply));
  Descriptor swap = sum(PacketType::kSwap);
  swap.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kCswap);
  swap.portals.operand_bytes = 8;
  const std::uint64_t expected = 2 * operand;
  std::memcpy(swap.operand.data(), &expected, sizeof expected);
  EXPECT_FALSE(goes_by_packet(swap));
  EXPECT_EQ(remote_word(), operand);
  EXPECT_EQ(own_word(128), 2 * operand);
  EXPECT_FALSE(goes_by_packet(swap));
  EXPECT_EQ(remote_word(), operand) << "not what was expected";
  EXPECT_EQ(own_word(128), operand);
  EXPECT_EQ(md->pending, 0u);
}

/// atomic_unit.h: what no CPU atomic covers is done by the process that owns the memory.
TEST_F(PortalsDirectTest, Atomic_that_needs_the_lock_of_the_owner__goes_by_packet) {
  learn();
  Descriptor wide = sum(PacketType::kAtomic);
  wide.length = 32;
  wide.atomic_type = static_cast<std::uint8_t>(AtomicType::kLongDoubleComplex);
  EXPECT_TRUE(goes_by_packet(wide));
  wire.sent.clear();
  Descriptor crooked = sum(PacketType::kAtomic);
  crooked.length = 16;
  crooked.atomic_type = static_cast<std::uint8_t>(AtomicType::kDoubleComplex);
  crooked.remote_offset = 8;
  EXPECT_TRUE(goes_by_packet(crooked));
  wire.sent.clear();
  Descriptor unaligned = sum(PacketType::kAtomic);
  unaligned.remote_offset = 4;
  EXPECT_TRUE(goes_by_packet(unaligned)) << "the owner refuses it";
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
}

/// 2.7.1: what was sent before is written and read before.
TEST_F(PortalsDirectTest, Packets_under_way__are_not_overtaken) {
  learn();
  Descriptor elsewhere = transfer(PacketType::kPut, 8);
  elsewhere.pt_index = kPt + 1;
  ASSERT_TRUE(goes_by_packet(elsewhere));
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kGet, 8)));
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
  md->options |= kMdUnordered;
  EXPECT_FALSE(goes_by_packet(transfer(PacketType::kPut, 8))) << "2.7.5: PTL_MD_UNORDERED may";
  md->options &= ~kMdUnordered;
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  wire.sent.clear();
  EXPECT_FALSE(goes_by_packet(transfer(PacketType::kPut, 8)));
}

TEST_F(PortalsDirectTest, Requests_that_wait__are_not_overtaken) {
  learn();
  wire.room = 0;
  Descriptor elsewhere = transfer(PacketType::kPut, 8);
  elsewhere.pt_index = kPt + 1;
  start(elsewhere);
  start(transfer(PacketType::kPut, 8));
  EXPECT_EQ(peer().requests.waiting.size(), 2u);
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
}

/// What the owner would cut or refuse is for the owner to judge.
TEST_F(PortalsDirectTest, What_is_not_wholly_allowed__goes_by_packet) {
  learn();
  const auto by_packet = [this](const Descriptor& d) {
    wire.sent.clear();
    return goes_by_packet(d);
  };
  EXPECT_TRUE(by_packet(transfer(PacketType::kPut, 0)));
  EXPECT_TRUE(by_packet(transfer(PacketType::kPut, remote.size() + 1)));
  for (const std::uint64_t offset : {remote.size() - 7, remote.size(), UINT64_MAX}) {
    Descriptor over = transfer(PacketType::kPut, 8);
    over.remote_offset = offset;
    EXPECT_TRUE(by_packet(over)) << offset;
  }
  for (std::uint32_t pt_index = 0; pt_index < 256; ++pt_index) {  // Some share the place in the table.
    Descriptor other = transfer(PacketType::kPut, 8);
    other.pt_index = static_cast<std::uint16_t>(pt_index);
    if (pt_index == kPt) continue;
    EXPECT_TRUE(by_packet(other));
  }
  for (std::uint64_t bit = 0; bit < 64; ++bit) {
    Descriptor other = transfer(PacketType::kPut, 8);
    other.match_bits ^= std::uint64_t{1} << bit;
    EXPECT_TRUE(by_packet(other)) << bit;
  }
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
}

TEST_F(PortalsDirectTest, Rights_of_the_entry__are_kept) {
  wire.mapped.user = kUid + 1;
  learn();
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  wire.sent.clear();
  wire.mapped.user = kUid;
  wire.mapped.readable = false;
  sequence = wire.mapped.seen = 4;  // It was withdrawn and published anew.
  remember_published(peer(), ni.index, kPt, kBits);
  EXPECT_FALSE(goes_by_packet(transfer(PacketType::kPut, 8)));
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kGet, 8)));
  wire.sent.clear();
  EXPECT_FALSE(goes_by_packet(sum(PacketType::kAtomic)));
  EXPECT_TRUE(goes_by_packet(sum(PacketType::kFetchAtomic)));
  wire.sent.clear();
  wire.mapped.readable = true;
  wire.mapped.writable = false;
  sequence = wire.mapped.seen = 6;
  remember_published(peer(), ni.index, kPt, kBits);
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  wire.sent.clear();
  EXPECT_FALSE(goes_by_packet(transfer(PacketType::kGet, 8)));
  EXPECT_TRUE(goes_by_packet(sum(PacketType::kFetchAtomic)));
}

/// Partner of PublishedEntryTest: who finds the entry withdrawn says that it is not there any more, and does not touch
/// it.
TEST_F(PortalsDirectTest, Withdrawn_entry__is_left_alone_and_forgotten) {
  learn();
  sequence = 4;
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
  EXPECT_EQ(visited.load(), 0u);
  wire.sent.clear();
  sequence = 2;
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8))) << "until an answer tells of it again";
}

TEST_F(PortalsDirectTest, Own_memory_that_faults__fails_as_with_packets) {
  learn();
  const FaultyMemory faulty;
  MemoryDescriptor& bad = make_md(ni, faulty.edge() - 8, 100, kMdEventCtSend | kMdEventCtReply);
  Descriptor d = transfer(PacketType::kPut, 100);
  d.portals.md_handle = bad.handle;
  if (!send_at_once(core, ni, bad, d)) start_descriptor(core, d);
  const Event send = next_event();
  EXPECT_EQ(send.type, EventKind::kSend);
  EXPECT_EQ(send.ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(failures(), 1u);
}

/// 3.15.5: the operation is done once, whatever becomes of the reply.
TEST_F(PortalsDirectTest, Reply_that_cannot_be_stored__is_told_and_the_operation_done_once) {
  learn();
  const FaultyMemory faulty;
  MemoryDescriptor& bad = make_md(ni, faulty.edge(), 100, kMdEventCtReply);
  Descriptor d = sum(PacketType::kFetchAtomic);
  d.portals.get_md_handle = bad.handle;
  d.portals.local_get_offset = 0;
  EXPECT_FALSE(goes_by_packet(d));
  EXPECT_EQ(remote_word(), own_word(64));
  EXPECT_EQ(next_event().type, EventKind::kSend);
  const Event reply = next_event();
  EXPECT_EQ(reply.type, EventKind::kReply);
  EXPECT_EQ(reply.ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(failures(), 1u);
  EXPECT_EQ(bad.pending, 0u);
}

TEST_F(PortalsDirectTest, Lost_peer__is_told_and_its_memory_forgotten) {
  learn();
  wire.kill(kPeer);
  start(transfer(PacketType::kPut, 8));
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
  run_timers_on_duty(core);
  EXPECT_EQ(peer().published, nullptr);
}

/// The death of a peer is looked for while its memory is used, though nothing is outstanding.
TEST_F(PortalsDirectTest, Use__keeps_the_timers_going) {
  learn();
  EXPECT_FALSE(needs_timers_on_duty(core));
  start(transfer(PacketType::kPut, 8));
  EXPECT_TRUE(needs_timers_on_duty(core));
  run_timers_on_duty(core);
  EXPECT_FALSE(needs_timers_on_duty(core));
}

TEST_F(PortalsDirectTest, Triggered_operation__is_done_so_too) {
  learn();
  const Handle trigger = make_ct(ni);
  arm_operation(core, *ni.cts.find(trigger), transfer(PacketType::kPut, 8, AckRequest::kCount), {trigger, 1});
  ni.cts.find(trigger)->add_success_on_duty(1, core.fired);
  run_cycle_on_duty(core);
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_TRUE(holds_pattern(remote.data(), 8));
  EXPECT_EQ(successes(), 2u);
}

TEST_F(PortalsDirectTest, Peer_that_lies__is_not_believed) {
  wire.mapped.visited = nullptr;  // Or a kernel without membarrier.
  learn();
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  wire.sent.clear();
  wire.mapped.visited = &visited;
  wire.mapped.match_bits = kBits + 1;  // Another entry has the same key.
  learn();
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
  wire.sent.clear();
  wire.mapped.match_bits = kBits;
  wire.mapped.memory = nullptr;  // There is no such entry.
  learn();
  EXPECT_TRUE(goes_by_packet(transfer(PacketType::kPut, 8)));
}

}  // namespace
}  // namespace portofu
