// Every interleaving of the doorbell's protocol, with store buffers: nobody sleeps while a living producer's work lies
// there. The model is a tiny machine: threads run straight programs over shared variables; a store enters the thread's
// buffer and reaches memory at any later time, in order; read-modify-writes and fences wait for an empty buffer;
// membarrier empties the buffers of all registered threads. The search visits every reachable state. A model that
// cannot fail proves nothing, so the protocol without its barrier is run too, and must lose a wake-up.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace portofu {
namespace {

/// Shared variables.
enum Var : std::uint8_t { kBell, kSleepers, kWorkA, kWorkB, kRoom, kWantsRoom, kVarCount };

enum class Op : std::uint8_t {
  kStore,       ///< buffer: var = value
  kAdd,         ///< var += value, atomically
  kLoad,        ///< reg = var
  kMove,        ///< reg = other register `value`
  kFence,       ///< waits for the buffer
  kMembarrier,  ///< empties the buffers of registered threads and of this one
  kJump,        ///< to target
  kJumpEqual,   ///< to target if reg == value
  kJumpSame,    ///< to target if reg == register `value`
  kJumpNobody,  ///< to target if reg, read from kSleepers, counts no thread
  kJumpRung,    ///< to target if reg's generation is the one remembered in register `value`
  kRemember,    ///< register `value` = generation in reg
  kWait,        ///< futex: sleeps if var == reg
  kWake,        ///< futex: wakes everybody
  kEnd,
};

struct Step {
  Op op;
  std::uint8_t var = 0;
  std::uint8_t reg = 0;
  std::int8_t value = 0;
  std::uint8_t target = 0;
};

struct Program {
  std::vector<Step> steps;
  bool registered = true;  ///< membarrier reaches it.
  bool may_die = false;    ///< It may be killed between any two steps; its buffer still reaches memory.
};

constexpr int kRegisters = 6;
constexpr int kBuffer = 4;
constexpr int kMaxThreads = 3;

/// Plain bytes, so that it can be a key.
struct Thread {
  std::uint8_t at = 0;
  std::uint8_t asleep = 0;
  std::uint8_t dead = 0;
  std::uint8_t buffered = 0;
  std::array<std::uint8_t, kBuffer> buffer_var{};
  std::array<std::uint8_t, kBuffer> buffer_value{};
  std::array<std::uint8_t, kRegisters> regs{};
};

struct State {
  std::array<std::uint8_t, kVarCount> memory{};
  std::array<Thread, kMaxThreads> threads{};
};

static_assert(std::has_unique_object_representations_v<State>);

std::string key_of(const State& state) { return {reinterpret_cast<const char*>(&state), sizeof state}; }

std::uint8_t read_as(const State& state, const Thread& thread, std::uint8_t var) {
  for (int i = thread.buffered - 1; i >= 0; --i) {
    if (thread.buffer_var[i] == var) return thread.buffer_value[i];
  }
  return state.memory[var];
}

void flush_one(State& state, Thread& thread) {
  state.memory[thread.buffer_var[0]] = thread.buffer_value[0];
  for (int i = 1; i < kBuffer; ++i) {
    thread.buffer_var[i - 1] = thread.buffer_var[i];
    thread.buffer_value[i - 1] = thread.buffer_value[i];
  }
  thread.buffer_var[kBuffer - 1] = thread.buffer_value[kBuffer - 1] = 0;
  --thread.buffered;
}

void flush_all(State& state, Thread& thread) {
  while (thread.buffered > 0) flush_one(state, thread);
}

class Machine {
 public:
  explicit Machine(std::vector<Program> programs) : programs_(std::move(programs)) {}

  /// Searches all reachable states. @return true if the sleeper (thread 0) can sleep for ever on a living thread's work
  bool can_lose_a_wakeup() {
    std::vector<State> open{State{}};
    std::unordered_set<std::string> seen{key_of(open.front())};
    bool lost = false;
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      std::vector<State> next = successors(state);
      if (next.empty()) lost = lost || sleeps_on_work(state);
      for (const State& one : next) {
        if (seen.insert(key_of(one)).second) open.push_back(one);
      }
    }
    states_ = seen.size();
    return lost;
  }

  std::size_t states() const { return states_; }

 private:
  /// Nothing can move any more: the sleeper sleeps, and somebody who is not dead has published what it has not seen.
  bool sleeps_on_work(const State& state) const {
    const Thread& sleeper = state.threads[0];
    if (!sleeper.asleep) return false;
    for (std::size_t i = 1; i < programs_.size(); ++i) {
      const std::uint8_t seen = sleeper.regs[i];
      if (!state.threads[i].dead && state.memory[watched_[i]] != seen) return true;
    }
    return false;
  }

  std::vector<State> successors(const State& state) const {
    std::vector<State> next;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const Thread& thread = state.threads[i];
      if (thread.buffered > 0) {
        State flushed = state;
        flush_one(flushed, flushed.threads[i]);
        next.push_back(flushed);
      }
      const Step& step = programs_[i].steps[thread.at];
      if (thread.asleep || thread.dead || step.op == Op::kEnd) continue;
      if (programs_[i].may_die) {
        State killed = state;
        killed.threads[i].dead = 1;
        next.push_back(killed);
      }
      State moved = state;
      if (run(moved, i, step)) next.push_back(moved);
    }
    return next;
  }

  static bool needs_empty_buffer(Op op) {
    return op == Op::kAdd || op == Op::kFence || op == Op::kWait || op == Op::kWake;
  }

  /// @return false if the step must wait for the thread's buffer
  bool run(State& state, std::size_t index, const Step& step) const {
    Thread& self = state.threads[index];
    if (needs_empty_buffer(step.op) && self.buffered > 0) return false;
    std::uint8_t next = self.at + 1;
    std::uint8_t& reg = self.regs[step.reg];
    const auto other = static_cast<std::uint8_t>(step.value);
    switch (step.op) {
      case Op::kStore:
        if (self.buffered == kBuffer) return false;
        self.buffer_var[self.buffered] = step.var;
        self.buffer_value[self.buffered++] = other;
        break;
      case Op::kAdd: state.memory[step.var] = static_cast<std::uint8_t>(state.memory[step.var] + step.value); break;
      case Op::kLoad: reg = read_as(state, self, step.var); break;
      case Op::kMove: reg = self.regs[other]; break;
      case Op::kFence: break;
      case Op::kMembarrier:
        flush_all(state, self);
        for (std::size_t i = 0; i < programs_.size(); ++i) {
          if (programs_[i].registered) flush_all(state, state.threads[i]);
        }
        break;
      case Op::kJump: next = step.target; break;
      case Op::kJumpEqual: next = reg == other ? step.target : next; break;
      case Op::kJumpSame: next = reg == self.regs[other] ? step.target : next; break;
      case Op::kJumpNobody: next = (reg & 15) == 0 ? step.target : next; break;
      case Op::kJumpRung: next = reg >> 4 == self.regs[other] ? step.target : next; break;
      case Op::kRemember: self.regs[other] = reg >> 4; break;
      case Op::kWait: self.asleep = state.memory[step.var] == reg; break;
      case Op::kWake:
        for (Thread& thread : state.threads) thread.asleep = 0;
        break;
      case Op::kEnd: return false;
    }
    self.at = next;
    return true;
  }

  std::vector<Program> programs_;
  /// What thread i publishes; the sleeper keeps what it has seen of it in its register i.
  const std::array<std::uint8_t, kMaxThreads> watched_{kVarCount, kWorkA, kWorkB};
  std::size_t states_ = 0;
};

/// How a side closes the race.
enum class Barrier { kNone, kFence, kMembarrier };

/// Doorbell::announce, look for work, wait, withdraw, until all work of both producers has been seen. Registers: 0 the
/// bell, 1 and 2 work seen from producers A and B, 3 and 4 work as just read.
Program sleeper(Barrier barrier, std::int8_t work_a, std::int8_t work_b) {
  Program program;
  auto& steps = program.steps;
  steps.push_back({Op::kLoad, kBell, 0});
  // With a barrier the announcement is a read-modify-write; without one it is a plain store, to show what that costs.
  steps.push_back(barrier == Barrier::kNone ? Step{Op::kStore, kSleepers, 0, 17} : Step{Op::kAdd, kSleepers, 0, 17});
  if (barrier == Barrier::kMembarrier) steps.push_back({Op::kMembarrier});
  if (barrier == Barrier::kFence) steps.push_back({Op::kFence});
  steps.push_back({Op::kLoad, kWorkA, 3});
  steps.push_back({Op::kLoad, kWorkB, 4});
  const auto looked = static_cast<std::uint8_t>(steps.size());
  // looked+0: something new of A? looked+1: of B? looked+2: nothing: wait. looked+3: take it, withdraw, again.
  steps.push_back({Op::kJumpSame, 0, 1, 3, static_cast<std::uint8_t>(looked + 2)});
  steps.push_back({Op::kJump, 0, 0, 0, static_cast<std::uint8_t>(looked + 4)});
  steps.push_back({Op::kJumpSame, 0, 2, 4, static_cast<std::uint8_t>(looked + 7)});
  steps.push_back({Op::kJump, 0, 0, 0, static_cast<std::uint8_t>(looked + 4)});
  steps.push_back({Op::kMove, 0, 1, 3});
  steps.push_back({Op::kMove, 0, 2, 4});
  steps.push_back({Op::kJump, 0, 0, 0, static_cast<std::uint8_t>(looked + 8)});
  steps.push_back({Op::kWait, kBell, 0});
  steps.push_back(barrier == Barrier::kNone ? Step{Op::kStore, kSleepers, 0, 16} : Step{Op::kAdd, kSleepers, 0, -1});
  const auto end = static_cast<std::uint8_t>(looked + 13);
  steps.push_back({Op::kJumpEqual, 0, 1, work_a, static_cast<std::uint8_t>(looked + 11)});
  steps.push_back({Op::kJump, 0, 0, 0, 0});
  steps.push_back({Op::kJumpEqual, 0, 2, work_b, end});
  steps.push_back({Op::kJump, 0, 0, 0, 0});
  steps.push_back({Op::kEnd});
  return program;
}

/// Publishes `work` times, each followed by ring_if_asleep. Registers: 0 sleepers as read, 1 the generation rung.
Program producer(Var work_var, std::int8_t work, bool fences, bool registered) {
  Program program;
  program.registered = registered;
  auto& steps = program.steps;
  for (std::int8_t i = 1; i <= work; ++i) {
    steps.push_back({Op::kStore, work_var, 0, i});
    if (fences) steps.push_back({Op::kFence});
    steps.push_back({Op::kLoad, kSleepers, 0});
    const auto done = static_cast<std::uint8_t>(steps.size() + 5);
    steps.push_back({Op::kJumpNobody, 0, 0, 0, done});
    steps.push_back({Op::kJumpRung, 0, 0, 1, done});
    steps.push_back({Op::kRemember, 0, 0, 1});
    steps.push_back({Op::kAdd, kBell, 0, 1});
    steps.push_back({Op::kWake});
  }
  steps.push_back({Op::kEnd});
  return program;
}

TEST(DoorbellModel, Membarrier_of_the_sleeper__suffices) {
  Machine machine({sleeper(Barrier::kMembarrier, 3, 0), producer(kWorkA, 3, false, true)});
  EXPECT_FALSE(machine.can_lose_a_wakeup());
  EXPECT_GT(machine.states(), 100u);
}

TEST(DoorbellModel, Membarrier_of_the_sleeper__suffices_for_two_producers) {
  Machine machine(
      {sleeper(Barrier::kMembarrier, 2, 1), producer(kWorkA, 2, false, true), producer(kWorkB, 1, false, true)});
  EXPECT_FALSE(machine.can_lose_a_wakeup());
  EXPECT_GT(machine.states(), 1000u);
}

TEST(DoorbellModel, Without_a_barrier__a_wakeup_is_lost) {
  Machine machine({sleeper(Barrier::kNone, 1, 0), producer(kWorkA, 1, false, true)});
  EXPECT_TRUE(machine.can_lose_a_wakeup());
}

TEST(DoorbellModel, Fence_of_the_sleeper_alone__loses_a_wakeup) {
  Machine machine({sleeper(Barrier::kFence, 1, 0), producer(kWorkA, 1, false, true)});
  EXPECT_TRUE(machine.can_lose_a_wakeup()) << "why a sleeper without membarrier bounds its sleep";
}

TEST(DoorbellModel, Fence_of_the_producer_alone__loses_a_wakeup) {
  Machine machine({sleeper(Barrier::kNone, 1, 0), producer(kWorkA, 1, true, true)});
  EXPECT_TRUE(machine.can_lose_a_wakeup());
}

TEST(DoorbellModel, Fences_on_both_sides__suffice) {
  Machine machine({sleeper(Barrier::kFence, 2, 1), producer(kWorkA, 2, true, false), producer(kWorkB, 1, true, true)});
  EXPECT_FALSE(machine.can_lose_a_wakeup());
}

TEST(DoorbellModel, Membarrier__does_not_reach_a_producer_that_neither_registered_nor_fences) {
  Machine machine({sleeper(Barrier::kMembarrier, 1, 0), producer(kWorkA, 1, false, false)});
  EXPECT_TRUE(machine.can_lose_a_wakeup());
}

TEST(DoorbellModel, Membarrier__goes_together_with_a_producer_that_fences) {
  Machine machine(
      {sleeper(Barrier::kMembarrier, 2, 1), producer(kWorkA, 2, true, false), producer(kWorkB, 1, false, true)});
  EXPECT_FALSE(machine.can_lose_a_wakeup());
}

TEST(DoorbellModel, Producer_that_is_killed__delays_nobody_else) {
  Program killed = producer(kWorkA, 2, false, true);
  killed.may_die = true;
  Machine machine({sleeper(Barrier::kMembarrier, 2, 1), killed, producer(kWorkB, 1, false, true)});
  EXPECT_FALSE(machine.can_lose_a_wakeup());
}

/// A sender that found no room: says so, announces its sleep, looks again.
Program blocked_sender(Barrier barrier) {
  Program program;
  auto& steps = program.steps;
  steps.push_back({Op::kStore, kWantsRoom, 0, 1});
  steps.push_back({Op::kLoad, kBell, 0});
  steps.push_back(barrier == Barrier::kNone ? Step{Op::kStore, kSleepers, 0, 17} : Step{Op::kAdd, kSleepers, 0, 17});
  if (barrier == Barrier::kMembarrier) steps.push_back({Op::kMembarrier});
  steps.push_back({Op::kLoad, kWorkA, 1});
  const auto end = static_cast<std::uint8_t>(steps.size() + 2);
  steps.push_back({Op::kJumpEqual, 0, 1, 1, end});
  steps.push_back({Op::kWait, kBell, 0});
  steps.push_back({Op::kEnd});
  return program;
}

/// The receiver that gives room back (here: work A), looks whether it is wanted, and rings.
Program room_giver() {
  Program program;
  program.steps = {{Op::kStore, kWorkA, 0, 1},
                   {Op::kLoad, kWantsRoom, 2},
                   {Op::kJumpEqual, 0, 2, 0, 7},
                   {Op::kLoad, kSleepers, 0},
                   {Op::kJumpNobody, 0, 0, 0, 7},
                   {Op::kAdd, kBell, 0, 1},
                   {Op::kWake},
                   {Op::kEnd}};
  return program;
}

TEST(DoorbellModel, Blocked_sender__is_woken_when_room_comes_back) {
  Machine machine({blocked_sender(Barrier::kMembarrier), room_giver()});
  EXPECT_FALSE(machine.can_lose_a_wakeup());
}

TEST(DoorbellModel, Blocked_sender__without_a_barrier_sleeps_on) {
  Machine machine({blocked_sender(Barrier::kNone), room_giver()});
  EXPECT_TRUE(machine.can_lose_a_wakeup());
}

}  // namespace
}  // namespace portofu
