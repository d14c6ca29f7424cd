#include "lib/libfabric/library.h"

#include <pthread.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "engine/door/libfabric.h"
#include "engine/door/process.h"

namespace portofu::fabric {
namespace {

struct Library {
  std::mutex mutex;          ///< Guards `references`; never taken on the data path.
  Engine* engine = nullptr;  ///< nullptr while `references` is 0.
  std::uint32_t references = 0;

  /// On duty: who receives under a number, and which numbers are taken.
  std::array<Receive*, kMaxEndpoints> receivers{};
  std::array<bool, kMaxEndpoints> taken{};

  /// The process ends with open domains: give the name on the node back.
  ~Library() {
    if (engine != nullptr) end_process_engine();
  }
};

Library library;

/// A child has no engine: memory and thread of its parent's are not its own.
void forget_in_child() {
  new (&library.mutex) std::mutex;
  library.engine = nullptr;
  library.references = 0;
  library.receivers = {};
  library.taken = {};
}

[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, forget_in_child);

int result_of(OpenError error) {
  switch (error) {
    case OpenError::kPidInUse: return -FI_EADDRINUSE;
    case OpenError::kNoSpace: return -FI_ENOMEM;
    default: return -FI_ENODEV;
  }
}

int open(std::uint32_t pid) {
  OpenError error = OpenError::kNone;
  std::string why;
  Engine* engine = hold_process_engine(pid, &error, &why);
  if (engine == nullptr) {
    tell_why_not_open("fi_domain", error, why);
    return result_of(error);
  }
  auto ni = std::make_unique<Interface>(kFabricInterface, kDefaultLimits);
  const Engine::Duty duty(*engine);
  duty.core().interfaces[kFabricInterface] = std::move(ni);
  library.engine = engine;
  return 0;
}

}  // namespace

int hold_engine(std::uint32_t pid, Engine** engine) {
  const std::lock_guard lock(library.mutex);
  if (library.references == 0) {
    if (const int result = open(pid); result != 0) return result;
  } else if (pid != 0 && pid != library.engine->self().pid) {
    return -FI_EADDRINUSE;
  }
  ++library.references;
  *engine = library.engine;
  return 0;
}

void release_engine() {
  const std::lock_guard lock(library.mutex);
  if (library.references == 0 || --library.references > 0) return;
  library.engine->flush(Engine::kLingerNs);
  {
    const Engine::Duty duty(*library.engine);
    close_interface_on_duty(duty.core(), kFabricInterface);
  }
  library.engine = nullptr;
  release_process_engine();
}

std::uint32_t take_numbers(std::uint32_t count) {
  std::uint32_t free_run = 0;
  for (std::uint32_t number = 0; number < kMaxEndpoints; ++number) {
    free_run = library.taken[number] ? 0 : free_run + 1;
    if (free_run < count) continue;
    const std::uint32_t first = number + 1 - count;
    for (std::uint32_t i = first; i <= number; ++i) library.taken[i] = true;
    return first;
  }
  return kMaxEndpoints;
}

void give_numbers(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = first; i < first + count; ++i) library.taken[i] = false;
}

Receive* receiver_of(std::uint32_t number) { return number < kMaxEndpoints ? library.receivers[number] : nullptr; }
void set_receiver(std::uint32_t number, Receive* receive) { library.receivers[number] = receive; }

}  // namespace portofu::fabric
