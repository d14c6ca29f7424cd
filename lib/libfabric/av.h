#pragma once
// Address vectors: an fi_addr_t is the place of an address, for maps and for tables. @spec fi_av(3)

#include <rdma/fi_domain.h>

#include <unordered_map>
#include <vector>

#include "lib/libfabric/address.h"
#include "lib/libfabric/domain.h"

namespace portofu::fabric {

struct EventQueueFid;

struct AddressVector {
  fid_av fid{};
  Domain* domain = nullptr;
  Users users{0};
  int context_bits = 0;                                 ///< fi_av_attr::rx_ctx_bits: the upper bits of an fi_addr_t.
  EventQueueFid* eq = nullptr;                          ///< Of insertions that tell when they are done.
  std::vector<Address> addresses;                       ///< On duty. A pid of 0: removed.
  std::unordered_map<std::uint64_t, fi_addr_t> places;  ///< On duty: by key_of, for FI_SOURCE.

  static std::uint64_t key_of(ProcessId endpoint) { return process_key(endpoint); }

  std::uint64_t place_of(fi_addr_t address) const {
    return context_bits == 0 ? address : address & (~std::uint64_t{0} >> context_bits);
  }

  /// On duty: whom an fi_addr_t means. @return nullptr if it means nobody; `context`: of a scalable endpoint
  const Address* find(fi_addr_t address, std::uint32_t* context) const {
    const std::uint64_t place = place_of(address);
    if (place >= addresses.size() || addresses[place].pid == 0) return nullptr;
    *context = context_bits == 0 ? 0 : static_cast<std::uint32_t>(address >> (64 - context_bits));
    return &addresses[place];
  }

  /// On duty: the place of an endpoint. @param endpoint  as events show it
  fi_addr_t find(ProcessId endpoint) const {
    const auto found = places.find(key_of(endpoint));
    return found != places.end() ? found->second : FI_ADDR_NOTAVAIL;
  }
};

}  // namespace portofu::fabric
