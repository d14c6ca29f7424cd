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

/// Somebody's setting may be as long as the kernel takes. What is to be done stands behind it.
TEST_F(LogTest, Long_line__loses_its_middle_and_keeps_both_ends) {
  for (const std::size_t length : {kLogLineBytes, 2 * kLogLineBytes, 1 << 20}) {
    const std::string text(length, 'x');
    CaptureStderr();
    log_error("PORTOFU_X=%s is not allowed (%d..%d)", text.c_str(), 1, 2);
    const std::string line = GetCapturedStderr();
    EXPECT_EQ(line.size(), static_cast<std::size_t>(kLogLineBytes) - 1);
    EXPECT_THAT(line, HasSubstr(" error: PORTOFU_X=xxx"));
    EXPECT_THAT(line, HasSubstr("xxx ... xxx"));
    EXPECT_THAT(line, EndsWith("xxx is not allowed (1..2)\n"));
  }
}

TEST_F(LogTest, Line_that_just_fits__is_whole) {
  CaptureStderr();
  log_error("%s", "");
  const std::size_t prefix = GetCapturedStderr().size() - 1;
  const std::string text(static_cast<std::size_t>(kLogLineBytes) - 2 - prefix, 'x');
  CaptureStderr();
  log_error("%s", text.c_str());
  EXPECT_THAT(GetCapturedStderr(), EndsWith(": " + text + "\n"));
}

TEST_F(LogTest, Text_of_several_lines__is_written_in_one) {
  CaptureStderr();
  log_error("PORTOFU_X=%s is not allowed", "a\nportofu[1]: error: b\x1b[2J");
  EXPECT_THAT(GetCapturedStderr(), EndsWith("PORTOFU_X=a?portofu[1]: error: b?[2J is not allowed\n"));
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
