// The heap that both sides map: what it gives out, when it grows, and what it does in a fork.

#include "engine/segment/shared_heap.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr std::uint64_t kBytes = 64 << 20;

struct SharedHeapTest : ::testing::Test {
  SharedHeapTest() { EXPECT_TRUE(heap.open(directory.path().c_str(), kBytes)); }

  SegmentDirectory directory;
  SharedHeap heap;
};

bool is_filled(const void* block, std::size_t bytes, unsigned char with) {
  const auto* at = static_cast<const unsigned char*>(block);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != with) return false;
  }
  return true;
}

TEST_F(SharedHeapTest, Blocks__are_aligned_and_lie_in_the_heap) {
  for (const std::size_t alignment : {1u, 16u, 64u, 256u, 4096u, 65536u}) {
    for (const std::size_t bytes : {0u, 1u, 100u, 5000u}) {
      void* block = heap.allocate(bytes, alignment);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
      EXPECT_TRUE(heap.holds(block, std::max<std::size_t>(bytes, 1)));
      EXPECT_GE(heap.usable_bytes(block), bytes);
    }
  }
  int elsewhere = 0;
  EXPECT_FALSE(heap.holds(&elsewhere, 1));
}

/// A peer may write anything into what is registered: the bookkeeping must not suffer.
TEST_F(SharedHeapTest, Blocks_written_from_end_to_end__leave_the_bookkeeping_alone) {
  std::mt19937 random(7);
  struct Block {
    void* at;
    std::size_t bytes;
    unsigned char fill;
  };
  std::vector<Block> blocks;
  for (int step = 0; step < 20000; ++step) {
    if (blocks.size() < 300 && random() % 3 != 0) {
      const std::size_t bytes = random() % 10 == 0 ? random() % 300000 : random() % 500;
      const std::size_t alignment = std::size_t{1} << random() % 10;
      Block block{heap.allocate(bytes, alignment), bytes, static_cast<unsigned char>(random())};
      if (block.at == nullptr) continue;
      std::memset(block.at, block.fill, bytes);
      blocks.push_back(block);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      ASSERT_TRUE(is_filled(blocks.back().at, blocks.back().bytes, blocks.back().fill)) << step;
      heap.free(blocks.back().at);
      blocks.pop_back();
    }
  }
}

TEST_F(SharedHeapTest, Full_heap__refuses_and_serves_again_when_something_is_freed) {
  void* large = heap.allocate(kBytes / 2, 64);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(heap.allocate(kBytes / 2, 64), nullptr);
  EXPECT_EQ(heap.allocate(SIZE_MAX, 64), nullptr);
  EXPECT_EQ(heap.allocate(1, std::size_t{1} << 63), nullptr);
  heap.free(large);
  EXPECT_NE(heap.allocate(kBytes / 2, 64), nullptr);
}

TEST_F(SharedHeapTest, Zeros__are_zeros_where_others_have_written_and_nowhere_else) {
  for (const std::size_t bytes : {1u, 5000u, 200'000u, 3'000'001u}) {
    auto* before = static_cast<unsigned char*>(heap.allocate(100, 16));
    auto* block = static_cast<unsigned char*>(heap.allocate(bytes, 16));
    auto* behind = static_cast<unsigned char*>(heap.allocate(100, 16));
    std::memset(before, 1, 100);
    std::memset(block, 2, bytes);
    std::memset(behind, 3, 100);
    heap.free(block);
    void* zeroed = heap.allocate_zeroed(bytes, 16);
    ASSERT_NE(zeroed, nullptr);
    EXPECT_TRUE(is_filled(zeroed, bytes, 0)) << bytes;
    EXPECT_TRUE(is_filled(before, 100, 1) && is_filled(behind, 100, 3)) << bytes;
  }
  EXPECT_EQ(heap.allocate_zeroed(2 * kBytes, 16), nullptr);
}

/// Handlers of others run while the thread that forks holds the heap.
TEST_F(SharedHeapTest, Thread_that_forks__gets_nothing_and_waits_for_nothing) {
  void* large = heap.allocate(kBytes / 2, 64);
  void* small = heap.allocate(100, 64);
  ASSERT_TRUE(large != nullptr && small != nullptr);
  heap.before_fork();
  EXPECT_EQ(heap.allocate(1, 16), nullptr);
  EXPECT_EQ(heap.allocate_zeroed(1, 16), nullptr);
  EXPECT_GE(heap.usable_bytes(small), 100u);
  heap.free(large);
  heap.after_fork_in_parent();
  EXPECT_NE(heap.allocate(kBytes / 2 - 4096, 64), nullptr) << "what it freed is free now";
  EXPECT_NE(heap.allocate(1, 16), nullptr);
  SharedHeap unused;
  unused.before_fork();
  EXPECT_FALSE(unused.open(directory.path().c_str(), kBytes)) << "a handler's first allocation of the program";
  unused.after_fork_in_parent();
  EXPECT_TRUE(unused.open(directory.path().c_str(), kBytes));
}

TEST_F(SharedHeapTest, Threads__share_it) {
  std::vector<std::thread> threads;
  for (unsigned char me = 1; me <= 4; ++me) {
    threads.emplace_back([this, me] {
      for (std::size_t i = 0; i < 2000; ++i) {
        void* block = heap.allocate(i, 16);
        ASSERT_NE(block, nullptr);
        std::memset(block, me, i);
        ASSERT_TRUE(is_filled(block, i, me));
        heap.free(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SharedHeapTest, Published_heap__shows_peers_what_is_written) {
  auto* block = static_cast<std::byte*>(heap.allocate(100, 64));
  const HeapPlace place = heap.publish();
  ASSERT_NE(place.id, 0u);
  EXPECT_EQ(heap.publish().id, place.id);
  const Mapping mapping = map_heap(directory.path(), place);
  ASSERT_TRUE(mapping);
  std::byte* const seen = mapping.at(reinterpret_cast<std::uintptr_t>(block) - place.start);
  block[99] = std::byte{5};
  EXPECT_EQ(seen[99], std::byte{5});
  seen[0] = std::byte{6};
  EXPECT_EQ(block[0], std::byte{6});
  heap.unname();
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST(SharedHeap, Without_room__there_is_no_heap_and_nothing_breaks) {
  SharedHeap none;
  EXPECT_EQ(none.allocate(1, 16), nullptr) << "not opened";
  EXPECT_FALSE(none.open("/dev/shm", 0));
  EXPECT_EQ(none.allocate(1, 16), nullptr);
  SharedHeap nowhere;
  EXPECT_FALSE(nowhere.open("/no/such/directory", kBytes));
  EXPECT_EQ(nowhere.publish().id, 0u);
  int somewhere = 0;
  EXPECT_FALSE(nowhere.holds(&somewhere, 1));
}

/// Portals 4.3 gives a child no resources, and the guide takes registered memory away from it; a heap under malloc must
/// survive a fork all the same, and nothing that the child does may reach its parent.
TEST(SharedHeap, Fork__gives_the_child_a_heap_of_its_own) {
  auto* block = static_cast<char*>(allocate_shared(1000, 64));
  ASSERT_NE(block, nullptr);
  std::strcpy(block, "of the parent");
  const std::uint64_t id = process_heap().publish().id;
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    if (std::strcmp(block, "of the parent") != 0) _exit(1);
    std::strcpy(block, "of the child");
    process_heap().free(block);
    for (int i = 0; i < 1000; ++i) {
      void* own = allocate_shared(10000, 16);
      if (own == nullptr || !process_heap().holds(own, 10000)) _exit(2);
      std::memset(own, 1, 10000);
    }
    const HeapPlace place = process_heap().publish();
    if (place.id == 0 || place.id == id) _exit(3);
    process_heap().unname();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_STREQ(block, "of the parent");
  process_heap().free(block);
  void* again = allocate_shared(1 << 20, 64);
  ASSERT_NE(again, nullptr);
  std::memset(again, 1, 1 << 20);
  process_heap().free(again);
}

struct Interruption {
  void* bookkeeping = nullptr;
  std::vector<void*> blocks;  ///< That the handler frees: half of them in parent and child, half in each.
  bool has_got_memory = false;
  pid_t child = -1;
};
Interruption interruption;

/// Runs in the middle of a change of the heap: at its first access to the bookkeeping, which lets none in.
void handler_of_interruption(int) {
  mprotect(interruption.bookkeeping, 4096, PROT_READ | PROT_WRITE);
  interruption.has_got_memory = allocate_shared(1, 16) != nullptr;
  const std::size_t half = interruption.blocks.size() / 2;
  for (std::size_t i = 0; i < half; ++i) process_heap().free(interruption.blocks[i]);
  interruption.child = fork();
  interruption.has_got_memory = interruption.has_got_memory || allocate_shared(1, 16) != nullptr;
  for (std::size_t i = half; i < 2 * half; ++i) process_heap().free(interruption.blocks[i]);
}

/// @return whether all that the handler has freed, which nearly filled the heap, can be had again
bool has_room_again(std::size_t bytes) {
  void* all = allocate_shared(bytes, 64);
  if (all != nullptr) process_heap().free(all);
  return all != nullptr;
}

/// A crash handler that starts a debugger, say, which has interrupted malloc under libportofu_malloc.so.
TEST(SharedHeap, Handler_that_interrupts_a_change__may_free_and_fork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer takes what a handler allocates for an error, as the C library does here";
#endif
  auto* kept = static_cast<char*>(allocate_shared(100, 64));
  ASSERT_NE(kept, nullptr);
  interruption.bookkeeping = reinterpret_cast<void*>(process_heap().publish().start);
  constexpr std::size_t kBlockBytes = 4 << 20;
  while (void* block = allocate_shared(kBlockBytes, 64)) interruption.blocks.push_back(block);
  ASSERT_GE(interruption.blocks.size(), 4u);
  const std::size_t wanted = interruption.blocks.size() / 2 * kBlockBytes;
  struct sigaction action {
  }, former{};
  action.sa_handler = handler_of_interruption;
  sigaction(SIGSEGV, &action, &former);
  ASSERT_EQ(mprotect(interruption.bookkeeping, 4096, PROT_NONE), 0);
  auto* made = static_cast<char*>(allocate_shared(100, 64));
  const bool is_child = interruption.child == 0;
  if (made != nullptr) std::strcpy(made, is_child ? "of the child" : "of the parent");
  process_heap().free(kept);
  const bool has_room = has_room_again(wanted);
  if (is_child) _exit(made != nullptr && !interruption.has_got_memory && has_room ? 0 : 1);
  sigaction(SIGSEGV, &former, nullptr);
  int status = 0;
  ASSERT_EQ(waitpid(interruption.child, &status, 0), interruption.child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(interruption.has_got_memory);
  EXPECT_TRUE(has_room);
  ASSERT_NE(made, nullptr);
  EXPECT_STREQ(made, "of the parent");
  process_heap().free(made);
}

}  // namespace
}  // namespace portofu
