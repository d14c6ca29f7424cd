#pragma once
// How tests of all suites wait for what other threads and processes do.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace portofu {

/// Runs `done` until it is true: again and again at first, so that what is soon so is seen at once; then the seldomer
/// the longer it has taken, up to once a millisecond, since what it waits for needs the processor more.
/// @param longest  far more than it takes on a machine that is busy with other tests
/// @return false if it was never true
template <class Done>
bool eventually(Done&& done, std::chrono::nanoseconds longest = std::chrono::seconds(30)) {
  constexpr std::chrono::nanoseconds kWithoutRest = std::chrono::milliseconds(2);
  constexpr std::chrono::nanoseconds kLongestRest = std::chrono::milliseconds(1);
  const auto begin = std::chrono::steady_clock::now();
  while (!done()) {
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
    if (waited > longest) return false;
    if (waited < kWithoutRest) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::min(waited / 16, kLongestRest));
    }
  }
  return true;
}

}  // namespace portofu
