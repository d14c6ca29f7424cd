#pragma once
// What the two halves of libportofu_malloc.so share: the functions of C, and the operators of C++.

#include <cstddef>

/// A function that takes the place of the C library's.
#define PORTOFU_MALLOC extern "C" __attribute__((visibility("default")))

namespace portofu {

/// malloc or memalign, as the program calls them. @return nullptr if there is no memory
void* allocate_for_new(std::size_t bytes, std::size_t alignment);

/// Gives back what allocate_for_new returned.
void free_of_delete(void* block);

}  // namespace portofu
