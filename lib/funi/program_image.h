#pragma once
// Functions and variables of the program as words of 32 bits: where they lie in it. "Identical copies of the executable
// binary are loaded" (1.2.1), today anywhere in memory.

#include <cstdint>

namespace portofu::funi {

/// @param code  whether it has to be a function
/// @return 0 if it is not one of the program itself
std::uint32_t offset_in_program(std::uintptr_t address, bool code);

/// The same the other way.
/// @return nullptr if nothing of the kind is there
void* address_in_program(std::uint32_t offset, bool code);

}  // namespace portofu::funi
