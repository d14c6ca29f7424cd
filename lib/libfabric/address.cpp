#include "lib/libfabric/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "engine/config/settings.h"
#include "engine/door/process.h"

namespace portofu::fabric {
namespace {

bool is_loopback(std::uint32_t nid) { return nid >> 24 == IN_LOOPBACKNET; }

/// Names of the loopback network mean this node. But where nodes of one machine have NIDs in it, only localhost does.
bool means_this_node(std::uint32_t nid) {
  return is_loopback(nid) && (nid == INADDR_LOOPBACK || !is_loopback(own_nid()));
}

/// What sockaddr_in::sin_zero has of us. Applications leave zeros there, or anything.
struct BehindPort {
  std::uint32_t format = kAddressFormat;
  std::uint16_t number = 0;
  std::uint16_t contexts = 0;
};
static_assert(sizeof(BehindPort) == sizeof(sockaddr_in::sin_zero) && sizeof(sockaddr_in) == sizeof(Address));

/// @return nothing if the name has no IPv4 address
std::optional<std::uint32_t> look_up(const char* node, bool numeric) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_flags = numeric ? AI_NUMERICHOST : 0;
  addrinfo* found = nullptr;
  if (getaddrinfo(node, nullptr, &hints, &found) != 0 || found == nullptr) return std::nullopt;
  sockaddr_in address;
  std::memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
  return ntohl(address.sin_addr.s_addr);
}

bool parse_pid(const char* service, std::uint32_t* pid) {
  const char* end = service + std::strlen(service);
  const auto [rest, error] = std::from_chars(service, end, *pid);
  return error == std::errc{} && rest == end && *pid <= kMaxPid;
}

/// Splits an address in the format FI_ADDR_STR: "fi_sockaddr_in://[host][:[port][/fields][?keys]]".
/// @return false if it has none of the known formats
bool take_apart(std::string_view text, std::string* host, std::string* port) {
  constexpr std::array<std::string_view, 2> kFormats = {"fi_sockaddr_in://", "fi_sockaddr://"};
  const auto* format = std::ranges::find_if(kFormats, [&](std::string_view known) { return text.starts_with(known); });
  if (format == kFormats.end()) return false;
  text.remove_prefix(format->size());
  text = text.substr(0, text.find_first_of("/?"));
  const std::size_t colon = std::min(text.find(':'), text.size());
  *host = text.substr(0, colon);
  *port = text.substr(std::min(colon + 1, text.size()));
  return true;
}

}  // namespace

std::uint32_t own_nid() {
  static const std::uint32_t nid = [] {
    const Settings settings = read_settings();
    return find_node_id(settings.nid, settings.interface);
  }();
  return nid;
}

bool is_address_format(std::uint32_t format) {
  return format == kAddressFormat || format == FI_SOCKADDR || format == FI_SOCKADDR_IN;
}

void write_address(const Address& address, std::uint32_t format, void* place) {
  if (format == kAddressFormat) {
    std::memcpy(place, &address, sizeof address);
    return;
  }
  const BehindPort behind{kAddressFormat, address.number, address.contexts};
  sockaddr_in written{};
  written.sin_family = AF_INET;
  written.sin_addr.s_addr = htonl(address.nid);
  written.sin_port = htons(static_cast<std::uint16_t>(address.pid));
  std::memcpy(written.sin_zero, &behind, sizeof behind);
  std::memcpy(place, &written, sizeof written);
}

Address read_address(const void* place) {
  Address address;
  std::memcpy(&address, place, sizeof address);
  if (address.format == kAddressFormat) return address;
  sockaddr_in read;
  BehindPort behind;
  std::memcpy(&read, place, sizeof read);
  std::memcpy(&behind, read.sin_zero, sizeof behind);
  if (read.sin_family != AF_INET) return {.format = 0};
  const std::uint32_t nid = ntohl(read.sin_addr.s_addr);
  const std::uint32_t pid = ntohs(read.sin_port);
  if (behind.format == kAddressFormat) return {nid, pid, behind.number, behind.contexts};
  return {means_this_node(nid) ? own_nid() : nid, pid};
}

int resolve(const char* node, const char* service, bool numeric, Address* address) {
  *address = Address{};
  std::string host, port;
  if (service == nullptr && node != nullptr && take_apart(node, &host, &port)) {
    node = host.empty() ? nullptr : host.c_str();
    service = port.empty() ? nullptr : port.c_str();
  }
  const std::optional<std::uint32_t> nid = node != nullptr ? look_up(node, numeric) : own_nid();
  if (!nid.has_value()) return -FI_ENODATA;
  address->nid = *nid;
  if (means_this_node(address->nid)) address->nid = own_nid();
  if (service != nullptr && !parse_pid(service, &address->pid)) return -FI_ENODATA;
  return 0;
}

}  // namespace portofu::fabric
