#pragma once
// What a process says and does where the system lacks or refuses something.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <portals4.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"

namespace portofu {

/// Exit status where a test may not do what it needs.
inline constexpr int kNoRights = 77;
inline constexpr const char* kNoRightsWords = "may not change mounts or filter calls";

struct Outcome {
  int status = -1;
  std::string said;  ///< On standard error.
  long lines() const { return std::count(said.begin(), said.end(), '\n'); }
};

/// Runs `body` in a child, and tells what it and its children wrote to standard error.
inline Outcome outcome_of(const std::function<int()>& body) {
  Outcome outcome;
  int ends[2];
  if (pipe(ends) != 0) return outcome;
  ChildProcess child([&] {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    return body();
  });
  close(ends[1]);
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    outcome.said.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  outcome.status = child.wait_status();
  return outcome;
}

/// A mount namespace of the child's own, whose changes nobody else sees.
inline bool enter_own_mounts() {
  if (unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return false;
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

inline bool mount_shared_memory(const char* options, unsigned long flags = 0) {
  return enter_own_mounts() && mount("tmpfs", "/dev/shm", "tmpfs", flags, options) == 0;
}

inline int init_interface(ptl_pid_t pid, ptl_handle_ni_t* ni) {
  if (PtlInit() != PTL_OK) return PTL_FAIL;
  return PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, ni);
}

inline int init_any() {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  const int code = init_interface(PTL_PID_ANY, &ni);
  PtlFini();
  return code;
}

class Scarcity : public testing::Test {
 protected:
  Scarcity() {
    for (const char* name : {"PORTOFU_JOB_KEY", "PORTOFU_HOSTS", "PORTOFU_CHANNELS", "PORTOFU_CQS"}) unsetenv(name);
    setenv("PORTOFU_FABRIC", "0", 1);
  }
  ~Scarcity() override {
    for (const char* name :
         {"PORTOFU_FABRIC", "PORTOFU_FABRIC_PROVIDER", "PORTOFU_HOSTS", "PORTOFU_CHANNELS", "PORTOFU_CQS"})
      unsetenv(name);
  }

  const OwnNode node;
};

inline void expect_init_fails(const Outcome& outcome, int code, const std::string& wanted, const std::string& reason) {
  EXPECT_EQ(outcome.status, code);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, testing::AllOf(testing::HasSubstr("error: PtlNIInit fails: "), testing::HasSubstr(wanted),
                                           testing::HasSubstr(reason)));
}

}  // namespace portofu
