#include "engine/queue/random_bytes.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

#include "engine/queue/cancellation.h"

namespace portofu {
namespace {

/// A signal may interrupt a read; so many in a row mean that something else is wrong.
constexpr int kMostTries = 100;

bool read_device(void* into, std::size_t bytes) {
  const NoCancellation whole;
  const int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = -1;
  for (int tries = 0; tries < kMostTries && got < 0; ++tries) {
    got = ::read(fd, into, bytes);
    if (got < 0 && errno != EINTR) break;
  }
  const int error = got < 0 ? errno : EIO;
  ::close(fd);
  errno = error;
  return got == static_cast<ssize_t>(bytes);
}

}  // namespace

bool draw_random(void* into, std::size_t bytes) {
  // Up to 256 bytes come whole, or not at all.
  if (getrandom(into, bytes, GRND_NONBLOCK) == static_cast<ssize_t>(bytes)) return true;
  return read_device(into, bytes);
}

}  // namespace portofu
