#include "engine/topology/host_file.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/observe/system_failure.h"

namespace portofu {

std::optional<Coordinates> parse_coordinates(const std::string& text) {
  Coordinates at{};
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (i > 0 && (next == end || *next++ != ',')) return std::nullopt;
    const auto [stop, error] = std::from_chars(next, end, at[i]);
    if (error != std::errc{}) return std::nullopt;
    next = stop;
  }
  if (next != end || !is_coordinates(at)) return std::nullopt;
  return at;
}

Coordinates coordinates_of_place(std::size_t place) {
  return {static_cast<std::uint8_t>(place), static_cast<std::uint8_t>(place >> 8), 0, 0, 0, 0};
}

std::optional<std::vector<Host>> parse_hosts(const std::string& text, std::string* why) {
  std::vector<Host> hosts;
  std::set<std::uint32_t> addresses;
  std::set<Coordinates> places;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    std::string coordinates;
    std::string more;
    if (!(words >> address)) continue;
    words >> coordinates >> more;
    in_addr parsed{};
    const auto given = parse_coordinates(coordinates);
    if (inet_pton(AF_INET, address.c_str(), &parsed) != 1 || parsed.s_addr == 0 || !more.empty() ||
        (!coordinates.empty() && !given)) {
      *why = "line " + std::to_string(number) + " is not an IPv4 address and perhaps coordinates: " + line;
      return std::nullopt;
    }
    if (hosts.size() == kMaxHosts) {
      *why = "line " + std::to_string(number) + " is one node more than the " + std::to_string(kMaxHosts) +
             " there may be";
      return std::nullopt;
    }
    const Host host{ntohl(parsed.s_addr), given ? *given : coordinates_of_place(hosts.size())};
    if (!addresses.insert(host.nid).second || !places.insert(host.at).second) {
      *why = "line " + std::to_string(number) + " names an address or coordinates for the second time: " + line;
      return std::nullopt;
    }
    hosts.push_back(host);
  }
  return hosts;
}

std::optional<std::vector<Host>> read_host_file(const std::string& path, std::string* why) {
  errno = 0;
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    *why = errno != 0 ? system_failure("open", "it", errno, "name a file with the addresses of the nodes")
                      : "it is empty; name a file with the addresses of the nodes";
    return std::nullopt;
  }
  return parse_hosts(text.str(), why);
}

Coordinates coordinates_of_address(std::uint32_t nid) {
  return {static_cast<std::uint8_t>(nid),
          static_cast<std::uint8_t>(nid >> 8),
          static_cast<std::uint8_t>(nid >> 16),
          0,
          0,
          0};
}

std::uint32_t address_of_coordinates(const Coordinates& at, std::uint32_t own_nid) {
  if (at[3] != 0 || at[4] != 0 || at[5] != 0) return 0;
  return (own_nid & 0xff000000u) | std::uint32_t{at[2]} << 16 | std::uint32_t{at[1]} << 8 | at[0];
}

}  // namespace portofu
