#include "lib/libfabric/library.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "engine/door/libfabric.h"
#include "engine/door/process.h"
#include "lib/libfabric/inherited.h"

namespace portofu::fabric {
namespace {

struct Library {
  std::mutex mutex;  ///< Guards who has which lane; never taken on the data path.
  std::array<Lane, kMostEngines> lanes;
  LaneChoice choice;

  /// The first engine of the process; nullptr while there is no domain.
  Engine* first() const { return lanes.front().engine; }

  /// The process ends with open domains: give the names on the node back.
  ~Library() {
    if (first() != nullptr) end_process_engine();
  }
};

Library library;

/// A child has no engine: memory and thread of its parent's are not its own.
void forget_in_child() {
  new (&library.mutex) std::mutex;
  library.lanes = {};
  library.choice = {};
  forget_opened();
  forget_poll_sets();
  refuse_inherited();
}

[[maybe_unused]] const int fork_handler = pthread_atfork(hold_inherited, give_inherited, forget_in_child);

int result_of(OpenError error) {
  switch (error) {
    case OpenError::kPidInUse: return -FI_EADDRINUSE;
    case OpenError::kNoSpace: return -FI_ENOMEM;
    default: return -FI_ENODEV;
  }
}

bool is_unused() {
  return std::ranges::all_of(library.lanes, [](const Lane& lane) { return lane.domains == 0; });
}

int hold_first(std::uint32_t pid) {
  OpenError error = OpenError::kNone;
  std::string why;
  library.lanes.front().engine = hold_process_engine(pid, &error, &why);
  if (library.first() != nullptr) return 0;
  tell_why_not_open("fi_domain", error, why);
  return result_of(error);
}

void release_first() {
  for (Lane& lane : library.lanes) lane.engine = nullptr;
  library.choice = {};
  release_process_engine();
}

std::uint32_t choose_lane() {
  std::array<std::uint32_t, kMostEngines> domains{};
  std::ranges::transform(library.lanes, domains.begin(), &Lane::domains);
  return library.choice.choose("fi_domain", domains, [](std::uint32_t number, std::string* why) {
    library.lanes[number].engine = open_further_engine(number, why);
    return library.lanes[number].engine != nullptr;
  });
}

}  // namespace

int hold_lane(std::uint32_t pid, Lane** held) {
  const NoSignals unbroken;
  const std::lock_guard lock(library.mutex);
  if (library.first() == nullptr) {
    if (const int result = hold_first(pid); result != 0) return result;
  } else if (pid != 0 && pid != library.first()->self().pid) {
    return -FI_EADDRINUSE;
  }
  Lane& lane = library.lanes[pid != 0 ? 0 : choose_lane()];
  if (lane.domains == 0) {
    std::unique_ptr<Interface> ni;
    try {
      ni = std::make_unique<Interface>(kFabricInterface, kDefaultLimits);
      ni->entries.reuse_at_once();  // No application knows their handles.
    } catch (...) {
      if (is_unused()) release_first();
      throw;
    }
    const Engine::Duty duty(*lane.engine);
    duty.core().interfaces[kFabricInterface] = std::move(ni);
  }
  ++lane.domains;
  *held = &lane;
  return 0;
}

void release_lane(Lane& lane) {
  const NoSignals unbroken;
  const std::lock_guard lock(library.mutex);
  if (lane.domains == 0 || --lane.domains > 0) return;
  lane.engine->flush(Engine::kLingerNs);
  {
    const Engine::Duty duty(*lane.engine);
    close_interface_on_duty(duty.core(), kFabricInterface);
  }
  if (is_unused()) release_first();
}

std::uint32_t take_numbers(Lane& lane, std::uint32_t count) {
  std::uint32_t free_run = 0;
  for (std::uint32_t number = 0; number < kMaxEndpoints; ++number) {
    free_run = lane.taken[number] ? 0 : free_run + 1;
    if (free_run < count) continue;
    const std::uint32_t first = number + 1 - count;
    for (std::uint32_t i = first; i <= number; ++i) lane.taken[i] = true;
    return first;
  }
  return kMaxEndpoints;
}

void give_numbers(Lane& lane, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = first; i < first + count; ++i) lane.taken[i] = false;
}

}  // namespace portofu::fabric
