#pragma once
// How the sender of a link writes long payloads into its send area: with ordinary stores, or with streaming stores that
// pass the caches by. Before it: LinkSet claims a chunk. After it: whoever copies the payload obeys Link::streaming.
//
// A line that the receiver has read must be taken from its cache before it can be written. Where the two cores share a
// cache, the lines of a large area have been pushed out to it meanwhile; where they do not, each line costs the way to
// the other core and back, and streaming stores are better, though the receiver then reads from memory. Which it is
// changes while a program runs, so both are timed, now and then.
//
// What is compared is the cost for the sender alone. In an area that is written by streaming stores a single chunk of
// ordinary ones costs five times as much where the cores share a cache (where always using them would be as cheap), and
// twelve times where they do not. A source that is not in the cache makes both dearer: so the cheapest streaming copy
// of late counts.

#include <algorithm>
#include <cstdint>

namespace portofu {

/// Of one link. Used by the thread on duty.
class StoreChoice {
 public:
  /// Chooses for the next chunk. @return true: streaming stores
  bool choose() {
    ++chosen_;
    const bool preferred = prefers_streaming();
    trial_ = chosen_ % kTrialPeriod == 0 || (chosen_ > 1 && cost(!preferred) == 0);
    streaming_ = trial_ != preferred;
    return streaming_;
  }

  /// Whether the copy that was just chosen is worth two looks at a clock.
  bool wants_time() const { return trial_ || cost(streaming_) == 0 || chosen_ % kTimedPeriod == 0; }

  /// Tells what the copy has taken.
  void note(std::uint64_t ns, std::uint32_t bytes) {
    const std::uint64_t found = std::max<std::uint64_t>(ns * kUnitBytes / std::max(bytes, 1u), 1);
    if (streaming_) {
      streaming_cost_ = streaming_cost_ == 0 ? found : std::min(found, streaming_cost_ + streaming_cost_ / 64 + 1);
    } else if (ordinary_cost_ == 0) {
      ordinary_cost_ = found;
    } else {  // An interruption may have made a single copy long; what lasts raises the value with every look.
      ordinary_cost_ = (ordinary_cost_ + std::min(found, 2 * ordinary_cost_) + 1) / 2;
    }
  }

  bool prefers_streaming() const { return streaming_cost_ != 0 && ordinary_cost_ > kFarFactor * streaming_cost_; }

  static constexpr std::uint32_t kTrialPeriod = 127;  ///< Chunks; prime, so that trials wander through the area.
  static constexpr std::uint32_t kTimedPeriod = 8;    ///< Chunks.
  static constexpr std::uint64_t kFarFactor = 8;
  static constexpr std::uint64_t kUnitBytes = 65536;

 private:
  std::uint64_t cost(bool streaming) const { return streaming ? streaming_cost_ : ordinary_cost_; }

  std::uint64_t ordinary_cost_ = 0;   ///< ns for kUnitBytes, smoothed; 0: not known.
  std::uint64_t streaming_cost_ = 0;  ///< The lowest of late; else likewise.
  std::uint32_t chosen_ = 0;          ///< Calls of choose.
  bool streaming_ = false;            ///< The last choice.
  bool trial_ = false;                ///< It was made against the better knowledge.
};

}  // namespace portofu
