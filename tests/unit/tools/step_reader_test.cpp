// Files of steps are read whole, whether their owner lives, has ended, or was killed in the middle of a ring.

#include "lib/tools/ptl_trace/step_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/segment/segment_directory.h"

namespace portofu::tools {
namespace {

constexpr ProcessId kOwner{kTestNid, 42};

/// What a file has of numbers that a recorder has counted from 0 on.
std::vector<std::uint64_t> numbers_in(const std::string& path) {
  std::string why;
  const auto lane = read_steps(path, &why);
  EXPECT_TRUE(lane.has_value()) << why;
  std::vector<std::uint64_t> numbers;
  for (const StepRecord& step : lane.value_or(LaneSteps{}).steps) numbers.push_back(step.amount);
  return numbers;
}

std::vector<std::uint64_t> numbers(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = begin; i < end; ++i) all.push_back(i);
  return all;
}

struct StepReader : testing::Test {
  std::unique_ptr<StepFile> make(bool grows) const {
    std::string why;
    auto made = StepFile::create({.directory = directory.path(), .grows = grows, .keeps_dead = true}, kOwner, &why);
    EXPECT_NE(made, nullptr) << why;
    return made;
  }
  static void record(StepFile& file, std::uint64_t count) {
    Recorder recorder(file);
    for (std::uint64_t i = 0; i < count; ++i) recorder.add(Step::kCount, 0, {.amount = i});
  }

  const SegmentDirectory directory;
};

TEST_F(StepReader, Growing_file__has_all_whatever_part_of_the_ring_is_full) {
  constexpr std::uint64_t kRing = StepFile::kRingRecords;
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{7}, kRing, kRing + 1, 2 * kRing, 3 * kRing - 1}) {
    const auto file = make(true);
    record(*file, count);
    EXPECT_EQ(numbers_in(file->path()), numbers(0, count));
    std::filesystem::remove(file->path());
  }
}

TEST_F(StepReader, Growing_file__of_a_killed_process_has_all) {
  constexpr std::uint64_t kCount = StepFile::kRingRecords * 5 / 2;
  ASSERT_EQ(in_dying_child([&] {
              const auto file = make(true).release();
              if (file == nullptr) return 1;
              record(*file, kCount);
              return 0;
            }),
            0);
  const std::filesystem::directory_iterator first(directory.path());
  ASSERT_NE(first, std::filesystem::directory_iterator());
  EXPECT_EQ(numbers_in(first->path()), numbers(0, kCount));
}

TEST_F(StepReader, Ring__has_the_last_ones) {
  const auto file = make(false);
  record(*file, StepFile::kRingRecords + 100);
  EXPECT_EQ(numbers_in(file->path()), numbers(StepFile::kRingRecords + 100 - kLastSteps, StepFile::kRingRecords + 100));
}

TEST_F(StepReader, File_of_another_kind__is_told_of) {
  const auto file = make(true);
  for (const std::uint64_t capacity : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
    file->head().capacity = capacity;
    std::string why;
    EXPECT_FALSE(read_steps(file->path(), &why).has_value());
    EXPECT_NE(why.find("no file of steps"), std::string::npos) << why;
  }
}

/// Two lanes take turns, and a third one is soon over.
TEST_F(StepReader, Recording__that_is_too_long_ends_for_all_lanes_at_one_moment) {
  constexpr std::uint64_t kSteps = 8 * StepFile::kRingRecords;
  constexpr std::uint64_t kEarly = 10;
  constexpr std::uint64_t kMost = kSteps;
  std::vector<std::unique_ptr<StepFile>> files;
  for (const std::uint32_t pid : {42, 43, 44}) {
    std::string why;
    files.push_back(StepFile::create({.directory = directory.path(), .grows = true}, {kTestNid, pid}, &why));
    ASSERT_NE(files.back(), nullptr) << why;
    Recorder recorder(*files.back());
    const std::uint64_t begin = files[0]->head().first_ticks;
    for (std::uint64_t i = 0; i < (pid == 44 ? kEarly : kSteps); ++i)
      recorder.add_at(begin + 1000 * i + pid, Step::kCount, 0, {.amount = i});
    files.back()->head().last_ticks.store(begin + 1000 * kSteps + pid);
    files.back()->head().last_ns.store(files.back()->head().first_ns + 1000 * kSteps);
  }
  std::vector<std::string> complaints;
  const auto prefix = std::filesystem::path(files[0]->path()).filename().string().substr(0, 4);
  std::vector<LaneSteps> lanes = read_all_steps(directory.path(), prefix, kMost, &complaints);
  ASSERT_EQ(lanes.size(), files.size());
  EXPECT_TRUE(complaints.empty());
  std::ranges::sort(lanes, {}, [](const LaneSteps& lane) { return lane.id.pid; });
  EXPECT_EQ(lanes[2].steps.size(), kEarly);
  EXPECT_EQ(lanes[2].left_out, 0u);
  EXPECT_EQ(lanes[0].steps.size() + lanes[0].left_out, kSteps);
  EXPECT_NEAR(static_cast<double>(lanes[0].steps.size()), kMost / 2.0, kSampled);
  EXPECT_NEAR(static_cast<double>(lanes[0].steps.size()), static_cast<double>(lanes[1].steps.size()), 2);
  for (std::uint64_t i = 0; i < lanes[0].steps.size(); ++i) ASSERT_EQ(lanes[0].steps[i].amount, i);
  EXPECT_LE(lanes[0].steps.back().ticks, lanes[0].last.ticks);
  EXPECT_LT(lanes[0].last.ticks, lanes[0].steps.back().ticks + 2000) << "nothing later was seen of it";
  const std::vector<LaneSteps> all = read_all_steps(directory.path(), prefix, 2 * kSteps + kEarly, &complaints);
  for (const LaneSteps& lane : all) EXPECT_EQ(lane.left_out, 0u);
}

/// What a hostile or damaged head says is bounded by what the file has.
TEST_F(StepReader, Counts_that_nobody_wrote__bring_no_more_than_there_is) {
  const auto file = make(true);
  record(*file, StepFile::kRingRecords + 5);
  file->head().count.store(UINT64_MAX);
  EXPECT_EQ(numbers_in(file->path()), numbers(0, StepFile::kRingRecords));
  file->head().logged.store(UINT64_MAX);
  EXPECT_EQ(numbers_in(file->path()).size(), StepFile::kRingRecords);
}

}  // namespace
}  // namespace portofu::tools
