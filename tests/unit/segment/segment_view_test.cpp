// What an onlooker sees of segments: living, dead, foreign; counters; channels and what waits in them.

#include "engine/segment/segment_view.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/wire/shm/channel_directory.h"
#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

struct SegmentViewTest : ::testing::Test {
  std::vector<SegmentView> view() {
    std::vector<SegmentView> views;
    EXPECT_TRUE(view_segments(directory.path(), &views));
    return views;
  }
  SegmentDirectory directory;
};

TEST_F(SegmentViewTest, Directory__without_segments_or_missing) {
  std::ofstream(directory.path() + "/something-else") << "text";
  EXPECT_TRUE(view().empty());
  std::vector<SegmentView> views;
  EXPECT_FALSE(view_segments(directory.path() + "/missing", &views));
}

TEST_F(SegmentViewTest, Living_process__is_seen_by_itself_and_by_others_and_stays_alive) {
  const WirePeer peer(directory.options(77));
  const auto sees_it_living = [&] {
    const std::vector<SegmentView> views = view();
    return views.size() == 1 && views[0].life == SegmentLife::kLiving && views[0].descriptor.pid == 77;
  };
  EXPECT_TRUE(sees_it_living());
  EXPECT_EQ(in_dying_child([&] { return sees_it_living() ? 0 : 1; }), 0);
  EXPECT_TRUE(sees_it_living());
}

TEST_F(SegmentViewTest, Descriptor_and_counters__are_copied) {
  in_dying_child([&] {
    auto segment = directory.create(78).release();
    Counters(segment->counters()).add(Counter::kPutsSent, 5);
    Counters(segment->counters()).add(Counter::kSegmentsRemoved, 9);
    segment->control().endpoints = 5;
    return 0;
  });
  const std::vector<SegmentView> views = view();
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].life, SegmentLife::kDead);
  EXPECT_EQ(views[0].descriptor.nid, kTestNid);
  EXPECT_EQ(views[0].descriptor.pid, 78u);
  EXPECT_EQ(views[0].counters[static_cast<std::size_t>(Counter::kPutsSent)], 5u);
  EXPECT_EQ(views[0].counters[static_cast<std::size_t>(Counter::kSegmentsRemoved)], 9u);
  EXPECT_EQ(views[0].endpoints, 5u);
  EXPECT_TRUE(views[0].channels.empty());
  EXPECT_EQ(directory.name_count(), 1u) << "an onlooker removes nothing";
}

TEST_F(SegmentViewTest, Channels__tell_who_sends_and_what_waits) {
  in_dying_child([&] {
    auto target = new WirePeer(directory.options(1));
    auto sender = new WirePeer(directory.options(2));
    Link* link = sender->connect(*target);
    for (int i = 0; i < 150; ++i) {  // More than a ring holds, so that its positions have gone round.
      if (!sender->send(link, std::string(100, 'x'))) return 1;
      if (i < 143 && !target->receive()) return 2;
    }
    return 0;
  });
  const std::vector<SegmentView> views = view();
  ASSERT_EQ(views.size(), 2u);
  ASSERT_EQ(views[0].channels.size(), 1u);
  const ChannelView& channel = views[0].channels[0];
  const SlotWord word = SlotWord::unpack(channel.slot_word);
  EXPECT_EQ(word.state, SlotState::kPublished);
  EXPECT_EQ(word.claimer, (ProcessId{kTestNid, 2}));
  // The owner gives cells back in batches, so that what it has taken may still seem to wait.
  EXPECT_GE(channel.waiting_packets, 7u);
  EXPECT_LT(channel.waiting_packets, 128u);
  EXPECT_TRUE(views[1].channels.empty());
}

TEST_F(SegmentViewTest, Nonsense__is_named_and_not_believed) {
  const std::string prefix = directory.path() + "/" + segment_name_prefix();
  std::ofstream(prefix + "empty");
  std::ofstream(prefix + "text") << std::string(100'000, 't');
  leave_dead_segment(directory, 5);
  std::filesystem::resize_file(segment_path(directory.path(), {kTestNid, 5}), 8192);
  for (const SegmentView& seen : view()) {
    EXPECT_EQ(seen.life, SegmentLife::kUnknown) << seen.name;
    EXPECT_TRUE(seen.channels.empty());
  }
}

}  // namespace
}  // namespace portofu
