// Portals 4.3, 3.1 and 3.2: the API is a C API: "named constants, function prototypes, and type definitions must be
// supplied in a file named portals4.h". Programs are compiled against it and linked with -lportals alone.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

/// Runs a command line; gives its exit status and all that it said.
int run(const std::string& command, std::string* said) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return -1;
  char buffer[4096];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) said->append(buffer, got);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class CProgram : public testing::TestWithParam<const char*> {};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Portals, CProgram, testing::Values("c99", "c11", "gnu17"),
                         [](const auto& one) { return std::string(one.param); });

// 3.1: "named constants, function prototypes, and type definitions must be supplied in a file named portals4.h"; 3.2:
// constants in constant expressions and as labels; one message through the library, linked as the world does it.
TEST_P(CProgram, Section3_1__compiles_links_with_lportals_alone_and_runs) {
  std::string program = testing::TempDir() + "portals_c_program_XXXXXX";
  const int fd = mkstemp(program.data());
  ASSERT_GE(fd, 0);
  close(fd);
  const std::string source = PORTOFU_SOURCE_DIR;
  const std::string library = PORTOFU_LIBRARY_DIR;
  std::string said;
  EXPECT_EQ(run(std::string(PORTOFU_C_COMPILER) + " -std=" + GetParam() +
                    " -pedantic-errors -Wall -Wextra -Wswitch -Werror -I'" + source + "/include' '" + source +
                    "/tests/conformance/portals4/c_program.c' -o '" + program + "' -L'" + library +
                    "' -lportals -Wl,--no-allow-shlib-undefined -Wl,-rpath,'" + library + "'",
                &said),
            0)
      << said;
  said.clear();
  EXPECT_EQ(run("'" + program + "'", &said), 0) << said;
  unlink(program.c_str());
}
