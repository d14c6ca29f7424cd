// Circuits of survivors, and gates that leave their circuit.

#include "engine/initiator/circuit.h"
#include "tests/unit/initiator/barrier_fixture.h"

namespace portofu {
namespace {

// ---- Circuits of the survivors

/// A circuit has ended, and the gates are connected again, in the same way.
class CircuitAgainTest : public BarrierTest {
 protected:
  CircuitAgainTest() {
    connect_through_stranger();
    receive_end(0);
    former_setting = relay->setting;
    connect_through_stranger();
    wire.sent.clear();
  }

  /// Words of the notices that have gone out.
  std::vector<std::uint64_t> told() {
    std::vector<std::uint64_t> words;
    while (!wire.sent.empty()) {
      const PacketHeader header = next_sent();
      if (header.length == 0) words.push_back(header.rounds_left);
    }
    return words;
  }
  /// A barrier waits, a value comes that may be of an earlier circuit, and its source is lost before it has answered.
  void expect_that_late_values_do_not_count() {
    start_barrier(core, *start, GateValue());
    receive_of_setting(kSetting + 1);
    fail_barriers_with(core, kPeer);
    run();
    EXPECT_EQ(start->state, BarrierState::kFailed);
  }
  std::vector<std::uint64_t> question() const { return {rounds_word(relay->setting, kWhatIsLeft)}; }

  std::uint32_t former_setting = 0;
};

// The source may have learnt of that before we were connected again, and says so only once.
TEST_F(CircuitAgainTest, Source__is_asked_when_a_barrier_waits) {
  EXPECT_EQ(told(), std::vector<std::uint64_t>{});
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(told(), question());
  receive_end(rounds_word(relay->setting, kNoEnd));
  receive_value(GateValue());
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  start->state = BarrierState::kIdle;
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(told(), std::vector<std::uint64_t>{}) << "it is asked once";
}

// 2.3.2: all gates are connected before a barrier begins. So what the source says its setting is then, is this
// circuit's.
TEST_F(CircuitAgainTest, Values_of_an_earlier_circuit__are_not_taken) {
  receive_of_setting(kSetting - 1);
  start_barrier(core, *start, GateValue());
  receive_of_setting(kSetting);
  EXPECT_EQ(start->state, BarrierState::kRunning) << "which of them counts is not known yet";
  receive_end(rounds_word(former_setting, kNoEnd), kStranger, kSetting - 1);
  EXPECT_EQ(start->state, BarrierState::kRunning) << "that was asked by the former circuit";
  receive_end(rounds_word(relay->setting, kNoEnd));
  ASSERT_EQ(start->state, BarrierState::kCompleted);
  EXPECT_TRUE(relay->rounds.packets.empty());
  start->state = BarrierState::kIdle;
  start_barrier(core, *start, GateValue());
  receive_of_setting(kSetting - 1);
  EXPECT_EQ(start->state, BarrierState::kRunning) << "it was under way still";
  receive_of_setting(kSetting + 1);
  EXPECT_EQ(start->state, BarrierState::kCompleted) << "only the source is connected anew, as to another path";
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CircuitAgainTest, Setting_numbers__begin_anew_some_day) {
  start_barrier(core, *start, GateValue());
  receive_of_setting(UINT32_MAX - 1);
  receive_of_setting(1);
  receive_end(rounds_word(relay->setting, kNoEnd), kStranger, 1);
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  EXPECT_TRUE(relay->rounds.packets.empty());
}

// A process may end as soon as its own barrier is over.
TEST_F(CircuitAgainTest, Source_that_ends_before_it_answers__has_sent_what_counts) {
  receive_of_setting(kSetting);
  start_barrier(core, *start, GateValue());
  receive_of_setting(kSetting + 1);
  fail_barriers_with(core, kPeer);
  run();
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  start->state = BarrierState::kIdle;
  start_barrier(core, *start, GateValue());
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitAgainTest, Source_that_ends_in_a_former_circuit__has_sent_nothing_that_counts) {
  receive_of_setting(kSetting);
  receive_end(rounds_word(0, kNoEnd), kStranger, kSetting + 1);
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(start->state, BarrierState::kRunning);
  fail_barriers_with(core, kPeer);
  run();
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

// Of what a killed process has sent, a part may be lost.
TEST_F(CircuitAgainTest, Source_that_is_killed_before_it_tells_its_setting__has_sent_nothing_that_counts) {
  receive_of_setting(kSetting);
  connect_through_stranger();
  receive_of_setting(kSetting);
  start_barrier(core, *start, GateValue());
  fail_barriers_with(core, kPeer);
  run();
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

// The first circuit of two gates may be a later one of their processes: then nothing of an earlier one can be late.
TEST_F(BarrierTest, Source_that_was_never_met_and_ends_before_it_answers__has_sent_what_counts) {
  core.tofu->circuits_over = true;
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  receive_of_setting(kSetting);
  EXPECT_EQ(start->state, BarrierState::kRunning);
  fail_barriers_with(core, kPeer);
  run();
  EXPECT_EQ(start->state, BarrierState::kCompleted);
}

// A link may be lost between processes that live. What the source had in that circuit is not known then, whatever the
// gate has heard of it before.
TEST_F(CircuitAgainTest, Source_that_was_lost_in_a_circuit__leaves_no_value_of_that_to_the_next_one) {
  receive_end(rounds_word(0, kNoEnd), kStranger, kSetting);
  fail_barriers_with(core, kPeer);
  connect_through_stranger();
  expect_that_late_values_do_not_count();
}

// The source may notice that only after it was connected anew, and has nobody then to whom it could tell its end.
TEST_F(CircuitAgainTest, Source_to_whom_a_link_was_lost__is_asked_again_while_a_barrier_waits) {
  fail_barriers_with(core, kPeer);
  connect_through_stranger();
  run();
  wire.sent.clear();
  const auto told_by_timers = [&] {
    now_ns += 1'000'000'000;
    run_timers_on_duty(core);
    run();
    return told();
  };
  EXPECT_EQ(told_by_timers(), std::vector<std::uint64_t>{}) << "no barrier waits";
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(told(), question());
  receive_end(rounds_word(relay->setting, kNoEnd));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(told_by_timers(), question());
  receive_end(rounds_word(relay->setting, 0));
  EXPECT_EQ(start->state, BarrierState::kFailed);
  wire.sent.clear();
  EXPECT_EQ(told_by_timers(), std::vector<std::uint64_t>{}) << "its end is known";
}

TEST_F(CircuitAgainTest, Source_whose_link_was_never_lost__is_asked_once) {
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(told(), question());
  now_ns += 1'000'000'000;
  run_timers_on_duty(core);
  run();
  EXPECT_EQ(told(), std::vector<std::uint64_t>{});
}

// It may have said that its setting is a new one, and that may have been for the circuit that is over.
TEST_F(CircuitAgainTest, Source_that_is_killed__leaves_no_value_of_a_circuit_whose_setting_was_never_known) {
  receive_end(rounds_word(0, kNoEnd), kStranger, kSetting + 1);
  connect_through_stranger();
  expect_that_late_values_do_not_count();
}

// What is known of a gate's sources outlives the gate, and the link to them: who was lost may live.
TEST_F(CircuitAgainTest, Source_that_is_killed__leaves_no_value_to_a_gate_that_has_the_number_anew) {
  const auto renew = [&] {
    leave_circuit(core, *relay);
    leave_circuit(core, *start);
    run();
    core.tofu->release_gate(relay->id);
    core.tofu->release_gate(start->id);
    start = gate(0);
    relay = gate(16);
    connect_through_stranger();
  };
  for (int circuit = 0; circuit < 2; ++circuit) {
    renew();
    expect_that_late_values_do_not_count();
  }
}

TEST_F(CircuitAgainTest, Sources_without_end__are_forgotten_and_count_as_met) {
  for (std::uint64_t i = 1; i < 1000; ++i) {
    configure_gate(core, *relay, {.local_source = start->id, .remote_source = kStranger + 256 * i});
    run();
  }
  EXPECT_LE(core.tofu->former_sources.size(), 64u);
  connect_through_stranger();
  expect_that_late_values_do_not_count();
}

// ---- Neighbours that die, or are lost, before it is known who they are

class CircuitUnknownTest : public CircuitAgainTest {
 protected:
  /// Directories are not asked all the time.
  void ask_again() {
    now_ns += 1'000'000;
    run();
  }
};

// Its node says that nobody has the gate, and it had the gate before, and a link to it is there still.
TEST_F(CircuitUnknownTest, Source_that_dies_before_its_node_has_answered__ends_the_barrier) {
  core.tofu->distrust_owner(kPeer);
  directory.result = FindResult::kLater;
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  directory.result = FindResult::kNobody;
  ask_again();
  ask_again();
  EXPECT_EQ(start->state, BarrierState::kRunning) << "what waited for the answer goes to the last owner";
  EXPECT_FALSE(told().empty());
  lose_peer(core, peer());
  run();
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitUnknownTest, Source_that_is_lost_before_it_is_known__has_sent_nothing_that_counts) {
  directory.result = FindResult::kLater;
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  fail_barriers_with(core, kPeer);
  run();
  EXPECT_EQ(start->state, BarrierState::kRunning) << "it may be another one's";
  directory.result = FindResult::kFound;
  ask_again();
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitUnknownTest, Loss_before_the_gate_was_connected__is_nothing_to_it) {
  fail_barriers_with(core, kPeer);
  run();
  directory.result = FindResult::kLater;
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  directory.result = FindResult::kFound;
  ask_again();
  EXPECT_EQ(start->state, BarrierState::kRunning);
}

// Its first packet may be the one that was lost.
TEST_F(CircuitAgainTest, Source_that_is_closed_and_has_said_nothing__ends_the_barrier) {
  start_barrier(core, *start, GateValue());
  run();
  wire.close_source(kPeer);
  run();
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

// What it sends is lost, and it lives perhaps.
TEST_F(CircuitAgainTest, Target_with_a_link__is_told_of_an_end_and_one_without_is_not) {
  for (const bool is_linked : {true, false}) {
    connect_to_peer();
    if (is_linked) {
      fail_barriers_with(core, kPeer);
    } else {
      lose_peer(core, peer());
    }
    run();
    EXPECT_EQ(told(), is_linked ? std::vector<std::uint64_t>{0} : std::vector<std::uint64_t>{});
  }
}

// A sender that has lost a link makes another one, and what comes by that is of later rounds.
TEST_F(CircuitAgainTest, Values_behind_an_end__are_not_passed_on) {
  configure_gate(core, *start, {});
  core.tofu->circuits_over = false;
  connect_to_peer();
  fail_barriers_with(core, kPeer);
  receive_value(GateValue());
  while (!wire.sent.empty()) EXPECT_EQ(next_sent().length, 0u) << "a value";
}

// ---- Gates that leave their circuit

// A link that is lost and made anew may have lost values: the next one is of a later round.
TEST_F(BarrierTest, Value_behind_one_that_is_lost__ends_the_barrier_instead) {
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  receive_round(kSetting, 2);
  EXPECT_EQ(start->state, BarrierState::kFailed);
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CircuitAgainTest, Value_behind_one_that_is_lost__ends_the_barrier_also_of_a_later_circuit) {
  start_barrier(core, *start, GateValue());
  receive_round(kSetting, 7);
  receive_end(rounds_word(relay->setting, kNoEnd));
  ASSERT_EQ(start->state, BarrierState::kCompleted) << "the source may be connected as it was";
  start->state = BarrierState::kIdle;
  start_barrier(core, *start, GateValue());
  receive_round(kSetting, 9);
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

class CircuitLeaveTest : public BarrierTest {};

TEST_F(CircuitLeaveTest, Gate_that_leaves__lets_its_target_ask_and_nobody_answers_that_no_more_comes) {
  connect_to_peer();
  configure_gate(core, *relay, {.remote_source = kStranger, .remote_target = kStranger + 256});
  EXPECT_EQ(next_sent().rounds_left, kAllRounds);
  EXPECT_EQ(wire.sent.front().header.rounds_left, rounds_word(0, kNoEnd));
  EXPECT_EQ(wire.sent.front().header.gate_setting, relay->setting) << "its target is the same, and learns that";
  wire.sent.clear();
  leave_circuit(core, *relay);
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().header.rounds_left, rounds_word(0, kNoEnd));
  leave_circuit(core, *relay);
  EXPECT_EQ(wire.sent.size(), 1u) << "it has left";
  core.tofu->release_gate(relay->id);
  wire.sent.clear();
  constexpr std::uint32_t kAsking = 77;
  PacketHeader header{};
  header.type = PacketType::kTofuGate;
  header.interface_index = kTofuInterface;
  header.tofu_queue = make_queue_number(0, 16, 0);
  header.sender_id = kStranger + 256;
  header.rounds_left = rounds_word(kAsking, kWhatIsLeft);
  header.uid = kPeerUid;
  header.job_key = kJobKey;
  receive(header, std::vector<std::byte>{});
  EXPECT_TRUE(wire.sent.empty()) << "nothing is sent while a packet is received";
  run();
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().header.rounds_left, rounds_word(kAsking, 0));
  EXPECT_EQ(wire.sent.front().header.gate_setting, 0u);
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CircuitLeaveTest, Questions_without_end_to_a_gate_that_nobody_has__are_refused) {
  PacketHeader header = header_of(0, kStranger);
  header.rounds_left = rounds_word(kSetting, kWhatIsLeft);
  for (int i = 0; i < 100'000; ++i) receive(header, std::vector<std::byte>{});
  EXPECT_LE(core.tofu->ownerless.begin()->second.size(), 64u);
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    header.hdr_data = make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(i % 6, i / 6, 0));
    receive(header, std::vector<std::byte>{});
  }
  EXPECT_LE(core.tofu->ownerless.size(), 4096u);
  EXPECT_GT(refused(), 0u);
}

// It asks once.
TEST_F(CircuitLeaveTest, Question_to_a_gate_that_nobody_has__is_answered_while_many_queues_are_looked_for) {
  for (std::uint32_t i = 0; i < 5000; ++i)
    core.tofu->ownerless.try_emplace(claim_key(make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(0, i, 0))));
  PacketHeader header = header_of(0, kStranger);
  header.rounds_left = rounds_word(kSetting, kWhatIsLeft);
  receive(header, std::vector<std::byte>{});
  EXPECT_TRUE(core.tofu->ownerless.contains(claim_key(kStranger)));
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CircuitLeaveTest, Source_that_leaves__is_asked_and_what_it_has_sent_counts) {
  connect_through_stranger();
  receive_value(GateValue());
  receive_end(rounds_word(0, kNoEnd));
  EXPECT_EQ(relay->rounds.whole, kAllRounds);
  wire.sent.clear();
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(next_sent().rounds_left, rounds_word(relay->setting, kWhatIsLeft));
  start->state = BarrierState::kIdle;
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(start->state, BarrierState::kRunning);
  receive_end(rounds_word(relay->setting, 0), kStranger, 0);
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitLeaveTest, Gate_that_leaves__ends_what_waits_for_its_signals_in_another_set) {
  relay->set_id = relay->id;
  configure_gate(core, *start, {.local_source = relay->id, .local_target = relay->id});
  configure_gate(core, *relay, {.local_source = start->id, .remote_source = kStranger, .local_target = start->id});
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(start->state, BarrierState::kRunning);
  leave_circuit(core, *relay);
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

// 3.4.2.1: the last call takes effect, also for the gate that its signals went to.
TEST_F(CircuitLeaveTest, Gate_that_signals_elsewhere_from_now_on__ends_what_waits_in_another_set) {
  BarrierGate* const other = gate(17);
  relay->set_id = other->set_id = relay->id;
  const auto connect_start = [&] {
    configure_gate(core, *start, {.local_source = relay->id, .local_target = relay->id});
  };
  connect_start();
  configure_gate(core, *relay, {.local_source = start->id, .remote_source = kStranger, .local_target = start->id});
  start_barrier(core, *start, GateValue());
  configure_gate(core, *relay, {.local_source = start->id, .remote_source = kStranger, .local_target = start->id});
  EXPECT_EQ(start->state, BarrierState::kRunning) << "its signal goes there still";
  configure_gate(core, *relay, {.remote_source = kStranger, .local_target = other->id});
  EXPECT_EQ(start->state, BarrierState::kFailed);
  connect_start();
  configure_gate(core, *relay, {.remote_source = kStranger, .local_target = start->id});
  configure_gate(core, *other, {.local_source = relay->id});
  start_barrier(core, *start, GateValue());
  configure_gate(core, *relay, {.remote_source = kStranger, .local_target = other->id});
  EXPECT_EQ(start->state, BarrierState::kFailed);
  EXPECT_EQ(other->rounds.whole, kAllRounds) << "it is of the same set";
}

// It may be connected anew before it is asked, and has told then what it had to tell of this circuit.
TEST_F(CircuitAgainTest, End_of_a_source_that_has_answered__is_taken_unasked) {
  start_barrier(core, *start, GateValue());
  run();
  receive_end(rounds_word(relay->setting, kNoEnd));
  told();
  receive_end(0, kStranger, kSetting - 1);
  EXPECT_EQ(start->state, BarrierState::kRunning) << "of an earlier circuit";
  EXPECT_EQ(told(), question());
  receive_end(1);
  EXPECT_EQ(start->state, BarrierState::kRunning) << "one still comes";
  EXPECT_EQ(told(), std::vector<std::uint64_t>{});
  receive_end(rounds_word(0, kNoEnd), kStranger, kSetting + 1);
  receive_end(rounds_word(relay->setting, kNoEnd), kStranger, kSetting + 1);
  receive_end(0, kStranger, kSetting + 1);
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitAgainTest, End_that_may_be_of_the_former_circuit__is_asked_for_and_not_taken) {
  receive_end(0);
  EXPECT_EQ(relay->rounds.whole, kAllRounds);
  EXPECT_EQ(told(), std::vector<std::uint64_t>{}) << "no barrier waits";
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(told(), question());
  receive_end(3);
  EXPECT_EQ(told(), question()) << "a barrier waits";
  EXPECT_EQ(start->state, BarrierState::kRunning);
}

TEST_F(CircuitAgainTest, Answer__counts_if_it_is_to_this_setting) {
  start_barrier(core, *start, GateValue());
  run();
  receive_end(rounds_word(former_setting, 0));
  EXPECT_EQ(start->state, BarrierState::kRunning);
  receive_end(rounds_word(relay->setting, 1));
  EXPECT_EQ(start->state, BarrierState::kRunning) << "one still comes";
  receive_end(rounds_word(relay->setting, 0));
  EXPECT_EQ(start->state, BarrierState::kFailed);
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CircuitAgainTest, Source_whom_nobody_has_any_more__ends_the_barrier) {
  start_barrier(core, *start, GateValue());
  core.tofu->distrust_owner(kPeer);
  directory.result = FindResult::kNobody;
  wire.connect_result = ConnectResult::kNoSuchPeer;
  lose_peer(core, core.peer(kPeer));
  run();
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitAgainTest, Gate_with_an_end__answers_its_target_and_no_other) {
  connect_to_peer();
  receive_end(rounds_word(kSetting, kWhatIsLeft), kStranger + 256);
  const std::uint64_t no_end = rounds_word(kSetting, kNoEnd);
  EXPECT_EQ(told(), std::vector<std::uint64_t>{no_end}) << "as far as it knows; its own barrier would ask its source";
  receive_end(rounds_word(relay->setting, 2));
  EXPECT_EQ(told(), std::vector<std::uint64_t>{2}) << "unasked";
  receive_end(rounds_word(kSetting, kWhatIsLeft), kStranger + 512);
  EXPECT_EQ(told(), std::vector<std::uint64_t>{rounds_word(kSetting, 0)}) << "that one gets nothing from here";
  receive_end(rounds_word(kSetting, kWhatIsLeft), kStranger + 256);
  EXPECT_EQ(told(), std::vector<std::uint64_t>{rounds_word(kSetting, 2)});
}

// Barriers start in another process, or at another gate of this one.
TEST_F(CircuitAgainTest, Relay_gates_without_barriers_of_their_own__ask_when_they_are_asked) {
  configure_gate(core, *start, {});
  connect_to_peer();
  receive_end(0);
  EXPECT_EQ(told(), std::vector<std::uint64_t>{});
  receive_end(rounds_word(1, kWhatIsLeft), kStranger + 256);
  EXPECT_EQ(told(), (std::vector<std::uint64_t>{question()[0], rounds_word(1, kNoEnd)}));
  receive_end(0);
  EXPECT_EQ(told(), question());
}

TEST_F(CircuitAgainTest, Relay_gates_without_barriers_of_their_own__ask_when_a_value_comes) {
  configure_gate(core, *start, {});
  connect_to_peer();
  receive_value(GateValue());
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(next_sent().rounds_left, question()[0]);
  receive_end(rounds_word(relay->setting, kNoEnd));
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().header.length, kLeastGateBytes);
}

TEST_F(CircuitAgainTest, Set_that_signals_to_one_that_waits__asks_too) {
  relay->set_id = relay->id;
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(told(), question());
}

// Its packets would be of no setting.
TEST_F(BarrierTest, Gate_that_leaves_its_circuit__passes_nothing_that_has_fired) {
  connect_to_peer();
  const auto* const from = reinterpret_cast<const std::byte*>(&kBarrier);
  receive(header_of(kLeastGateBytes, kStranger), std::vector<std::byte>(from, from + kLeastGateBytes));
  EXPECT_FALSE(core.fired.empty());
  leave_circuit(core, *relay);
  run();
  while (!wire.sent.empty()) EXPECT_EQ(next_sent().length, 0u) << "a value";
}

TEST_F(BarrierTest, Values_of_no_setting__are_refused) {
  connect_through_stranger();
  receive_of_setting(0);
  EXPECT_EQ(refused(), 1u);
}

}  // namespace
}  // namespace portofu
