#pragma once
// Step 8: a message is complete at the target. Unlinks, posts events, counts (which may fire triggers), frees. The
// answer is the caller's next step. @spec Portals 4.3, 3.13, 3.14

#include "engine/address/core.h"

namespace portofu {

/// Fills the full event of a message at its target, table 3-3, as far as it is known now.
/// @param event  all fields zero
void fill_target_event(const Arrival& arrival, Event& event);

/// Ends an arrival that matched: `arrival.fail` says how. Afterwards `arrival.entry` must not be used.
void complete_arrival(Core& core, Interface& ni, Peer& peer, Arrival& arrival);

/// Gives an unexpected header to the append or search that matched it: takes it out of the list, and raises the
/// overflow event, now or when the message is complete.
void claim_header(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader& header,
                  const OverflowClaim& claim);

/// Raises AUTO_UNLINK of an entry that left its list by itself.
void report_auto_unlink(Core& core, Interface& ni, Handle eq_handle, std::uint16_t pt_index, std::uint32_t options,
                        void* user_ptr);

/// Goes on with an entry that left its list by itself, as far as what refers to it allows: AUTO_UNLINK, AUTO_FREE,
/// freed.
void advance_unlink(Core& core, Interface& ni, ListEntry& entry);

}  // namespace portofu
