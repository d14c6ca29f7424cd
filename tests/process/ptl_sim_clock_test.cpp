// Programs under ptl_sim that read clocks and sleep themselves: they see virtual time. They are linked with the shared
// libraries, as those of users are.

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process/launcher.h"

namespace portofu {
namespace {

struct Ended {
  int status;
  std::string output;
};

/// @param command  options, and the program
Ended run(const Words& command, const char* quiet = "--quiet") {
  Words words{PORTOFU_PTL_SIM};
  if (quiet != nullptr) words.push_back(quiet);
  words.insert(words.end(), command.begin(), command.end());
  Launcher launcher(words);
  const int status = launcher.wait_status();
  return {status, launcher.output()};
}

/// The numbers behind a word, in the order of the output.
std::vector<double> numbers_behind(const std::string& word, const std::string& output) {
  std::vector<double> numbers;
  std::istringstream words(output);
  for (std::string one; words >> one;) {
    if (double number = 0; one == word && words >> number) numbers.push_back(number);
  }
  return numbers;
}

struct PtlSimClock : testing::Test {
  void SetUp() override {
#ifdef PORTOFU_NO_CLOCK_LIBRARY
    GTEST_SKIP() << "with a sanitizer there is no libportofu_clock.so: its library wants to be loaded first";
#endif
  }
};

/// Published for Tofu-D: a put of 8 bytes takes 0.97 to 0.99 us one way over one hop, memory polled; we allow 5 %.
TEST_F(PtlSimClock, Programs__measure_what_the_machine_takes) {
  const Ended first = run({"--nodes", "2", PORTOFU_SIM_LATENCY});
  ASSERT_EQ(first.status, 0) << first.output;
  for (const char* clock : {"steady", "system"}) {
    const auto measured_ns = numbers_behind(clock, first.output);
    ASSERT_EQ(measured_ns.size(), 1u) << first.output;
    EXPECT_GT(measured_ns[0], 970 * 0.95) << clock;
    EXPECT_LT(measured_ns[0], 990 * 1.05) << clock;
  }
  EXPECT_EQ(numbers_behind("slept", first.output), std::vector<double>{3'000'000}) << first.output;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run({"--nodes", "2", PORTOFU_SIM_LATENCY}).output, first.output);
}

/// Rank 1 has called nothing when it begins to wait. A sleep takes 1 us, so each put is found up to that much later.
TEST_F(PtlSimClock, Programs__may_look_into_memory_between_sleeps_or_with_a_timeout) {
  for (const char* between : {"sleep", "clock"}) {
    const Ended first = run({"--nodes", "2", PORTOFU_SIM_LATENCY, between});
    ASSERT_EQ(first.status, 0) << between << ": " << first.output;
    const auto measured_ns = numbers_behind("steady", first.output);
    ASSERT_EQ(measured_ns.size(), 1u) << first.output;
    EXPECT_GT(measured_ns[0], 700) << between;
    EXPECT_LT(measured_ns[0], 2100) << between;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run({"--nodes", "2", PORTOFU_SIM_LATENCY, between}).output, first.output);
  }
}

/// Who computes looks like one that polls its memory, and those who sleep would let time go on without it for ever.
TEST_F(PtlSimClock, Sleepers__wait_for_those_who_compute) {
  const std::string path = testing::TempDir() + "ptl_sim_clock_test." + std::to_string(getpid()) + ".json";
  const Ended job = run({"--nodes", "4", "--json", path, PORTOFU_SIM_SLEEPERS});
  std::ifstream file(path);
  const auto report = nlohmann::json::parse(file, nullptr, false);
  std::filesystem::remove(path);
  ASSERT_EQ(job.status, 0) << job.output;
  EXPECT_EQ(report["message_count"], 12);
  EXPECT_LT(report["time_ps"], 1'000'000'000'000u) << "a second";
}

/// Whoever computes seems to poll its memory, as the others do, and nobody is left that could go on.
TEST_F(PtlSimClock, Ranks__that_compute_go_on_though_all_seem_to_poll_memory) {
  for (const char* nodes : {"2", "4"}) {
    const Ended job = run({"--nodes", nodes, PORTOFU_SIM_SLEEPERS, "once"});
    EXPECT_EQ(job.status, 0) << nodes << ": " << job.output;
  }
}

TEST_F(PtlSimClock, Clocks__go_on_from_real_to_virtual_time_and_back) {
  const Ended first = run({"--nodes", "1", PORTOFU_SIM_CLOCKS});
  ASSERT_EQ(first.status, 0) << first.output;
  const auto puts_ns = numbers_behind("put", first.output);
  ASSERT_EQ(puts_ns.size(), 3u) << first.output;
  for (const double put_ns : puts_ns) {
    EXPECT_GT(put_ns, 100) << "the first one, too, although time begins with it";
    EXPECT_NEAR(put_ns, puts_ns[0], 1) << "a nanosecond is rounded down";
  }
  const auto slept_ns = numbers_behind("slept_for_it", first.output);
  ASSERT_EQ(slept_ns.size(), 1u) << first.output;
  EXPECT_GE(slept_ns[0], puts_ns[0] - 92) << "sleeps of no length, until a put is there: no look_ns of polled memory";
  EXPECT_LT(slept_ns[0], puts_ns[0] + 300);
  EXPECT_EQ(numbers_behind("slept", first.output), std::vector<double>{1'212'000'020'002}) << first.output;
  EXPECT_EQ(numbers_behind("at_descriptors", first.output), std::vector<double>{200'000'000}) << first.output;
  const auto waited_ns = numbers_behind("clock", first.output);
  ASSERT_EQ(waited_ns.size(), 1u);
  EXPECT_GE(waited_ns[0], 1'000'000);
  EXPECT_LT(waited_ns[0], 1'010'000);
  const auto counted_ns = numbers_behind("microseconds", first.output);
  ASSERT_EQ(counted_ns.size(), 1u);
  EXPECT_GE(counted_ns[0], 99'000);
  EXPECT_LT(counted_ns[0], 101'000);
  const auto seconds_ns = numbers_behind("for_seconds", first.output);
  ASSERT_EQ(seconds_ns.size(), 1u);
  EXPECT_GE(seconds_ns[0], 2'000'000'000);
  EXPECT_LT(seconds_ns[0], 2'002'000'000);
  const auto reads = numbers_behind("reads", first.output);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_LT(reads[0], 100'000) << "each may cost a change of turns";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run({"--nodes", "1", PORTOFU_SIM_CLOCKS}).output, first.output);
}

/// Of std::future, semaphores of C++, futexes, message queues and timers. Their ends are a day ahead of real time.
TEST_F(PtlSimClock, Timeouts__are_as_far_away_as_the_program_sees_them) {
  const Ended job = run({"--nodes", "2", PORTOFU_SIM_TIMEOUTS});
  EXPECT_EQ(job.status, 0) << job.output;
}

TEST_F(PtlSimClock, Clocks__are_real_if_that_is_wished) {
  const Ended real = run({"--nodes", "2", "--real-clocks", PORTOFU_SIM_LATENCY});
  ASSERT_EQ(real.status, 0) << real.output;
  const auto slept_ns = numbers_behind("slept", real.output);
  ASSERT_EQ(slept_ns.size(), 1u) << real.output;
  EXPECT_GT(slept_ns[0], 3'000'000) << "the kernel takes some time, too";
}

/// Three stages of gates: each takes a packet to another node at least, and no more than a put with all that belongs to
/// it. Nobody leaves before the last has come, and soon after that all have left.
TEST_F(PtlSimClock, Gates__wait_for_the_last_of_several_nodes) {
  const Ended first = run({"--nodes", "2x2x2", PORTOFU_SIM_GATES});
  ASSERT_EQ(first.status, 0) << first.output;
  const auto together_ns = numbers_behind("together", first.output);
  const auto late_ns = numbers_behind("late", first.output);
  ASSERT_EQ(together_ns.size() + late_ns.size(), 2u) << first.output;
  EXPECT_GT(together_ns[0], 3 * 100);
  EXPECT_LT(together_ns[0], 3 * 1500);
  EXPECT_GT(late_ns[0], 500'000);
  EXPECT_LT(late_ns[0], 510'000);
  EXPECT_EQ(run({"--nodes", "2x2x2", PORTOFU_SIM_GATES}).output, first.output);
  const Ended fewer = run({"--nodes", "4", "--per-node", "2", PORTOFU_SIM_GATES});
  ASSERT_EQ(fewer.status, 0) << fewer.output;
  EXPECT_EQ(run({"--nodes", "4", "--per-node", "2", PORTOFU_SIM_GATES}).output, fewer.output);
}

/// Each rank is a child of the launcher, which is one program for ptl_sim.
TEST_F(PtlSimClock, Launcher__starts_the_ranks_itself) {
  const Ended ours = run({"--nodes", "2", PORTOFU_SIM_LATENCY});
  const Ended theirs = run({"--nodes", "2", "--launcher", PORTOFU_PTL_RUN, "-n", "2", PORTOFU_SIM_LATENCY});
  ASSERT_EQ(theirs.status, 0) << theirs.output;
  EXPECT_EQ(theirs.output, ours.output);
}

/// As a script of several mpiruns is one.
TEST_F(PtlSimClock, Launcher__may_start_one_job_after_the_other) {
  const std::string job = std::string(PORTOFU_PTL_RUN) + " -n 2 " + PORTOFU_SIM_LATENCY;
  const Ended both = run({"--nodes", "2", "--launcher", "/bin/sh", "-c", job + " && sleep 1 && " + job});
  ASSERT_EQ(both.status, 0) << both.output;
  EXPECT_EQ(numbers_behind("steady", both.output).size(), 2u) << both.output;
}

/// A rank that ends without a word is missed by nobody but its launcher, which does not tell us.
TEST_F(PtlSimClock, Launcher__whose_rank_ends_early_hangs_nobody) {
  const Ended early = run({"--nodes", "2", "--launcher", "/bin/sh", "-c",
                           std::string("PMI_RANK=0 timeout -s KILL 0.5 ") + PORTOFU_SIM_CLOCKS + " wait; PMI_RANK=1 " +
                               PORTOFU_SIM_CLOCKS});
  EXPECT_EQ(early.status, 0) << early.output;
  EXPECT_EQ(numbers_behind("put", early.output).size(), 3u) << early.output;
}

/// It is the launcher that ends the job then, though it takes its time. A rank writes a file when it is there.
TEST_F(PtlSimClock, Launcher__whose_rank_dies_ends_the_others_itself) {
  const std::string file = testing::TempDir() + "ptl_sim_clock_test." + std::to_string(getpid()) + ".rank";
  const std::string program = std::string(PORTOFU_SIM_CLOCKS) + " ";
  const std::string script = "PMI_RANK=0 " + program + "wait " + file + "0 & first=$!; PMI_RANK=1 " + program +
                             "look " + file + "1 & second=$!; until [ -e " + file + "0 ] && [ -e " + file +
                             "1 ]; do sleep 0.1; done; kill -KILL $first; wait $first; sleep 3; kill -KILL $second; "
                             "exit 7";
  const Ended died = run({"--nodes", "2", "--launcher", "/bin/sh", "-c", script});
  for (const char* rank : {"0", "1"}) std::filesystem::remove(file + rank);
  EXPECT_EQ(died.status, 7) << died.output;
  EXPECT_EQ(died.output.find("hangs"), std::string::npos) << died.output;
  EXPECT_NE(died.output.find("the launcher (process "), std::string::npos) << died.output;
}

TEST_F(PtlSimClock, Programs__that_read_the_counter_are_told) {
  const Ended reader = run({"--nodes", "1", PORTOFU_SIM_COUNTER}, nullptr);
  ASSERT_EQ(reader.status, 0) << reader.output;
#ifdef __x86_64__
  EXPECT_NE(reader.output.find("sim_counter seems to read the processor's counter itself (rdtsc, rdtscp)"),
            std::string::npos)
      << reader.output;
#else
  EXPECT_NE(reader.output.find("sim_counter seems to read the processor's counter itself (mrs cntvct_el0)"),
            std::string::npos)
      << reader.output;
#endif
  const Ended other = run({"--nodes", "1", PORTOFU_SIM_CLOCKS}, nullptr);
  EXPECT_EQ(other.output.find("counter"), std::string::npos) << other.output;
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
