// Connecting and its refusals, full rings, loss of peers.

#include "engine/wire/shm/link_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/segment/region_table.h"
#include "engine/segment/segment_alias.h"
#include "engine/segment/shared_heap.h"
#include "engine/wire/ways.h"
#include "tests/unit/support/whole_loan.h"
#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

struct LinkSetTest : ::testing::Test {
  SegmentOptions options(std::uint32_t pid, std::uint32_t job_key = 0) {
    SegmentOptions options = directory.options(pid);
    options.job_key = job_key;
    return options;
  }

  SegmentDirectory directory;
  WirePeer a{directory.options(1)};
  WirePeer b{directory.options(2)};
  Link* link = nullptr;
};

TEST_F(LinkSetTest, Connect__finds_the_link_again) {
  link = a.connect(b);
  EXPECT_EQ(link->peer, b.id());
  EXPECT_FALSE(link->lost);
  EXPECT_EQ(a.connect(b), link);
}

TEST_F(LinkSetTest, Connect__to_nobody) {
  EXPECT_EQ(a.wire->connect({kTestNid, 99}, &link), ConnectResult::kNoSuchPeer);
  EXPECT_EQ(a.wire->connect({kTestNid + 1, 2}, &link), ConnectResult::kNoSuchPeer);
  EXPECT_EQ(link, nullptr);
}

TEST_F(LinkSetTest, Connect__to_another_job_is_refused_and_told_once) {
  const WirePeer foreign(options(3, 42));
  testing::internal::CaptureStderr();
  EXPECT_EQ(a.wire->connect(foreign.id(), &link), ConnectResult::kRefused);
  EXPECT_EQ(a.wire->connect(foreign.id(), &link), ConnectResult::kRefused);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("PORTOFU_JOB_KEY"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1);
}

TEST_F(LinkSetTest, Connect__to_a_peer_with_smaller_packets_is_refused) {
  SegmentOptions small = directory.options(3);
  small.ring = {128, 16384, 4096};
  WirePeer peer(small);
  EXPECT_EQ(a.wire->connect(peer.id(), &link), ConnectResult::kRefused);
  EXPECT_EQ(peer.wire->connect(a.id(), &link), ConnectResult::kConnected);
}

TEST_F(LinkSetTest, Connect__to_a_full_directory_goes_when_a_channel_is_free) {
  SegmentOptions narrow = directory.options(3);
  narrow.channel_count = 1;
  WirePeer popular(narrow);
  Link* first = a.connect(popular);
  testing::internal::CaptureStderr();
  EXPECT_EQ(b.wire->connect(popular.id(), &link), ConnectResult::kShort);
  EXPECT_EQ(b.wire->connect(popular.id(), &link), ConnectResult::kShort);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("PORTOFU_CHANNELS"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << "told once";
  a.wire->disconnect(first);
  ProcessId source;
  void* context = nullptr;
  while (popular.wire->take_closed_source(&source, &context)) {
  }
  EXPECT_EQ(b.wire->connect(popular.id(), &link), ConnectResult::kConnected);
}

TEST_F(LinkSetTest, Connect__to_oneself_works) {
  link = a.connect(a);
  ASSERT_TRUE(a.send(link, "me"));
  EXPECT_EQ(a.receive(), "me");
}

TEST_F(LinkSetTest, Link__leads_to_its_peer_while_that_lives_and_no_other_has_its_PID) {
  link = a.connect(b);
  EXPECT_TRUE(a.wire->leads_to_name(*link));
  EXPECT_FALSE(link->may_have_moved());
  ASSERT_EQ(claim_alias(*b.segment, 5), AliasResult::kClaimed);
  EXPECT_FALSE(link->may_have_moved());
  release_alias(*b.segment, 5);
  EXPECT_TRUE(link->may_have_moved()) << "some name";
  EXPECT_TRUE(a.wire->leads_to_name(*link)) << "but not the PID";
  EXPECT_FALSE(link->may_have_moved());
  ASSERT_TRUE(std::filesystem::remove(b.segment->path()));
  EXPECT_TRUE(a.wire->leads_to_name(*link)) << "it lives, whoever has cleared the directory";
  b.wire.reset();
  b.segment.reset();
  EXPECT_TRUE(link->may_have_moved());
  EXPECT_FALSE(a.wire->leads_to_name(*link));
  EXPECT_TRUE(link->lost);
}

TEST_F(LinkSetTest, Full_ring__refuses_and_tells_when_there_is_room) {
  link = a.connect(b);
  std::uint32_t sent = 0;
  while (a.send(link, "x")) ++sent;
  EXPECT_EQ(sent, RingGeometry{}.cell_count);
  EXPECT_FALSE(a.wire->has_room_again());
  while (b.receive()) {
  }
  EXPECT_TRUE(a.wire->has_room_again());
  EXPECT_FALSE(a.wire->has_room_again()) << "told once";
  EXPECT_TRUE(a.send(link, "x"));
}

TEST_F(LinkSetTest, Claim_that_succeeds_meanwhile__counts_as_room) {
  link = a.connect(b);
  while (a.send(link, "x")) {
  }
  while (b.receive()) {
  }
  ASSERT_TRUE(a.send(link, "x"));
  EXPECT_TRUE(a.wire->has_room_again());
  EXPECT_FALSE(a.wire->has_room_again());
}

TEST_F(LinkSetTest, Settled_packets__are_not_awaited) {
  link = a.connect(b);
  EXPECT_TRUE(a.wire->has_settled(*link));
  const auto send = [this](std::uint8_t flags) {
    ASSERT_NE(a.wire->claim(*link, 0), nullptr);
    PacketHeader header{};
    header.type = PacketType::kTofuPut;
    header.flags = flags;
    a.wire->publish(*link, header);
  };
  send(kFlagPlaced);
  EXPECT_TRUE(a.wire->has_settled(*link));
  send(kFlagPlaced | kFlagAnswerWanted);
  EXPECT_FALSE(a.wire->has_settled(*link));
  send(kFlagPlaced);
  send(0);
  send(kFlagPlaced);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(a.wire->has_settled(*link));
    ASSERT_TRUE(b.receive());
  }
  ASSERT_TRUE(b.receive());
  EXPECT_FALSE(b.receive());
  EXPECT_TRUE(a.wire->has_settled(*link));
}

TEST_F(LinkSetTest, Lane__leaves_the_order_before_a_packet_that_is_not_settled) {
  link = a.connect(b);
  LaneState lane;
  lane.open = lane.in_order = 7;
  link->lane = &lane;
  ASSERT_NE(a.wire->claim(*link, 0), nullptr);
  PacketHeader header{};
  header.flags = kFlagPlaced;
  a.wire->publish(*link, header);
  EXPECT_EQ(lane.in_order, 7u);
  ASSERT_TRUE(a.send(link, "x"));
  EXPECT_EQ(lane.in_order, 0u);
  EXPECT_EQ(lane.open, 7u);
  link->close_lane();
  EXPECT_EQ(lane.open, 0u);
}

/// Two wires, and memory of the heap of the process, which both have as their own.
struct LendTest : ::testing::Test {
  LendTest() {
    process_heap().open(directory().path().c_str(), 16 << 20);
    memory = static_cast<std::byte*>(process_heap().allocate(kBytes, 64));
    for (std::size_t i = 0; i < kBytes; ++i) memory[i] = static_cast<std::byte>(i % 251);
    link = a.connect(b);
  }
  ~LendTest() override { process_heap().free(memory); }

  /// The heap of a process lies in one directory.
  static const SegmentDirectory& directory() {
    static const SegmentDirectory only;
    /// Takes the name away while there is the directory.
    static const struct NameEnd {
      ~NameEnd() { process_heap().unname(); }
    } name_end;
    return only;
  }

  /// A long payload, and the name of the heap, make the receiver map the heap.
  void get_acquainted() {
    EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory, 8192))) << "the receiver does not map it";
    ASSERT_TRUE(a.send(link, std::string(kAreaFromBytes, 'x')));
    ASSERT_TRUE(b.receive());
    ASSERT_FALSE(b.receive());
  }

  /// @return the number of the packet behind it
  std::uint64_t lend(std::size_t offset, std::uint32_t bytes) {
    EXPECT_TRUE(a.wire->lend(*link, whole_loan(memory + offset, bytes)));
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.payload_bytes = bytes;
    a.wire->publish(*link, header);
    return a.wire->next_packet(*link);
  }

  static constexpr std::size_t kBytes = 2 << 20;
  WirePeer a{directory().options(1)};
  WirePeer b{directory().options(2)};
  std::byte* memory = nullptr;
  Link* link = nullptr;
};

TEST_F(LendTest, Lent_payload__is_read_where_it_lies) {
  get_acquainted();
  const std::uint64_t end = lend(64, kMostLentBytes);
  EXPECT_FALSE(a.wire->has_taken(*link, end));
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  ASSERT_EQ(packet.header.payload_bytes, kMostLentBytes);
  EXPECT_NE(packet.payload.here(), memory + 64) << "through a mapping of its own";
  EXPECT_EQ(std::memcmp(packet.payload.here(), memory + 64, kMostLentBytes), 0);
  memory[64] = std::byte{255};
  EXPECT_EQ(packet.payload.here()[0], std::byte{255});
  EXPECT_FALSE(a.wire->has_taken(*link, end));
  b.wire->release();
  EXPECT_TRUE(a.wire->has_taken(*link, end));
  EXPECT_EQ(a.counter(Counter::kPacketsLent), 1u);
}

TEST_F(LendTest, Memory_outside_of_the_heap__is_not_lent) {
  get_acquainted();
  const std::vector<std::byte> elsewhere(8192);
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(elsewhere.data(), 8192)));
  EXPECT_FALSE(b.wire->lend(*b.connect(a), whole_loan(memory, 8192))) << "the way back has yet to carry something long";
}

TEST_F(LendTest, Full_ring__refuses) {
  get_acquainted();
  std::uint32_t lent = 0;
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.payload_bytes = 64;
  for (; a.wire->lend(*link, whole_loan(memory, 64)); ++lent) a.wire->publish(*link, header);
  EXPECT_EQ(lent, RingGeometry{}.cell_count);
  b.receive();
  EXPECT_TRUE(a.wire->lend(*link, whole_loan(memory, 64))) << "what was lent comes back at once";
  a.wire->discard(*link);
}

TEST_F(LendTest, Sender_that_sleeps__is_rung_when_what_it_has_lent_is_taken) {
  get_acquainted();
  const std::uint64_t end = lend(0, 8192);
  EXPECT_FALSE(a.wire->has_taken(*link, end));
  Doorbell bell(a.segment->doorbell(), a.segment->node_guard());
  const std::uint32_t seen = bell.announce();
  EXPECT_FALSE(a.wire->has_room_again());
  ASSERT_TRUE(b.receive());
  EXPECT_TRUE(bell.wait(seen, kLongestSleepNs));
  bell.withdraw();
  EXPECT_TRUE(a.wire->has_room_again());
  EXPECT_TRUE(a.wire->has_taken(*link, end));
}

TEST_F(LendTest, Sender_that_dies__leaves_its_memory_to_who_reads_it) {
  get_acquainted();
  lend(0, 8192);
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  a.wire.reset();
  a.die();
  b.wire->check_peers();
  EXPECT_EQ(std::memcmp(packet.payload.here(), memory, 8192), 0);
  b.wire->release();
  ProcessId source;
  void* context = nullptr;
  b.wire->peek(packet);
  EXPECT_TRUE(b.wire->take_closed_source(&source, &context));
}

/// Values are read without care for faults.
TEST_F(LendTest, Atomic_whose_values_are_lent__evicts_its_sender) {
  get_acquainted();
  ASSERT_TRUE(a.wire->lend(*link, whole_loan(memory, 64)));
  PacketHeader header{};
  header.type = PacketType::kAtomic;
  header.payload_bytes = 64;
  a.wire->publish(*link, header);
  EXPECT_FALSE(b.receive());
  EXPECT_EQ(b.counter(Counter::kSourcesEvicted), 1u);
}

/// Where a liar says that its payload lies in its heap.
TEST_F(LendTest, Place_outside_of_the_senders_heap__evicts_it) {
  for (const std::uint64_t offset : {std::uint64_t{16} << 20, ~std::uint64_t{0} - 4095, std::uint64_t{1} << 63}) {
    WirePeer target(directory().options(3));
    WirePeer liar(directory().options(4));
    Link* const way = liar.connect(target);
    ASSERT_FALSE(liar.wire->lend(*way, whole_loan(memory, 8192)));
    ASSERT_TRUE(liar.send(way, std::string(kAreaFromBytes, 'x')));
    ASSERT_TRUE(target.receive());
    const Mapping ring = target.segment->map_ring(0);
    const SegmentLayout& layout = target.segment->layout();
    const RingView view(ring.at(layout.ring_start(0)), layout.ring);
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.payload_bytes = 8192;
    std::memcpy(view.cells[1].head, &header, sizeof view.cells[1].head);
    const LentPlace place{.place = offset, .awaited = 1};
    std::memcpy(view.cells[1].inline_payload, &place, sizeof place);
    view.cells[1].wire_word.store(kLent << 16 | lap_of(1), std::memory_order_release);
    EXPECT_FALSE(target.receive());
    EXPECT_EQ(target.counter(Counter::kSourcesEvicted), 1u);
  }
}

TEST_F(LinkSetTest, Blocked_sender_that_sleeps__is_rung_when_room_comes_back) {
  link = a.connect(b);
  while (a.send(link, "x")) {
  }
  Doorbell bell(a.segment->doorbell(), a.segment->node_guard());
  const std::uint32_t seen = bell.announce();
  EXPECT_FALSE(a.wire->has_room_again());
  for (std::uint32_t i = 0; i < RingGeometry{}.cell_count / 4; ++i) b.receive();
  EXPECT_TRUE(bell.wait(seen, kLongestSleepNs));
  bell.withdraw();
  EXPECT_TRUE(a.wire->has_room_again());
  EXPECT_EQ(b.counter(Counter::kDoorbellsRung), 1u);
}

TEST_F(LinkSetTest, Publish__rings_a_sleeping_peer_once) {
  link = a.connect(b);
  Doorbell bell(b.segment->doorbell(), b.segment->node_guard());
  ASSERT_TRUE(a.send(link, "awake"));
  EXPECT_EQ(a.counter(Counter::kDoorbellsRung), 0u);
  bell.announce();
  ASSERT_TRUE(a.send(link, "asleep"));
  ASSERT_TRUE(a.send(link, "still waking"));
  EXPECT_EQ(a.counter(Counter::kDoorbellsRung), 1u);
  bell.withdraw();
}

TEST_F(LinkSetTest, Peer_that_ends__is_found_lost_by_check_peers) {
  link = a.connect(b);
  EXPECT_EQ(a.wire->check_peers(), 0);
  b.wire.reset();
  b.segment.reset();
  EXPECT_EQ(a.wire->check_peers(), 1);
  EXPECT_TRUE(link->lost);
  EXPECT_EQ(a.wire->claim(*link, 0), nullptr);
  EXPECT_EQ(a.wire->check_peers(), 0) << "counted once";
  a.wire->disconnect(link);
}

TEST_F(LinkSetTest, Restarted_peer__is_reached_by_a_new_link) {
  link = a.connect(b);
  b.wire.reset();
  b.segment.reset();
  WirePeer next(directory.options(2));
  EXPECT_EQ(a.wire->check_peers(), 1);
  Link* next_link = a.connect(next);
  EXPECT_NE(next_link, link);
  EXPECT_TRUE(link->lost);
  EXPECT_FALSE(next_link->lost);
  ASSERT_TRUE(a.send(next_link, "hello"));
  EXPECT_EQ(next.receive(), "hello");
  a.wire->disconnect(link);
  EXPECT_EQ(a.connect(next), next_link);
}

TEST_F(LinkSetTest, Peer_that_gives_back_too_much__is_lost) {
  link = a.connect(b);
  while (a.send(link, "x")) {
  }
  {
    const Mapping ring = b.segment->map_ring(0);
    reinterpret_cast<RingControlShared*>(ring.at(0))->released.store(1000000);
  }
  EXPECT_FALSE(a.send(link, "x"));
  EXPECT_EQ(a.wire->check_peers(), 1);
  EXPECT_TRUE(link->lost);
}

TEST_F(LinkSetTest, Room_for_a_lost_link__is_reported_so_that_its_operations_end) {
  link = a.connect(b);
  while (a.send(link, "x")) {
  }
  b.wire.reset();
  b.segment.reset();
  EXPECT_EQ(a.wire->check_peers(), 1);
  EXPECT_TRUE(a.wire->has_room_again());
  EXPECT_FALSE(a.wire->has_room_again());
}

TEST_F(LinkSetTest, Memory_of_a_ring__that_cannot_be_had_frees_the_channel_and_is_told) {
  const SegmentDirectory small;
  // Room for two heads of 140 KiB, not for the smallest ring of 20 KiB.
  const int status = in_small_file_system(small, "size=292k", [&small] {
    WirePeer one(small.options(1));
    WirePeer two(small.options(2));
    Link* none = nullptr;
    testing::internal::CaptureStderr();
    if (one.wire->connect(two.id(), &none) != ConnectResult::kShort) return 1;
    if (read_slot(two.segment->slot(0)).state != SlotState::kFree) return 2;
    const std::string told = testing::internal::GetCapturedStderr();
    return told.find("20480 bytes in " + small.path()) != std::string::npos ? 0 : 3;
  });
  if (status == kMayNotMount) GTEST_SKIP() << "may not mount a file system";
  EXPECT_EQ(status, 0);
}

TEST_F(LinkSetTest, Memory_of_a_ring__is_less_where_it_is_short_and_carries_the_same_packets) {
  const SegmentDirectory small;
  // Room for two heads and one ring of the usual size, but then less than half would be free.
  const int status = in_small_file_system(small, "size=400k", [&small] {
    WirePeer one(small.options(1));
    WirePeer two(small.options(2));
    Link* way = one.connect(two);
    if (two.segment->slot(0).is_small.load() == 0) return 1;
    const std::string longest(one.wire->max_payload_bytes(), 'x');
    std::uint32_t sent = 0;
    while (one.send(way, "short")) ++sent;
    if (sent != RingGeometry{}.smallest().cell_count) return 2;
    for (; sent > 0; --sent) {
      if (two.receive() != "short") return 3;
    }
    for (int i = 0; i < 100; ++i) {
      if (!one.send(way, longest) || two.receive() != longest) return 4;
    }
    return 0;
  });
  if (status == kMayNotMount) GTEST_SKIP() << "may not mount a file system";
  EXPECT_EQ(status, 0);
}

/// Memory that is not mapped, too, for what goes by packet.
TEST_F(LinkSetTest, Region__is_found_as_it_is_published_and_until_it_is_withdrawn) {
  const std::uint64_t key = region_key(0, 5);
  ASSERT_TRUE(
      publish_region(b.segment->regions(), {.key = key, .start = 4096, .bytes = 100, .user = 1, .writable = true}));
  link = a.connect(b);
  MappedRegion region;
  ASSERT_TRUE(a.wire->find_published(*link, key, &region));
  EXPECT_EQ(region.bytes, 100u);
  EXPECT_EQ(region.user, 1u);
  EXPECT_TRUE(region.writable);
  EXPECT_EQ(region.memory, nullptr);
  EXPECT_EQ(region.sequence->load(), region.seen);
  EXPECT_FALSE(a.wire->find_published(*link, key + 1, &region));
  withdraw_region(b.segment->regions(), key);
  EXPECT_NE(region.sequence->load(), region.seen);
  EXPECT_FALSE(a.wire->find_published(*link, key, &region));
}

/// Its memory is still there here; a process that has died leaves its number to another program.
TEST_F(LinkSetTest, Direct_put__to_a_peer_that_is_dead_is_refused_before_its_death_is_noticed) {
  constexpr std::uint32_t kStag = 5;
  constexpr std::uint32_t kComponent = 1;
  const std::vector<std::byte> data(65536, std::byte{7});
  std::vector<std::byte> memory(data.size());
  const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
  ASSERT_TRUE(publish_region(
      b.segment->regions(),
      {.key = region_key(0, kStag), .start = start, .bytes = memory.size(), .user = kComponent, .writable = true}));
  link = a.connect(b);
  const DirectPut put{0, kComponent, kStag, 0, data.data(), data.size()};
  if (!a.wire->put_directly(*link, put)) GTEST_SKIP() << "this kernel lets no process write another one's memory";
  EXPECT_EQ(memory, data);
  std::fill(memory.begin(), memory.end(), std::byte{0});
  b.die();
  EXPECT_FALSE(a.wire->put_directly(*link, put));
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0}), static_cast<std::ptrdiff_t>(memory.size()));
}

}  // namespace
}  // namespace portofu
