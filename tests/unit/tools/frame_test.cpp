// Frames between ptl_run and its helpers: whole, in order, in pieces, behind what a login shell says, and nonsense.

#include "lib/tools/ptl_run/frame.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace portofu::tools {
namespace {

/// One direction: what `out` sends, `in` gets.
struct FrameTest : testing::Test {
  FrameTest() {
    if (pipe(fds) != 0) std::abort();
  }
  int fds[2];
};

TEST_F(FrameTest, Frames__arrive_whole_and_in_order_behind_the_greeting) {
  FrameStream in(fds[0], -1, true);
  ASSERT_GT(write(fds[1], "Welcome to this machine!\nptl_run host", 37), 0);
  FrameStream out(-1, fds[1], false);
  EXPECT_TRUE(in.receive());
  EXPECT_FALSE(in.take());
  out.greet();
  out.send(FrameKind::kPmi, 7, "cmd=init\n");
  out.send(FrameKind::kInput, 0, "");
  EXPECT_TRUE(in.receive());
  auto frame = in.take();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, FrameKind::kPmi);
  EXPECT_EQ(frame->rank, 7u);
  EXPECT_EQ(frame->payload, "cmd=init\n");
  frame = in.take();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, FrameKind::kInput);
  EXPECT_EQ(frame->payload, "");
  EXPECT_FALSE(in.take());
  out.close_both();
  EXPECT_FALSE(in.receive());
}

TEST_F(FrameTest, Long_frame__goes_in_pieces_and_waits_for_room) {
  FrameStream in(fds[0], -1, false);
  FrameStream out(-1, fds[1], false);
  const std::string text(1u << 20, 'x');
  out.send(FrameKind::kOutput, 1, text);
  EXPECT_GT(out.queued_bytes(), 0u);
  std::optional<Frame> frame;
  for (int i = 0; i < 100 && !frame; ++i) {
    EXPECT_TRUE(in.receive());
    EXPECT_TRUE(out.flush());
    frame = in.take();
  }
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload, text);
  EXPECT_EQ(out.queued_bytes(), 0u);
}

TEST_F(FrameTest, Endless_chatter_and_endless_frames__are_refused) {
  FrameStream in(fds[0], -1, true);
  const std::string chatter(65536, 'c');
  bool good = true;
  for (std::size_t bytes = 0; good && bytes < 2 * kMaxChatterBytes; bytes += chatter.size()) {
    ASSERT_EQ(write(fds[1], chatter.data(), chatter.size()), static_cast<ssize_t>(chatter.size()));
    good = in.receive();
  }
  EXPECT_FALSE(good);
  int second[2];
  ASSERT_EQ(pipe(second), 0);
  FrameStream other(second[0], -1, false);
  const std::string nonsense(16, '\xff');
  ASSERT_GT(write(second[1], nonsense.data(), nonsense.size()), 0);
  EXPECT_FALSE(other.receive());
  close(second[1]);
  close(fds[1]);
}

TEST(JobPlan, Plan__comes_out_as_it_was_packed) {
  JobPlan plan;
  plan.size = 9;
  plan.first_rank = 4;
  plan.count = 3;
  plan.label = true;
  plan.directory = "/a b";
  plan.hosts = "10.0.0.1\n";
  plan.command = {"program", "", "an argument"};
  plan.environment = {"A=1", "B="};
  const std::string packed = pack_plan(plan);
  EXPECT_EQ(unpack_plan(packed), plan);
  for (std::size_t bytes = 0; bytes < packed.size(); ++bytes) EXPECT_FALSE(unpack_plan(packed.substr(0, bytes)));
  EXPECT_FALSE(unpack_plan(packed + 'x'));
}

TEST(JobPlan, Ranks_beyond_the_job__are_refused) {
  JobPlan plan;
  plan.command = {"program"};
  plan.size = 4;
  plan.first_rank = 2;
  for (const int count : {0, 3, -1}) {
    plan.count = count;
    EXPECT_FALSE(unpack_plan(pack_plan(plan))) << count;
  }
}

TEST(Numbers, They__come_out_and_nothing_else_does) {
  std::int32_t first = 0;
  std::int32_t second = 0;
  EXPECT_TRUE(unpack_numbers(pack_numbers(-7, 1 << 30), &first, &second));
  EXPECT_EQ(first, -7);
  EXPECT_EQ(second, 1 << 30);
  EXPECT_FALSE(unpack_numbers("", &first, &second));
  EXPECT_FALSE(unpack_numbers(pack_numbers(1, 2) + 'x', &first, &second));
  EXPECT_EQ(unpack_strings(pack_strings({"a", ""})), (std::vector<std::string>{"a", ""}));
  EXPECT_FALSE(unpack_strings("abc"));
}

}  // namespace
}  // namespace portofu::tools
