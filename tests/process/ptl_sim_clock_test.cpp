// Programs under ptl_sim that read clocks and sleep themselves: they see virtual time. They are linked with the shared
// libraries, as those of users are.

#include "tests/process/launcher.h"

namespace portofu {
namespace {

struct Ended {
  int status;
  std::string output;
};

Ended run(const std::string& program, const Words& options) {
  Words words{PORTOFU_PTL_SIM, "--quiet"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(program);
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
  const Ended first = run(PORTOFU_SIM_LATENCY, {"--nodes", "2"});
  ASSERT_EQ(first.status, 0) << first.output;
  for (const char* clock : {"steady", "system"}) {
    const auto measured_ns = numbers_behind(clock, first.output);
    ASSERT_EQ(measured_ns.size(), 1u) << first.output;
    EXPECT_GT(measured_ns[0], 970 * 0.95) << clock;
    EXPECT_LT(measured_ns[0], 990 * 1.05) << clock;
  }
  EXPECT_EQ(numbers_behind("slept", first.output), std::vector<double>{3'000'000}) << first.output;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(PORTOFU_SIM_LATENCY, {"--nodes", "2"}).output, first.output);
}

TEST_F(PtlSimClock, Clocks__go_on_from_real_to_virtual_time_and_back) {
  const Ended first = run(PORTOFU_SIM_CLOCKS, {"--nodes", "1"});
  ASSERT_EQ(first.status, 0) << first.output;
  const auto puts_ns = numbers_behind("put", first.output);
  ASSERT_EQ(puts_ns.size(), 3u) << first.output;
  for (const double put_ns : puts_ns) {
    EXPECT_GT(put_ns, 100) << "the first one, too, although time begins with it";
    EXPECT_NEAR(put_ns, puts_ns[0], 1) << "a nanosecond is rounded down";
  }
  EXPECT_EQ(numbers_behind("slept", first.output), std::vector<double>{1'210'000'020'002}) << first.output;
  const auto waited_ns = numbers_behind("clock", first.output);
  ASSERT_EQ(waited_ns.size(), 1u);
  EXPECT_GE(waited_ns[0], 1'000'000);
  EXPECT_LT(waited_ns[0], 1'010'000);
  EXPECT_EQ(run(PORTOFU_SIM_CLOCKS, {"--nodes", "1"}).output, first.output);
}

TEST_F(PtlSimClock, Clocks__are_real_if_that_is_wished) {
  const Ended real = run(PORTOFU_SIM_LATENCY, {"--nodes", "2", "--real-clocks"});
  ASSERT_EQ(real.status, 0) << real.output;
  const auto slept_ns = numbers_behind("slept", real.output);
  ASSERT_EQ(slept_ns.size(), 1u) << real.output;
  EXPECT_GT(slept_ns[0], 3'000'000) << "the kernel takes some time, too";
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
