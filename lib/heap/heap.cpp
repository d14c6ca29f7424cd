// portofu.h: the heap of the engine, as C programs see it, and a hint.

#include <portofu.h>
#include <sched.h>

#include "engine/door/heap.h"
#include "engine/door/process.h"

using namespace portofu;

namespace {

constexpr size_t kUsualAlignment = 64;

/// A look at the engines and a system call take as long as some pauses.
constexpr unsigned kPausesPerLook = 16;

}  // namespace

void* portofu_alloc(size_t bytes, size_t alignment) {
  const size_t wanted = alignment == 0 ? kUsualAlignment : alignment;
  if ((wanted & (wanted - 1)) != 0) return nullptr;
  return allocate_shared(bytes, wanted);
}

void portofu_free(void* memory) {
  if (memory != nullptr) process_heap().free(memory);
}

void portofu_relax(void) {
  static thread_local unsigned pauses = 0;
  pause_cpu();
  if (++pauses % kPausesPerLook != 0) return;
  step_process_engines();
  sched_yield();
}
