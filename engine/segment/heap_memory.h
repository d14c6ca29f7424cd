#pragma once
// What the heap of a process (shared_heap.h) usually is: a file of memory alone (memfd). What nobody touches costs
// nothing, /dev/shm may be small, and what is touched is there as far as the machine has memory, as with any malloc. It
// cannot have a name, so a pointer to it (file_pointer.h) is named in its place; map_heap follows that.
//
// Where that does not go, without /proc or where the kernel promises no memory that it lacks, the heap is itself a file
// in /dev/shm (heap_file.h), whose memory is taken before it is given out. Implemented in heap_file.cpp.

#include <cstdint>

namespace portofu {

/// Makes a file of memory alone of `bytes` bytes: 0600.
/// @return the descriptor, -1 if that cannot be done, or would not be found by peers. Async-signal-safe
int open_heap_memory(std::uint64_t bytes);

}  // namespace portofu
