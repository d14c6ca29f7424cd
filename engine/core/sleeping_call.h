#pragma once
// What a call of the application waits for, written down for onlookers (engine/inspect) when the call goes to sleep for
// the first time, or has looked long in vain, and until it ends. Nothing of the engine reads it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/descriptor/handle.h"

namespace portofu {

/// What has to happen before a call returns.
enum class WaitKind : std::uint8_t {
  kOther,       ///< Something that is told nobody.
  kCounters,    ///< One of the counters reaches its test, or counts a failure.
  kEventQueue,  ///< One of the event queues has an event.
  kTcq,         ///< Polled only: that of a VCQ has an entry.
  kMrq,         ///< Polled only: that of a VCQ has a notice.
  kGate,        ///< Polled only: the barrier of a start/end gate is over.
};

struct WaitObject {
  Handle handle = 0;
  std::uint64_t test = 0;  ///< kCounters: successes that are enough.
};

/// What a call waits for. Onlookers copy it while the call may end, so that it can be of any bits there.
class WaitSubject {
 public:
  static constexpr std::uint32_t kMostObjects = 8;

  WaitKind kind = WaitKind::kOther;

  void add(Handle handle, std::uint64_t test) {
    if (count_ < kMostObjects) objects_[count_++] = {handle, test};
  }
  /// Those that are named here; of a call with more of them the first ones are.
  std::span<const WaitObject> objects() const { return {objects_.data(), std::min(count_, kMostObjects)}; }

 private:
  std::uint32_t count_ = 0;
  std::array<WaitObject, kMostObjects> objects_{};
};

/// Lies on the stack of the thread that waits.
struct SleepingCall {
  WaitSubject subject;
  std::uint64_t since_ns = 0;    ///< By the core's clock: when it was written down.
  std::int32_t thread = 0;       ///< In the kernel's numbering.
  bool tells_itself = false;     ///< When it lasts (PORTOFU_STALL_S). A short one of a loop is told of with the loop.
  SleepingCall* next = nullptr;  ///< Of SleepingCalls.
};

/// Calls of the application that sleep now, or have slept. Changed on duty, and read by onlookers only.
struct SleepingCalls {
  SleepingCall* first = nullptr;
  /// Raised in front of each change: what an onlooker has copied is true if it is the same before and after.
  std::atomic<std::uint64_t> changes{0};

  void link(SleepingCall& call) {
    changes.fetch_add(1);
    call.next = std::exchange(first, &call);
  }
  void unlink(const SleepingCall& call) {
    changes.fetch_add(1);
    SleepingCall** place = &first;
    while (*place != &call) place = &(*place)->next;
    *place = call.next;
  }
};

}  // namespace portofu
