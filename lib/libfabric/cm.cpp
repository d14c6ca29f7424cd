// fi_cm(3), as far as endpoints without connections have it: their names.

#include <rdma/fi_cm.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/libfabric/endpoint.h"

namespace portofu::fabric {
namespace {

int name_of(fid* object, void* name, std::size_t* bytes) {
  const Endpoint& ep = root_of(object);
  if (ep.shared != nullptr) return -FI_EINVAL;  // What endpoints share is none, and has no address.
  const Endpoint& named = ep.parent != nullptr ? *ep.parent : ep;
  Address address;
  const ProcessId self = ep.domain->engine->self();
  address.nid = self.nid;
  address.pid = self.pid;
  address.number = static_cast<std::uint16_t>(named.first_number);
  address.contexts = static_cast<std::uint16_t>(named.number_count);
  std::array<std::byte, sizeof address> written;
  write_address(address, ep.domain->address_format, written.data());
  const std::size_t room = std::exchange(*bytes, sizeof address);
  if (room != 0 && name != nullptr) std::memcpy(name, written.data(), std::min(room, sizeof address));
  return room < sizeof address ? -FI_ETOOSMALL : 0;
}

}  // namespace

fi_ops_cm address_calls = {
    .size = sizeof(fi_ops_cm),
    .setname = NotThere{},
    .getname = name_of,
    .getpeer = NotThere{},
    .connect = NotThere{},
    .listen = NotThere{},
    .accept = NotThere{},
    .reject = NotThere{},
    .shutdown = NotThere{},
    .join = NotThere{},
};

}  // namespace portofu::fabric
