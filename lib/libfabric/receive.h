#pragma once
// A receive becomes a list entry: tag and ignore are match bits and ignore bits, the source is the initiator's id.

#include <rdma/fi_tagged.h>

#include "lib/libfabric/endpoint.h"
#include "lib/libfabric/word.h"

namespace portofu::fabric {

/// A receive of either kind, before its arguments are checked.
struct ReceiveCall {
  const iovec* pieces;
  std::size_t piece_count;
  fi_addr_t source;
  std::uint64_t tag;
  std::uint64_t ignore;
  void* context;
  std::uint64_t flags;  ///< As the call counts them, FI_COMPLETION included.
  bool tagged;
};

/// Posts it, or does what FI_PEEK, FI_CLAIM and FI_DISCARD say.
ssize_t receive(Endpoint& ep, const ReceiveCall& call);

/// fi_cancel.
ssize_t cancel(fid* object, void* context);

}  // namespace portofu::fabric
