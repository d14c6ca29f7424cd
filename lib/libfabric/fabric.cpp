// fi_fabric(3): the fabric, of which there is one.

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "lib/libfabric/cntr.h"
#include "lib/libfabric/domain.h"
#include "lib/libfabric/eq.h"
#include "lib/libfabric/info.h"
#include "lib/libfabric/parts.h"
#include "lib/libfabric/wait.h"

namespace portofu::fabric {
namespace {

/// Those of the process, in the order in which they were opened.
struct Opened {
  std::mutex mutex;  ///< Guards what follows.
  Fabric* fabrics = nullptr;
  std::vector<Domain*> domains;

  /// What points to a fabric. @param fabric  nullptr: the end
  Fabric** place_of(const Fabric* fabric) {
    Fabric** place = &fabrics;
    while (*place != fabric) place = &(*place)->opened_next;
    return place;
  }
};
Opened opened_now;

void note(Fabric* fabric) {
  const std::lock_guard lock(opened_now.mutex);
  *opened_now.place_of(nullptr) = fabric;
}

void leave(const Fabric* fabric) {
  const std::lock_guard lock(opened_now.mutex);
  *opened_now.place_of(fabric) = fabric->opened_next;
}

void note(Domain* domain) {
  const std::lock_guard lock(opened_now.mutex);
  opened_now.domains.push_back(domain);
}

void leave(const Domain* domain) {
  const std::lock_guard lock(opened_now.mutex);
  std::erase(opened_now.domains, domain);
}

int close_fabric(fid* object) {
  auto* fabric = object_of<Fabric>(object);
  if (fabric->users.load() != 0) return -FI_EBUSY;
  leave(fabric);
  delete fabric;
  return 0;
}

int close_domain(fid* object) {
  auto* domain = object_of<Domain>(object);
  if (domain->users.load() != 0) return -FI_EBUSY;
  leave(domain);
  {
    const Engine::Duty duty(*domain->engine);
    close_gates(duty.core(), *domain);
  }
  if (domain->eq != nullptr) --domain->eq->users;
  Fabric& fabric = *domain->fabric;
  delete domain;
  --fabric.users;
  return 0;
}

int bind_domain(fid* object, fid* other, std::uint64_t flags) {
  auto* domain = object_of<Domain>(object);
  if (other == nullptr || other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if ((flags & ~std::uint64_t{FI_REG_MR}) != 0) return -FI_EBADFLAGS;
  auto* eq = object_of<EventQueueFid>(other);
  if (eq->fabric != domain->fabric) return -FI_EDOMAIN;
  if (domain->eq != nullptr && domain->eq != eq) return -FI_EINVAL;
  if (domain->eq == nullptr) ++eq->users;
  domain->eq = eq;
  domain->tells_regions |= flags != 0;
  return 0;
}

fi_ops fabric_object = {sizeof(fi_ops), close_fabric, refuse_bind, refuse_control, refuse_ops, NotThere{}, NotThere{}};
fi_ops domain_object = {sizeof(fi_ops), close_domain, bind_domain, control_domain, refuse_ops, NotThere{}, NotThere{}};

fi_ops_domain domain_calls = {
    .size = sizeof(fi_ops_domain),
    .av_open = open_av,
    .cq_open = open_cq,
    .endpoint = open_endpoint,
    .scalable_ep = open_scalable,
    .cntr_open = open_cntr,
    .poll_open = open_poll,
    .stx_ctx = open_shared_transmit,
    .srx_ctx = open_shared_receive,
    .query_atomic = query_atomic,
    .query_collective = NotThere{},
    .endpoint2 = NotThere{},
};

int open_domain(fid_fabric* fabric_fid, fi_info* info, fid_domain** opened, void* context) {
  return guarded([&] {
    if (info == nullptr || info->domain_attr == nullptr) return -FI_EINVAL;
    Address source;
    if (info->src_addr != nullptr && info->src_addrlen == sizeof source) source = read_address(info->src_addr);
    auto domain = std::make_unique<Domain>();
    if (const int result = hold_lane(source.pid, &domain->lane); result != 0) return result;
    domain->engine = domain->lane->engine;
    domain->fabric = object_of<Fabric>(fabric_fid);
    domain->address_format = format_for(info->addr_format);
    const int mode = info->domain_attr->mr_mode;
    domain->binds_regions = mode != FI_MR_BASIC && mode != FI_MR_SCALABLE && (mode & FI_MR_ENDPOINT) != 0;
    domain->enables_regions = (mode & FI_MR_RMA_EVENT) != 0;
    domain->virtual_addresses = mode == FI_MR_BASIC || (mode & FI_MR_VIRT_ADDR) != 0;
    domain->chooses_keys = mode == FI_MR_BASIC || (mode & FI_MR_PROV_KEY) != 0;
    domain->fid.fid = {FI_CLASS_DOMAIN, context, &domain_object};
    domain->fid.ops = &domain_calls;
    domain->fid.mr = &region_calls;
    note(domain.get());
    ++domain->fabric->users;
    *opened = &domain.release()->fid;
    return 0;
  });
}

fi_ops_fabric fabric_calls = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = NotThere{},
    .eq_open = open_eq,
    .wait_open = open_wait,
    .trywait = try_wait,
    .domain2 = NotThere{},
};

}  // namespace

void forget_opened() { new (&opened_now) Opened; }

void inherit_fabric(Fabric& fabric) {
  fabric.users = 0;
  fabric.opened_next = std::exchange(opened_now.fabrics, &fabric);
}

int open_fabric(fi_fabric_attr* attr, fid_fabric** opened, void* context) {
  return guarded([&] {
    if (attr != nullptr && attr->name != nullptr && std::string_view(attr->name) != kFabricName) return -FI_ENODATA;
    auto fabric = std::make_unique<Fabric>();
    fabric->fid.fid = {FI_CLASS_FABRIC, context, &fabric_object};
    fabric->fid.ops = &fabric_calls;
    fabric->fid.api_version = attr != nullptr ? attr->api_version : 0;
    note(fabric.get());
    *opened = &fabric.release()->fid;
    return 0;
  });
}

int name_opened(const fi_info* hints, fi_info& info) {
  const fid_fabric* fabric = hints != nullptr && hints->fabric_attr != nullptr ? hints->fabric_attr->fabric : nullptr;
  const fid_domain* domain = hints != nullptr && hints->domain_attr != nullptr ? hints->domain_attr->domain : nullptr;
  const std::lock_guard lock(opened_now.mutex);
  const auto of_domain = std::ranges::find_if(opened_now.domains, [&](const Domain* known) {
    return (domain == nullptr || &known->fid == domain) && (fabric == nullptr || &known->fabric->fid == fabric);
  });
  const bool knows_domain = of_domain != opened_now.domains.end();
  if (domain != nullptr && knows_domain) fabric = &(*of_domain)->fabric->fid;
  Fabric* of_fabric = opened_now.fabrics;
  while (of_fabric != nullptr && fabric != nullptr && &of_fabric->fid != fabric) of_fabric = of_fabric->opened_next;
  const bool knows_fabric = of_fabric != nullptr;
  if ((fabric != nullptr && !knows_fabric) || (domain != nullptr && !knows_domain)) return -FI_ENODATA;
  info.fabric_attr->fabric = knows_fabric ? &of_fabric->fid : nullptr;
  info.domain_attr->domain = knows_domain ? &(*of_domain)->fid : nullptr;
  return 0;
}

int refuse_bind(fid*, fid*, std::uint64_t) { return -FI_ENOSYS; }
int refuse_control(fid*, int, void*) { return -FI_ENOSYS; }
int refuse_ops(fid*, const char*, std::uint64_t, void**, void*) { return -FI_ENOSYS; }

}  // namespace portofu::fabric
