#include "lib/utofu/own_queues.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace portofu::utofu {
namespace {

/// Never destroyed: a thread may free its VCQ while the process ends.
struct State {
  std::atomic<std::uintptr_t> holder{0};  ///< The thread that holds the list; 0: nobody.
  std::atomic<std::uint32_t> waiting{0};  ///< Threads that want it.
  std::vector<OwnQueue> queues;
  std::uint32_t engines = kMostEngines;  ///< Those from here on could not be opened.
};
State& state() {
  static State* const own = new State;
  return *own;
}

/// Made when the library is loaded: a static variable of a function has a lock that a forked child may find taken.
[[maybe_unused]] const State& made_at_load = state();

/// As many as whoever started the program gave it, before the program binds its threads: a launcher that binds gives
/// each process cores of its own, else those of a job share all.
std::uint32_t count_cores(std::uint32_t* all) {
  cpu_set_t given;
  CPU_ZERO(&given);
  *all = static_cast<std::uint32_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (sched_getaffinity(0, sizeof given, &given) != 0) return *all;
  return static_cast<std::uint32_t>(CPU_COUNT(&given));
}
struct Cores {
  std::uint32_t online = 0;
  std::uint32_t own = count_cores(&online);
};
const Cores cores_at_load;

std::uint32_t read_most_engines() {
  const Settings& wanted = settings();
  // A further engine reaches no other node; and nobody would look after one whose thread is away.
  if (!node_map() || node_map()->spans_nodes() || wanted.progress_thread == 0) return 1;
  if (wanted.lanes != 0) return std::min(wanted.lanes, kMostEngines);
  const LocalPlace place = find_local_place(wanted, [](const char* name) { return std::getenv(name); });
  const bool is_bound = cores_at_load.own < cores_at_load.online;
  const std::uint32_t sharers = is_bound ? 1 : std::max(place.size, 1u);
  return std::clamp(cores_at_load.own / sharers, 1u, kMostEngines);
}

/// Longer than a thread that wants the list takes to get it, even where many share a core.
constexpr std::uint64_t kLongestTurnNs = 100'000'000;

/// Counted while a thread wants the list, also if a handler ends the thread in the middle of it.
struct Wanting {
  Wanting() { state().waiting.fetch_add(1, std::memory_order_relaxed); }
  ~Wanting() { state().waiting.fetch_sub(1, std::memory_order_relaxed); }
};

/// Holds no kernel lock, which the child of a fork would find taken. @return false if this thread has it already
bool take_list() {
  const auto self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  std::uintptr_t holder = 0;
  if (state().holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) return true;
  if (holder == self) return false;
  const Wanting wanting;
  do {
    sched_yield();
    holder = 0;
  } while (!state().holder.compare_exchange_strong(holder, self, std::memory_order_acquire));
  return true;
}

/// Lets one of those that wait have it, because a thread that makes and frees VCQs all the time would take it again
/// before any of them looks. Not for ever: a handler may have interrupted the one that waits.
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

std::uint32_t OwnQueues::find_roomiest() const {
  std::array<std::uint32_t, kMostEngines> queues{};
  for (const OwnQueue& own : all()) ++queues[own.engine];
  const auto end = queues.begin() + std::min(read_once<std::uint32_t, read_most_engines>(), state().engines);
  return static_cast<std::uint32_t>(std::min_element(queues.begin(), end) - queues.begin());
}

Engine* OwnQueues::choose_engine(const char* call, std::uint32_t* number) {
  *number = find_roomiest();
  std::string why;
  Engine* first = open_engine(call);
  if (first == nullptr || *number == 0) return first;
  if (open_engine_at(*number, &why)) return engine_at(*number);
  // In order of their numbers, so that those before it are open.
  log_warning("%s goes on with %u %s: %s", call, *number, *number == 1 ? "lane" : "lanes", why.c_str());
  state().engines = *number;
  *number = find_roomiest();
  return engine_at(*number);
}

void OwnQueues::forget_in_child() { new (&state()) State; }

}  // namespace portofu::utofu
