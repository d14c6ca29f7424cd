#include "lib/libfabric/transmit.h"

#include <algorithm>
#include <utility>

#include "engine/door/libfabric.h"
#include "lib/libfabric/info.h"

namespace portofu::fabric {
namespace {

/// Flags that ask for more than there is: levels of completion, and groups of targets.
constexpr std::uint64_t kNotThere = FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_MULTICAST;

bool is_reading(PacketType type) { return type == PacketType::kGet || is_fetching(type); }

/// How the call is to be told of.
MdUse md_use_of(const TransmitCall& call, PacketType type) {
  const bool quiet = (call.flags & FI_COMPLETION) == 0;
  const bool injects = (call.flags & FI_INJECT) != 0;
  if (is_reading(type)) return quiet ? MdUse::kReadQuiet : MdUse::kRead;
  if (call.portal == PortalUse::kMemory || type == PacketType::kAtomic)
    return !quiet ? MdUse::kWrite : injects ? MdUse::kWriteInject : MdUse::kWriteQuiet;
  // What is delivered to the peer is no more than what is known to be at its place.
  if ((call.flags & (FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE)) != 0)
    return quiet ? MdUse::kSendAckQuiet : MdUse::kSendAck;
  return !quiet ? MdUse::kSend : injects ? MdUse::kInject : MdUse::kSendQuiet;
}

AckRequest ack_for(MdUse use) {
  return use == MdUse::kSend || use == MdUse::kSendQuiet || use == MdUse::kInject ? AckRequest::kNone
                                                                                  : AckRequest::kFull;
}

/// On duty: a memory descriptor for several pieces, or for what is told otherwise than all else. @return nullptr if
/// there is none
MemoryDescriptor* own_memory(Interface& ni, const MemoryDescriptor& like, const TransmitCall& call) {
  Handle handle = 0;
  MemoryDescriptor* md = ni.mds.allocate(&handle);
  if (md == nullptr) return nullptr;
  *md = {};
  md->use = ni.mds.use_of(handle);
  md->options = like.options | kMdOneShot | ((call.flags & FI_INJECT) != 0 ? kMdVolatile : 0) |
                (call.counts ? 0 : kMdEventSuccessDisable);
  md->handle = handle;
  md->eq_handle = call.failures != 0 && like.eq_handle != 0 ? call.failures : like.eq_handle;
  const bool counts_here = call.counts && call.deferral.owner == nullptr;
  if (counts_here) md->ct_handle = like.ct_handle;
  if (call.deferral.completion != 0) md->ct_handle = call.deferral.completion;
  return md;
}

/// Whether the call is told of as all else of its kind, and its data may stay where they are until they leave.
bool is_plain(const TransmitCall& call, MdUse use) {
  const bool leaves = use < MdUse::kRead || use == MdUse::kOperand;
  const bool copied = (call.flags & FI_INJECT) != 0 && !is_injecting(use) && leaves;
  return call.counts && call.deferral.completion == 0 && call.deferral.owner == nullptr && !copied;
}

/// On duty: a memory descriptor of its own for some memory. @return nullptr if there is none
/// @param offset  as in memory_of
[[gnu::noinline]] MemoryDescriptor* describe_memory(Interface& ni, const MemoryDescriptor& like,
                                                    const TransmitCall& call, std::uint64_t* offset) {
  MemorySegment segment;
  if (call.piece_count <= 1) {
    segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
  } else {
    segment.describe(call.pieces, call.piece_count);
    *offset = 0;
  }
  MemoryDescriptor* md = own_memory(ni, like, call);
  if (md != nullptr) md->segment = std::move(segment);
  return md;
}

/// On duty: the memory descriptor for some memory: that of the whole address space, or one of its own.
/// @param offset  set to where the memory is in it
[[gnu::always_inline]] inline MemoryDescriptor* memory_of(Interface& ni, const Transmit& tx, const TransmitCall& call,
                                                          MdUse use, std::uint64_t* offset) {
  MemoryDescriptor& whole = *tx.mds[static_cast<std::size_t>(use)];
  if (call.piece_count <= 1) [[likely]] {
    *offset = call.piece_count == 1 ? reinterpret_cast<std::uintptr_t>(call.pieces->iov_base) : 0;
    if (is_plain(call, use)) return &whole;
  }
  return describe_memory(ni, whole, TransmitCall(call), offset);
}

/// On duty. @return what the descriptor sends from; nullptr if there is no memory descriptor left
[[gnu::always_inline]] inline MemoryDescriptor* name_memory(Interface& ni, const Transmit& tx, const TransmitCall& call,
                                                            MdUse use, Descriptor& d) {
  const bool fetching = is_fetching(d.type);
  MemoryDescriptor* md = memory_of(ni, tx, call, fetching ? MdUse::kOperand : use, &d.portals.local_offset);
  if (md == nullptr) return nullptr;
  d.portals.md_handle = md->handle;
  if (!fetching) return md;
  TransmitCall results = call;
  results.pieces = call.results;
  results.piece_count = call.result_count;
  const MemoryDescriptor* get_md = memory_of(ni, tx, results, use, &d.portals.local_get_offset);
  if (get_md == nullptr) return nullptr;
  d.portals.get_md_handle = get_md->handle;
  return md;
}

/// On duty: whether so little waits to go to the target that more may.
bool has_room(Core& core, const Descriptor& d) {
  return core.peer(d.portals.target).requests.waiting.size() < kTransmitSize;
}

/// On duty. @return false if the address is nobody's
[[gnu::always_inline]] inline bool name_target(const Transmit& tx, const TransmitCall& call, Descriptor& d) {
  std::uint32_t context = 0;
  const Address* address = tx.av->find(call.target, &context);
  if (address == nullptr) return false;
  d.portals.target = address->process();
  d.pt_index = portal_of(address->number + context, call.portal);
  return true;
}

/// On duty: what leaves at once asks for no room.
/// @param md  of `d`
/// @return 0 | -FI_EAGAIN: too much waits, and the call may be refused
[[gnu::always_inline]] inline ssize_t post(Engine& engine, Core& core, const TransmitCall& call, MemoryDescriptor& md,
                                           Descriptor& d) {
  Interface& ni = interface_of(core);
  // Memory of its own is held, and freed, on the general way.
  const bool plain = (md.options & kMdOneShot) == 0 && !d.portals.fenced &&
                     (!is_fetching(d.type) || (ni.mds.find(d.portals.get_md_handle)->options & kMdOneShot) == 0);
  if (plain && send_at_once(core, ni, md, d)) {
    engine.settle_on_duty();
    return 0;
  }
  if (!call.goes_on && !has_room(core, d)) return -FI_EAGAIN;
  engine.post_on_duty(d);
  return 0;
}

/// On duty: the descriptor says whose it is, how it is to be told of, and where its memory is.
/// @return as name_memory
[[gnu::always_inline]] inline MemoryDescriptor* complete(Core& core, const Transmit& tx, const TransmitCall& call,
                                                         Descriptor& d) {
  const MdUse use = md_use_of(call, d.type);
  d.interface_index = kFabricInterface;
  d.endpoint = static_cast<std::uint16_t>(tx.number);
  d.portals.user_ptr = make_word(call.word, call.context);
  d.portals.ack_req = is_reading(d.type) ? AckRequest::kNone : ack_for(use);
  d.portals.fenced = (call.flags & FI_FENCE) != 0;
  return name_memory(interface_of(core), tx, call, use, d);
}

/// On duty: sends a mark behind a message, which has left: what it lacks to be sent is not the caller's to know.
/// @param turn  of the message
[[gnu::noinline]] void send_mark(Engine& engine, Core& core, Credit& credit, const Descriptor& message,
                                 const Trigger& turn) {
  Descriptor mark;
  mark.portals.target = message.portals.target;
  mark.pt_index = portal_of(message.pt_index / kPortalsPerEndpoint, PortalUse::kCredit);
  const ssize_t sent = guarded([&]() -> ssize_t {
    if (!make_mark(core, credit, &mark)) return -FI_ENOMEM;
    if (turn.counter != 0) return arm(engine, mark, turn);
    engine.post_on_duty(mark);
    return 0;
  });
  credit.marks += sent == 0 ? 1 : 0;
}

/// On duty: whether a message may wait until its target has received others. What is injected would have to be kept.
[[gnu::noinline]] bool may_be_held(const Core& core, const TransmitCall& call, const Trigger& turn) {
  return (call.flags & FI_INJECT) == 0 && interface_of(core).cts.find(turn.counter)->waiting_count() < kTransmitSize;
}

/// A transfer that waits for a counter, and of which not all is in its descriptor.
struct KeptTransfer : KeptCall {
  Descriptor descriptor;
  std::vector<std::byte> injected;  ///< Its data, which the application may change.
  std::vector<iovec> compared;      ///< What it compares, which is read when it starts.
};

void start_kept(Core& core, LocalCall& local) {
  auto& kept = static_cast<KeptTransfer&>(local);
  std::byte* at = kept.descriptor.operand.data();
  for (const iovec& piece : kept.compared)
    at = std::copy_n(static_cast<const std::byte*>(piece.iov_base), piece.iov_len, at);
  start_descriptor(core, kept.descriptor);  // What it was to inject is copied if it does not leave at once.
  kept.domain->local_calls.erase(&local);
}

/// Whether the data may change before the transfer starts: of deferred work it does.
bool is_injected_later(const TransmitCall& call, PacketType type) {
  return (call.flags & FI_INJECT) != 0 && call.deferral.owner == nullptr && type != PacketType::kGet;
}

/// On duty. @return false if the memory is not mapped
bool copy_injected(TransmitCall& call, std::uint64_t length, std::vector<std::byte>& copy, iovec& piece) {
  MemorySegment source;
  source.describe(call.pieces, call.piece_count);
  copy.resize(length);
  if (length != 0 && !source.read(0, copy.data(), length)) return false;
  piece = {copy.data(), copy.size()};
  call.pieces = &piece;
  call.piece_count = 1;
  return true;
}

/// When a call may start; without counter: now.
[[gnu::always_inline]] inline Trigger trigger_of(const Transmit& tx, const TransmitCall& call) {
  return call.deferral.trigger.counter != 0 ? call.deferral.trigger : trigger_of(*tx.domain, call.context, call.flags);
}

/// On duty: lets a transfer wait that needs more than its descriptor. @param d  names its target
[[gnu::noinline]] ssize_t keep_transfer(Core& core, const Transmit& tx, const TransmitCall& as_asked,
                                        const Descriptor& d, std::span<const iovec> compared) {
  TransmitCall call = as_asked;
  const auto kept = std::make_shared<KeptTransfer>();
  kept->run = start_kept;
  kept->domain = tx.domain;
  kept->starts = &kept->descriptor;
  kept->descriptor = d;
  kept->compared.assign(compared.begin(), compared.end());
  iovec piece;
  if (is_injected_later(call, d.type) && !copy_injected(call, d.length, kept->injected, piece)) return -FI_EFAULT;
  ssize_t result = -FI_EAGAIN;
  if (complete(core, tx, call, kept->descriptor) != nullptr)
    result = guarded([&] { return keep(kept, trigger_of(tx, call), {call.deferral.owner, &tx}); });
  if (result != 0) free_memory(interface_of(core), kept->descriptor);
  return result;
}

/// On duty: when something that is no message may leave that is fenced, or behind what is: with the messages before it.
[[gnu::noinline]] Trigger turn_at_fence(Core& core, const Transmit& tx, const TransmitCall& call) {
  Credit& credit = tx.av->credit_of(call.target);
  if ((call.flags & FI_FENCE) == 0 && !credit.holds_fence) return {};
  const Trigger turn = turn_behind_held(core, credit);
  if (turn.counter == 0 && std::exchange(credit.holds_fence, false)) --tx.av->held_fences;
  return turn;
}

/// On duty: what follows a fenced operation that is held waits with it.
[[gnu::noinline]] void hold_fence(const Transmit& tx, const TransmitCall& call) {
  if ((call.flags & FI_FENCE) != 0 && !std::exchange(tx.av->credit_of(call.target).holds_fence, true))
    ++tx.av->held_fences;
}

/// Inlined with what calls it, where much of the call is known: as long as only copies of it have an address, nothing
/// of it has to be written down.
[[gnu::always_inline]] inline ssize_t transmit_on_duty(Engine& engine, Core& core, const Transmit& tx,
                                                       const TransmitCall& call, Descriptor& d) {
  if (!name_target(tx, call, d)) return -FI_EINVAL;
  Trigger trigger = trigger_of(tx, call);
  Credit* credit = nullptr;  // Of a message that waits for nothing but its turn.
  if (trigger.counter == 0) {
    if (call.portal != PortalUse::kMemory && d.type == PacketType::kPut) {
      credit = &tx.av->credit_of(call.target);
      trigger = turn_of(core, *credit);
    } else if ((call.flags & FI_FENCE) != 0 || tx.av->held_fences != 0) [[unlikely]] {
      trigger = turn_at_fence(core, tx, TransmitCall(call));
    }
    if (trigger.counter != 0) [[unlikely]] {
      if (!call.goes_on && !has_room(core, d)) return -FI_EAGAIN;
      if (may_be_held(core, TransmitCall(call), trigger)) {
        hold_fence(tx, TransmitCall(call));
      } else if (call.goes_on) {
        trigger = {};  // Whatever is held came from another thread, while this call was on.
      } else {
        return -FI_EAGAIN;
      }
    }
  }
  if (trigger.counter != 0 && is_injected_later(call, d.type)) [[unlikely]]
    return keep_transfer(core, tx, TransmitCall(call), d, {});
  MemoryDescriptor* const md = complete(core, tx, call, d);
  if (md == nullptr) {
    free_memory(interface_of(core), d);
    return -FI_EAGAIN;
  }
  ssize_t result = 0;
  if (trigger.counter != 0) [[unlikely]] {
    result = arm(engine, d, trigger, {call.deferral.owner, &tx});
  } else {
    result = post(engine, core, call, *md, d);
  }
  if (result != 0) [[unlikely]]
    free_memory(interface_of(core), d);
  if (credit != nullptr && result == 0 && is_mark_due(*credit, d.length)) [[unlikely]]
    send_mark(engine, core, *credit, d, trigger);
  return result;
}

/// The memory descriptor may be the one of the whole address space, which stays.
void free_one_shot(Interface& ni, Handle handle) {
  const MemoryDescriptor* md = ni.mds.find(handle);
  if (md != nullptr && (md->options & kMdOneShot) != 0 && md->pending == 0) ni.mds.free(handle);
}

}  // namespace

void free_memory(Interface& ni, const Descriptor& d) {
  free_one_shot(ni, d.portals.md_handle);
  if (is_fetching(d.type)) free_one_shot(ni, d.portals.get_md_handle);
}

ssize_t check_length(const TransmitCall& call, PacketType type, std::uint64_t length) {
  if (length > kDefaultLimits.max_msg_size) return -FI_EMSGSIZE;
  // It is said of data that leave. As a default of the endpoint it meets reads, too.
  return (call.flags & FI_INJECT) != 0 && type != PacketType::kGet && length > kInjectBytes ? -FI_EINVAL : 0;
}

ssize_t check_access(const Transmit& tx, const TransmitCall& call) {
  const std::uint64_t needed = flags_of(call.word) | (call.portal == PortalUse::kTagged ? FI_TAGGED : 0);
  return tx.enabled && (needed & ~tx.access) == 0 ? 0 : -FI_EOPBADSTATE;
}

namespace {

/// @return 0, or what is wrong with the call
[[gnu::always_inline]] inline ssize_t check(const Transmit& tx, const TransmitCall& call, const Descriptor& d) {
  if (const ssize_t wrong = check_access(tx, call); wrong != 0) return wrong;
  if ((call.flags & kNotThere) != 0) [[unlikely]]
    return -FI_EBADFLAGS;
  if (call.piece_count > kMostPieces) return -FI_EINVAL;
  return check_length(call, d.type, d.length);
}

/// @see transmit
[[gnu::always_inline]] inline ssize_t transmit_here(Endpoint& ep, const TransmitCall& call, Descriptor& d) {
  return guarded([&]() __attribute__((always_inline))->ssize_t {
    if (const ssize_t wrong = check(*ep.tx, call, d); wrong != 0) return wrong;
    Engine& engine = *ep.domain->engine;
    bool pauses = false;
    ssize_t result = 0;
    {
      const Engine::Duty duty(engine);
      const RecordedCall recorded(duty.core(), recorded_as(call.word), d.length);
      result = transmit_on_duty(engine, duty.core(), *ep.tx, call, d);
      pauses = engine.take_pause_on_duty();
    }
    if (result == -FI_EAGAIN) [[unlikely]]
      engine.step();
    if (pauses) [[unlikely]]
      engine.pause();
    return result;
  });
}

}  // namespace

ssize_t transmit(Endpoint& ep, const TransmitCall& call, Descriptor& d) { return transmit_here(ep, call, d); }

template <PortalUse portal>
ssize_t send_buffer(Endpoint& ep, const BufferMessage& message, std::uint64_t flags) {
  Descriptor d;
  d.length = message.bytes;
  d.match_bits = message.tag;
  d.hdr_data = message.data;
  if ((flags & FI_REMOTE_CQ_DATA) != 0) d.flags |= kFlagTellsData;
  const iovec piece{const_cast<void*>(message.buffer), message.bytes};
  TransmitCall call;
  call.word = portal == PortalUse::kTagged ? WordKind::kTaggedSend : WordKind::kSend;
  call.portal = portal;
  call.pieces = &piece;
  call.piece_count = 1;
  call.target = message.target;
  call.context = message.context;
  call.flags = flags;
  return transmit_here(ep, call, d);
}
template ssize_t send_buffer<PortalUse::kMessage>(Endpoint&, const BufferMessage&, std::uint64_t);
template ssize_t send_buffer<PortalUse::kTagged>(Endpoint&, const BufferMessage&, std::uint64_t);

ssize_t transmit_compared(Endpoint& ep, const TransmitCall& call, Descriptor& d, std::span<const iovec> compared) {
  return guarded([&]() -> ssize_t {
    if (const ssize_t wrong = check(*ep.tx, call, d); wrong != 0) return wrong;
    const Engine::Duty duty(*ep.domain->engine);
    const RecordedCall recorded(duty.core(), recorded_as(call.word), d.length, CallStarts::kByCounter);
    if (!name_target(*ep.tx, call, d)) return -FI_EINVAL;
    return keep_transfer(duty.core(), *ep.tx, call, d, compared);
  });
}

ssize_t keep(std::shared_ptr<KeptCall> call, const Trigger& trigger, const Claim& claim) {
  Domain& domain = *call->domain;
  Descriptor d;
  d.type = PacketType::kLocalCall;
  d.interface_index = kFabricInterface;
  d.call = call.get();
  const LocalCall* key = call.get();
  domain.local_calls.emplace(key, std::move(call));
  ssize_t result = -FI_ENOMEM;
  try {
    result = arm(*domain.engine, d, trigger, claim);
  } catch (const std::bad_alloc&) {
  }
  if (result != 0) domain.local_calls.erase(key);
  return result;
}

ssize_t arm(Engine& engine, const Descriptor& d, const Trigger& trigger, const Claim& claim) {
  switch (engine.arm_on_duty(d, trigger, claim)) {
    case Armed::kNoCounter: return -FI_EINVAL;
    case Armed::kNoRoom: return -FI_EAGAIN;
    case Armed::kYes: break;
  }
  return 0;
}

Trigger trigger_of(const Domain& domain, const void* context, std::uint64_t flags) {
  if ((flags & FI_TRIGGER) == 0) return {};
  const auto* wanted = static_cast<const fi_triggered_context*>(context);
  if (wanted == nullptr || wanted->event_type != FI_TRIGGER_THRESHOLD || wanted->trigger.threshold.cntr == nullptr)
    return {kNoCounter, 0};
  const CounterFid& cntr = *object_of<CounterFid>(wanted->trigger.threshold.cntr);
  if (cntr.domain != &domain) return {kNoCounter, 0};
  return {cntr.ct_handle, wanted->trigger.threshold.threshold};
}

}  // namespace portofu::fabric
