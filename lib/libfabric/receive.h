#pragma once
// A receive becomes a list entry: tag and ignore are match bits and ignore bits, the source is the initiator's id.

#include <rdma/fi_tagged.h>

#include "lib/libfabric/transmit.h"

namespace portofu::fabric {

/// What a message without a tag has in place of one.
inline constexpr std::uint64_t kNoTag = 0;
inline constexpr std::uint64_t kIgnoresAll = ~std::uint64_t{0};

/// What FI_MULTI_RECV means is said of messages without tags.
inline constexpr std::uint64_t kNotOfTags = FI_MULTI_RECV;

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

// fi_recv and fi_trecv: the short path.
ssize_t receive_buffer(fid_ep* ep, void* buffer, std::size_t bytes, void*, fi_addr_t source, void* context);
ssize_t receive_tagged_buffer(fid_ep* ep, void* buffer, std::size_t bytes, void*, fi_addr_t source, std::uint64_t tag,
                              std::uint64_t ignore, void* context);

/// fi_cancel.
ssize_t cancel(fid* object, void* context);

}  // namespace portofu::fabric
