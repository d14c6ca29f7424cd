#pragma once
// The measured round trip of a link, and what follows from it (RFC 6298, with times that are echoed, so that a frame
// that was sent again is measured, too).

#include <algorithm>
#include <cstdint>

namespace portofu {

class RoundTrip {
 public:
  static constexpr std::uint64_t kFirstTimeoutNs = 10'000'000;  ///< Before anything was measured.
  static constexpr std::uint64_t kMinTimeoutNs = 500'000;
  static constexpr std::uint64_t kMaxTimeoutNs = 200'000'000;  ///< Bounds the time to recover from a silence.
  static constexpr std::uint32_t kMaxDoublings = 8;

  /// One that takes longer than kMaxTimeoutNs says that somebody stood still, not how long the way is.
  void measured(std::uint64_t round_trip_ns) {
    if (known_ && round_trip_ns > kMaxTimeoutNs) return;
    if (!known_) {
      smoothed_ns_ = round_trip_ns;
      variation_ns_ = round_trip_ns / 2;
      known_ = true;
      return;
    }
    const std::uint64_t away =
        smoothed_ns_ > round_trip_ns ? smoothed_ns_ - round_trip_ns : round_trip_ns - smoothed_ns_;
    variation_ns_ = (3 * variation_ns_ + away) / 4;
    smoothed_ns_ = (7 * smoothed_ns_ + round_trip_ns) / 8;
  }

  /// Time without acknowledgement after which a frame is sent again.
  /// @param transmissions  how often it was sent already, at least once; each time it is given twice as long
  std::uint64_t timeout_ns(std::uint32_t transmissions) const {
    const std::uint64_t once = known_ ? smoothed_ns_ + 4 * variation_ns_ : kFirstTimeoutNs;
    const std::uint32_t doublings = std::min(transmissions - 1, kMaxDoublings);
    return std::min(std::clamp(once, kMinTimeoutNs, kMaxTimeoutNs) << doublings, kMaxTimeoutNs);
  }

  /// How much later than another frame one must have left, so that it counts as lost when the other has arrived: half a
  /// round trip of disorder is nothing unusual.
  std::uint64_t disorder_ns() const { return smoothed_ns_ / 2 + variation_ns_; }

 private:
  std::uint64_t smoothed_ns_ = 0;
  std::uint64_t variation_ns_ = 0;
  bool known_ = false;
};

}  // namespace portofu
