#pragma once
// What every endpoint of libfabric consists of, and asks of a provider: IPv4 addresses, one thread at a time, progress
// when it is called. The kind of endpoint and what it has to be capable of is the caller's.

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/wire/ofi/fabric_library.h"

namespace portofu {

struct FabricHints {
  fi_info* info;  ///< nullptr without memory.
  const FabricLibrary& library;

  /// @param provider  empty: any
  FabricHints(const FabricLibrary& calls, fi_ep_type type, std::uint64_t capabilities, const std::string& provider);
  ~FabricHints();
  FabricHints(const FabricHints&) = delete;
  FabricHints& operator=(const FabricHints&) = delete;

  /// @param nid, port  of the endpoint, IPv4 in host byte order
  /// @return 0 or a negative error of libfabric
  int find(std::uint32_t nid, std::uint16_t port, fi_info** found) const;
};

/// @param object  of any kind; may be nullptr
void close_fabric_object(void* object);

/// An endpoint that sends and receives by one completion queue, and knows addresses. Held, like all that opens or
/// closes something of libfabric, under FabricLibrary::gate.
struct FabricObjects {
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* addresses = nullptr;
  fid_cq* completions = nullptr;  ///< Of fi_cq_msg_entry.
  fid_ep* endpoint = nullptr;
  int wait_fd = -1;  ///< Readable when there is a completion, provided that may_sleep has said so before.

  /// @param completion_count  that may wait to be read
  /// @param why  a sentence for people on failure
  /// @return false on failure; close is due all the same
  bool open(const FabricLibrary& library, fi_info* info, std::size_t completion_count, std::string* why);

  /// From now on no memory is read or written any more.
  void close_endpoint();

  /// After close_endpoint, and after all that was registered was closed.
  void close();

  /// @return FI_ADDR_NOTAVAIL if it cannot be an address
  fi_addr_t insert(std::uint32_t nid, std::uint16_t port);

  bool may_sleep();
};

}  // namespace portofu
