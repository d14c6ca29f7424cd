#include "engine/wire/ofi/fabric_objects.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "engine/observe/system_failure.h"
#include "engine/topology/node_id.h"
#include "engine/topology/socket_address.h"

namespace portofu {

namespace {

bool is_own(const fi_info& info) {
  return info.fabric_attr->prov_name != nullptr && std::string_view(info.fabric_attr->prov_name) == "portofu";
}

/// Packets of the engine do not go by the provider that stands on it (lib/libfabric).
/// @return 0 | -FI_ENODATA if no other is left
int leave_out_own(const FabricLibrary& library, fi_info** found) {
  while (*found != nullptr && is_own(**found)) {
    fi_info* own = *found;
    *found = std::exchange(own->next, nullptr);
    library.freeinfo(own);
  }
  return *found != nullptr ? 0 : -FI_ENODATA;
}

}  // namespace

FabricHints::FabricHints(const FabricLibrary& calls, fi_ep_type type, std::uint64_t capabilities,
                         const std::string& provider)
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

FabricHints::~FabricHints() {
  if (info != nullptr) library.freeinfo(info);
}

int FabricHints::find(std::uint32_t nid, std::uint16_t port, fi_info** found) const {
  if (info == nullptr) return -FI_ENOMEM;
  const int result = library.getinfo(FI_VERSION(1, 17), node_id_text(nid).c_str(), std::to_string(port).c_str(),
                                     FI_SOURCE | FI_NUMERICHOST, info, found);
  return result != 0 ? result : leave_out_own(library, found);
}

void close_fabric_object(void* object) {
  if (object != nullptr) fi_close(static_cast<fid_t>(object));
}

bool FabricObjects::open(const FabricLibrary& library, fi_info* info, std::size_t completion_count, std::string* why) {
  fi_av_attr av_attr{};
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_MSG;
  cq_attr.wait_obj = FI_WAIT_FD;
  cq_attr.size = completion_count;
  const auto done = [&](int result, const char* call) {
    if (result == 0) return true;
    *why = std::string(call) + " of " + info->fabric_attr->prov_name + " failed: " + library.strerror(-result);
    if (const std::string advice = advice_for(-result); !advice.empty()) why->append("; ").append(advice);
    return false;
  };
  return done(library.fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric") &&
         done(fi_domain(fabric, info, &domain, nullptr), "fi_domain") &&
         done(fi_av_open(domain, &av_attr, &addresses, nullptr), "fi_av_open") &&
         done(fi_cq_open(domain, &cq_attr, &completions, nullptr), "fi_cq_open") &&
         done(fi_endpoint(domain, info, &endpoint, nullptr), "fi_endpoint") &&
         done(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind") &&
         done(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind") &&
         done(fi_enable(endpoint), "fi_enable") &&
         done(fi_control(&completions->fid, FI_GETWAIT, &wait_fd), "FI_GETWAIT");
}

void FabricObjects::close_endpoint() { close_fabric_object(std::exchange(endpoint, nullptr)); }

void FabricObjects::close() {
  close_fabric_object(completions);
  close_fabric_object(addresses);
  close_fabric_object(domain);
  close_fabric_object(fabric);
}

fi_addr_t FabricObjects::insert(std::uint32_t nid, std::uint16_t port) {
  const sockaddr_in address = socket_address(nid, port);
  fi_addr_t inserted = FI_ADDR_NOTAVAIL;
  return fi_av_insert(addresses, &address, 1, &inserted, 0, nullptr) == 1 ? inserted : FI_ADDR_NOTAVAIL;
}

bool FabricObjects::may_sleep() {
  fid* waited = &completions->fid;
  return fi_trywait(fabric, &waited, 1) == FI_SUCCESS;
}

}  // namespace portofu
