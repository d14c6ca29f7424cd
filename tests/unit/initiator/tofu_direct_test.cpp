// Communication in memory that both sides map: when the initiator may do it itself, and when not.

#include "engine/initiator/tofu_direct.h"

#include <functional>
#include <thread>

#include "engine/initiator/send.h"
#include "engine/run/death.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

constexpr std::uint32_t kOwnNumber = make_queue_number(0, 1, 2);
constexpr std::uint64_t kRemoteVcq = make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(0, 4, 0));
constexpr std::uint64_t kRemoteStadd = make_stadd(5000);

/// The other queue belongs to kPeer.
struct OneNeighbour : NodeDirectory {
  ClaimResult claim(std::uint64_t) override { return ClaimResult::kClaimed; }
  void release(std::uint64_t) override {}
  FindResult find(std::uint64_t, NameOwner* owner) override {
    *owner = {{0x0a000001, 2}};
    return FindResult::kFound;
  }
};

class TofuDirectTest : public CoreTest {
 protected:
  TofuDirectTest() {
    core.tofu = std::make_unique<Tofu>(Coordinates{}, &neighbour);
    ControlQueue* queue = core.tofu->claim_queue(0, 1, CqMode::kShared);
    queue->vcqs[2] = std::make_unique<VirtualControlQueue>(16, 16);
    vcq = queue->vcqs[2].get();
    vcq->id = make_tofu_id(TofuIdKind::kVcq, {}, kOwnNumber);
    vcq->direct.allowed = true;
    vcq->direct.most_bytes = 1 << 20;
    vcq->direct.stadds = &queue->stadds;
    core.tofu->enter(*vcq);
    queue->stadds.add({2, memory.data(), memory.size(), false}, &stadd);
    std::memcpy(memory.data(), pattern_bytes(0, 4096).data(), 4096);
    wire.room = FakeWire::kPlentyOfRoom;
    wire.mapped = {.memory = remote.data(), .bytes = remote.size(), .writable = true, .sequence = &sequence, .seen = 2};
  }

  Descriptor request(PacketType kind, std::uint64_t length, std::uint64_t flags = 0) {
    Descriptor d;
    d.type = kind;
    d.interface_index = kTofuInterface;
    d.tofu = {vcq->handle, false, kRemoteVcq, stadd, 0};
    d.remote_stadd = kRemoteStadd;
    d.length = length;
    d.tofu_meta = static_cast<std::uint16_t>(flags | kTofuTcqNotice);
    d.tofu.tcq_place = vcq->tcq.take(nullptr, true);
    return d;
  }
  void start(Descriptor d) { start_descriptor(core, d); }

  /// @return what the TCQ says; NiFail::kDropped if it says nothing
  NiFail left() {
    void* data = nullptr;
    NiFail fail = NiFail::kOk;
    return vcq->tcq.read(&data, &fail) ? fail : NiFail::kDropped;
  }

  static DirectCall call(std::uint64_t bytes, std::uint64_t notices = 0) {
    return {kRemoteVcq, kRemoteStadd, bytes, 3, notices, nullptr, notices != 0};
  }
  static DirectCall strong_call(std::uint64_t bytes) { return {kRemoteVcq, kRemoteStadd, bytes, 3, 0, nullptr, true}; }
  static DirectCall at(DirectCall call, std::uint64_t offset) {
    call.stadd += offset;
    return call;
  }

  /// Brings a packet that has data on its way: a put that is told and short.
  void send_short_told(std::uint64_t flags = 0) { start(request(PacketType::kTofuPut, 8, kTofuRemoteNotice | flags)); }
  std::uint64_t word(std::size_t index) const {
    std::uint64_t value = 0;
    std::memcpy(&value, remote.data() + 8 * index, sizeof value);
    return value;
  }

  OneNeighbour neighbour;
  VirtualControlQueue* vcq = nullptr;
  std::uint64_t stadd = 0;
  alignas(256) std::array<std::byte, 4096> remote{};
  std::atomic<std::uint64_t> sequence{2};
};

TEST_F(TofuDirectTest, Put__needs_no_packet_and_is_told_at_once) {
  start(request(PacketType::kTofuPut, 1000, kTofuLocalNotice | 9));
  EXPECT_TRUE(holds_pattern(remote.data(), 1000));
  EXPECT_TRUE(is_untouched(remote.data() + 1000, 3096));
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_EQ(left(), NiFail::kOk);
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.kind, NoticeKind::kLocalPut);
  EXPECT_EQ(notice.remote_stadd, kRemoteStadd + 1000);
  EXPECT_EQ(notice.edata, 9u);
}

TEST_F(TofuDirectTest, Get_and_armw__bring_what_is_there) {
  std::memcpy(remote.data(), pattern_bytes(50, 100).data(), 100);
  Descriptor get = request(PacketType::kTofuGet, 100, kTofuLocalNotice);
  get.tofu.local_stadd += 200;
  start(get);
  EXPECT_TRUE(holds_pattern(memory.data() + 200, 100, 50));
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.kind, NoticeKind::kLocalGet);
  EXPECT_EQ(notice.local_stadd, stadd + 300);
  const std::uint64_t before = word(1);
  Descriptor add = request(PacketType::kTofuArmw, 8, kTofuLocalNotice);
  add.remote_stadd += 8;
  add.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  add.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
  add.operand = {};
  add.operand[8] = std::byte{5};
  start(add);
  EXPECT_EQ(word(1), before + 5);
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.kind, NoticeKind::kLocalArmw);
  EXPECT_EQ(notice.remote_value, before);
  EXPECT_EQ(notice.remote_stadd, kRemoteStadd + 8);
  EXPECT_TRUE(wire.sent.empty());
}

/// 2.2.12: the owner finds out what is wrong, and says so.
TEST_F(TofuDirectTest, Range_that_is_not_allowed__goes_by_packet_and_touches_nothing) {
  Descriptor outside = request(PacketType::kTofuPut, 8);
  outside.remote_stadd += remote.size() - 7;
  start(outside);
  EXPECT_EQ(next_sent().type, PacketType::kTofuPut);
  wire.mapped.writable = false;
  start(request(PacketType::kTofuPut, 8));
  EXPECT_EQ(next_sent().type, PacketType::kTofuPut);
  EXPECT_TRUE(is_untouched(remote.data(), remote.size()));
}

/// 2.2.10: remote notices confirm that all data is written.
TEST_F(TofuDirectTest, Long_put_that_tells_its_target__is_placed_and_then_told_by_a_packet_without_data) {
  start(request(PacketType::kTofuPut, 2000, kTofuRemoteNotice));
  EXPECT_TRUE(holds_pattern(remote.data(), 2000));
  const PacketHeader header = next_sent();
  EXPECT_EQ(header.type, PacketType::kTofuPut);
  EXPECT_NE(header.flags & kFlagPlaced, 0);
  EXPECT_EQ(header.length, 2000u);
  EXPECT_EQ(header.payload_bytes, 0u);
  EXPECT_EQ(left(), NiFail::kOk);
  start(request(PacketType::kTofuGet, 8, kTofuRemoteNotice));
  EXPECT_EQ(next_sent().type, PacketType::kTofuGet) << "the owner tells of gets";
  lose_peer(core, peer());
}

/// 2.2.10: "The order of reading and writing the local and remote main memory is not guaranteed by default."
TEST_F(TofuDirectTest, What_asks_for_no_order__goes_at_once_whatever_is_under_way) {
  start(request(PacketType::kTofuPut, 8));
  send_short_told();
  EXPECT_TRUE(put_at_once(vcq->direct, call(16), stadd));
  EXPECT_TRUE(put_word_at_once(vcq->direct, call(8), 7));
  EXPECT_EQ(word(0), 7u);
  EXPECT_TRUE(get_at_once(vcq->direct, call(8), stadd + 16));
  EXPECT_TRUE(armw_at_once<std::uint64_t>(vcq->direct, call(8), AtomicOperation::kSum, 1, 0));
  start(request(PacketType::kTofuPut, 100));
  start(request(PacketType::kTofuPut, 2000, kTofuRemoteNotice));
  EXPECT_EQ(wire.sent.size(), 2u) << "the told ones";
  EXPECT_EQ(next_sent().payload_bytes, 8u);
  EXPECT_NE(next_sent().flags & kFlagPlaced, 0) << "and in their order";
}

/// 2.2.10: with the flag, reading and writing start when those of what was posted before are completed.
TEST_F(TofuDirectTest, Strong_order__waits_for_packets_that_touch_memory) {
  start(request(PacketType::kTofuPut, 8));
  send_short_told();
  EXPECT_FALSE(put_at_once(vcq->direct, strong_call(8), stadd));
  EXPECT_FALSE(put_word_at_once(vcq->direct, strong_call(8), 7));
  EXPECT_FALSE(get_at_once(vcq->direct, strong_call(8), stadd));
  EXPECT_FALSE(armw_at_once<std::uint64_t>(vcq->direct, strong_call(8), AtomicOperation::kSum, 1, 0));
  start(request(PacketType::kTofuPut, 2000, kTofuRemoteNotice | kTofuStrongOrder));
  EXPECT_TRUE(is_untouched(remote.data() + 8, 1992));
  EXPECT_EQ(next_sent().payload_bytes, 8u);
  EXPECT_EQ(next_sent().payload_bytes, 2000u) << "behind the other in the ring";
  EXPECT_FALSE(put_at_once(vcq->direct, strong_call(8), stadd)) << "nobody has looked whether they were taken";
  start(request(PacketType::kTofuPut, 8, kTofuStrongOrder));
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_TRUE(put_at_once(vcq->direct, strong_call(8), stadd));
}

/// The data of a told put that was placed is written when the call returns: only its notice is under way.
TEST_F(TofuDirectTest, Strong_order__need_not_wait_for_notices_of_what_is_placed) {
  start(request(PacketType::kTofuPut, 8));
  start(request(PacketType::kTofuPut, 2000, kTofuRemoteNotice | kTofuStrongOrder));
  EXPECT_TRUE(put_at_once(vcq->direct, strong_call(8), stadd));
  start(request(PacketType::kTofuPut, 3000, kTofuRemoteNotice | kTofuStrongOrder));
  EXPECT_TRUE(holds_pattern(remote.data(), 3000));
  EXPECT_NE(next_sent().flags & kFlagPlaced, 0);
  EXPECT_NE(next_sent().flags & kFlagPlaced, 0);
}

TEST_F(TofuDirectTest, Strong_order__waits_for_the_data_of_gets) {
  start(request(PacketType::kTofuPut, 8));
  start(request(PacketType::kTofuGet, 8, kTofuRemoteNotice));
  EXPECT_EQ(next_sent().type, PacketType::kTofuGet) << "and the owner has taken it";
  start(request(PacketType::kTofuPut, 8, kTofuStrongOrder));
  EXPECT_FALSE(put_at_once(vcq->direct, strong_call(8), stadd));
  EXPECT_TRUE(is_untouched(remote.data() + 8, 8));
  EXPECT_TRUE(put_at_once(vcq->direct, call(8), stadd)) << "that has no order";
  lose_peer(core, peer());
}

/// 2.2.10: local notices are in the order of posting.
TEST_F(TofuDirectTest, Local_notice__does_not_overtake_one_that_is_awaited) {
  start(request(PacketType::kTofuPut, 8));
  start(request(PacketType::kTofuPut, 2000, kTofuRemoteNotice | kTofuLocalNotice));
  EXPECT_NE(next_sent().flags & kFlagPlaced, 0);
  EXPECT_FALSE(put_at_once(vcq->direct, call(8, kTofuLocalNotice), stadd));
  start(request(PacketType::kTofuPut, 8, kTofuLocalNotice));
  EXPECT_EQ(next_sent().payload_bytes, 8u);
  Notice notice;
  EXPECT_FALSE(vcq->mrq.read(&notice));
  EXPECT_EQ(vcq->direct.notices.front(vcq->mrq), nullptr);
  lose_peer(core, peer());
}

/// 2.2.10, 2.2.12: the error of a put is a local notice, too, whatever was asked for.
TEST_F(TofuDirectTest, Local_notice__does_not_overtake_a_put_that_may_fail) {
  start(request(PacketType::kTofuPut, 8));
  wire.published = {};
  send_short_told();
  const PacketHeader bad = next_sent();
  EXPECT_NE(bad.flags & kFlagAnswerWanted, 0);
  EXPECT_FALSE(put_at_once(vcq->direct, call(8, kTofuLocalNotice), stadd));
  start(request(PacketType::kTofuPut, 8, kTofuLocalNotice));
  EXPECT_EQ(next_sent().payload_bytes, 8u);
  PacketHeader answer = answer_header(bad.operation_id, 0, 0);
  answer.ni_fail_type = static_cast<std::uint8_t>(NiFail::kBadStadd);
  receive(answer);
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.fail, NiFail::kBadStadd);
  EXPECT_FALSE(vcq->mrq.read(&notice));
  lose_peer(core, peer());
}

TEST_F(TofuDirectTest, Local_notice__need_not_wait_for_a_put_that_will_be_taken) {
  start(request(PacketType::kTofuPut, 8));
  send_short_told();
  EXPECT_EQ(next_sent().flags & kFlagAnswerWanted, 0);
  start(request(PacketType::kTofuPut, 8, kTofuLocalNotice));
  EXPECT_TRUE(wire.sent.empty());
  Notice notice;
  EXPECT_TRUE(vcq->mrq.read(&notice));
}

/// What the owner would refuse, or may refuse now, asks for an answer.
TEST_F(TofuDirectTest, Put__asks_for_no_answer_where_it_is_sure_to_be_good) {
  const auto asks = [this](std::uint64_t offset, std::uint64_t bytes) {
    Descriptor d = request(PacketType::kTofuPut, bytes, kTofuRemoteNotice);
    d.remote_stadd += offset;
    start(d);
    EXPECT_EQ(left(), NiFail::kOk);
    const PacketHeader asked = next_sent();
    const bool wanted = (asked.flags & kFlagAnswerWanted) != 0;
    if (wanted) receive(answer_header(asked.operation_id, 0));
    return wanted;
  };
  wire.published = {};
  EXPECT_TRUE(asks(0, 8)) << "there is no such region";
  wire.published = {.bytes = 100, .writable = true, .sequence = &sequence, .seen = 2};
  EXPECT_FALSE(asks(92, 8));
  EXPECT_FALSE(asks(100, 0));
  EXPECT_TRUE(asks(93, 8)) << "too long";
  EXPECT_TRUE(asks(101, 0));
  wire.published.writable = false;
  EXPECT_FALSE(asks(0, 8)) << "known already";
  sequence.store(4);
  EXPECT_TRUE(asks(0, 8)) << "it has changed: read-only";
  wire.published = {.bytes = 100, .writable = true, .user = 7, .sequence = &sequence, .seen = 4};
  EXPECT_TRUE(asks(0, 8)) << "for another component";
  wire.published.user = 0;
  EXPECT_FALSE(asks(0, 8));
  Notice notice;
  EXPECT_FALSE(vcq->mrq.read(&notice)) << "nobody has asked for any";
}

/// What waits for room comes first for those with an order, and for them alone.
TEST_F(TofuDirectTest, Request_that_waits_for_room__is_overtaken_only_by_what_has_no_order) {
  start(request(PacketType::kTofuPut, 8));
  wire.room = 0;
  send_short_told();
  start(request(PacketType::kTofuPut, 2000, kTofuRemoteNotice));
  EXPECT_TRUE(holds_pattern(remote.data(), 2000)) << "only its packet waits";
  EXPECT_TRUE(put_at_once(vcq->direct, call(8), stadd));
  EXPECT_FALSE(put_at_once(vcq->direct, strong_call(8), stadd));
  start(request(PacketType::kTofuPut, 8, kTofuStrongOrder));
  wire.room = FakeWire::kPlentyOfRoom;
  run_cycle_on_duty(core);
  EXPECT_EQ(next_sent().payload_bytes, 8u);
  EXPECT_NE(next_sent().flags & kFlagPlaced, 0);
  EXPECT_EQ(next_sent().payload_bytes, 8u);
}

TEST_F(TofuDirectTest, Second_put__goes_at_once) {
  EXPECT_FALSE(put_at_once(vcq->direct, call(8), stadd)) << "nothing is known yet";
  start(request(PacketType::kTofuPut, 8));
  EXPECT_TRUE(put_at_once(vcq->direct, call(300), stadd));
  EXPECT_TRUE(holds_pattern(remote.data(), 300));
  EXPECT_TRUE(put_word_at_once(vcq->direct, at(strong_call(8), 8), 77));
  EXPECT_EQ(word(1), 77u);
  EXPECT_FALSE(put_at_once(vcq->direct, call(remote.size() + 1), stadd)) << "it leaves the region";
  EXPECT_FALSE(put_word_at_once(vcq->direct, at(call(8), remote.size() - 7), 1));
  EXPECT_FALSE(put_word_at_once(vcq->direct, at(call(8), make_stadd(1)), 1)) << "another STag";
}

TEST_F(TofuDirectTest, Notices_of_what_went_at_once__are_those_of_the_guide) {
  start(request(PacketType::kTofuPut, 8));
  EXPECT_EQ(left(), NiFail::kOk);
  constexpr std::uint64_t kBoth = kTofuTcqNotice | kTofuLocalNotice;
  EXPECT_TRUE(put_at_once(vcq->direct, call(8, kBoth), stadd));
  EXPECT_TRUE(get_at_once(vcq->direct, call(8, kBoth), stadd + 16));
  EXPECT_TRUE(armw_at_once<std::uint64_t>(vcq->direct, call(8, kBoth), AtomicOperation::kCswap, 5, word(0)));
  EXPECT_EQ(word(0), 5u);
  for (const NoticeKind kind : {NoticeKind::kLocalPut, NoticeKind::kLocalGet, NoticeKind::kLocalArmw}) {
    EXPECT_EQ(left(), NiFail::kOk);
    const Notice* notice = vcq->direct.notices.front(vcq->mrq);
    ASSERT_NE(notice, nullptr);
    EXPECT_EQ(notice->kind, kind);
    EXPECT_EQ(notice->edata, 3u);
    EXPECT_EQ(notice->local_stadd, kind == NoticeKind::kLocalGet ? stadd + 24 : 0);
    vcq->direct.notices.drop();
  }
}

TEST_F(TofuDirectTest, Word_that_went_at_once__has_its_TCQ_notice_and_needs_room_for_it) {
  start(request(PacketType::kTofuPut, 8));
  EXPECT_EQ(left(), NiFail::kOk);
  int mark = 0;
  DirectCall told = at(call(8), 8);
  told.notices = kTofuTcqNotice;
  told.callback_data = &mark;
  std::uint64_t value = 0;
  while (vcq->tcq.has_room(1)) ASSERT_TRUE(put_word_at_once(vcq->direct, told, ++value));
  EXPECT_EQ(word(1), value);
  EXPECT_FALSE(put_word_at_once(vcq->direct, told, value + 1));
  EXPECT_EQ(word(1), value);
  void* callback_data = nullptr;
  NiFail fail = NiFail::kSegv;
  for (; value > 0; --value) {
    ASSERT_TRUE(vcq->tcq.read(&callback_data, &fail));
    EXPECT_EQ(callback_data, &mark);
    EXPECT_EQ(fail, NiFail::kOk);
  }
  EXPECT_FALSE(vcq->tcq.read(&callback_data, &fail));
}

/// 3.7.1.11: the operations, on words of both lengths; what lies beside the word stays.
TEST_F(TofuDirectTest, Armw_that_went_at_once__computes_as_the_guide_says) {
  start(request(PacketType::kTofuPut, 8));
  constexpr std::uint64_t kBefore = 0xf0f0f0f0'ffff0005, kValue = 0x11111111'00ff0002;
  const struct {
    AtomicOperation operation;
    std::uint64_t compared, after;
  } cases[] = {{AtomicOperation::kSwap, 0, kValue},
               {AtomicOperation::kSum, 0, kBefore + kValue},
               {AtomicOperation::kBxor, 0, kBefore ^ kValue},
               {AtomicOperation::kBand, 0, kBefore & kValue},
               {AtomicOperation::kBor, 0, kBefore | kValue},
               {AtomicOperation::kCswap, kBefore, kValue},
               {AtomicOperation::kCswap, kBefore + 1, kBefore}};
  for (const auto& [operation, compared, after] : cases) {
    for (const std::uint64_t bytes : {8u, 4u}) {
      const std::uint64_t mask = bytes == 8 ? ~std::uint64_t{0} : 0xffffffff;
      std::memcpy(remote.data(), &kBefore, sizeof kBefore);
      const DirectCall told = call(bytes, kTofuLocalNotice);
      ASSERT_TRUE(bytes == 8
                      ? armw_at_once<std::uint64_t>(vcq->direct, told, operation, kValue, compared)
                      : armw_at_once<std::uint32_t>(vcq->direct, told, operation, static_cast<std::uint32_t>(kValue),
                                                    static_cast<std::uint32_t>(compared)));
      EXPECT_EQ(word(0), (kBefore & ~mask) | (after & mask)) << static_cast<int>(operation) << ", bytes: " << bytes;
      const Notice* notice = vcq->direct.notices.front(vcq->mrq);
      ASSERT_NE(notice, nullptr);
      EXPECT_EQ(notice->remote_value, kBefore & mask);
      vcq->direct.notices.drop();
    }
  }
}

/// 2.2.10: the TCQ says that all data is read from local memory.
TEST_F(TofuDirectTest, Lent_put__is_told_by_the_TCQ_when_it_is_taken) {
  wire.mapped = {};
  wire.lends = true;
  std::memcpy(memory.data(), pattern_bytes(0, 8192).data(), 8192);
  std::uint64_t all = 0;
  ASSERT_EQ(core.tofu->queue(kOwnNumber)->stadds.add({2, memory.data(), 8192, false}, &all), Status::kOk);
  Descriptor d = request(PacketType::kTofuPut, 8192, kTofuRemoteNotice);
  d.tofu.local_stadd = all;
  start(d);
  EXPECT_EQ(wire.take().payload, pattern_bytes(0, 8192));
  run_cycle_on_duty(core);
  EXPECT_EQ(left(), NiFail::kDropped) << "nothing yet";
  wire.taken_packets = 1;
  run_cycle_on_duty(core);
  EXPECT_EQ(left(), NiFail::kOk);
}

/// A program that looks in a loop runs a cycle each time; one that communicates in between does so now and then.
TEST_F(TofuDirectTest, Look_that_finds_nothing__skips_the_cycle_only_behind_a_call_that_went_at_once) {
  DirectLane& lane = vcq->direct;
  EXPECT_FALSE(lane.may_skip_cycle()) << "nothing has gone at once";
  start(request(PacketType::kTofuPut, 8));
  EXPECT_FALSE(lane.may_skip_cycle());
  ASSERT_TRUE(put_at_once(lane, call(8), stadd));
  EXPECT_TRUE(lane.may_skip_cycle());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(lane.may_skip_cycle()) << "it waits for something";
  int skipped = 0;
  constexpr int kLooks = 1000;
  for (int i = 0; i < kLooks; ++i) {
    ASSERT_TRUE(put_at_once(lane, call(8), stadd));
    skipped += lane.may_skip_cycle() ? 1 : 0;
  }
  const int cycles = kLooks - skipped;
  EXPECT_GE(cycles, kLooks / 32) << "others make progress";
  EXPECT_LE(cycles, kLooks / 8) << "and it is seldom";
}

/// A program that reads a queue until nothing is there does not wait at the last look.
TEST_F(TofuDirectTest, Look_behind_one_that_found_something__skips_the_cycle_but_not_always) {
  DirectLane& lane = vcq->direct;
  EXPECT_TRUE(lane.may_skip_cycle(true));
  EXPECT_FALSE(lane.may_skip_cycle(false));
  int skipped = 0;
  constexpr int kLooks = 1000;
  for (int i = 0; i < kLooks; ++i) skipped += lane.may_skip_cycle(true) ? 1 : 0;
  const int cycles = kLooks - skipped;
  EXPECT_GE(cycles, kLooks / 32) << "others make progress";
  EXPECT_LE(cycles, kLooks / 8) << "and it is seldom";
}

/// utofu.h: any thread may call for any VCQ. One of them has the lane; the others go by the duty, which is held in
/// these tests by whoever is not waited for.
class LaneUserTest : public TofuDirectTest {
 protected:
  LaneUserTest() {
    if (!can_have_lanes()) return;
    vcq->direct.door = &door;
    door.lane = &vcq->direct;
    door.handle.store(vcq->handle);
  }
  void SetUp() override {
    if (vcq->direct.door == nullptr) GTEST_SKIP() << "there is no membarrier here";
  }
  bool goes_in() { return LaneUse(door, vcq->handle).lane() != nullptr; }
  static void in_thread(const std::function<void()>& body) { std::thread(body).join(); }

  LaneDoor door;
};

TEST_F(LaneUserTest, First_thread_that_calls__is_the_user) {
  EXPECT_FALSE(goes_in());
  enter_on_duty(*vcq);
  EXPECT_TRUE(goes_in());
  in_thread([this] { EXPECT_FALSE(goes_in()); });
  EXPECT_TRUE(goes_in());
}

TEST_F(LaneUserTest, Second_thread__shuts_the_lane_until_one_calls_often_in_a_row) {
  enter_on_duty(*vcq);
  in_thread([this] { enter_on_duty(*vcq); });
  EXPECT_FALSE(goes_in());
  for (int i = 0; i < 1000; ++i) {
    enter_on_duty(*vcq);
    in_thread([this] { enter_on_duty(*vcq); });
    EXPECT_FALSE(goes_in()) << "they take turns";
  }
  for (int i = 0; i < 1000; ++i) enter_on_duty(*vcq);
  EXPECT_TRUE(goes_in()) << "nobody else has called for long";
}

TEST_F(LaneUserTest, User_that_is_inside__is_waited_for) {
  std::atomic<int> state{0};
  std::thread user([&] {
    enter_on_duty(*vcq);
    const LaneUse use(door, vcq->handle);
    EXPECT_NE(use.lane(), nullptr);
    state = 1;
    while (state != 2) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    state = 3;
  });
  while (state != 1) std::this_thread::yield();
  state = 2;
  enter_on_duty(*vcq);
  EXPECT_EQ(state, 3) << "the user is still inside";
  user.join();
}

/// The sequence that a place shared by all users would not survive: a thread is stopped on its way in, another one
/// becomes the user and is inside, and then the first one goes on, and out again.
TEST_F(LaneUserTest, Former_user_that_comes_late__says_nothing_about_the_present_one) {
  LaneSeat* former = nullptr;
  in_thread([&] {
    enter_on_duty(*vcq);
    former = own_seat;
  });
  for (int i = 0; i < 1000; ++i) enter_on_duty(*vcq);
  ASSERT_NE(former, nullptr);
  ASSERT_NE(former, own_seat);
  const LaneUse use(door, vcq->handle);
  ASSERT_NE(use.lane(), nullptr);
  former->busy.store(true);
  former->busy.store(false);
  EXPECT_TRUE(own_seat->busy.load());
}

/// 2.1: "a thread can confirm the completion of communication started by another thread"; with 2.2.10.
TEST_F(LaneUserTest, Notices_of_the_user__are_read_by_any_thread_in_order_with_those_of_the_MRQ) {
  enter_on_duty(*vcq);
  start(request(PacketType::kTofuPut, 8));
  const auto tell = [this](std::uint64_t edata) {
    DirectCall put = call(8, kTofuLocalNotice);
    put.edata = edata;
    EXPECT_TRUE(put_at_once(vcq->direct, put, stadd));
  };
  tell(1);
  ASSERT_TRUE(vcq->mrq.post(Notice{.edata = 2}));
  tell(3);
  EXPECT_EQ(vcq->unread_notices(), 3u);
  in_thread([this] {
    enter_on_duty(*vcq);
    Notice notice;
    for (std::uint64_t edata = 1; edata <= 2; ++edata)
      EXPECT_TRUE(vcq->read_notice(&notice) && notice.edata == edata) << edata;
  });
  enter_on_duty(*vcq);
  ASSERT_TRUE(vcq->mrq.post(Notice{.edata = 4}));
  Notice notice;
  for (std::uint64_t edata = 3; edata <= 4; ++edata)
    EXPECT_TRUE(vcq->read_notice(&notice) && notice.edata == edata) << edata;
  EXPECT_FALSE(vcq->read_notice(&notice));
  EXPECT_EQ(vcq->unread_notices(), 0u);
}

/// 3.6: once it is deregistered on either side, nothing is written any more.
TEST_F(TofuDirectTest, Deregistered_memory__is_not_used_any_more) {
  start(request(PacketType::kTofuPut, 8));
  ASSERT_TRUE(put_at_once(vcq->direct, call(8), stadd));
  sequence.store(4);
  EXPECT_FALSE(put_at_once(vcq->direct, call(8), stadd));
  sequence.store(2);
  ASSERT_TRUE(put_at_once(vcq->direct, call(8), stadd));
  std::unique_ptr<RegisteredRegion> gone;
  ASSERT_TRUE(core.tofu->queue(kOwnNumber)->stadds.remove(2, stadd, &gone));
  EXPECT_FALSE(put_at_once(vcq->direct, call(8), stadd));
}

TEST_F(TofuDirectTest, Lost_peer__is_not_written_to_any_more) {
  start(request(PacketType::kTofuPut, 8));
  ASSERT_TRUE(put_at_once(vcq->direct, call(8), stadd));
  lose_peer(core, peer());
  EXPECT_FALSE(put_at_once(vcq->direct, call(8), stadd));
}

/// The death of a peer is looked for while somebody writes into its memory, and only then.
TEST_F(TofuDirectTest, Idle_lane__is_closed_by_the_timers) {
  EXPECT_FALSE(needs_timers_on_duty(core));
  start(request(PacketType::kTofuPut, 8));
  ASSERT_TRUE(put_at_once(vcq->direct, call(8), stadd));
  EXPECT_TRUE(needs_timers_on_duty(core));
  run_timers_on_duty(core);
  EXPECT_TRUE(put_at_once(vcq->direct, call(8), stadd));
  run_timers_on_duty(core);
  run_timers_on_duty(core);
  EXPECT_FALSE(needs_timers_on_duty(core));
  EXPECT_FALSE(put_at_once(vcq->direct, call(8), stadd));
  EXPECT_EQ(counted(Counter::kPutsDirect), 3u);
  start(request(PacketType::kTofuPut, 8));
  EXPECT_TRUE(put_at_once(vcq->direct, call(8), stadd));
}

TEST_F(TofuDirectTest, Memory_of_our_own_that_faults__leaves_it_to_the_ordinary_way) {
  install_fault_guard();
  start(request(PacketType::kTofuPut, 8));
  const RegionRequest nowhere{2, reinterpret_cast<std::byte*>(8192), 4096, false};
  std::uint64_t bad = 0;
  ASSERT_EQ(core.tofu->queue(kOwnNumber)->stadds.add(nowhere, &bad), Status::kOk);
  Descriptor d = request(PacketType::kTofuPut, 8);
  d.tofu.local_stadd = bad;
  EXPECT_EQ(left(), NiFail::kOk);
  start(d);
  EXPECT_EQ(left(), NiFail::kSegv);
  EXPECT_TRUE(wire.sent.empty());
}

}  // namespace
}  // namespace portofu
