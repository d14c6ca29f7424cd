#include "lib/libfabric/named_addresses.h"

#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

namespace portofu::fabric {
namespace {

constexpr std::uint64_t kUsualCount = 65536;
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 24;

/// In words, so that nothing is ever read half.
using Words = std::array<std::atomic<std::uint64_t>, 2>;
static_assert(sizeof(Words) == sizeof(Address) && std::atomic<std::uint64_t>::is_always_lock_free);

/// Names of files may hold anything but slashes.
std::string path_of(const std::string& name) {
  std::string plain = name;
  std::ranges::replace(plain, '/', '_');
  return "/portofu-av-" + std::to_string(getuid()) + "-" + plain;
}

}  // namespace

/// Whoever opens it may write it, so what is read of it is checked.
struct NamedAddresses::Shared {
  std::atomic<std::uint64_t> claimed;  ///< Places that somebody has taken; may exceed what there is room for.
  std::uint64_t reserved;
  Words addresses[];  ///< NID and PID, number. A first word of 0: not written yet, or removed.
};

namespace {

/// Opens the file and says by a lock that it is in use, so that the last user, or the first after users that died,
/// knows what he is.
/// @param first  set: nobody else has it, so it may hold anything
/// @return -1, with the reason in `error`
int open_locked(const std::string& path, bool read_only, bool* first, int* error) {
  constexpr int kAttempts = 16;  // Somebody may remove it meanwhile.
  for (int i = 0; i < kAttempts; ++i) {
    const int fd = shm_open(path.c_str(), read_only ? O_RDWR : O_RDWR | O_CREAT, 0600);
    *error = errno == ENOENT ? -FI_ENOENT : -FI_EACCES;
    if (fd < 0) return -1;
    *first = flock(fd, LOCK_EX | LOCK_NB) == 0;
    struct stat found {};
    if (!*first && flock(fd, LOCK_SH) != 0) found.st_nlink = 0;
    if (fstat(fd, &found) == 0 && found.st_nlink != 0 && found.st_uid == geteuid()) return fd;
    close(fd);
  }
  return -1;
}

}  // namespace

std::unique_ptr<NamedAddresses> NamedAddresses::open(const std::string& name, std::uint64_t count, bool read_only,
                                                     int* error) {
  *error = -FI_EINVAL;
  if (name.empty() || name.size() > 200 || count > kMostCount) return nullptr;
  const std::string path = path_of(name);
  bool first = false;
  const int fd = open_locked(path, read_only, &first, error);
  if (fd < 0) return nullptr;
  if (first && read_only) {  // What is left of the dead is not there.
    shm_unlink(path.c_str());
    close(fd);
    *error = -FI_ENOENT;
    return nullptr;
  }
  const auto wanted = static_cast<off_t>(sizeof(Shared) + std::max(count, kUsualCount) * sizeof(Words));
  const bool made = !first || (ftruncate(fd, 0) == 0 && ftruncate(fd, wanted) == 0 && flock(fd, LOCK_SH) == 0);
  struct stat found {};
  void* mapped = MAP_FAILED;
  if (made && fstat(fd, &found) == 0 && found.st_size >= static_cast<off_t>(sizeof(Shared)))
    mapped = mmap(nullptr, static_cast<std::size_t>(found.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  *error = -FI_ENOMEM;
  if (mapped == MAP_FAILED) {
    close(fd);
    return nullptr;
  }
  std::unique_ptr<NamedAddresses> opened(new NamedAddresses);
  opened->shared_ = static_cast<Shared*>(mapped);
  opened->bytes_ = static_cast<std::uint64_t>(found.st_size);
  opened->path_ = path;
  opened->fd_ = fd;
  opened->read_only_ = read_only;
  return opened;
}

NamedAddresses::~NamedAddresses() {
  munmap(shared_, bytes_);
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) shm_unlink(path_.c_str());
  close(fd_);
}

std::uint64_t NamedAddresses::size() const {
  return std::min(shared_->claimed.load(std::memory_order_acquire), (bytes_ - sizeof(Shared)) / sizeof(Words));
}

Address NamedAddresses::at(std::uint64_t place) const {
  Address address;
  if (place >= size()) return address;
  const std::uint64_t process = shared_->addresses[place][0].load(std::memory_order_acquire);
  address.nid = static_cast<std::uint32_t>(process >> 32);
  address.pid = static_cast<std::uint32_t>(process);
  address.number = static_cast<std::uint32_t>(shared_->addresses[place][1].load(std::memory_order_acquire));
  return address;
}

std::uint64_t NamedAddresses::append(const Address& address) {
  const std::uint64_t place = shared_->claimed.fetch_add(1, std::memory_order_acq_rel);
  if (place >= size()) return UINT64_MAX;
  shared_->addresses[place][1].store(address.number, std::memory_order_relaxed);
  shared_->addresses[place][0].store(std::uint64_t{address.nid} << 32 | address.pid, std::memory_order_release);
  return place;
}

void NamedAddresses::remove(std::uint64_t place) {
  if (place < size()) shared_->addresses[place][0].store(0, std::memory_order_release);
}

}  // namespace portofu::fabric
