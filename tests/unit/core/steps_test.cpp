// What the engine tells its recorder of a message, a count, a trigger and a call.

#include "engine/core/steps.h"

#include <algorithm>
#include <vector>

#include "engine/initiator/send.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;

class StepsTest : public CoreTest {
 protected:
  class Memory final : public StepMemory {
   public:
    StepFileHead& head() override { return head_; }
    std::span<StepRecord> next() override { return records; }
    std::vector<StepRecord> records = std::vector<StepRecord>(1000);

   private:
    StepFileHead head_{};
  };

  StepsTest() { core.observers = &observers; }
  ~StepsTest() override { core.observers = nullptr; }

  std::vector<StepRecord> written() {
    return {memory_of_steps.records.begin(),
            memory_of_steps.records.begin() + static_cast<std::ptrdiff_t>(memory_of_steps.head().count.load())};
  }
  std::vector<Step> steps() {
    std::vector<Step> result;
    for (const StepRecord& record : written()) result.push_back(record.step);
    return result;
  }
  StepRecord first(Step step) {
    const auto all = written();
    const auto found = std::ranges::find(all, step, &StepRecord::step);
    EXPECT_NE(found, all.end()) << step_name(step);
    return found != all.end() ? *found : StepRecord{};
  }

  Memory memory_of_steps;
  Recorder recorder{memory_of_steps};
  const Observers observers{&recorder, nullptr};
};

TEST_F(StepsTest, Put_at_its_target__goes_through_all_steps) {
  append(entry(kEntryOpPut | kEntryEventLinkDisable));
  receive_put(8);
  EXPECT_THAT(steps(), ElementsAre(Step::kPacketIn, Step::kMatch, Step::kDeliver, Step::kEvent));
  const StepRecord in = first(Step::kPacketIn);
  EXPECT_EQ(in.kind, static_cast<std::uint8_t>(PacketType::kPut));
  EXPECT_EQ(in.nid, kPeer.nid);
  EXPECT_EQ(in.pid, kPeer.pid);
  EXPECT_EQ(in.amount, 8u);
  const StepRecord match = first(Step::kMatch);
  EXPECT_EQ(match.id, kBits);
  EXPECT_EQ(match.more, 0u) << "the first entry of the priority list";
  EXPECT_EQ(first(Step::kDeliver).amount, 8u);
  EXPECT_EQ(first(Step::kEvent).id, eq);
  EXPECT_EQ(first(Step::kEvent).kind, static_cast<std::uint8_t>(EventKind::kPut));
  next_event();
}

TEST_F(StepsTest, Match__tells_how_deep_and_which_list) {
  EntryRequest other = entry(kEntryOpPut | kEntryEventLinkDisable);
  other.criteria.match_bits = kBits + 1;
  append(other);
  append(other);
  append(entry(kEntryOpPut | kEntryEventLinkDisable));
  receive_put(8);
  EXPECT_EQ(first(Step::kMatch).more, 2u);
  next_event();
}

/// Of an entry that the message takes out of its list, and of the messages of a list that gets shorter.
TEST_F(StepsTest, Match__tells_the_depth_in_the_list_as_the_message_found_it) {
  EntryRequest other = entry(kEntryOpPut | kEntryEventLinkDisable);
  other.criteria.match_bits = kBits + 1;
  append(other);
  for (int i = 0; i < 2; ++i)
    append(entry(kEntryOpPut | kEntryEventLinkDisable | kEntryUseOnce | kEntryEventUnlinkDisable));
  receive_put(8);
  receive_put(8);
  std::vector<std::uint32_t> depths;
  for (const StepRecord& record : written()) {
    if (record.step == Step::kMatch) depths.push_back(record.more);
  }
  EXPECT_THAT(depths, ElementsAre(1u, 1u));
  next_event();
  next_event();
}

TEST_F(StepsTest, Put_that_is_refused__has_come_and_nothing_else) {
  receive_put(8);
  EXPECT_EQ(steps().front(), Step::kPacketIn);
  EXPECT_EQ(std::ranges::count(steps(), Step::kMatch), 0);
  EXPECT_EQ(std::ranges::count(steps(), Step::kDeliver), 0);
}

TEST_F(StepsTest, Unexpected_message__is_marked) {
  append(entry(kEntryOpPut | kEntryEventLinkDisable, ListKind::kOverflow));
  receive_put(8);
  EXPECT_EQ(first(Step::kMatch).more, kUnexpected);
  next_event();
}

TEST_F(StepsTest, Both_ends_of_a_packet__write_the_same) {
  Descriptor d = descriptor(PacketType::kPut, 100);
  d.portals.md_handle = make_md(ni, memory.data(), memory.size()).handle;
  start_descriptor(core, d);
  const StepRecord out = first(Step::kPacketOut);
  EXPECT_EQ(out.pid, kPeer.pid);
  const PacketHeader header = next_sent();
  put_packet<Step::kPacketIn>(core, core.peer(kSelf), header);
  const StepRecord in = first(Step::kPacketIn);
  EXPECT_EQ(in.kind, out.kind);
  EXPECT_EQ(in.amount, out.amount);
  EXPECT_EQ(in.id, out.id);
  EXPECT_EQ(in.more, out.more);
  PacketHeader different = header;
  different.match_bits ^= 1;
  put_packet<Step::kPacketIn>(core, core.peer(kSelf), different);
  EXPECT_NE(written().back().more, in.more);
}

TEST_F(StepsTest, Trigger__names_its_counter_and_threshold) {
  Descriptor increment;
  increment.type = PacketType::kCountIncrement;
  increment.interface_index = static_cast<std::uint8_t>(ni.index);
  increment.count = {ct, false, 0, 0};
  arm_operation(core, *ni.cts.find(ct), increment, {ct, 1});
  count_success(core, ni, ct, 1);
  run_cycle_on_duty(core);
  EXPECT_THAT(steps(), ElementsAre(Step::kCount, Step::kTrigger, Step::kCount));
  EXPECT_EQ(first(Step::kCount).id, ct);
  EXPECT_EQ(first(Step::kCount).amount, 1u);
  EXPECT_EQ(first(Step::kTrigger).id, ct);
  EXPECT_EQ(first(Step::kTrigger).amount, 1u);
}

TEST_F(StepsTest, Call__has_a_beginning_and_an_end) {
  {
    recorder.note_empty_look();
    const RecordedCall call(core, PacketType::kPut, 77, CallStarts::kByCounter);
    EXPECT_THAT(steps(), ElementsAre(Step::kWait, Step::kWaitEnd, Step::kCall));
    EXPECT_EQ(first(Step::kCall).amount, 77u);
    EXPECT_EQ(first(Step::kCall).more, kCallArms);
  }
  EXPECT_EQ(steps().back(), Step::kReturn);
}

TEST_F(StepsTest, Nothing_is_written__while_nothing_is_recorded) {
  append(entry(kEntryOpPut | kEntryEventLinkDisable));
  const Observers without_recorder;  // As where there is a checker only.
  for (const Observers* told : {static_cast<const Observers*>(nullptr), &without_recorder}) {
    core.observers = told;
    receive_put(8);
    { const RecordedCall call(core, PacketType::kPut, 77); }
    { const RecordedCall call(core, PacketHeader{}, CallStarts::kByCounter); }
    EXPECT_TRUE(written().empty());
    next_event();
  }
}

TEST_F(StepsTest, Call_of_a_request__says_its_kind_and_length) {
  PacketHeader request{};
  request.type = PacketType::kGet;
  request.length = 99;
  { const RecordedCall call(core, request, CallStarts::kAtOnce); }
  EXPECT_THAT(steps(), ElementsAre(Step::kCall, Step::kReturn));
  EXPECT_EQ(first(Step::kCall).kind, static_cast<std::uint8_t>(PacketType::kGet));
  EXPECT_EQ(first(Step::kCall).amount, 99u);
  EXPECT_EQ(first(Step::kCall).more, 0u);
}

}  // namespace
}  // namespace portofu
