#pragma once
// Step 5: a packet has arrived. Its header was copied once by the wire; it is checked here, and everything behind here
// uses the checked copy. Nothing from a peer is trusted or read twice.

#include "engine/core/core.h"

namespace portofu {

/// Handles one packet.
void receive_packet(Core& core, const Packet& packet);

/// A source will send nothing more: what was arriving from it will never be complete.
/// @param context  SourceContext::engines of that source; nullptr if nothing ever came
void close_source(Core& core, void* context);

}  // namespace portofu
