#pragma once
// The nodes of a job, as a file tells them (PORTOFU_HOSTS): one node a line, "ADDRESS [X,Y,Z,A,B,C]", `#` begins a
// comment. All nodes of a job read the same file, so all know the same.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/topology/tofu_id.h"

namespace portofu {

/// One node of a job.
struct Host {
  std::uint32_t nid = 0;  ///< IPv4 address in host byte order.
  Coordinates at{};       ///< Of uTofu.

  friend bool operator==(const Host&, const Host&) = default;
};

inline constexpr std::size_t kMaxHosts = 65536;

/// "X,Y,Z,A,B,C" as coordinates; nothing if the text is something else.
std::optional<Coordinates> parse_coordinates(const std::string& text);

/// Coordinates of a node that the file gives none: of the n-th node, from 0, in rows of 256 along X, then Y.
Coordinates coordinates_of_place(std::size_t place);

/// Reads the text of a file.
/// @param why  names the first line that cannot be understood, that names an address or coordinates again, or that is
///             beyond kMaxHosts
/// @return nothing if there is such a line
std::optional<std::vector<Host>> parse_hosts(const std::string& text, std::string* why);

/// The same of a file. @param why  also tells if the file cannot be read
std::optional<std::vector<Host>> read_host_file(const std::string& path, std::string* why);

/// Where nodes are that no file tells of: X, Y and Z are the last, third and second number of the address, the first
/// number is the same for all nodes, and A, B and C are 0. So every process computes the same without asking.
Coordinates coordinates_of_address(std::uint32_t nid);

/// The way back. @param own_nid  any node of the same job
/// @return 0 if no node is there
std::uint32_t address_of_coordinates(const Coordinates& at, std::uint32_t own_nid);

}  // namespace portofu
