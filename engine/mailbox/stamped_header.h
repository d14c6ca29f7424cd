#pragma once
// What every packet of ours carries, whichever side sends it.

#include "engine/core/core.h"

namespace portofu {

/// Fills the part of a header that every packet carries.
inline PacketHeader stamped_header(const Core& core, PacketType type) {
  PacketHeader header{};
  header.type = type;
  header.uid = core.uid;
  header.job_key = core.settings.job_key;
  return header;
}

}  // namespace portofu
