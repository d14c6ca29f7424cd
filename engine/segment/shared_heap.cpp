#include "engine/segment/shared_heap.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/config/settings.h"

namespace portofu {
namespace {

/// Lies at the start of the heap. Plain pointers: only the owner follows them, and a child has the same addresses.
using Blocks = boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family, void*>;

/// What one more block needs beside its bytes, at most.
constexpr std::uint64_t kBlockSlackBytes = 128;

constexpr std::size_t kNaturalAlignment = alignof(std::max_align_t);

Blocks& blocks_at(std::uintptr_t start) { return *reinterpret_cast<Blocks*>(start); }

std::uint64_t inode_of(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/// Copies the front of the heap into `fd`. @return false if memory is short
bool copy_into(int fd, const void* from, std::uint64_t bytes) {
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0) return false;
  void* to = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (to == MAP_FAILED) return false;
  std::memcpy(to, from, bytes);
  munmap(to, bytes);
  return true;
}

/// Memory is given back to it until the very end of the process.
union NeverDestroyed {
  constexpr NeverDestroyed() : heap() {}
  ~NeverDestroyed() {}
  SharedHeap heap;
};
constinit NeverDestroyed the_only;
constinit SharedHeap& the_heap = the_only.heap;

/// A fork of a process that has no heap costs nothing.
void register_fork_handlers() {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); },
                 [] { the_heap.after_fork_in_child(); });
}

/// Made when the library is loaded, so that no fork can come between the first block and the handlers.
[[maybe_unused]] const bool registered_at_load = (register_fork_handlers(), true);

struct NameEnd {
  ~NameEnd() { the_heap.unname(); }
} name_end;

}  // namespace

SharedHeap::~SharedHeap() {
  unname();
  if (bytes_ != 0) munmap(reinterpret_cast<void*>(start_.load(std::memory_order_relaxed)), bytes_);
}

bool SharedHeap::open(const char* directory, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) == State::kNew) {
    state_.store(reserve(directory, bytes) ? State::kOpen : State::kNone, std::memory_order_release);
  }
  return state_.load(std::memory_order_relaxed) == State::kOpen;
}

bool SharedHeap::reserve(const char* directory, std::uint64_t bytes) {
  if (bytes < kStepBytes) return false;
  const int fd = open_heap_file(directory, bytes);
  if (fd < 0) return false;
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (start == MAP_FAILED) {
    ::close(fd);
    return false;
  }
  directory_ = directory;
  file_ = std::make_shared<SegmentFile>(fd, FileOwner::kThisProcess);
  inode_ = inode_of(fd);
  bytes_ = bytes;
  if (!take_memory(kStepBytes)) {
    munmap(start, bytes);
    file_.reset();
    bytes_ = 0;
    return false;
  }
  new (start) Blocks(kStepBytes, 0);
  start_.store(reinterpret_cast<std::uintptr_t>(start), std::memory_order_release);
  return true;
}

/// @param bytes  behind those that have memory already
bool SharedHeap::take_memory(std::uint64_t bytes) {
  if (file_ == nullptr || inode_of(file_->fd()) != inode_ || bytes > bytes_ - taken_bytes_) return false;
  if (!file_->allocate(taken_bytes_, bytes)) return false;
  taken_bytes_ += bytes;
  return true;
}

/// @param bytes  of the block that found no room
bool SharedHeap::grow(std::uint64_t bytes) {
  if (bytes > bytes_) return false;
  const std::uint64_t needed = (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
  const std::uint64_t generous = std::max(needed, taken_bytes_ / 8 / kStepBytes * kStepBytes);
  for (const std::uint64_t wanted : {generous, needed}) {
    if (!take_memory(wanted)) continue;
    blocks_at(start_.load(std::memory_order_relaxed)).grow(wanted);
    return true;
  }
  return false;
}

void* SharedHeap::find_room(std::size_t bytes, std::size_t alignment) {
  Blocks& blocks = blocks_at(start_.load(std::memory_order_relaxed));
  return alignment <= kNaturalAlignment ? blocks.allocate(bytes) : blocks.allocate_aligned(bytes, alignment);
}

void* SharedHeap::allocate(std::size_t bytes, std::size_t alignment) {
  if (state_.load(std::memory_order_acquire) != State::kOpen) return nullptr;
  const std::size_t wanted = std::max<std::size_t>(bytes, 1);
  if (wanted > bytes_ || alignment > bytes_) return nullptr;
  const std::lock_guard lock(mutex_);
  void* block = find_room(wanted, alignment);
  if (block == nullptr && grow(wanted + alignment + kBlockSlackBytes)) block = find_room(wanted, alignment);
  return block;
}

void SharedHeap::free(void* block) {
  const std::lock_guard lock(mutex_);
  blocks_at(start_.load(std::memory_order_relaxed)).deallocate(block);
}

std::size_t SharedHeap::usable_bytes(const void* block) {
  const std::lock_guard lock(mutex_);
  return blocks_at(start_.load(std::memory_order_relaxed)).size(block);
}

HeapPlace SharedHeap::publish() {
  if (state_.load(std::memory_order_acquire) != State::kOpen || file_ == nullptr) return {};
  if (id_ == 0) id_ = name_heap_file(directory_, file_);
  return {id_, start_.load(std::memory_order_relaxed), bytes_};
}

void SharedHeap::unname() {
  if (id_ != 0 && file_ != nullptr) unname_heap_file(directory_, id_, *file_);
  id_ = 0;
}

void SharedHeap::before_fork() {
  mutex_.lock();
  if (state_.load(std::memory_order_relaxed) == State::kOpen && pipe2(fork_pipe_, O_CLOEXEC) != 0)
    fork_pipe_[0] = fork_pipe_[1] = -1;
}

void SharedHeap::after_fork_in_parent() {
  if (fork_pipe_[0] >= 0) {
    // The end of the pipe comes when the child has its heap, has died, or was never made.
    ::close(fork_pipe_[1]);
    char none = 0;
    while (::read(fork_pipe_[0], &none, 1) < 0 && errno == EINTR) {
    }
    ::close(fork_pipe_[0]);
    fork_pipe_[0] = fork_pipe_[1] = -1;
  }
  mutex_.unlock();
}

void SharedHeap::after_fork_in_child() {
  mutex_.unlock();
  id_ = 0;  // The name is the parent's.
  if (state_.load(std::memory_order_relaxed) != State::kOpen) return;
  if (!move_to_own_file() && !move_to_private_memory()) std::abort();  // Else it would write into its parent's heap.
  if (fork_pipe_[0] < 0) return;
  ::close(fork_pipe_[0]);
  ::close(fork_pipe_[1]);
  fork_pipe_[0] = fork_pipe_[1] = -1;
}

bool SharedHeap::move_to_own_file() {
  if (file_ == nullptr) return false;
  void* const start = reinterpret_cast<void*>(start_.load(std::memory_order_relaxed));
  const int fd = open_heap_file(directory_, bytes_);
  if (fd < 0) return false;
  if (!copy_into(fd, start, taken_bytes_) ||
      mmap(start, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
    ::close(fd);
    return false;
  }
  file_ = std::make_shared<SegmentFile>(fd, FileOwner::kThisProcess);
  inode_ = inode_of(fd);
  return true;
}

/// The device has no room for a second heap: the child keeps what there is, shares nothing and cannot grow.
bool SharedHeap::move_to_private_memory() {
  void* const start = reinterpret_cast<void*>(start_.load(std::memory_order_relaxed));
  constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* copy = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
  if (copy == MAP_FAILED) return false;
  std::memcpy(copy, start, taken_bytes_);
  if (mremap(copy, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED) return false;
  file_.reset();
  return true;
}

SharedHeap& process_heap() { return the_heap; }

void* allocate_shared(std::size_t bytes, std::size_t alignment) {
  if (!the_heap.was_opened()) {
    register_fork_handlers();
    const auto variable = [](const char* name) { return std::getenv(name); };
    const Settings settings = read_settings(variable, [](const std::string&) {});  // The engine complains.
    the_heap.open("/dev/shm", std::uint64_t{settings.heap_mib} << 20);
  }
  return the_heap.allocate(bytes, alignment);
}

}  // namespace portofu
