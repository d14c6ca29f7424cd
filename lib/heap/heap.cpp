// portofu.h: the heap of the engine, as C programs see it.

#include <portofu.h>

#include "engine/door/heap.h"

using namespace portofu;

namespace {

constexpr size_t kUsualAlignment = 64;

}  // namespace

void* portofu_alloc(size_t bytes, size_t alignment) {
  const size_t wanted = alignment == 0 ? kUsualAlignment : alignment;
  if ((wanted & (wanted - 1)) != 0) return nullptr;
  return allocate_shared(bytes, wanted);
}

void portofu_free(void* memory) {
  if (memory != nullptr) process_heap().free(memory);
}
