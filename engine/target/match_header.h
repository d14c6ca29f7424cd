#pragma once
// Step 6: which entry a request is for, whether it may, and where in the entry it goes. Changes the lists (use once,
// locally managed offset, min_free) but no user memory. @spec Portals 4.3, 2.5, 2.8, 3.12

#include "engine/core/core.h"

namespace portofu {

/// Why a request is refused.
enum class Refusal : std::uint8_t {
  kNone,         ///< It was matched.
  kNoPortal,     ///< No such interface or portal table entry.
  kDisabled,     ///< The portal table entry is disabled.
  kFlowControl,  ///< A resource is exhausted; the portal table entry has just been disabled.
  kNoMatch,      ///< No entry matches, or no unexpected header can be kept; no flow control.
  kPermission,   ///< The usage ID does not fit.
  kOperation,    ///< The entry does not allow the operation.
  kNotAligned,   ///< An atomic, and the memory is not aligned for its datatype.
};

/// Finds the entry for the request `header` of a peer and fills `arrival` (everything but the data).
/// @pre header fields are well formed; `arrival.header` and `arrival.initiator` are set
Refusal match_header(Core& core, Interface& ni, const Peer& peer, Arrival& arrival);

}  // namespace portofu
