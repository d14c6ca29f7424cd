#pragma once
// Memory of a pretended application: regions with guard zones between them, and pages that fault. It knows which bytes
// the engine was allowed to write; all others have to stay as they are.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/queue/assert.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu::fuzz {

/// A piece of the application's memory.
struct Range {
  std::byte* start;
  std::uint64_t bytes;
};

class FuzzMemory {
 public:
  static constexpr std::uint32_t kSmallRegions = 14;
  static constexpr std::uint32_t kRegions = 16;  ///< The last two are large.
  static constexpr std::uint64_t kSmallBytes = 512;
  static constexpr std::uint64_t kLargeBytes = 12288;
  static constexpr std::uint64_t kGuardBytes = 64;

  FuzzMemory() : bytes_(kAllBytes), may_change_(kAllBytes, false) {
    for (std::size_t i = 0; i < kAllBytes; ++i) bytes_[i] = initial(i);
  }

  Range region(std::uint32_t index) {
    PORTOFU_ASSERT(index < kRegions);
    const bool small = index < kSmallRegions;
    const std::uint64_t start = small ? index * (kSmallBytes + kGuardBytes) : kSmallSpan + (index - kSmallRegions) * kLargeSpan;
    return {bytes_.data() + kGuardBytes + start, small ? kSmallBytes : kLargeBytes};
  }

  /// Memory of which the last part faults.
  Range faulty_range() const { return {faulty_.edge() - kSmallBytes, 2 * kSmallBytes}; }

  /// From now on the engine may write here.
  void allow(const Range& range) {
    for (std::uint64_t i = 0; i < range.bytes; ++i) {
      const std::uint64_t at = static_cast<std::uint64_t>(range.start + i - bytes_.data());
      if (range.start + i >= bytes_.data() && at < kAllBytes) may_change_[at] = true;
    }
  }

  /// Checks that no other byte was written.
  void check() const {
    for (std::size_t i = 0; i < kAllBytes; ++i) PORTOFU_ASSERT(may_change_[i] || bytes_[i] == initial(i));
  }

 private:
  static constexpr std::uint64_t kSmallSpan = kSmallRegions * (kSmallBytes + kGuardBytes);
  static constexpr std::uint64_t kLargeSpan = kLargeBytes + kGuardBytes;
  static constexpr std::uint64_t kAllBytes = kGuardBytes + kSmallSpan + (kRegions - kSmallRegions) * kLargeSpan;

  static std::byte initial(std::size_t position) { return static_cast<std::byte>(position * 167 + 13); }

  std::vector<std::byte> bytes_;
  std::vector<bool> may_change_;
  FaultyMemory faulty_;
};

}  // namespace portofu::fuzz
