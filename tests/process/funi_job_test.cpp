// A job on FUNi as ptl_run starts it: the matrix product of the thesis, and how such a job ends.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/process/launcher.h"

namespace portofu {
namespace {

Words matrix(int ranks, Words arguments) {
  Words words{PORTOFU_PTL_RUN, "-n", std::to_string(ranks), PORTOFU_FUNI_MATRIX};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

void expect_right(int ranks, const Words& arguments, const std::string& line) {
  Launcher job(matrix(ranks, arguments));
  EXPECT_EQ(job.wait_status(), 0) << job.output();
  EXPECT_TRUE(contains(job.output(), line)) << job.output();
}

TEST(FuniJob, Matrix_product__is_right_by_both_ways) {
  expect_right(4, {"64", "32", "48", "mfer"}, "64 x 32 x 48 on 4 nodes: right");
  expect_right(4, {"64", "32", "48", "xfer"}, "64 x 32 x 48 on 4 nodes: right");
  expect_right(3, {"2", "3", "3", "xfer"}, "2 x 3 x 3 on 3 nodes: right");
  expect_right(1, {"16", "5", "7", "mfer"}, "16 x 5 x 7 on 1 nodes: right");
}

/// Nodes that look for messages while they compute, as these do, must not lose virtual time by it.
TEST(FuniJob, Matrix_product__runs_in_virtual_time) {
  for (const char* machine : {"funet", "tofud"}) {
    Launcher job(
        {PORTOFU_PTL_SIM, "--machine", machine, "--nodes", "4", PORTOFU_FUNI_MATRIX, "64", "32", "48", "mfer"});
    EXPECT_EQ(job.wait_status(), 0) << job.output();
    EXPECT_TRUE(contains(job.output(), "64 x 32 x 48 on 4 nodes: right")) << job.output();
  }
}

/// Closing takes none, whenever the others come to the barrier before it.
TEST(FuniJob, Matrix_product__takes_the_same_virtual_time_each_time) {
  const std::string path = testing::TempDir() + "funi_job_test." + std::to_string(getpid()) + ".json";
  std::set<std::string> reports;
  for (int i = 0; i < 4; ++i) {
    Launcher job({PORTOFU_PTL_SIM, "--machine", "funet", "--nodes", "4", "--json", path, PORTOFU_FUNI_MATRIX, "64",
                  "32", "48", "mfer"});
    EXPECT_EQ(job.wait_status(), 0) << job.output();
    std::ifstream file(path);
    reports.insert(std::string(std::istreambuf_iterator<char>(file), {}));
    EXPECT_FALSE(contains(job.output(), "calls came later")) << job.output();
  }
  std::filesystem::remove(path);
  EXPECT_EQ(reports.size(), 1u);
}

TEST(FuniJob, Without_a_launcher__the_job_is_one_node) {
  Launcher alone({PORTOFU_FUNI_MATRIX, "16", "5", "7", "mfer"});
  EXPECT_EQ(alone.wait_status(), 0) << alone.output();
  EXPECT_TRUE(contains(alone.output(), "on 1 nodes: right")) << alone.output();
}

/// Nothing hangs: whoever waits for a rank that dies is ended, and the status says how it went.
TEST(FuniJob, A_rank_that_dies__ends_the_job) {
  // It computes for many seconds.
  const std::string program = PORTOFU_FUNI_MATRIX;
  Launcher job(with_shell(3, "test $PMI_RANK = 1 && (sleep 1; kill -9 $$) & exec " + program + " 512 3072 3072 xfer"));
  EXPECT_EQ(job.wait_status(), 128 + SIGKILL) << job.output();
  EXPECT_FALSE(contains(job.output(), "right")) << job.output();
}

TEST(FuniJob, Sizes_that_do_not_fit__end_the_job) {
  Launcher job(matrix(4, {"64", "30", "48", "mfer"}));
  EXPECT_EQ(job.wait_status(), 2) << job.output();
  EXPECT_TRUE(contains(job.output(), "multiples of 4")) << job.output();
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) { return portofu::play_or_test(argc, argv, portofu::play); }
