#pragma once
// Memory regions: list entries whose match bits are the key, one at each endpoint of the domain. @spec fi_mr(3)

#include <rdma/fi_domain.h>

#include <memory>
#include <vector>

#include "lib/libfabric/cntr.h"
#include "lib/libfabric/domain.h"

namespace portofu::fabric {

struct Endpoint;

struct MemoryRegion {
  fid_mr fid{};
  Inheritable inherited{fid.fid};
  Domain* domain = nullptr;
  std::vector<iovec> pieces;
  std::uint64_t access = 0;
  std::uint64_t origin = 0;  ///< Remote address of its first byte.
  bool events = false;       ///< FI_RMA_EVENT where that counts: it is reached when it is enabled.
  bool enabled = false;
  CounterFid* cntr = nullptr;           ///< Counts remote writes.
  std::shared_ptr<const Receive> only;  ///< FI_MR_ENDPOINT: through which, or whose contexts; nullptr: any.

  struct Entry {
    std::uint32_t number;  ///< Endpoint.
    Handle handle;
  };
  std::vector<Entry> entries;  ///< On duty.

  /// On duty: the endpoint is closed.
  void forget(std::uint32_t number) {
    std::erase_if(entries, [number](const Entry& entry) { return entry.number == number; });
  }
};

/// fi_mr_bind, and fi_ep_bind, which is the same. @return 0 | -FI_EDOMAIN | -FI_EINVAL | -FI_EOPBADSTATE
int bind_endpoint(MemoryRegion& region, const Endpoint& ep);

/// FI_MAP_RAW_MR. @return 0 | -FI_EINVAL: it is no key of ours
int map_raw_key(const struct fi_mr_map_raw& raw);

}  // namespace portofu::fabric
