#pragma once
// Memory that runs out: an allocator of a program of which one use fails, and lives of processes in which each use of
// it in a call does. Included by one file of a program.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "tests/process/child_process.h"
#include "tests/process/own_operators.h"

namespace portofu {

/// Of the calling thread: uses of the allocator before one fails; less than 0: none will.
inline constinit thread_local int uses_left = -1;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (uses_left >= 0 && uses_left-- == 0) throw std::bad_alloc();
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  return memory != nullptr ? memory : throw std::bad_alloc();
}

/// Not inline: the compiler would miss the `new` that belongs to it.
[[gnu::noinline]] void release(void* memory) { std::free(memory); }

/// What a life ends with. No other end of a process looks like one of these.
enum class End { kAllUsesHaveFailed = 40, kGood, kWrong };

inline End tell(const char* call, const char* what, int result) {
  std::fprintf(stderr, "%s: %s (%d)\n", call, what, result);
  return End::kWrong;
}

/// Makes a call while a use of the allocator fails.
/// @return whether it has so many uses
template <class Make>
bool make_failing(int use, int* result, Make&& make) {
  uses_left = use;
  *result = make();
  return std::exchange(uses_left, -1) < 0;
}

/// Each life is in a process of its own: what is left in memory by one is not there in the next.
/// @param call  what all lives are about
/// @param live  End(int use)
template <class Live>
void expect_good_lives(const char* call, Live&& live) {
  End end = End::kGood;
  for (int use = 0; end == End::kGood; ++use) {
    ChildProcess child([&]() -> int {
      try {
        end = live(use);
      } catch (const std::bad_alloc&) {
        end = tell(call, "throws", use);
      }
      return static_cast<int>(end);
    });
    end = static_cast<End>(child.wait_status());
    EXPECT_TRUE(end == End::kGood || end == End::kAllUsesHaveFailed) << "use " << use << " in " << call;
  }
}

}  // namespace portofu
