// What libfabric does when a process loads it and opens an endpoint of it is most of what a short test between nodes
// computes. Test programs have less of that; those of MPI have what users have.
//
// Its provider for verbs reads all symbols of the kernel twice, to find what its hardware would need: 75 ms. Test
// programs have no such hardware and say that there are none.
//
// Its provider of reliable datagrams over TCP keeps 4096 receives of 16 KiB posted, and writes to each page of them: 50
// MiB, half of the rest. Test programs, and those that they start, have 128, unless whoever starts them says otherwise.
// So have tests with sanitizers (CMakePresets.json).

#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" FILE* fopen(const char* path, const char* mode) {
  static auto* const next = reinterpret_cast<decltype(&fopen)>(dlsym(RTLD_NEXT, "fopen"));
  if (std::strcmp(path, "/proc/kallsyms") != 0) return next(path, mode);
  errno = ENOENT;
  return nullptr;
}

[[gnu::constructor]] static void keep_few_receives() { setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0); }
#endif
