#pragma once
// Steps 2 to 4: a descriptor becomes packets. What cannot go out now waits, in order, at its peer (this is the TOQ),
// and goes on when there is room; nothing is lost and the caller is not held up.

#include <functional>

#include "engine/core/core.h"

namespace portofu {

/// Starts one descriptor: a transfer, or a change of a counter. Its memory descriptors are looked up now, so a
/// triggered operation whose MD is gone does nothing.
/// @param descriptor  its packet header is completed
void start_descriptor(Core& core, Descriptor& descriptor);

/// Does in one go what needs no state: a request of one packet that has nothing before it on its way to its peer, or
/// one of which the peer need not know. Its memory descriptors are known to be good, and are not for one operation
/// only.
/// @return false if the request is not of that kind, or cannot leave now. Nothing has happened then; call
/// start_descriptor
bool send_at_once(Core& core, Interface& ni, MemoryDescriptor& md, Descriptor& descriptor);

/// Cancels a request that waits at its peer, and of which nothing has left; its end is told as a failure.
/// @param is_it  whether it is this one
/// @return false if there is none
bool cancel_request(Core& core, const std::function<bool(const Descriptor&)>& is_it);

}  // namespace portofu
