// libportofu_malloc.so: malloc and its relatives from the heap that peers map, for programs that cannot be changed.
// What the heap has no room for, and what the heap itself needs, comes from the C library's own allocator; so does
// everything as long as nobody has loaded a library by which peers could reach it.
//
// Who else may be there. An allocator that is loaded behind this one (tcmalloc, jemalloc, a program linked with them)
// is not asked by anybody, except that tcmalloc also takes the C library's own names, and is then what the heap's rest
// comes from. One that is loaded before this one has malloc and free: then nothing here may give out memory that it
// would get back, so what it lacks is made from what it has, and the user is told.

#include "lib/heap/malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/door/heap.h"

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

/// Keeps errno, too: an allocation that succeeds in another way has not failed. A signal handler may interrupt one.
class Inside {
 public:
  Inside() : errno_(errno), before_(inside) { inside = true; }
  ~Inside() {
    inside = before_;
    errno = errno_;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const int errno_;
  const bool before_;
};

/// @return nullptr if the C library has to do it
void* allocate(size_t bytes, size_t alignment) {
  if (inside || !is_shared_memory_wanted()) return nullptr;
  const Inside mark;
  return allocate_shared(bytes, alignment);
}

bool is_ours(const void* block) { return process_heap().holds(block, 1); }

void give_back(void* block) {
  const Inside mark;
  process_heap().free(block);
}

void* aligned(size_t alignment, size_t bytes) {
  void* block = allocate(bytes, alignment);
  return block != nullptr ? block : __libc_memalign(alignment, bytes);
}

bool is_power_of_two(size_t number) { return number != 0 && (number & (number - 1)) == 0; }

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// ---- Another allocator ---------------------------------------------------------------------------------------------

/// What the program calls by these names; ours, unless another allocator was loaded before. Set once, when this library
/// is initialised: until then nobody but it allocates what another one would free.
struct Leading {
  void* (*malloc)(size_t) = nullptr;
  void* (*realloc)(void*, size_t) = nullptr;
  void* (*memalign)(size_t, size_t) = nullptr;
  void (*free)(void*) = nullptr;
};

constinit Leading leading;
constinit std::atomic<bool> is_led{false};  ///< Another allocator leads.
constinit std::atomic<int> calls_of_probe{0};
constexpr size_t kProbeBytes = 4711;

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

void say_who_leads(const void* address) {
  Dl_info info{};
  const char* file = dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "the program";
  const char* const parts[] = {"portofu: libportofu_malloc.so is loaded behind another allocator, ", file,
                               ": memory is not shared with peers. Name libportofu_malloc.so first in LD_PRELOAD, or "
                               "run without the other one.\n"};
  char line[1024];
  size_t bytes = 0;
  for (const char* part : parts) {
    const size_t length = std::min(std::strlen(part), sizeof line - bytes);
    std::memcpy(line + bytes, part, length);
    bytes += length;
  }
  (void)!write(STDERR_FILENO, line, bytes);
}

/// A name says little: the address of malloc may be the program's own entry for it. What is called says it.
void look_who_leads() {
  leading = {find<void* (*)(size_t)>("malloc"), find<void* (*)(void*, size_t)>("realloc"),
             find<void* (*)(size_t, size_t)>("memalign"), find<void (*)(void*)>("free")};
  if (leading.malloc == nullptr || leading.free == nullptr) return;
  leading.free(leading.malloc(kProbeBytes));
  if (calls_of_probe.load(std::memory_order_relaxed) != 0) return;
  is_led.store(true, std::memory_order_relaxed);
  say_who_leads(reinterpret_cast<const void*>(leading.malloc));
}

/// The linker lets it run before all other libraries' (-z initfirst), so that in a child of a fork the heap is the
/// child's own before any other handler writes to it, and so that no handler of others waits for the heap.
__attribute__((constructor)) void begin() {
  follow_forks();
  look_who_leads();
}

bool leads_another() { return is_led.load(std::memory_order_relaxed); }

void* no_memory() {
  errno = ENOMEM;
  return nullptr;
}

/// For what another allocator that leads does not have.
void* aligned_of_leader(size_t alignment, size_t bytes) {
  return leading.memalign != nullptr ? leading.memalign(alignment, bytes) : no_memory();
}

/// Bytes of a block that is not in the heap: asked of whoever has the C library's names.
size_t usable_elsewhere(void* block) {
  static constinit std::atomic<size_t (*)(void*)> original{nullptr};
  size_t (*ask)(void*) = original.load(std::memory_order_acquire);
  if (ask == nullptr) {
    const Inside mark;
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&__libc_malloc), &info) == 0) return 0;
    void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    ask = reinterpret_cast<size_t (*)(void*)>(dlsym(library, "malloc_usable_size"));
    original.store(ask, std::memory_order_release);
  }
  return ask != nullptr ? ask(block) : 0;
}

}  // namespace

// ---- The functions -------------------------------------------------------------------------------------------------

PORTOFU_MALLOC void* malloc(size_t bytes) {
  if (bytes == kProbeBytes) calls_of_probe.fetch_add(1, std::memory_order_relaxed);
  void* block = allocate(bytes, kNaturalAlignment);
  return block != nullptr ? block : __libc_malloc(bytes);
}

PORTOFU_MALLOC void free(void* block) {
  if (block == nullptr) return;
  if (!is_ours(block)) return __libc_free(block);
  give_back(block);
}

PORTOFU_MALLOC void* calloc(size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return no_memory();
  void* block = nullptr;
  if (!inside && is_shared_memory_wanted()) {
    const Inside mark;
    block = allocate_shared_zeroed(all, kNaturalAlignment);
  }
  return block != nullptr ? block : __libc_calloc(count, bytes);
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

PORTOFU_MALLOC void* reallocarray(void* block, size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return no_memory();
  return leads_another() ? leading.realloc(block, all) : realloc(block, all);
}

PORTOFU_MALLOC int posix_memalign(void** block, size_t alignment, size_t bytes) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int kept = errno;
  void* made = leads_another() ? aligned_of_leader(alignment, bytes) : aligned(alignment, bytes);
  errno = kept;
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

PORTOFU_MALLOC void* memalign(size_t alignment, size_t bytes) {
  return is_power_of_two(alignment) ? aligned(alignment, bytes) : __libc_memalign(alignment, bytes);
}

PORTOFU_MALLOC void* aligned_alloc(size_t alignment, size_t bytes) {
  return leads_another() ? aligned_of_leader(alignment, bytes) : memalign(alignment, bytes);
}

PORTOFU_MALLOC void* valloc(size_t bytes) {
  return leads_another() ? aligned_of_leader(page_bytes(), bytes) : aligned(page_bytes(), bytes);
}

PORTOFU_MALLOC void* pvalloc(size_t bytes) {
  if (bytes > SIZE_MAX - page_bytes()) return no_memory();
  return valloc((bytes + page_bytes() - 1) / page_bytes() * page_bytes());
}

/// C23. The size is not needed.
PORTOFU_MALLOC void free_sized(void* block, size_t) { leads_another() ? leading.free(block) : free(block); }
PORTOFU_MALLOC void free_aligned_sized(void* block, size_t, size_t) { free_sized(block, 0); }

PORTOFU_MALLOC size_t malloc_usable_size(void* block) {
  if (block == nullptr) return 0;
  return is_ours(block) ? process_heap().usable_bytes(block) : usable_elsewhere(block);
}

// ---- For operator_new.cpp ------------------------------------------------------------------------------------------

void* portofu::allocate_for_new(std::size_t bytes, std::size_t alignment) {
  if (alignment <= kNaturalAlignment) return leads_another() ? leading.malloc(bytes) : malloc(bytes);
  return leads_another() ? aligned_of_leader(alignment, bytes) : memalign(alignment, bytes);
}

void portofu::free_of_delete(void* block) { free_sized(block, 0); }
