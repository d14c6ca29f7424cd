// Requests of uTofu that go by packets: what the packet says, what waits, and what the TCQ and the MRQ are told.

#include "engine/initiator/tofu_send.h"

#include "engine/initiator/send.h"
#include "engine/mailbox/outbox.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

constexpr std::uint64_t kQueueThere = make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(0, 4, 0));
constexpr std::uint64_t kStaddThere = make_stadd(5000);

/// Says who has the other queue.
struct SingleOwner : NodeDirectory {
  ClaimResult claim(std::uint64_t) override { return ClaimResult::kClaimed; }
  void release(std::uint64_t) override {}
  FindResult find(std::uint64_t, NameOwner* owner) override {
    *owner = {{0x0a000001, 2}};
    return result;
  }
  FindResult result = FindResult::kFound;
};

class TofuSendTest : public CoreTest {
 protected:
  TofuSendTest() {
    core.tofu = std::make_unique<Tofu>(Coordinates{}, &names);
    ControlQueue* queue = core.tofu->claim_queue(0, 1, CqMode::kShared);
    queue->vcqs[2] = std::make_unique<VirtualControlQueue>(16, 16);
    vcq = queue->vcqs[2].get();
    vcq->id = make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(0, 1, 2));
    core.tofu->enter(*vcq);
    queue->stadds.add({2, memory.data(), memory.size(), false}, &stadd);
    std::memcpy(memory.data(), pattern_bytes(0, kMemoryBytes).data(), kMemoryBytes);
  }

  Descriptor request(PacketType kind, std::uint64_t length, std::uint16_t flags = 0) {
    Descriptor d;
    d.type = kind;
    d.interface_index = kTofuInterface;
    d.tofu = {vcq->handle, false, kQueueThere, stadd, vcq->tcq.take(nullptr, true)};
    d.remote_stadd = kStaddThere;
    d.length = length;
    d.tofu_meta = static_cast<std::uint16_t>(flags | kTofuTcqNotice | 9);
    return d;
  }
  void start(Descriptor d) { start_descriptor(core, d); }

  /// @return what the TCQ says; NiFail::kDropped if it says nothing
  NiFail told() {
    void* data = nullptr;
    NiFail fail = NiFail::kOk;
    return vcq->tcq.read(&data, &fail) ? fail : NiFail::kDropped;
  }
  PacketHeader answer_to(const PacketHeader& asked, std::uint64_t length) const {
    return answer_header(asked.operation_id, length, static_cast<std::uint32_t>(length));
  }

  SingleOwner names;
  VirtualControlQueue* vcq = nullptr;
  std::uint64_t stadd = 0;
};

TEST_F(TofuSendTest, Put__leaves_in_a_packet_and_asks_for_no_answer) {
  start(request(PacketType::kTofuPut, 100));
  const FakePacket packet = wire.take();
  EXPECT_EQ(packet.process, kPeer);
  EXPECT_EQ(packet.payload, pattern_bytes(0, 100));
  EXPECT_EQ(packet.header.type, PacketType::kTofuPut);
  EXPECT_EQ(packet.header.flags, 0);
  EXPECT_EQ(packet.header.operation_id, 0u);
  EXPECT_EQ(packet.header.sender_id, vcq->id);
  EXPECT_EQ(packet.header.vcq_handle, vcq->handle);
  EXPECT_EQ(packet.header.tofu_queue, queue_number(kQueueThere));
  EXPECT_EQ(packet.header.remote_stadd, kStaddThere);
  EXPECT_EQ(packet.header.length, 100u);
  EXPECT_EQ(edata_of(packet.header.tofu_meta), 9);
  EXPECT_EQ(told(), NiFail::kOk);
}

TEST_F(TofuSendTest, Local_notice_of_a_put__comes_with_the_answer) {
  start(request(PacketType::kTofuPut, 100, kTofuLocalNotice));
  const PacketHeader asked = next_sent();
  EXPECT_NE(asked.flags & kFlagAnswerWanted, 0);
  EXPECT_EQ(told(), NiFail::kOk) << "the data has left";
  Notice notice;
  EXPECT_FALSE(vcq->mrq.read(&notice));
  PacketHeader answer = answer_to(asked, 0);
  answer.length = 100;
  answer.remote_stadd = kStaddThere + 100;
  receive(answer);
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.kind, NoticeKind::kLocalPut);
  EXPECT_EQ(notice.fail, NiFail::kOk);
  EXPECT_EQ(notice.remote_stadd, kStaddThere + 100);
  EXPECT_EQ(notice.edata, 9u);
  EXPECT_EQ(peer().outstanding, 0u);
}

TEST_F(TofuSendTest, Get__brings_its_data_to_where_it_said) {
  Descriptor get = request(PacketType::kTofuGet, 64, kTofuLocalNotice);
  get.tofu.local_stadd = stadd + 200;
  start(get);
  const PacketHeader asked = next_sent();
  EXPECT_EQ(asked.local_stadd, stadd + 200);
  EXPECT_EQ(asked.payload_bytes, 0u);
  EXPECT_EQ(peer().gets_under_way, 1u);
  receive(answer_to(asked, 64));
  EXPECT_TRUE(holds_pattern(memory.data() + 200, 64));
  EXPECT_EQ(peer().gets_under_way, 0u);
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.kind, NoticeKind::kLocalGet);
  EXPECT_EQ(notice.local_stadd, stadd + 264);
}

// 2.2.10: behind what was asked before it.
TEST_F(TofuSendTest, Strong_order__waits_for_a_get) {
  start(request(PacketType::kTofuGet, 64));
  const PacketHeader asked = next_sent();
  start(request(PacketType::kTofuPut, 8, kTofuStrongOrder));
  run_cycle_on_duty(core);
  EXPECT_TRUE(wire.sent.empty());
  receive(answer_to(asked, 64));
  run_cycle_on_duty(core);
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(next_sent().type, PacketType::kTofuPut);
}

TEST_F(TofuSendTest, Without_room__waits_and_tells_its_end_when_it_has_left) {
  wire.room = 0;
  start(request(PacketType::kTofuPut, 8));
  start(request(PacketType::kTofuGet, 8));
  EXPECT_EQ(peer().requests.waiting.size(), 2u);
  EXPECT_EQ(told(), NiFail::kDropped);
  wire.room = FakeWire::kPlentyOfRoom;
  run_cycle_on_duty(core);
  EXPECT_EQ(next_sent().type, PacketType::kTofuPut);
  const PacketHeader get = next_sent();
  EXPECT_EQ(get.type, PacketType::kTofuGet);
  EXPECT_EQ(told(), NiFail::kOk);
  EXPECT_EQ(told(), NiFail::kOk);
  receive(answer_to(get, 8));
}

TEST_F(TofuSendTest, Long_put__leaves_in_several_packets) {
  start(request(PacketType::kTofuPut, kPacketBytes + 8));
  ASSERT_EQ(wire.sent.size(), 2u);
  EXPECT_EQ(wire.sent[1].header.type, PacketType::kData);
  EXPECT_EQ(wire.sent[1].payload, pattern_bytes(kPacketBytes, 8));
  EXPECT_EQ(told(), NiFail::kOk);
}

// 2.2.12: what is wrong on the side of the initiator is told by the TCQ.
TEST_F(TofuSendTest, Local_address_of_nothing__is_told_by_the_TCQ) {
  Descriptor put = request(PacketType::kTofuPut, 8);
  put.tofu.local_stadd = make_stadd(77);
  start(put);
  EXPECT_EQ(told(), NiFail::kBadStadd);
  Descriptor too_long = request(PacketType::kTofuPut, kMemoryBytes + 1);
  start(too_long);
  EXPECT_EQ(told(), NiFail::kBadLength);
  EXPECT_EQ(vcq->last_failed.fail, NiFail::kBadLength);
  EXPECT_FALSE(vcq->last_failed.remote);
  EXPECT_EQ(vcq->last_failed.stadd, too_long.tofu.local_stadd + kMemoryBytes + 1);
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(TofuSendTest, Queue_of_nobody__is_told_by_the_MRQ) {
  names.result = FindResult::kNobody;
  start(request(PacketType::kTofuPut, 8));
  EXPECT_EQ(told(), NiFail::kOk) << "it has left our side";
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.fail, NiFail::kUndeliverable);
  EXPECT_EQ(vcq->last_failed.fail, NiFail::kUndeliverable);
  EXPECT_EQ(vcq->last_failed.vcq_id, notice.vcq_id);
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(TofuSendTest, Nop__is_done_at_once) {
  start(request(PacketType::kTofuNop, 0));
  EXPECT_EQ(told(), NiFail::kOk);
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(TofuSendTest, Queue_that_is_freed__takes_back_what_has_not_begun) {
  wire.room = 0;
  start(request(PacketType::kTofuPut, 8));
  start(request(PacketType::kTofuGet, 8));
  leave_queue(core, *vcq);
  EXPECT_TRUE(peer().requests.waiting.empty());
  EXPECT_EQ(peer().outstanding, 0u);
  EXPECT_EQ(peer().gets_under_way, 0u);
}

// The answer may come after thousands of others: no later operation may have its number by then.
TEST_F(TofuSendTest, Request_that_is_cut__keeps_its_number_until_it_is_answered) {
  for (const bool is_freed : {false, true}) {
    wire.room = 1;
    start(request(PacketType::kTofuPut, 2 * kPacketBytes, kTofuLocalNotice));
    const PacketHeader asked = next_sent();
    if (is_freed) {
      leave_queue(core, *vcq);
      core.tofu->leave(*vcq);
    } else {
      for (OutgoingMessage& message : peer().requests.waiting) take_source_away(message, NiFail::kSegv);
    }
    wire.room = FakeWire::kPlentyOfRoom;
    advance_peer(core, peer());
    EXPECT_NE(next_sent().flags & kFlagCut, 0);
    EXPECT_EQ(core.outstanding.open_count(), 1u);
    PacketHeader answer = answer_header(asked.operation_id, 0);
    answer.ni_fail_type = static_cast<std::uint8_t>(NiFail::kBadStadd);
    receive(answer);
    EXPECT_EQ(core.outstanding.open_count(), 0u);
    EXPECT_EQ(peer().outstanding, 0u);
    EXPECT_EQ(refused(), 0u);
    Notice notice;
    EXPECT_FALSE(vcq->mrq.read(&notice)) << "the TCQ tells that it was cut";
  }
}

}  // namespace
}  // namespace portofu
