// Files of steps are read whole, whether their owner lives, has ended, or was killed in the middle of a ring.

#include "lib/tools/ptl_trace/step_reader.h"

#include <gtest/gtest.h>

#include <filesystem>

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
