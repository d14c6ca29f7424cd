// Options of ptl_sim that are wrong, or do not go together.

#include "tests/process/launcher.h"

namespace portofu {
namespace {

TEST(PtlSimOptions, Wrong_ones__are_named) {
  const auto told = [](const Words& options, const std::string& what) {
    Words words{PORTOFU_PTL_SIM};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("/bin/true");
    Launcher launcher(words);
    EXPECT_EQ(launcher.wait_status(), 125) << launcher.output();
    EXPECT_TRUE(contains(launcher.output(), what)) << launcher.output();
  };
  told(Words{}, "--nodes");
  told({"--nodes", "2y3"}, "2y3");
  told({"--nodes", "2x3x2x2"}, "six lengths");
  told({"--nodes", "513"}, "up to three sides, of 512, 768 and 512 nodes at most");
  told({"--nodes", "513", "--machine", "bxi2"}, "of 512, 768 and 512 nodes at most");
  told({"--nodes", "1x1x1x3x3x2"}, "dimension 4 of tofud has at most 2 nodes, not 3");
  told({"--nodes", "1x1x1x2x3x2x1"}, "1x1x1x2x3x2x1");
  told({"--nodes", "2x2x2x2", "--machine", "bxi2"}, "2x2x2x2");
  told({"--nodes", "512x8", "--per-node", "2"}, "8192");
  told({"--nodes", "2", "--compute", "fixed"}, "fixed=NS");
  told({"--nodes", "2", "--machine", "nowhere"}, "nowhere");
  told({"--nodes", "2", "--sweep", "nodes=2"}, "either --nodes or --sweep");
  told({"--nodes", "2", "--plot", "times.svg"}, "--plot is of a --sweep");
  told({"--nodes", "2", "--machine", "tofux"}, "; there are bxi2, funet, tofud");
  told({"--sweep", "nodes=2", "--path"}, "not of a --sweep");
  for (const char* sweep : {"nodes=", "nodes=2,,4", "nodes=2,", "ranks=2", "2,4"}) told({"--sweep", sweep}, sweep);
  told({"--sweep", "nodes=2,1x1x1x3x3x2"}, "dimension 4");
  told({"--sweep", "nodes=2", "--plot", "/nowhere/times.svg"}, "/nowhere/times.svg cannot be written");
  told({"--nodes", "2", "--trace", "/nowhere/trace.json"}, "/nowhere/trace.json cannot be written");
  told({"--nodes", "2", "--report", "/nowhere/report.html"}, "/nowhere/report.html cannot be written");
  told({"--nodes", "2", "--machine", "/dev/null"}, "/dev/null");
  told({"--nodes", "2", "--messages"}, "--messages says what is in the file of --json, and needs it");
  told({"--nodes", "2", "--most", "-1", "--trace", "/dev/null"}, "--most: Value -1");
  told({"--nodes", "2", "--trace", "there", "--report", "there"}, "two outputs go into the file there");
  told({"--nodes", "2", "--trace", "there", "--report", "./there"}, "two outputs go into the file ./there");
  told({"--nodes", "2", "--frobnicate"}, "there is no option --frobnicate");
}

/// Files of a run that nobody wants to read may be the same.
TEST(PtlSimOptions, Outputs__may_go_nowhere) {
  const Words words{PORTOFU_PTL_SIM, "--nodes", "2", "--trace", "/dev/null", "--report", "/dev/null", "/bin/true"};
  Launcher launcher(words);
  EXPECT_EQ(launcher.wait_status(), 125);
  EXPECT_TRUE(contains(launcher.output(), "no rank has used the library")) << launcher.output();
}

/// Threads of OpenMP that look for work take cores from the rank that has its turn.
TEST(PtlSimOptions, OpenMP__sleeps_unless_the_user_says_otherwise) {
  const auto policy = [](const std::string& said, const std::string& compute) {
    const std::string sim = PORTOFU_PTL_SIM " --nodes 1 --compute ";
    const Words words{"/bin/sh", "-c", said + sim + compute + " sh -c 'echo policy=$OMP_WAIT_POLICY.'"};
    Launcher launcher(words);
    EXPECT_EQ(launcher.wait_status(), 125) << "no rank has used the library";
    return launcher.output();
  };
  EXPECT_TRUE(contains(policy("unset OMP_WAIT_POLICY; ", "none"), "policy=passive."));
  EXPECT_TRUE(contains(policy("OMP_WAIT_POLICY=active ", "fixed=10"), "policy=active."));
  EXPECT_TRUE(contains(policy("unset OMP_WAIT_POLICY; ", "cpu"), "policy=.")) << "waiting for them counts there";
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
