// What went through a log of steps is what was written, and whatever a damaged one says ends with it.

#include "engine/observe/step_log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <span>
#include <vector>

namespace portofu {
namespace {

std::vector<std::byte> written(const std::vector<StepRecord>& records) {
  std::vector<std::byte> log(records.size() * StepLogWriter::kMostBytes);
  StepLogWriter writer;
  const std::span all(records);
  const std::size_t half = all.size() / 2;
  const std::byte* const end = writer.write(all.subspan(half), writer.write(all.first(half), log.data()));
  log.resize(static_cast<std::size_t>(end - log.data()));
  return log;
}

std::vector<StepRecord> read(std::span<const std::byte> log) {
  StepLogReader reader(log);
  std::vector<StepRecord> records;
  for (StepRecord record{}; reader.read(&record);) records.push_back(record);
  return records;
}

void expect_same(const std::vector<StepRecord>& one, const std::vector<StepRecord>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    ASSERT_EQ(std::memcmp(&one[i], &other[i], sizeof(StepRecord)), 0) << "record " << i;
}

StepRecord step(std::uint64_t ticks, Step step, std::uint64_t amount = 0, std::uint32_t id = 0) {
  return {.ticks = ticks, .amount = amount, .nid = 1, .id = id, .more = 2, .pid = 3, .step = step, .kind = 4};
}

std::uint64_t seed() {
  const char* const given = std::getenv("PORTOFU_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
}

/// Numbers of all widths; many are equal to those before.
std::vector<StepRecord> random_records(std::uint64_t from_seed, std::size_t count) {
  std::mt19937_64 random(from_seed);
  const auto number = [&] { return random() % 3 == 0 ? random() >> random() % 64 : 7; };
  std::vector<StepRecord> records;
  for (std::size_t i = 0; i < count; ++i) {
    const StepRecord before = records.empty() ? StepRecord{} : records.back();
    records.push_back({before.ticks + number(), number(), static_cast<std::uint32_t>(number()),
                       static_cast<std::uint32_t>(number()), static_cast<std::uint32_t>(number()),
                       static_cast<std::uint16_t>(number()), static_cast<Step>(1 + random() % (kStepCount - 1)),
                       static_cast<std::uint8_t>(number())});
  }
  return records;
}

TEST(StepLog, Records__come_back_as_they_were) {
  const std::uint64_t used = seed();
  SCOPED_TRACE(testing::Message() << "PORTOFU_TEST_SEED=" << used);
  const std::vector<StepRecord> records = random_records(used, 2000);
  expect_same(read(written(records)), records);
}

TEST(StepLog, Times__may_be_any_and_go_back) {
  const std::vector<StepRecord> records = {step(UINT64_MAX - 5, Step::kCall),
                                           step(UINT64_MAX, Step::kReturn),
                                           step(100, Step::kCall),
                                           step(100, Step::kReturn),
                                           step(100 + UINT16_MAX, Step::kCall),
                                           step(101 + 2 * UINT16_MAX, Step::kReturn),
                                           step(std::uint64_t{1} << 40, Step::kCall),
                                           step((std::uint64_t{1} << 40) + UINT32_MAX, Step::kReturn),
                                           step(std::uint64_t{1} << 41, Step::kEvent),
                                           step(5, Step::kEvent)};
  expect_same(read(written(records)), records);
}

TEST(StepLog, What_is_as_before__takes_only_its_tag_and_time) {
  std::vector<StepRecord> records = {step(1000, Step::kCall, 8), step(1010, Step::kReturn)};
  const std::size_t first = written(records).size();
  for (std::uint64_t i = 0; i < 10; ++i) {
    records.push_back(step(2000 + 20 * i, Step::kCall, 8));
    records.push_back(step(2010 + 20 * i, Step::kReturn));
  }
  EXPECT_EQ(written(records).size(), first + 20 * StepLogReader::kLeastBytes);
  records.push_back(step(3000, Step::kCall, 9));
  EXPECT_EQ(written(records).size(), first + 21 * StepLogReader::kLeastBytes + 8);
}

TEST(StepLog, Cut__has_all_records_before_the_cut) {
  const std::vector<StepRecord> records = random_records(1, 50);
  const std::vector<std::byte> log = written(records);
  std::size_t whole = 0;
  for (std::size_t bytes = 0; bytes <= log.size(); ++bytes) {
    const auto some = read(std::span(log).first(bytes));
    ASSERT_GE(some.size(), whole);
    whole = some.size();
    expect_same(some, {records.begin(), records.begin() + static_cast<std::ptrdiff_t>(whole)});
  }
  EXPECT_EQ(whole, records.size());
}

TEST(StepLog, Bytes_that_nobody_wrote__end) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::byte> log(random() % 200);
    for (std::byte& byte : log) byte = static_cast<std::byte>(random());
    EXPECT_LE(read(log).size(), log.size() / StepLogReader::kLeastBytes);
  }
}

}  // namespace
}  // namespace portofu
