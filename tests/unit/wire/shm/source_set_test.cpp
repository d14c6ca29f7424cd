// Receiving: order, fairness, contexts. The life of a source is in source_life_test.cpp.

#include "engine/wire/shm/source_set.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/unit/wire/shm/source_fixture.h"

namespace portofu {
namespace {

class SourceSetTest : public SourceTest {};

TEST_F(SourceSetTest, Nothing__is_there_at_first) {
  EXPECT_FALSE(target.receive());
  EXPECT_FALSE(target.wire->has_packets());
  EXPECT_EQ(take_closed().pid, 0u);
}

TEST_F(SourceSetTest, Packets__arrive_in_order_and_name_their_source) {
  Link* link = a.connect(target);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(a.send(link, std::to_string(i)));
  EXPECT_TRUE(target.wire->has_packets());
  for (int i = 0; i < 50; ++i) {
    Packet packet;
    EXPECT_EQ(target.receive(&packet), std::to_string(i));
    EXPECT_EQ(packet.source, a.id());
  }
  EXPECT_FALSE(target.wire->has_packets());
}

TEST_F(SourceSetTest, First_packet_of_a_new_source__is_seen_by_has_packets) {
  EXPECT_FALSE(target.wire->has_packets());
  a.send(a.connect(target), "x");
  EXPECT_TRUE(target.wire->has_packets());
}

TEST_F(SourceSetTest, Context__belongs_to_the_source) {
  Link* link_a = a.connect(target);
  Link* link_b = b.connect(target);
  int number_a = 0;
  int number_b = 0;
  std::map<std::uint32_t, void*> contexts{{a.id().pid, &number_a}, {b.id().pid, &number_b}};
  for (int round = 0; round < 3; ++round) {
    a.send(link_a, "x");
    b.send(link_b, "x");
    for (int i = 0; i < 2; ++i) {
      Packet packet;
      ASSERT_TRUE(target.wire->peek(packet));
      EXPECT_EQ(packet.source_context->engines, round == 0 ? nullptr : contexts[packet.source.pid]);
      packet.source_context->engines = contexts[packet.source.pid];
      target.wire->release();
    }
  }
  a.wire->disconnect(link_a);
  void* context = nullptr;
  EXPECT_EQ(take_closed(&context), a.id());
  EXPECT_EQ(context, &number_a);
}

TEST_F(SourceSetTest, Busy_source__does_not_starve_the_others) {
  Link* link_a = a.connect(target);
  Link* link_b = b.connect(target);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(a.send(link_a, "a"));
  ASSERT_TRUE(b.send(link_b, "b"));
  std::uint32_t before_b = 0;
  while (target.receive() == "a") ++before_b;
  EXPECT_LE(before_b, kTurnPackets);
}

TEST_F(SourceSetTest, Two_busy_sources__take_turns) {
  Link* link_a = a.connect(target);
  Link* link_b = b.connect(target);
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(a.send(link_a, "a"));
    ASSERT_TRUE(b.send(link_b, "b"));
  }
  std::string order;
  while (const auto text = target.receive()) order += *text;
  EXPECT_EQ(order.size(), 128u);
  EXPECT_EQ(order.find(std::string(kTurnPackets + 1, 'a')), std::string::npos);
  EXPECT_EQ(order.find(std::string(kTurnPackets + 1, 'b')), std::string::npos);
}

TEST_F(SourceSetTest, Many_sources__are_all_heard) {
  std::vector<std::unique_ptr<WirePeer>> peers;
  for (std::uint32_t i = 0; i < 64; ++i) {
    peers.push_back(std::make_unique<WirePeer>(directory.options(100 + i)));
    ASSERT_TRUE(peers.back()->send(peers.back()->connect(target), std::to_string(100 + i)));
  }
  std::map<std::string, int> heard;
  while (const auto text = target.receive()) ++heard[*text];
  EXPECT_EQ(heard.size(), 64u);
  while (!peers.empty()) peers.pop_back();
  int closed = 0;
  while (take_closed().pid != 0) ++closed;
  EXPECT_EQ(closed, 64);
}

}  // namespace
}  // namespace portofu
