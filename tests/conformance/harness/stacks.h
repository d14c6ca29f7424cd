// Where the threads of a process are, in words. For whoever reads the log of a test that hung once.
#pragma once

#include <sys/types.h>

#include <string>

namespace conformance {

/// The stacks of all threads of a process, a line each function, by gdb, which stops it meanwhile.
/// @return what gdb says if it may not look; why there is nothing if there is no gdb, or it takes longer than
///         kStacksSeconds
std::string stacks_of(pid_t process);

inline constexpr int kStacksSeconds = 20;

}  // namespace conformance
