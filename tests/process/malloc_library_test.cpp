// libportofu_malloc.so under real programs: this one, started again with LD_PRELOAD in the role of a user's program. A
// role is a disabled test, which the others start and judge by its exit code.

#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kMegabyte = 1 << 20;

const std::string kLibraries = PORTOFU_LIBRARY_DIR;
const std::string kOurs = kLibraries + "/libportofu_malloc.so";
constexpr const char* kJemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
constexpr const char* kTcmalloc = "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4";

/// @return its exit code, 128 + N after signal N
int run_role(const std::string& role, const std::string& preload, std::string* output) {
  const std::string command = "timeout 100 env LD_PRELOAD='" + preload + "' /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_also_run_disabled_tests --gtest_filter=MallocRole.DISABLED_" + role +
                              " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  char part[4096];
  output->clear();
  for (std::size_t bytes = 0; (bytes = fread(part, 1, sizeof part, pipe)) > 0;) output->append(part, bytes);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void expect_role(const std::string& role, const std::string& preload = kOurs) {
  std::string output;
  EXPECT_EQ(run_role(role, preload, &output), 0) << output;
  EXPECT_EQ(output.find("portofu:"), std::string::npos) << output;
}

// ---- What a role sees ----------------------------------------------------------------------------------------------

/// Whether memory lies in the heap that peers map.
bool is_shared(const void* memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t start = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> start >> dash >> end;
    if (at >= start && at < end) return line.find("portofu-heap") != std::string::npos;
  }
  return false;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t whole = 0, resident = 0;
  statm >> whole >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// As a program that uses uTofu, or loads an MPI library that does.
void load_tofu() { ASSERT_NE(dlopen((kLibraries + "/libtofucom.so").c_str(), RTLD_NOW), nullptr) << dlerror(); }

/// Runs it in a child of a fork. @return its exit code
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void* volatile escaped = nullptr;  // So that no compiler leaves out what nobody uses.

template <class Pointer>
Pointer* seen(Pointer* pointer) {
  escaped = pointer;
  return pointer;
}

// ---- Memory that is never touched ----------------------------------------------------------------------------------

TEST(MallocRole, DISABLED_untouched_memory) {
  load_tofu();
  const std::size_t before = resident_bytes();
  auto* plain = static_cast<char*>(malloc(400 * kMegabyte));
  auto* zeroed = static_cast<char*>(calloc(400, kMegabyte));
  ASSERT_TRUE(is_shared(plain) && is_shared(zeroed));
  EXPECT_EQ(zeroed[0] + zeroed[200 * kMegabyte] + zeroed[400 * kMegabyte - 1], 0);
  plain[200 * kMegabyte] = 7;
  EXPECT_LT(resident_bytes() - before, 16 * kMegabyte);
  const int code = in_child([&] {
    const bool same = plain[200 * kMegabyte] == 7 && is_shared(plain);
    return same && resident_bytes() < before + 32 * kMegabyte ? 0 : 1;
  });
  EXPECT_EQ(code, 0) << "a child has what was touched";
}

TEST(MallocLibrary, Memory_that_nobody_touches__costs_none_here_and_in_children) { expect_role("untouched_memory"); }

TEST(MallocRole, DISABLED_large_and_freed) {
  load_tofu();
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 3; ++i) {
    void* large = malloc(100 * kMegabyte);
    ASSERT_TRUE(is_shared(large));
    std::memset(large, 1, 100 * kMegabyte);
    free(large);
    EXPECT_LT(resident_bytes() - before, 16 * kMegabyte);
  }
}

TEST(MallocLibrary, Large_block_that_is_freed__costs_no_memory_any_more) { expect_role("large_and_freed"); }

TEST(MallocRole, DISABLED_zeros) {
  load_tofu();
  for (const std::size_t bytes : {1000u, 100'000u, 130'001u, 1'000'000u, 5'000'000u}) {
    for (int round = 0; round < 20; ++round) {
      auto* zeroed = static_cast<unsigned char*>(seen(calloc(1, bytes)));
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(zeroed[i], 0) << bytes;
      auto* neighbour = static_cast<unsigned char*>(malloc(50));
      std::memset(neighbour, 1, 50);
      std::memset(zeroed, 0xff, bytes);
      free(zeroed);
      for (int i = 0; i < 50; ++i) ASSERT_EQ(neighbour[i], 1);
    }
  }
}

TEST(MallocLibrary, Calloc__gives_zeros_where_others_have_written) { expect_role("zeros"); }

TEST(MallocRole, DISABLED_nothing_loaded) {
  EXPECT_FALSE(is_shared(seen(malloc(100))));
  load_tofu();
  EXPECT_TRUE(is_shared(seen(malloc(100))));
}

TEST(MallocLibrary, Program_without_our_libraries__has_the_memory_of_the_C_library) { expect_role("nothing_loaded"); }

// ---- All forms -----------------------------------------------------------------------------------------------------

std::vector<void*> functions_of_c() {
  void* by_posix = nullptr;
  EXPECT_EQ(posix_memalign(&by_posix, 64, 100), 0);
  return {malloc(100),  calloc(10, 10), realloc(nullptr, 100),   reallocarray(nullptr, 10, 10),
          by_posix,     valloc(100),    aligned_alloc(256, 512), memalign(1024, 10),
          pvalloc(100), malloc(0)};
}

TEST(MallocRole, DISABLED_functions) {
  load_tofu();
  for (void* block : functions_of_c()) {
    EXPECT_TRUE(is_shared(seen(block)));
    EXPECT_GE(malloc_usable_size(block), block == nullptr ? 0u : 1u);
    free(block);
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* pages = pvalloc(page + 1);
  EXPECT_GE(malloc_usable_size(pages), 2 * page);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages) % page, 0u);
  free(pages);
  EXPECT_EQ(malloc_usable_size(nullptr), 0u);
  using Free = void (*)(void*, std::size_t);
  const auto free_sized = reinterpret_cast<Free>(dlsym(RTLD_DEFAULT, "free_sized"));
  ASSERT_NE(free_sized, nullptr) << "C23";
  free_sized(malloc(100), 100);

  errno = 77;
  free(seen(malloc(5000)));
  free(seen(realloc(malloc(10), 1 << 20)));
  EXPECT_EQ(errno, 77) << "what succeeds leaves it alone";
  volatile std::size_t most = SIZE_MAX;
  EXPECT_EQ(malloc(most / 2 + 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(calloc(most / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(reallocarray(nullptr, most / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 77;
  void* block = nullptr;
  EXPECT_EQ(posix_memalign(&block, 24, 10), EINVAL);
  EXPECT_EQ(posix_memalign(&block, 64, most / 2 + 1), ENOMEM);
  EXPECT_EQ(errno, 77) << "it returns the error";
}

TEST(MallocLibrary, Functions_of_C__give_shared_memory_and_keep_errno) { expect_role("functions"); }

struct alignas(512) Aligned {
  char bytes[512];
};

int handler_calls = 0;

TEST(MallocRole, DISABLED_operators) {
  load_tofu();
  const auto expect_shared = [](void* block, std::size_t alignment) {
    EXPECT_TRUE(is_shared(seen(block)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
  };
  constexpr std::align_val_t at{512};
  const auto check = [&](void* block) { return expect_shared(block, 512), block; };
  const auto usual = [&](void* block) { return expect_shared(block, 16), block; };
  operator delete(usual(operator new(100)));
  operator delete[](usual(operator new[](100)));
  operator delete(usual(operator new(100)), 100);
  operator delete[](usual(operator new[](100)), 100);
  operator delete(usual(operator new(100, std::nothrow)), std::nothrow);
  operator delete[](usual(operator new[](100, std::nothrow)), std::nothrow);
  operator delete(check(operator new(100, at)), at);
  operator delete[](check(operator new[](100, at)), at);
  operator delete(check(operator new(100, at)), 100, at);
  operator delete[](check(operator new[](100, at)), 100, at);
  operator delete(check(operator new(100, at, std::nothrow)), at, std::nothrow);
  operator delete[](check(operator new[](100, at, std::nothrow)), at, std::nothrow);
  operator delete(usual(operator new(0)));
  delete seen(new Aligned);
  delete[] seen(new Aligned[3]);
  void (*volatile give_back)(void*) = free;  // The compiler must not see what comes now:
  give_back(operator new(100));              // not allowed, and often done.

  volatile std::size_t most = SIZE_MAX / 2 + 1;
  EXPECT_THROW(seen(operator new(most)), std::bad_alloc);
  EXPECT_THROW(seen(operator new[](most, at)), std::bad_alloc);
  EXPECT_EQ(operator new(most, std::nothrow), nullptr);
  EXPECT_EQ(operator new[](most, at, std::nothrow), nullptr);
  std::set_new_handler([] {
    if (++handler_calls == 3) throw std::bad_alloc();
  });
  EXPECT_EQ(operator new(most, std::nothrow), nullptr);
  EXPECT_EQ(handler_calls, 3);
}

TEST(MallocLibrary, Operators_of_Cxx__give_shared_memory_in_all_forms) { expect_role("operators"); }

// ---- Forks ---------------------------------------------------------------------------------------------------------

char* written_by_handlers = nullptr;
void* freed_by_handlers[3] = {};

void handler_of_fork(int which) {
  for (int i = 0; i < 10; ++i) free(seen(malloc(100 << i)));
  free(freed_by_handlers[which]);
  freed_by_handlers[which] = malloc(10);
  if (written_by_handlers != nullptr) written_by_handlers[which] = static_cast<char>(getpid());
}

/// Before the first malloc of this program, and before the heap is used.
__attribute__((constructor(101))) void register_handlers() {
  if (getenv("LD_PRELOAD") == nullptr) return;
  pthread_atfork([] { handler_of_fork(0); }, [] { handler_of_fork(1); }, [] { handler_of_fork(2); });
}

TEST(MallocRole, DISABLED_handlers) {
  load_tofu();
  written_by_handlers = static_cast<char*>(calloc(1, 3));
  ASSERT_TRUE(is_shared(written_by_handlers));
  for (void*& block : freed_by_handlers) block = malloc(1000);
  for (int i = 0; i < 30; ++i) {
    written_by_handlers[2] = 0;
    ASSERT_EQ(in_child([] {
                const bool own = written_by_handlers[2] == static_cast<char>(getpid());
                free(seen(malloc(100'000)));
                return own && is_shared(seen(malloc(10))) ? 0 : 1;
              }),
              0);
    ASSERT_EQ(written_by_handlers[2], 0) << "a child has written to its parent's memory";
    ASSERT_EQ(written_by_handlers[1], static_cast<char>(getpid()));
  }
}

TEST(MallocLibrary, Handlers_of_a_fork__may_allocate_and_free_and_write) { expect_role("handlers"); }

TEST(MallocRole, DISABLED_threads) {
  load_tofu();
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&ends, t] {
      for (unsigned i = t; !ends; ++i) {
        auto* block = static_cast<unsigned char*>(malloc(i * 37 % 5000 + 1));
        block[0] = 1;
        delete[] new char[i % 300];
        free(block);
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(in_child([] {
                for (int k = 0; k < 100; ++k) free(seen(malloc(static_cast<std::size_t>(k) * 100)));
                return is_shared(seen(malloc(10))) ? 0 : 1;
              }),
              0);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(MallocLibrary, Threads_that_allocate__do_not_disturb_forks) { expect_role("threads"); }

// ---- Other allocators ----------------------------------------------------------------------------------------------

TEST(MallocRole, DISABLED_anything) {
  load_tofu();
  for (int round = 0; round < 100; ++round) {
    for (void* block : functions_of_c()) {
      EXPECT_GE(malloc_usable_size(seen(block)), block == nullptr ? 0u : 1u);
      free(realloc(block, 3000));
    }
    delete[] seen(new char[100]);
    delete seen(new Aligned);
    const auto at = std::align_val_t{64};
    operator delete(operator new(100, at), 100, at);
    char* line = nullptr;
    ASSERT_GT(asprintf(&line, "%d", round), 0);
    free(line);
    free(strdup("text"));
    ASSERT_EQ(in_child([] { return free(seen(malloc(100))), 0; }), 0);
  }
}

class OtherAllocator : public testing::TestWithParam<const char*> {};

TEST_P(OtherAllocator, Loaded_behind_ours__is_not_asked) {
  if (access(GetParam(), R_OK) != 0) GTEST_SKIP() << "no " << GetParam();
  for (const char* role : {"anything", "functions", "operators", "handlers", "threads", "untouched_memory"}) {
    SCOPED_TRACE(role);
    expect_role(role, kOurs + " " + GetParam());
  }
}

TEST_P(OtherAllocator, Loaded_before_ours__works_and_the_user_is_told_once) {
  if (access(GetParam(), R_OK) != 0) GTEST_SKIP() << "no " << GetParam();
  std::string output;
  EXPECT_EQ(run_role("anything", GetParam() + (" " + kOurs), &output), 0) << output;
  const std::string told =
      std::string("portofu: libportofu_malloc.so is loaded behind another allocator, ") + GetParam();
  const std::size_t at = output.find(told);
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_EQ(output.find("portofu:", at + 1), std::string::npos) << "children of a fork say nothing: " << output;
}

INSTANTIATE_TEST_SUITE_P(All, OtherAllocator, testing::Values(kJemalloc, kTcmalloc), [](const auto& test) {
  return std::string(test.param == kJemalloc ? "jemalloc" : "tcmalloc");
});

}  // namespace
