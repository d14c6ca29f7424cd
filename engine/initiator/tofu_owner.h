#pragma once
// Before step 3 of uTofu: which process has the queue or gate that a request goes to. A node that has to be asked first
// takes its time, or never answers; meanwhile its requests wait here, in order, and nobody else waits for them. So do
// requests for a queue that has gone to another process, until all has ended that went to the former one.

#include "engine/core/core.h"

namespace portofu {

/// How long a thread may sleep while nodes are being asked.
inline constexpr std::uint64_t kAskPauseNs = 1'000'000;

/// Finds the process behind the ID of a VCQ or gate. What is remembered is asked again once there is no link to it.
/// @param peer  the process if it is found, else nullptr
/// @return kLater: hand the request to wait_for_owner; so do all others for that owner, until those have left
FindResult find_owner(Core& core, std::uint64_t id, Peer** peer);

/// Learns who has an ID, sooner or later, so that the death of that process is understood.
void learn_owner(Core& core, std::uint64_t id);

/// Keeps a request until its owner is known, or known to be nobody, by an answer that is not older than the request;
/// then start_towards goes on with it.
void wait_for_owner(Core& core, OwnerlessRequest request);

/// Whether nodes are being asked, so that advance_ownerless has to be called soon.
inline bool is_asking_on_duty(const Core& core) { return core.tofu != nullptr && !core.tofu->ownerless.empty(); }

/// Looks for answers, and goes on with what waited for them. @return number of requests
int advance_ownerless(Core& core);

}  // namespace portofu
