#pragma once
// Where an onlooker begins who reads the memory of a process: the segment tells the address of its root.

#include <atomic>
#include <cstdint>

#include "engine/core/core.h"

namespace portofu {

/// Belongs to an engine, and is constant from its construction on.
struct InspectionRoot {
  std::uint64_t stamp = 0;  ///< layout_stamp of whoever wrote it.
  const Core* core = nullptr;
  const std::atomic<std::uint64_t>* application_looks = nullptr;  ///< Grows while the application looks for something.
};

/// What the structures of the engine look like in this build, as one number. Whoever finds another one understands
/// nothing that is behind a root.
std::uint64_t layout_stamp();

}  // namespace portofu
