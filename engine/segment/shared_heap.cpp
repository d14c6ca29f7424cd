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
#include "engine/queue/cancellation.h"
#include "engine/queue/lost_thread.h"
#include "engine/queue/no_signals.h"
#include "engine/segment/file_pointer.h"
#include "engine/segment/heap_memory.h"

namespace portofu {
namespace {

/// Lies at the start of the heap. Plain pointers: only the owner follows them, and a child has the same addresses.
using Blocks = boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family, void*>;

/// Zeros for so many bytes and more are pages that are given back, not stores.
constexpr std::size_t kLargeZeros = 128 << 10;

/// A block of so many bytes gives its memory back when it is freed, as with glibc: smaller ones are likely to be used
/// again, and pages cost more than they are worth.
constexpr std::size_t kLargeBlock = 32 << 20;

/// What one more block needs beside its bytes, at most.
constexpr std::uint64_t kBlockSlackBytes = 128;

constexpr std::size_t kNaturalAlignment = alignof(std::max_align_t);

Blocks& blocks_at(std::uintptr_t start) { return *reinterpret_cast<Blocks*>(start); }

std::uint64_t inode_of(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

bool write_all(int fd, const std::byte* from, std::uint64_t bytes, off_t at) {
  while (bytes > 0) {
    const ssize_t written = pwrite(fd, from, bytes, at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written, at += written, bytes -= static_cast<std::uint64_t>(written);
  }
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

/// Made when the library is loaded, so that no fork can come between the first block and the handlers.
[[maybe_unused]] const bool follows_forks = (follow_forks(), true);

constinit std::atomic<bool> shared_memory_wanted{false};

struct NameEnd {
  ~NameEnd() { the_heap.unname(); }
} name_end;

}  // namespace

SharedHeap::~SharedHeap() {
  unname();
  if (bytes_ != 0) munmap(reinterpret_cast<void*>(start_.load(std::memory_order_relaxed)), bytes_);
}

bool SharedHeap::open(const char* directory, std::uint64_t bytes) {
  if (is_held_here()) return false;  // What opening needs itself, and what a fork's handlers want.
  const NoCancellation whole;
  const NoSignals unbroken;
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) == State::kNew) {
    holder_.store(pthread_self(), std::memory_order_relaxed);
    state_.store(reserve(directory, bytes) ? State::kOpen : State::kNone, std::memory_order_release);
    holder_.store(0, std::memory_order_relaxed);
  }
  return state_.load(std::memory_order_relaxed) == State::kOpen;
}

bool SharedHeap::reserve(const char* directory, std::uint64_t bytes) {
  if (bytes < kStepBytes || access(directory, W_OK | X_OK) != 0) return false;
  int fd = open_heap_memory(bytes);
  is_sparse_ = fd >= 0;
  if (!is_sparse_) fd = open_heap_file(directory, bytes);
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

bool SharedHeap::is_file_there() const { return file_ != nullptr && inode_of(file_->fd()) == inode_; }

/// @param bytes  behind those that were taken already
bool SharedHeap::take_memory(std::uint64_t bytes) {
  if (file_ == nullptr || bytes > bytes_ - taken_bytes_) return false;
  if (!is_sparse_ && (!is_file_there() || !file_->allocate(taken_bytes_, bytes))) return false;
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
  if (wanted > bytes_ || alignment > bytes_ || is_held_here() || !take_lock()) return nullptr;
  const std::lock_guard lock(mutex_, std::adopt_lock);
  void* block = find_room(wanted, alignment);
  if (block == nullptr && grow(wanted + alignment + kBlockSlackBytes)) block = find_room(wanted, alignment);
  return block;
}

/// Gives the pages wholly within [from, from + bytes) back. @return false if they are as they were
bool SharedHeap::clear_pages(const std::byte* from, std::size_t bytes, std::uint64_t* first, std::uint64_t* end) const {
  const std::uint64_t page = page_bytes();
  const std::uint64_t start = offset_of(from);
  *first = (start + page - 1) / page * page;
  *end = (start + bytes) / page * page;
  return *end > *first && is_sparse_ && is_file_there() && file_->clear(*first, *end - *first);
}

void* SharedHeap::allocate_zeroed(std::size_t bytes, std::size_t alignment) {
  auto* const block = static_cast<std::byte*>(allocate(bytes, alignment));
  if (block == nullptr) return nullptr;
  std::uint64_t first = 0, end = 0;
  if (bytes < kLargeZeros || !clear_pages(block, bytes, &first, &end)) return std::memset(block, 0, bytes);
  const std::uint64_t start = offset_of(block);
  std::memset(block, 0, first - start);
  std::memset(block + (end - start), 0, start + bytes - end);
  return block;
}

void SharedHeap::free(void* block) {
  if (is_held_here() || !take_lock()) return keep(block);
  std::unique_lock lock(mutex_, std::adopt_lock);
  if (kept_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    free_kept();
  Blocks& blocks = blocks_at(start_.load(std::memory_order_relaxed));
  if (const std::size_t bytes = blocks.size(block); bytes >= kLargeBlock) {
    lock.unlock();
    std::uint64_t first = 0, end = 0;
    clear_pages(static_cast<const std::byte*>(block), bytes, &first, &end);
    lock.lock();
  }
  blocks.deallocate(block);
}

/// A handler may interrupt who keeps something, and who takes all that was kept.
void SharedHeap::keep(void* block) {
  void* next = kept_.load(std::memory_order_relaxed);
  do std::memcpy(block, &next, sizeof next);
  while (!kept_.compare_exchange_weak(next, block, std::memory_order_relaxed));
}

void SharedHeap::free_kept() {
  void* block = kept_.exchange(nullptr, std::memory_order_relaxed);
  while (block != nullptr) {
    void* next = nullptr;
    std::memcpy(&next, block, sizeof next);
    blocks_at(start_.load(std::memory_order_relaxed)).deallocate(block);
    block = next;
  }
}

std::size_t SharedHeap::usable_bytes(const void* block) {
  const bool takes_lock = !is_held_here() && take_lock();
  const std::size_t bytes = blocks_at(start_.load(std::memory_order_relaxed)).size(block);
  if (takes_lock) mutex_.unlock();
  return bytes;
}

HeapPlace SharedHeap::publish() {
  if (state_.load(std::memory_order_acquire) != State::kOpen || file_ == nullptr) return {};
  const NoCancellation whole;
  const std::lock_guard lock(naming_);
  if (id_ == 0) {
    named_ = is_sparse_ ? make_file_pointer(directory_, file_->fd()) : file_;
    if (named_ == nullptr) return {};
    id_ = name_heap_file(directory_, named_);
  }
  return {id_, start_.load(std::memory_order_relaxed), bytes_};
}

void SharedHeap::unname() {
  if (id_ != 0 && named_ != nullptr) unname_heap_file(directory_, id_, *named_);
  id_ = 0;
  named_.reset();
}

/// As the C library has noted it in the mutex: a word of our own would cost each allocation.
bool SharedHeap::has_this_thread_lock() { return mutex_.native_handle()->__data.__owner == this_thread_id(); }

bool SharedHeap::take_lock() {
  if (mutex_.try_lock()) return true;
  if (has_this_thread_lock()) return false;
  mutex_.lock();
  return true;
}

bool SharedHeap::is_held_here() const {
  const pthread_t thread = holder_.load(std::memory_order_relaxed);
  return thread != 0 && pthread_equal(thread, pthread_self()) != 0;
}

void SharedHeap::before_fork() {
  interrupted_ = !take_lock();
  holder_.store(pthread_self(), std::memory_order_relaxed);
  if (state_.load(std::memory_order_relaxed) == State::kOpen && pipe2(fork_pipe_, O_CLOEXEC) != 0)
    fork_pipe_[0] = fork_pipe_[1] = -1;
}

/// What the thread has freed meanwhile is freed now, unless what it has interrupted goes on.
void SharedHeap::end_fork() {
  if (!interrupted_) free_kept();
  holder_.store(0, std::memory_order_relaxed);
  if (!interrupted_) mutex_.unlock();
}

void SharedHeap::after_fork_in_parent() {
  const NoCancellation whole;
  if (fork_pipe_[0] >= 0) {
    // The end of the pipe comes when the child has its heap, has died, or was never made.
    ::close(fork_pipe_[1]);
    char none = 0;
    while (::read(fork_pipe_[0], &none, 1) < 0 && errno == EINTR) {
    }
    ::close(fork_pipe_[0]);
    fork_pipe_[0] = fork_pipe_[1] = -1;
  }
  end_fork();
}

void SharedHeap::after_fork_in_child() {
  const NoCancellation whole;
  forget_thread_id();
  // What a handler has interrupted goes on here, too.
  if (interrupted_) mutex_.native_handle()->__data.__owner = this_thread_id();
  id_ = 0;  // The name is the parent's.
  if (state_.load(std::memory_order_relaxed) == State::kOpen) {
    if (!move_to_own_file() && !move_to_private_memory()) std::abort();  // Else it would write into its parent's heap.
    named_.reset();
  }
  end_fork();
  if (fork_pipe_[0] < 0) return;
  ::close(fork_pipe_[0]);
  ::close(fork_pipe_[1]);
  fork_pipe_[0] = fork_pipe_[1] = -1;
}

/// Copies what was touched to the same places of a file, or of memory. @return false if memory is short
bool SharedHeap::copy_touched(std::byte* to, int to_fd) const {
  const auto* const from = reinterpret_cast<const std::byte*>(start_.load(std::memory_order_relaxed));
  const bool knows_holes = is_sparse_ && is_file_there();
  const auto end = static_cast<off_t>(taken_bytes_);
  for (off_t at = 0; at < end;) {
    off_t until = end;
    if (knows_holes) {
      at = lseek(file_->fd(), at, SEEK_DATA);
      if (at < 0 || at >= end) return true;  // Nothing but a hole is left.
      until = std::min(end, lseek(file_->fd(), at, SEEK_HOLE));
      if (until <= at) return false;
    }
    const auto bytes = static_cast<std::uint64_t>(until - at);
    if (to == nullptr && !write_all(to_fd, from + at, bytes, at)) return false;
    if (to != nullptr) std::memcpy(to + at, from + at, bytes);
    at = until;
  }
  return true;
}

bool SharedHeap::move_to_own_file() {
  if (file_ == nullptr) return false;
  void* const start = reinterpret_cast<void*>(start_.load(std::memory_order_relaxed));
  const int fd = is_sparse_ ? open_heap_memory(bytes_) : open_heap_file(directory_, bytes_);
  if (fd < 0) return false;
  const bool has_memory = is_sparse_ || fallocate(fd, 0, 0, static_cast<off_t>(taken_bytes_)) == 0;
  if (!has_memory || !copy_touched(nullptr, fd) ||
      mmap(start, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
    ::close(fd);
    return false;
  }
  file_->become(fd);
  inode_ = inode_of(file_->fd());
  return true;
}

/// There is no room for a second heap: the child keeps what there is, shares nothing and cannot grow.
bool SharedHeap::move_to_private_memory() {
  void* const start = reinterpret_cast<void*>(start_.load(std::memory_order_relaxed));
  constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* copy = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
  if (copy == MAP_FAILED) return false;
  if (!copy_touched(static_cast<std::byte*>(copy), -1)) return false;
  if (mremap(copy, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED) return false;
  file_.reset();
  return true;
}

SharedHeap& process_heap() { return the_heap; }

void want_shared_memory() { shared_memory_wanted.store(true, std::memory_order_relaxed); }
bool is_shared_memory_wanted() { return shared_memory_wanted.load(std::memory_order_relaxed); }

void follow_forks() {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); },
                 [] { the_heap.after_fork_in_child(); });
}

static SharedHeap& opened_heap() {
  if (!the_heap.was_opened()) {
    follow_forks();
    const auto variable = [](const char* name) { return std::getenv(name); };
    const Settings settings = read_settings(variable, [](const std::string&) {});  // The engine complains.
    the_heap.open("/dev/shm", std::uint64_t{settings.heap_mib} << 20);
  }
  return the_heap;
}

void* allocate_shared(std::size_t bytes, std::size_t alignment) { return opened_heap().allocate(bytes, alignment); }

void* allocate_shared_zeroed(std::size_t bytes, std::size_t alignment) {
  return opened_heap().allocate_zeroed(bytes, alignment);
}

}  // namespace portofu
