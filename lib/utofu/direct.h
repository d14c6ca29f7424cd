#pragma once
// The door to the short way (engine/initiator/tofu_direct.h): which calls may try it. Those that ask for more, or are
// wrong, take the long way, which says so.

#include "engine/door/tofu.h"
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

/// Calls `go(DirectLane&)` if the call may use the lane of the VCQ. Who has been inside is outside again before it
/// takes the long way, on which it may have to wait for everybody who is inside.
/// @param most_bytes  of this kind of call
/// @return false if the long way has to be taken
template <class Go>
inline bool goes_at_once(utofu_vcq_hdl_t hdl, const DirectCall& call, unsigned long flags, std::uint64_t most_bytes,
                         Go&& go) {
  if ((flags & ~kDirectFlags) != 0 || call.edata > 255 || call.bytes - 1 >= most_bytes) return false;
  const LaneUse use(door_of(hdl), hdl);
  DirectLane* const lane = use.lane();
  return lane != nullptr && call.bytes <= lane->most_bytes && go(*lane);
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
