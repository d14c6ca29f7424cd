#pragma once
// The door to the short way (engine/initiator/tofu_direct.h): which calls may try it. Those that ask for more, or are
// wrong, take the long way, which says so.

#include "engine/initiator/tofu_direct.h"
#include "lib/utofu/library.h"

namespace portofu::utofu {

/// SPEC: bit 1 is not in the guide; programs for the vendor's library set it, and it asks for what is always done.
inline constexpr unsigned long kVendorFlag = 1UL << 1;

/// Flags that change nothing, or that the short way knows.
inline constexpr unsigned long kDirectFlags = UTOFU_ONESIDED_FLAG_STRONG_ORDER | kVendorFlag |
                                              UTOFU_ONESIDED_FLAG_PADDING | UTOFU_ONESIDED_FLAG_CACHE_INJECTION |
                                              UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;

static_assert(UTOFU_ONESIDED_FLAG_TCQ_NOTICE >> 6 == kTofuTcqNotice);
static_assert(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE >> 6 == kTofuLocalNotice);

/// What a call has beside its local side.
struct DirectArguments {
  utofu_vcq_hdl_t hdl;
  DirectCall call;
  unsigned long flags;
  std::uint64_t most_bytes;  ///< Of this kind of call.
};

/// @param go  bool(DirectLane&, const DirectCall&)
/// @return false if the long way has to be taken
template <class Go>
inline bool goes_at_once(DirectArguments a, Go&& go) {
  DirectLane* const lane = lane_of(a.hdl);
  if (lane == nullptr || lane->held || (a.flags & ~kDirectFlags) != 0 || a.call.edata > 255) return false;
  if (a.call.bytes - 1 >= a.most_bytes || a.call.bytes > lane->most_bytes) return false;
  a.call.notices = a.flags >> 6 & (kTofuTcqNotice | kTofuLocalNotice);
  return go(*lane, a.call);
}

}  // namespace portofu::utofu
