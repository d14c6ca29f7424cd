#pragma once
// Messages that are complete but for their bytes, which are still in the memory of their sender: those of several are
// read by one call of the kernel. Before it: target/request and initiator/answer_in put a message off. After it: these
// complete what was put off, in order, before anything else of any sender is received and before the loop's burst ends.

#include "engine/core/core.h"

namespace portofu {

/// Puts a whole message off.
/// @param arrival  what its completion needs; `fail` will say whether its bytes could be had
/// @param bytes    of `payload`, for `target` from `offset` on
/// @return false: it has to be read now, because it goes to several pieces, or its wire cannot
bool put_off(Core& core, Peer& peer, const Arrival& arrival, Payload payload, const MemorySegment& target,
             std::uint64_t offset, std::uint64_t bytes);

/// Whether the packet may come behind what was put off, before that is complete.
bool may_join_late_messages(const Core& core, const Packet& packet);

/// Reads the bytes of what was put off, and completes it.
void read_late_messages(Core& core);
inline void finish_late_messages(Core& core) {
  if (!core.late_messages.empty()) [[unlikely]]
    read_late_messages(core);
}

}  // namespace portofu
