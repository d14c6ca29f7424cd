// Payloads that are lent from ordinary memory: who copies them, where to, and what happens when it cannot be done.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "engine/wire/ways.h"
#include "tests/unit/support/whole_loan.h"
#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

/// Two wires, and ordinary memory that is lent wherever it can be.
struct LendMemoryTest : ::testing::Test {
  LendMemoryTest() {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 251);
  }

  void open(LongData way = LongData::kInPlace, bool direct = true) {
    a.wire = std::make_unique<ShmWire>(*a.segment, direct, way);
    link = a.connect(b);
    EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart))) << "the receiver has not said that it can read";
    ASSERT_TRUE(a.send(link, std::string(kAreaFromBytes, 'x')));
    ASSERT_TRUE(b.receive());
  }

  /// Lends parts of one message. @return number of the packet behind them
  std::uint64_t lend(std::size_t parts, const std::byte* from = nullptr) {
    const std::uint64_t first = a.wire->next_packet(*link);
    for (std::size_t i = 0; i < parts; ++i) {
      const Loan loan{(from != nullptr ? from : memory.data()) + i * kPart, kPart, first, i * kPart, i + 1 == parts};
      EXPECT_TRUE(a.wire->lend(*link, loan));
      PacketHeader header{};
      header.type = i == 0 ? PacketType::kPut : PacketType::kData;
      header.payload_bytes = kPart;
      a.wire->publish(*link, header);
    }
    return a.wire->next_packet(*link);
  }

  /// Takes a packet as target/deliver does. @return whether it was there, and its data could be had
  bool receive(std::size_t part, bool offers = false) {
    Packet packet;
    if (!b.wire->peek(packet)) return false;
    if (offers) b.wire->offer(target.data(), target.size());
    was_placed = packet.payload.is_placed();
    const bool good = packet.payload.is_placed() || packet.payload.read_to(target.data() + part * kPart, kPart);
    b.wire->release();
    return good;
  }

  /// Opens with the way that is measured, and uses all of the area.
  void open_and_go_round() {
    open(LongData::kMeasured);
    const int chunks = static_cast<int>(a.segment->layout().area_bytes / kAreaChunkBytes);
    for (int i = 0; i < chunks + 20; ++i) {
      ASSERT_TRUE(a.send(link, std::string(kAreaChunkBytes, 'y')));
      ASSERT_TRUE(b.receive());
    }
  }

  /// Takes packets whose payloads are read later, each to its part.
  void take_later(std::initializer_list<std::size_t> parts) {
    for (const std::size_t part : parts) {
      Packet packet;
      ASSERT_TRUE(b.wire->peek(packet));
      ASSERT_TRUE(packet.payload.is_in_memory());
      ASSERT_TRUE(b.wire->read_later(target.data() + part * kPart, kPart));
      b.wire->release();
    }
  }

  bool all_there(std::size_t parts) const {
    return std::equal(target.begin(), target.begin() + parts * kPart, memory.begin());
  }

  static constexpr std::uint32_t kPart = 16384;
  SegmentDirectory directory;
  WirePeer a{directory.options(1)};
  WirePeer b{directory.options(2)};
  std::vector<std::byte> memory = std::vector<std::byte>(8 * kPart);
  std::vector<std::byte> target = std::vector<std::byte>(8 * kPart);
  Link* link = nullptr;
  bool was_placed = false;
};

TEST_F(LendMemoryTest, Payload__is_read_where_it_lies_and_then_taken) {
  open();
  const std::uint64_t end = lend(1);
  EXPECT_FALSE(a.wire->has_taken(*link, end));
  EXPECT_FALSE(a.wire->help(*link)) << "nothing was offered";
  ASSERT_TRUE(receive(0));
  EXPECT_TRUE(all_there(1));
  EXPECT_TRUE(a.wire->has_taken(*link, end));
  EXPECT_EQ(a.counter(Counter::kPacketsLent), 1u);
  EXPECT_EQ(a.counter(Counter::kPacketsByArea), 0u);
}

TEST_F(LendMemoryTest, Sender_that_helps__copies_from_the_end_what_the_receiver_has_not_got) {
  open();
  const std::uint64_t end = lend(4);
  ASSERT_TRUE(receive(0, true));
  EXPECT_TRUE(a.wire->help(*link));
  EXPECT_TRUE(a.wire->help(*link));
  EXPECT_TRUE(std::equal(target.begin() + 2 * kPart, target.begin() + 4 * kPart, memory.begin() + 2 * kPart));
  ASSERT_TRUE(receive(1));
  EXPECT_FALSE(was_placed);
  EXPECT_FALSE(a.wire->help(*link)) << "nothing is left";
  ASSERT_TRUE(receive(2));
  EXPECT_TRUE(was_placed);
  ASSERT_TRUE(receive(3));
  EXPECT_TRUE(was_placed);
  EXPECT_TRUE(all_there(4));
  EXPECT_TRUE(a.wire->has_taken(*link, end));
  EXPECT_EQ(a.counter(Counter::kPacketsPlaced), 2u);
}

TEST_F(LendMemoryTest, Messages__are_cut_for_help_by_who_has_time_to) {
  open();
  const auto shares_from = [&] { return a.wire->shares_from_bytes(*link, a.wire->next_packet(*link)); };
  lend(1);
  EXPECT_EQ(shares_from(), kShareFromBytes) << "mostly sends";
  ASSERT_TRUE(receive(0));
  EXPECT_EQ(shares_from(), kShareAloneFromBytes) << "has nothing else under way";
  Link* const back = b.connect(a);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(b.send(back, std::string(kAreaChunkBytes, 'x')));
    ASSERT_TRUE(a.receive());
  }
  EXPECT_EQ(shares_from(), kShareAloneFromBytes);
  const std::uint64_t first = a.wire->next_packet(*link);
  lend(1);
  EXPECT_EQ(a.wire->shares_from_bytes(*link, first), kShareAloneFromBytes) << "the rest of the message";
  EXPECT_EQ(shares_from(), UINT64_MAX) << "receives, too";
  ASSERT_TRUE(receive(0));
  EXPECT_EQ(shares_from(), kShareAloneFromBytes);
}

TEST_F(LendMemoryTest, Help__is_for_the_message_that_was_offered_a_place) {
  open();
  lend(2);
  lend(2);
  ASSERT_TRUE(receive(0, true));
  EXPECT_TRUE(a.wire->help(*link));
  EXPECT_FALSE(a.wire->help(*link)) << "the second message has no place yet";
  ASSERT_TRUE(receive(1));
  EXPECT_TRUE(was_placed);
  ASSERT_TRUE(receive(0, true));
  EXPECT_TRUE(a.wire->help(*link));
}

TEST_F(LendMemoryTest, Place_that_is_too_short__is_not_written_to) {
  open();
  lend(2);
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  b.wire->offer(target.data(), 2 * kPart - 1);
  b.wire->release();
  EXPECT_FALSE(a.wire->help(*link));
  ASSERT_TRUE(receive(1));
  EXPECT_FALSE(was_placed);
}

TEST_F(LendMemoryTest, Offer_that_was_taken_back__is_not_used) {
  open();
  lend(2);
  ASSERT_TRUE(receive(0, true));
  b.wire->take_offers_back(a.id());
  EXPECT_FALSE(a.wire->help(*link));
  ASSERT_TRUE(receive(1));
  EXPECT_FALSE(was_placed);
  EXPECT_TRUE(all_there(2));
}

/// A place that may not be written to is for the receiver to find out.
TEST_F(LendMemoryTest, Place_that_is_not_there__leaves_the_payload_to_the_receiver) {
  open();
  lend(2);
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  b.wire->offer(reinterpret_cast<std::byte*>(4096), 2 * kPart);
  b.wire->release();
  EXPECT_FALSE(a.wire->help(*link));
  ASSERT_TRUE(receive(1));
  EXPECT_FALSE(was_placed);
}

TEST_F(LendMemoryTest, Memory_that_is_gone_when_it_is_read__is_a_fault_and_no_crash) {
  open();
  void* const gone = mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  lend(1, static_cast<const std::byte*>(gone));
  munmap(gone, kPart);
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  EXPECT_FALSE(packet.payload.read_to(target.data(), kPart));
  EXPECT_FALSE(packet.payload.is_lost());
  EXPECT_TRUE(a.wire->lend(*link, whole_loan(memory.data(), kPart)));
  a.wire->discard(*link);
  b.wire->release();
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart))) << "it may never go well again";
}

TEST_F(LendMemoryTest, Memory_that_nobody_may_read_any_more__is_not_lent) {
  open();
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
  const bool lent = a.wire->lend(*link, whole_loan(memory.data(), kPart));
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
  EXPECT_FALSE(lent);
  lend(1);
  EXPECT_TRUE(receive(0)) << "and lent again when it may be read";
}

TEST_F(LendMemoryTest, Payloads_read_later__come_at_once_and_are_taken_then) {
  open();
  const std::uint64_t end = lend(3);
  take_later({0, 1, 2});
  EXPECT_TRUE(std::all_of(target.begin(), target.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  Packet packet;
  EXPECT_FALSE(b.wire->peek(packet));
  EXPECT_FALSE(a.wire->has_taken(*link, end - 2)) << "the first one is not there yet either";
  EXPECT_EQ(b.wire->read_now(), 7u);
  EXPECT_TRUE(all_there(3));
  EXPECT_FALSE(a.wire->has_taken(*link, end - 2)) << "nobody was told yet";
  b.wire->give_back_read();
  EXPECT_TRUE(a.wire->has_taken(*link, end));
  EXPECT_EQ(b.wire->read_now(), 0u) << "there is nothing more";
}

TEST_F(LendMemoryTest, Payloads_read_later__are_told_apart_when_one_cannot_be_had) {
  open();
  void* const gone = mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  lend(1);
  lend(1, static_cast<const std::byte*>(gone));
  const std::uint64_t end = lend(1, memory.data() + 2 * kPart);
  munmap(gone, kPart);
  take_later({0, 1, 2});
  EXPECT_EQ(b.wire->read_now(), 5u);
  b.wire->give_back_read();
  EXPECT_TRUE(all_there(1));
  EXPECT_TRUE(std::equal(target.begin() + 2 * kPart, target.begin() + 3 * kPart, memory.begin() + 2 * kPart));
  EXPECT_TRUE(a.wire->has_taken(*link, end));
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart))) << "it may never go well again";
}

TEST_F(LendMemoryTest, Payloads_read_later__are_so_many_at_most) {
  open();
  for (std::uint32_t i = 0; i <= Copies::kMostReadLater; ++i) lend(1);
  for (std::uint32_t i = 0; i < Copies::kMostReadLater; ++i) take_later({0});
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  EXPECT_FALSE(b.wire->read_later(target.data(), kPart));
  EXPECT_EQ(b.wire->read_now(), (1u << Copies::kMostReadLater) - 1);
  b.wire->give_back_read();
  EXPECT_TRUE(b.wire->read_later(target.data(), kPart));
  b.wire->release();
  EXPECT_EQ(b.wire->read_now(), 1u);
}

TEST_F(LendMemoryTest, Payloads_read_later__are_of_one_sender) {
  open();
  WirePeer c{directory.options(3)};
  c.wire = std::make_unique<ShmWire>(*c.segment, true, LongData::kInPlace);
  Link* const other = c.connect(b);
  ASSERT_TRUE(c.send(other, std::string(kAreaFromBytes, 'x')));
  ASSERT_TRUE(b.receive());
  const std::uint64_t end = lend(1);
  take_later({0});
  ASSERT_TRUE(c.wire->lend(*other, whole_loan(memory.data(), kPart)));
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.payload_bytes = kPart;
  c.wire->publish(*other, header);
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  EXPECT_FALSE(b.wire->read_later(target.data() + kPart, kPart));
  EXPECT_EQ(b.wire->read_now(), 1u);
  b.wire->give_back_read();
  EXPECT_TRUE(a.wire->has_taken(*link, end));
  EXPECT_TRUE(packet.payload.read_to(target.data() + kPart, kPart));
  b.wire->release();
}

TEST_F(LendMemoryTest, Sender_that_sleeps__is_rung_when_what_was_read_later_is_there) {
  open();
  const std::uint64_t end = lend(2);
  EXPECT_FALSE(a.wire->has_taken(*link, end));
  Doorbell bell(a.segment->doorbell(), a.segment->node_guard());
  const std::uint32_t seen = bell.announce();
  take_later({0, 1});
  EXPECT_FALSE(a.wire->has_room_again());
  b.wire->read_now();
  b.wire->give_back_read();
  EXPECT_TRUE(bell.wait(seen, kLongestSleepNs));
  bell.withdraw();
  EXPECT_TRUE(a.wire->has_taken(*link, end));
}

/// What was behind the packet that the dead one had in hand is delivered.
TEST_F(LendMemoryTest, Sender_that_dies_with_a_packet_in_hand__leaves_it_to_the_receiver) {
  open();
  lend(2);
  ASSERT_TRUE(a.send(link, "behind it"));
  ASSERT_TRUE(receive(0, true));
  auto& producer = static_cast<ShmLink*>(link)->producer;
  ASSERT_TRUE(producer.take_back(producer.position() - 2));
  EXPECT_FALSE(receive(1));
  a.die();
  b.wire->check_peers();
  was_placed = true;
  EXPECT_FALSE(receive(1)) << "the memory of the dead is gone";
  EXPECT_FALSE(was_placed) << "it is the receiver's packet now";
  EXPECT_EQ(b.receive(), "behind it");
  a.wire.reset();
}

TEST_F(LendMemoryTest, Loans_that_have_come_back__are_forgotten) {
  open();
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t end = lend(1);
    ASSERT_TRUE(receive(0));
    ASSERT_TRUE(a.wire->has_taken(*link, end));
  }
  EXPECT_EQ(static_cast<ShmLink*>(link)->loans.size(), 1u);
}

TEST_F(LendMemoryTest, Receiver_that_sleeps__is_rung_when_its_packet_has_been_copied) {
  open();
  lend(2);
  ASSERT_TRUE(receive(0, true));
  Doorbell bell(b.segment->doorbell(), b.segment->node_guard());
  const std::uint32_t seen = bell.announce();
  ASSERT_TRUE(a.wire->help(*link));
  EXPECT_TRUE(bell.wait(seen, kLongestSleepNs));
  bell.withdraw();
  EXPECT_TRUE(b.wire->has_packets());
}

TEST_F(LendMemoryTest, Short_payloads__are_not_worth_it) {
  open();
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), 16383)));
}

TEST_F(LendMemoryTest, Process_that_shall_not_use_the_kernel__lends_nothing) {
  open(LongData::kInPlace, false);
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart)));
}

TEST_F(LendMemoryTest, Process_that_was_told_another_way__lends_nothing) {
  open(LongData::kOrdinary);
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart)));
}

/// What copies cost is found out by making them: all of the area first, then both ways now and then.
TEST_F(LendMemoryTest, Measured_way__is_the_area_until_that_has_gone_round_and_then_both_are_tried) {
  open(LongData::kMeasured);
  const auto pump = [&](int payloads) {
    for (int i = 0; i < payloads; ++i) {
      ASSERT_TRUE(a.send(link, std::string(kAreaChunkBytes, 'y')));
      ASSERT_TRUE(b.receive());
    }
  };
  const int chunks = static_cast<int>(a.segment->layout().area_bytes / kAreaChunkBytes);
  pump(chunks - 1);
  for (int i = 0; i < 200; ++i) ASSERT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart)));
  pump(20);
  int lent = 0, copied = 0;
  for (int i = 0; i < 3000; ++i) {
    if (a.wire->lend(*link, whole_loan(memory.data(), kPart))) {
      PacketHeader header{};
      header.type = PacketType::kPut;
      header.payload_bytes = kPart;
      a.wire->publish(*link, header);
      ASSERT_TRUE(receive(0));
      ++lent;
    } else {
      pump(2);
      ++copied;
    }
  }
  EXPECT_GT(lent, 0);
  EXPECT_GT(copied, 0);
}

/// What is left of a message that has begun by the area would tell of the call of the kernel, not of its copy.
TEST_F(LendMemoryTest, Measured_way__is_not_measured_with_rests_of_messages) {
  ASSERT_NO_FATAL_FAILURE(open_and_go_round());
  const std::uint64_t message = a.wire->next_packet(*link);
  for (int i = 0; i < 1000; ++i)
    ASSERT_FALSE(a.wire->lend(*link, {memory.data() + kPart, kPart, message, kPart, true})) << i;
  EXPECT_TRUE(a.wire->lend(*link, whole_loan(memory.data(), kPart))) << "the first trial is still to come";
  a.wire->discard(*link);
}

TEST_F(LendMemoryTest, Measured_way__is_not_tried_while_the_ring_is_full) {
  ASSERT_NO_FATAL_FAILURE(open_and_go_round());
  while (a.send(link, "x")) {
  }
  for (int i = 0; i < 300; ++i) ASSERT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart))) << i;
  while (b.receive()) {
  }
  EXPECT_TRUE(a.wire->lend(*link, whole_loan(memory.data(), kPart))) << "the first trial is still to come";
  a.wire->discard(*link);
}

}  // namespace
}  // namespace portofu
