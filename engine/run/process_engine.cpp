#include "engine/run/process_engine.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/settings.h"
#include "engine/observe/log.h"
#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"
#include "engine/wire/ofi/fabric_library.h"

namespace portofu {
namespace {

/// How long the end of the process waits for who opens or closes the engine, and may never come back.
constexpr std::uint64_t kPatienceNs = 1'000'000'000;

/// A call that was inside when the engine was closed has long left it after so long. Waits have ended at once.
constexpr std::uint64_t kLongestCallNs = 10'000'000'000;

/// Closed while other threads lived, which may have been inside.
struct RetiredEngine {
  std::unique_ptr<Engine> engine;
  std::uint64_t since_ns;
};

/// Never destroyed: the C libraries give their references back when they are unloaded, in any order.
struct ProcessEngine {
  std::mutex mutex;
  std::unique_ptr<Engine> engine;  ///< nullptr while `references` is 0.
  std::uint32_t references = 0;
  std::string told;                    ///< Why it could not be opened last, as people were told.
  pid_t process = 0;                   ///< Whose engine it is.
  std::vector<RetiredEngine> retired;  ///< Freed when nobody can be inside any more.
};

ProcessEngine& process_engine();

/// A child has no engine: memory and thread of its parent's are not its own.
void forget_in_child() {
  ProcessEngine& own = process_engine();
  new (&own.mutex) std::mutex;
  (void)own.engine.release();
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
/// has to leave now. Whoever holds the mutex is in the middle of opening or closing, and what he says is lost.
void say_last_words() {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::unique_lock<std::mutex> lock(own.mutex, std::try_to_lock);
  if (!lock || own.engine == nullptr || own.process != getpid() || own.engine->is_interrupted()) return;
  own.engine->flush_until(monotonic_ns() + Engine::kLingerNs);
}

void free_retired(ProcessEngine& own) {
  const std::uint64_t now = monotonic_ns();
  std::erase_if(own.retired, [now](const RetiredEngine& retired) { return now - retired.since_ns > kLongestCallNs; });
}

/// @param waiting  whether some thread waits in a call; it may be the calling one, which a signal handler runs in
void close(ProcessEngine& own, bool waiting) {
  if (!waiting && own.engine->is_alone()) {
    own.engine.reset();
    own.retired.clear();
    return;
  }
  own.engine->retire();
  own.retired.push_back({std::move(own.engine), monotonic_ns()});
}

}  // namespace

Engine* hold_process_engine(std::uint32_t pid, OpenError* error, std::string* why) {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::lock_guard<std::mutex> lock(own.mutex);
  *error = OpenError::kNone;
  if (own.engine == nullptr) {
    free_retired(own);
    own.engine = Engine::open(read_settings(), pid, error, why);
    own.process = getpid();
    FabricLibrary::before_end(say_last_words);
  } else if (pid != 0 && pid != own.engine->self().pid) {
    *error = OpenError::kPidInUse;
    *why = "the engine of this process is open with another PID";
    return nullptr;
  }
  if (own.engine == nullptr) return nullptr;
  ++own.references;
  return own.engine.get();
}

void tell_why_not_open(const char* call, OpenError error, const std::string& why) {
  // That a PID is taken is between the application and those who have it; its code says so.
  if (error == OpenError::kPidInUse) return log_info("%s fails: %s", call, why.c_str());
  {
    ProcessEngine& own = process_engine();
    const std::lock_guard<std::mutex> lock(own.mutex);
    if (own.told == why) return;
    own.told = why;
  }
  log_error("%s fails: %s", call, why.c_str());
}

void release_process_engine(bool waiting) {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  const std::lock_guard<std::mutex> lock(own.mutex);
  free_retired(own);
  if (own.references > 0 && --own.references == 0) close(own, waiting);
}

bool end_process_engine(bool waiting) {
  const NoCancellation whole;
  ProcessEngine& own = process_engine();
  // A child that was made past the handlers of fork (_Fork, clone) has none of its own.
  if (own.process != getpid()) return true;
  std::unique_lock<std::mutex> lock(own.mutex, std::defer_lock);
  const std::uint64_t deadline_ns = monotonic_ns() + kPatienceNs;
  while (!lock.try_lock()) {
    if (monotonic_ns() >= deadline_ns) return false;
    sched_yield();
  }
  if (own.references == 0) return false;
  const bool is_last = --own.references == 0;
  const bool is_nobody_inside = !waiting && !own.engine->is_interrupted() && own.engine->is_alone();
  if (is_last && is_nobody_inside) own.engine.reset();
  if (is_last && !is_nobody_inside) own.engine->end_with_process();
  return is_nobody_inside;
}

void forget_process_abort() {
  ProcessEngine& own = process_engine();
  const std::lock_guard<std::mutex> lock(own.mutex);
  if (own.engine != nullptr) own.engine->forget_abort();
}

}  // namespace portofu
