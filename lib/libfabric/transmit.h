#pragma once
// What every sending call ends in: one descriptor, as lib/portals4 makes one. `transmit` resolves the address, chooses
// the memory descriptor, and posts it, or arms it on a counter.

#include <rdma/fi_endpoint.h>
#include <rdma/fi_trigger.h>

#include "lib/libfabric/endpoint.h"
#include "lib/libfabric/word.h"

namespace portofu::fabric {

/// Where a triggered operation waits.
struct Trigger {
  CounterFid* cntr = nullptr;  ///< nullptr: it does not wait.
  std::uint64_t threshold = 0;
};

/// What deferred work has beside its operation.
struct Deferral {
  Trigger trigger{};
  CounterFid* completion = nullptr;  ///< Counts its end, in place of the endpoint's.
};

/// A sending call, before its arguments are checked.
struct TransmitCall {
  WordKind word = WordKind::kSend;
  PortalUse portal = PortalUse::kMessage;
  const iovec* pieces = nullptr;  ///< Local memory.
  std::size_t piece_count = 0;
  fi_addr_t target = FI_ADDR_UNSPEC;
  void* context = nullptr;
  std::uint64_t flags = 0;         ///< As the call counts them, FI_COMPLETION included.
  const iovec* results = nullptr;  ///< Where a fetching atomic puts the old values.
  std::size_t result_count = 0;
  bool counts = true;    ///< False: neither told nor counted unless it fails; another part of the call is.
  bool goes_on = false;  ///< A part of a call has left, so this one must not be refused for want of room.
  Deferral deferral{};
};

/// Bytes of all pieces.
std::uint64_t length_of(const iovec* pieces, std::size_t count);

/// Completes the descriptor, which says everything but target, memory and word, and posts it.
/// @return 0 | -FI_EAGAIN: too much waits for room towards the target | -FI_EINVAL | -FI_EOPBADSTATE | -FI_ENOMEM
ssize_t transmit(Endpoint& ep, const TransmitCall& call, Descriptor& descriptor);

/// The trigger of a context with FI_TRIGGER. @return its counter, or nullptr
Trigger trigger_of(const void* context, std::uint64_t flags);

/// On duty: lets a descriptor wait for a counter.
ssize_t arm(Engine& engine, Core& core, const Descriptor& descriptor, const Trigger& trigger);

}  // namespace portofu::fabric
