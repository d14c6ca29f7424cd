#pragma once
// Before step 4: makes sure that packets can go to a peer, and cleans up when they no longer can.

#include "engine/address/core.h"

namespace portofu {

/// Outcome of ensure_connected.
enum class Reach : std::uint8_t {
  kNow,    ///< The link carries packets.
  kLater,  ///< Ask again; bounded by Wire::connect_timeout_ns.
  kNever,  ///< There is no such process, or it must not be talked to.
};

Reach ensure_connected(Core& core, Peer& peer);

/// The peer can no longer be reached: gives the link back, ends with PTL_NI_UNDELIVERABLE what it should have answered
/// and what should still have gone there, and drops our answers to it. A later operation connects anew.
void lose_peer(Core& core, Peer& peer);

}  // namespace portofu
