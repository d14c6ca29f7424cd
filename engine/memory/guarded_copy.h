#pragma once
// Copies between memory that the application named and memory of the engine. An address that is not mapped ends as
// `false` instead of a crash, wherever the engine's handler for SIGSEGV and SIGBUS is in place.

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
/// 1 if copies use AVX, 2 if AVX-512: what the CPU can do, unless a test says otherwise. 0 until static objects are
/// initialised.
extern "C" [[gnu::visibility("hidden")]] std::uint8_t portofu_copy_wide;
extern "C" [[gnu::visibility("hidden")]] std::size_t portofu_copy_string_from;
#endif

namespace portofu {

/// Copies `bytes` from `source` to `target`. On x86-64 every byte of the target is written exactly once, and a
/// naturally aligned 1, 2, 4 or 8 byte copy is one load and one store (Portals 4.3, 3.6.1, max_atomic_size).
/// @return false if memory was not accessible; part of the target may be written then
bool guarded_copy(std::byte* target, const std::byte* source, std::size_t bytes);

/// The same past the caches: for a target that this core will not read soon, and another one has read. All is written
/// before it returns, as seen from other cores. Where the CPU has no such stores, or the target is not aligned to 16
/// bytes, it is guarded_copy.
bool guarded_copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes);

/// Whether memory can be read: looks at every page of it.
bool guarded_look(const std::byte* memory, std::size_t bytes);

/// Whether the byte can be written to. It keeps its value, whoever else writes.
bool guarded_touch(std::byte* byte);

/// Calls `run(argument)`, which touches memory of the application.
/// @return false if the memory was not accessible; `run` was left where it stood, so it must hold nothing
bool guarded_call(void (*run)(void*), void* argument);

/// Puts the handler in place for the whole process, in front of whatever handler there is. Cheap if it is there
/// already.
void install_fault_guard();

}  // namespace portofu
