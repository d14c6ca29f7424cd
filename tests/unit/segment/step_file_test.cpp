// A file of steps is found and read by others while its owner lives, and after it has died.

#include "engine/segment/step_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr ProcessId kOwner{kTestNid, 42};

std::unique_ptr<StepFile> make(const SegmentDirectory& directory, bool grows = false, bool keeps_dead = false) {
  std::string why;
  auto made = StepFile::create({directory.path(), grows, keeps_dead}, kOwner, &why);
  EXPECT_NE(made, nullptr) << why;
  return made;
}

/// A ring of a process that has died.
void leave_dead_ring(const SegmentDirectory& directory) {
  ASSERT_EQ(in_dying_child([&] { return make(directory).release() != nullptr ? 0 : 1; }), 0);
}

std::vector<StepRecord> records_of(const std::string& path, std::uint64_t offset, std::size_t count) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::vector<StepRecord> records(count);
  file.read(reinterpret_cast<char*>(records.data()), static_cast<std::streamsize>(count * sizeof(StepRecord)));
  return records;
}

std::vector<std::byte> bytes_of(const std::string& path, std::uint64_t offset) {
  std::vector<std::byte> bytes(std::filesystem::file_size(path) - offset);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

TEST(StepFile, Head__says_whose_it_is) {
  const SegmentDirectory directory;
  const auto file = make(directory);
  const StepFileHead& head = file->head();
  EXPECT_EQ(head.magic, kStepFileMagic);
  EXPECT_EQ(head.nid, kOwner.nid);
  EXPECT_EQ(head.pid, kOwner.pid);
  EXPECT_EQ(head.os_pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_GT(head.capacity, kLastSteps);
  EXPECT_EQ(head.log_offset, 0u);
  EXPECT_EQ(std::string(head.machine).size(), 36u);
  struct stat status {};
  ASSERT_EQ(stat(file->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(StepFile, Ring__gives_the_same_memory_again) {
  const SegmentDirectory directory;
  const auto file = make(directory);
  const auto first = file->next();
  EXPECT_EQ(first.size(), file->head().capacity);
  EXPECT_EQ(file->next().data(), first.data());
}

TEST(StepFile, Growing_file__keeps_all) {
  const SegmentDirectory directory;
  const auto file = make(directory, true);
  Recorder recorder(*file);
  const StepFileHead& head = file->head();
  const std::size_t kept = 2 * StepFile::kRingRecords;
  for (std::size_t i = 0; i < kept + 10; ++i) recorder.add(Step::kCount, 0, {.amount = i});
  EXPECT_EQ(head.count.load(), kept + 10);
  ASSERT_EQ(head.logged.load(), kept);
  const std::vector<std::byte> log = bytes_of(file->path(), head.log_offset);
  EXPECT_LT(log.size(), kept * sizeof(StepRecord) / 2);
  StepLogReader reader(log);
  StepRecord record{};
  for (std::size_t i = 0; i < kept; ++i) {
    ASSERT_TRUE(reader.read(&record));
    ASSERT_EQ(record.amount, i);
  }
  EXPECT_FALSE(reader.read(&record));
  const auto ring = records_of(file->path(), kStepHeadBytes, head.capacity);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(ring[i].amount, kept + i);
}

TEST(StepFile, Ring__vanishes_with_its_owner_and_a_growing_file_stays) {
  const SegmentDirectory directory;
  make(directory).reset();
  EXPECT_EQ(directory.name_count(), 0u);
  make(directory, true).reset();
  EXPECT_EQ(directory.name_count(), 1u);
}

TEST(StepFile, Growing_file__is_another_one_each_time_that_a_process_begins) {
  const SegmentDirectory directory;
  const auto first = make(directory, true);
  const auto second = make(directory, true);
  EXPECT_EQ(directory.name_count(), 2u);
  EXPECT_NE(first->path(), second->path());
}

TEST(StepFile, Ring_of_a_dead_process__stays_until_the_next_one_records) {
  const SegmentDirectory directory;
  leave_dead_ring(directory);
  EXPECT_EQ(directory.name_count(), 1u);
  make(directory, true).reset();
  EXPECT_EQ(directory.name_count(), 2u) << "who traces sweeps nothing";
  make(directory).reset();
  EXPECT_EQ(directory.name_count(), 1u);
}

TEST(StepFile, Ring_of_a_dead_process__stays_if_that_is_wanted) {
  const SegmentDirectory directory;
  leave_dead_ring(directory);
  make(directory, false, true).reset();
  EXPECT_EQ(directory.name_count(), 1u);
  EXPECT_EQ(sweep_dead_step_rings(directory.path()), 1);
}

TEST(StepFile, Ring_of_a_living_process__is_not_swept) {
  const SegmentDirectory directory;
  const auto file = make(directory);
  EXPECT_EQ(sweep_dead_step_rings(directory.path()), 0);
  EXPECT_EQ(in_dying_child([&] { return sweep_dead_step_rings(directory.path()); }), 0);
  EXPECT_TRUE(std::filesystem::exists(file->path()));
}

TEST(StepFile, Forked_child__takes_no_name_away) {
  const SegmentDirectory directory;
  const auto file = make(directory);
  EXPECT_EQ(in_dying_child([&] {
              file->end();
              return 0;
            }),
            0);
  EXPECT_TRUE(std::filesystem::exists(file->path()));
}

TEST(StepFile, Without_directory__the_reason_is_told) {
  std::string why;
  EXPECT_EQ(StepFile::create({"/nowhere/at/all"}, kOwner, &why), nullptr);
  EXPECT_NE(why.find("/nowhere/at/all"), std::string::npos) << why;
}

TEST(StepFile, Full_file_system__ends_the_recording_and_nothing_else) {
  const SegmentDirectory directory;
  const int result = in_small_file_system(directory, "size=1m", [&] {
    const auto file = make(directory, true);
    Recorder recorder(*file);
    const std::size_t all = 40 * StepFile::kRingRecords;
    for (std::size_t i = 0; i < all; ++i) recorder.add(Step::kCount, 0, {});
    const StepFileHead& head = file->head();
    // What did not go into the log is still in the ring.
    const bool keeps_what_counts = head.count.load() == head.logged.load() + StepFile::kRingRecords;
    return head.logged.load() > 0 && keeps_what_counts && head.count.load() + head.lost.load() == all ? 0 : 1;
  });
  if (result == kMayNotMount) GTEST_SKIP() << "this process may not mount a file system";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace portofu
