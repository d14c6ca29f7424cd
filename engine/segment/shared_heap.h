#pragma once
// The heap that both sides map: memory of this process that lies in a file, so that peers on the node reach what is
// registered in it with their own loads and stores. A large range is reserved at the first allocation. What is not
// touched costs no memory, as with malloc; where it has to come from a device (heap_memory.h), it is taken as the heap
// grows, so that nothing that was given out can fault for want of memory.
//
// Blocks are kept by Boost.Interprocess's best-fit tree, whose bookkeeping lies between the blocks: a peer that stays
// within registered memory touches none of it.
//
// After a fork the child has a heap of its own with the same contents at the same addresses; its parent waits until the
// child has taken what was touched. Other handlers of a fork may allocate and free: the thread that forks holds the
// lock, and until its own handler has run it gets no memory here, and what it frees is freed then. The same holds in a
// signal handler that has interrupted a change of the heap. It may fork: both processes go on with the change.

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/queue/fork_mutex.h"
#include "engine/segment/heap_file.h"

namespace portofu {

/// Any thread. There is one in a process (process_heap); tests make others, which a fork does not follow.
class SharedHeap {
 public:
  static constexpr std::uint64_t kStepBytes = 1 << 20;  ///< Unit of growth.

  constexpr SharedHeap() = default;
  ~SharedHeap();  ///< Of tests: all that it gave out is gone.
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  /// Reserves the range, once. @param bytes  most that it can hold; 0 for none
  /// @return false if it cannot be had; then it never will be
  bool open(const char* directory, std::uint64_t bytes);
  bool was_opened() const { return state_.load(std::memory_order_acquire) != State::kNew; }

  /// @param alignment  a power of two
  /// @return nullptr if there is no room, or no heap
  void* allocate(std::size_t bytes, std::size_t alignment);

  /// The same, filled with zeros; what is large costs memory only when it is touched.
  void* allocate_zeroed(std::size_t bytes, std::size_t alignment);

  /// Gives back what allocate returned.
  void free(void* block);

  /// Bytes that a block really has, at least those asked for.
  std::size_t usable_bytes(const void* block);

  /// Whether memory lies wholly in the heap.
  bool holds(const void* start, std::uint64_t bytes) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(start) - start_.load(std::memory_order_acquire);
    return offset < bytes_ && bytes <= bytes_ - offset;
  }

  /// @pre holds(start, 0)
  std::uint64_t offset_of(const void* start) const {
    return reinterpret_cast<std::uintptr_t>(start) - start_.load(std::memory_order_relaxed);
  }

  /// Whether the calling thread is in the middle of a change. Async-signal-safe.
  bool has_this_thread_lock();

  /// Where peers find it; gives it its name first. @return id 0 if peers cannot
  HeapPlace publish();

  /// At the end of the process: takes the name away.
  void unname();

  // Around a fork.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  enum class State : std::uint8_t { kNew, kOpen, kNone };

  bool reserve(const char* directory, std::uint64_t bytes);
  int open_file() const;
  bool is_file_there() const;
  bool is_held_here() const;

  /// @return false if the calling thread has it: a signal handler runs that has interrupted a change
  bool take_lock();
  void keep(void* block);
  void free_kept();
  void end_fork();
  bool copy_touched(std::byte* to, int to_fd) const;
  bool clear_pages(const std::byte* from, std::size_t bytes, std::uint64_t* first, std::uint64_t* end) const;
  bool take_memory(std::uint64_t bytes);
  bool grow(std::uint64_t bytes);
  void* find_room(std::size_t bytes, std::size_t alignment);
  bool move_to_own_file();
  bool move_to_private_memory();

  std::mutex mutex_;  ///< Of everything below but what is read without it.
  std::atomic<State> state_{State::kNew};
  std::atomic<std::uintptr_t> start_{0};  ///< First byte; constant once it is open.
  std::uint64_t bytes_ = 0;               ///< Reserved; constant once it is open.
  std::uint64_t taken_bytes_ = 0;         ///< From the start on: those that have memory.
  const char* directory_ = "";            ///< Of the file.
  std::shared_ptr<SegmentFile> file_;     ///< Locked; nullptr in a child that could not have one.
  std::uint64_t inode_ = 0;               ///< Of the file: a program may have closed the descriptor for another one.
  bool is_sparse_ = false;                ///< The file is of memory alone, which comes when it is touched.
  ForkMutex naming_;                      ///< Of the next two: engines of a process publish it one by one.
  std::shared_ptr<SegmentFile> named_;    ///< What has the name: the file or its pointer.
  std::uint64_t id_ = 0;                  ///< Of the name; 0: it has none yet.
  std::atomic<pthread_t> holder_{};       ///< Holds the mutex while it opens the heap or forks; 0: nobody does.
  std::atomic<void*> kept_{nullptr};  ///< What the thread that has the mutex has freed meanwhile; each names the next.
  bool interrupted_ = false;          ///< Of a fork: by a handler that has interrupted a change.
  int fork_pipe_[2] = {-1, -1};       ///< During a fork: closed by the child once it has its own heap.
};

/// The heap of this process, which may not have been opened yet. Never destroyed.
SharedHeap& process_heap();

/// A library is here by which peers can reach memory: from now on malloc may come from the heap. A process without one,
/// such as a shell under the same LD_PRELOAD, has no heap to copy in a fork.
void want_shared_memory();
bool is_shared_memory_wanted();

/// Allocates from it; opens it first, with PORTOFU_HEAP_MIB. @return nullptr if there is no room, or no heap
void* allocate_shared(std::size_t bytes, std::size_t alignment);

/// The same, filled with zeros.
void* allocate_shared_zeroed(std::size_t bytes, std::size_t alignment);

/// Registers what the heap of this process does in a fork, once. Handlers of others that write to memory of the heap in
/// a child need it to be registered before them, because a child runs them in this order. A fork of a process that has
/// no heap costs nothing.
void follow_forks();

}  // namespace portofu
