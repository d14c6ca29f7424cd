#include "engine/process_engine.h"

#include <pthread.h>

#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "engine/config/settings.h"
#include "engine/observe/log.h"

namespace portofu {
namespace {

/// Never destroyed: the C libraries give their references back when they are unloaded, in any order.
struct ProcessEngine {
  std::mutex mutex;
  std::unique_ptr<Engine> engine;  ///< nullptr while `references` is 0.
  std::uint32_t references = 0;
  std::string told;  ///< Why it could not be opened last, as people were told.
};

ProcessEngine& process_engine();

/// A child has no engine: memory and thread of its parent's are not its own.
void forget_in_child() {
  ProcessEngine& own = process_engine();
  new (&own.mutex) std::mutex;
  (void)own.engine.release();
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

}  // namespace

Engine* hold_process_engine(std::uint32_t pid, OpenError* error, std::string* why) {
  ProcessEngine& own = process_engine();
  const std::lock_guard<std::mutex> lock(own.mutex);
  *error = OpenError::kNone;
  if (own.engine == nullptr) {
    own.engine = Engine::open(read_settings(), pid, error, why);
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

void release_process_engine() {
  ProcessEngine& own = process_engine();
  const std::lock_guard<std::mutex> lock(own.mutex);
  if (own.references > 0 && --own.references == 0) own.engine.reset();
}

void forget_process_abort() {
  ProcessEngine& own = process_engine();
  const std::lock_guard<std::mutex> lock(own.mutex);
  if (own.engine != nullptr) own.engine->forget_abort();
}

}  // namespace portofu
