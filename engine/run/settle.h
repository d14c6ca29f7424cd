#pragma once
// Operations that a peer has acknowledged without a packet are complete. Between step 4 and step 9 of a put.

#include "engine/core/core.h"

namespace portofu {

/// Takes acknowledgements that came without a packet (Completions::acknowledge). @return how many
int take_acknowledgements(Core& core);
int take_acknowledgements(Core& core, Peer& peer);

}  // namespace portofu
