#pragma once
// What every packet of ours carries, whichever side sends it.

#include "engine/core/core.h"

namespace portofu {

/// Fills what every packet carries but its type.
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
