#include "engine/initiator/send.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/initiator/answer_in.h"
#include "engine/initiator/portals_direct.h"
#include "engine/initiator/report.h"
#include "engine/initiator/tofu_send.h"
#include "engine/mailbox/connect.h"
#include "engine/mailbox/outbox.h"
#include "engine/mailbox/stamped_header.h"
#include "engine/queue/ring_geometry.h"

namespace portofu {
namespace {

bool wants_acknowledgement(const MemoryDescriptor& md, const Descriptor& d) {
  return d.portals.ack_req != AckRequest::kNone && d.type != PacketType::kGet &&
         acknowledgement_is_noticed(md, d.portals.ack_req);
}

/// Opens the outstanding entry of a request that will be answered, and names it in its header.
/// @return nullptr if the window of the peer is full
OutstandingOperation* open_answered(Core& core, Interface& ni, Peer& peer, MemoryDescriptor& md, Descriptor& d) {
  const bool is_mark = d.interface_index == kFabricInterface && d.portals.ack_req == AckRequest::kCount;
  if (!is_mark && is_window_full(core, peer)) return nullptr;
  std::uint32_t operation_id = 0;
  OutstandingOperation* operation = core.outstanding.open(&operation_id);
  if (operation == nullptr) return nullptr;
  d.operation_id = operation_id;
  d.flags |= kFlagAnswerWanted;
  const bool is_get = d.type == PacketType::kGet;
  const bool ack = wants_acknowledgement(md, d);
  operation->peer = &peer;
  operation->kind = d.type;
  operation->interface_index = d.interface_index;
  operation->ack_req = ack ? d.portals.ack_req : AckRequest::kNone;
  operation->length = d.length;
  operation->expects_data = is_get || is_fetching(d.type);
  operation->is_mark = is_mark;
  operation->md_use = md.use;
  operation->portals.md_handle = d.portals.md_handle;
  operation->portals.reply_md_handle = is_get ? d.portals.md_handle : d.portals.get_md_handle;
  operation->portals.reply_offset = is_get ? d.portals.local_offset : d.portals.local_get_offset;
  operation->portals.put_offset = d.remote_offset;
  operation->user_ptr = d.portals.user_ptr;
  if (ack && (md.options & kMdOneShot) != 0) ++md.pending;
  ++peer.outstanding;
  if (is_mark) ++peer.marks;
  ++ni.outstanding;
  if (!peer.awaited) core.await(peer);
  return operation;
}

/// The request will not be sent, so nobody answers it.
void close_unsent(Core& core, Interface& ni, MemoryDescriptor& md, PacketHeader& header) {
  const std::uint32_t operation_id = std::exchange(header.operation_id, 0);
  header.flags &= static_cast<std::uint8_t>(~kFlagAnswerWanted);
  const OutstandingOperation& operation = *core.outstanding.find(operation_id);
  if (operation.ack_req != AckRequest::kNone && (md.options & kMdOneShot) != 0) --md.pending;
  close_outstanding(core, operation_id, operation);
  --ni.outstanding;
}

/// Whether all that the peer was asked before is over; what was asked later waits behind the request that asks this.
/// Marks are nobody's operation.
bool is_settled(const Peer& peer) { return peer.requests.lent.empty() && peer.outstanding == peer.marks; }

bool is_answered(const MemoryDescriptor& md, const Descriptor& d) {
  return d.type == PacketType::kGet || is_fetching(d.type) || wants_acknowledgement(md, d);
}

/// Fills in what a packet says and whoever posted it does not know.
/// @param bytes  of its payload
[[gnu::always_inline]] inline void complete_header(const Core& core, const Interface& ni, const MemoryDescriptor& md,
                                                   PacketHeader& header, std::uint64_t bytes) {
  if ((md.options & kMdUnordered) != 0) header.flags |= kFlagUnordered;
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  if (header.interface_index != kFabricInterface) header.initiator_rank = ni.map.own_rank();
  stamp(core, header);
  header.wire_word = (md.options & kMdUnreliable) != 0 ? kMayBeLost : 0;
}

/// All data has left, or none will: SEND, which knows nothing of the target (3.13.3).
void finish_sending(Core& core, Interface& ni, MemoryDescriptor& md, const OutgoingMessage& message, NiFail fail) {
  const Descriptor& d = message.words.request;
  const std::uint32_t operation_id = message.header().operation_id;
  OutstandingOperation* operation = operation_id != 0 ? core.outstanding.find(operation_id) : nullptr;
  if (operation != nullptr && fail == NiFail::kSegv && failed_send_tells(md, operation->ack_req)) {
    // Whatever the target says: no ACK follows (3.13.3), and none that only says that the operation is done.
    operation->silent = true;
    if (operation->ack_req == AckRequest::kOperation) operation->ack_req = AckRequest::kCount;
  }
  if (d.type != PacketType::kGet) {
    const SendReport report{d.length, d.portals.user_ptr, fail};
    report_send_count(core, ni, md, report);
    report_send_event(core, ni, md, report);
    end_operation(ni, md);
  }
  if (operation == nullptr) return;
  operation->sent = true;
  if (operation->answered) finish_answer(core, operation_id, *operation);
}

void end_hold(Interface& ni, Handle md_handle) {
  if (MemoryDescriptor* md = ni.mds.find(md_handle)) end_operation(ni, *md);
}

/// No answer is due, or the operation was never opened: nobody else tells how the request ended.
void end_unopened(Core& core, Interface& ni, const Descriptor& d, NiFail fail) {
  report_not_started(core, ni, d, fail);
  end_hold(ni, d.portals.md_handle);
  if (is_fetching(d.type)) end_hold(ni, d.portals.get_md_handle);
}

/// Whom a descriptor is for; nullptr if its rank is nobody's.
const ProcessId* target_of(const Interface& ni, const Descriptor& d) {
  return ni.is_logical() ? ni.map.process_of(d.portals.target.nid) : &d.portals.target;
}

/// The request ends before all of it has left.
void abandon(Core& core, Interface& ni, MemoryDescriptor& md, const OutgoingMessage& message, NiFail fail) {
  const Descriptor& d = message.words.request;
  const std::uint32_t operation_id = message.header().operation_id;
  OutstandingOperation* operation = operation_id != 0 ? core.outstanding.find(operation_id) : nullptr;
  // What has been answered is as the answer says, also if that came before its memory was given back.
  const bool is_over = operation != nullptr && operation->answered && message.sent == d.length;
  if (is_over) return finish_sending(core, ni, md, message, NiFail::kOk);
  if (fail == NiFail::kUndeliverable) note_undelivered(core, ni, target_of(ni, d));
  if (operation == nullptr) return end_unopened(core, ni, d, fail);
  operation->fail = fail;
  operation->answered = true;
  finish_sending(core, ni, md, message, fail);
}

/// How far the parts of an operation are that come before its last one.
enum class PartsBefore : std::uint8_t { kUnderWay, kDone, kFailed };

PartsBefore parts_before(const Interface& ni, const MemoryDescriptor& md, const Descriptor& d) {
  const CountingEvent* counter = d.portals.parts_before != 0 ? ni.cts.find(md.ct_handle) : nullptr;
  if (counter == nullptr) return PartsBefore::kDone;
  if (counter->reached() < d.portals.parts_before) return PartsBefore::kUnderWay;
  return counter->failure() == 0 ? PartsBefore::kDone : PartsBefore::kFailed;
}

/// OutgoingHooks::open: the outstanding entry, if an answer is due.
/// @return false if it has to wait: the window of the peer is full, or the request is fenced, or behind other parts
bool open_operation(Core& core, Peer& peer, OutgoingMessage& message) {
  Descriptor& d = message.words.request;
  if (d.portals.fenced && !is_settled(peer)) return false;
  Interface* ni = core.interface(d.interface_index);
  MemoryDescriptor* md = ni != nullptr ? ni->mds.find(d.portals.md_handle) : nullptr;
  if (md == nullptr) return true;
  const PartsBefore before = parts_before(*ni, *md, d);
  if (before == PartsBefore::kUnderWay) return false;
  if (before == PartsBefore::kFailed) {  // Whatever its source is.
    message.source = SourceKind::kGone;
    message.fail = NiFail::kDropped;
    return true;
  }
  if (!is_answered(*md, d)) return true;
  return open_answered(core, *ni, peer, *md, d) != nullptr;
}

/// OutgoingHooks::finish. Memory that turns out to be inaccessible in the middle is told by the target, too.
void finish_request(Core& core, Peer&, OutgoingMessage& message, NiFail fail) {
  const Descriptor& d = message.words.request;
  Interface* ni = core.interface(d.interface_index);
  MemoryDescriptor* md = ni != nullptr ? ni->mds.find(d.portals.md_handle) : nullptr;
  if (md == nullptr) return;
  const bool is_cut = fail == NiFail::kSegv && message.started;
  if (fail == NiFail::kOk || is_cut) return finish_sending(core, *ni, *md, message, fail);
  abandon(core, *ni, *md, message, fail);
}

constexpr OutgoingHooks kRequestHooks{.open = open_operation, .finish = finish_request};

void count_request(Core& core, PacketType kind) {
  core.counters.add(kind == PacketType::kPut   ? Counter::kPutsSent
                    : kind == PacketType::kGet ? Counter::kGetsSent
                                               : Counter::kAtomicsSent);
}

/// Where the data of a reply goes; nullptr if there is no reply.
MemoryDescriptor* reply_memory(Interface& ni, MemoryDescriptor& md, const Descriptor& d) {
  if (d.type == PacketType::kGet) return &md;
  return is_fetching(d.type) ? ni.mds.find(d.portals.get_md_handle) : nullptr;
}

void hold(MemoryDescriptor& md) {
  ++md.pending;
  md.released = (md.options & kMdOneShot) != 0;
}

/// @return the memory descriptor of md_handle; nullptr if it is gone, or that of the reply
MemoryDescriptor* usable_memory(Interface& ni, const Descriptor& d) {
  MemoryDescriptor* md = ni.mds.find(d.portals.md_handle);
  if (md == nullptr || md->released) return nullptr;
  if (!is_fetching(d.type)) return md;
  const MemoryDescriptor* get_md = ni.mds.find(d.portals.get_md_handle);
  return get_md == nullptr || get_md->released ? nullptr : md;
}

/// Keeps the memory descriptors from being freed until SEND and REPLY.
/// @param fetched  for the old values; nullptr: none come back
void hold_memory(MemoryDescriptor& md, MemoryDescriptor* fetched) {
  if (fetched != nullptr) hold(*fetched);
  hold(md);
}

/// Does a request of which the target need not know.
/// @return false if it is no such request, or packets have to do it
bool use_published_held(Core& core, Interface& ni, Peer& peer, MemoryDescriptor& md, const Descriptor& d) {
  if (peer.published == nullptr) return false;
  MemoryDescriptor* reply_md = reply_memory(ni, md, d);
  if (!use_published(core, ni, peer, {md, reply_md}, d)) return false;
  end_operation(ni, md);
  if (reply_md != nullptr && is_fetching(d.type)) end_operation(ni, *reply_md);
  return true;
}

/// PTL_MD_VOLATILE: the caller may change its buffer as soon as the call returns, so what waits needs a copy.
bool is_volatile(const Interface& ni, const MemoryDescriptor& md, const Descriptor& d) {
  return (md.options & kMdVolatile) != 0 && d.length <= ni.limits.max_volatile_size;
}

/// What the message of a request needs beside its header: it does not fit a packet, or cannot leave now.
void describe(const Interface& ni, const MemoryDescriptor& md, const Descriptor& d, OutgoingMessage& message) {
  message.hooks = &kRequestHooks;
  message.interface_index = d.interface_index;
  message.front_bytes = d.portals.operand_bytes == 0 ? 0 : kOperandBytes;
  if (d.type == PacketType::kGet) return;
  message.is_end_awaited = send_is_noticed(md);
  if (d.length == 0) return;
  message.source = SourceKind::kSegment;
  message.segment = &md.segment;
  message.offset = d.portals.local_offset;
  message.length = d.length;
  message.is_copied_to_wait = is_volatile(ni, md, d);
  message.may_be_lent = d.type == PacketType::kPut && (md.options & kMdVolatile) == 0;
}

/// What became of a request that was to leave at once.
enum class AtOnce : std::uint8_t {
  kDone,
  kNotNow,      ///< It does not fit a packet, or cannot leave now; nothing has happened.
  kUnreadable,  ///< Its memory is not there; nothing has happened.
};

/// @see send_at_once. Inlined, because it is the whole of what most requests take.
/// @pre the peer is connected
[[gnu::always_inline]] inline AtOnce try_at_once(Core& core, Interface& ni, Peer& peer, MemoryDescriptor& md,
                                                 Descriptor& d) {
  const bool is_get = d.type == PacketType::kGet;
  const std::uint64_t bytes = is_get ? 0 : d.length;
  const std::uint32_t front = d.portals.operand_bytes == 0 ? 0 : kOperandBytes;
  const bool goes = peer.requests.waiting.empty() && fits_packet(peer, bytes + front);
  if (!goes && peer.published == nullptr) return AtOnce::kNotNow;
  MemoryDescriptor* reply_md = reply_memory(ni, md, d);
  if (peer.published != nullptr && use_published(core, ni, peer, {md, reply_md}, d)) return AtOnce::kDone;
  if (!goes || peer.link->may_have_moved()) return AtOnce::kNotNow;
  std::byte* payload = peer.wire->claim(*peer.link, static_cast<std::uint32_t>(bytes + front));
  if (payload == nullptr) return AtOnce::kNotNow;
  // Before the payload, which may wait for a line of the peer's: what is written behind it waits, too.
  complete_header(core, ni, md, d, bytes + front);
  OutstandingOperation* operation = nullptr;
  const bool answered = reply_md != nullptr || wants_acknowledgement(md, d);
  if (answered) operation = open_answered(core, ni, peer, md, d);
  if (front != 0) [[unlikely]]
    std::memcpy(payload, d.operand.data(), front);
  const bool streaming = bytes > kInlineBytes && peer.link->streaming;
  const bool readable = bytes == 0 || md.segment.read(d.portals.local_offset, payload + front, bytes, streaming);
  if (!readable || (operation != nullptr) != answered) [[unlikely]] {
    if (operation != nullptr) close_unsent(core, ni, md, d);
    peer.wire->discard(*peer.link);
    return readable ? AtOnce::kNotNow : AtOnce::kUnreadable;
  }
  publish_packet(core, peer, d, bytes);
  count_request(core, d.type);
  if (operation != nullptr) operation->sent = true;
  if (reply_md != nullptr) ++reply_md->pending;  // Until REPLY.
  if (is_get || (md.ct_handle == 0 && md.eq_handle == 0)) return AtOnce::kDone;
  report_send_count(core, ni, md, {d.length, d.portals.user_ptr, NiFail::kOk});
  report_send_event(core, ni, md, {d.length, d.portals.user_ptr, NiFail::kOk});
  return AtOnce::kDone;
}

/// Whether neither memory descriptor has to be freed when this operation ends.
bool outlives(const MemoryDescriptor& md, const MemoryDescriptor* reply_md) {
  const std::uint32_t options = reply_md != nullptr ? md.options | reply_md->options : md.options;
  return (options & kMdOneShot) == 0;
}

void start_transfer(Core& core, Interface& ni, Descriptor& d) {
  const ProcessId* target = target_of(ni, d);
  if (target == nullptr) return report_not_started(core, ni, d, NiFail::kUndeliverable);
  Peer& peer = core.peer(*target);
  follow_moved_name(core, peer);
  const bool connected = peer.state == PeerState::kConnected && peer.lost_since_ns == 0;
  const Reach reach = connected ? Reach::kNow : reach_for_new(core, peer);
  MemoryDescriptor* md = usable_memory(ni, d);
  if (md == nullptr) return;
  MemoryDescriptor* reply_md = reply_memory(ni, *md, d);
  const bool plain = outlives(*md, reply_md);
  const AtOnce at_once =
      reach == Reach::kNow && plain && !d.portals.fenced ? try_at_once(core, ni, peer, *md, d) : AtOnce::kNotNow;
  if (at_once == AtOnce::kDone) return;
  core.spare_message.ensure();
  hold_memory(*md, is_fetching(d.type) ? reply_md : nullptr);
  if (reach == Reach::kNever) {
    note_undelivered(core, ni, target);
    return end_unopened(core, ni, d, NiFail::kUndeliverable);
  }
  const bool waits = d.portals.fenced || d.portals.parts_before != 0;
  if (reach == Reach::kNow && !plain && !waits && use_published_held(core, ni, peer, *md, d)) return;
  count_request(core, d.type);
  complete_header(core, ni, *md, d, 0);
  OutgoingMessage message(d);
  describe(ni, *md, d, message);
  if (at_once == AtOnce::kUnreadable) take_source_away(message, NiFail::kSegv);
  send_or_wait(core, peer, message, reach == Reach::kNow && peer.requests.waiting.empty() ? kPacketBudget : 0);
}

/// Apart, so that what goes on from start_descriptor needs no room on the stack.
[[gnu::noinline]] void change_counter(Core& core, Interface& ni, PacketType type, const CountChange& change) {
  CountingEvent* counter = ni.cts.find(change.ct_handle);
  if (counter == nullptr) return;
  ++core.activity;
  if (type == PacketType::kCountSet) {
    counter->set_on_duty(change.success, change.keeps_failures ? counter->failure() : change.failure, core.fired);
  } else {
    counter->add_failure_on_duty(change.failure, core.fired);
    counter->add_success_on_duty(change.success, core.fired);
  }
  if (core.observers != nullptr) [[unlikely]]
    put_count(core, change.ct_handle, counter->success());
}

}  // namespace

bool send_at_once(Core& core, Interface& ni, MemoryDescriptor& md, Descriptor& d) {
  const ProcessId* target = target_of(ni, d);
  if (target == nullptr) return false;
  Peer& peer = core.peer(*target);
  return peer.state == PeerState::kConnected && try_at_once(core, ni, peer, md, d) == AtOnce::kDone;
}

bool cancel_request(Core& core, const std::function<bool(const Descriptor&)>& is_it) {
  for (const auto& [key, peer] : core.peers) {
    auto& waiting = peer->requests.waiting;
    const auto found = std::ranges::find_if(waiting, [&](const OutgoingMessage& message) {
      return message.hooks == &kRequestHooks && !message.started && is_it(message.words.request);
    });
    if (found == waiting.end()) continue;
    const std::unique_ptr<OutgoingMessage> canceled(&*found);
    waiting.erase(found);
    finish_request(core, *peer, *canceled, NiFail::kCanceled);
    return true;
  }
  return false;
}

void start_descriptor(Core& core, Descriptor& d) {
  Interface* ni = core.interface(d.interface_index);
  if (ni == nullptr) return start_tofu_descriptor(core, d);
  switch (d.type) {
    case PacketType::kCountIncrement:
    case PacketType::kCountSet: return change_counter(core, *ni, d.type, d.count);
    case PacketType::kLocalCall: return d.call->run(core, *d.call);
    default: return start_transfer(core, *ni, d);
  }
}

}  // namespace portofu
