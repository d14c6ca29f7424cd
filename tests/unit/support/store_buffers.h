#pragma once
// A tiny machine with store buffers, and the search through all that it can do. Threads run programs over shared words;
// a store enters the thread's buffer and reaches memory at any later time, in order; read-modify-writes, fences and
// system calls wait for an empty buffer; membarrier empties the buffers of all registered threads. The search visits
// every reachable state once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace portofu::model {

constexpr std::size_t kWords = 8;
constexpr std::size_t kRegisters = 6;
constexpr std::size_t kBuffer = 4;
constexpr std::size_t kMostThreads = 3;

/// Where a thread is when it has ended.
constexpr std::uint8_t kEnd = 0xff;

/// Plain bytes, so that a state can be a key.
struct Thread {
  std::uint8_t at = 0;  ///< Its step.
  std::uint8_t asleep = 0;
  std::uint8_t dead = 0;
  std::uint8_t inside = 0;  ///< It uses what only one may use at a time.
  std::uint8_t buffered = 0;
  std::array<std::uint8_t, kBuffer> buffer_word{};
  std::array<std::uint8_t, kBuffer> buffer_value{};
  std::array<std::uint8_t, kRegisters> regs{};
};

struct State {
  std::array<std::uint8_t, kWords> memory{};
  std::array<Thread, kMostThreads> threads{};
};
static_assert(std::has_unique_object_representations_v<State>);

class Cpu;

struct Program {
  /// One step: at most one access to memory, then go(). A step that cannot be made now has no effect.
  std::function<void(Cpu&)> step;
  bool registered = true;  ///< membarrier reaches it.
  bool may_die = false;    ///< It may be killed between any two steps; its buffer still reaches memory.
};

/// What a step may do.
class Cpu {
 public:
  Cpu(State& state, std::size_t self, const std::vector<Program>& programs)
      : state_(state), self_(state.threads[self]), programs_(programs) {}

  std::uint8_t at() const { return self_.at; }
  void go(int step) { self_.at = static_cast<std::uint8_t>(step); }
  void end_or_go(bool ends, int step) { go(ends ? kEnd : step); }
  std::uint8_t& reg(std::size_t index) { return self_.regs[index]; }
  void enter() { self_.inside = 1; }
  void leave() { self_.inside = 0; }

  std::uint8_t load(std::uint8_t word) const {
    for (std::size_t i = self_.buffered; i > 0; --i) {
      if (self_.buffer_word[i - 1] == word) return self_.buffer_value[i - 1];
    }
    return state_.memory[word];
  }

  void load_into(std::size_t index, std::uint8_t word) { self_.regs[index] = load(word); }

  void store(std::uint8_t word, int value) {
    if (self_.buffered == kBuffer) return block();
    self_.buffer_word[self_.buffered] = word;
    self_.buffer_value[self_.buffered++] = static_cast<std::uint8_t>(value);
  }

  void fence() {
    if (self_.buffered > 0) block();
  }

  void add(std::uint8_t word, int value) {
    fence();
    state_.memory[word] = static_cast<std::uint8_t>(state_.memory[word] + value);
  }

  void exchange(std::uint8_t word, int value) {
    fence();
    state_.memory[word] = static_cast<std::uint8_t>(value);
  }

  /// The step can only be made while this is so.
  void await(bool condition) {
    if (!condition) block();
  }

  void membarrier() {
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      if (programs_[i].registered || &state_.threads[i] == &self_) flush_all(state_.threads[i]);
    }
  }

  /// Futex.
  void wait(std::uint8_t word, std::uint8_t seen) {
    fence();
    self_.asleep = state_.memory[word] == seen ? 1 : 0;
  }

  void wake() {
    fence();
    for (Thread& thread : state_.threads) thread.asleep = 0;
  }

  void flush_one(Thread& thread) {
    state_.memory[thread.buffer_word[0]] = thread.buffer_value[0];
    for (std::size_t i = 1; i < kBuffer; ++i) {
      thread.buffer_word[i - 1] = thread.buffer_word[i];
      thread.buffer_value[i - 1] = thread.buffer_value[i];
    }
    thread.buffer_word[kBuffer - 1] = thread.buffer_value[kBuffer - 1] = 0;
    --thread.buffered;
  }

  bool was_blocked() const { return blocked_; }

 private:
  void block() { blocked_ = true; }
  void flush_all(Thread& thread) {
    while (thread.buffered > 0) flush_one(thread);
  }

  State& state_;
  Thread& self_;
  const std::vector<Program>& programs_;
  bool blocked_ = false;
};

/// What is wrong with a state; empty: nothing.
using Judge = std::function<std::string(const State&)>;

class Search {
 public:
  explicit Search(std::vector<Program> programs, State first = {}) : programs_(std::move(programs)), first_(first) {}

  /// @param at_the_end  judges states in which nothing can move any more
  /// @return what went wrong first, empty if nothing does; that two are inside is always wrong
  std::string run(const Judge& at_the_end) {
    std::vector<State> open{first_};
    std::unordered_set<std::string> seen{key_of(first_)};
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      int inside = 0;
      for (const Thread& thread : state.threads) inside += thread.inside;
      if (inside > 1) return "two are inside";
      const std::vector<State> next = successors(state);
      if (next.empty()) {
        if (std::string wrong = at_the_end(state); !wrong.empty()) return wrong;
      }
      for (const State& one : next) {
        if (seen.insert(key_of(one)).second) open.push_back(one);
      }
    }
    states_ = seen.size();
    return {};
  }

  /// Of the last run that found nothing wrong.
  std::size_t states() const { return states_; }

 private:
  static std::string key_of(const State& state) { return {reinterpret_cast<const char*>(&state), sizeof state}; }

  std::vector<State> successors(const State& state) const {
    std::vector<State> next;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const Thread& thread = state.threads[i];
      if (thread.buffered > 0) {
        State flushed = state;
        Cpu(flushed, i, programs_).flush_one(flushed.threads[i]);
        next.push_back(flushed);
      }
      if (thread.asleep != 0 || thread.dead != 0 || thread.at == kEnd) continue;
      if (programs_[i].may_die) {
        State killed = state;
        killed.threads[i].dead = 1;
        next.push_back(killed);
      }
      State moved = state;
      Cpu cpu(moved, i, programs_);
      programs_[i].step(cpu);
      if (!cpu.was_blocked()) next.push_back(moved);
    }
    return next;
  }

  std::vector<Program> programs_;
  State first_;
  std::size_t states_ = 0;
};

/// Everybody who is alive has come to its end.
inline std::string judge_ends(const State& state, std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) {
    if (state.threads[i].dead == 0 && state.threads[i].at != kEnd) return "somebody is stuck";
  }
  return {};
}

}  // namespace portofu::model
