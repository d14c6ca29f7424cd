#pragma once
// A process as a key of ordered tables.

#include <cstdint>

#include "engine/topology/process_id.h"

namespace portofu {

inline std::uint64_t process_key(ProcessId id) { return std::uint64_t{id.nid} << 32 | id.pid; }

}  // namespace portofu
