#include "lib/libfabric/info.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "engine/door/libfabric.h"
#include "lib/libfabric/domain.h"

namespace portofu::fabric {
namespace {

constexpr std::uint64_t kSends = FI_SEND | FI_READ | FI_WRITE;
constexpr std::uint64_t kReceives = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kPrimary = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_NAMED_RX_CTX;
constexpr std::uint64_t kSecondary =
    FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT | FI_FENCE | FI_TRIGGER | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV;
constexpr std::uint64_t kAll = kPrimary | kSecondary | kSends | kReceives;
constexpr std::uint64_t kTransmitCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | kSends | FI_FENCE | FI_TRIGGER | FI_NAMED_RX_CTX;
constexpr std::uint64_t kReceiveCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | kReceives | FI_DIRECTED_RECV |
                                       FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT | FI_TRIGGER;
constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV;
constexpr std::uint64_t kTransmitFlags =
    FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE | FI_MORE;
constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE;
constexpr std::uint64_t kOrder = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_SAW |
                                 FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |
                                 FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
                                 FI_ORDER_ATOMIC_WAW;
constexpr std::uint32_t kProtocolVersion = 1;
constexpr std::size_t kMostMessageBytes = kDefaultLimits.max_msg_size;
/// More can be posted; applications make room for so many.
constexpr std::size_t kMostReceives = 65536;

/// The class of who asks for none. @spec fi_endpoint(3), "traffic class"
constexpr std::uint32_t kTrafficClass = FI_TC_BEST_EFFORT;

bool is_named(const char* wanted, std::string_view name) { return wanted == nullptr || wanted == name; }
constexpr bool is_part(std::uint64_t wanted, std::uint64_t given) { return (wanted & ~given) == 0; }

/// Whether an enumeration has the value: "a provider must support the requested value or fail" (fi_getinfo(3)).
template <class Enumeration>
bool is_there(const Enumeration& wanted, Enumeration last) {
  return std::bit_cast<std::uint32_t>(wanted) <= static_cast<std::uint32_t>(last);
}

/// "The user will synchronize progressing the data and control operations themselves" (fi_domain(3) of libfabric 1.20,
/// whose headers have the name FI_PROGRESS_CONTROL_UNIFIED). Where the library synchronizes, there is less to do.
constexpr auto kProgressControlUnified = static_cast<fi_progress>(FI_PROGRESS_MANUAL + 1);

bool takes_control_progress(fi_progress wanted, std::uint32_t version) {
  return is_there(wanted, FI_VERSION_GE(version, FI_VERSION(1, 20)) ? kProgressControlUnified : FI_PROGRESS_MANUAL);
}

/// The classes with a name say what data are intended for. All of them share what there is. The number of a class of
/// one network (DSCP) would mean nothing to another.
constexpr bool takes_class(std::uint32_t wanted) {
  return wanted == FI_TC_UNSPEC || (wanted >= FI_TC_LABEL && wanted <= FI_TC_NETWORK_CTRL);
}

/// @param caps  of the endpoint: "the capabilities must be a subset of those requested of the associated endpoint"
bool takes_transmit(const fi_tx_attr& wanted, std::uint64_t caps) {
  return is_part(wanted.caps, (kTransmitCaps & caps) | kDomainCaps) && is_part(wanted.op_flags, kTransmitFlags) &&
         is_part(wanted.msg_order, kOrder) && is_part(wanted.comp_order, FI_ORDER_NONE) &&
         wanted.inject_size <= kInjectBytes && wanted.size <= kTransmitSize && wanted.iov_limit <= kMostPieces &&
         wanted.rma_iov_limit <= kMostRemotePieces && takes_class(wanted.tclass);
}

bool takes_receive(const fi_rx_attr& wanted, std::uint64_t caps) {
  return is_part(wanted.caps, (kReceiveCaps & caps) | kDomainCaps) && is_part(wanted.op_flags, kReceiveFlags) &&
         is_part(wanted.msg_order, kOrder) && is_part(wanted.comp_order, FI_ORDER_NONE) &&
         wanted.size <= kMostReceives && wanted.iov_limit <= kMostPieces;
}

bool takes_contexts(std::size_t wanted) { return wanted <= kMaxEndpoints || wanted == FI_SHARED_CONTEXT; }

/// Keys of authorization there are none, and releases before 1.5 do not know them.
bool takes_key(std::uint32_t version, std::size_t size) { return size == 0 || version < FI_VERSION(1, 5); }

bool takes_endpoint(const fi_ep_attr& wanted, std::uint32_t version) {
  const bool known = wanted.type == FI_EP_UNSPEC || wanted.type == FI_EP_RDM;
  const bool ours = wanted.protocol == FI_PROTO_UNSPEC || wanted.protocol == kAddressFormat;
  return known && ours && wanted.protocol_version <= kProtocolVersion && wanted.max_msg_size <= kMostMessageBytes &&
         wanted.msg_prefix_size == 0 && wanted.max_order_raw_size <= kMostMessageBytes &&
         wanted.max_order_war_size <= kMaxWarOrderedBytes && wanted.max_order_waw_size <= kMostMessageBytes &&
         takes_contexts(wanted.tx_ctx_cnt) && takes_contexts(wanted.rx_ctx_cnt) &&
         takes_key(version, wanted.auth_key_size);
}

/// Most of what a domain has: so much is told, and may be asked for.
struct DomainLimit {
  std::size_t fi_domain_attr::*field;
  std::size_t most;
};
constexpr std::array<DomainLimit, 14> kDomainLimits = {{
    {&fi_domain_attr::mr_key_size, sizeof(std::uint64_t)},
    {&fi_domain_attr::cq_data_size, sizeof(std::uint64_t)},
    {&fi_domain_attr::cq_cnt, kDefaultLimits.max_eqs},
    {&fi_domain_attr::ep_cnt, kMaxEndpoints},
    {&fi_domain_attr::tx_ctx_cnt, kMaxEndpoints},
    {&fi_domain_attr::rx_ctx_cnt, kMaxEndpoints},
    {&fi_domain_attr::max_ep_tx_ctx, kMaxEndpoints},
    {&fi_domain_attr::max_ep_rx_ctx, kMaxEndpoints},
    {&fi_domain_attr::max_ep_stx_ctx, kMaxEndpoints},
    {&fi_domain_attr::max_ep_srx_ctx, kMaxEndpoints},
    {&fi_domain_attr::cntr_cnt, kDefaultLimits.max_cts},
    {&fi_domain_attr::mr_iov_limit, kMostPieces},
    {&fi_domain_attr::max_err_data, 0},
    {&fi_domain_attr::mr_cnt, kDefaultLimits.max_entries},
}};

bool takes_domain(const fi_domain_attr& wanted, std::uint32_t version) {
  return is_named(wanted.name, kDomainName) && is_part(wanted.caps, kDomainCaps) &&
         is_there(wanted.threading, FI_THREAD_ENDPOINT) && takes_control_progress(wanted.control_progress, version) &&
         is_there(wanted.data_progress, FI_PROGRESS_MANUAL) && is_there(wanted.resource_mgmt, FI_RM_ENABLED) &&
         is_there(wanted.av_type, FI_AV_TABLE) && takes_class(wanted.tclass) &&
         takes_key(version, wanted.auth_key_size) && std::ranges::all_of(kDomainLimits, [&](const DomainLimit& limit) {
           return wanted.*limit.field <= limit.most;
         });
}

/// What is returned of capabilities.
std::uint64_t caps_for(const fi_info* hints) {
  return hints != nullptr && hints->caps != 0 ? with_directions(hints->caps) | kDomainCaps : kAll;
}

/// Access to memory "requires that FI_RMA and/or FI_ATOMIC be set", and events of it that others have some.
bool has_all_it_requires(std::uint64_t caps) {
  constexpr std::uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((caps & (FI_READ | FI_WRITE | kRemote)) != 0 && (caps & (FI_RMA | FI_ATOMIC)) == 0) return false;
  return (caps & FI_RMA_EVENT) == 0 || (caps & kRemote) != 0;
}

bool takes(const fi_info& hints, std::uint32_t version) {
  if (!is_part(hints.caps, kAll) || !has_all_it_requires(with_directions(hints.caps))) return false;
  if (hints.addr_format != FI_FORMAT_UNSPEC && !is_address_format(hints.addr_format)) return false;
  if (hints.tx_attr != nullptr && !takes_transmit(*hints.tx_attr, caps_for(&hints))) return false;
  if (hints.rx_attr != nullptr && !takes_receive(*hints.rx_attr, caps_for(&hints))) return false;
  if (hints.ep_attr != nullptr && !takes_endpoint(*hints.ep_attr, version)) return false;
  if (hints.domain_attr != nullptr && !takes_domain(*hints.domain_attr, version)) return false;
  return hints.fabric_attr == nullptr ||
         (is_named(hints.fabric_attr->name, kFabricName) && is_named(hints.fabric_attr->prov_name, kProviderName));
}

template <class Value>
void set(Value* value, Value wanted, Value otherwise) {
  *value = wanted != Value{} ? wanted : otherwise;
}

/// @param otherwise  class of who asks for none
void fill_transmit(fi_tx_attr& tx, const fi_tx_attr* wanted, std::uint64_t caps, std::uint32_t otherwise) {
  const fi_tx_attr none{};
  const fi_tx_attr& w = wanted != nullptr ? *wanted : none;
  tx.caps = (w.caps != 0 ? w.caps : caps) & caps & kTransmitCaps;
  tx.op_flags = w.op_flags;
  set(&tx.msg_order, w.msg_order, std::uint64_t{kOrder});
  tx.inject_size = kInjectBytes;
  tx.size = kTransmitSize;
  tx.iov_limit = kMostPieces;
  tx.rma_iov_limit = kMostRemotePieces;
  set(&tx.tclass, w.tclass, otherwise);
}

void fill_receive(fi_rx_attr& rx, const fi_rx_attr* wanted, std::uint64_t caps) {
  const fi_rx_attr none{};
  const fi_rx_attr& w = wanted != nullptr ? *wanted : none;
  rx.caps = (w.caps != 0 ? w.caps : caps) & caps & kReceiveCaps;
  rx.op_flags = w.op_flags;
  set(&rx.msg_order, w.msg_order, std::uint64_t{kOrder});
  rx.size = kMostReceives;
  rx.iov_limit = kMostPieces;
}

void fill_endpoint(fi_ep_attr& ep, const fi_ep_attr* wanted) {
  const fi_ep_attr none{};
  const fi_ep_attr& w = wanted != nullptr ? *wanted : none;
  ep.type = FI_EP_RDM;
  ep.protocol = kAddressFormat;
  ep.protocol_version = kProtocolVersion;
  ep.max_msg_size = kMostMessageBytes;
  ep.max_order_raw_size = kMostMessageBytes;
  ep.max_order_war_size = kMaxWarOrderedBytes;
  ep.max_order_waw_size = kMostMessageBytes;
  set(&ep.mem_tag_format, w.mem_tag_format, ~std::uint64_t{0});
  set(&ep.tx_ctx_cnt, w.tx_ctx_cnt, std::size_t{1});
  set(&ep.rx_ctx_cnt, w.rx_ctx_cnt, std::size_t{1});
}

/// What registration of memory has to be like. The provider needs none of the modes; who knows only the old ones, or
/// counts on one, gets it.
int memory_mode(std::uint32_t version, const fi_domain_attr& wanted) {
  if (wanted.mr_mode == FI_MR_BASIC) return FI_MR_BASIC;
  if (version < FI_VERSION(1, 5)) return wanted.mr_mode == FI_MR_UNSPEC ? FI_MR_SCALABLE : wanted.mr_mode;
  return wanted.mr_mode == FI_MR_SCALABLE ? FI_MR_SCALABLE : 0;
}

void fill_domain(fi_domain_attr& domain, const fi_domain_attr* wanted, std::uint32_t version) {
  const fi_domain_attr none{};
  const fi_domain_attr& w = wanted != nullptr ? *wanted : none;
  domain.name = strdup(kDomainName.data());
  domain.mr_mode = memory_mode(version, w);
  set(&domain.threading, w.threading, FI_THREAD_SAFE);
  set(&domain.control_progress, w.control_progress, FI_PROGRESS_AUTO);
  set(&domain.data_progress, w.data_progress, FI_PROGRESS_AUTO);
  set(&domain.resource_mgmt, w.resource_mgmt, FI_RM_ENABLED);
  set(&domain.av_type, w.av_type, FI_AV_UNSPEC);
  domain.caps = kDomainCaps;
  set(&domain.tclass, w.tclass, kTrafficClass);
  for (const DomainLimit& limit : kDomainLimits) domain.*limit.field = limit.most;
}

/// @return 0 | -FI_ENOMEM
int set_address(const fi_info& info, void** place, std::size_t* bytes, const Address& address) {
  *place = std::malloc(sizeof address);
  if (*place == nullptr) return -FI_ENOMEM;
  write_address(address, info.addr_format, *place);
  *bytes = sizeof address;
  return 0;
}

/// Reads what the application has as an address. @return -FI_ENODATA: it is none
int read_given(const void* bytes, std::size_t count, Address* address) {
  if (count != sizeof *address) return -FI_ENODATA;
  *address = read_address(bytes);
  return address->format != 0 ? 0 : -FI_ENODATA;
}

/// @return 0 | -FI_ENOMEM | -FI_ENODATA: it is no address of ours
int fill_target(fi_info& info, const char* node, const char* service, std::uint64_t flags, const fi_info* hints) {
  Address target;
  int result = 0;
  if ((flags & FI_SOURCE) == 0 && (node != nullptr || service != nullptr)) {
    result = resolve(node, service, (flags & FI_NUMERICHOST) != 0, &target);
  } else if (hints != nullptr && hints->dest_addr != nullptr) {
    result = read_given(hints->dest_addr, hints->dest_addrlen, &target);
  } else {
    return 0;
  }
  if (result == 0 && target.nid == 0) result = -FI_ENODATA;
  return result != 0 ? result : set_address(info, &info.dest_addr, &info.dest_addrlen, target);
}

/// The same. A source without a node, as 0.0.0.0, is this one.
int fill_source(fi_info& info, const char* node, const char* service, std::uint64_t flags, const fi_info* hints) {
  Address source;
  int result = 0;
  const bool given = (flags & FI_SOURCE) == 0 && hints != nullptr && hints->src_addr != nullptr;
  if (given) result = read_given(hints->src_addr, hints->src_addrlen, &source);
  if ((flags & FI_SOURCE) != 0) result = resolve(node, service, (flags & FI_NUMERICHOST) != 0, &source);
  if (source.nid == 0) source.nid = own_nid();
  if (result == 0 && !given && source.nid != own_nid()) result = -FI_ENODATA;
  return result != 0 ? result : set_address(info, &info.src_addr, &info.src_addrlen, source);
}

int fill(fi_info& info, std::uint32_t version, const fi_info* hints) {
  info.caps = caps_for(hints);
  info.addr_format = format_for(hints != nullptr ? hints->addr_format : kAddressFormat);
  fill_domain(*info.domain_attr, hints != nullptr ? hints->domain_attr : nullptr, version);
  fill_transmit(*info.tx_attr, hints != nullptr ? hints->tx_attr : nullptr, info.caps, info.domain_attr->tclass);
  fill_receive(*info.rx_attr, hints != nullptr ? hints->rx_attr : nullptr, info.caps);
  fill_endpoint(*info.ep_attr, hints != nullptr ? hints->ep_attr : nullptr);
  info.fabric_attr->name = strdup(kFabricName.data());
  // libfabric writes the name of the provider itself.
  info.fabric_attr->prov_version = FI_VERSION(0, 1);
  info.fabric_attr->api_version = version;
  if (hints != nullptr) info.handle = hints->handle;
  return info.domain_attr->name != nullptr && info.fabric_attr->name != nullptr ? 0 : -FI_ENOMEM;
}

}  // namespace

std::uint64_t with_directions(std::uint64_t caps) {
  if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) caps |= FI_SEND | FI_RECV;
  constexpr std::uint64_t kMemory = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0 && (caps & kMemory) == 0) caps |= kMemory;
  return caps;
}

void give_attributes(fi_tx_attr* attr, std::uint64_t caps) {
  const fi_tx_attr wanted = *attr;
  *attr = {};
  fill_transmit(*attr, &wanted, caps, kTrafficClass);
}

void give_attributes(fi_rx_attr* attr, std::uint64_t caps) {
  const fi_rx_attr wanted = *attr;
  *attr = {};
  fill_receive(*attr, &wanted, caps);
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** info) {
  return guarded([&] {
    // "If specified, either the node and/or service parameter must be non-NULL."
    if ((flags & FI_SOURCE) != 0 && node == nullptr && service == nullptr) return -FI_EINVAL;
    if (hints != nullptr && !takes(*hints, version)) return -FI_ENODATA;
    fi_info* made = fi_allocinfo();
    if (made == nullptr) return -FI_ENOMEM;
    int result = fill(*made, version, hints);
    if (result == 0) result = name_opened(hints, *made);
    if (result == 0) result = fill_target(*made, node, service, flags, hints);
    if (result == 0) result = fill_source(*made, node, service, flags, hints);
    if (result != 0) {
      fi_freeinfo(made);
      return result;
    }
    *info = made;
    return 0;
  });
}

}  // namespace portofu::fabric
