#pragma once
// Messages that are complete but for their bytes, which are still in the memory of their sender: those of several are
// read by one call of the kernel. Before it: target/request and initiator/answer_in put a message off. After it: these
// complete what was put off, in order, before anything else of any sender is received and before the loop's burst ends.

#include "engine/core/core.h"
#include "engine/mailbox/destination.h"

namespace portofu {

/// Puts a whole message off. Its `finish` will be called, and `arrival.fail` say whether its bytes could be had.
/// @param place  for as many bytes of the payload
/// @return false: it has to be read now, because it goes to several pieces, or its wire cannot
bool put_off(Core& core, Peer& peer, const LateMessage& message, const Destination& place);

/// Whether the packet may come behind what was put off, before that is complete.
bool may_join_late_messages(const Core& core, const Packet& packet);

/// Reads the bytes of what was put off, and completes it.
void read_late_messages(Core& core);
inline void finish_late_messages(Core& core) {
  if (!core.late_messages.empty()) [[unlikely]]
    read_late_messages(core);
}

}  // namespace portofu
