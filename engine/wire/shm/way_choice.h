#pragma once
// Which way a link's payloads go that lie outside the heap: through the send area, or by the kernel's copy. Before it:
// LinkSet is to lend a payload, and has a cell for it. After it: the payload is lent, or the area takes it.
//
// What a way costs is known from its use, so a little of what goes one way goes the other. Of the kernel that is one
// packet, if it is long. Of the area it is some in a row, because a way that was not used for long costs twice as much
// at first: its lines have left the caches. So the area, if it comes near to what the kernel costs, is tried until it
// has gone round once.

#include <algorithm>
#include <cstdint>

#include "engine/queue/cell_layout.h"
#include "engine/wire/loans.h"

namespace portofu {

/// Of one link. Used by the thread on duty.
class WayChoice {
 public:
  /// What either way costs now, as CopyCost::ns; 0: not known.
  struct Costs {
    std::uint64_t area = 0;
    std::uint64_t kernel = 0;
  };

  /// Chooses for a payload that goes now. @return true for the kernel
  bool choose(const Costs& costs, const Loan& loan) {
    const std::uint32_t period = trial_period(costs);
    const bool trial = is_trial(costs, period);
    // The rest of what has begun by the area would tell of the call rather than of the copy.
    if (!prefers_kernel_ && loan.offset != 0 && loan.bytes < kLeastTrialBytes) {
      if (!trial) ++chosen_;
      return false;
    }
    const std::uint32_t to_next_trial = period - chosen_ % period;
    const std::uint32_t chunks = trial != prefers_kernel_ ? loan.bytes / kAreaChunkBytes : 1;
    chosen_ += trial ? chunks : std::min(chunks, to_next_trial);  // No payload is so long that it misses a trial.
    if (trial) return !prefers_kernel_;
    const std::uint64_t margin = prefers_kernel_ ? 0 : costs.kernel / 8;
    prefers_kernel_ = costs.kernel != 0 && costs.kernel + margin < costs.area;
    return prefers_kernel_;
  }

  bool prefers_kernel() const { return prefers_kernel_; }

  /// Longest payload that is to be chosen for.
  std::uint32_t most_bytes() const { return prefers_kernel_ ? kMostLentBytes : kMostTriedBytes; }

  // In payloads of kAreaChunkBytes:
  static constexpr std::uint32_t kTrialPeriod = 4096;
  static constexpr std::uint32_t kFirstTrialPeriod = 512;   ///< Of as many as kTrialPeriod in the beginning.
  static constexpr std::uint32_t kRareTrialPeriod = 32768;  ///< Where one way costs twice as much as the other.
  static constexpr std::uint32_t kTrial = 32;
  static constexpr std::uint32_t kLongTrial = 256;  ///< Of the area, where it costs less than 4/3 of the kernel.

  static constexpr std::uint32_t kLeastTrialBytes = 65'536;  ///< Of what is not a message's beginning.

 private:
  std::uint32_t trial_period(const Costs& costs) const {
    const bool is_close = costs.kernel == 0 || (costs.area < 2 * costs.kernel && costs.kernel < 2 * costs.area);
    return chosen_ < kTrialPeriod ? kFirstTrialPeriod : is_close ? kTrialPeriod : kRareTrialPeriod;
  }

  bool is_trial(const Costs& costs, std::uint32_t period) const {
    const bool is_long = prefers_kernel_ && 3 * costs.area < 4 * costs.kernel;
    return chosen_ % period < (is_long ? kLongTrial : kTrial);
  }

  std::uint32_t chosen_ = 0;  ///< Payloads so far, in kAreaChunkBytes, mod 2^32.
  bool prefers_kernel_ = false;
};

}  // namespace portofu
