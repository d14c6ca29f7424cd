// The memory of another process: what is written and read there by either of the kernel's ways, and what is refused.

#include "engine/segment/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr std::uint64_t kMark = 0x0123'4567'89ab'cdef;
constexpr int kForbidden = 77;

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

int open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

/// The parameter: whether a file may be opened. Without one the call without file does everything.
class ProcessMemoryTest : public testing::TestWithParam<bool> {
 protected:
  /// Runs the body in a child, with the memory of this process. It returns 0 if all is well.
  void in_child(const std::function<int(ProcessMemory&)>& body) {
    const int status = in_dying_child([&] {
      ProcessMemory memory(getppid(), address_of(&mark_), kMark);
      if (!memory.is_reachable()) return kForbidden;
      const rlimit none{0, 0};
      if (!GetParam() && setrlimit(RLIMIT_NOFILE, &none) != 0) return 78;
      return body(memory);
    });
    if (status == kForbidden) GTEST_SKIP() << "this kernel lets no process reach another one's memory";
    EXPECT_EQ(status, 0);
  }

  const std::uint64_t mark_ = kMark;
};

INSTANTIATE_TEST_SUITE_P(Ways, ProcessMemoryTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "with_file" : "without_file"; });

TEST_P(ProcessMemoryTest, Write__changes_what_it_names_and_nothing_else) {
  static std::array<std::byte, 20000> memory;
  static std::array<std::byte, 20000> wanted;
  for (const std::uint64_t bytes : {1, 7, 8, 9, 64, 255, 256, 257, 4095, 4096, 4097, 9000}) {
    for (const std::uint64_t tail : {std::uint64_t{1}, std::uint64_t{8}, bytes / 2 + 1, bytes}) {
      if (tail > bytes) continue;
      for (const std::uint64_t at : {0, 3, 3000, 4090}) {
        memory.fill(std::byte{0});
        wanted.fill(std::byte{0});
        for (std::uint64_t i = 0; i < bytes; ++i) wanted[at + i] = static_cast<std::byte>(i * 7 + 1);
        in_child([&](ProcessMemory& there) {
          return there.write(address_of(memory.data() + at), wanted.data() + at, bytes, tail) ? 0 : 1;
        });
        ASSERT_EQ(memory, wanted) << bytes << " bytes at " << at << ", " << tail << " of them last";
      }
    }
  }
}

TEST_P(ProcessMemoryTest, Address_not_mapped_on_either_side__is_told) {
  auto* const pages =
      static_cast<std::byte*>(mmap(nullptr, 32768, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  std::byte* const edge = pages + 16384;
  ASSERT_EQ(munmap(edge, 16384), 0);  // Not protected only: that need not stop the kernel.
  std::array<std::byte, 8192> data{};
  in_child([&](ProcessMemory& there) {
    for (const std::uint64_t bytes : {8, 4096, 8192}) {
      if (there.write(address_of(edge), data.data(), bytes, 8)) return 1;
      if (there.write(address_of(edge - 4), data.data(), bytes, 8)) return 2;
      if (there.write(4096, data.data(), bytes, 8)) return 3;
      if (there.write(address_of(data.data()), edge, bytes, 8)) return 4;
      if (there.write(address_of(data.data()), edge - 4, bytes, bytes)) return 5;
      if (!there.write(address_of(data.data()), data.data(), bytes, 8)) return 6;
    }
    return 0;
  });
  munmap(pages, 16384);
}

TEST_P(ProcessMemoryTest, Program_that_closes_its_file__is_written_for_all_the_same) {
  static std::array<std::byte, 8> memory;
  memory.fill(std::byte{0});
  in_child([&](ProcessMemory& there) {
    const std::array<std::byte, 8> data{std::byte{5}};
    if (!there.write(address_of(memory.data()), data.data(), 8, 8)) return 1;
    for (int number = 3; number < 1024; ++number) close(number);
    if (!there.write(address_of(memory.data() + 1), data.data(), 1, 1)) return 2;
    for (int number = 3; number < 1024; ++number) close(number);
    return there.write(address_of(memory.data() + 2), data.data(), 1, 1) ? 0 : 3;
  });
  for (const std::size_t at : {0, 1, 2}) EXPECT_EQ(memory[at], std::byte{5}) << at;
}

/// Who may not be read is there all the same, for all that is known; who is another one, or nobody, is not.
TEST_P(ProcessMemoryTest, Process_that_may_not_be_read__may_be_the_one_that_is_meant) {
  constexpr uid_t kNobody = 65534;
  const int status = in_dying_child([&] {
    ProcessMemory memory(getppid(), address_of(&mark_), kMark);
    ProcessMemory stranger(getppid(), address_of(&mark_), kMark + 1);
    if (!memory.may_be_its() || stranger.may_be_its()) return 1;
    if (setresuid(kNobody, kNobody, kNobody) != 0) return kForbidden;
    return memory.is_reachable() || !memory.may_be_its() ? 2 : 0;
  });
  if (status == kForbidden) GTEST_SKIP() << "this user is one of many";
  EXPECT_EQ(status, 0);
}

TEST_P(ProcessMemoryTest, Process_that_is_gone__is_written_to_no_more) {
  const pid_t other = fork();
  if (other == 0) {
    pause();
    _exit(0);
  }
  std::array<std::byte, 8> data{};
  const std::uint64_t address = address_of(data.data());
  ProcessMemory memory(other, address_of(&mark_), kMark);
  if (!memory.is_reachable()) GTEST_SKIP() << "this kernel lets no process reach another one's memory";
  EXPECT_TRUE(memory.write(address, data.data(), 8, 8));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_FALSE(memory.is_reachable());
  EXPECT_FALSE(memory.may_be_its());
  EXPECT_FALSE(memory.write(address, data.data(), 8, 8));
  EXPECT_FALSE(memory.read(address, data.data(), 8));
}

TEST_P(ProcessMemoryTest, Word__is_written_at_once) {
  constexpr std::uint64_t kRounds = 50'000;
  alignas(64) static std::atomic<std::uint64_t> words[2];
  words[0] = words[1] = 0;
  const pid_t writer = fork();
  if (writer == 0) {
    ProcessMemory memory(getppid(), address_of(&mark_), kMark);
    if (!memory.is_reachable()) _exit(kForbidden);
    for (std::uint64_t i = 0; i <= kRounds; ++i) {
      const std::uint64_t value = i == kRounds ? 1 : i % 2 == 0 ? ~std::uint64_t{0} : 0;
      if (!memory.write(address_of(&words[0]), reinterpret_cast<const std::byte*>(&value), 8, 8)) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  while (waitpid(writer, &status, WNOHANG) == 0) {
    for (int i = 0; i < 10'000; ++i) {
      const std::uint64_t seen = words[0].load(std::memory_order_relaxed);
      ASSERT_TRUE(seen == 0 || seen == 1 || seen == ~std::uint64_t{0}) << std::hex << seen;
    }
  }
  if (WEXITSTATUS(status) == kForbidden) GTEST_SKIP() << "this kernel lets no process reach another one's memory";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(words[0], 1u);
}

TEST(ProcessMemoryFileTest, One_file__is_opened_when_it_is_needed_and_closed_in_the_end) {
  alignas(8) const std::uint64_t mark = kMark;
  std::array<std::byte, 8> data{};
  const int before = open_files();
  {
    ProcessMemory memory(getpid(), address_of(&mark), kMark);
    EXPECT_EQ(open_files(), before);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(memory.write(address_of(data.data()), data.data(), 8, 8));
    EXPECT_EQ(open_files(), before + 1);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(ProcessMemoryFileTest, File_of_a_stranger__is_not_kept) {
  const std::uint64_t other_mark = kMark + 1;
  std::array<std::byte, 8> data{};
  const int before = open_files();
  ProcessMemory memory(getpid(), address_of(&other_mark), kMark);
  EXPECT_FALSE(memory.is_reachable());
  EXPECT_FALSE(memory.read(address_of(data.data()), data.data(), data.size()));
  EXPECT_TRUE(memory.has_failed_to_read());
  memory.write(address_of(data.data()), data.data(), 8, 8);
  EXPECT_EQ(open_files(), before);
}

// As after exec: the process has the number and the address, but not the mark. No question before the write can tell,
// because exec may come behind it.
TEST_P(ProcessMemoryTest, Program_without_the_mark__is_not_written_to) {
  constexpr std::size_t kBytes = 1 << 16;
  static std::array<std::byte, kBytes> memory;
  memory.fill(std::byte{0});
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  std::memcpy(page, &kMark, sizeof kMark);
  int step[2] = {-1, -1};
  ASSERT_EQ(pipe(step), 0);
  const pid_t other = fork();
  if (other == 0) {
    char go = 0;
    if (read(step[0], &go, 1) == 1) munmap(page, 4096);
    const bool is_ready = write(step[1], &go, 1) == 1;
    while (is_ready) pause();
    _exit(0);
  }
  ProcessMemory there(other, address_of(page), kMark);
  const bool is_reachable = there.is_reachable();
  static std::array<std::byte, kBytes> data;
  data.fill(std::byte{5});
  bool before = true;
  bool behind = false;
  if (is_reachable) {
    before = there.write(address_of(memory.data()), data.data(), kBytes, 8);
    std::memset(page, 0, sizeof kMark);  // Ours, which says nothing of the other's.
    char go = 1;
    EXPECT_EQ(write(step[1], &go, 1), 1);
    while (there.is_reachable()) sched_yield();
    data.fill(std::byte{6});
    for (const std::uint64_t bytes : {std::uint64_t{8192}, std::uint64_t{kBytes}}) {
      behind = behind || there.write(address_of(memory.data()), data.data(), bytes, 8);
      behind = behind || there.write(address_of(memory.data()), data.data(), bytes, 0);
    }
    const iovec local{data.data(), kBytes};
    const iovec remote{memory.data(), kBytes};
    EXPECT_EQ(process_vm_readv(other, &local, 1, &remote, 1, 0), static_cast<ssize_t>(kBytes));
  }
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  close(step[0]);
  close(step[1]);
  munmap(page, 4096);
  if (!is_reachable) GTEST_SKIP() << "this kernel lets no process reach another one's memory";
  EXPECT_TRUE(before);
  EXPECT_FALSE(behind);
  EXPECT_TRUE(std::ranges::all_of(data, [](std::byte byte) { return byte == std::byte{5}; }));
}

}  // namespace
}  // namespace portofu
