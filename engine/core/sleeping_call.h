#pragma once
// What a call of the application sleeps for, written down for onlookers (engine/inspect) when the call goes to sleep.
// Nothing of the engine reads it.

#include <array>
#include <cstdint>

#include "engine/descriptor/handle.h"

namespace portofu {

/// What has to happen before a call returns.
enum class WaitKind : std::uint8_t {
  kOther,       ///< Something that is told nobody.
  kCounters,    ///< One of the counters reaches its test, or counts a failure.
  kEventQueue,  ///< One of the event queues has an event.
};

struct WaitSubject {
  static constexpr std::uint32_t kMostObjects = 8;

  WaitKind kind = WaitKind::kOther;
  std::uint32_t count = 0;  ///< Objects that are named here; of a call with more of them the first ones are.
  std::array<Handle, kMostObjects> handles{};
  std::array<std::uint64_t, kMostObjects> tests{};  ///< kCounters: successes that are enough.

  void add(Handle handle, std::uint64_t test) {
    if (count == kMostObjects) return;
    handles[count] = handle;
    tests[count++] = test;
  }
};

/// Lies on the stack of the thread that sleeps. Linked, and read by nobody else, on duty.
struct SleepingCall {
  WaitSubject subject;
  std::uint64_t since_ns = 0;    ///< By the core's clock: when the call slept for the first time.
  std::int32_t thread = 0;       ///< In the kernel's numbering.
  SleepingCall* next = nullptr;  ///< Of Core::sleeping_calls.
};

}  // namespace portofu
