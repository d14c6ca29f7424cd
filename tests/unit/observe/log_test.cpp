// What is written, when nothing is written, and that a flood is cut short.

#include "engine/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace portofu {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class LogTest : public ::testing::Test {
 protected:
  void TearDown() override { set_log_level(LogLevel::kWarning); }
};

TEST_F(LogTest, Line__names_process_and_level) {
  CaptureStderr();
  log_error("peer %d is gone; its operations fail", 7);
  EXPECT_EQ(GetCapturedStderr(),
            "portofu[" + std::to_string(getpid()) + "]: error: peer 7 is gone; its operations fail\n");
}

TEST_F(LogTest, Level__decides_what_is_written) {
  set_log_level(LogLevel::kError);
  CaptureStderr();
  log_warning("not this");
  log_info("nor this");
  EXPECT_EQ(GetCapturedStderr(), "");
  EXPECT_FALSE(log_enabled(LogLevel::kWarning));
  set_log_level(LogLevel::kInfo);
  CaptureStderr();
  log_info("but this");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("info: but this\n"));
}

TEST_F(LogTest, Long_line__is_cut_and_keeps_its_newline) {
  const std::string text(2 * kLogLineBytes, 'x');
  CaptureStderr();
  log_error("%s", text.c_str());
  const std::string line = GetCapturedStderr();
  EXPECT_EQ(line.size(), static_cast<std::size_t>(kLogLineBytes) - 1);
  EXPECT_THAT(line, EndsWith("x\n"));
}

TEST(LogRate, Burst__passes_and_the_rest_is_counted) {
  LogRate rate;
  std::uint64_t left_out = 0;
  for (std::uint64_t i = 0; i < LogRate::kLinesPerPeriod; ++i) EXPECT_TRUE(rate.admit(1000, &left_out));
  EXPECT_FALSE(rate.admit(1000 + LogRate::kPeriodNs - 1, &left_out));
  EXPECT_FALSE(rate.admit(1000 + LogRate::kPeriodNs - 1, &left_out));
  EXPECT_EQ(left_out, 0u);
  EXPECT_TRUE(rate.admit(1000 + LogRate::kPeriodNs, &left_out));
  EXPECT_EQ(left_out, 2u);
  EXPECT_TRUE(rate.admit(1000 + LogRate::kPeriodNs, &left_out));
  EXPECT_EQ(left_out, 0u);
}

}  // namespace
}  // namespace portofu
