#pragma once
// Memory whose end may not be touched: the first half of the pages can be used, the second half faults.

#include <sys/mman.h>

#include <cstddef>

#include "engine/queue/assert.h"

namespace portofu {

class FaultyMemory {
 public:
  static constexpr std::size_t kUsableBytes = 16384;

  FaultyMemory() {
    void* pages = mmap(nullptr, 2 * kUsableBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PORTOFU_ASSERT(pages != MAP_FAILED);
    start_ = static_cast<std::byte*>(pages);
    PORTOFU_ASSERT(mprotect(start_ + kUsableBytes, kUsableBytes, PROT_NONE) == 0);
  }
  ~FaultyMemory() { munmap(start_, 2 * kUsableBytes); }
  FaultyMemory(const FaultyMemory&) = delete;
  FaultyMemory& operator=(const FaultyMemory&) = delete;

  std::byte* start() const { return start_; }

  /// The first byte that faults.
  std::byte* edge() const { return start_ + kUsableBytes; }

  /// Lets the usable half be read but not written.
  void forbid_writing() { PORTOFU_ASSERT(mprotect(start_, kUsableBytes, PROT_READ) == 0); }

  /// Makes the usable half fault too: the application has unmapped what an operation still uses.
  void forbid_everything() { PORTOFU_ASSERT(mprotect(start_, kUsableBytes, PROT_NONE) == 0); }

 private:
  std::byte* start_;
};

}  // namespace portofu
