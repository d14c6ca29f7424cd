// Every transition in the life of a source: closed or dead, drained, reported, freed; and liars, whom nobody believes.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "engine/wire/shm/source_set.h"
#include "tests/unit/wire/shm/source_fixture.h"

namespace portofu {
namespace {

class SourceLifeTest : public SourceTest {};

TEST_F(SourceLifeTest, Closed_source__is_drained_then_reported_then_freed) {
  Link* link = a.connect(target);
  ASSERT_TRUE(a.send(link, "last words"));
  a.wire->disconnect(link);
  EXPECT_EQ(take_closed().pid, 0u) << "not drained";
  EXPECT_TRUE(target.wire->has_packets());
  EXPECT_EQ(target.receive(), "last words");
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(slot_state(0), SlotState::kClosed);
  EXPECT_EQ(take_closed(), a.id());
  EXPECT_EQ(slot_state(0), SlotState::kFree);
  EXPECT_EQ(take_closed().pid, 0u);
}

TEST_F(SourceLifeTest, Source_that_came_and_went_unseen__is_still_delivered) {
  {
    WirePeer short_lived(directory.options(9));
    ASSERT_TRUE(short_lived.send(short_lived.connect(target), "I was here"));
  }
  EXPECT_EQ(target.receive(), "I was here");
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed().pid, 9u);
}

TEST_F(SourceLifeTest, Source_that_closes_while_its_packet_is_held__is_drained_later) {
  Link* link = a.connect(target);
  ASSERT_TRUE(a.send(link, "held"));
  Packet packet;
  ASSERT_TRUE(target.wire->peek(packet));
  a.wire->disconnect(link);
  EXPECT_EQ(take_closed().pid, 0u);
  target.wire->release();
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed(), a.id());
}

TEST_F(SourceLifeTest, Freed_channel__is_zero_for_its_next_user) {
  for (int round = 0; round < 5; ++round) {
    Link* link = a.connect(target);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(a.send(link, std::to_string(i)));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(target.receive(), std::to_string(i));
    a.wire->disconnect(link);
    EXPECT_FALSE(target.receive());
    EXPECT_EQ(take_closed(), a.id());
  }
  EXPECT_EQ(target.segment->control().slots_used.load(), 1u) << "the channel is used again";
}

TEST_F(SourceLifeTest, Reconnected_source__is_heard_after_its_old_link_was_taken) {
  Link* link = a.connect(target);
  ASSERT_TRUE(a.send(link, "old"));
  a.wire->disconnect(link);
  link = a.connect(target);
  ASSERT_TRUE(a.send(link, "new"));
  EXPECT_EQ(target.receive(), "old");
  EXPECT_FALSE(target.receive()) << "the old link has not been taken yet";
  EXPECT_EQ(take_closed(), a.id());
  EXPECT_TRUE(target.wire->has_packets());
  EXPECT_EQ(target.receive(), "new");
}

TEST_F(SourceLifeTest, Next_life_of_a_source__ends_the_one_before) {
  auto first = std::make_unique<WirePeer>(directory.options(9));
  ASSERT_TRUE(first->send(first->connect(target), "first life"));
  EXPECT_EQ(target.receive(), "first life");
  first->die();
  WirePeer second(directory.options(9));
  ASSERT_TRUE(second.send(second.connect(target), "second life"));
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed().pid, 9u);
  EXPECT_EQ(target.receive(), "second life");
}

// Channels are used again in any order, so the place of a channel says nothing about who came first.
TEST_F(SourceLifeTest, Lives_of_a_source__are_heard_in_their_order_whatever_channels_they_have) {
  const auto live = [this](const std::string& text) {
    auto life = std::make_unique<WirePeer>(directory.options(9));
    EXPECT_TRUE(life->send(life->connect(target), text));
    return life;
  };
  live("first");   // Channel 0.
  live("second");  // Channel 1.
  EXPECT_EQ(target.receive(), "first");
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed().pid, 9u);      // Channel 0 is free.
  WirePeer third(directory.options(9));  // Takes it.
  Link* link = third.connect(target);
  ASSERT_TRUE(third.send(link, "third"));
  EXPECT_EQ(target.receive(), "second");
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed().pid, 9u);
  EXPECT_EQ(target.receive(), "third");
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(third.send(link, std::to_string(i))) << "the living one is still heard";
    ASSERT_EQ(target.receive(), std::to_string(i));
    EXPECT_EQ(take_closed().pid, 0u);
  }
}

TEST_F(SourceLifeTest, Links_of_one_life__are_heard_in_their_order_whatever_channels_they_have) {
  Link* first = a.connect(target);
  ASSERT_TRUE(a.send(first, "first"));
  a.wire->disconnect(first);
  Link* second = a.connect(target);
  ASSERT_TRUE(a.send(second, "second"));
  EXPECT_EQ(target.receive(), "first");
  EXPECT_FALSE(target.receive());
  a.wire->disconnect(second);
  EXPECT_EQ(take_closed(), a.id());
  Link* third = a.connect(target);
  ASSERT_TRUE(a.send(third, "third"));
  EXPECT_EQ(target.receive(), "second");
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed(), a.id());
  EXPECT_EQ(target.receive(), "third");
}

TEST_F(SourceLifeTest, Dead_source__is_drained_then_reported) {
  auto first = std::make_unique<WirePeer>(directory.options(9));
  ASSERT_TRUE(first->send(first->connect(target), "last words"));
  first->die();
  EXPECT_EQ(target.wire->check_peers(), 0);
  EXPECT_EQ(target.receive(), "last words");
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed().pid, 9u);
  EXPECT_EQ(slot_state(0), SlotState::kFree);
}

TEST_F(SourceLifeTest, Unheard__is_what_a_life_has_published_until_it_is_released) {
  ShmWire& wire = *target.wire;
  Link* link = a.connect(target);
  const std::uint64_t life = a.segment->incarnation();
  EXPECT_FALSE(wire.has_unheard(a.id(), life)) << "nothing was sent";
  ASSERT_TRUE(a.send(link, "x"));
  EXPECT_TRUE(wire.has_unheard(a.id(), life));
  EXPECT_FALSE(wire.has_unheard(a.id(), life + 1)) << "another life";
  EXPECT_FALSE(wire.has_unheard(b.id(), life)) << "another process";
  Packet packet;
  ASSERT_TRUE(wire.peek(packet));
  EXPECT_EQ(packet.source_context->life, life);
  EXPECT_TRUE(wire.has_unheard(a.id(), life)) << "it is in hand";
  wire.release();
  EXPECT_FALSE(wire.has_unheard(a.id(), life));
  Link* back = target.connect(a);
  EXPECT_EQ(back->life, life);
}

TEST_F(SourceLifeTest, Unheard__of_the_dead_waits_behind_its_earlier_links) {
  ShmWire& wire = *target.wire;
  auto first = std::make_unique<WirePeer>(directory.options(9));
  const std::uint64_t life = first->segment->incarnation();
  Link* link = first->connect(target);
  ASSERT_TRUE(first->send(link, "first link"));
  first->wire->disconnect(link);
  ASSERT_TRUE(first->send(first->connect(target), "second link"));
  first->die();
  wire.check_peers();
  EXPECT_EQ(target.receive(), "first link");
  EXPECT_FALSE(target.receive());
  EXPECT_TRUE(wire.has_unheard({kTestNid, 9}, life));
  EXPECT_EQ(take_closed().pid, 9u);
  EXPECT_EQ(target.receive(), "second link");
  EXPECT_FALSE(wire.has_unheard({kTestNid, 9}, life));
}

/// Writes a packet into a's ring whose payload would lie outside.
void write_nonsense(WirePeer& target, std::uint32_t slot_index, std::uint64_t position) {
  const Mapping ring = target.segment->map_ring(slot_index);
  const SegmentLayout& layout = target.segment->layout();
  const RingView view(ring.at(layout.ring_start(slot_index)), layout.ring);
  view.cells[position].wire_word.store(0xfffeu << 16 | lap_of(position), std::memory_order_release);
}

TEST_F(SourceLifeTest, Lying_source__is_evicted_and_the_others_are_heard) {
  Link* link_a = a.connect(target);
  Link* link_b = b.connect(target);
  ASSERT_TRUE(a.send(link_a, "good"));
  EXPECT_EQ(target.receive(), "good");
  write_nonsense(target, 0, 1);
  ASSERT_TRUE(b.send(link_b, "from b"));
  EXPECT_EQ(target.receive(), "from b");
  EXPECT_FALSE(target.receive());
  EXPECT_FALSE(target.wire->has_packets());
  EXPECT_EQ(target.counter(Counter::kSourcesEvicted), 1u);
  EXPECT_EQ(slot_state(0), SlotState::kEvicted);
  EXPECT_EQ(take_closed(), a.id());
  EXPECT_EQ(slot_state(0), SlotState::kEvicted) << "its sender does not know yet";
  EXPECT_EQ(a.wire->check_peers(), 1);
  EXPECT_TRUE(link_a->lost);
  a.wire->disconnect(link_a);
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(slot_state(0), SlotState::kFree);
  EXPECT_EQ(take_closed().pid, 0u) << "reported once";
}

// What this process has asked the liar for was to be answered behind the nonsense.
TEST_F(SourceLifeTest, Lying_source__costs_the_own_link_to_it_and_no_other) {
  a.connect(target);
  b.connect(target);
  const Link* const to_a = target.connect(a);
  const Link* const to_b = target.connect(b);
  write_nonsense(target, 0, 0);
  EXPECT_FALSE(target.receive());
  EXPECT_TRUE(to_a->lost);
  EXPECT_FALSE(to_b->lost);
  const Link* const anew = target.connect(a);
  ASSERT_NE(anew, nullptr);
  EXPECT_FALSE(anew->lost);
}

TEST_F(SourceLifeTest, Evicted_source_that_dies__leaves_a_free_channel) {
  auto liar = std::make_unique<WirePeer>(directory.options(9));
  liar->connect(target);
  write_nonsense(target, 0, 0);
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed().pid, 9u);
  liar->die();
  target.wire->check_peers();
  EXPECT_EQ(slot_state(0), SlotState::kFree);
}

TEST_F(SourceLifeTest, Given_up_source__is_drained_and_its_sender_told) {
  Link* link_a = a.connect(target);
  Link* link_b = b.connect(target);
  ASSERT_TRUE(a.send(link_a, "asked before"));
  target.wire->give_up(a.id());
  EXPECT_EQ(a.wire->check_peers(), 1);
  EXPECT_TRUE(link_a->lost);
  EXPECT_EQ(b.wire->check_peers(), 0);
  EXPECT_FALSE(link_b->lost);
  EXPECT_EQ(target.receive(), "asked before");
  EXPECT_FALSE(target.receive());
  EXPECT_EQ(take_closed(), a.id());
  a.wire->disconnect(link_a);
  ASSERT_TRUE(a.send(a.connect(target), "asked again"));
  EXPECT_EQ(target.receive(), "asked again");
}

TEST_F(SourceLifeTest, Acknowledgement__goes_to_a_sender_that_cannot_be_attached) {
  Link* link = a.connect(target);
  ASSERT_TRUE(a.send(link, "put"));
  Packet packet;
  ASSERT_TRUE(target.wire->peek(packet));
  ASSERT_EQ(chmod(a.segment->path().c_str(), 0644), 0);  // Nobody believes such a segment.
  EXPECT_TRUE(target.wire->acknowledge(a.id(), 7));
  target.wire->release();
  EXPECT_EQ(a.wire->take_acknowledgement(*link), 7u);
}

TEST_F(SourceLifeTest, Channel_left_claimed_by_the_dead__is_repaired_by_check_peers) {
  target.segment->slot(0).word.store(SlotWord{SlotState::kClaimed, 1, {kTestNid, 999}}.pack());
  target.segment->control().slots_used.store(1);
  target.wire->check_peers();
  EXPECT_EQ(slot_state(0), SlotState::kFree);
  EXPECT_EQ(target.counter(Counter::kChannelsRepaired), 1u);
}

TEST_F(SourceLifeTest, Wild_directory__harms_nobody) {
  Link* link_b = b.connect(target);
  target.segment->control().slots_used.store(0xffffffff);
  target.segment->slot(5).word.store(~std::uint64_t{0});
  target.segment->slot(6).word.store(SlotWord{SlotState::kPublished, 1, {1, 1}}.pack());
  target.segment->slot(7).word.store(SlotWord{SlotState::kClosed, 1, {2, 2}}.pack());
  target.segment->control().directory_epoch.fetch_add(1);
  EXPECT_FALSE(target.receive());
  target.wire->check_peers();
  int closed = 0;
  while (take_closed().pid != 0 && closed < 10) ++closed;
  EXPECT_EQ(closed, 2);
  ASSERT_TRUE(b.send(link_b, "still here"));
  EXPECT_EQ(target.receive(), "still here");
}

}  // namespace
}  // namespace portofu
