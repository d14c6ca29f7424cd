#pragma once
// A receive becomes a list entry: tag and ignore are match bits and ignore bits, the source is the initiator's id.

#include <rdma/fi_tagged.h>

#include "lib/libfabric/transmit.h"

namespace portofu::fabric {

/// What a message without a tag has in place of one.
inline constexpr std::uint64_t kNoTag = 0;
inline constexpr std::uint64_t kIgnoresAll = ~std::uint64_t{0};

/// A receive of either kind, before its arguments are checked.
struct ReceiveCall {
  PortalUse portal = PortalUse::kMessage;  ///< kTagged or kMessage.
  fi_msg_tagged msg{};
  std::uint64_t flags = 0;             ///< As the call counts them, FI_COMPLETION included.
  const Deferral* deferral = nullptr;  ///< Of deferred work; lives as long as the call.
};

/// Posts it, lets it wait for a counter, or does what FI_PEEK, FI_CLAIM and FI_DISCARD say.
/// @param call  has the pieces that it counts (has_pieces)
ssize_t receive(Endpoint& ep, const ReceiveCall& call);

/// fi_cancel.
ssize_t cancel(fid* object, void* context);

}  // namespace portofu::fabric
