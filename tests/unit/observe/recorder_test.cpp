// What is written down is there for whoever reads the memory, in order, whatever happens to the writer.

#include "engine/observe/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <set>
#include <string>
#include <thread>

namespace portofu {
namespace {

/// Windows of four records, so many of them.
class TestMemory final : public StepMemory {
 public:
  explicit TestMemory(std::size_t windows) : windows_(windows) {}
  StepFileHead& head() override { return head_; }
  std::span<StepRecord> next() override {
    if (given_ == windows_) return {};
    return std::span(records).subspan(4 * given_++, 4);
  }

  std::array<StepRecord, 12> records{};

 private:
  StepFileHead head_{};
  std::size_t windows_;
  std::size_t given_ = 0;
};

TEST(Recorder, Steps__are_written_in_order_and_counted) {
  TestMemory memory(3);
  Recorder recorder(memory);
  for (std::uint32_t i = 0; i < 6; ++i)
    recorder.add(Step::kPacketOut, 1, {.amount = 100 + i, .nid = 7, .pid = 8, .id = i, .more = 9});
  EXPECT_EQ(memory.head().count.load(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) {
    const StepRecord& record = memory.records[i];
    EXPECT_EQ(record.step, Step::kPacketOut);
    EXPECT_EQ(record.kind, 1);
    EXPECT_EQ(record.amount, 100 + i);
    EXPECT_EQ(record.nid, 7u);
    EXPECT_EQ(record.pid, 8);
    EXPECT_EQ(record.id, i);
    EXPECT_EQ(record.more, 9u);
    EXPECT_GE(record.ticks, memory.records[i == 0 ? 0 : i - 1].ticks);
  }
  EXPECT_EQ(memory.records[6].step, Step::kNone);
}

TEST(Recorder, Without_memory__steps_are_lost_and_counted) {
  TestMemory memory(1);
  Recorder recorder(memory);
  for (int i = 0; i < 7; ++i) recorder.add(Step::kCount, 0, {});
  EXPECT_EQ(memory.head().count.load(), 4u);
  EXPECT_EQ(memory.head().lost.load(), 3u);
}

TEST(Recorder, Clock__has_two_pairs_of_times) {
  TestMemory memory(3);
  Recorder recorder(memory);
  const StepFileHead& head = memory.head();
  EXPECT_NE(head.first_ns, 0u);
  EXPECT_EQ(head.last_ns.load(), 0u);
  recorder.note_time();
  EXPECT_GE(head.last_ns.load(), head.first_ns);
  EXPECT_GE(head.last_ticks.load(), head.first_ticks);
  EXPECT_GE(recorder.now(), head.last_ticks.load());
}

TEST(Recorder, Steps_of_threads__carry_the_number_of_the_thread) {
  TestMemory memory(3);
  Recorder recorder(memory);
  recorder.add_of_thread(Step::kCall, 3, 50, kCallArms);
  pid_t other = 0;
  std::thread([&] {
    other = gettid();
    recorder.add_of_thread(Step::kReturn, 0);
  }).join();
  EXPECT_EQ(memory.records[0].nid, static_cast<std::uint32_t>(gettid()));
  EXPECT_EQ(memory.records[0].kind, 3);
  EXPECT_EQ(memory.records[0].amount, 50u);
  EXPECT_EQ(memory.records[0].more, kCallArms);
  EXPECT_EQ(memory.records[1].nid, static_cast<std::uint32_t>(other));
}

TEST(Recorder, Empty_looks_in_a_row__are_one_wait) {
  TestMemory memory(3);
  Recorder recorder(memory);
  recorder.end_looks();
  EXPECT_EQ(memory.head().count.load(), 0u) << "nobody waited";
  for (int i = 0; i < 1000; ++i) recorder.note_empty_look();
  recorder.end_looks();
  recorder.end_looks();
  ASSERT_EQ(memory.head().count.load(), 2u);
  EXPECT_EQ(memory.records[0].step, Step::kWait);
  EXPECT_EQ(memory.records[0].kind, kWaitsByPolls);
  EXPECT_EQ(memory.records[1].step, Step::kWaitEnd);
  EXPECT_EQ(memory.records[1].amount, 1000u);
  EXPECT_EQ(memory.records[1].nid, memory.records[0].nid);
}

TEST(Recorder, Empty_looks_that_go_on__tell_how_long) {
  TestMemory memory(3);
  Recorder recorder(memory);
  recorder.note_empty_look();
  memory.head().last_ns.store(0);
  for (int i = 0; i < 2000; ++i) recorder.note_empty_look();
  EXPECT_NE(memory.head().last_ns.load(), 0u);
  EXPECT_EQ(memory.head().count.load(), 1u);
}

TEST(StepName, Names__are_unique) {
  std::set<std::string> names;
  for (std::size_t i = 1; i < kStepCount; ++i) names.insert(step_name(static_cast<Step>(i)));
  EXPECT_EQ(names.size(), kStepCount - 1);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_STREQ(step_name(Step::kCountOfSteps), "unknown");
}

}  // namespace
}  // namespace portofu
