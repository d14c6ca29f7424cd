#pragma once
// Looks at processes of this node, by their segments, their memory and what the kernel says of them.

#include <string>
#include <vector>

#include "engine/inspect/picture.h"

namespace portofu {

/// @param view  of its segment
ProcessPicture look_at_process(const SegmentView& view, Depth depth = Depth::kAll);

/// Looks at all processes of this user whose segments lie in a directory. One with several lanes is there several
/// times.
/// @return false if the directory cannot be read
bool look_at_processes(const std::string& directory, std::vector<ProcessPicture>* pictures);

}  // namespace portofu
