#include "lib/utofu/own_queues.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

namespace portofu::utofu {
namespace {

/// Never destroyed: a thread may free its VCQ while the process ends.
struct State {
  std::atomic<pid_t> holder{0};           ///< The thread that holds the list; 0: nobody.
  std::atomic<std::uint32_t> waiting{0};  ///< Threads that want it.
  std::vector<OwnQueue> queues;
  std::vector<OwnGates> gates;
  LaneChoice lanes;
};
State& state() {
  static State* const own = new State;
  return *own;
}

/// Made when the library is loaded: a static variable of a function has a lock that a forked child may find taken.
[[maybe_unused]] const State& made_at_load = state();

/// Longer than a thread that wants the list takes to get it, even where many share a core.
constexpr std::uint64_t kLongestTurnNs = 100'000'000;

/// Counted while a thread wants the list.
struct Wanting {
  Wanting() { state().waiting.fetch_add(1, std::memory_order_relaxed); }
  ~Wanting() { state().waiting.fetch_sub(1, std::memory_order_relaxed); }
};

/// Holds no kernel lock, which the child of a fork would find taken. @return false if this thread has it already
bool take_list() {
  const pid_t self = this_thread_id();
  pid_t holder = 0;
  if (state().holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) return true;
  if (holder == self) return false;
  const Wanting wanting;
  std::uint64_t look_ns = monotonic_ns() + kLostThreadLookNs;
  do {
    sched_yield();
    if (monotonic_ns() > look_ns) {
      expect_living([] { return state().holder.load(std::memory_order_relaxed); });
      look_ns = monotonic_ns() + kLostThreadLookNs;
    }
    holder = 0;
  } while (!state().holder.compare_exchange_strong(holder, self, std::memory_order_acquire));
  return true;
}

/// Lets one of those that wait have it, because a thread that makes and frees VCQs all the time would take it again
/// before any of them looks. Not for ever: the one that waits may get no core.
void give_list() {
  state().holder.store(0, std::memory_order_release);
  if (state().waiting.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  const std::uint64_t deadline_ns = monotonic_ns() + kLongestTurnNs;
  while (state().holder.load(std::memory_order_relaxed) == 0 && state().waiting.load(std::memory_order_relaxed) != 0 &&
         monotonic_ns() < deadline_ns) {
    sched_yield();
  }
}

}  // namespace

OwnQueues::OwnQueues() : held_(take_list()) {}
OwnQueues::~OwnQueues() {
  if (held_) give_list();
}

const std::vector<OwnQueue>& OwnQueues::all() const { return state().queues; }

std::uint32_t OwnQueues::count(std::uint32_t tni, CqMode mode) const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(all(), [&](const OwnQueue& own) { return own.tni == tni && own.queue->mode == mode; }));
}

void OwnQueues::add(const OwnQueue& queue) { state().queues.push_back(queue); }

void OwnQueues::remove(const ControlQueue& queue) {
  std::erase_if(state().queues, [&queue](const OwnQueue& own) { return own.queue == &queue; });
}

OwnGates* OwnQueues::gates_of(std::uint32_t tni) const {
  const auto found = std::ranges::find(state().gates, tni, &OwnGates::tni);
  return found == state().gates.end() ? nullptr : &*found;
}

void OwnQueues::add_gates(std::uint32_t tni, std::uint32_t engine) {
  if (OwnGates* const gates = gates_of(tni)) {
    ++gates->sets;
  } else {
    state().gates.push_back({tni, engine, 1});
    gate_engines[tni].store(static_cast<std::uint8_t>(engine), std::memory_order_relaxed);
  }
}

void OwnQueues::remove_gates(std::uint32_t tni) {
  OwnGates* const gates = gates_of(tni);
  if (gates != nullptr && --gates->sets == 0)
    std::erase_if(state().gates, [tni](const auto& own) { return own.tni == tni; });
}

Engine* OwnQueues::choose_emptiest(const char* call, std::uint32_t* number) {
  std::array<std::uint32_t, kMostEngines> users{};
  for (const OwnQueue& own : all()) ++users[own.engine];
  for (const OwnGates& own : state().gates) ++users[own.engine];
  *number = state().lanes.choose(call, users, open_engine_at);
  return engine_at(*number);
}

Engine* OwnQueues::choose_engine(const char* call, std::uint32_t tni, std::uint32_t* number) {
  if (open_engine(call) == nullptr) return nullptr;
  const OwnGates* const gates = gates_of(tni);
  const bool is_first = std::ranges::none_of(all(), [tni](const OwnQueue& own) { return own.tni == tni; });
  if (gates == nullptr || !is_first) return choose_emptiest(call, number);
  *number = gates->engine;
  return engine_at(*number);
}

Engine* OwnQueues::choose_gate_engine(const char* call, std::uint32_t tni, std::uint32_t* number) {
  if (open_engine(call) == nullptr) return nullptr;
  const auto queue = std::ranges::find(all(), tni, &OwnQueue::tni);
  if (const OwnGates* const gates = gates_of(tni)) {
    *number = gates->engine;
  } else if (queue != all().end()) {
    *number = queue->engine;
  } else {
    return choose_emptiest(call, number);
  }
  return engine_at(*number);
}

void OwnQueues::forget_in_child() { new (&state()) State; }

}  // namespace portofu::utofu
