#include "lib/libfabric/receive.h"

#include <algorithm>
#include <optional>

#include "lib/libfabric/halves.h"
#include "lib/libfabric/info.h"

namespace portofu::fabric {
namespace {

WordKind receive_kind_of(const ReceiveCall& call) {
  return call.portal == PortalUse::kTagged ? WordKind::kTaggedReceive : WordKind::kReceive;
}
void* word_of(const ReceiveCall& call) { return make_word(receive_kind_of(call), call.msg.context); }

/// On duty: whom the message is to come from. @return false if that is nobody; `source` nullptr: from anybody
[[gnu::always_inline]] inline bool find_source(const Receive& rx, const ReceiveCall& call, const Address** source) {
  *source = nullptr;
  if (!rx.directed || call.msg.addr == FI_ADDR_UNSPEC) return true;
  std::uint32_t context = 0;
  // A shared context has the vector of its endpoints, and may have none yet.
  if (rx.av != nullptr) *source = rx.av->find(call.msg.addr, &context);
  return *source != nullptr;
}

/// @param source  as find_source says
[[gnu::always_inline]] inline void write_criteria(const ReceiveCall& call, const Address* source,
                                                  MatchCriteria& criteria) {
  criteria.match_bits = call.msg.tag;
  criteria.ignore_bits = call.msg.ignore;
  criteria.any_nid = criteria.any_pid = source == nullptr;
  criteria.match_id = {};
  if (source != nullptr) criteria.match_id = portofu::endpoint_of(source->process(), source->number);
}

/// On duty. @return false if the source is nobody
bool criteria_of(const Receive& rx, const ReceiveCall& call, MatchCriteria* criteria) {
  const Address* source = nullptr;
  if (!find_source(rx, call, &source)) return false;
  write_criteria(call, source, *criteria);
  return true;
}

/// On duty: a slot with the memory of several pieces that count as one.
[[gnu::noinline]] ssize_t take_slot_for_pieces(Interface& ni, const fi_msg_tagged& msg, ListEntry** slot) {
  MemorySegment segment;  // Before there is a slot, because it may throw.
  if (!segment.describe(msg.msg_iov, msg.iov_count)) return -FI_EINVAL;
  *slot = new_entry(ni);
  if (*slot == nullptr) return -FI_EAGAIN;
  (*slot)->segment = std::move(segment);
  return 0;
}

/// On duty: a slot with the memory of a call.
/// @return 0 | -FI_EINVAL | -FI_EAGAIN: there is no space
[[gnu::always_inline]] inline ssize_t take_slot(Interface& ni, const fi_msg_tagged& msg, ListEntry** slot) {
  if (msg.iov_count > 1) [[unlikely]]
    return take_slot_for_pieces(ni, msg, slot);
  *slot = new_entry(ni);
  if (*slot == nullptr) return -FI_EAGAIN;
  const iovec piece = msg.iov_count == 1 ? *msg.msg_iov : iovec{};
  (*slot)->segment.describe(piece.iov_base, piece.iov_len);
  return 0;
}

/// On duty: what counts the message; a work has a counter of its own, or none.
Handle counter_of(const Receive& rx, const ReceiveCall& call) {
  if (call.deferral != nullptr) [[unlikely]]
    return call.deferral->completion;
  return rx.recv_cntr != nullptr ? rx.recv_cntr->ct_handle : 0;
}

/// How its success is told. Of a receive that does not ask for a completion nobody is told; but at a shared context
/// that is for the endpoint to say which the message is for.
std::uint32_t telling_of(const Receive& rx, const ReceiveCall& call) {
  if ((call.flags & FI_COMPLETION) != 0) return 0;
  return kEntryEventSuccessDisable | (rx.shared && call.deferral == nullptr ? kEntryInletDecides : 0);
}

/// On duty: the entry of a receive.
/// @return as take_slot, or -FI_EINVAL: its source is nobody
[[gnu::always_inline]] inline ssize_t make_entry(Interface& ni, const Receive& rx, const ReceiveCall& call,
                                                 ListEntry** made) {
  const Address* source = nullptr;
  if (!find_source(rx, call, &source)) return -FI_EINVAL;
  if (const ssize_t result = take_slot(ni, call.msg, made); result != 0) return result;
  ListEntry* const entry = *made;
  write_criteria(call, source, entry->criteria);
  // What is fetched from it is fetched by atomics: nothing else that reads comes by a tag.
  std::uint32_t options = kEntryOpPut | kEntryTakesData | kEntryEventLinkDisable;
  if (call.portal == PortalUse::kTagged) options |= kEntryOpGet;
  if ((call.flags & FI_MULTI_RECV) != 0) [[unlikely]] {
    options |= kEntryManageLocal;
    entry->min_free = std::max<std::size_t>(rx.min_multi_recv, 1);
  } else {
    options |= kEntryUseOnce | kEntryEventUnlinkDisable;
  }
  if ((call.flags & FI_COMPLETION) == 0) [[unlikely]]
    options |= telling_of(rx, call);
  if (rx.recv_cntr != nullptr || rx.shared || call.deferral != nullptr) [[unlikely]] {
    const bool tells_inlet = rx.shared && call.deferral == nullptr;
    entry->ct_handle = entry->read_ct_handle = counter_of(rx, call);
    if (entry->ct_handle != 0 || tells_inlet) options |= kEntryEventCtComm;
  }
  entry->options = options;
  entry->user_ptr = word_of(call);
  entry->pt_index = portal_of(rx.number, call.portal);
  return 0;
}

/// A completion that no message makes: at a shared context that of the endpoint whose message was found, or of the
/// first.
/// @param header  what was found; nullptr: nothing
void tell(Core& core, const Receive& rx, const ReceiveCall& call, const UnexpectedHeader* header, NiFail fail) {
  Interface& ni = interface_of(core);
  const std::uint16_t pt_index = header != nullptr ? header->pt_index : portal_of(rx.number, call.portal);
  const Handle eq_handle = ni.eq_for(rx.shared || rx.cq == nullptr ? 0 : rx.cq->eq_handle, pt_index);
  if (fail == NiFail::kOk && ni.is_quiet(telling_of(rx, call), pt_index)) return;
  post_new_event(core, ni, eq_handle, [&](Event& event) {
    event.type = (call.flags & FI_MULTI_RECV) != 0 && fail != NiFail::kOk ? EventKind::kAutoUnlink : EventKind::kPut;
    event.user_ptr = word_of(call);
    event.pt_index = pt_index;
    event.match_bits = call.msg.tag;
    event.ni_fail_type = fail;
    if (header == nullptr) return;
    event.match_bits = header->key.match_bits;
    event.initiator = header->key.source;
    event.hdr_data = header->hdr_data;
    event.has_data = header->has_data;
    event.mlength = event.rlength = header->rlength;
  });
}

/// A failure that no message makes, counted where the messages of the receive are.
void count_failed(Core& core, const Receive& rx, const ReceiveCall& call) {
  Interface& ni = interface_of(core);
  const Handle own = counter_of(rx, call);
  count_failure(core, ni, call.deferral != nullptr ? own : ni.ct_for(own, portal_of(rx.number, call.portal)));
}

/// Where a context keeps the message that it has claimed (FI_CONTEXT: the application gives the room).
void*& claimed_by(void* context) { return static_cast<fi_context*>(context)->internal[0]; }

ssize_t peek(Core& core, const Receive& rx, const ReceiveCall& call) {
  MatchCriteria criteria;
  if (!criteria_of(rx, call, &criteria)) return -FI_EINVAL;
  if ((call.flags & FI_CLAIM) != 0 && call.msg.context == nullptr) return -FI_EINVAL;
  Interface& ni = interface_of(core);
  const std::uint16_t pt_index = portal_of(rx.number, call.portal);
  UnexpectedHeader* header = find_header(ni, pt_index, criteria);
  const bool discards = (call.flags & FI_DISCARD) != 0;
  if ((call.flags & FI_CLAIM) != 0) claimed_by(call.msg.context) = discards ? nullptr : header;
  tell(core, rx, call, header, header != nullptr ? NiFail::kOk : NiFail::kNoMatch);
  if (header == nullptr) {
    ni.portal(pt_index)->miss(criteria);
    note_miss(core);
    return 0;
  }
  if ((call.flags & (FI_CLAIM | FI_DISCARD)) != 0) hold_header(ni, pt_index, *header);
  if (discards) drop_held(core, ni, *header);
  return 0;
}

/// On duty: whether somebody can be told of what a shared context receives: without endpoints nobody can.
bool has_inlet(const Interface& ni, std::uint16_t pt_index) {
  const Inlet& inlet = (*ni.inlets)[pt_index];
  return inlet.eq_handle != 0 || inlet.ct_handle != 0;
}

/// On duty: the message that a context has claimed of those that the call receives. @return nullptr: there is none
UnexpectedHeader* claimed_message(const Interface& ni, const Receive& rx, const ReceiveCall& call) {
  if (call.msg.context == nullptr) return nullptr;
  const void* const wanted = claimed_by(call.msg.context);
  const UnexpectedList& held = ni.portal(portal_of(rx.number, call.portal))->held;
  for (UnexpectedEntry* entry = held.first(); entry != nullptr; entry = UnexpectedList::next(*entry)) {
    auto* const header = static_cast<UnexpectedHeader*>(entry);
    if (header == wanted) return header;
  }
  return nullptr;
}

[[gnu::noinline]] ssize_t take_claimed(Core& core, const Receive& rx, const ReceiveCall& call) {
  Interface& ni = interface_of(core);
  UnexpectedHeader* const header = claimed_message(ni, rx, call);
  if (header == nullptr) return -FI_EINVAL;
  if (rx.shared && !has_inlet(ni, header->pt_index)) return -FI_EOPBADSTATE;
  if ((call.flags & FI_DISCARD) != 0) {
    claimed_by(call.msg.context) = nullptr;
    tell(core, rx, call, header, NiFail::kOk);
    drop_held(core, ni, *header);
    return 0;
  }
  ListEntry* entry = nullptr;
  if (const ssize_t result = make_entry(ni, rx, call, &entry); result != 0) return result;
  take_held(core, ni, *header, *entry);
  claimed_by(call.msg.context) = nullptr;
  return 0;
}

[[gnu::always_inline]] inline ssize_t append(Core& core, const Receive& rx, const ReceiveCall& call) {
  Interface& ni = interface_of(core);
  ListEntry* entry = nullptr;
  if (const ssize_t result = make_entry(ni, rx, call, &entry); result != 0) return result;
  if (append_new(core, ni, *entry) != Status::kOk) return -FI_EAGAIN;
  if (rx.domain->lane->sleepers != 0) [[unlikely]]
    look_after_sleepers(core, *rx.domain->lane);  // They may wait for it.
  return 0;
}

/// A receive that waits for a counter.
struct DeferredReceive : KeptCall {
  std::shared_ptr<const Receive> rx;
  ReceiveCall call;
  std::vector<iovec> pieces;  ///< Of `call`.
  Deferral deferral;          ///< Of `call`.
};

void post_deferred(Core& core, LocalCall& local) {
  auto& deferred = static_cast<DeferredReceive&>(local);
  const Receive& rx = *deferred.rx;
  if (rx.enabled && append(core, rx, deferred.call) != 0) {
    tell(core, rx, deferred.call, nullptr, NiFail::kDropped);
    count_failed(core, rx, deferred.call);
  }
  deferred.domain->local_calls.erase(&local);
}

/// On duty.
ssize_t defer(const Endpoint& ep, const ReceiveCall& call) {
  const Trigger trigger =
      call.deferral != nullptr ? call.deferral->trigger : trigger_of(*ep.domain, call.msg.context, call.flags);
  const void* owner = call.deferral != nullptr ? call.deferral->owner : nullptr;
  auto deferred = std::make_shared<DeferredReceive>();
  deferred->run = post_deferred;
  deferred->domain = ep.domain;
  deferred->rx = ep.rx;
  deferred->call = call;
  deferred->pieces.assign(call.msg.msg_iov, call.msg.msg_iov + call.msg.iov_count);
  deferred->call.msg.msg_iov = deferred->pieces.data();
  if (call.deferral != nullptr) {
    deferred->deferral = *call.deferral;
    deferred->call.deferral = &deferred->deferral;
  }
  deferred->changes = deferred->deferral.completion;
  return keep(std::move(deferred), trigger, {owner, ep.rx.get()});
}

/// What counts the end of an operation of an endpoint.
const CounterFid* counter_for(const Transmit& tx, WordKind kind) {
  if ((flags_of(kind) & FI_SEND) != 0) return tx.send_cntr;
  return (flags_of(kind) & FI_WRITE) != 0 ? tx.write_cntr : tx.read_cntr;
}

/// On duty: cancels an operation that has not left, or a receive that is not posted, because it waits for a counter.
bool cancel_waiting(Core& core, const Endpoint& ep, const void* context) {
  std::optional<ReceiveCall> received;
  void* sent = nullptr;
  const bool found = take_operation_out(core, ep, [&](const Descriptor& d) {
    if (d.type == PacketType::kLocalCall && d.call->run == post_deferred) {
      const ReceiveCall& call = static_cast<const DeferredReceive&>(*d.call).call;
      if (call.msg.context != context) return false;
      received = call;
      return true;
    }
    const Descriptor* transfer = transfer_of(d);
    if (transfer == nullptr) return false;
    sent = transfer->portals.user_ptr;
    return kind_of(sent) != WordKind::kNone && context_of(sent) == context;
  });
  if (!found) return false;
  Interface& ni = interface_of(core);
  if (received.has_value()) {
    tell(core, *ep.rx, *received, nullptr, NiFail::kCanceled);
    count_failed(core, *ep.rx, *received);
    return true;
  }
  post_new_event(core, ni, ep.tx->cq != nullptr ? ep.tx->cq->eq_handle : 0, [&](Event& event) {
    event.type = EventKind::kSend;
    event.user_ptr = sent;
    event.ni_fail_type = NiFail::kCanceled;
  });
  const CounterFid* cntr = counter_for(*ep.tx, kind_of(sent));
  count_failure(core, ni, cntr != nullptr ? cntr->ct_handle : 0);
  return true;
}

/// On duty: whether a transfer is of an endpoint, or of a context, and of no other one that sends under its number.
bool is_sent_by(const Interface& ni, const Transmit& tx, const Descriptor& d) {
  if (d.interface_index != kFabricInterface || d.endpoint != tx.number) return false;
  const MemoryDescriptor* md = ni.mds.find(d.portals.md_handle);
  return md != nullptr && md->options >> kMdContextShift == tx.context;
}

/// On duty: cancels an operation that waits in the engine: for a fence, or for room towards its peer. What goes in
/// parts stays, since some may have left.
bool cancel_queued(Core& core, const Endpoint& ep, const void* context) {
  return cancel_request(core, [&](const Descriptor& d) {
    if (!is_sent_by(interface_of(core), *ep.tx, d)) return false;
    const void* word = d.portals.user_ptr;
    return kind_of(word) != WordKind::kNone && context_of(word) == context && !is_part(*ep.domain, core, d);
  });
}

/// On duty: the receive of a context that waits in a list; nullptr if there is none.
ListEntry* find_receive(const Core& core, const Receive& rx, const void* context) {
  for (const PortalUse use : {PortalUse::kTagged, PortalUse::kMessage}) {
    PortalTableEntry* const portal = interface_of(core).portal(portal_of(rx.number, use));
    if (portal == nullptr) continue;  // It takes none of these.
    const MatchList& list = portal->priority;
    for (MatchEntry* entry = list.first(); entry != nullptr; entry = MatchList::next(*entry)) {
      auto& listed = static_cast<ListEntry&>(*entry);
      if (context_of(listed.user_ptr) == context) return &listed;
    }
  }
  return nullptr;
}

/// append, written down as a call.
[[gnu::cold, gnu::noinline]] ssize_t append_recorded(Core& core, const Receive& rx, const ReceiveCall& call) {
  const std::uint64_t bytes = length_of(call.msg.msg_iov, call.msg.iov_count);
  const RecordedCall recorded(core, recorded_as(receive_kind_of(call)), bytes);
  return append(core, rx, call);
}

/// What is no receive that is posted now. @pre the call is well formed
[[gnu::noinline]] ssize_t receive_otherwise(const Endpoint& ep, const ReceiveCall& call) {
  const bool waits = call.deferral != nullptr || (call.flags & FI_TRIGGER) != 0;
  // Where a context keeps a claim, a triggered one has what it waits for.
  if (waits && (call.flags & (FI_PEEK | FI_CLAIM)) != 0) return -FI_ENOSYS;
  Engine& engine = *ep.domain->engine;
  if ((call.flags & FI_PEEK) != 0) engine.step();
  const Engine::Duty duty(engine);
  const RecordedCall recorded(duty.core(), recorded_as(receive_kind_of(call)),
                              length_of(call.msg.msg_iov, call.msg.iov_count),
                              waits ? CallStarts::kByCounter : CallStarts::kAtOnce);
  if (waits) return defer(ep, call);
  return (call.flags & FI_PEEK) != 0 ? peek(duty.core(), *ep.rx, call) : take_claimed(duty.core(), *ep.rx, call);
}

/// @see receive. Inlined where much of the call is known: nothing of it has to be written down then, as long as only a
/// copy of it has an address.
[[gnu::always_inline]] inline ssize_t receive_here(Endpoint& ep, const ReceiveCall& call) {
  return guarded([&]() __attribute__((always_inline))->ssize_t {
    const Receive& rx = *ep.rx;
    if (!rx.enabled || (flags_of(receive_kind_of(call)) & ~rx.access) != 0) return -FI_EOPBADSTATE;
    if ((call.flags & (FI_PEEK | FI_CLAIM | FI_TRIGGER)) != 0 || call.deferral != nullptr) [[unlikely]] {
      const ReceiveCall copy = call;
      return receive_otherwise(ep, copy);
    }
    Engine& engine = *ep.domain->engine;
    const Engine::Duty duty(engine);
    ssize_t result = 0;
    if (duty.core().observers != nullptr) [[unlikely]] {
      const ReceiveCall copy = call;
      result = append_recorded(duty.core(), rx, copy);
    } else {
      result = append(duty.core(), rx, call);
    }
    engine.settle_on_duty();
    return result;
  });
}

}  // namespace

ssize_t receive(Endpoint& ep, const ReceiveCall& call) { return receive_here(ep, call); }

ssize_t receive_buffer(fid_ep* fid, void* buffer, std::size_t bytes, void*, fi_addr_t source, void* context) {
  Endpoint& ep = endpoint_of(fid);
  const iovec piece{buffer, bytes};
  return receive_here(
      ep, {PortalUse::kMessage, {&piece, nullptr, 1, source, kNoTag, kIgnoresAll, context, 0}, ep.receiving()});
}

ssize_t receive_tagged_buffer(fid_ep* fid, void* buffer, std::size_t bytes, void*, fi_addr_t source, std::uint64_t tag,
                              std::uint64_t ignore, void* context) {
  Endpoint& ep = endpoint_of(fid);
  const iovec piece{buffer, bytes};
  return receive_here(
      ep, {PortalUse::kTagged, {&piece, nullptr, 1, source, tag, ignore, context, 0}, ep.receiving() & ~kNotOfTags});
}

namespace {

/// On duty.
ssize_t cancel_on_duty(Core& core, const Endpoint& ep, void* context) {
  const ListEntry* entry = ep.rx->enabled ? find_receive(core, *ep.rx, context) : nullptr;
  if (entry == nullptr) return cancel_waiting(core, ep, context) || cancel_queued(core, ep, context) ? 0 : -FI_ENOENT;
  ReceiveCall call;
  if (kind_of(entry->user_ptr) == WordKind::kTaggedReceive) call.portal = PortalUse::kTagged;
  call.msg.context = context;
  call.msg.tag = entry->criteria.match_bits;
  call.flags = (entry->options & kEntryManageLocal) != 0 ? FI_MULTI_RECV : 0;
  // Deferred work of a shared context has a counter of its own, or none.
  Interface& ni = interface_of(core);
  const bool counts = (entry->options & kEntryEventCtComm) != 0;
  const Handle ct_handle = counts ? ni.ct_for(entry->ct_handle, entry->pt_index) : 0;
  const bool is_busy = entry->pending != 0;  // A buffer for many messages: its end comes when they are whole.
  const Status ended = is_busy ? cancel_entry(core, ni, entry->handle) : unlink_entry(core, ni, entry->handle);
  if (ended != Status::kOk) return -FI_EBUSY;
  if (!is_busy) tell(core, *ep.rx, call, nullptr, NiFail::kCanceled);
  count_failure(core, ni, ct_handle);
  return 0;
}

}  // namespace

/// "Operations posted without a valid context parameter ... cannot be canceled" (fi_endpoint(3)).
ssize_t cancel(fid* object, void* context) {
  return guarded([&]() -> ssize_t {
    const auto& ep = *object_of<Endpoint>(object);
    if (context == nullptr) return -FI_ENOENT;
    const Engine::Duty duty(*ep.domain->engine);
    return cancel_on_duty(duty.core(), ep, context);
  });
}

}  // namespace portofu::fabric
