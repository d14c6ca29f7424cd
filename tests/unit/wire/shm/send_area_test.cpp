// Long payloads through the area of the sender: when it is used, how its chunks go round, and who may not use it.

#include "engine/wire/shm/send_area.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/wire/ways.h"
#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

constexpr std::size_t kLong = 8000;

std::string text_of(std::uint64_t number, std::size_t bytes = kLong) {
  return std::string(bytes, static_cast<char>('a' + number % 26));
}

struct SendAreaTest : ::testing::Test {
  /// The first long payload makes the receiver map the area.
  void get_acquainted(WirePeer& from, Link* way, WirePeer& to) {
    ASSERT_TRUE(from.send(way, text_of(0)));
    ASSERT_EQ(to.receive(), text_of(0));
  }

  /// Payloads of `least` bytes go by the area, shorter ones by the ring.
  void expect_area_from(Link* link, std::size_t least) {
    ASSERT_TRUE(a.send(link, text_of(1, least - 1)));
    EXPECT_EQ(by_area(a), 0u);
    ASSERT_TRUE(a.send(link, text_of(2, least)));
    EXPECT_EQ(by_area(a), 1u);
    EXPECT_EQ(b.receive(), text_of(1, least - 1));
    EXPECT_EQ(b.receive(), text_of(2, least));
  }

  SegmentOptions small_area(std::uint32_t pid) {
    SegmentOptions options = directory.options(pid);
    options.area_bytes = kLeastAreaBytes;
    return options;
  }

  std::uint64_t by_area(const WirePeer& peer) const { return peer.counter(Counter::kPacketsByArea); }

  SegmentDirectory directory;
  WirePeer a{directory.options(1)};
  WirePeer b{directory.options(2)};
};

TEST_F(SendAreaTest, Claim__takes_the_ring_until_the_receiver_has_mapped_the_area) {
  Link* link = a.connect(b);
  ASSERT_TRUE(a.send(link, text_of(1)));
  ASSERT_TRUE(a.send(link, text_of(2)));
  EXPECT_EQ(by_area(a), 0u);
  EXPECT_EQ(b.receive(), text_of(1));
  ASSERT_TRUE(a.send(link, text_of(3)));
  EXPECT_EQ(by_area(a), 1u);
  EXPECT_EQ(b.receive(), text_of(2));
  EXPECT_EQ(b.receive(), text_of(3));
}

TEST_F(SendAreaTest, Claim__takes_the_ring_for_short_payloads) {
  Link* link = a.connect(b);
  get_acquainted(a, link, b);
  expect_area_from(link, kAreaFromBytes);
}

TEST_F(SendAreaTest, Claim__takes_the_area_for_less_where_streaming_stores_are_better) {
  Link* link = a.connect(b);
  get_acquainted(a, link, b);
  StoreChoice& stores = static_cast<ShmLink*>(link)->area.stores;
  for (int i = 0; i < 1000; ++i) {
    const bool streaming = stores.choose();
    if (stores.wants_time()) stores.note(streaming ? 330 : 3400, kAreaChunkBytes);
  }
  ASSERT_TRUE(stores.prefers_streaming());
  expect_area_from(link, kStreamedFromBytes);
}

TEST_F(SendAreaTest, Claim__takes_the_ring_without_an_area) {
  SegmentOptions options = directory.options(3);
  options.area_bytes = 0;
  WirePeer none(options);
  Link* link = none.connect(b);
  get_acquainted(none, link, b);
  ASSERT_TRUE(none.send(link, text_of(1)));
  EXPECT_EQ(by_area(none), 0u);
  EXPECT_EQ(b.receive(), text_of(1));
}

TEST_F(SendAreaTest, Claim__takes_the_ring_where_shared_memory_is_short) {
  const SegmentDirectory small;
  const int status = in_small_file_system(small, "size=3m", [&small] {
    WirePeer one(small.options(1));
    WirePeer two(small.options(2));
    Link* link = one.connect(two);
    for (std::uint64_t i = 0; i < 100; ++i) {
      if (!one.send(link, text_of(i)) || two.receive() != text_of(i)) return 1;
    }
    return one.counter(Counter::kPacketsByArea) == 0 ? 0 : 2;
  });
  if (status == kMayNotMount) GTEST_SKIP() << "may not mount a file system";
  EXPECT_EQ(status, 0);
}

TEST_F(SendAreaTest, Packets__arrive_whole_and_in_order_whichever_way_they_take) {
  Link* link = a.connect(b);
  std::mt19937 random(1);
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  const auto bytes_of = [](std::uint64_t number) { return number * 977 % 8192 + 1; };
  while (received < 5000) {
    if (random() % 2 == 0 && a.send(link, text_of(sent, bytes_of(sent)))) ++sent;
    if (random() % 2 == 0) continue;
    if (const auto got = b.receive()) {
      ASSERT_EQ(*got, text_of(received, bytes_of(received)));
      ++received;
    }
  }
  EXPECT_GT(by_area(a), 1000u);
}

TEST_F(SendAreaTest, Area_in_use__leaves_the_ring) {
  WirePeer small(small_area(3));
  Link* link = small.connect(b);
  get_acquainted(small, link, b);
  std::uint64_t sent = 0;
  while (small.send(link, text_of(sent))) ++sent;
  EXPECT_EQ(by_area(small), kLeastAreaBytes / kAreaChunkBytes);
  EXPECT_GT(sent, by_area(small));
  for (std::uint64_t i = 0; i < sent; ++i) EXPECT_EQ(b.receive(), text_of(i));
  EXPECT_EQ(b.receive(), std::nullopt);
  EXPECT_TRUE(small.wire->has_room_again());
}

TEST_F(SendAreaTest, Stopped_receiver__holds_chunks_and_the_others_are_served) {
  WirePeer small(small_area(3));
  WirePeer stopped(directory.options(4));
  Link* to_stopped = small.connect(stopped);
  Link* link = small.connect(b);
  get_acquainted(small, to_stopped, stopped);
  get_acquainted(small, link, b);
  while (small.send(to_stopped, text_of(1))) {
  }
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(small.send(link, text_of(i)));
    ASSERT_EQ(b.receive(), text_of(i));
  }
}

TEST_F(SendAreaTest, Lost_receiver__gives_its_chunks_back) {
  WirePeer small(small_area(3));
  auto dying = std::make_unique<WirePeer>(directory.options(4));
  Link* to_dying = small.connect(*dying);
  Link* link = small.connect(b);
  get_acquainted(small, to_dying, *dying);
  get_acquainted(small, link, b);
  while (small.send(to_dying, text_of(1))) {
  }
  const std::uint64_t before = by_area(small);
  dying->die();
  EXPECT_EQ(small.wire->check_peers(), 1);
  small.wire->disconnect(to_dying);
  ASSERT_TRUE(small.send(link, text_of(7)));
  EXPECT_EQ(by_area(small), before + 1);
  EXPECT_EQ(b.receive(), text_of(7));
}

TEST_F(SendAreaTest, Discard__gives_the_chunk_back) {
  WirePeer small(small_area(3));
  Link* link = small.connect(b);
  get_acquainted(small, link, b);
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(small.wire->claim(*link, kLong), nullptr);
    small.wire->discard(*link);
  }
  ASSERT_TRUE(small.send(link, text_of(5)));
  EXPECT_EQ(by_area(small), 1u);
  EXPECT_EQ(b.receive(), text_of(5));
}

TEST_F(SendAreaTest, Dead_sender__is_delivered_whole) {
  Link* link = a.connect(b);
  get_acquainted(a, link, b);
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(a.send(link, text_of(i)));
  EXPECT_EQ(by_area(a), 20u);
  a.wire.reset();
  a.die();
  b.wire->check_peers();
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(b.receive(), text_of(i));
}

TEST_F(SendAreaTest, Streaming__is_told_to_whoever_copies_and_only_for_the_area) {
  a.wire = std::make_unique<ShmWire>(*a.segment, true, LongData::kStreaming);
  Link* link = a.connect(b);
  ASSERT_TRUE(a.send(link, text_of(0)));
  EXPECT_FALSE(link->streaming);
  ASSERT_EQ(b.receive(), text_of(0));
  ASSERT_TRUE(a.send(link, text_of(1)));
  EXPECT_TRUE(link->streaming);
  ASSERT_TRUE(a.send(link, text_of(2, 100)));
  EXPECT_FALSE(link->streaming);
  EXPECT_EQ(a.counter(Counter::kPacketsStreamed), 1u);
}

TEST_F(SendAreaTest, Chunk_outside_of_the_area__evicts_the_sender) {
  Link* link = a.connect(b);
  get_acquainted(a, link, b);
  auto& producer = static_cast<ShmLink*>(link)->producer;
  ASSERT_TRUE(producer.claim_cell(a.segment->layout().area_bytes / kAreaChunkBytes));
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.payload_bytes = 10;
  producer.publish(header);
  EXPECT_EQ(b.receive(), std::nullopt);
  EXPECT_EQ(b.counter(Counter::kSourcesEvicted), 1u);
}

TEST_F(SendAreaTest, Chunk_of_an_area_that_is_not_mapped__evicts_the_sender) {
  Link* link = a.connect(b);
  auto& producer = static_cast<ShmLink*>(link)->producer;
  ASSERT_TRUE(producer.claim_cell(0));
  PacketHeader header{};
  header.type = PacketType::kPut;
  producer.publish(header);
  EXPECT_EQ(b.receive(), std::nullopt);
  EXPECT_EQ(b.counter(Counter::kSourcesEvicted), 1u);
}

}  // namespace
}  // namespace portofu
