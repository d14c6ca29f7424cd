// The harness itself: what it promises to the tests of this directory. Uses no Portals.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>

#include "../harness/process.h"

using conformance::collect_outcome;
using conformance::Failure;
using conformance::Process;
using conformance::run_processes;

namespace {

// The only failure of a run, or a text that says how many there were.
std::string only_failure(int count, const conformance::Body& body) {
  const std::vector<Failure> failures = collect_outcome(count, body).failures;
  return failures.size() == 1 ? failures[0].text : std::to_string(failures.size()) + " failures";
}

// Where a process hangs.
[[gnu::noinline]] void wait_in_vain() {
  for (;;) pause();
}

}  // namespace

TEST(Harness, runs_the_body_in_every_process) {
  run_processes(3, [](Process& self) {
    EXPECT_EQ(self.size(), 3);
    EXPECT_EQ(self.share(self.rank()), (std::vector<int>{0, 1, 2}));
  });
}

TEST(Harness, one_process_is_target_and_initiator) {
  run_processes(1, [](Process& self) { EXPECT_TRUE(self.is_target() && self.is_initiator()); });
  run_processes(2, [](Process& self) { EXPECT_NE(self.is_target(), self.is_initiator()); });
}

TEST(Harness, reports_a_failure_of_a_child) {
  const std::string text = only_failure(2, [](Process& self) { EXPECT_NE(self.rank(), 1) << "from the child"; });
  EXPECT_NE(text.find("from the child"), std::string::npos) << text;
}

TEST(Harness, fatal_failure_leaves_the_body_and_releases_the_others) {
  const std::string text = only_failure(2, [](Process& self) {
    const auto inner = [&] { ASSERT_NE(self.rank(), 1) << "only this"; };
    inner();
    self.barrier();
    ADD_FAILURE() << "nobody comes here";
  });
  EXPECT_NE(text.find("only this"), std::string::npos) << text;
}

TEST(Harness, reports_a_crash) {
  const std::string text = only_failure(2, [](Process& self) {
    if (self.rank() == 1) std::abort();
    self.barrier();
  });
  EXPECT_NE(text.find("ended by signal"), std::string::npos) << text;
}

TEST(Harness, goes_on_without_a_process_that_dies_on_purpose) {
  run_processes(3, [](Process& self) {
    self.barrier();
    if (self.rank() == 1) self.die();
    EXPECT_EQ(self.share(self.rank() + 10), (std::vector<int>{10, 0, 12}));
  });
}

TEST(Harness, reports_the_reason_of_a_skip) {
  EXPECT_EQ(collect_outcome(2, [](Process& self) { self.skip("no need"); }).skip_reason, "no need");
}

TEST(Harness, tells_where_a_process_hangs) {
  if (std::system("gdb --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "gdb is not installed";
  const auto hang = [](Process& self) {
    self.barrier();
    if (self.rank() == 1) wait_in_vain();
    self.barrier();
  };
  const std::vector<Failure> failures = collect_outcome(2, hang, 5).failures;
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_NE(failures[0].text.find("process 0 waits at barrier 1"), std::string::npos) << failures[0].text;
  EXPECT_EQ(failures[0].text.find("pause"), std::string::npos) << failures[0].text;
  EXPECT_NE(failures[1].text.find("process 1 hangs after barrier 1"), std::string::npos) << failures[1].text;
  if (failures[1].text.find("ptrace") != std::string::npos) GTEST_SKIP() << "this system lets gdb look at nobody";
  EXPECT_NE(failures[1].text.find("wait_in_vain"), std::string::npos) << failures[1].text;
}
