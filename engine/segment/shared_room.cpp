#include "engine/segment/shared_room.h"

#include <sys/statfs.h>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"

namespace portofu {
namespace {

constinit ToldOnce told_of_little_room;

constexpr double kMebibyte = 1 << 20;

}  // namespace

SharedRoom shared_room(const std::string& directory) {
  struct statfs status {};
  if (statfs(directory.c_str(), &status) != 0) return {};
  const auto block = static_cast<std::uint64_t>(status.f_bsize);
  return {status.f_blocks * block, status.f_bavail * block};
}

void tell_of_little_room(const std::string& directory) {
  if (!told_of_little_room.is_first()) return;
  const SharedRoom room = shared_room(directory);
  log_warning(
      "%s has %.1f of %.1f MiB left: further peers get small rings, and long messages no send area, so they are "
      "slower; make it larger (docker run --shm-size)",
      directory.c_str(), static_cast<double>(room.free) / kMebibyte, static_cast<double>(room.total) / kMebibyte);
}

}  // namespace portofu
