#include "engine/run/process_engine.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/settings.h"
#include "engine/observe/log.h"
#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"
#include "engine/queue/fork_mutex.h"
#include "engine/run/process_threads.h"
#include "engine/run/virtual_nic.h"
#include "engine/topology/local_place.h"
#include "engine/topology/near_cpus.h"
#include "engine/topology/node_map.h"
#include "engine/wire/ofi/fabric_library.h"

namespace portofu {
namespace {

/// How long the end of the process waits for who opens or closes the engine, and may never come back.
constexpr std::uint64_t kPatienceNs = 1'000'000'000;

/// A call that was inside when the engine was closed has long left it after so long. Waits have ended at once.
constexpr std::uint64_t kLongestCallNs = 10'000'000'000;

/// A thread that was joined may be listed for so long where cores are short.
constexpr std::uint64_t kLongestExitNs = 10'000'000;

/// Closed while other threads lived, which may have been inside.
struct RetiredEngine {
  std::unique_ptr<Engine> engine;
  std::uint64_t since_ns;
};

/// Never destroyed: the C libraries give their references back when they are unloaded, in any order.
struct ProcessEngine {
  ForkMutex mutex;
  /// First the one that all share, nullptr while `references` is 0. The others: nullptr while nobody has wanted them.
  std::array<std::unique_ptr<Engine>, kMostEngines> engines;
  std::uint32_t references = 0;
  std::string told;                    ///< Why it could not be opened last, as people were told.
  pid_t process = 0;                   ///< Whose engines they are.
  std::uint32_t most = 0;              ///< most_process_engines; 0: nobody has asked since the first was opened.
  std::vector<RetiredEngine> retired;  ///< Freed when nobody can be inside any more.

  Engine* first() const { return engines.front().get(); }

  /// Calls `visit(engine)` for each that is open, the first one last: it may be what another one still sends to.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = engines.size(); i-- > 0;) {
      if (engines[i] != nullptr) visit(engines[i]);
    }
  }

  /// Whether this is a signal handler that has interrupted a call of this thread.
  bool is_interrupted() const {
    return std::ranges::any_of(engines,
                               [](const auto& engine) { return engine != nullptr && engine->is_interrupted(); });
  }
};

ProcessEngine& process_engine();

/// A child has no engine: memory and thread of its parent's are not its own.
void forget_in_child() {
  ProcessEngine& own = process_engine();
  new (&own.mutex) ForkMutex;
  own.for_each([](std::unique_ptr<Engine>& engine) { (void)engine.release(); });
  for (RetiredEngine& retired : own.retired) (void)retired.engine.release();
  own.retired.clear();
  own.references = 0;
  own.told.clear();
}

ProcessEngine& process_engine() {
  static ProcessEngine* const own = [] {
    auto* made = new ProcessEngine;
    pthread_atfork(nullptr, nullptr, forget_in_child);
    return made;
  }();
  return *own;
}

/// Made when the library is loaded: a fork while another thread makes it would leave the child waiting for that thread.
[[maybe_unused]] const ProcessEngine& made_at_load = process_engine();

/// The process ends, and libfabric after this: what its peers wait for, answers of operations that are over here, too,
/// has to leave now. If somebody holds the mutex, it is in the middle of opening or closing: its words are lost.
void say_last_words() {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::unique_lock<ForkMutex> lock(own.mutex, std::try_to_lock);
  if (!lock || own.process != getpid() || own.is_interrupted()) return;
  const std::uint64_t deadline_ns = monotonic_ns() + Engine::kLingerNs;
  own.for_each([deadline_ns](std::unique_ptr<Engine>& engine) { engine->flush_until(deadline_ns); });
}

void free_retired(ProcessEngine& own) {
  const std::uint64_t now = monotonic_ns();
  std::erase_if(own.retired, [now](const RetiredEngine& retired) { return now - retired.since_ns > kLongestCallNs; });
}

/// Whether no thread but the calling one and the library's own lives in this process.
bool is_alone() {
  // The progress thread of an engine before this one, though it was joined, is listed until the kernel is done with it.
  const std::uint64_t until_ns = monotonic_ns() + kLongestExitNs;
  while (has_other_threads()) {
    if (monotonic_ns() >= until_ns) return false;
    sched_yield();
  }
  return true;
}

void share_linger(ProcessEngine& own) {
  std::uint32_t count = 0;
  own.for_each([&count](const auto&) { ++count; });
  own.for_each([count](std::unique_ptr<Engine>& engine) { engine->share_linger(count); });
}

/// @param waiting  whether some thread waits in a call; it may be the calling one, which a signal handler runs in
void close(ProcessEngine& own, bool waiting) {
  leave_virtual_time();
  const bool alone = !waiting && is_alone();
  share_linger(own);
  own.for_each([&](std::unique_ptr<Engine>& engine) {
    if (alone) return engine.reset();
    engine->retire();
    own.retired.push_back({std::move(engine), monotonic_ns()});
  });
  if (alone) own.retired.clear();
}

const char* get_variable(const char* name) { return std::getenv(name); }

/// What is wrong with them was said when the first engine opened.
Settings read_settings_again() {
  return read_settings(get_variable, [](const std::string&) {});
}

/// As many as whoever started the program gave it, before the program binds its threads: a launcher that binds gives
/// each process cores of its own, else those of a job share all.
std::uint32_t count_cores(std::uint32_t* all) {
  *all = static_cast<std::uint32_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  const std::size_t given = usable_cpus().size();
  return given != 0 ? static_cast<std::uint32_t>(given) : *all;
}
struct Cores {
  std::uint32_t online = 0;
  std::uint32_t own = count_cores(&online);
};
const Cores cores_at_load;

/// Whether each engine of a process of this job opens an endpoint with connections to other nodes, for which libfabric
/// takes 70 MiB. One for unreliable datagrams takes hardly more than the engine.
bool takes_connections(const Settings& settings) {
  if (settings.fabric == static_cast<std::uint32_t>(FabricUse::kOff)) return false;
  if (settings.fabric_endpoint == static_cast<std::uint32_t>(EndpointKind::kDatagram)) return false;
  std::string why;
  const std::optional<NodeMap> map = NodeMap::find(settings, &why);
  return !map || map->spans_nodes();
}

std::uint32_t count_most() {
  const Settings settings = read_settings_again();
  if (settings.progress_thread == 0) return 1;
  if (settings.lanes != 0) return std::min(settings.lanes, kMostEngines);
  if (takes_connections(settings)) return 1;
  const bool is_bound = cores_at_load.own < cores_at_load.online;
  const std::uint32_t sharers = is_bound ? 1 : std::max(find_local_place(settings, get_variable).size, 1u);
  return std::clamp(cores_at_load.own / sharers, 1u, kMostEngines);
}

/// Like the first one, on all nodes that reach it.
std::unique_ptr<Engine> open_further(Engine& first, std::string* why) {
  const Settings settings = read_settings_again();
  OpenError error = OpenError::kNone;
  std::unique_ptr<Engine> opened = Engine::open(settings, 0, &error, why, first.reach_of_further());
  // The calls for others do not look after it.
  if (opened == nullptr || opened->has_progress_thread()) return opened;
  *why = "it would have no thread of its own";
  return nullptr;
}

}  // namespace

Engine* hold_process_engine(std::uint32_t pid, OpenError* error, std::string* why) {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::lock_guard<ForkMutex> lock(own.mutex);
  *error = OpenError::kNone;
  if (own.first() == nullptr) {
    free_retired(own);
    own.engines.front() = Engine::open(read_settings(), pid, error, why);
    own.process = getpid();
    own.most = 0;
    FabricLibrary::before_end(say_last_words);
  } else if (pid != 0 && pid != own.first()->self().pid) {
    *error = OpenError::kPidInUse;
    *why = "the engine of this process is open with another PID";
    return nullptr;
  }
  if (own.first() == nullptr) return nullptr;
  ++own.references;
  return own.first();
}

std::uint32_t most_process_engines() {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::lock_guard<ForkMutex> lock(own.mutex);
  if (own.most == 0) own.most = count_most();
  return own.most;
}

Engine* open_further_engine(std::uint32_t number, std::string* why) {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::lock_guard<ForkMutex> lock(own.mutex);
  std::unique_ptr<Engine>& engine = own.engines[number];
  if (engine == nullptr) engine = open_further(*own.first(), why);
  return engine.get();
}

void step_process_engines() {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::unique_lock<ForkMutex> lock(own.mutex, std::try_to_lock);
  if (!lock || own.is_interrupted()) return;
  own.for_each([](std::unique_ptr<Engine>& engine) { engine->step(); });
}

void tell_why_not_open(const char* call, OpenError error, const std::string& why) {
  // That a PID is taken is between the application and those who have it; its code says so.
  if (error == OpenError::kPidInUse) return log_info("%s fails: %s", call, why.c_str());
  {
    ProcessEngine& own = process_engine();
    const std::lock_guard<ForkMutex> lock(own.mutex);
    if (own.told == why) return;
    own.told = why;
  }
  log_error("%s fails: %s", call, why.c_str());
}

void release_process_engine(bool waiting) {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::lock_guard<ForkMutex> lock(own.mutex);
  free_retired(own);
  if (own.references > 0 && --own.references == 0) close(own, waiting);
}

bool end_process_engine(bool waiting) {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  // A child that was made past the handlers of fork (_Fork, clone) has none of its own.
  if (own.process != getpid()) return true;
  std::unique_lock<ForkMutex> lock(own.mutex, std::defer_lock);
  const std::uint64_t deadline_ns = monotonic_ns() + kPatienceNs;
  while (!lock.try_lock()) {
    if (monotonic_ns() >= deadline_ns) return false;
    sched_yield();
  }
  if (own.references == 0) return false;
  const bool is_last = --own.references == 0;
  if (is_last) leave_virtual_time();
  const bool is_nobody_inside = !waiting && !own.is_interrupted() && is_alone();
  if (is_last) share_linger(own);
  if (is_last && is_nobody_inside) own.for_each([](std::unique_ptr<Engine>& engine) { engine.reset(); });
  if (is_last && !is_nobody_inside) own.for_each([](std::unique_ptr<Engine>& engine) { engine->end_with_process(); });
  return is_nobody_inside;
}

void forget_process_abort() {
  ProcessEngine& own = process_engine();
  const std::lock_guard<ForkMutex> lock(own.mutex);
  if (own.first() != nullptr) own.first()->forget_abort();
}

}  // namespace portofu
