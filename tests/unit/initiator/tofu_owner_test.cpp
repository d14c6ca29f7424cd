// Requests whose target is not known yet: they wait, in order, nobody waits for them, and they end.

#include "engine/initiator/tofu_owner.h"

#include <array>
#include <cstring>
#include <memory>

#include "engine/initiator/barrier.h"
#include "engine/initiator/circuit.h"
#include "engine/initiator/send.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/initiator/tofu_report.h"
#include "engine/mailbox/connect.h"
#include "engine/memory/guarded_copy.h"
#include "engine/run/death.h"
#include "engine/run/loop.h"
#include "engine/target/tofu_request.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"
#include "tests/unit/support/played_directory.h"

namespace portofu {
namespace {

constexpr Coordinates kElsewhere{9, 0, 0, 0, 0, 0};
constexpr std::uint64_t kVcqElsewhere = make_tofu_id(TofuIdKind::kVcq, kElsewhere, make_queue_number(0, 4, 0));
constexpr std::uint64_t kRemoteGate = make_tofu_id(TofuIdKind::kVbg, kElsewhere, make_queue_number(0, 0, 7));

class TofuOwnerTest : public CoreTest {
 protected:
  TofuOwnerTest() {
    core.tofu = std::make_unique<Tofu>(Coordinates{}, &directory);
    ControlQueue* queue = core.tofu->claim_queue(0, 1, CqMode::kShared);
    queue->vcqs[2] = std::make_unique<VirtualControlQueue>(16, 16);
    vcq = queue->vcqs[2].get();
    vcq->id = make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(0, 1, 2));
    core.tofu->enter(*vcq);
    wire.room = FakeWire::kPlentyOfRoom;
  }

  /// Of 8 bytes, with a place in the TCQ.
  Descriptor put_of(PacketType kind, std::uint64_t target, std::uint64_t notices) const {
    Descriptor d;
    d.type = kind;
    d.interface_index = kTofuInterface;
    d.tofu = {vcq->handle, false, target, 0, 0};
    d.length = 8;
    d.tofu_meta = static_cast<std::uint16_t>(kTofuTcqNotice | notices);
    d.tofu.tcq_place = vcq->tcq.take(nullptr, true);
    return d;
  }
  /// A put that says its number.
  void put(std::uint64_t number, std::uint64_t target = kVcqElsewhere, std::uint64_t notices = 0) {
    Descriptor d = put_of(PacketType::kTofuPut, target, notices);
    d.tofu.brings_data = true;
    d.remote_stadd = number;
    start_descriptor(core, d);
  }
  std::vector<std::uint64_t> sent_numbers() {
    std::vector<std::uint64_t> numbers;
    while (!wire.sent.empty()) numbers.push_back(next_sent().remote_offset);
    return numbers;
  }
  /// Time goes on, and the loop with it.
  void cycle() {
    now_ns += kAskPauseNs;
    run_cycle_on_duty(core);
  }
  /// Local notices in the MRQ, by how they ended.
  std::vector<NiFail> notices() const {
    std::vector<NiFail> fails;
    for (Notice notice; vcq->mrq.read(&notice);) fails.push_back(notice.fail);
    return fails;
  }
  int tcq_entries() const {
    void* data = nullptr;
    NiFail fail = NiFail::kOk;
    int count = 0;
    while (vcq->tcq.read(&data, &fail)) count += fail == NiFail::kOk ? 1 : 0;
    return count;
  }

  PlayedDirectory directory;
  VirtualControlQueue* vcq = nullptr;
};

TEST_F(TofuOwnerTest, Requests__wait_and_leave_in_order_when_the_owner_is_known) {
  put(1);
  put(2);
  cycle();
  EXPECT_TRUE(is_asking_on_duty(core));
  put(3);
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_EQ(tcq_entries(), 0);
  directory.result = FindResult::kFound;
  put(4);
  EXPECT_TRUE(wire.sent.empty()) << "not before those that wait";
  cycle();
  EXPECT_FALSE(is_asking_on_duty(core));
  put(5);
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(tcq_entries(), 5);
}

/// The number goes from one process to another while its node is asked. Who posts afterwards may have been told so.
TEST_F(TofuOwnerTest, Answer_that_may_be_older_than_a_request__is_asked_for_again) {
  for (const FindResult old_answer : {FindResult::kFound, FindResult::kNobody}) {
    const std::uint64_t target = kVcqElsewhere + 256 * (old_answer == FindResult::kFound);
    directory.result = FindResult::kLater;
    put(1, target);
    put(2, target);
    cycle();
    directory.answers = {{old_answer, {kPeer, kNamesMoving}}};
    directory.result = FindResult::kLater;
    cycle();
    EXPECT_TRUE(is_asking_on_duty(core));
    put(3, target);
    directory.result = FindResult::kFound;
    directory.now = {kOther, 0};
    cycle();
    EXPECT_FALSE(is_asking_on_duty(core));
    std::vector<std::pair<std::uint64_t, std::uint32_t>> sent;
    for (const FakePacket& packet : wire.sent) sent.emplace_back(packet.header.remote_offset, packet.process.pid);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> expected{{1, 2}, {2, 3}, {3, 3}};
    if (old_answer == FindResult::kNobody) expected.erase(expected.begin());
    EXPECT_EQ(sent, expected);
    wire.sent.clear();
  }
}

TEST_F(TofuOwnerTest, Other_owners__are_served_meanwhile) {
  put(1);
  directory.result = FindResult::kFound;
  put(2, kVcqElsewhere + 256);
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{2}));
}

/// Nothing goes at once past what waits, and what waited opens no way for that: its call is over, and the next one may
/// have to start what was held back (3.7.9.1).
TEST_F(TofuOwnerTest, Requests_that_wait__are_not_overtaken_in_mapped_memory) {
  alignas(256) std::array<std::byte, 4096> remote{};
  std::atomic<std::uint64_t> sequence{2};
  wire.mapped = {.memory = remote.data(), .bytes = remote.size(), .writable = true, .sequence = &sequence, .seen = 2};
  vcq->direct.allowed = true;
  vcq->direct.stadds = &core.tofu->stadds(*vcq);
  const auto goes_at_once = [this] {
    const DirectCall call{kVcqElsewhere, 0, 8, 0, 0, nullptr, false};
    return put_word_at_once(vcq->direct, call, 7);
  };
  directory.result = FindResult::kFound;
  put(8);
  EXPECT_TRUE(goes_at_once());
  core.tofu->distrust_owner(kPeer);
  directory.result = FindResult::kLater;
  put(16);
  EXPECT_FALSE(goes_at_once());
  put(24);
  EXPECT_FALSE(goes_at_once());
  directory.result = FindResult::kFound;
  cycle();
  EXPECT_FALSE(is_asking_on_duty(core));
  EXPECT_EQ(tcq_entries(), 3) << "they have left";
  EXPECT_FALSE(goes_at_once());
  put(32);
  EXPECT_TRUE(goes_at_once());
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(TofuOwnerTest, Owner_that_was_found__is_asked_for_again_when_it_is_lost) {
  directory.result = FindResult::kFound;
  put(1);
  put(2);
  EXPECT_EQ(directory.asked, 1) << "it is known";
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2}));
  lose_peer(core, core.peer({0x0a000001, 2}));
  directory.result = FindResult::kNobody;
  put(3, kVcqElsewhere, kTofuLocalNotice);
  EXPECT_EQ(directory.asked, 2);
  EXPECT_EQ(notices(), (std::vector<NiFail>{NiFail::kUndeliverable}));
}

/// A number that goes from one living process to another.
TEST_F(TofuOwnerTest, Owner_whose_names_have_moved__is_asked_for_again) {
  std::atomic<std::uint64_t> names{2};
  wire.names = &names;
  directory.result = FindResult::kFound;
  directory.now = {kPeer, 2};
  put(1);
  put(2);
  EXPECT_EQ(directory.asked, 1);
  names = 4;
  directory.now = {kPeer, 4};
  put(3);
  EXPECT_EQ(directory.asked, 2) << "another name of it";
  put(4);
  EXPECT_EQ(directory.asked, 2);
  names = 6;
  directory.now = {kOther, 4};
  put(5);
  EXPECT_EQ(directory.asked, 3);
  std::vector<std::uint32_t> pids;
  for (const FakePacket& packet : wire.sent) pids.push_back(packet.process.pid);
  EXPECT_EQ(pids, (std::vector<std::uint32_t>{2, 2, 2, 2, 3}));
}

TEST_F(TofuOwnerTest, Answer_that_is_not_to_be_remembered__is_asked_for_each_time) {
  std::atomic<std::uint64_t> names{3};
  wire.names = &names;
  directory.result = FindResult::kFound;
  directory.now = {kPeer, kNamesMoving};
  put(1);
  put(2);
  EXPECT_EQ(directory.asked, 2);
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2}));
}

// It refuses, behind what was sent before.
TEST_F(TofuOwnerTest, Number_that_nobody_has_now__goes_to_who_had_it_while_there_is_a_link) {
  std::atomic<std::uint64_t> names{2};
  wire.names = &names;
  directory.result = FindResult::kFound;
  directory.now = {kPeer, 2};
  put(1, kVcqElsewhere, kTofuLocalNotice);
  names = 4;
  directory.result = FindResult::kNobody;
  put(2, kVcqElsewhere, kTofuLocalNotice);
  EXPECT_EQ(notices(), std::vector<NiFail>{});
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2}));
  lose_peer(core, core.peer(kPeer));
  EXPECT_EQ(notices().size(), 2u);
}

// What it refuses does not make it unknown: more may be under way to it (2.2.10).
TEST_F(TofuOwnerTest, Number_that_was_refused__still_goes_to_who_had_it_when_nobody_has_it_now) {
  directory.result = FindResult::kFound;
  for (const std::uint64_t number : {1, 2}) put(number, kVcqElsewhere, kTofuLocalNotice);
  OutstandingOperation refused;
  refused.fail = NiFail::kUndeliverable;
  refused.tofu.peer_vcq = kVcqElsewhere;
  report_tofu_answer(core, refused);
  directory.result = FindResult::kNobody;
  put(3, kVcqElsewhere, kTofuLocalNotice);
  EXPECT_EQ(notices(), std::vector<NiFail>{}) << "two are under way";
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2, 3}));
  lose_peer(core, core.peer(kPeer));
  EXPECT_EQ(notices().size(), 3u);
}

// How the end comes is told in the order of posting (2.2.10), also if another process has the queue meanwhile.
TEST_F(TofuOwnerTest, Queue_of_another_owner__is_reached_when_all_has_ended_at_the_former_one) {
  directory.result = FindResult::kFound;
  put(1, kVcqElsewhere, kTofuLocalNotice);
  wire.room = 0;
  put(2, kVcqElsewhere, 0);
  wire.room = FakeWire::kPlentyOfRoom;
  directory.now = {kOther, 0};
  core.tofu->distrust_owner(kPeer);
  put(3, kVcqElsewhere, kTofuLocalNotice);
  const int asked = directory.asked;
  cycle();
  cycle();
  put(4, kVcqElsewhere, kTofuLocalNotice);
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(directory.asked, asked) << "nobody is asked meanwhile";
  lose_peer(core, core.peer(kPeer));
  EXPECT_EQ(notices(), std::vector<NiFail>{NiFail::kUndeliverable});
  for (int i = 0; i < 2; ++i) cycle();
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_FALSE(is_asking_on_duty(core));
  lose_peer(core, core.peer(kOther));
}

TEST_F(TofuOwnerTest, Own_queue_that_was_anothers__is_reached_when_all_has_ended_there) {
  const std::uint64_t own = make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(0, 4, 0));
  directory.result = FindResult::kFound;
  put(1, own, kTofuLocalNotice);
  directory.now = {core.self, 0};
  core.tofu->claim_queue(0, 4, CqMode::kShared)->vcqs[0] = std::make_unique<VirtualControlQueue>(16, 16);
  put(2, own, kTofuLocalNotice);
  cycle();
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1}));
  EXPECT_TRUE(is_asking_on_duty(core));
  EXPECT_EQ(core.peer(core.self).outstanding, 0u);
  lose_peer(core, core.peer(kPeer));
  EXPECT_EQ(notices(), std::vector<NiFail>{NiFail::kUndeliverable});
  cycle();
  EXPECT_FALSE(is_asking_on_duty(core));
  EXPECT_EQ(core.peer(core.self).outstanding, 1u);
  lose_peer(core, core.peer(core.self));
}

// Found in any order: some have left, in places that were used before, and some wait.
TEST_F(TofuOwnerTest, What_the_loss_of_a_peer_ends__is_told_in_the_order_of_posting) {
  directory.result = FindResult::kFound;
  std::array<std::uint32_t, 4> used{};
  for (std::uint32_t& id : used) core.outstanding.open(&id);
  for (const std::size_t i : {2, 0, 3, 1}) core.outstanding.close(used[i]);
  for (const std::uint64_t number : {100, 200, 300, 400}) put(number, kVcqElsewhere, kTofuLocalNotice);
  wire.room = 0;
  for (const std::uint64_t number : {500, 600}) put(number, kVcqElsewhere, kTofuLocalNotice);
  lose_peer(core, core.peer(kPeer));
  std::vector<std::uint64_t> ended;
  for (Notice notice; vcq->mrq.read(&notice);) {
    EXPECT_EQ(notice.fail, NiFail::kUndeliverable);
    ended.push_back(notice.remote_stadd - 8);
  }
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{100, 200, 300, 400, 500, 600}));
}

// The attempt to connect fails, and what was posted during it waits for another one.
TEST_F(TofuOwnerTest, What_is_new_for_a_lost_peer__ends_behind_what_waits_for_a_link) {
  directory.result = FindResult::kFound;
  wire.connect_result = ConnectResult::kInProgress;
  for (const std::uint64_t number : {100, 200}) put(number, kVcqElsewhere, kTofuLocalNotice);
  lose_peer(core, core.peer(kPeer));
  directory.result = FindResult::kNobody;
  wire.connect_result = ConnectResult::kNoSuchPeer;
  put(300, kVcqElsewhere, kTofuLocalNotice);
  cycle();
  std::vector<std::uint64_t> ended;
  for (Notice notice; vcq->mrq.read(&notice);) ended.push_back(notice.remote_stadd - 8);
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{100, 200, 300}));
}

// A death has to be told to all gates that hang on the process before a barrier fails because of it.
TEST_F(TofuOwnerTest, Gate_of_the_dead_that_nobody_has__fails_by_the_loss_of_its_link) {
  std::atomic<std::uint64_t> names{2};
  wire.names = &names;
  directory.result = FindResult::kFound;
  directory.now = {kPeer, 2};
  BarrierGate& start = *core.tofu->claim_gate(make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(0, 0, 1)));
  BarrierGate& relay = *core.tofu->claim_gate(make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(0, 0, 2)));
  start.set_id = relay.set_id = start.id;
  configure_gate(core, start, {.local_source = relay.id, .remote_target = kRemoteGate});
  configure_gate(core, relay, {.remote_source = kRemoteGate, .local_target = start.id});
  names = 4;
  wire.other_has_name = true;
  ensure_connected(core, core.peer(kPeer));
  core.peer(kPeer).link->seen_names = 2;
  wire.connect_result = ConnectResult::kNoSuchPeer;
  directory.result = FindResult::kNobody;
  GateValue value;
  value.operation = ReduceOperation::kBarrier;
  start_barrier(core, start, value);
  EXPECT_EQ(relay.rounds.whole, 0u) << "what comes of it goes on through the circuit";
  EXPECT_EQ(start.state, BarrierState::kFailed);
  run_cycle_on_duty(core);
  core.tofu->release_gate(relay.id);
  core.tofu->release_gate(start.id);
}

/// What a short request needs is had at once or not at all: what cannot leave waits as if nothing had been tried.
TEST_F(TofuOwnerTest, Short_requests_without_room__wait_and_leave_in_order) {
  directory.result = FindResult::kFound;
  put(1);
  wire.room = 0;
  put(2, kVcqElsewhere, kTofuLocalNotice);
  put(3);
  EXPECT_EQ(core.outstanding.open_count(), 1u) << "the one that wants an answer";
  EXPECT_EQ(tcq_entries(), 1);
  wire.room = FakeWire::kPlentyOfRoom;
  put(4);
  cycle();
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(tcq_entries(), 3);
  lose_peer(core, core.peer({0x0a000001, 2}));
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(TofuOwnerTest, Put_from_memory_that_is_gone__is_told_by_the_TCQ_and_sends_nothing) {
  directory.result = FindResult::kFound;
  put(1);
  wire.sent.clear();
  EXPECT_EQ(tcq_entries(), 1);
  install_fault_guard();
  const FaultyMemory gone;
  std::uint64_t stadd = 0;
  core.tofu->queue(queue_number(vcq->id))->stadds.add({2, gone.edge(), 64, false}, &stadd);
  Descriptor d = put_of(PacketType::kTofuPut, kVcqElsewhere, kTofuLocalNotice);
  d.tofu.local_stadd = stadd;
  start_descriptor(core, d);
  void* data = nullptr;
  NiFail fail = NiFail::kOk;
  ASSERT_TRUE(vcq->tcq.read(&data, &fail));
  EXPECT_EQ(fail, NiFail::kSegv);
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

/// 3.6: a put that cannot leave yet has its data in memory that is not ours to read once it is deregistered.
TEST_F(TofuOwnerTest, Put_that_waits__ends_with_an_error_when_its_memory_is_deregistered) {
  directory.result = FindResult::kFound;
  put(1);
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(tcq_entries(), 1);
  StaddTable& stadds = core.tofu->queue(queue_number(vcq->id))->stadds;
  std::uint64_t stadd = 0;
  stadds.add({2, memory.data(), memory.size(), false}, &stadd);
  wire.room = 0;
  Descriptor d = put_of(PacketType::kTofuPut, kVcqElsewhere, 0);
  d.tofu.local_stadd = stadd;
  start_descriptor(core, d);
  put(2);
  std::unique_ptr<RegisteredRegion> gone;
  ASSERT_TRUE(stadds.remove(2, stadd, &gone));
  ASSERT_NE(gone, nullptr);
  leave_region(core, *gone);
  gone.reset();
  wire.room = FakeWire::kPlentyOfRoom;
  cycle();
  void* data = nullptr;
  NiFail fail = NiFail::kOk;
  ASSERT_TRUE(vcq->tcq.read(&data, &fail));
  EXPECT_EQ(fail, NiFail::kSegv);
  EXPECT_EQ(tcq_entries(), 1) << "of the one behind it";
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{2}));
}

// 2.2.12: the descriptor has left our side, so the TCQ says nothing of it; the local notice does.
TEST_F(TofuOwnerTest, No_answer__ends_all_that_waited) {
  put(1, kVcqElsewhere, kTofuLocalNotice);
  put(2, kVcqElsewhere, kTofuLocalNotice);
  directory.result = FindResult::kNobody;
  cycle();
  EXPECT_FALSE(is_asking_on_duty(core));
  EXPECT_EQ(tcq_entries(), 2);
  EXPECT_EQ(notices(), (std::vector<NiFail>{NiFail::kUndeliverable, NiFail::kUndeliverable}));
  put(3, kVcqElsewhere, kTofuLocalNotice);
  EXPECT_EQ(notices(), (std::vector<NiFail>{NiFail::kUndeliverable})) << "at once";
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(TofuOwnerTest, Busy_loop__does_not_ask_in_every_cycle) {
  put(1);
  run_cycle_on_duty(core);
  const int before = directory.asked;
  for (int i = 0; i < 1000; ++i) run_cycle_on_duty(core);
  EXPECT_EQ(directory.asked, before);
  cycle();
  EXPECT_EQ(directory.asked, before + 1);
}

TEST_F(TofuOwnerTest, Freed_VCQ__takes_with_it_what_waits) {
  put(1);
  core.tofu->leave(*vcq);
  directory.result = FindResult::kFound;
  cycle();
  EXPECT_FALSE(is_asking_on_duty(core));
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(TofuOwnerTest, Packets_of_a_gate__wait_likewise_and_fail_their_barrier_if_nobody_has_the_other) {
  for (const FindResult end : {FindResult::kFound, FindResult::kNobody}) {
    directory.result = FindResult::kLater;
    BarrierGate& gate =
        *core.tofu->claim_gate(make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(0, 0, end == FindResult::kFound)));
    gate.set_id = gate.id;
    const std::uint64_t other = kRemoteGate + 256 * (end == FindResult::kFound);
    configure_gate(core, gate, {.local_source = gate.id, .remote_target = other});
    GateValue value;
    value.operation = ReduceOperation::kBarrier;
    start_barrier(core, gate, value);
    EXPECT_EQ(gate.state, BarrierState::kRunning);
    directory.result = end;
    cycle();
    EXPECT_EQ(wire.sent.size(), end == FindResult::kFound ? 1u : 0u);
    for (const FakePacket& packet : wire.sent) EXPECT_EQ(packet.payload.size(), gate_value_bytes(value));
    EXPECT_EQ(gate.state, end == FindResult::kFound ? BarrierState::kRunning : BarrierState::kFailed);
    wire.sent.clear();
    run_cycle_on_duty(core);
    core.tofu->release_gate(gate.id);
  }
}

TEST_F(TofuOwnerTest, Packet_of_a_gate_without_room__waits_with_what_it_carries) {
  directory.result = FindResult::kFound;
  put(1);
  wire.sent.clear();
  BarrierGate& gate = *core.tofu->claim_gate(make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(0, 0, 1)));
  gate.set_id = gate.id;
  gate.remote_target = gate.remote_source = kRemoteGate;
  gate.configured = true;
  for (const std::uint8_t sums : {0, 3}) {
    GateValue value;
    value.operation = sums != 0 ? ReduceOperation::kBfpsum : ReduceOperation::kSum;
    value.item_count = sums != 0 ? sums : 2;
    value.items = {11, 12};
    for (ExactSum& sum : value.sums) sum.add(0.75);
    wire.room = 0;
    start_barrier(core, gate, value);
    EXPECT_TRUE(wire.sent.empty());
    value = GateValue();
    wire.room = FakeWire::kPlentyOfRoom;
    cycle();
    ASSERT_EQ(wire.sent.size(), 1u);
    const FakePacket packet = wire.take();
    ASSERT_EQ(packet.payload.size(), packet.header.length);
    std::memcpy(&value, packet.payload.data(), packet.payload.size());
    EXPECT_EQ(packet.payload.size(), gate_value_bytes(value));
    EXPECT_EQ(value.item_count, sums != 0 ? sums : 2);
    EXPECT_EQ(value.items[1], 12u);
    EXPECT_EQ(value.sums[2].value(), sums != 0 ? 0.75 : 0.0);
    gate.state = BarrierState::kIdle;
  }
  core.tofu->release_gate(gate.id);
}

TEST_F(TofuOwnerTest, Owner_that_is_learned__needs_no_request) {
  learn_owner(core, kRemoteGate);
  NameOwner owner;
  EXPECT_FALSE(core.tofu->recall_owner(kRemoteGate, &owner));
  directory.result = FindResult::kFound;
  cycle();
  EXPECT_TRUE(core.tofu->recall_owner(kRemoteGate, &owner));
  EXPECT_EQ(owner, kPeer);
}

TEST_F(TofuOwnerTest, Process_that_is_being_connected__is_not_asked_for_again) {
  directory.result = FindResult::kFound;
  wire.connect_result = ConnectResult::kInProgress;
  put(1);
  put(2);
  EXPECT_EQ(directory.asked, 1);
  wire.connect_result = ConnectResult::kConnected;
  cycle();
  EXPECT_EQ(sent_numbers(), (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace portofu
