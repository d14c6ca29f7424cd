// What Portofu has beside portals4.h and utofu.h, whose rules it does not change. -lportofu_heap.
//
// Memory that peers on the same node reach with their own loads and stores: uTofu communication with registered memory
// that lies in it needs no packet and nobody at the target. Programs that cannot be changed get it by
// LD_PRELOAD=libportofu_malloc.so.
//
// And a hint for loops that poll memory.
#ifndef PORTOFU_H
#define PORTOFU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PORTOFU_API __attribute__((visibility("default")))
#else
#define PORTOFU_API
#endif

/// Allocates memory that peers map. Any thread, at any time: before or after Portals and uTofu are initialised, and
/// after they have ended. Its contents are undefined.
/// @param bytes      0 gives memory of no use that may be freed
/// @param alignment  in bytes, a power of two; 0 gives 64. uTofu's put is fastest where its cache line is (256)
/// @return NULL if the alignment is none, if the heap (PORTOFU_HEAP_MIB) or the node's shared memory is full, or if
///         there is no heap; ordinary memory does as well then, by slower ways
/// @post   after a fork the child has a copy of its own, as of ordinary memory
PORTOFU_API void* portofu_alloc(size_t bytes, size_t alignment);

/// Gives memory back. Any thread. Registrations, entries and descriptors of the memory must be gone.
/// @param memory  what portofu_alloc returned; NULL does nothing
PORTOFU_API void portofu_free(void* memory);

/// For the body of a loop that polls memory which others write: `while (*flag == 0) portofu_relax();`. Pauses the core,
/// and every 16th time, which is once in half a microsecond or so, looks after what has arrived for this process and
/// lets other threads have the core. Where processes share cores, such a loop would else keep its core from whoever is
/// to write for milliseconds. Any thread, at any time.
PORTOFU_API void portofu_relax(void);

#ifdef __cplusplus
}
#endif

#endif
