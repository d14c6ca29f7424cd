#include "lib/libfabric/transmit.h"

#include "engine/initiator/send.h"
#include "lib/libfabric/info.h"

namespace portofu::fabric {
namespace {

bool is_reading(DescriptorKind kind) { return kind == DescriptorKind::kGet || is_fetching(kind); }

/// How the call is to be told of.
MdUse md_use_of(const TransmitCall& call, DescriptorKind kind) {
  const bool quiet = (call.flags & FI_COMPLETION) == 0;
  const bool injects = (call.flags & FI_INJECT) != 0;
  if (is_reading(kind)) return quiet ? MdUse::kReadQuiet : MdUse::kRead;
  if (call.portal == PortalUse::kMemory)
    return !quiet ? MdUse::kWrite : injects ? MdUse::kWriteInject : MdUse::kWriteQuiet;
  if ((call.flags & FI_DELIVERY_COMPLETE) != 0) return quiet ? MdUse::kSendAckQuiet : MdUse::kSendAck;
  return !quiet ? MdUse::kSend : injects ? MdUse::kInject : MdUse::kSendQuiet;
}

AckRequest ack_for(MdUse use) {
  return use == MdUse::kSend || use == MdUse::kSendQuiet || use == MdUse::kInject ? AckRequest::kNone
                                                                                  : AckRequest::kFull;
}

/// On duty: a memory descriptor for several pieces, or for what is told otherwise than all else. @return nullptr: none
MemoryDescriptor* own_memory(Interface& ni, const MemoryDescriptor& like, const TransmitCall& call) {
  Handle handle = 0;
  MemoryDescriptor* md = ni.mds.allocate(&handle);
  if (md == nullptr) return nullptr;
  *md = {};
  md->options = like.options | kMdOneShot | ((call.flags & FI_INJECT) != 0 ? kMdVolatile : 0) |
                (call.counts ? 0 : kMdEventSuccessDisable);
  md->handle = handle;
  md->eq_handle = like.eq_handle;
  md->ct_handle = call.deferral.completion != nullptr ? call.deferral.completion->ct_handle
                  : call.counts                       ? like.ct_handle
                                                      : 0;
  return md;
}

/// On duty: the memory descriptor for some memory: that of the whole address space, or one of its own.
/// @param offset  set to where the memory is in it
MemoryDescriptor* memory_of(Interface& ni, const Transmit& tx, const TransmitCall& call, MdUse use,
                            std::uint64_t* offset) {
  MemoryDescriptor& whole = *ni.mds.find(tx.mds[static_cast<std::size_t>(use)]);
  const bool copied = (call.flags & FI_INJECT) != 0 && !is_injecting(use) && use < MdUse::kRead;
  const bool is_plain = call.counts && call.deferral.completion == nullptr && !copied;
  if (call.piece_count <= 1)
    *offset = call.piece_count == 1 ? reinterpret_cast<std::uintptr_t>(call.pieces->iov_base) : 0;
  if (call.piece_count <= 1 && is_plain) return &whole;
  MemoryDescriptor* md = own_memory(ni, whole, call);
  if (md == nullptr) return nullptr;
  if (call.piece_count <= 1) {
    md->segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
  } else {
    md->segment.describe(call.pieces, call.piece_count);
    *offset = 0;
  }
  return md;
}

/// On duty. @return false: there is no memory descriptor left
bool name_memory(Interface& ni, const Transmit& tx, const TransmitCall& call, MdUse use, Descriptor& d) {
  const bool fetching = is_fetching(d.kind);
  const MemoryDescriptor* md = memory_of(ni, tx, call, fetching ? MdUse::kOperand : use, &d.local_offset);
  if (md == nullptr) return false;
  d.md_handle = md->handle;
  if (!fetching) return true;
  TransmitCall results = call;
  results.pieces = call.results;
  results.piece_count = call.result_count;
  const MemoryDescriptor* get_md = memory_of(ni, tx, results, use, &d.local_get_offset);
  if (get_md == nullptr) return false;
  d.get_md_handle = get_md->handle;
  return true;
}

/// On duty: whether the target takes more, and whether what has to be over is over (FI_FENCE).
bool has_room(Core& core, const Descriptor& d, std::uint64_t flags) {
  const Peer& peer = core.peer(d.target);
  if (peer.requests.waiting.size() >= kTransmitSize) return false;
  return (flags & FI_FENCE) == 0 || (peer.outstanding == 0 && peer.requests.waiting.empty() && !peer.has_lent());
}

bool name_target(const Transmit& tx, const TransmitCall& call, Descriptor& d) {
  std::uint32_t context = 0;
  const Address* address = tx.av->find(call.target, &context);
  if (address == nullptr || address->number + context >= kMaxEndpoints) return false;
  d.target = address->process();
  d.pt_index = portal_of(address->number + context, call.portal);
  return true;
}

void post(Engine& engine, Core& core, const Descriptor& d) {
  Interface& ni = interface_of(core);
  MemoryDescriptor& md = *ni.mds.find(d.md_handle);
  // Memory of its own is held, and freed, on the general way.
  const bool plain = (md.options & kMdOneShot) == 0 &&
                     (!is_fetching(d.kind) || (ni.mds.find(d.get_md_handle)->options & kMdOneShot) == 0);
  if (plain && send_at_once(core, ni, md, d)) return engine.settle_on_duty();
  engine.post_on_duty(d);
}

ssize_t transmit_on_duty(Engine& engine, Core& core, const Transmit& tx, const TransmitCall& call, Descriptor& d) {
  if (!name_target(tx, call, d)) return -FI_EINVAL;
  const Trigger trigger =
      call.deferral.trigger.cntr != nullptr ? call.deferral.trigger : trigger_of(call.context, call.flags);
  if (trigger.cntr == nullptr && !call.goes_on && !has_room(core, d, call.flags)) return -FI_EAGAIN;
  Interface& ni = interface_of(core);
  const MdUse use = md_use_of(call, d.kind);
  d.interface_index = kFabricInterface;
  d.endpoint = static_cast<std::uint16_t>(tx.number);
  d.user_ptr = make_word(call.word, call.context);
  d.ack_req = is_reading(d.kind) ? AckRequest::kNone : ack_for(use);
  if (!name_memory(ni, tx, call, use, d)) return -FI_EAGAIN;
  if (trigger.cntr != nullptr) return arm(engine, core, d, trigger);
  post(engine, core, d);
  return 0;
}

}  // namespace

std::uint64_t length_of(const iovec* pieces, std::size_t count) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length += pieces[i].iov_len;
  return length;
}

ssize_t transmit(Endpoint& ep, const TransmitCall& call, Descriptor& d) {
  return guarded([&]() -> ssize_t {
    if (!ep.tx->enabled) return -FI_EOPBADSTATE;
    if (call.piece_count > kMostPieces) return -FI_EINVAL;
    if (d.length > kDefaultLimits.max_msg_size) return -FI_EMSGSIZE;
    if ((call.flags & FI_INJECT) != 0 && d.length > kInjectBytes) return -FI_EINVAL;
    Engine& engine = *ep.domain->engine;
    bool pauses = false;
    ssize_t result = 0;
    {
      const Engine::Duty duty(engine);
      result = transmit_on_duty(engine, duty.core(), *ep.tx, call, d);
      pauses = engine.take_pause_on_duty();
    }
    if (result == -FI_EAGAIN) engine.step();
    if (pauses) [[unlikely]]
      engine.pause();
    return result;
  });
}

ssize_t arm(Engine& engine, Core& core, const Descriptor& d, const Trigger& trigger) {
  Interface& ni = interface_of(core);
  if (ni.triggered_count >= ni.limits.max_triggered_ops) return -FI_EAGAIN;
  auto* operation = new TriggeredOperation;
  operation->descriptor = d;
  operation->threshold = trigger.threshold;
  ++ni.triggered_count;
  trigger.cntr->counter(core).add_triggered_on_duty(operation, core.fired);
  engine.settle_on_duty();
  return 0;
}

Trigger trigger_of(const void* context, std::uint64_t flags) {
  if ((flags & FI_TRIGGER) == 0 || context == nullptr) return {};
  const auto* triggered = static_cast<const fi_triggered_context*>(context);
  return {object_of<CounterFid>(triggered->trigger.threshold.cntr), triggered->trigger.threshold.threshold};
}

}  // namespace portofu::fabric
