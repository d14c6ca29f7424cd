#pragma once
// Assertions of the whole engine. A failed one means that our own code is wrong: never the caller, never a peer. It
// lies in the lowest layer so that every file may include it.

#include <cstdio>
#include <cstdlib>

namespace portofu {

/// Prints what was believed and ends the process. Not inlined, so that the short path carries only a branch.
[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "portofu: %s:%d: assertion failed: %s; the process is ended\n", file, line, condition);
  std::abort();
}

}  // namespace portofu

/// Stays on in release builds: use it where the check costs no more than a compare of what is in a register.
#define PORTOFU_ASSERT(condition)                              \
  (__builtin_expect(static_cast<bool>(condition), 1) ? void(0) \
                                                     : ::portofu::assertion_failed(#condition, __FILE__, __LINE__))
