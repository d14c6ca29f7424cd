#pragma once
// What copies cost, as both ends of a channel find it: what a copy by one way costs who makes it, smoothed. Before it:
// whoever makes the copy looks at the clock now and then. After it: LinkSet chooses the way of the next payload.

#include <algorithm>
#include <cstdint>

namespace portofu {

/// Used by one thread at a time.
class CopyCost {
 public:
  /// Tells what a copy has taken.
  void note(std::uint64_t ns, std::uint64_t bytes) {
    const std::uint64_t found = std::max<std::uint64_t>(ns * kUnitBytes / std::max<std::uint64_t>(bytes, 1), 1);
    // An interruption may have made a single copy long; what lasts raises the value with every look.
    cost_ = cost_ == 0 ? found : (3 * cost_ + std::min(found, 2 * cost_) + 2) / 4;
  }

  /// In ns for kUnitBytes; 0: not known.
  std::uint64_t ns() const { return cost_; }

  static constexpr std::uint64_t kUnitBytes = 65536;

 private:
  std::uint64_t cost_ = 0;
};

}  // namespace portofu
