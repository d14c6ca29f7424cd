#pragma once
// The door to the short way (engine/initiator/tofu_direct.h): which calls may try it. Those that ask for more, or are
// wrong, take the long way, which says so.

#include "engine/initiator/tofu_direct.h"
#include "lib/utofu/library.h"

namespace portofu::utofu {

/// SPEC: PACKET_RESPONSE is not in the guide; programs for the vendor's library set it. It is taken for STRONG_ORDER,
/// which gives whatever order it may ask for.
inline constexpr unsigned long kStrongFlags = UTOFU_ONESIDED_FLAG_STRONG_ORDER | UTOFU_ONESIDED_FLAG_PACKET_RESPONSE;

/// Flags that change nothing, or that the short way knows.
inline constexpr unsigned long kDirectFlags = kStrongFlags | UTOFU_ONESIDED_FLAG_PADDING |
                                              UTOFU_ONESIDED_FLAG_CACHE_INJECTION | UTOFU_ONESIDED_FLAG_TCQ_NOTICE |
                                              UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;

static_assert(UTOFU_ONESIDED_FLAG_TCQ_NOTICE >> 6 == kTofuTcqNotice);
static_assert(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE >> 6 == kTofuLocalNotice);

/// @param most_bytes  of this kind of call
/// @return the lane of the VCQ if the call may use it; nullptr if the long way has to be taken
inline DirectLane* find_lane(utofu_vcq_hdl_t hdl, const DirectCall& call, unsigned long flags,
                             std::uint64_t most_bytes) {
  DirectLane* const lane = lane_of(hdl);
  if (lane == nullptr || (flags & ~kDirectFlags) != 0 || call.edata > 255) return nullptr;
  return call.bytes - 1 < most_bytes && call.bytes <= lane->most_bytes ? lane : nullptr;
}

/// Whether a put is one of 8 bytes of which the MRQs hear nothing.
constexpr bool is_word(std::size_t length, std::uint64_t edata, unsigned long flags) {
  constexpr unsigned long kOthers = ~kDirectFlags | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  return length == sizeof(std::uint64_t) && (edata >> 8 | (flags & kOthers)) == 0;
}

/// Whether a call may not overtake what is under way (2.2.10).
constexpr bool keeps_order(unsigned long flags) {
  return (flags & (kStrongFlags | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE)) != 0;
}

/// What a call wants to be told.
constexpr std::uint64_t notices_of(unsigned long flags) { return flags >> 6 & (kTofuTcqNotice | kTofuLocalNotice); }

}  // namespace portofu::utofu
