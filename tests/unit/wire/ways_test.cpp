#include "engine/wire/ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/repository/repository.h"

namespace portofu {
namespace {

/// Answers as told, and notes what it was asked.
struct FakeSender {
  bool lends = false, heap = false, shares = false, kernel = false, streaming = false;
  std::string asked = {};

  bool may_lend() { return note("lend ", lends); }
  bool is_in_heap() { return note("heap ", heap); }
  bool shares_heap() { return note("shares ", shares); }
  bool kernel_is_better() { return note("kernel ", kernel); }
  bool streams() { return note("streams ", streaming); }

 private:
  bool note(const char* question, bool answer) {
    asked += question;
    return answer;
  }
};

Way way(std::uint32_t bytes, FakeSender sender = {}) { return choose_way(bytes, sender); }

std::string asked_for(std::uint32_t bytes, FakeSender sender) {
  choose_way(bytes, sender);
  return sender.asked;
}

TEST(Ways, Copied_payload__goes_by_its_size) {
  EXPECT_EQ(way(0), Way::kCell);
  EXPECT_EQ(way(kInlineBytes), Way::kCell);
  EXPECT_EQ(way(kInlineBytes + 1), Way::kRing);
  EXPECT_EQ(way(kAreaFromBytes - 1), Way::kRing);
  EXPECT_EQ(way(kAreaFromBytes), Way::kArea);
}

TEST(Ways, Where_streaming_stores_are_better__the_area_begins_earlier) {
  EXPECT_EQ(way(kStreamedFromBytes - 1, {.streaming = true}), Way::kRing);
  EXPECT_EQ(way(kStreamedFromBytes, {.streaming = true}), Way::kArea);
}

TEST(Ways, Heap__is_lent_once_the_receiver_shares_it) {
  EXPECT_EQ(way(kLendFromBytes, {.lends = true, .heap = true, .shares = true}), Way::kLentHeap);
  EXPECT_EQ(way(kLendFromBytes, {.lends = true, .heap = true}), Way::kArea);
  EXPECT_EQ(way(1 << 20, {.lends = true, .heap = true, .kernel = true}), Way::kArea) << "nor does the kernel copy it";
}

TEST(Ways, Other_memory__is_lent_in_long_packets_if_the_kernel_is_better) {
  EXPECT_EQ(way(kKernelCopyFromBytes, {.lends = true, .kernel = true}), Way::kLentMemory);
  EXPECT_EQ(way(kKernelCopyFromBytes - 1, {.lends = true, .kernel = true}), Way::kArea);
  EXPECT_EQ(way(kKernelCopyFromBytes, {.lends = true}), Way::kArea);
}

TEST(Ways, Sender__is_asked_only_what_matters) {
  EXPECT_EQ(asked_for(kInlineBytes, {}), "lend ");
  EXPECT_EQ(asked_for(kInlineBytes + 1, {}), "lend streams ");
  EXPECT_EQ(asked_for(1 << 20, {.lends = true, .heap = true, .shares = true}), "lend heap shares ");
  EXPECT_EQ(asked_for(kLendFromBytes, {.lends = true}), "lend heap streams ") << "a trial is for what is long enough";
  EXPECT_EQ(asked_for(1 << 20, {.lends = true, .kernel = true}), "lend heap kernel ");
}

TEST(Ways, Help__begins_earlier_for_who_has_lent_nothing_else) {
  EXPECT_EQ(choose_share(true, false), kShareAloneFromBytes);
  EXPECT_EQ(choose_share(true, true), kShareAloneFromBytes);
  EXPECT_EQ(choose_share(false, false), kShareFromBytes);
  EXPECT_EQ(choose_share(false, true), UINT64_MAX);
}

TEST(Ways, Kernel__writes_what_is_long_or_has_no_reader) {
  EXPECT_TRUE(kernel_writes(1, false));
  EXPECT_FALSE(kernel_writes(kKernelWriteFromBytes - 1, true));
  EXPECT_TRUE(kernel_writes(kKernelWriteFromBytes, true));
}

TEST(Ways, Lent_message__is_cut_at_what_a_packet_has_and_what_lies_in_one_piece) {
  constexpr std::uint64_t kMost = 1 << 20;
  EXPECT_EQ(cut_lent(100'000, 100'000, 100'000, kMost, false), 100'000u);
  EXPECT_EQ(cut_lent(100'000, 100'000, 30'000, kMost, false), 30'000u);
  EXPECT_EQ(cut_lent(3 * kMost, 3 * kMost, 3 * kMost, kMost, false), kMost);
}

TEST(Ways, Lent_message__has_no_short_tail_if_that_can_be_had) {
  constexpr std::uint64_t kMost = 1 << 20;
  const std::uint64_t length = kMost + kShortTailBytes - 1;
  EXPECT_EQ(cut_lent(length, length, length, kMost, false), (length + 1) / 2);
  EXPECT_EQ(cut_lent(length + 1, length + 1, length + 1, kMost, false), kMost);
}

TEST(Ways, Shared_message__is_cut_into_an_even_number_of_like_packets) {
  constexpr std::uint64_t kMost = 1 << 20;
  for (const std::uint64_t length : {std::uint64_t{kShareFromBytes}, 2 * kMost, 2 * kMost + 1, 7 * kMost + 5}) {
    std::uint64_t packets = 0;
    for (std::uint64_t left = length; left != 0; ++packets) left -= cut_lent(length, left, left, kMost, true);
    EXPECT_EQ(packets % 2, 0u) << length;
    EXPECT_LE(length, packets * kMost) << length;
  }
}

/// As the page writes numbers of bytes.
std::string in_words(std::uint32_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  return bytes >= 4096 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes) + " bytes";
}

TEST(Ways, Page__has_every_threshold_with_its_value) {
  const repository::SourceFile page = repository::read_source("engine/doc/ways_of_a_payload.md");
  for (const WayThreshold& threshold : kWayThresholds) {
    const std::string row = "| `" + std::string(threshold.name) + "` | " + in_words(threshold.bytes) + " |";
    const auto is_it = [&row](const std::string& line) { return line.starts_with(row); };
    EXPECT_TRUE(std::ranges::any_of(page.lines, is_it)) << "no row begins with " << row;
  }
}

}  // namespace
}  // namespace portofu
