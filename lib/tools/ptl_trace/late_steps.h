#pragma once
// A recording that is too long for memory is read until a moment, the same for all lanes: each packet that came in
// before it went out before it.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/ptl_trace/step_reader.h"

namespace portofu::tools {

/// When steps begin to be too many, by the clock of each lane.
/// @param lanes  without their steps
/// @param paths  of their files
/// @param most   steps of all lanes together; up to what a ring holds of each comes with them
std::vector<std::uint64_t> late_steps_begin(const std::vector<LaneSteps>& lanes, const std::vector<std::string>& paths,
                                            std::uint64_t most);

/// Steps that half of the memory that is free has room for.
std::uint64_t most_steps_in_memory();

}  // namespace portofu::tools
