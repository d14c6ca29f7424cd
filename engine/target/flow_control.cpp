#include "engine/target/flow_control.h"

#include "engine/target/published_entry.h"

namespace portofu {

Refusal exhausted(Core& core, Interface& ni, std::uint32_t pt_index, const ListEntry* entry) {
  PortalTableEntry& portal = *ni.portal(pt_index);
  if (!portal.flow_control) return Refusal::kNoMatch;
  portal.disable(entry == nullptr ? DisabledBy::kNoEntry : DisabledBy::kNoResources, core.now_ns());
  withdraw_entries(core, ni, portal);
  core.counters.add(Counter::kFlowControlEvents);
  if (entry != nullptr && (entry->options & kEntryEventFlowctrlDisable) != 0) return Refusal::kFlowControl;
  EventQueue* queue = ni.eqs.find(portal.eq_handle);
  if (queue == nullptr) return Refusal::kFlowControl;
  // Its failure type stays PTL_NI_OK. "The ni_fail_type of any generated full event must be PTL_NI_PT_DISABLED" (2.8)
  // is said of the refused messages, and follows their ACK and REPLY; the type is for events of the initiator only
  // (3.13.3), and this event is never one of those (table 3-2).
  Event event;
  event.type = EventKind::kPtDisabled;
  event.pt_index = static_cast<std::uint16_t>(pt_index);
  queue->post_reserved_on_duty(event);
  core.counters.add(Counter::kEventsPosted);
  ++core.activity;
  return Refusal::kFlowControl;
}

}  // namespace portofu
