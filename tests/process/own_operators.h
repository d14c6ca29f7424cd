#pragma once
// The operators new and delete of a test program, and so of the libraries in it, by two functions of its own. Included
// by one file of a program.

#include <cstddef>
#include <new>

namespace portofu {

void* allocate(std::size_t bytes, std::size_t alignment);
void release(void* memory);

}  // namespace portofu

void* operator new(std::size_t bytes) { return portofu::allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return portofu::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { portofu::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { portofu::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { portofu::release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { portofu::release(memory); }
