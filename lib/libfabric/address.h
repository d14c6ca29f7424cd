#pragma once
// The address of an endpoint: what fi_getname gives and fi_av_insert takes. (NID, PID) name the process, as everywhere
// in the engine; the number names the endpoint in it. @spec fi_av(3), fi_cm(3)

#include <rdma/fabric.h>

#include <cstdint>

#include "engine/door/libfabric.h"
#include "lib/libfabric/library.h"

namespace portofu::fabric {

/// fi_info::addr_format. The last digit says how numbers of endpoints become portal table entries.
inline constexpr std::uint32_t kAddressFormat = FI_PROV_SPECIFIC | 0x50460002u;

struct Address {
  std::uint32_t nid = 0;       ///< 0: no node; of a source: this one.
  std::uint32_t pid = 0;       ///< 0: not known yet.
  std::uint16_t number = 0;    ///< Of the endpoint in its process; further receive contexts have those behind it.
  std::uint16_t contexts = 0;  ///< Receive contexts, 1 of an ordinary endpoint; 0: not known.
  std::uint32_t format = kAddressFormat;  ///< 0: what was read is no address.

  bool is_good() const {
    return nid != 0 && pid != 0 && pid <= kMaxPid && number < kMaxEndpoints && contexts <= kMaxEndpoints - number;
  }
  bool has_context(std::uint32_t context) const {
    return context < (contexts != 0 ? contexts : kMaxEndpoints - number);
  }
  ProcessId process() const { return {nid, pid}; }
  friend bool operator==(const Address&, const Address&) = default;
};
static_assert(sizeof(Address) == 16);

/// Whether applications may have addresses in a format: in our own, or as IPv4 addresses with ports, which are NID and
/// PID. There the number of the endpoint is where a sockaddr_in has nothing. Both formats have the same length.
/// @param format  fi_info::addr_format
bool is_address_format(std::uint32_t format);

/// The one that an application gets which asks for `wanted`.
constexpr std::uint32_t format_for(std::uint32_t wanted) {
  return wanted == FI_SOCKADDR || wanted == FI_SOCKADDR_IN ? std::uint32_t{FI_SOCKADDR_IN} : kAddressFormat;
}

/// Writes sizeof(Address) bytes.
/// @param format  kAddressFormat | FI_SOCKADDR_IN
void write_address(const Address& address, std::uint32_t format, void* place);

/// Reads an address in either format.
/// @return NID and format 0 if it is in none
Address read_address(const void* place);

/// Turns what users write into an address: a host name or number, and a PID.
/// @param node     nullptr: this node; without a service it may be both in the format FI_ADDR_STR
/// @param service  nullptr: PID 0
/// @param numeric  FI_NUMERICHOST: no name is looked up
/// @return 0, with NID 0 for 0.0.0.0 | -FI_ENODATA if the name means nothing
int resolve(const char* node, const char* service, bool numeric, Address* address);

/// NID of this node.
std::uint32_t own_nid();

}  // namespace portofu::fabric
