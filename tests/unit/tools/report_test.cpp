// The page of ptl_trace: what lasts is drawn for as long as it lasts, and texts cannot become markup.

#include "lib/tools/ptl_trace/report.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/tools/ptl_trace/drawing.h"

namespace portofu::tools {
namespace {

LaneSteps waiting_lane(std::uint64_t lasts_ns) {
  LaneSteps lane;
  lane.id = {0x0a000001, 1};
  lane.os_pid = 1;
  lane.machine = "one";
  lane.first = {1, 1};
  lane.last = {1'000'001, 1'000'001};
  StepRecord step{};
  step.ticks = 1000;
  step.step = Step::kWait;
  step.kind = kWaitsByPolls;
  step.nid = 7;
  lane.steps.push_back(step);
  step.ticks += lasts_ns;
  step.step = Step::kWaitEnd;
  lane.steps.push_back(step);
  return lane;
}

std::string page_of(LaneSteps lane) {
  const Timeline timeline = merge({std::move(lane)});
  return report_html(timeline, summarize(timeline));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Report, Wait_that_never_ends__is_drawn_from_end_to_end) {
  for (const std::uint64_t ns : {300, 1234, 97'531, 360'582'001}) {
    const std::string page = page_of(waiting_lane(ns));
    const std::size_t begin = page.find("<svg id=\"timeline\"");
    ASSERT_NE(begin, std::string::npos);
    const std::string plot = page.substr(begin, page.find("</svg>", begin) - begin);
    EXPECT_EQ(count(plot, "<rect"), 300) << ns;
  }
}

/// A job of many ranks has a row for each, of fewer stretches, and a page that a browser can show.
TEST(Report, Many_processes__have_rows_of_fewer_stretches) {
  std::vector<LaneSteps> lanes;
  for (std::uint32_t i = 0; i < 500; ++i) {
    lanes.push_back(waiting_lane(10'000));
    lanes.back().os_pid = i + 1;
  }
  const Timeline timeline = merge(std::move(lanes));
  const std::string page = report_html(timeline, summarize(timeline));
  const std::size_t begin = page.find("<svg id=\"timeline\"");
  const std::string plot = page.substr(begin, page.find("</svg>", begin) - begin);
  EXPECT_EQ(count(plot, "<rect"), 500 * 50);
}

TEST(Report, Name_of_a_program__is_no_markup) {
  LaneSteps lane = waiting_lane(1000);
  lane.program = "<script>&\"";
  const std::string page = page_of(lane);
  EXPECT_NE(page.find("&lt;script&gt;&amp;&quot;"), std::string::npos);
  EXPECT_EQ(count(page, "<script>"), 1) << "our own";
}

TEST(Report, Empty_lanes__are_a_page_all_the_same) {
  LaneSteps lane = waiting_lane(1000);
  lane.steps.clear();
  EXPECT_NE(page_of(lane).find("1 processes, 0 messages"), std::string::npos);
}

/// Names of programs are any bytes.
TEST(Report, Texts__are_UTF_8) {
  const std::string stands_for_it = "\xef\xbf\xbd";
  EXPECT_EQ(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
  for (const char* whole : {"M\xc3\xbcller", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(escaped(whole), whole);
  for (const char* none : {"\x01", "\x1b", "\xff", "\xc3", "\x80", "\xc1", "\xf5"})
    EXPECT_EQ(escaped(none), stands_for_it);
  EXPECT_EQ(escaped("\xc3(\xe2\x82"), stands_for_it + '(' + stands_for_it + stands_for_it) << "cut ones";
  for (const char* odd : {"\xe0\x9f\xbf", "\xed\xa0\x80"})
    EXPECT_EQ(escaped(odd), stands_for_it + stands_for_it + stands_for_it)
        << "a longer way to write it, half of a pair";
}

}  // namespace
}  // namespace portofu::tools
