#pragma once
// Prints the last steps of a process that runs, hangs, or has died.

#include <cstdint>

namespace portofu::tools {

/// @param pid    in the numbering of Portals or of the kernel; 0: all
/// @param count  most steps of each lane
/// @return exit status: 1 if nothing was found
int print_last_steps(std::uint32_t pid, std::uint64_t count);

}  // namespace portofu::tools
