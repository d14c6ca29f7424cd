#pragma once
// Which atomics there are, and how a call becomes a descriptor. @spec fi_atomic(3)

#include <rdma/fi_atomic.h>

#include "engine/door/libfabric.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {

/// The three families of calls.
enum class AtomicFamily : std::uint8_t { kBase, kFetch, kCompare };

/// Most items of one call; 0: the family has no such combination.
/// @param tagged  FI_TAGGED: on a receive that waits
std::size_t most_items(AtomicFamily family, fi_datatype datatype, fi_op op, bool tagged);

/// A call of any family in its widest form.
struct AtomicCall {
  AtomicFamily family;
  const fi_msg_atomic* msg;
  const fi_ioc* results = nullptr;  ///< kFetch, kCompare.
  std::size_t result_count = 0;
  const fi_ioc* compares = nullptr;  ///< kCompare.
  std::size_t compare_count = 0;
  std::uint64_t flags = 0;  ///< As the call counts them, FI_COMPLETION included.
  Deferral deferral{};
};

ssize_t run_atomic(Endpoint& ep, const AtomicCall& call);

}  // namespace portofu::fabric
