// The engine's side of an endpoint: memory descriptors of the sending half, portal table entries of the receiving one.

#include "lib/libfabric/halves.h"

#include <algorithm>

#include "engine/door/libfabric.h"
#include "lib/libfabric/mr.h"

namespace portofu::fabric {
namespace {

constexpr std::array kPortalUses = {PortalUse::kTagged, PortalUse::kMessage, PortalUse::kMemory, PortalUse::kCredit};

constexpr std::uint32_t kAnswered = kMdEventSendDisable;

struct MdRule {
  std::uint32_t options;
  bool counts;  ///< What the counter of its kind counts.
};

constexpr std::array<MdRule, kMdUseCount> kMdRules = {{
    {kMdEventCtSend, true},                                                    // kSend
    {kMdEventCtSend | kMdEventSuccessDisable, true},                           // kSendQuiet
    {kAnswered | kMdEventCtAck, true},                                         // kSendAck
    {kAnswered | kMdEventCtAck | kMdEventSuccessDisable, true},                // kSendAckQuiet
    {kMdEventCtSend | kMdEventSuccessDisable | kMdVolatile, true},             // kInject
    {kAnswered | kMdEventCtAck, true},                                         // kWrite
    {kAnswered | kMdEventCtAck | kMdEventSuccessDisable, true},                // kWriteQuiet
    {kAnswered | kMdEventCtAck | kMdEventSuccessDisable | kMdVolatile, true},  // kWriteInject
    {kAnswered | kMdEventCtReply, true},                                       // kRead
    {kAnswered | kMdEventCtReply | kMdEventSuccessDisable, true},              // kReadQuiet
    {kAnswered | kMdEventSuccessDisable, false},                               // kOperand
}};

const CounterFid* counter_for(const Transmit& tx, MdUse use) {
  if (use <= MdUse::kInject) return tx.send_cntr;
  return use <= MdUse::kWriteInject ? tx.write_cntr : tx.read_cntr;
}

/// On duty: an entry that takes all for which no other one is there.
/// @param way  kEntryOwnMemory: keeps it. kEntryAnswersLate: forgets it, and answers when there is memory for more
bool take_all(Core& core, std::uint16_t pt_index, std::uint32_t way) {
  EntryRequest request;
  request.segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
  request.criteria = kAnyMessage;
  request.options = way | kEntryOpPut | kEntryEventCommDisable | kEntryEventLinkDisable | kEntryEventUnlinkDisable;
  request.pt_index = pt_index;
  request.list = ListKind::kOverflow;
  Handle handle = 0;
  return append_entry(core, interface_of(core), std::move(request), &handle) == Status::kOk;
}

/// On duty. @return false if there is no memory
bool open_portal(Core& core, const Receive& rx, PortalUse use) {
  const bool keeps = use == PortalUse::kTagged || use == PortalUse::kMessage;
  // Its messages go to a shared context, or there is no call that receives them.
  if (keeps && (!rx.enabled || (rx.access & (use == PortalUse::kTagged ? FI_TAGGED : FI_MSG)) == 0)) return true;
  const std::uint16_t pt_index = portal_of(rx.number, use);
  auto portal = std::make_shared<PortalTableEntry>();
  portal->eq_handle = rx.cq != nullptr ? rx.cq->eq_handle : 0;
  interface_of(core).portal_table[pt_index] = std::move(portal);
  if (keeps) return take_all(core, pt_index, kEntryOwnMemory);
  return use != PortalUse::kCredit || take_all(core, pt_index, kEntryAnswersLate | kEntryUnexpectedHdrDisable);
}

/// On duty: the portal table entry takes nothing any more, and tells nobody.
void shut_portal(Core& core, Interface& ni, PortalTableEntry& portal) {
  portal.disable(DisabledBy::kProgram, core.now_ns());
  portal.eq_handle = 0;
  withdraw_entries(core, ni, portal);
  end_visits(core, ni, portal);
}

void unlink_all(Core& core, Interface& ni, MatchList& list) {
  for (MatchEntry* entry = list.first(); entry != nullptr;) {
    MatchEntry* following = MatchList::next(*entry);
    unlink_entry(core, ni, static_cast<ListEntry*>(entry)->handle);
    entry = following;
  }
}

/// On duty: what was told by a number, and is not read yet, has no source any more. The vector that knew it may be
/// gone, and that of who gets the number next knows others.
void forget_sources(Interface& ni, std::uint32_t number) {
  ni.eqs.for_each([number](Handle, EventQueue& events) {
    for (std::uint64_t i = 0; i < events.size(); ++i) {
      Event& event = events.at_on_duty(i);
      if (event.pt_index / kPortalsPerEndpoint != number) continue;
      event.pt_index = portal_of(kMaxEndpoints, static_cast<PortalUse>(event.pt_index % kPortalsPerEndpoint));
    }
  });
}

/// Whether a context is another one of the same scalable endpoint, by which memory can be reached.
bool stands_in(const Receive& other, const Receive& rx) {
  return other.open && other.whole == rx.whole && &other != &rx;
}

/// On duty: memory is reached by the address of a scalable endpoint while any of its contexts is open. That address is
/// the one of the first context; while this is closed, another one stands in for it. @param rx  of a context
void choose_for_memory(Interface& ni, const Receive& rx) {
  if (rx.whole->first_is_there) return;
  const auto found = std::ranges::find_if(
      rx.domain->receivers, [&rx](const Receive* other) { return other->open && other->whole == rx.whole; });
  const bool is_reached = found != rx.domain->receivers.end();
  ni.portal_table[portal_of(rx.whole->number, PortalUse::kMemory)] =
      is_reached ? ni.portal_table[portal_of((*found)->number, PortalUse::kMemory)] : nullptr;
  rx.domain->lane->receivers[rx.whole->number] = is_reached ? *found : nullptr;
  if (!is_reached) forget_sources(ni, rx.whole->number);
}

bool is_first_context(const Receive& rx) { return rx.whole != nullptr && rx.number == rx.whole->number; }

/// On duty: the first context is closed, or could not be opened.
void leave_memory(Interface& ni, const Receive& rx) {
  rx.whole->first_is_there = false;
  choose_for_memory(ni, rx);
}

void shut_portal_of(Core& core, const Receive& rx, PortalUse use) {
  Interface& ni = interface_of(core);
  if (PortalTableEntry* portal = ni.portal(portal_of(rx.number, use))) shut_portal(core, ni, *portal);
}

/// On duty: no message is received by it any more.
void shut_messages(Core& core, Receive& rx) {
  rx.open = rx.enabled = false;
  for (const PortalUse use : {PortalUse::kTagged, PortalUse::kMessage, PortalUse::kCredit})
    shut_portal_of(core, rx, use);
  rx.domain->engine->show_endpoint_on_duty(rx.number, false);
}

/// On duty: no memory is reached by it any more, and nothing has come from anybody by it.
void shut_memory(Core& core, Receive& rx) {
  std::erase(rx.domain->receivers, &rx);
  if (rx.whole != nullptr && !is_first_context(rx)) choose_for_memory(interface_of(core), rx);
  shut_portal_of(core, rx, PortalUse::kMemory);
  for (const auto& [key, region] : rx.domain->regions) region->forget(rx.number);
  rx.domain->lane->receivers[rx.number] = nullptr;
  forget_sources(interface_of(core), rx.number);
}

/// On duty: nothing is arriving. @return whether the portal table entry is gone: some peer may be inside it
bool remove_portal(Core& core, Interface& ni, std::uint16_t pt_index) {
  if (ni.portal(pt_index) == nullptr) return true;  // It was that of a shared context.
  PortalTableEntry& portal = *ni.portal(pt_index);
  while (UnexpectedEntry* claimed = portal.held.first()) drop_held(core, ni, *static_cast<UnexpectedHeader*>(claimed));
  while (UnexpectedEntry* header = portal.unexpected.first()) {
    portal.unexpected.remove(*header);
    release_header(core, ni, static_cast<UnexpectedHeader*>(header));
  }
  unlink_all(core, ni, portal.priority);
  unlink_all(core, ni, portal.overflow);
  if (portal.has_entries()) return false;
  ni.portal_table[pt_index].reset();
  return true;
}

}  // namespace

void close_memory(Interface& ni, MemoryDescriptor* md) {
  if (md == nullptr) return;
  md->eq_handle = md->ct_handle = 0;
  md->released = true;
  ++md->pending;
  end_operation(ni, *md);
}

void open_transmit_half(Core& core, Transmit& tx) {
  Interface& ni = interface_of(core);
  tx.mds.fill(nullptr);
  for (std::size_t i = 0; i < kMdUseCount; ++i) {
    Handle handle = 0;
    MemoryDescriptor* md = ni.mds.allocate(&handle);
    if (md == nullptr) {
      close_transmit(core, tx);
      throw std::bad_alloc();
    }
    const CounterFid* cntr = kMdRules[i].counts ? counter_for(tx, static_cast<MdUse>(i)) : nullptr;
    *md = {};
    tx.mds[i] = md;
    md->use = ni.mds.use_of(handle);
    md->segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
    md->options = kMdRules[i].options | tx.context << kMdContextShift;
    md->handle = handle;
    md->eq_handle = tx.cq != nullptr && static_cast<MdUse>(i) != MdUse::kOperand ? tx.cq->eq_handle : 0;
    md->ct_handle = cntr != nullptr ? cntr->ct_handle : 0;
  }
  tx.enabled = true;
}

void close_transmit(Core& core, Transmit& tx) {
  Interface& ni = interface_of(core);
  for (MemoryDescriptor*& md : tx.mds) close_memory(ni, std::exchange(md, nullptr));
  tx.enabled = false;
}

void open_receive_half(Core& core, Receive& rx) {
  try {
    rx.domain->receivers.push_back(&rx);
    if (is_first_context(rx)) {
      rx.whole->first_is_there = true;
      interface_of(core).portal_table[portal_of(rx.number, PortalUse::kMemory)].reset();
    }
    for (const PortalUse use : kPortalUses) {
      if (!open_portal(core, rx, use)) throw std::bad_alloc();
    }
    for (const auto& [key, region] : rx.domain->regions) {
      if (region->enabled) open_region_at(core, *region, rx);
    }
  } catch (...) {
    withdraw_receive(core, rx);
    throw;
  }
  rx.open = true;
  rx.domain->lane->receivers[rx.number] = &rx;
  if (rx.whole != nullptr) choose_for_memory(interface_of(core), rx);
  if (!rx.shared) rx.domain->engine->show_endpoint_on_duty(rx.number, true);
}

void withdraw_receive(Core& core, Receive& rx) {
  shut_messages(core, rx);
  shut_memory(core, rx);
  for (const PortalUse use : kPortalUses) remove_portal(core, interface_of(core), portal_of(rx.number, use));
  if (is_first_context(rx)) leave_memory(interface_of(core), rx);
}

namespace {

/// A receiving half that is being closed.
class Closing {
 public:
  explicit Closing(Receive& rx) : rx_(rx) {}

  /// On duty.
  void begin(Core& core) {
    const auto& others = rx_.domain->receivers;
    shut_messages(core, rx_);
    // Who writes to a scalable endpoint does not hear of it: what arrives goes on to the end, and what comes next finds
    // another context there.
    keeps_memory_ = is_first_context(rx_) &&
                    std::ranges::any_of(others, [this](const Receive* other) { return stands_in(*other, rx_); });
    if (!keeps_memory_) shut_memory(core, rx_);
  }

  /// On duty. @return whether nothing is arriving
  bool is_quiet(Core& core) {
    if (keeps_memory_ && is_quiet_at(core, PortalUse::kMemory)) end_memory(core);
    return std::ranges::all_of(kPortalUses, [&](PortalUse use) { return is_quiet_at(core, use); });
  }

  /// On duty. @param quiet  nothing is arriving
  /// @return whether nothing is left
  bool end(Core& core, bool quiet) {
    if (keeps_memory_) end_memory(core);
    if (!quiet) return false;
    give_late_answers(core, interface_of(core), true);
    bool gone = true;
    for (const PortalUse use : kPortalUses) gone = remove(core, use) && gone;
    return gone;
  }

 private:
  /// Under the number of a first context, memory may be that of another one already.
  bool is_own(PortalUse use) const {
    return use != PortalUse::kMemory || !is_first_context(rx_) || rx_.whole->first_is_there;
  }
  bool is_quiet_at(const Core& core, PortalUse use) const {
    const PortalTableEntry* portal = interface_of(core).portal(portal_of(rx_.number, use));
    return !is_own(use) || portal == nullptr || portal->in_progress == 0;
  }
  bool remove(Core& core, PortalUse use) {
    Interface& ni = interface_of(core);
    if (!is_own(use)) return true;
    const bool gone = remove_portal(core, ni, portal_of(rx_.number, use));
    if (gone && use == PortalUse::kMemory && is_first_context(rx_)) leave_memory(ni, rx_);
    return gone;
  }
  void end_memory(Core& core) {
    keeps_memory_ = false;
    shut_memory(core, rx_);
    if (is_quiet_at(core, PortalUse::kMemory)) remove(core, PortalUse::kMemory);
  }

  Receive& rx_;
  bool keeps_memory_ = false;
};

}  // namespace

bool close_receive(Engine& engine, Receive& rx) {
  Closing closing(rx);
  {
    const Engine::Duty duty(engine);
    closing.begin(duty.core());
  }
  auto is_quiet = [&](Core& core) { return closing.is_quiet(core); };
  const bool quiet = engine.wait(is_quiet, Engine::kLingerNs, OnAbort::kGoOn) == WaitResult::kReached;
  const Engine::Duty duty(engine);
  return closing.end(duty.core(), quiet);
}

}  // namespace portofu::fabric
