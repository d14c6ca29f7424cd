// Random numbers come with getrandom(2), and without it.

#include "engine/queue/random_bytes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "tests/unit/support/refused_call.h"

namespace portofu {
namespace {

/// @return 0: two numbers came, and differ
int draw_two() {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  return draw_random(&first, sizeof first) && draw_random(&second, sizeof second) && first != second ? 0 : 1;
}

TEST(RandomBytes, Numbers__differ) { EXPECT_EQ(draw_two(), 0); }

TEST(RandomBytes, Numbers__come_from_the_device_where_the_call_is_refused) {
  const pid_t child = fork();
  if (child == 0) _exit(refuse_call(SYS_getrandom, ENOSYS) ? draw_two() : 77);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "may not filter system calls";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace portofu
