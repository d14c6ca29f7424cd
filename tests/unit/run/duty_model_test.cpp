// Every interleaving of the duty's favourite with somebody who ends the favour, with store buffers: never two on duty,
// nothing that was done on duty is missed, nobody is stuck. Without its barrier the protocol must fail.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace portofu {
namespace {

/// Shared variables. kData is what the duty guards: each holder reads it, and stores one more.
enum Var : std::uint8_t { kFavourite, kInside, kWord, kData, kVarCount };

/// Steps of DutyLock, for one thread after the other what its code does to shared memory.
enum Step : std::uint8_t {
  // take(), as the favourite
  kLookWhetherFavoured,
  kSayInside,
  kLookAgain,
  kLeaveAgain,
  kWakeAfterLeavingAgain,
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
  kWakeAfterLeaving,
  kGiveWord,
  kDone,
};

constexpr std::uint8_t kThreadZero = 1;  ///< Thread 0, as `favourite_` names it.
constexpr std::size_t kBuffer = 4;

struct Thread {
  std::uint8_t at = kLookWhetherFavoured;
  std::uint8_t rounds = 0;
  std::uint8_t favoured = 0;
  std::uint8_t asleep = 0;
  std::uint8_t on_duty = 0;
  std::uint8_t read = 0;
  std::uint8_t buffered = 0;
  std::array<std::uint8_t, kBuffer> var{};
  std::array<std::uint8_t, kBuffer> value{};
};

struct State {
  std::array<std::uint8_t, kVarCount> memory{kThreadZero, 0, 0, 0};
  std::array<Thread, 2> threads{};
};
static_assert(std::has_unique_object_representations_v<State>);

void flush_one(State& state, Thread& thread) {
  state.memory[thread.var[0]] = thread.value[0];
  for (std::size_t i = 1; i < kBuffer; ++i) {
    thread.var[i - 1] = thread.var[i];
    thread.value[i - 1] = thread.value[i];
  }
  thread.var[kBuffer - 1] = thread.value[kBuffer - 1] = 0;
  --thread.buffered;
}

void flush_all(State& state) {
  for (Thread& thread : state.threads) {
    while (thread.buffered > 0) flush_one(state, thread);
  }
}

std::uint8_t load(const State& state, const Thread& thread, Var var) {
  for (int i = thread.buffered - 1; i >= 0; --i) {
    if (thread.var[static_cast<std::size_t>(i)] == var) return thread.value[static_cast<std::size_t>(i)];
  }
  return state.memory[var];
}

void store(Thread& thread, Var var, std::uint8_t value) {
  thread.var[thread.buffered] = var;
  thread.value[thread.buffered++] = value;
}

class Model {
 public:
  explicit Model(bool with_barrier) : with_barrier_(with_barrier) {}

  /// Searches all reachable states. @return what went wrong first, empty if nothing does
  std::string search() {
    State first;
    first.threads[1].at = kTakeWord;
    std::vector<State> open{first};
    std::unordered_set<std::string> seen{key_of(first)};
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      if (state.threads[0].on_duty != 0 && state.threads[1].on_duty != 0) return "two on duty";
      bool moved = false;
      for (std::size_t i = 0; i < 2; ++i) {
        State flushed = state;
        if (flushed.threads[i].buffered > 0) {
          flush_one(flushed, flushed.threads[i]);
          moved = true;
          if (seen.insert(key_of(flushed)).second) open.push_back(flushed);
        }
        State next = state;
        if (!run(next, i)) continue;
        moved = true;
        if (seen.insert(key_of(next)).second) open.push_back(next);
      }
      if (moved) continue;
      if (state.threads[0].at != kDone || state.threads[1].at != kDone) return "somebody is stuck";
      if (state.memory[kData] != 2 * kRounds) return "something done on duty was missed";
    }
    states_ = seen.size();
    return "";
  }

  std::size_t states() const { return states_; }

 private:
  static constexpr std::uint8_t kRounds = 3;

  static std::string key_of(const State& state) { return {reinterpret_cast<const char*>(&state), sizeof state}; }

  static void wake(State& state) {
    for (Thread& thread : state.threads) thread.asleep = 0;
  }

  static void begin_next(Thread& thread, std::size_t index) {
    ++thread.rounds;
    thread.at = thread.rounds == kRounds ? kDone : index == 0 ? kLookWhetherFavoured : kTakeWord;
  }

  /// One step of a thread. @return false if it cannot go on now
  bool run(State& state, std::size_t index) const {
    Thread& self = state.threads[index];
    if (self.asleep != 0 || self.at == kDone || self.buffered == kBuffer) return false;
    switch (self.at) {
      case kLookWhetherFavoured: self.at = load(state, self, kFavourite) == kThreadZero ? kSayInside : kTakeWord; break;
      case kSayInside: store(self, kInside, 1), self.at = kLookAgain; break;
      case kLookAgain:
        self.favoured = load(state, self, kFavourite) == kThreadZero ? 1 : 0;
        self.at = self.favoured != 0 ? kReadData : kLeaveAgain;
        break;
      case kLeaveAgain: store(self, kInside, 0), self.at = kWakeAfterLeavingAgain; break;
      case kWakeAfterLeavingAgain:
        if (load(state, self, kFavourite) == 0) {
          if (self.buffered > 0) return false;  // A system call.
          wake(state);
        }
        self.at = kTakeWord;
        break;
      case kTakeWord:
        if (self.buffered > 0 || state.memory[kWord] != 0) return false;
        state.memory[kWord] = 1;
        self.favoured = 0;
        self.at = kLookForFavourite;
        break;
      case kLookForFavourite: self.at = load(state, self, kFavourite) != 0 ? kEndFavour : kReadData; break;
      case kEndFavour:
        if (self.buffered > 0) return false;
        state.memory[kFavourite] = 0;
        self.at = with_barrier_ ? kBarrier : kLookInside;
        break;
      case kBarrier: flush_all(state), self.at = kLookInside; break;
      case kLookInside: self.at = load(state, self, kInside) != 0 ? kSleep : kReadData; break;
      case kSleep: self.asleep = state.memory[kInside], self.at = kLookInside; break;
      case kReadData: self.on_duty = 1, self.read = load(state, self, kData), self.at = kStoreData; break;
      case kStoreData:
        store(self, kData, static_cast<std::uint8_t>(self.read + 1));
        self.on_duty = 0;
        self.at = self.favoured != 0 ? kLeave : kGiveWord;
        break;
      case kLeave: store(self, kInside, 0), self.at = kWakeAfterLeaving; break;
      case kWakeAfterLeaving:
        if (load(state, self, kFavourite) == 0) {
          if (self.buffered > 0) return false;
          wake(state);
        }
        begin_next(self, index);
        break;
      case kGiveWord:
        if (self.buffered > 0) return false;
        state.memory[kWord] = 0;
        begin_next(self, index);
        break;
      default: return false;
    }
    return true;
  }

  bool with_barrier_;
  std::size_t states_ = 0;
};

TEST(DutyModel, Favourite_and_guest__exclude_each_other_and_miss_nothing) {
  Model model(true);
  EXPECT_EQ(model.search(), "");
  EXPECT_GT(model.states(), 1000u);
}

TEST(DutyModel, Without_the_barrier__it_goes_wrong) { EXPECT_NE(Model(false).search(), ""); }

}  // namespace
}  // namespace portofu
