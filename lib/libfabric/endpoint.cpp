// fi_endpoint(3): how an endpoint comes, is bound, enabled, and goes. Its numbers in the engine are portal table
// entries: one for tagged messages, one for the others, one for memory.

#include "lib/libfabric/endpoint.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "lib/libfabric/eq.h"
#include "lib/libfabric/halves.h"
#include "lib/libfabric/info.h"
#include "lib/libfabric/mr.h"
#include "lib/libfabric/receive.h"
#include "lib/libfabric/transmit.h"

namespace portofu::fabric {
namespace {

/// On duty. Throws bad_alloc without memory; then it is not open.
void open_receiving(Core& core, Endpoint& ep, AddressVector* av) {
  const bool receives = (ep.rx->access & FI_RECV) != 0;
  ep.rx->av = av;
  ep.rx->enabled = ep.srx == nullptr && receives;
  open_receive_half(core, *ep.rx);
  try {
    if (ep.srx != nullptr && receives) join(core, *ep.srx->shared, *ep.rx);
  } catch (...) {
    withdraw_receive(core, *ep.rx);
    throw;
  }
}

/// Throws bad_alloc without memory; then neither half is enabled that was not.
int enable(Endpoint& ep) {
  if (ep.shared != nullptr || !(ep.sends || ep.receives)) return 0;
  const bool sends = ep.sends && (ep.tx->access & ~kCallKinds) != 0;
  AddressVector* av = ep.parent != nullptr ? ep.parent->av : ep.av;
  if (av == nullptr) return -FI_ENOAV;
  if (sends && ep.tx->cq == nullptr && ep.tx->send_cntr == nullptr && ep.tx->write_cntr == nullptr &&
      ep.tx->read_cntr == nullptr)
    return -FI_ENOCQ;
  if (ep.receives && (ep.rx->access & FI_RECV) != 0 && ep.rx->cq == nullptr && ep.rx->recv_cntr == nullptr)
    return -FI_ENOCQ;
  if ((ep.wants_srx && ep.srx == nullptr) || (ep.wants_stx && ep.stx == nullptr)) return -FI_EINVAL;
  const Engine::Duty duty(*ep.domain->engine);
  // "All connectionless endpoints associated with a shared receive context must also share the same address vector."
  if (ep.srx != nullptr && !ep.srx->shared->members.empty() && ep.srx->shared->members.front()->av != av)
    return -FI_EINVAL;
  const bool opens = sends && !ep.tx->enabled;
  if (opens) {
    ep.tx->av = av;
    open_transmit_half(duty.core(), *ep.tx);
  }
  try {
    if (ep.receives && !ep.rx->open) open_receiving(duty.core(), ep, av);
  } catch (...) {
    if (opens) close_transmit(duty.core(), *ep.tx);
    throw;
  }
  return 0;
}

void let_go(Users* users) {
  if (users != nullptr) --*users;
}

template <class Object>
void let_go_of(Object* object) {
  let_go(object != nullptr ? &object->users : nullptr);
}

void let_go_all(const Transmit& tx) {
  let_go_of(tx.cq);
  let_go_of(tx.send_cntr);
  let_go_of(tx.write_cntr);
  let_go_of(tx.read_cntr);
}

void let_go_all(const Receive& rx) {
  let_go_of(rx.cq);
  let_go_of(rx.recv_cntr);
  let_go_of(rx.remote_write_cntr);
  let_go_of(rx.remote_read_cntr);
}

Contexts& contexts_of(Endpoint& sep, bool sending) { return sending ? sep.tx_contexts : sep.rx_contexts; }

/// What was sent before an endpoint is closed still leaves; what it waits for is not waited for.
void close_halves(Endpoint& ep) {
  Engine& engine = *ep.domain->engine;
  engine.flush(Engine::kLingerNs);
  if (ep.srx != nullptr && ep.rx->open) leave(engine, *ep.srx->shared, *ep.rx);
  const bool quiet = !ep.rx->open || close_receive(engine, *ep.rx);
  const Engine::Duty duty(engine);
  end_waiting(duty.core(), ep);
  if (ep.tx->enabled) close_transmit(duty.core(), *ep.tx);
  Endpoint& owner = ep.parent != nullptr ? *ep.parent : ep;
  if (!quiet) {
    owner.number_count = 0;  // A number whose messages still arrive is not used again.
  } else if (ep.parent != nullptr) {
    contexts_of(owner, ep.sends).opened &= ~(std::uint64_t{1} << ep.index);
  }
}

int close(fid* object) {
  auto* ep = object_of<Endpoint>(object);
  if (ep->users.load() != 0) return -FI_EBUSY;
  if (ep->root == ep) {
    close_halves(*ep);
    let_go_all(*ep->tx);
    let_go_all(*ep->rx);
  } else {
    --ep->root->users;
  }
  let_go_of(ep->av);
  let_go_of(ep->eq);
  let_go_of(ep->srx);
  let_go_of(ep->stx);
  let_go_of(ep->parent);
  Domain& domain = *ep->domain;
  delete ep;
  --domain.users;
  return 0;
}

bool is_of_same(const Endpoint& ep, const EventQueueFid& eq) { return eq.fabric == ep.domain->fabric; }
template <class Object>
bool is_of_same(const Endpoint& ep, const Object& object) {
  return object.domain == ep.domain;
}

/// Puts an object of the same domain into all of its places, or into none: each has one at most.
template <class Object>
int place(const Endpoint& ep, std::initializer_list<Object**> slots, Object* object) {
  if (!is_of_same(ep, *object)) return -FI_EDOMAIN;
  for (Object* const* slot : slots) {
    if (*slot != nullptr && *slot != object) return -FI_EINVAL;
  }
  for (Object** slot : slots) {
    if (*slot == nullptr) ++object->users;
    *slot = object;
  }
  return 0;
}

int bind_cq(Endpoint& ep, CompletionQueue* cq, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  if ((flags & ~kKnown) != 0 || (flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EBADFLAGS;
  const bool sends = (flags & FI_TRANSMIT) != 0;
  const bool receives = (flags & FI_RECV) != 0;
  CompletionQueue** const first = sends ? &ep.tx->cq : &ep.rx->cq;
  if (const int result = place(ep, {first, receives ? &ep.rx->cq : first}, cq); result != 0) return result;
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (sends) ep.tx->selective = selective;
  if (receives) ep.rx->selective = selective;
  return 0;
}

int bind_cntr(Endpoint& ep, CounterFid* cntr, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((flags & ~kKnown) != 0) return -FI_EBADFLAGS;  // Of none it counts nothing.
  CounterFid* counts_nothing = cntr;
  const auto slot = [&](std::uint64_t flag, CounterFid** wanted) {
    return (flags & flag) != 0 ? wanted : &counts_nothing;
  };
  return place(ep,
               {slot(FI_SEND, &ep.tx->send_cntr), slot(FI_WRITE, &ep.tx->write_cntr), slot(FI_READ, &ep.tx->read_cntr),
                slot(FI_RECV, &ep.rx->recv_cntr), slot(FI_REMOTE_WRITE, &ep.rx->remote_write_cntr),
                slot(FI_REMOTE_READ, &ep.rx->remote_read_cntr)},
               cntr);
}

int bind(fid* object, fid* other, std::uint64_t flags) {
  Endpoint& ep = root_of(object);
  if (other == nullptr) return -FI_EINVAL;
  const bool enabled = ep.tx->enabled || ep.rx->open;
  if (enabled && other->fclass != FI_CLASS_MR) return -FI_EOPBADSTATE;
  switch (other->fclass) {
    case FI_CLASS_AV: return place(ep, {&ep.av}, object_of<AddressVector>(other));
    case FI_CLASS_CQ: return bind_cq(ep, object_of<CompletionQueue>(other), flags);
    case FI_CLASS_CNTR: return bind_cntr(ep, object_of<CounterFid>(other), flags);
    case FI_CLASS_EQ: return place(ep, {&ep.eq}, object_of<EventQueueFid>(other));
    case FI_CLASS_SRX_CTX: return ep.receives ? place(ep, {&ep.srx}, &root_of(other)) : -FI_EINVAL;
    case FI_CLASS_STX_CTX: return ep.sends ? place(ep, {&ep.stx}, object_of<SharedTransmit>(other)) : -FI_EINVAL;
    case FI_CLASS_MR: return bind_endpoint(*object_of<MemoryRegion>(other), ep);
    default: return -FI_EINVAL;
  }
}

/// Flags of operations are those of one direction: "FI_TRANSMIT or FI_RECV (not both)".
bool name_direction(std::uint64_t flags) { return ((flags & FI_TRANSMIT) != 0) != ((flags & FI_RECV) != 0); }

/// The same endpoint with other flags for the calls that take none.
int make_alias(Endpoint& ep, const struct fi_alias& wanted) {
  if (!name_direction(wanted.flags)) return -FI_EINVAL;
  return guarded([&] {
    auto alias = std::make_unique<Endpoint>();
    alias->fid = ep.fid;
    alias->domain = ep.domain;
    alias->tx = ep.tx;
    alias->rx = ep.rx;
    alias->sends = ep.sends;
    alias->receives = ep.receives;
    alias->caps = ep.caps;
    alias->tx_flags = (wanted.flags & FI_TRANSMIT) != 0 ? wanted.flags & ~FI_TRANSMIT : ep.tx_flags;
    alias->rx_flags = (wanted.flags & FI_RECV) != 0 ? wanted.flags & ~FI_RECV : ep.rx_flags;
    alias->root = ep.root;
    ++ep.root->users;
    ++ep.domain->users;
    *wanted.fid = &alias.release()->fid.fid;
    return 0;
  });
}

int change_flags(Endpoint& ep, std::uint64_t flags) {
  if (!name_direction(flags)) return -FI_EINVAL;
  if ((flags & FI_TRANSMIT) != 0) ep.tx_flags = flags & ~FI_TRANSMIT;
  if ((flags & FI_RECV) != 0) ep.rx_flags = flags & ~FI_RECV;
  return 0;
}

int tell_flags(const Endpoint& ep, std::uint64_t* flags) {
  if (!name_direction(*flags)) return -FI_EINVAL;
  *flags = (*flags & FI_TRANSMIT) != 0 ? ep.tx_flags : ep.rx_flags;
  return 0;
}

int control(fid* object, int command, void* argument) {
  auto& ep = *object_of<Endpoint>(object);
  switch (command) {
    case FI_ENABLE: return guarded([&] { return enable(*ep.root); });
    case FI_ALIAS: return make_alias(ep, *static_cast<const struct fi_alias*>(argument));
    case FI_SETOPSFLAG: return change_flags(ep, *static_cast<const std::uint64_t*>(argument));
    case FI_GETOPSFLAG: return tell_flags(ep, static_cast<std::uint64_t*>(argument));
    default: return -FI_ENOSYS;
  }
}

/// Options that there are: room that is left in a receive for many messages, and that devices do not reach each other's
/// memory, which none does.
enum class Option : std::uint8_t { kMinMultiReceive, kPeerToPeer };

/// @return 0 | -FI_ENOPROTOOPT | -FI_EOPNOTSUPP: one that needs devices (fi_endpoint(3), FI_OPT_XPU_TRIGGER)
int find_option(const Endpoint& ep, int level, int name, Option* option) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  if (name == FI_OPT_XPU_TRIGGER) return -FI_EOPNOTSUPP;
  *option = name == FI_OPT_FI_HMEM_P2P ? Option::kPeerToPeer : Option::kMinMultiReceive;
  return name == FI_OPT_FI_HMEM_P2P || (name == FI_OPT_MIN_MULTI_RECV && ep.receives) ? 0 : -FI_ENOPROTOOPT;
}

template <class Value>
int give_option(const Value& own, void* value, std::size_t* bytes) {
  if (*bytes < sizeof own) return -FI_ETOOSMALL;
  std::memcpy(value, &own, *bytes = sizeof own);
  return 0;
}

int get_option(fid* object, int level, int name, void* value, std::size_t* bytes) {
  const auto& ep = *object_of<Endpoint>(object);
  Option option{};
  if (const int result = find_option(ep, level, name, &option); result != 0) return result;
  if (option == Option::kPeerToPeer) return give_option(int{FI_HMEM_P2P_DISABLED}, value, bytes);
  return give_option(ep.rx->min_multi_recv, value, bytes);
}

int set_option(fid* object, int level, int name, const void* value, std::size_t bytes) {
  const auto& ep = *object_of<Endpoint>(object);
  Option option{};
  if (const int result = find_option(ep, level, name, &option); result != 0) return result;
  if (option == Option::kPeerToPeer) {
    if (bytes != sizeof(int)) return -FI_EINVAL;
    return *static_cast<const int*>(value) == FI_HMEM_P2P_DISABLED ? 0 : -FI_EOPNOTSUPP;
  }
  if (bytes != sizeof ep.rx->min_multi_recv) return -FI_EINVAL;
  std::memcpy(&ep.rx->min_multi_recv, value, bytes);
  return 0;
}

fi_ops object_calls = {sizeof(fi_ops), close, bind, control, refuse_ops, NotThere{}, NotThere{}};

int open_transmit(fid_ep* parent, int index, fi_tx_attr* attr, fid_ep** opened, void* context);
int open_receive(fid_ep* parent, int index, fi_rx_attr* attr, fid_ep** opened, void* context);

fi_ops_ep endpoint_calls = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = open_transmit,
    .rx_ctx = open_receive,
    .rx_size_left = NotThere{},
    .tx_size_left = NotThere{},  // fi_tx_size_left: what there is room for depends on the peer.
};

}  // namespace

Endpoint::~Endpoint() {
  if (number_count == 0) return;
  const Engine::Duty duty(*domain->engine);
  give_numbers(*domain->lane, first_number, number_count);
}

std::uint64_t limited(std::uint64_t caps, std::uint64_t of_context) {
  return caps & with_directions((of_context & kCallKinds) != 0 ? of_context : of_context | kCallKinds);
}

std::unique_ptr<Endpoint> make_endpoint(Domain& domain, std::size_t fclass, void* context) {
  auto ep = std::make_unique<Endpoint>();
  ep->domain = &domain;
  ep->fid.fid = {fclass, context, &object_calls};
  ep->fid.ops = &endpoint_calls;
  ep->fid.cm = &address_calls;
  ep->fid.msg = &message_calls;
  ep->fid.rma = &memory_calls;
  ep->fid.tagged = &tagged_calls;
  ep->fid.atomic = &atomic_calls;
  return ep;
}

int take_numbers_for(Endpoint& ep, std::uint32_t count) {
  const Engine::Duty duty(*ep.domain->engine);
  ep.first_number = take_numbers(*ep.domain->lane, count);
  if (ep.first_number == kMaxEndpoints) return -FI_ENOSPC;
  ep.number_count = count;
  return 0;
}

namespace {

fi_ops_msg no_messages = all_calls<fi_ops_msg>();
fi_ops_tagged no_tagged = all_calls<fi_ops_tagged>();
fi_ops_rma no_memory = all_calls<fi_ops_rma>();
fi_ops_atomic no_atomics = all_calls<fi_ops_atomic>();

/// An endpoint has the calls of "only those primary capabilities which were selected" (fi_getinfo(3)).
void give_calls(Endpoint& ep) {
  if ((ep.caps & FI_MSG) == 0) ep.fid.msg = &no_messages;
  if ((ep.caps & FI_TAGGED) == 0) ep.fid.tagged = &no_tagged;
  if ((ep.caps & FI_RMA) == 0) ep.fid.rma = &no_memory;
  if ((ep.caps & FI_ATOMIC) == 0) ep.fid.atomic = &no_atomics;
}

/// Of some modifiers, those of a context: they are "used to limit a primary capability", and those of a context "must
/// be a subset of those requested of the associated endpoint" (fi_getinfo(3), fi_endpoint(3)). So are its calls.
/// @param attributes  of the context; nullptr, or without capabilities: it has those of the endpoint
template <class Attributes>
std::uint64_t access_of(const Endpoint& ep, const Attributes* attributes, std::uint64_t modifiers) {
  const bool narrower = attributes != nullptr && attributes->caps != 0;
  return (narrower ? limited(ep.caps, attributes->caps) : ep.caps) & (modifiers | kCallKinds);
}

/// @pre its capabilities are set
void give_halves(Endpoint& ep, const fi_info& info, bool sends, bool receives, std::uint32_t number) {
  ep.sends = sends;
  ep.receives = receives;
  give_calls(ep);
  if (sends) {
    ep.tx->domain = ep.domain;
    ep.tx->number = number;
    ep.tx->access = access_of(ep, info.tx_attr, FI_SEND | FI_READ | FI_WRITE);
    ep.tx_flags = info.tx_attr != nullptr ? info.tx_attr->op_flags : 0;
  }
  ep.rx->number = number;  // Its contexts ask for it, too.
  if (!receives) return;
  ep.rx->domain = ep.domain;
  ep.rx->directed = (access_of(ep, info.rx_attr, FI_DIRECTED_RECV) & FI_DIRECTED_RECV) != 0;
  ep.rx->access = access_of(ep, info.rx_attr, FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE);
  ep.rx_flags = info.rx_attr != nullptr ? info.rx_attr->op_flags : 0;
}

/// @param info  attributes of the context
int open_context(fid_ep* parent_fid, std::size_t fclass, std::uint32_t index, const fi_info& info, fid_ep** opened,
                 void* context) {
  return guarded([&] {
    Endpoint& parent = root_of(&parent_fid->fid);
    const bool sends = fclass == FI_CLASS_TX_CTX;
    Contexts& contexts = contexts_of(parent, sends);
    if (index >= contexts.count) return -FI_EINVAL;
    auto ep = make_endpoint(*parent.domain, fclass, context);
    ep->caps = parent.caps & (sends ? ~std::uint64_t{FI_RECV} : ~std::uint64_t{FI_SEND | FI_READ | FI_WRITE});
    // Whichever context sends, it is the endpoint that others know.
    give_halves(*ep, info, sends, !sends, parent.first_number + (sends ? 0 : index));
    const Engine::Duty duty(*parent.domain->engine);
    const std::uint64_t bit = std::uint64_t{1} << index;
    if ((contexts.opened & bit) != 0) return -FI_EBUSY;
    contexts.opened |= bit;
    if (!sends) ep->rx->whole = parent.rx;
    ep->parent = &parent;
    ep->index = index;
    if (sends) ep->tx->context = index;
    ++parent.users;
    ++parent.domain->users;
    *opened = &ep.release()->fid;
    return 0;
  });
}

/// "Providers will return the actual attributes assigned to the context through the attr parameter, if provided."
template <class Attributes>
int open_attributed(fid_ep* parent, int index, Attributes* attr, fid_ep** opened, void* context) {
  constexpr bool kSends = std::is_same_v<Attributes, fi_tx_attr>;
  fi_info info{};
  if constexpr (kSends) {
    info.tx_attr = attr;
  } else {
    info.rx_attr = attr;
  }
  const int result = open_context(parent, kSends ? FI_CLASS_TX_CTX : FI_CLASS_RX_CTX, static_cast<std::uint32_t>(index),
                                  info, opened, context);
  if (result == 0 && attr != nullptr) give_attributes(attr, endpoint_of(parent).caps);
  return result;
}

int open_transmit(fid_ep* parent, int index, fi_tx_attr* attr, fid_ep** opened, void* context) {
  return open_attributed(parent, index, attr, opened, context);
}
int open_receive(fid_ep* parent, int index, fi_rx_attr* attr, fid_ep** opened, void* context) {
  return open_attributed(parent, index, attr, opened, context);
}

/// Contexts of a kind that a scalable endpoint has: none, where it uses a shared one. @param wanted  0: not specified
/// @return false if there are not so many
bool count_contexts(std::size_t wanted, Contexts* contexts) {
  const std::size_t count = wanted == FI_SHARED_CONTEXT ? 0 : std::max<std::size_t>(wanted, 1);
  contexts->count = static_cast<std::uint32_t>(std::min<std::size_t>(count, kMaxEndpoints));
  return count <= kMaxEndpoints;
}

int open_kind(fid_domain* domain_fid, fi_info* info, bool scalable, fid_ep** opened, void* context) {
  return guarded([&] {
    auto& domain = *object_of<Domain>(domain_fid);
    if (info == nullptr || info->ep_attr == nullptr || info->ep_attr->type != FI_EP_RDM) return -FI_EINVAL;
    auto ep = make_endpoint(domain, scalable ? FI_CLASS_SEP : FI_CLASS_EP, context);
    if (scalable && !(count_contexts(info->ep_attr->tx_ctx_cnt, &ep->tx_contexts) &&
                      count_contexts(info->ep_attr->rx_ctx_cnt, &ep->rx_contexts)))
      return -FI_EINVAL;
    // Those that send share the first number.
    if (const int result = take_numbers_for(*ep, std::max(ep->rx_contexts.count, 1u)); result != 0) return result;
    ep->caps = with_directions(info->caps);
    ep->wants_srx = info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
    ep->wants_stx = info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
    give_halves(*ep, *info, !scalable || ep->wants_stx, !scalable || ep->wants_srx, ep->first_number);
    ++domain.users;
    *opened = &ep.release()->fid;
    return 0;
  });
}

}  // namespace

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** opened, void* context) {
  return open_kind(domain, info, false, opened, context);
}
int open_scalable(fid_domain* domain, fi_info* info, fid_ep** opened, void* context) {
  return open_kind(domain, info, true, opened, context);
}

}  // namespace portofu::fabric
