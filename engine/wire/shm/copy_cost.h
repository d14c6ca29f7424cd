#pragma once
// What copies by one way cost whoever makes them, smoothed. Before it: whoever copies looks at the clock now and then.
// After it: StoreChoice chooses how the area is written, WayChoice which way the next payload goes.

#include <algorithm>
#include <cstdint>

namespace portofu {

/// Used by one thread at a time.
/// @tparam kWeight  each look counts for one part of so many
template <std::uint64_t kWeight>
class CopyCost {
 public:
  /// @param first  Of so many looks in the beginning the best one counts: pages that are touched for the first time
  ///               take several times as long.
  explicit CopyCost(std::uint32_t first = 0) : firsts_(first), first_(first) {}

  /// Tells what a copy has taken. @param looks  copies that were timed as one @return that alone, in ns for kUnitBytes
  std::uint64_t note(std::uint64_t ns, std::uint64_t bytes, std::uint32_t looks = 1) {
    const std::uint64_t found = std::max<std::uint64_t>(ns * kUnitBytes / std::max<std::uint64_t>(bytes, 1), 1);
    if (cost_ == 0 || first_ > 0) {
      cost_ = cost_ == 0 ? found : std::min(cost_, found);
      if (first_ > 0) --first_;
      return found;
    }
    // An interruption may have made a single call long; what lasts raises the value with every call.
    if (found > cost_ + cost_ / 4) looks = 1;
    for (; looks > 0; --looks) cost_ = ((kWeight - 1) * cost_ + std::min(found, 2 * cost_) + kWeight / 2) / kWeight;
    return found;
  }

  void forget() {
    cost_ = 0;
    first_ = firsts_;
  }

  /// In ns for kUnitBytes; 0: not known.
  std::uint64_t ns() const { return cost_; }

  static constexpr std::uint64_t kUnitBytes = 65536;

 private:
  std::uint32_t firsts_;  ///< Looks that are first ones.
  std::uint32_t first_;   ///< How many of them are still to come.
  std::uint64_t cost_ = 0;
};

/// Bytes of long payloads that a process has sent and received lately. One that does both pays for both of two copies.
class LongTraffic {
 public:
  void note_sent(std::uint64_t bytes) { note(sent_, bytes); }
  void note_received(std::uint64_t bytes) { note(received_, bytes); }

  bool goes_both_ways() const { return received_ > sent_ / 2; }

  /// What was before the last so many bytes counts half, and so on.
  static constexpr std::uint64_t kWindowBytes = 8 << 20;

 private:
  void note(std::uint64_t& count, std::uint64_t bytes) {
    count += bytes;
    if (count < kWindowBytes) return;
    sent_ /= 2;
    received_ /= 2;
  }

  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace portofu
