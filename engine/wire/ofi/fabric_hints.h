#pragma once
// What every endpoint asks of a provider: IPv4 addresses, one thread at a time, progress when it is called. The kind
// of endpoint and what it has to be capable of is the caller's.

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstring>
#include <string>

#include "engine/wire/ofi/fabric_library.h"

namespace portofu {

struct FabricHints {
  fi_info* info;  ///< nullptr without memory.
  const FabricLibrary& library;

  /// @param provider  empty: any
  FabricHints(const FabricLibrary& calls, fi_ep_type type, std::uint64_t capabilities, const std::string& provider)
      : info(calls.dupinfo(nullptr)), library(calls) {
    if (info == nullptr) return;
    info->caps = capabilities;
    info->mode = FI_CONTEXT | FI_CONTEXT2;
    info->addr_format = FI_SOCKADDR_IN;
    info->ep_attr->type = type;
    info->domain_attr->threading = FI_THREAD_DOMAIN;
    info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    if (!provider.empty()) info->fabric_attr->prov_name = strdup(provider.c_str());  // freeinfo frees it.
  }
  ~FabricHints() {
    if (info != nullptr) library.freeinfo(info);
  }
  FabricHints(const FabricHints&) = delete;
  FabricHints& operator=(const FabricHints&) = delete;

  /// @param nid, port  of the endpoint
  /// @return 0 or a negative error of libfabric
  int find(const std::string& nid, std::uint16_t port, fi_info** found) const {
    if (info == nullptr) return -FI_ENOMEM;
    return library.getinfo(FI_VERSION(1, 17), nid.c_str(), std::to_string(port).c_str(), FI_SOURCE | FI_NUMERICHOST,
                           info, found);
  }
};

inline void close_fabric_object(void* object) {
  if (object != nullptr) fi_close(static_cast<fid_t>(object));
}

}  // namespace portofu
