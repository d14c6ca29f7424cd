#pragma once
// Which node this is. All processes of a node, and all interfaces of a process, must come to the same answer without
// talking to each other; peers on other nodes must be able to route to it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace portofu {

/// One IPv4 address of this node.
struct InterfaceAddress {
  std::string name;            ///< As `ip link` shows it.
  std::uint32_t index = 0;     ///< The kernel's number of the interface, from 1.
  std::uint32_t address = 0;   ///< Host byte order.
  bool up = false;             ///< IFF_UP.
  bool loopback = false;       ///< IFF_LOOPBACK.
  bool running = true;         ///< IFF_RUNNING: it has a carrier.
  bool bridge = false;         ///< It joins interfaces of this machine, as docker0 and virbr0 do.
  bool default_route = false;  ///< What goes nowhere else goes out there.
};

/// 127.0.0.1: the node ID of a machine without a network.
inline constexpr std::uint32_t kLoopbackNodeId = 0x7f000001;

/// A node ID as people write it: "10.0.0.1".
std::string node_id_text(std::uint32_t nid);

/// All IPv4 addresses of this node as the kernel lists them; empty if it cannot say.
std::vector<InterfaceAddress> list_interface_addresses();

/// Chooses among addresses: the first of the named interface, else the first of an interface that is up and not
/// loopback. One with a carrier comes before one without, and before a bridge of machines inside this one, whose
/// address many nodes may have; a bridge with the default route is the node's own way out, and no worse than another
/// interface. Of equal ones the lowest index is taken.
/// @param name  empty: any interface
/// @return nullptr if nothing fits
const InterfaceAddress* choose_interface(std::span<const InterfaceAddress> addresses, const std::string& name);

/// The same: its address. @return 0 if nothing fits
std::uint32_t choose_node_id(std::span<const InterfaceAddress> addresses, const std::string& name);

/// Names of the interfaces that have a default route. @param table  as /proc/net/route has it
std::vector<std::string> default_routes(const std::string& table);

/// Whether the address is that of a bridge without the default route, or of loopback: other nodes may have it, too.
bool is_inner_address(std::span<const InterfaceAddress> addresses, std::uint32_t nid);

/// Tells nodes apart that have one ID: the same number in all processes that share a kernel and its /dev/shm, and
/// another one elsewhere. 48 bits, never 0.
std::uint64_t node_identity();

/// Tells networks of one machine apart (network_namespaces(7)), each of which may have the same addresses: the same
/// number in all processes that are in one.
/// @return 0 if it is not known
std::uint64_t network_identity();

/// Finds this node's ID. One line is logged if the named interface has no address; the choice is then made as if none
/// had been named.
/// @param configured_nid  PORTOFU_NID; 0: look for an interface
/// @param interface_name  PORTOFU_INTERFACE; empty: any
/// @return never 0
std::uint32_t find_node_id(std::uint32_t configured_nid, const std::string& interface_name);

}  // namespace portofu
