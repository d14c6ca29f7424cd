#pragma once
// The physical address of a process: every other address (rank, VCQ ID) is translated to it before a packet leaves.

#include <cstdint>

namespace portofu {

/// A process on the network. Reached from these two numbers alone, without any exchange.
/// @spec Portals 4.3, 3.9
struct ProcessId {
  std::uint32_t nid = 0;  ///< IPv4 address of the node as an integer in host byte order; 0 is no node.
  std::uint32_t pid = 0;  ///< Claimed on the node when the engine opens; 1..kMaxPid, 0 is no process.

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

/// A process as a key of tables.
constexpr std::uint64_t process_key(ProcessId id) { return std::uint64_t{id.nid} << 32 | id.pid; }

/// An endpoint of libfabric as matching and events show it: PIDs need 16 bits, the number of the endpoint the others.
constexpr ProcessId endpoint_of(ProcessId process, std::uint16_t endpoint) {
  return {process.nid, process.pid | std::uint32_t{endpoint} << 16};
}

/// Largest PID that is ever handed out; it is also a port number of the fabric endpoint.
inline constexpr std::uint32_t kMaxPid = 65535;

}  // namespace portofu
