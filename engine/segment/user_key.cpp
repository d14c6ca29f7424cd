#include "engine/segment/user_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/observe/system_failure.h"
#include "engine/queue/random_bytes.h"
#include "engine/segment/file_name.h"
#include "engine/segment/own_descriptor.h"
#include "engine/segment/segment_file.h"

namespace portofu {
namespace {

/// Somebody may make the file between our look and our attempt, or remove it.
constexpr int kTries = 8;

constexpr const char* kKeyAdvice = "allow the call (seccomp), or set PORTOFU_JOB_KEY";

enum class Reading { kRead, kNoFile, kFailed };

Reading read_key(const std::string& path, std::uint32_t* key, std::string* why) {
  const int fd = move_above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd < 0 && errno == ENOENT) return Reading::kNoFile;
  if (fd < 0 && errno != EACCES && errno != EPERM && errno != ELOOP) {
    *why = system_failure("open", path + ", the job key of this user,", errno);
    return Reading::kFailed;
  }
  std::uint64_t bytes = 0;
  const bool good = fd >= 0 && is_private_file(fd, &bytes) && bytes == sizeof *key &&
                    ::read(fd, key, sizeof *key) == static_cast<ssize_t>(sizeof *key) && *key != 0;
  if (fd >= 0) ::close(fd);
  if (!good) *why = path + " is not a job key that only this user can read and write; remove it or set PORTOFU_JOB_KEY";
  return good ? Reading::kRead : Reading::kFailed;
}

/// The file gets its name when it is whole. @return false on failure; that it is there by now is none
bool draw_key(const std::string& directory, const std::string& path, std::string* why) {
  std::uint32_t key = 0;
  if (!draw_random(&key, sizeof key)) {
    *why = system_failure("getrandom", "the job key of this user, and from /dev/urandom,", errno, kKeyAdvice);
    return false;
  }
  if (key == 0) key = 1;
  const int fd = move_above_standard(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd < 0) {
    *why = system_failure("open", "a new file in " + directory + ", for the job key of this user,", errno);
    return false;
  }
  // The umask may have taken our own rights away.
  const bool made = fchmod(fd, 0600) == 0 && write(fd, &key, sizeof key) == static_cast<ssize_t>(sizeof key);
  if (!made)
    *why = system_failure("write", "4 bytes to a new file in " + directory + ", the job key of this user,", errno);
  const int error = made ? give_name(fd, path) : errno;
  const bool named = made && (error == 0 || error == EEXIST);
  if (made && !named) {
    const std::string advice = error == ENOENT ? "mount /proc" : advice_for(error);
    const std::string from = "/proc/thread-self/fd/" + std::to_string(fd);
    *why = system_failure("linkat", from + " to " + path + ", the job key of this user,", error, advice);
  }
  ::close(fd);
  return named;
}

}  // namespace

std::string user_key_path(const std::string& directory) {
  return directory + "/portofu-key-" + std::to_string(geteuid());
}

std::uint32_t find_user_key(const std::string& directory, std::string* why) {
  const std::string path = user_key_path(directory);
  for (int tries = 0; tries < kTries; ++tries) {
    std::uint32_t key = 0;
    switch (read_key(path, &key, why)) {
      case Reading::kRead: return key;
      case Reading::kFailed: return 0;
      case Reading::kNoFile: break;
    }
    if (!draw_key(directory, path, why)) return 0;
  }
  *why = path + " comes and goes";
  return 0;
}

}  // namespace portofu
