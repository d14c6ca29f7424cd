#pragma once
// Who runs in this process, for decisions at its end. Each question costs several system calls.

#include <sys/types.h>

#include <cstddef>

namespace portofu {

/// While it lives, the thread that made it is one of the library's own. There may be kMostLibraryThreads.
class LibraryThread {
 public:
  LibraryThread();
  ~LibraryThread();
  LibraryThread(const LibraryThread&) = delete;
  LibraryThread& operator=(const LibraryThread&) = delete;

 private:
  std::size_t place_;  ///< kMostLibraryThreads: none was free.
};

inline constexpr std::size_t kMostLibraryThreads = 64;

/// Whether some thread lives in this process besides the calling one and the library's own. True also if the system
/// does not tell.
bool has_other_threads();

}  // namespace portofu
