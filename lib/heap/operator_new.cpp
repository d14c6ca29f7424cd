// All forms of operator new and delete (C++20, 17.6.3). Those of the C++ library would do, because they call malloc and
// free; those of another allocator that the program is linked with would not give memory that peers map.

#include <cstddef>
#include <new>

#include "lib/heap/malloc.h"

namespace {

constexpr std::size_t kUsual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

/// Asks the new-handler as long as there is one; each of its calls may make room, throw or end the program.
void* make(std::size_t bytes, std::size_t alignment) {
  for (;;) {
    if (void* const block = portofu::allocate_for_new(bytes, alignment)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* make_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  try {
    return make(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::size_t number(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

#define PORTOFU_OPERATOR __attribute__((visibility("default")))
using std::align_val_t;
using std::nothrow_t;
using std::size_t;

PORTOFU_OPERATOR void* operator new(size_t bytes) { return make(bytes, kUsual); }
PORTOFU_OPERATOR void* operator new[](size_t bytes) { return make(bytes, kUsual); }
PORTOFU_OPERATOR void* operator new(size_t bytes, const nothrow_t&) noexcept { return make_or_null(bytes, kUsual); }
PORTOFU_OPERATOR void* operator new[](size_t bytes, const nothrow_t&) noexcept { return make_or_null(bytes, kUsual); }
PORTOFU_OPERATOR void* operator new(size_t bytes, align_val_t at) { return make(bytes, number(at)); }
PORTOFU_OPERATOR void* operator new[](size_t bytes, align_val_t at) { return make(bytes, number(at)); }
PORTOFU_OPERATOR void* operator new(size_t bytes, align_val_t at, const nothrow_t&) noexcept {
  return make_or_null(bytes, number(at));
}
PORTOFU_OPERATOR void* operator new[](size_t bytes, align_val_t at, const nothrow_t&) noexcept {
  return make_or_null(bytes, number(at));
}

PORTOFU_OPERATOR void operator delete(void* block) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete[](void* block) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete(void* block, size_t) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete[](void* block, size_t) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete(void* block, const nothrow_t&) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete[](void* block, const nothrow_t&) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete(void* block, align_val_t) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete[](void* block, align_val_t) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete(void* block, size_t, align_val_t) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete[](void* block, size_t, align_val_t) noexcept { portofu::free_of_delete(block); }
PORTOFU_OPERATOR void operator delete(void* block, align_val_t, const nothrow_t&) noexcept {
  portofu::free_of_delete(block);
}
PORTOFU_OPERATOR void operator delete[](void* block, align_val_t, const nothrow_t&) noexcept {
  portofu::free_of_delete(block);
}
