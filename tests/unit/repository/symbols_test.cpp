// The libraries export the API and nothing else. portals4_symbols.txt is written from the spec (table 3-6), not from
// our header: header, version script and library are compared with it.

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "engine/observe/step_record.h"
#include "tests/unit/repository/repository.h"

namespace portofu::repository {
namespace {

std::set<std::string> symbols_of_the_spec() {
  std::set<std::string> symbols;
  for (const std::string& line : read_source("tests/unit/repository/portals4_symbols.txt").lines) {
    if (!line.empty() && line[0] != '#') symbols.insert(line);
  }
  return symbols;
}

/// Names that match the pattern's first group in a file from the root, comments left out.
std::set<std::string> names_in(const std::string& path, const std::string& pattern) {
  std::set<std::string> names;
  const std::regex regex(pattern);
  for (const std::string& line : code_lines(read_source(path))) {
    for (std::sregex_iterator at(line.begin(), line.end(), regex), end; at != end; ++at) names.insert((*at)[1]);
  }
  return names;
}

/// The names that a shared library defines for others, demangled, without their versions; version nodes are left out.
std::set<std::string> exported_symbols(const std::string& library) {
  std::string output;
  EXPECT_EQ(run_command("nm --dynamic --defined-only --demangle --format=posix '" + library + "'", &output), 0)
      << output;
  std::set<std::string> symbols;
  static const std::regex line_pattern(R"(^(.*?)(@@?[\w.]+)? ([A-Za-z]) [0-9a-f]+( [0-9a-f]+)?$)");
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, line_pattern) && match[3] != "A") symbols.insert(match[1]);
  }
  return symbols;
}

TEST(Symbols, Spec_list__is_whole) { EXPECT_EQ(symbols_of_the_spec().size(), 53u); }

TEST(Symbols, Header__declares_the_spec) {
  EXPECT_EQ(names_in("include/portals4.h", R"(\b(Ptl[A-Z]\w*)\()"), symbols_of_the_spec());
}

TEST(Symbols, Version_script__lists_the_spec) {
  EXPECT_EQ(names_in("lib/portals4/libportals.map", R"(\b(Ptl[A-Z]\w*);)"), symbols_of_the_spec());
}

TEST(Symbols, Libportals__exports_the_spec) {
  const std::string library = built_library("libportals.so.4");
  ASSERT_NE(library, "") << "libportals.so.4 has not been built";
  EXPECT_EQ(exported_symbols(library), symbols_of_the_spec());
}

std::set<std::string> symbols_of_the_guide() {
  std::set<std::string> symbols;
  for (const std::string& line : read_source("tests/unit/repository/utofu_symbols.txt").lines) {
    if (!line.empty() && line[0] != '#') symbols.insert(line);
  }
  return symbols;
}

/// utofu_get_last_error is exported and not declared: programs that call it bring their own declaration.
TEST(Symbols, Utofu_header__declares_the_guide) {
  std::set<std::string> declared = names_in("include/utofu.h", R"(^UTOFU_API \w+ (utofu_\w+)\()");
  declared.insert("utofu_get_last_error");
  EXPECT_EQ(declared, symbols_of_the_guide());
  EXPECT_EQ(declared.size(), 66u);
}

TEST(Symbols, Utofu_version_script__lists_the_guide) {
  EXPECT_EQ(names_in("lib/utofu/libtofucom.map", R"(\b(utofu_\w+);)"), symbols_of_the_guide());
}

TEST(Symbols, Libtofucom__exports_the_guide) {
  const std::string library = built_library("libtofucom.so");
  ASSERT_NE(library, "") << "libtofucom.so has not been built";
  EXPECT_EQ(exported_symbols(library), symbols_of_the_guide());
}

TEST(Symbols, Libportofu_heap__exports_what_its_header_declares) {
  const std::set<std::string> declared = names_in("include/portofu.h", R"(^PORTOFU_API .*\b(portofu_\w+)\()");
  EXPECT_EQ(declared, (std::set<std::string>{"portofu_alloc", "portofu_free", "portofu_relax"}));
  const std::string library = built_library("libportofu_heap.so");
  ASSERT_NE(library, "") << "libportofu_heap.so has not been built";
  EXPECT_EQ(exported_symbols(library), declared);
}

TEST(Symbols, Libfuni__exports_what_its_headers_declare) {
  std::set<std::string> declared = names_in("include/funi.h", R"(^FUNI_API .*\b(funi_\w+)\()");
  declared.merge(names_in("include/cmam.h", R"(^CMAM_API .*\b(cmam_\w+)\()"));
  EXPECT_GE(declared.size(), 40u);
  EXPECT_EQ(names_in("lib/funi/libfuni.map", R"(\b((funi|cmam)_\w+);)"), declared);
  const std::string library = built_library("libfuni.so");
  ASSERT_NE(library, "") << "libfuni.so has not been built";
  EXPECT_EQ(exported_symbols(library), declared);
}

/// Only the library that is loaded for it replaces malloc.
TEST(Symbols, Libportofu_malloc__exports_an_allocator) {
  const std::string library = built_library("libportofu_malloc.so");
  ASSERT_NE(library, "") << "libportofu_malloc.so has not been built";
  auto symbols = exported_symbols(library);
  const auto operators = std::erase_if(symbols, [](const std::string& name) { return name.starts_with("operator "); });
  EXPECT_EQ(operators, 20u) << "of new and delete";
  EXPECT_EQ(symbols, (std::set<std::string>{"aligned_alloc", "calloc", "free", "free_aligned_sized", "free_sized",
                                            "malloc", "malloc_usable_size", "memalign", "posix_memalign", "pvalloc",
                                            "realloc", "reallocarray", "valloc"}));
}

/// Functions of the C library, for those who are not ours, and one for the engine.
TEST(Symbols, Libportofu_clock__exports_clocks_and_waits) {
  const std::string library = built_library("libportofu_clock.so");
  if (library.empty()) GTEST_SKIP() << "libportofu_clock.so is not built with sanitizers";
  EXPECT_EQ(exported_symbols(library), (std::set<std::string>{"MPI_Finalize",
                                                              "MPI_Init",
                                                              "MPI_Init_thread",
                                                              "PMPI_Finalize",
                                                              "PMPI_Init",
                                                              "PMPI_Init_thread",
                                                              "__poll_chk",
                                                              "__ppoll_chk",
                                                              "clock_gettime",
                                                              "clock_nanosleep",
                                                              "cnd_timedwait",
                                                              "epoll_pwait",
                                                              "epoll_pwait2",
                                                              "epoll_wait",
                                                              "gettimeofday",
                                                              "mq_timedreceive",
                                                              "mq_timedsend",
                                                              "mtx_timedlock",
                                                              "nanosleep",
                                                              "poll",
                                                              "portofu_take_program_clock_4",
                                                              "ppoll",
                                                              "pselect",
                                                              "pthread_clockjoin_np",
                                                              "pthread_cond_clockwait",
                                                              "pthread_cond_timedwait",
                                                              "pthread_mutex_clocklock",
                                                              "pthread_mutex_timedlock",
                                                              "pthread_rwlock_clockrdlock",
                                                              "pthread_rwlock_clockwrlock",
                                                              "pthread_rwlock_timedrdlock",
                                                              "pthread_rwlock_timedwrlock",
                                                              "pthread_timedjoin_np",
                                                              "select",
                                                              "sem_clockwait",
                                                              "sem_timedwait",
                                                              "sleep",
                                                              "syscall",
                                                              "thrd_sleep",
                                                              "time",
                                                              "timer_settime",
                                                              "timerfd_settime",
                                                              "times",
                                                              "timespec_get",
                                                              "usleep"}));
}

TEST(Symbols, Libportofu__exports_only_its_namespace) {
  const std::string library = built_library("libportofu.so");
  ASSERT_NE(library, "") << "libportofu.so has not been built";
  static const std::regex ours(R"(^portofu::.*)");
  auto symbols = exported_symbols(library);
  EXPECT_FALSE(symbols.empty());
  EXPECT_EQ(symbols.erase("__wrap___gxx_personality_v0"), 1u) << "the linker's name (engine/run/unwinding.h)";
  for (const std::string& symbol : symbols) EXPECT_TRUE(std::regex_match(symbol, ours)) << symbol;
}

/// What the libraries and tools of the tree take from libportofu, demangled.
std::set<std::string> taken_symbols() {
  std::set<std::string> taken;
  for (const char* name :
       {"libportals.so.4", "libtofucom.so", "libportofu_heap.so", "libportofu_malloc.so", "libfabric/libportofu-fi.so",
        "../bin/ptl_info", "../bin/ptl_run", "../bin/ptl_top", "../bin/ptl_trace"}) {
    const std::string file = built_library(name);
    EXPECT_NE(file, "") << name << " has not been built";
    std::string output;
    EXPECT_EQ(run_command("nm --dynamic --undefined-only --demangle --format=posix '" + file + "'", &output), 0);
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) taken.insert(line);
  }
  return taken;
}

TEST(Symbols, Libportofu__exports_nothing_that_nobody_takes) {
  const std::set<std::string> taken = taken_symbols();
  const auto exported = names_in("engine/libportofu.map", R"((portofu::[\w:]+)\*?;)");
  EXPECT_GT(exported.size(), 40u);
  for (const std::string& name : exported) {
    const bool used = std::any_of(taken.begin(), taken.end(), [&](const auto& t) { return t.starts_with(name); });
    EXPECT_TRUE(used) << name << " stands in engine/libportofu.map, and no library uses it";
  }
}

/// A library of the tree with frames of C++ that hold a duty has them watched (engine/run/unwinding.h).
TEST(Symbols, Libraries__have_threads_watched_that_unwind) {
  for (const char* name : {"libportals.so.4", "libtofucom.so"}) {
    const std::string library = built_library(name);
    ASSERT_NE(library, "") << name << " has not been built";
    std::string output;
    ASSERT_EQ(run_command("nm --dynamic --undefined-only --format=posix '" + library + "'", &output), 0) << output;
    EXPECT_NE(output.find("__wrap___gxx_personality_v0"), std::string::npos) << name;
    EXPECT_EQ(output.find("\n__gxx_personality_v0"), std::string::npos) << name;
  }
}

TEST(Symbols, Libportofu__has_a_probe_for_each_step) {
  const std::string library = built_library("libportofu.so");
  ASSERT_NE(library, "") << "libportofu.so has not been built";
  std::string output;
  ASSERT_EQ(run_command("readelf --notes --wide '" + library + "'", &output), 0) << output;
  if (output.find("stapsdt") == std::string::npos) GTEST_SKIP() << "it was built without sys/sdt.h";
  for (std::size_t step = 1; step < kStepCount; ++step) {
    const std::string name = step_name(static_cast<Step>(step));
    EXPECT_NE(output.find("Provider: portofu\n    Name: " + name + "\n"), std::string::npos) << name;
  }
}

TEST(Symbols, Libportals__finds_libportofu_beside_it) {
  const std::string library = built_library("libportals.so.4");
  ASSERT_NE(library, "") << "libportals.so.4 has not been built";
  std::string output;
  ASSERT_EQ(run_command("readelf --dynamic --wide '" + library + "'", &output), 0) << output;
  EXPECT_NE(output.find("Library soname: [libportals.so.4]"), std::string::npos) << output;
  EXPECT_NE(output.find("Shared library: [libportofu.so."), std::string::npos) << output;
  EXPECT_NE(output.find("Library runpath: [$ORIGIN]"), std::string::npos) << output;
}

}  // namespace
}  // namespace portofu::repository
