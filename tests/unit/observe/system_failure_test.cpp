// What people read, and that they read it once.

#include "engine/observe/system_failure.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace portofu {
namespace {

TEST(SystemFailure, Line__says_call_and_object_and_reason_and_remedy) {
  EXPECT_EQ(system_failure("open", "/dev/shm/x", EMFILE),
            "open of /dev/shm/x failed: Too many open files; raise the limit of open files (ulimit -n)");
  EXPECT_EQ(system_failure("linkat", "a to b", ENOENT, "mount /proc"),
            "linkat of a to b failed: No such file or directory; mount /proc");
  EXPECT_EQ(system_failure("claim", "a channel", 0, "set it higher"), "claim of a channel failed; set it higher");
  EXPECT_EQ(system_failure("read", "x", EIO), "read of x failed: Input/output error") << "nothing is known to change";
}

TEST(SystemFailure, Advice__is_there_for_what_is_short_or_forbidden) {
  for (const int error : {EMFILE, ENFILE, ENOSPC, ENOMEM, EROFS, ENOENT, EACCES, EPERM, ENOSYS, EOPNOTSUPP})
    EXPECT_NE(advice_for(error), "") << error;
  EXPECT_EQ(advice_for(0), "");
}

TEST(ToldOnce, First__is_true_once_in_each_process) {
  ToldOnce told;
  EXPECT_TRUE(told.is_first());
  EXPECT_FALSE(told.is_first());
  const pid_t child = fork();
  if (child == 0) _exit(told.is_first() && !told.is_first() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(told.is_first());
}

TEST(ClosedWay, Line__is_written_once_and_not_for_who_is_not_there) {
  ::testing::internal::CaptureStderr();
  tell_of_closed_way("send", "a message", ECONNREFUSED);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) tell_of_closed_way("send", "a message", EPERM);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("send of a message failed: Operation not permitted; look at the routes and the filters"),
            std::string::npos)
      << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

}  // namespace
}  // namespace portofu
