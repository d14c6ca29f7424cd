// Copies between memory of the application and of the engine: every length and alignment, and what happens where memory
// cannot be touched.

#include "engine/memory/guarded_copy.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

constexpr std::size_t kLongBytes = 256;  ///< From here on the copy takes another way.

constexpr std::size_t kStringBytes = 4096;  ///< And from here on, if the CPU is good at it, a third one.

constexpr std::size_t kWidestBytes = 33000;  ///< And here a fourth.

/// Ways of long copies.
enum class Way : std::uint8_t { kNarrow, kWide, kString, kWidest };

const char* way_name(Way way) {
  switch (way) {
    case Way::kNarrow: return "narrow";
    case Way::kWide: return "wide";
    case Way::kString: return "string";
    case Way::kWidest: return "widest";
  }
  return "unknown";
}

/// The parameter: what may be used, if the CPU has it.
class GuardedCopyTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    install_fault_guard();
    const int wide = GetParam() == Way::kNarrow ? 0 : GetParam() == Way::kWidest ? 2 : 1;
    set_way(std::min(wide, found_), GetParam() >= Way::kString ? kStringBytes : SIZE_MAX);
  }
  void TearDown() override { set_way(found_, string_from_); }
  FaultyMemory faulty;

 private:
#if defined(__x86_64__)
  static void set_way(int wide, std::size_t string_from) {
    portofu_copy_wide = static_cast<std::uint8_t>(wide);
    portofu_copy_string_from = string_from;
  }
  const int found_ = portofu_copy_wide;
  const std::size_t string_from_ = portofu_copy_string_from;
#else
  static void set_way(int, std::size_t) {}
  const int found_ = 0;
  const std::size_t string_from_ = SIZE_MAX;
#endif
};

INSTANTIATE_TEST_SUITE_P(Ways, GuardedCopyTest, testing::Values(Way::kNarrow, Way::kWide, Way::kString, Way::kWidest),
                         [](const auto& way) { return way_name(way.param); });

/// Copies at every alignment of both sides, and looks at the bytes around the target, too.
void expect_copied(std::size_t bytes, std::size_t source_shift, std::size_t target_shift) {
  const std::vector<std::byte> source = pattern_bytes(0, bytes + source_shift);
  std::vector<std::byte> target(bytes + target_shift + 64, std::byte{0xee});
  ASSERT_TRUE(guarded_copy(target.data() + target_shift, source.data() + source_shift, bytes));
  EXPECT_TRUE(holds_pattern(target.data() + target_shift, bytes, source_shift)) << bytes << " bytes";
  for (std::size_t i = 0; i < target_shift; ++i) ASSERT_EQ(target[i], std::byte{0xee});
  for (std::size_t i = target_shift + bytes; i < target.size(); ++i) ASSERT_EQ(target[i], std::byte{0xee});
}

TEST_P(GuardedCopyTest, Copy__moves_every_byte_at_every_alignment_and_no_other) {
  for (std::size_t bytes = 0; bytes <= 100; ++bytes) {
    for (std::size_t shift = 0; shift < 9; ++shift) {
      expect_copied(bytes, shift, 0);
      expect_copied(bytes, 0, shift);
      expect_copied(bytes, shift, 8 - shift);
    }
  }
}

TEST_P(GuardedCopyTest, Copy__around_the_length_where_it_takes_another_way) {
  for (std::size_t bytes = kLongBytes - 33; bytes <= kLongBytes + 161; ++bytes) expect_copied(bytes, 0, 3);
  for (std::size_t bytes = kStringBytes - 33; bytes <= kStringBytes + 161; ++bytes) expect_copied(bytes, 0, 3);
  for (std::size_t shift = 0; shift < 64; ++shift) {
    expect_copied(kLongBytes + 44, 1, shift);
    expect_copied(2 * kStringBytes + 44, 1, shift);
    expect_copied(kWidestBytes + 5 * shift, 1, shift);
  }
  expect_copied(1 << 20, 5, 1);
}

TEST_P(GuardedCopyTest, Copy__of_nothing_touches_no_address) {
  EXPECT_TRUE(guarded_copy(nullptr, nullptr, 0));
  EXPECT_TRUE(guarded_copy(faulty.edge(), faulty.edge(), 0));
}

TEST_P(GuardedCopyTest, Streaming__copies_every_length_at_every_alignment) {
  for (const std::size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 1023, 1024, 1087, 1100, 8192}) {
    for (const std::size_t shift : {0, 1, 8, 16}) {
      const std::vector<std::byte> source = pattern_bytes(0, bytes + shift);
      std::vector<std::byte> target(bytes + shift + 64, std::byte{0xee});
      ASSERT_TRUE(guarded_copy_streaming(target.data() + shift, source.data() + shift, bytes));
      EXPECT_TRUE(holds_pattern(target.data() + shift, bytes, shift)) << bytes << " bytes";
      for (std::size_t i = shift + bytes; i < target.size(); ++i) ASSERT_EQ(target[i], std::byte{0xee});
    }
  }
}

TEST_P(GuardedCopyTest, Streaming__tells_of_a_source_that_is_not_mapped) {
  alignas(64) std::array<std::byte, 256> target;
  EXPECT_FALSE(guarded_copy_streaming(target.data(), faulty.edge(), 256));
  EXPECT_FALSE(guarded_copy_streaming(target.data(), faulty.edge() - 128, 256));
  EXPECT_TRUE(guarded_copy_streaming(target.data(), faulty.edge() - 256, 256));
}

TEST_P(GuardedCopyTest, Source_not_mapped__is_told_at_every_length) {
  std::vector<std::byte> target(kWidestBytes);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{31},
                                  std::size_t{64}, kLongBytes, 8 * kLongBytes, 2 * kStringBytes, kWidestBytes}) {
    EXPECT_FALSE(guarded_copy(target.data(), faulty.edge(), bytes)) << bytes;
  }
  EXPECT_FALSE(guarded_copy(target.data(), nullptr, 1));
}

TEST_P(GuardedCopyTest, Target_not_mapped__is_told_at_every_length) {
  const std::vector<std::byte> source(kWidestBytes);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{31},
                                  std::size_t{64}, kLongBytes, 8 * kLongBytes, 2 * kStringBytes, kWidestBytes}) {
    EXPECT_FALSE(guarded_copy(faulty.edge(), source.data(), bytes)) << bytes;
  }
}

TEST_P(GuardedCopyTest, Fault_in_the_middle__is_told_and_what_lies_before_it_may_be_written) {
  const std::vector<std::byte> source = pattern_bytes(0, 256);
  EXPECT_FALSE(guarded_copy(faulty.edge() - 128, source.data(), 256));
  EXPECT_TRUE(guarded_copy(faulty.edge() - 128, source.data(), 128));
  EXPECT_TRUE(holds_pattern(faulty.edge() - 128, 128));
}

TEST_P(GuardedCopyTest, Memory_that_is_only_readable__can_be_a_source_and_no_target) {
  std::vector<std::byte> other(64);
  faulty.forbid_writing();
  EXPECT_TRUE(guarded_copy(other.data(), faulty.start(), other.size()));
  EXPECT_FALSE(guarded_copy(faulty.start(), other.data(), other.size()));
}

TEST_P(GuardedCopyTest, Fault__can_be_followed_by_any_number_of_copies_and_faults) {
  std::vector<std::byte> target(64);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(guarded_copy(target.data(), faulty.edge(), 64));
    EXPECT_TRUE(guarded_copy(target.data(), faulty.start(), 64));
  }
}

TEST_P(GuardedCopyTest, Page_behind_the_end_of_a_file__is_told_like_an_unmapped_one) {
  char name[] = "/tmp/portofu_guarded_copy_XXXXXX";
  const int file = mkstemp(name);
  ASSERT_GE(file, 0);
  unlink(name);
  void* pages = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);  // The file is empty: SIGBUS.
  ASSERT_NE(pages, MAP_FAILED);
  std::vector<std::byte> other(64);
  EXPECT_FALSE(guarded_copy(other.data(), static_cast<std::byte*>(pages), other.size()));
  EXPECT_FALSE(guarded_copy(static_cast<std::byte*>(pages), other.data(), other.size()));
  munmap(pages, 4096);
  close(file);
}

TEST_P(GuardedCopyTest, Threads__have_guards_of_their_own) {
  std::array<std::thread, 4> threads;
  std::array<int, 4> faults{};
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i] = std::thread([this, &fault_count = faults[i]] {
      std::array<std::byte, 64> target;
      for (int round = 0; round < 200; ++round) {
        fault_count += guarded_copy(target.data(), faulty.edge(), 64) ? 0 : 1;
        fault_count += guarded_copy(target.data(), faulty.start(), 64) ? 0 : 1000;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : faults) EXPECT_EQ(count, 200);
}

TEST_P(GuardedCopyTest, Look__finds_a_page_that_is_not_there) {
  constexpr std::size_t kPage = 4096;
  EXPECT_TRUE(guarded_look(faulty.edge() - 2 * kPage, 2 * kPage)) << "all of it is there";
  EXPECT_TRUE(guarded_look(faulty.edge() - 1, 1));
  EXPECT_TRUE(guarded_look(faulty.edge(), 0));
  EXPECT_FALSE(guarded_look(faulty.edge() - 1, 2)) << "the last byte";
  EXPECT_FALSE(guarded_look(faulty.edge() - 2 * kPage + 1, 2 * kPage));
  EXPECT_FALSE(guarded_look(faulty.edge(), 1));
}

TEST_P(GuardedCopyTest, Call__runs_the_function) {
  int times = 0;
  EXPECT_TRUE(guarded_call([](void* argument) { ++*static_cast<int*>(argument); }, &times));
  EXPECT_EQ(times, 1);
}

TEST_P(GuardedCopyTest, Call__ends_where_the_function_faults) {
  struct Touch {
    std::byte* address;
    std::atomic<int> steps = 0;
  } touch{faulty.edge()};
  auto run = [](void* argument) {
    auto* told = static_cast<Touch*>(argument);
    told->steps = 1;
    std::atomic_ref(*told->address).store(std::byte{1});
    told->steps = 2;
  };
  EXPECT_FALSE(guarded_call(run, &touch));
  EXPECT_EQ(touch.steps, 1);
  touch.address = faulty.start();
  EXPECT_TRUE(guarded_call(run, &touch));
  EXPECT_EQ(touch.steps, 2);
}

TEST_P(GuardedCopyTest, Guard__may_be_put_in_place_again_and_again) {
  for (int i = 0; i < 3; ++i) install_fault_guard();
  std::array<std::byte, 8> target;
  EXPECT_FALSE(guarded_copy(target.data(), faulty.edge(), 8));
}

sigjmp_buf application_jump;
int application_faults = 0;

void application_handler(int) {
  ++application_faults;
  siglongjmp(application_jump, 1);
}

void application_handler_with_info(int, siginfo_t*, void*) { application_handler(0); }

/// Takes the guard away, puts a handler of the application in place, and the guard in front of it again.
void put_guard_in_front_of(const struct sigaction& handler) {
  sigaction(SIGSEGV, &handler, nullptr);
  install_fault_guard();
}

void touch(std::byte* address) { std::atomic_ref(*address).store(std::byte{1}, std::memory_order_relaxed); }

/// Comes back although `address` faults, if the application's handler is called.
void touch_and_survive(std::byte* address) {
  if (sigsetjmp(application_jump, 1) == 0) touch(address);
}

TEST_P(GuardedCopyTest, Fault_of_the_application__goes_to_its_own_handler_of_either_kind) {
  struct sigaction before {};
  sigaction(SIGSEGV, nullptr, &before);
  struct sigaction plain {};
  plain.sa_handler = application_handler;
  struct sigaction with_info {};
  with_info.sa_sigaction = application_handler_with_info;
  with_info.sa_flags = SA_SIGINFO;
  application_faults = 0;
  for (const struct sigaction& handler : {plain, with_info}) {
    put_guard_in_front_of(handler);
    touch_and_survive(faulty.edge());
    std::array<std::byte, 8> target;
    EXPECT_FALSE(guarded_copy(target.data(), faulty.edge(), 8));
  }
  EXPECT_EQ(application_faults, 2);
  sigaction(SIGSEGV, &before, nullptr);
}

using GuardedCopyDeathTest = GuardedCopyTest;
INSTANTIATE_TEST_SUITE_P(Ways, GuardedCopyDeathTest, testing::Values(true));

TEST_P(GuardedCopyDeathTest, Fault_of_an_application_without_handler__ends_the_process) {
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  EXPECT_EXIT((put_guard_in_front_of(none), touch(faulty.edge())), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace portofu
