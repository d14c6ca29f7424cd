// libfabric's provider for verbs reads all symbols of the kernel twice in each process that loads it, to find what its
// hardware would need: 75 ms, two thirds of what a short test between nodes computes. Test programs have no such
// hardware and say that there are none. Programs that they start, and those of MPI and on hosts, have what users have.

#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" FILE* fopen(const char* path, const char* mode) {
  static auto* const next = reinterpret_cast<decltype(&fopen)>(dlsym(RTLD_NEXT, "fopen"));
  if (std::strcmp(path, "/proc/kallsyms") != 0) return next(path, mode);
  errno = ENOENT;
  return nullptr;
}
#endif
