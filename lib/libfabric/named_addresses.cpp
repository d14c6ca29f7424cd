#include "lib/libfabric/named_addresses.h"

#include <dirent.h>
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

#include "engine/door/process.h"

namespace portofu::fabric {
namespace {

constexpr std::uint64_t kUsualCount = 65536;
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 24;

/// In words, so that nothing is ever read half.
using Words = std::array<std::atomic<std::uint64_t>, 2>;
static_assert(sizeof(Words) == sizeof(Address) && std::atomic<std::uint64_t>::is_always_lock_free);

/// How the names of all files of this user begin. Their owner is the effective user.
std::string prefix() { return "portofu-av-" + std::to_string(geteuid()) + "-"; }

/// Names of files may hold anything but slashes.
std::string path_of(const std::string& name) {
  std::string plain = name;
  std::ranges::replace(plain, '/', '_');
  return "/" + prefix() + plain;
}

}  // namespace

/// Whoever opens it may write it, so what is read of it is checked.
struct NamedAddresses::Shared {
  std::atomic<std::uint64_t> used;       ///< Places below are or were in use.
  std::atomic<std::uint64_t> free_from;  ///< Lower half: no place below is free. Upper half: counts removals.
  Words addresses[];                     ///< NID and PID, number and contexts. A first word of 0: it is free.
  // Behind them, for each: its place, as applications name it (fi_av_attr::map_addr).
};

namespace {

constexpr std::uint64_t kPlaceMask = UINT32_MAX;
/// First word of a place that somebody has taken, and not filled yet: no process has such a PID.
constexpr std::uint64_t kTaken = UINT64_MAX;

std::uint64_t process_word(const Address& address) { return std::uint64_t{address.nid} << 32 | address.pid; }

constexpr std::uint64_t kBytesOfOne = sizeof(Words) + sizeof(fi_addr_t);

/// Opens the file and says by a lock that it is in use, so that the last user, or the first after users that died,
/// knows that it is. What is left of the dead may hold anything, and is not there.
/// @param bytes  of a new one; 0: it has to be there
/// @return -1, with the reason in `error`
int open_in_use(const std::string& path, off_t bytes, int* error) {
  constexpr int kAttempts = 16;  // Somebody may remove it meanwhile.
  for (int i = 0; i < kAttempts; ++i) {
    const int fd = shm_open(path.c_str(), bytes == 0 ? O_RDWR : O_RDWR | O_CREAT, 0600);
    *error = errno == ENOENT ? -FI_ENOENT : -FI_EACCES;
    if (fd < 0) return -1;
    *error = -FI_EACCES;
    const bool first = flock(fd, LOCK_EX | LOCK_NB) == 0;
    struct stat found {};
    bool is_good = fstat(fd, &found) == 0 && found.st_uid == geteuid();
    if (is_good && first) {
      if (bytes == 0) shm_unlink(path.c_str());
      *error = bytes == 0 ? -FI_ENOENT : -FI_ENOMEM;
      is_good = bytes != 0 && ftruncate(fd, 0) == 0 && ftruncate(fd, bytes) == 0;
    }
    // Who has the file alone gives that up for a moment, in which a sweep may remove it.
    const bool is_in_use = is_good && flock(fd, LOCK_SH) == 0 && fstat(fd, &found) == 0 && found.st_nlink != 0;
    if (is_in_use) return fd;
    close(fd);
    if (!is_good) return -1;
  }
  return -1;
}

/// Removes what users have left that all were killed. Whoever opens such a file at the same time sees that it is gone,
/// and makes another one.
void sweep() {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir("/dev/shm"), closedir);
  while (const dirent* entry = listing != nullptr ? readdir(listing.get()) : nullptr) {
    const std::string path = std::string("/") + entry->d_name;
    if (!path.starts_with("/" + prefix())) continue;
    const int fd = shm_open(path.c_str(), O_RDWR, 0);
    if (fd < 0) continue;
    struct stat found {};
    const bool is_ours = fstat(fd, &found) == 0 && found.st_uid == geteuid();
    if (is_ours && flock(fd, LOCK_EX | LOCK_NB) == 0) shm_unlink(path.c_str());
    close(fd);
  }
}

}  // namespace

std::unique_ptr<NamedAddresses> NamedAddresses::open(const std::string& name, std::uint64_t count, bool read_only,
                                                     int* error) {
  *error = -FI_EINVAL;
  if (name.empty() || name.size() > 200 || count > kMostCount) return nullptr;
  sweep();
  std::unique_ptr<NamedAddresses> opened(new NamedAddresses);
  opened->path_ = path_of(name);
  opened->read_only_ = read_only;
  const auto wanted = static_cast<off_t>(sizeof(Shared) + std::max(count, kUsualCount) * kBytesOfOne);
  const int fd = opened->fd_ = open_in_use(opened->path_, read_only ? 0 : wanted, error);
  if (fd < 0) return nullptr;
  struct stat found {};
  void* mapped = MAP_FAILED;
  if (fstat(fd, &found) == 0 && found.st_size >= static_cast<off_t>(sizeof(Shared)))
    mapped = mmap(nullptr, static_cast<std::size_t>(found.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  *error = -FI_ENOMEM;
  if (mapped == MAP_FAILED) return nullptr;
  opened->shared_ = static_cast<Shared*>(mapped);
  opened->bytes_ = static_cast<std::uint64_t>(found.st_size);
  return opened;
}

NamedAddresses::~NamedAddresses() {
  const NoCancellation whole;
  if (shared_ != nullptr) munmap(shared_, bytes_);
  if (fd_ < 0) return;
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) shm_unlink(path_.c_str());
  close(fd_);
}

std::uint64_t NamedAddresses::room() const { return (bytes_ - sizeof(Shared)) / kBytesOfOne; }

std::uint64_t NamedAddresses::size() const { return std::min(shared_->used.load(std::memory_order_acquire), room()); }

fi_addr_t* NamedAddresses::places() const { return reinterpret_cast<fi_addr_t*>(&shared_->addresses[room()]); }

/// Somebody may put another address there meanwhile: then both words are read again.
Address NamedAddresses::at(std::uint64_t place) const {
  constexpr int kAttempts = 16;
  for (int i = 0; place < size() && i < kAttempts; ++i) {
    const Words& words = shared_->addresses[place];
    const std::uint64_t process = words[0].load(std::memory_order_acquire);
    const std::uint64_t numbers = words[1].load(std::memory_order_acquire);
    if (words[0].load(std::memory_order_relaxed) != process) continue;
    Address address;
    address.nid = static_cast<std::uint32_t>(process >> 32);
    address.pid = static_cast<std::uint32_t>(process);
    address.number = static_cast<std::uint16_t>(numbers);
    address.contexts = static_cast<std::uint16_t>(numbers >> 16);
    return address;
  }
  return {};
}

std::uint64_t NamedAddresses::insert(const Address& address) {
  std::uint64_t seen = shared_->free_from.load(std::memory_order_acquire);
  for (std::uint64_t place = seen & kPlaceMask; place < room(); ++place) {
    Words& words = shared_->addresses[place];
    std::uint64_t free = 0;
    if (!words[0].compare_exchange_strong(free, kTaken, std::memory_order_acq_rel)) continue;
    std::atomic_ref(places()[place]).store(place, std::memory_order_relaxed);
    words[1].store(address.number | std::uint32_t{address.contexts} << 16, std::memory_order_release);
    words[0].store(process_word(address), std::memory_order_release);
    // Whoever has removed something meanwhile has changed it, and knows better.
    shared_->free_from.compare_exchange_strong(seen, (seen & ~kPlaceMask) | (place + 1), std::memory_order_acq_rel);
    std::uint64_t used = shared_->used.load(std::memory_order_relaxed);
    while (used <= place && !shared_->used.compare_exchange_weak(used, place + 1, std::memory_order_acq_rel)) continue;
    return place;
  }
  return UINT64_MAX;
}

std::uint64_t NamedAddresses::remove(std::uint64_t place, const Address& address) {
  std::uint64_t known = process_word(address);
  if (place >= size() || !shared_->addresses[place][0].compare_exchange_strong(known, 0, std::memory_order_acq_rel))
    return UINT64_MAX;
  std::uint64_t seen = shared_->free_from.load(std::memory_order_relaxed);
  const auto changed = [&] { return ((seen | kPlaceMask) + 1) | std::min(seen & kPlaceMask, place); };
  while (!shared_->free_from.compare_exchange_weak(seen, changed(), std::memory_order_acq_rel)) continue;
  return seen >> 32;
}

std::uint64_t NamedAddresses::removals() const { return shared_->free_from.load(std::memory_order_acquire) >> 32; }

}  // namespace portofu::fabric
