#pragma once
// How long files of this process may be (RLIMIT_FSIZE). Beyond that the kernel does not refuse: it sends SIGXFSZ, which
// ends the process, also where write(2) changes the middle of a file that is longer.

#include <sys/resource.h>

#include <cstdint>

namespace portofu {

inline bool is_allowed_length(std::uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

}  // namespace portofu
