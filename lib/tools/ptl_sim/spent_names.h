#pragma once
// What the parts of a rank's time are called.

#include <array>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// By VirtualSpent.
inline constexpr std::array<const char*, kVirtualSpentCount> kSpentNames{"put",  "get",  "atomic", "barrier",
                                                                         "look", "wait", "memory", "compute"};

}  // namespace portofu::tools
