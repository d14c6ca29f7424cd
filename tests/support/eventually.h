#pragma once
// How tests of all suites wait for what other threads and processes do.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace portofu {

/// How long tests wait for what has to come: far more than it takes on a machine that is busy with other tests.
inline constexpr std::chrono::seconds kLongestWait{60};

/// When a test, and what it has started, ends itself: shortly before ctest would (PORTOFU_TEST_LIMIT_S).
inline constexpr int kLongestTestS = 280;

/// Runs `done` until it is true: again and again at first, so that what is soon so is seen at once; then the seldomer
/// the longer it has taken, up to once a millisecond, since what it waits for needs the processor more.
/// @param longest  of time that this thread got: for how long a busy machine kept it from its next look is not counted
/// @return false if it was never true
template <class Done>
bool eventually(Done&& done, std::chrono::nanoseconds longest = kLongestWait / 2) {
  constexpr auto now = std::chrono::steady_clock::now;
  constexpr std::chrono::nanoseconds kWithoutRest = std::chrono::milliseconds(2);
  constexpr std::chrono::nanoseconds kLongestRest = std::chrono::milliseconds(1);
  // One look is a loop of its own, or starts a program. A rest that takes longer has waited for a core.
  constexpr std::chrono::nanoseconds kMostOfLook = std::chrono::seconds(1);
  constexpr std::chrono::nanoseconds kMostOfRest = std::chrono::milliseconds(10);
  std::chrono::nanoseconds waited{0};
  for (auto begin = now(); !done();) {
    const auto looked = now();
    waited += std::min<std::chrono::nanoseconds>(looked - begin, kMostOfLook);
    if (waited > longest) return false;
    if (waited < kWithoutRest) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::min(waited / 16, kLongestRest));
    }
    begin = now();
    waited += std::min<std::chrono::nanoseconds>(begin - looked, kMostOfRest);
  }
  return true;
}

}  // namespace portofu
