// Every interleaving of every use of the guard, with store buffers: the bare guard, the doorbell, the duty, the lane
// and the visit. A model that cannot fail proves nothing, so each protocol is run without its barrier, too, and must go
// wrong.

#include "engine/queue/asymmetric_guard.h"

#include <gtest/gtest.h>

#include "tests/unit/support/store_buffers.h"

namespace portofu {
namespace {

using model::Cpu;
using model::judge_ends;
using model::kEnd;
using model::Program;
using model::Search;
using model::State;

/// How a side closes the race.
enum class Barrier { kNone, kFence, kMembarrier };

void pass(Cpu& cpu, Barrier barrier) {
  if (barrier == Barrier::kFence) cpu.fence();
  if (barrier == Barrier::kMembarrier) cpu.membarrier();
}

/// @return what goes wrong; a search that finds nothing must have had so much to look at
std::string run_all(Search& search, std::size_t least_states, const model::Judge& judge) {
  std::string wrong = search.run(judge);
  if (wrong.empty()) {
    EXPECT_GT(search.states(), least_states);
  }
  return wrong;
}

// ---- The bare guard: each side stores its word and looks at the other one's.

namespace bare {

enum Word : std::uint8_t { kFrequent, kRare };
enum Step : std::uint8_t { kSay, kPass, kLook };

Program side(Word own, Word other, Barrier barrier) {
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kSay: return cpu.store(own, 1), cpu.go(kPass);
      case kPass: return pass(cpu, barrier), cpu.go(kLook);
      default: return cpu.load_into(0, other), cpu.go(kEnd);
    }
  };
  return program;
}

/// As a compiler may make it that is not told: the look comes first.
Program hasty_side() {
  Program program;
  program.step = [](Cpu& cpu) {
    if (cpu.at() == kSay) return cpu.load_into(0, kRare), cpu.go(kLook);
    return cpu.store(kFrequent, 1), cpu.go(kEnd);
  };
  return program;
}

/// @return whether both sides can miss each other
bool can_miss(Program frequent, Barrier rare) {
  Search search({std::move(frequent), side(kRare, kFrequent, rare)});
  return !search
              .run([](const State& state) {
                const bool missed = state.threads[0].regs[0] == 0 && state.threads[1].regs[0] == 0;
                return std::string(missed ? "both miss each other" : "");
              })
              .empty();
}

bool can_miss(Barrier frequent, Barrier rare) { return can_miss(side(kFrequent, kRare, frequent), rare); }

}  // namespace bare

TEST(AsymmetricGuard, Membarrier_of_the_rare_side__suffices) {
  EXPECT_FALSE(bare::can_miss(Barrier::kNone, Barrier::kMembarrier));
}

TEST(AsymmetricGuard, Fences_on_both_sides__suffice) {
  EXPECT_FALSE(bare::can_miss(Barrier::kFence, Barrier::kFence));
  EXPECT_FALSE(bare::can_miss(Barrier::kFence, Barrier::kMembarrier));
}

TEST(AsymmetricGuard, Without_a_barrier__both_miss_each_other) {
  EXPECT_TRUE(bare::can_miss(Barrier::kNone, Barrier::kNone));
  EXPECT_TRUE(bare::can_miss(Barrier::kNone, Barrier::kFence));
  EXPECT_TRUE(bare::can_miss(Barrier::kFence, Barrier::kNone));
}

TEST(AsymmetricGuard, Membarrier__does_not_help_a_side_that_looks_before_it_stores) {
  EXPECT_TRUE(bare::can_miss(bare::hasty_side(), Barrier::kMembarrier));
}

TEST(AsymmetricGuard, Membarrier__does_not_reach_who_is_not_registered) {
  Program stranger = bare::side(bare::kFrequent, bare::kRare, Barrier::kNone);
  stranger.registered = false;
  EXPECT_TRUE(bare::can_miss(stranger, Barrier::kMembarrier));
}

TEST(AsymmetricGuard, Registration__makes_the_barrier_work) {
  if (register_thread_guard()) before_rare_look_at_threads();
  if (register_node_guard() == NodeGuard::kMembarrier) {
    EXPECT_TRUE(before_rare_look_at_processes());
  }
}

// ---- The doorbell: nobody sleeps while a living producer's work lies there. engine/segment/doorbell.h

namespace doorbell {

enum Word : std::uint8_t { kBell, kSleepers, kWorkA, kWorkB, kWantsRoom };

constexpr int kOneSleeper = 16 + 1;  ///< Generation 1, one thread.

/// Doorbell::announce, look for work, wait, withdraw, until all work of both producers has been seen. Registers: 0 the
/// bell, 1 and 2 work seen from producers A and B, 3 work of A as just read.
Program sleeper(Barrier barrier, int work_a, int work_b) {
  enum Step : std::uint8_t { kReadBell, kAnnounce, kPass, kLookAtA, kLookAtB, kWait, kWithdraw };
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kReadBell: return cpu.load_into(0, kBell), cpu.go(kAnnounce);
      case kAnnounce:
        // Without a barrier it is a plain store, to show what that costs.
        barrier == Barrier::kNone ? cpu.store(kSleepers, kOneSleeper) : cpu.add(kSleepers, kOneSleeper);
        return cpu.go(kPass);
      case kPass: return pass(cpu, barrier), cpu.go(kLookAtA);
      case kLookAtA: return cpu.load_into(3, kWorkA), cpu.go(kLookAtB);
      case kLookAtB: {
        const std::uint8_t of_b = cpu.load(kWorkB);
        const bool found = cpu.reg(3) != cpu.reg(1) || of_b != cpu.reg(2);
        cpu.reg(1) = cpu.reg(3);
        cpu.reg(2) = of_b;
        return cpu.go(found ? kWithdraw : kWait);
      }
      case kWait: return cpu.wait(kBell, cpu.reg(0)), cpu.go(kWithdraw);
      default:
        barrier == Barrier::kNone ? cpu.store(kSleepers, kOneSleeper - 1) : cpu.add(kSleepers, -1);
        return cpu.end_or_go(cpu.reg(1) == work_a && cpu.reg(2) == work_b, kReadBell);
    }
  };
  return program;
}

/// Publishes `work` times, each followed by ring_if_asleep. Registers: 0 work published, 1 the generation rung.
Program producer(Word work_word, int work, bool fences, bool registered) {
  enum Step : std::uint8_t { kPublish, kPass, kLook, kRing, kWake };
  Program program;
  program.registered = registered;
  program.step = [=](Cpu& cpu) {
    const auto go_on = [&] { cpu.end_or_go(cpu.reg(0) == work, kPublish); };
    switch (cpu.at()) {
      case kPublish: return cpu.store(work_word, ++cpu.reg(0)), cpu.go(kPass);
      case kPass: return pass(cpu, fences ? Barrier::kFence : Barrier::kNone), cpu.go(kLook);
      case kLook: {
        const std::uint8_t sleepers = cpu.load(kSleepers);
        if ((sleepers & 15) == 0 || sleepers >> 4 == cpu.reg(1)) return go_on();
        cpu.reg(1) = sleepers >> 4;
        return cpu.go(kRing);
      }
      case kRing: return cpu.add(kBell, 1), cpu.go(kWake);
      default: return cpu.wake(), go_on();
    }
  };
  return program;
}

/// A sender that found no room: says so, announces its sleep, looks again for room, which is work A here.
Program blocked_sender(Barrier barrier) {
  enum Step : std::uint8_t { kWant, kReadBell, kAnnounce, kPass, kLook, kWait };
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kWant: return cpu.store(kWantsRoom, 1), cpu.go(kReadBell);
      case kReadBell: return cpu.load_into(0, kBell), cpu.go(kAnnounce);
      case kAnnounce:
        barrier == Barrier::kNone ? cpu.store(kSleepers, kOneSleeper) : cpu.add(kSleepers, kOneSleeper);
        return cpu.go(kPass);
      case kPass: return pass(cpu, barrier), cpu.go(kLook);
      case kLook: return cpu.load_into(1, kWorkA), cpu.end_or_go(cpu.reg(1) != 0, kWait);
      default: return cpu.wait(kBell, cpu.reg(0)), cpu.go(kEnd);
    }
  };
  return program;
}

/// The receiver that gives room back, looks whether it is wanted, and rings. SourceSet::wake_blocked_sender
Program room_giver() {
  enum Step : std::uint8_t { kGive, kLookAtWant, kLookAtSleepers, kRing, kWake };
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kGive: return cpu.store(kWorkA, 1), cpu.go(kLookAtWant);
      case kLookAtWant: return cpu.end_or_go(cpu.load(kWantsRoom) == 0, kLookAtSleepers);
      case kLookAtSleepers: return cpu.end_or_go((cpu.load(kSleepers) & 15) == 0, kRing);
      case kRing: return cpu.add(kBell, 1), cpu.go(kWake);
      default: return cpu.wake(), cpu.go(kEnd);
    }
  };
  return program;
}

/// The sleeper (thread 0) sleeps for ever, and somebody who is not dead has published what it has not seen.
std::string judge_sleep(const State& state) {
  const model::Thread& sleeper = state.threads[0];
  if (sleeper.asleep == 0) return {};
  for (std::size_t i = 1; i < state.threads.size(); ++i) {
    const std::uint8_t published = state.memory[i == 1 ? kWorkA : kWorkB];
    if (state.threads[i].dead == 0 && published != sleeper.regs[i]) return "a wake-up is lost";
  }
  return {};
}

bool can_lose_a_wakeup(Search search, std::size_t least_states = 0) {
  return !run_all(search, least_states, judge_sleep).empty();
}

}  // namespace doorbell

using doorbell::can_lose_a_wakeup;
using doorbell::kWorkA;
using doorbell::kWorkB;
using doorbell::producer;
using doorbell::sleeper;

TEST(DoorbellModel, Membarrier_of_the_sleeper__suffices) {
  Search search({sleeper(Barrier::kMembarrier, 3, 0), producer(kWorkA, 3, false, true)});
  EXPECT_FALSE(can_lose_a_wakeup(search, 100));
}

TEST(DoorbellModel, Membarrier_of_the_sleeper__suffices_for_two_producers) {
  Search search(
      {sleeper(Barrier::kMembarrier, 2, 1), producer(kWorkA, 2, false, true), producer(kWorkB, 1, false, true)});
  EXPECT_FALSE(can_lose_a_wakeup(search, 1000));
}

TEST(DoorbellModel, Without_a_barrier__a_wakeup_is_lost) {
  Search search({sleeper(Barrier::kNone, 1, 0), producer(kWorkA, 1, false, true)});
  EXPECT_TRUE(can_lose_a_wakeup(search));
}

TEST(DoorbellModel, Fence_of_the_sleeper_alone__loses_a_wakeup) {
  Search search({sleeper(Barrier::kFence, 1, 0), producer(kWorkA, 1, false, true)});
  EXPECT_TRUE(can_lose_a_wakeup(search)) << "why a sleeper without membarrier bounds its sleep";
}

TEST(DoorbellModel, Fence_of_the_producer_alone__loses_a_wakeup) {
  Search search({sleeper(Barrier::kNone, 1, 0), producer(kWorkA, 1, true, true)});
  EXPECT_TRUE(can_lose_a_wakeup(search));
}

TEST(DoorbellModel, Fences_on_both_sides__suffice) {
  Search search({sleeper(Barrier::kFence, 2, 1), producer(kWorkA, 2, true, false), producer(kWorkB, 1, true, true)});
  EXPECT_FALSE(can_lose_a_wakeup(search));
}

TEST(DoorbellModel, Membarrier__does_not_reach_a_producer_that_neither_registered_nor_fences) {
  Search search({sleeper(Barrier::kMembarrier, 1, 0), producer(kWorkA, 1, false, false)});
  EXPECT_TRUE(can_lose_a_wakeup(search));
}

TEST(DoorbellModel, Membarrier__goes_together_with_a_producer_that_fences) {
  Search search(
      {sleeper(Barrier::kMembarrier, 2, 1), producer(kWorkA, 2, true, false), producer(kWorkB, 1, false, true)});
  EXPECT_FALSE(can_lose_a_wakeup(search));
}

TEST(DoorbellModel, Producer_that_is_killed__delays_nobody_else) {
  Program killed = producer(kWorkA, 2, false, true);
  killed.may_die = true;
  EXPECT_FALSE(
      can_lose_a_wakeup(Search({sleeper(Barrier::kMembarrier, 2, 1), killed, producer(kWorkB, 1, false, true)})));
}

TEST(DoorbellModel, Blocked_sender__is_woken_when_room_comes_back) {
  EXPECT_FALSE(can_lose_a_wakeup(Search({doorbell::blocked_sender(Barrier::kMembarrier), doorbell::room_giver()})));
}

TEST(DoorbellModel, Blocked_sender__without_a_barrier_sleeps_on) {
  EXPECT_TRUE(can_lose_a_wakeup(Search({doorbell::blocked_sender(Barrier::kNone), doorbell::room_giver()})));
}

// ---- The duty: never two on duty, nothing that was done on duty is missed, nobody is stuck. engine/run/duty.h

namespace duty {

/// kData is what the duty guards: each holder reads it, and stores one more.
enum Word : std::uint8_t { kFavourite, kInside, kWord, kData };

enum Register : std::uint8_t { kRound, kFavoured, kRead };

enum Step : std::uint8_t {
  // take(), as the favourite
  kLookWhetherFavoured,
  kSayInside,
  kLookAgain,
  kLeaveAgain,
  kLookBehindLeavingAgain,
  // take_unfavoured()
  kTakeWord,
  kLookForFavourite,
  kEndFavour,
  kBarrier,
  kLookInside,
  kSleep,
  // on duty
  kReadData,
  kStoreData,
  // give()
  kLeave,
  kLookBehindLeaving,
  kGiveWord,
};

constexpr int kThreadZero = 1;  ///< Thread 0, as `favourite_` names it.
constexpr int kRounds = 3;

void begin_next(Cpu& cpu, Step first) { cpu.end_or_go(++cpu.reg(kRound) == kRounds, first); }

void step_of_take(Cpu& cpu, Barrier barrier) {
  switch (cpu.at()) {
    case kLookWhetherFavoured: return cpu.go(cpu.load(kFavourite) == kThreadZero ? kSayInside : kTakeWord);
    case kSayInside: return cpu.store(kInside, 1), cpu.go(kLookAgain);
    case kLookAgain:
      cpu.reg(kFavoured) = cpu.load(kFavourite) == kThreadZero ? 1 : 0;
      return cpu.go(cpu.reg(kFavoured) != 0 ? kReadData : kLeaveAgain);
    case kLeaveAgain: return cpu.store(kInside, 0), cpu.go(kLookBehindLeavingAgain);
    case kLookBehindLeavingAgain:
      if (cpu.load(kFavourite) == 0) cpu.wake();
      return cpu.go(kTakeWord);
    case kTakeWord:
      cpu.await(cpu.load(kWord) == 0);
      cpu.exchange(kWord, 1);
      cpu.reg(kFavoured) = 0;
      return cpu.go(kLookForFavourite);
    case kLookForFavourite: return cpu.go(cpu.load(kFavourite) != 0 ? kEndFavour : kReadData);
    case kEndFavour: return cpu.exchange(kFavourite, 0), cpu.go(kBarrier);
    case kBarrier: return pass(cpu, barrier), cpu.go(kLookInside);
    case kLookInside: return cpu.go(cpu.load(kInside) != 0 ? kSleep : kReadData);
    default: return cpu.wait(kInside, 1), cpu.go(kLookInside);
  }
}

/// @param first  kLookWhetherFavoured of the favourite, kTakeWord of who is none
Program holder(Step first, Barrier barrier) {
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kReadData: return cpu.enter(), cpu.load_into(kRead, kData), cpu.go(kStoreData);
      case kStoreData:
        cpu.store(kData, cpu.reg(kRead) + 1);
        cpu.leave();
        return cpu.go(cpu.reg(kFavoured) != 0 ? kLeave : kGiveWord);
      case kLeave: return cpu.store(kInside, 0), cpu.go(kLookBehindLeaving);
      case kLookBehindLeaving:
        if (cpu.load(kFavourite) == 0) cpu.wake();
        return begin_next(cpu, first);
      case kGiveWord: return cpu.exchange(kWord, 0), begin_next(cpu, first);
      default: return step_of_take(cpu, barrier);
    }
  };
  return program;
}

std::string run(Barrier barrier, std::size_t least_states = 0) {
  State first;
  first.memory[kFavourite] = kThreadZero;
  first.threads[1].at = kTakeWord;
  Search search({holder(kLookWhetherFavoured, barrier), holder(kTakeWord, barrier)}, first);
  return run_all(search, least_states, [](const State& state) {
    std::string stuck = judge_ends(state, 2);
    return !stuck.empty() || state.memory[kData] == 2 * kRounds ? stuck : "something done on duty was missed";
  });
}

}  // namespace duty

TEST(DutyModel, Favourite_and_guest__exclude_each_other_and_miss_nothing) {
  EXPECT_EQ(duty::run(Barrier::kMembarrier, 1000), "");
}

TEST(DutyModel, Without_the_barrier__it_goes_wrong) {
  EXPECT_NE(duty::run(Barrier::kNone), "");
  EXPECT_NE(duty::run(Barrier::kFence), "");
}

// ---- The lane: never two at a VCQ, nobody in memory that was unmapped. engine/core/direct_lane.h

namespace lane {

/// kUser: thread N as N + 1, 0: the door is shut. kBusy and the word behind it: of each thread's seat. kData: what
/// belongs to the VCQ. kDuty: the lock of all who come without the lane.
enum Word : std::uint8_t { kUser, kBusy, kBusyOfSecond, kOpen, kMapped, kData, kDuty };

enum Register : std::uint8_t { kRound, kRead, kOther, kFault };

/// What of the protocol is there.
struct Rules {
  Barrier shut = Barrier::kMembarrier;   ///< (L2) Between taking the user's name off and the look at its seat.
  Barrier close = Barrier::kMembarrier;  ///< (L1) Between closing the lane and that look.
  bool own_seats = true;                 ///< Each thread says in a place of its own that it is busy.
  bool looks_again = true;               ///< The user looks at the door again once it is busy.
};

constexpr int kRounds = 2;

Word busy_of(const Rules& rules, int thread) { return rules.own_seats && thread == 1 ? kBusyOfSecond : kBusy; }

enum Step : std::uint8_t {
  // LaneUse and what is done at once
  kLookAtDoor,
  kSayBusy,
  kLookAgain,
  kLookAtLane,
  kUseMemory,
  kReadInLane,
  kStoreInLane,
  kLeaveLane,
  kLeaveUnused,
  // on duty
  kTakeDuty,
  kLookAtUser,
  kShut,
  kPassShut,
  kAwaitOutside,
  kReadOnDuty,
  kStoreOnDuty,
  kBecomeUser,
  kGiveDuty,
};

void begin_next(Cpu& cpu) { cpu.end_or_go(++cpu.reg(kRound) == kRounds, kLookAtDoor); }

void step_on_duty(Cpu& cpu, int self, const Rules& rules) {
  switch (cpu.at()) {
    case kTakeDuty: return cpu.await(cpu.load(kDuty) == 0), cpu.exchange(kDuty, 1), cpu.go(kLookAtUser);
    case kLookAtUser:
      cpu.reg(kOther) = cpu.load(kUser);
      return cpu.go(cpu.reg(kOther) == 0 || cpu.reg(kOther) == self + 1 ? kReadOnDuty : kShut);
    case kShut: return cpu.exchange(kUser, 0), cpu.go(kPassShut);
    case kPassShut: return pass(cpu, rules.shut), cpu.go(kAwaitOutside);
    case kAwaitOutside: return cpu.await(cpu.load(busy_of(rules, cpu.reg(kOther) - 1)) == 0), cpu.go(kReadOnDuty);
    case kReadOnDuty: return cpu.enter(), cpu.load_into(kRead, kData), cpu.go(kStoreOnDuty);
    case kStoreOnDuty: return cpu.store(kData, cpu.reg(kRead) + 1), cpu.leave(), cpu.go(kBecomeUser);
    case kBecomeUser: return cpu.store(kUser, self + 1), cpu.go(kGiveDuty);
    default: return cpu.exchange(kDuty, 0), begin_next(cpu);
  }
}

/// A thread that communicates by the lane if it is the user, and else on duty, where it becomes the user.
Program caller(int self, const Rules& rules) {
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kLookAtDoor: return cpu.go(cpu.load(kUser) == self + 1 ? kSayBusy : kTakeDuty);
      case kSayBusy: return cpu.store(busy_of(rules, self), 1), cpu.go(rules.looks_again ? kLookAgain : kLookAtLane);
      case kLookAgain: return cpu.go(cpu.load(kUser) == self + 1 ? kLookAtLane : kLeaveUnused);
      case kLookAtLane: return cpu.go(cpu.load(kOpen) != 0 ? kUseMemory : kLeaveUnused);
      case kUseMemory:
        if (cpu.load(kMapped) == 0) cpu.reg(kFault) = 1;
        return cpu.go(kReadInLane);
      case kReadInLane: return cpu.enter(), cpu.load_into(kRead, kData), cpu.go(kStoreInLane);
      case kStoreInLane: return cpu.store(kData, cpu.reg(kRead) + 1), cpu.leave(), cpu.go(kLeaveLane);
      case kLeaveLane: return cpu.store(busy_of(rules, self), 0), begin_next(cpu);
      case kLeaveUnused: return cpu.store(busy_of(rules, self), 0), cpu.go(kTakeDuty);
      default: return step_on_duty(cpu, self, rules);
    }
  };
  return program;
}

/// end_lane_on_duty: closes the lane, and unmaps what the lane leads to once nobody is inside.
Program closer(const Rules& rules) {
  enum CloserStep : std::uint8_t { kTake, kClose, kPassClosed, kLook, kAwait, kUnmap, kGive };
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kTake: return cpu.await(cpu.load(kDuty) == 0), cpu.exchange(kDuty, 1), cpu.go(kClose);
      case kClose: return cpu.store(kOpen, 0), cpu.go(kPassClosed);
      case kPassClosed: return pass(cpu, rules.close), cpu.go(kLook);
      case kLook: cpu.reg(kOther) = cpu.load(kUser); return cpu.go(cpu.reg(kOther) != 0 ? kAwait : kUnmap);
      case kAwait: return cpu.await(cpu.load(busy_of(rules, cpu.reg(kOther) - 1)) == 0), cpu.go(kUnmap);
      case kUnmap: return cpu.exchange(kMapped, 0), cpu.go(kGive);
      default: return cpu.exchange(kDuty, 0), cpu.go(kEnd);
    }
  };
  return program;
}

std::string run(const Rules& rules, std::size_t least_states = 0) {
  State first;
  first.memory[kUser] = 1;
  first.memory[kOpen] = first.memory[kMapped] = 1;
  Search search({caller(0, rules), caller(1, rules), closer(rules)}, first);
  return run_all(search, least_states, [](const State& state) -> std::string {
    if (state.threads[0].regs[kFault] != 0 || state.threads[1].regs[kFault] != 0) return "memory was unmapped under it";
    if (std::string stuck = judge_ends(state, 3); !stuck.empty()) return stuck;
    return state.memory[kData] == 2 * kRounds ? "" : "something done at the VCQ was missed";
  });
}

}  // namespace lane

TEST(LaneModel, User_others_and_the_end_of_a_link__keep_out_of_each_others_way) { EXPECT_EQ(lane::run({}, 5000), ""); }

TEST(LaneModel, Door_that_is_shut_without_the_barrier__lets_two_in) {
  EXPECT_NE(lane::run({.shut = Barrier::kNone}), "");
  EXPECT_NE(lane::run({.shut = Barrier::kFence}), "");
}

TEST(LaneModel, Lane_that_is_closed_without_the_barrier__leads_into_unmapped_memory) {
  EXPECT_EQ(lane::run({.close = Barrier::kNone}), "memory was unmapped under it");
  EXPECT_EQ(lane::run({.close = Barrier::kFence}), "memory was unmapped under it");
}

TEST(LaneModel, One_seat_for_all_threads__lets_two_in) { EXPECT_NE(lane::run({.own_seats = false}), ""); }

TEST(LaneModel, User_that_does_not_look_again__meets_another_one) { EXPECT_NE(lane::run({.looks_again = false}), ""); }

// ---- The visit: nothing lands in an entry that its owner has taken back. engine/initiator/portals_direct.cpp

namespace visit {

/// kVisited and the word behind it: of each initiator's slot. kMemory and the word behind it: where each one puts.
enum Word : std::uint8_t { kSequence, kVisited, kVisitedBySecond, kMemory, kMemoryOfSecond };

enum Register : std::uint8_t { kRound, kSawFirst, kSawSecond };

constexpr int kPublished = 2;  ///< The sequence number that the initiators have seen.
constexpr int kRounds = 2;

/// Visit, a put, and the end of the visit.
Program visitor(int self, bool registered) {
  enum Step : std::uint8_t { kSay, kLook, kPut, kLeave };
  Program program;
  program.registered = registered;
  program.step = [=](Cpu& cpu) {
    const auto visited = static_cast<std::uint8_t>(kVisited + self);
    switch (cpu.at()) {
      case kSay: return cpu.store(visited, 1), cpu.go(kLook);
      case kLook: return cpu.go(cpu.load(kSequence) == kPublished ? kPut : kLeave);
      case kPut: return cpu.store(static_cast<std::uint8_t>(kMemory + self), cpu.reg(kRound) + 1), cpu.go(kLeave);
      default: return cpu.store(visited, 0), cpu.end_or_go(++cpu.reg(kRound) == kRounds, kSay);
    }
  };
  return program;
}

/// take_back: PtlMEUnlink is called until it does not find a visitor; then the memory is the application's.
Program owner(Barrier barrier) {
  enum Step : std::uint8_t { kWithdraw, kPass, kLookAtFirst, kLookAtSecond, kReadFirst, kReadSecond };
  Program program;
  program.step = [=](Cpu& cpu) {
    switch (cpu.at()) {
      case kWithdraw: return cpu.store(kSequence, kPublished + 1), cpu.go(kPass);
      case kPass: return pass(cpu, barrier), cpu.go(kLookAtFirst);
      case kLookAtFirst: return cpu.go(cpu.load(kVisited) != 0 ? kPass : kLookAtSecond);
      case kLookAtSecond: return cpu.go(cpu.load(kVisitedBySecond) != 0 ? kPass : kReadFirst);
      case kReadFirst: return cpu.load_into(kSawFirst, kMemory), cpu.go(kReadSecond);
      default: return cpu.load_into(kSawSecond, kMemoryOfSecond), cpu.go(kEnd);
    }
  };
  return program;
}

std::string run(Barrier barrier, bool registered = true, std::size_t least_states = 0) {
  State first;
  first.memory[kSequence] = kPublished;
  Search search({visitor(0, true), visitor(1, registered), owner(barrier)}, first);
  return run_all(search, least_states, [](const State& state) -> std::string {
    const auto& saw = state.threads[2].regs;
    const bool late = saw[kSawFirst] != state.memory[kMemory] || saw[kSawSecond] != state.memory[kMemoryOfSecond];
    return late ? "a put landed in memory that was taken back" : judge_ends(state, 3);
  });
}

}  // namespace visit

TEST(VisitModel, Entry_that_was_taken_back__is_left_alone) {
  EXPECT_EQ(visit::run(Barrier::kMembarrier, true, 1000), "");
}

TEST(VisitModel, Without_the_barrier__a_put_lands_in_it) {
  EXPECT_NE(visit::run(Barrier::kNone), "");
  EXPECT_NE(visit::run(Barrier::kFence), "");
}

TEST(VisitModel, Initiator_that_is_not_registered__must_not_visit) {
  EXPECT_NE(visit::run(Barrier::kMembarrier, false), "");
}

}  // namespace
}  // namespace portofu
