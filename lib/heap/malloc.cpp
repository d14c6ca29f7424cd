// libportofu_malloc.so: malloc and its relatives from the heap that peers map, for programs that cannot be changed.
// What the heap has no room for, and what the heap itself needs, comes from the C library's own allocator.

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/segment/shared_heap.h"

using namespace portofu;

// The C library's own, by the names that are left when malloc is replaced.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}

namespace {

constexpr size_t kNaturalAlignment = alignof(max_align_t);

/// True while this thread is inside the heap: what the heap allocates for itself comes from elsewhere. initial-exec,
/// because the loader would allocate other thread-local memory with malloc.
__attribute__((tls_model("initial-exec"))) thread_local bool inside = false;

class Inside {
 public:
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

/// @return nullptr if the C library has to do it
void* allocate(size_t bytes, size_t alignment) {
  if (inside) return nullptr;
  const Inside mark;
  return allocate_shared(bytes, alignment);
}

bool is_ours(const void* block) { return process_heap().holds(block, 1); }

void* aligned(size_t alignment, size_t bytes) {
  void* block = allocate(bytes, alignment);
  return block != nullptr ? block : __libc_memalign(alignment, bytes);
}

bool is_power_of_two(size_t number) { return number != 0 && (number & (number - 1)) == 0; }

size_t page_bytes() { return 4096; }

}  // namespace

#define PORTOFU_MALLOC extern "C" __attribute__((visibility("default")))

PORTOFU_MALLOC void* malloc(size_t bytes) {
  void* block = allocate(bytes, kNaturalAlignment);
  return block != nullptr ? block : __libc_malloc(bytes);
}

PORTOFU_MALLOC void free(void* block) {
  if (block == nullptr) return;
  if (!is_ours(block)) return __libc_free(block);
  const int kept = errno;
  process_heap().free(block);
  errno = kept;
}

PORTOFU_MALLOC void* calloc(size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* block = allocate(all, kNaturalAlignment);
  return block != nullptr ? std::memset(block, 0, all) : __libc_calloc(count, bytes);
}

PORTOFU_MALLOC void* realloc(void* block, size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  if (!is_ours(block)) return __libc_realloc(block, bytes);
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  const size_t present = process_heap().usable_bytes(block);
  // A block that shrinks a little stays where it is.
  if (bytes <= present && bytes >= present / 2) return block;
  void* moved = malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(present, bytes));
  free(block);
  return moved;
}

PORTOFU_MALLOC int posix_memalign(void** block, size_t alignment, size_t bytes) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int kept = errno;
  void* made = aligned(alignment, bytes);
  errno = kept;
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

PORTOFU_MALLOC void* aligned_alloc(size_t alignment, size_t bytes) {
  return is_power_of_two(alignment) ? aligned(alignment, bytes) : __libc_memalign(alignment, bytes);
}

PORTOFU_MALLOC void* memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }

PORTOFU_MALLOC void* valloc(size_t bytes) { return aligned(page_bytes(), bytes); }

PORTOFU_MALLOC void* pvalloc(size_t bytes) {
  if (bytes > SIZE_MAX - page_bytes()) {
    errno = ENOMEM;
    return nullptr;
  }
  return aligned(page_bytes(), (bytes + page_bytes() - 1) / page_bytes() * page_bytes());
}

PORTOFU_MALLOC size_t malloc_usable_size(void* block) {
  if (block == nullptr) return 0;
  if (is_ours(block)) return process_heap().usable_bytes(block);
  static constinit std::atomic<size_t (*)(void*)> original{nullptr};
  size_t (*ask)(void*) = original.load(std::memory_order_relaxed);
  if (ask == nullptr) {
    ask = reinterpret_cast<size_t (*)(void*)>(dlsym(RTLD_NEXT, "malloc_usable_size"));
    original.store(ask, std::memory_order_relaxed);
  }
  return ask != nullptr ? ask(block) : 0;
}
