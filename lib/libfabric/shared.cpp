// fi_endpoint(3), "shared contexts". Endpoints that share their receives have the lists of the shared context in place
// of their own, in the same portal table entries; what is told of a message goes by the endpoint that it came by.

#include "engine/door/libfabric.h"
#include "lib/libfabric/endpoint.h"
#include "lib/libfabric/halves.h"

namespace portofu::fabric {
namespace {

constexpr std::array kShared = {PortalUse::kTagged, PortalUse::kMessage};

/// Whether a member receives messages of a kind.
bool takes(const Receive& member, PortalUse use) {
  return (member.access & (use == PortalUse::kTagged ? FI_TAGGED : FI_MSG)) != 0;
}

/// On duty: what arrives by a portal table entry of a member, from each peer one message at most.
template <class Visit>
void visit_arrivals(const Core& core, std::uint16_t pt_index, Visit&& visit) {
  for (const auto& [key, peer] : core.peers) {
    Arrival& arrival = peer->request_stream;
    const PacketHeader& header = arrival.header;
    if (arrival.mode == ArrivalMode::kDeliver && header.interface_index == kFabricInterface &&
        header.pt_index == pt_index)
      visit(arrival);
  }
}

bool is_anything_arriving(const Core& core, const Receive& member) {
  bool found = false;
  for (const PortalUse use : kShared)
    visit_arrivals(core, portal_of(member.number, use), [&](const Arrival&) { found = true; });
  return found;
}

/// On duty: what nobody has received of a member's messages is dropped, as that of any endpoint which is closed. A
/// message that was claimed is promised to whoever claimed it, and becomes one of nobody.
void drop_unreceived(Core& core, Interface& ni, PortalTableEntry& portal, std::uint16_t pt_index,
                     std::uint16_t shared_index) {
  for (UnexpectedEntry* entry = portal.held.first(); entry != nullptr; entry = UnexpectedList::next(*entry)) {
    auto& header = static_cast<UnexpectedHeader&>(*entry);
    if (header.pt_index == pt_index) header.pt_index = shared_index;
  }
  for (UnexpectedEntry* entry = portal.unexpected.first(); entry != nullptr;) {
    auto& header = static_cast<UnexpectedHeader&>(*entry);
    entry = UnexpectedList::next(*entry);
    if (header.pt_index != pt_index) continue;
    hold_header(ni, shared_index, header);
    drop_held(core, ni, header);
  }
}

/// On duty: what still arrives for a member, from a peer that has been stopped, is told as what belongs to nobody.
void adopt_arrivals(const Core& core, const SharedReceive& shared, const Receive& member) {
  for (const PortalUse use : kShared) {
    const std::uint16_t shared_index = portal_of(shared.rx->number, use);
    visit_arrivals(core, portal_of(member.number, use), [=](Arrival& arrival) {
      arrival.header.pt_index = shared_index;
      if (arrival.unexpected != nullptr) arrival.unexpected->pt_index = shared_index;
    });
  }
}

Inlet inlet_of(const Receive& rx) {
  return {rx.cq != nullptr ? rx.cq->eq_handle : 0, rx.recv_cntr != nullptr ? rx.recv_cntr->ct_handle : 0,
          !rx.selective};
}

/// @pre the interface has inlets: some shared context was opened
void set_inlet(Interface& ni, std::uint32_t number, const Inlet& inlet) {
  for (const PortalUse use : kShared) (*ni.inlets)[portal_of(number, use)] = inlet;
}

/// What belongs to no member is told at the first: a receive that is canceled. Without members nobody is told, and so
/// nothing is received.
void choose_first(Interface& ni, SharedReceive& shared) {
  const Receive* first = shared.members.empty() ? nullptr : shared.members.front();
  shared.rx->cq = first != nullptr ? first->cq : nullptr;
  shared.rx->av = first != nullptr ? first->av : nullptr;
  set_inlet(ni, shared.rx->number, first != nullptr ? inlet_of(*first) : Inlet{});
  for (const PortalUse use : kShared)
    if (PortalTableEntry* portal = ni.portal(portal_of(shared.rx->number, use))) portal->enabled = first != nullptr;
}

int close_transmit_context(fid* object) {
  auto* stx = object_of<SharedTransmit>(object);
  if (stx->users.load() != 0) return -FI_EBUSY;
  --stx->domain->users;
  delete stx;
  return 0;
}

fi_ops transmit_object = {sizeof(fi_ops), close_transmit_context, refuse_bind, refuse_control, refuse_ops, NotThere{},
                          NotThere{}};

}  // namespace

void join(Core& core, SharedReceive& shared, Receive& member) {
  Interface& ni = interface_of(core);
  shared.members.push_back(&member);
  for (const PortalUse use : kShared) {
    if (takes(member, use))
      ni.portal_table[portal_of(member.number, use)] = ni.portal_table[portal_of(shared.rx->number, use)];
  }
  set_inlet(ni, member.number, inlet_of(member));
  choose_first(ni, shared);
}

void leave(Engine& engine, SharedReceive& shared, const Receive& member) {
  {
    const Engine::Duty duty(engine);
    Interface& ni = interface_of(duty.core());
    for (const PortalUse use : kShared) {
      const std::uint16_t pt_index = portal_of(member.number, use);
      if (PortalTableEntry* portal = ni.portal(pt_index))
        drop_unreceived(duty.core(), ni, *portal, pt_index, portal_of(shared.rx->number, use));
      ni.portal_table[pt_index].reset();
    }
  }
  // Messages in the middle of a receive are told where they belong.
  auto is_quiet = [&](const Core& core) { return !is_anything_arriving(core, member); };
  engine.wait(is_quiet, Engine::kLingerNs, OnAbort::kGoOn);
  const Engine::Duty duty(engine);
  adopt_arrivals(duty.core(), shared, member);
  set_inlet(interface_of(duty.core()), member.number, {});
  std::erase(shared.members, &member);
  choose_first(interface_of(duty.core()), shared);
}

int open_shared_receive(fid_domain* domain_fid, fi_rx_attr* attr, fid_ep** opened, void* context) {
  return guarded([&] {
    auto& domain = *object_of<Domain>(domain_fid);
    if (attr != nullptr && (attr->op_flags & FI_PEER) != 0) return -FI_EBADFLAGS;
    auto ep = make_endpoint(domain, FI_CLASS_SRX_CTX, context);
    if (const int result = take_numbers_for(*ep, 1); result != 0) return result;
    ep->shared = std::make_unique<SharedReceive>();
    ep->shared->rx = ep->rx;
    ep->receives = true;
    ep->rx_flags = attr != nullptr ? attr->op_flags : 0;
    ep->rx->domain = &domain;
    ep->rx->number = ep->first_number;
    ep->rx->directed = attr != nullptr && (attr->caps & FI_DIRECTED_RECV) != 0;
    ep->rx->access = limited(FI_RECV | FI_MSG | FI_TAGGED, FI_RECV | (attr != nullptr ? attr->caps : 0));
    ep->rx->shared = ep->rx->enabled = true;
    ep->rx->selective = true;  // What is told without being asked for, each endpoint says.
    const Engine::Duty duty(*domain.engine);
    Interface& ni = interface_of(duty.core());
    if (ni.inlets == nullptr) ni.inlets = std::make_unique<Inlets>();
    open_receive_half(duty.core(), *ep->rx);  // The last that takes memory.
    choose_first(ni, *ep->shared);
    ++domain.users;
    *opened = &ep.release()->fid;
    return 0;
  });
}

int open_shared_transmit(fid_domain* domain, fi_tx_attr*, fid_stx** opened, void* context) {
  return guarded([&] {
    auto stx = std::make_unique<SharedTransmit>();
    stx->domain = object_of<Domain>(domain);
    ++stx->domain->users;
    stx->fid.fid = {FI_CLASS_STX_CTX, context, &transmit_object};
    *opened = &stx.release()->fid;
    return 0;
  });
}

}  // namespace portofu::fabric
