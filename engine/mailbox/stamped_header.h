#pragma once
// What every packet of ours carries, whichever side sends it.

#include "engine/core/core.h"

namespace portofu {

/// Fills what every packet carries but its type. To be done last where in_words follows, which stores this first: then
/// it need not wait in a register, or in half a word on the stack.
inline void stamp(const Core& core, PacketHeader& header) {
  header.uid = core.uid;
  header.job_key = core.settings.job_key;
}

/// A header with the part that every packet carries.
inline PacketHeader stamped_header(const Core& core, PacketType type) {
  PacketHeader header{};
  header.type = type;
  stamp(core, header);
  return header;
}

}  // namespace portofu
