#pragma once
// Memory of a pretended application: regions with guard zones between them, and pages that fault. It knows which bytes
// the engine was allowed to write; all others have to stay as they are.

#include <cstddef>
#include <cstdint>
#include <cstring>
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

  FuzzMemory() : bytes_(image()) {}

  Range region(std::uint32_t index) {
    PORTOFU_ASSERT(index < kRegions);
    const bool small = index < kSmallRegions;
    const std::uint64_t start =
        small ? index * (kSmallBytes + kGuardBytes) : kSmallSpan + (index - kSmallRegions) * kLargeSpan;
    return {bytes_.data() + kGuardBytes + start, small ? kSmallBytes : kLargeBytes};
  }

  /// Memory of which the last part faults.
  Range faulty_range() const { return {faulty_.edge() - kSmallBytes, 2 * kSmallBytes}; }

  /// From now on the engine may write here.
  void allow(const Range& range) {
    const bool ours = range.start >= bytes_.data() && range.start < bytes_.data() + kAllBytes;
    if (ours) allowed_.push_back(range);
  }

  /// Checks that no other byte was written. Afterwards every byte is as it was at the start.
  void check() {
    for (const Range& range : allowed_) {
      const auto at = static_cast<std::size_t>(range.start - bytes_.data());
      PORTOFU_ASSERT(range.bytes <= kAllBytes - at);
      if (range.bytes > 0) std::memcpy(range.start, image().data() + at, range.bytes);
    }
    PORTOFU_ASSERT(std::memcmp(bytes_.data(), image().data(), kAllBytes) == 0);
  }

 private:
  static constexpr std::uint64_t kSmallSpan = kSmallRegions * (kSmallBytes + kGuardBytes);
  static constexpr std::uint64_t kLargeSpan = kLargeBytes + kGuardBytes;
  static constexpr std::uint64_t kAllBytes = kGuardBytes + kSmallSpan + (kRegions - kSmallRegions) * kLargeSpan;

  /// What memory holds at the start: different bytes side by side.
  static const std::vector<std::byte>& image() {
    static const std::vector<std::byte> bytes = [] {
      std::vector<std::byte> made(kAllBytes);
      for (std::size_t i = 0; i < kAllBytes; ++i) made[i] = static_cast<std::byte>(i * 167 + 13);
      return made;
    }();
    return bytes;
  }

  std::vector<std::byte> bytes_;
  std::vector<Range> allowed_;
  FaultyMemory faulty_;
};

}  // namespace portofu::fuzz
