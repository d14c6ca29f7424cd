// Payloads that stay in the sender's memory until the receiver has fetched them (engine/wire/ofi/ofi_wire.h, lend).

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "engine/wire/ways.h"
#include "tests/support/eventually.h"
#include "tests/unit/support/whole_loan.h"
#include "tests/unit/wire/ofi/ofi_pair.h"

namespace portofu {
namespace {

class OfiLendingTest : public testing::Test {
 protected:
  void SetUp() override {
    link = connect(a, b);
    ASSERT_NE(link, nullptr);
    if (a.wire->most_lent_bytes(*link) == 0) GTEST_SKIP() << "the provider reads no memory of peers";
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 251);
  }

  /// @return false if there is no room
  bool lend(std::uint64_t hdr_data, std::size_t offset, std::uint32_t bytes, PacketType type = PacketType::kPut) {
    if (!a.wire->lend(*link, whole_loan(memory.data() + offset, bytes))) return false;
    PacketHeader header{};
    header.type = type;
    header.hdr_data = hdr_data;
    header.payload_bytes = bytes;
    header.uid = geteuid();
    a.wire->publish(*link, header);
    return true;
  }

  /// Lets both make progress until `done`.
  bool together(const std::function<bool()>& done) {
    return eventually([&] {
      a.wire->has_packets();
      a.wire->check_peers();
      b.take(&got);
      return done();
    });
  }

  OfiEnd a{ofi_options(kNodeA)};
  OfiEnd b{ofi_options(kNodeB)};
  Link* link = nullptr;
  std::vector<std::byte> memory = std::vector<std::byte>(kFetchBytes * 6);
  std::vector<std::uint64_t> got;
};

TEST_F(OfiLendingTest, Payload__arrives_whole_and_is_then_told_to_be_taken) {
  ASSERT_TRUE(lend(1, 100, kFetchBytes));
  const std::uint64_t end = a.wire->next_packet(*link);
  EXPECT_FALSE(a.wire->has_taken(*link, end));
  ASSERT_TRUE(together([&] { return got.size() == 1; }));
  EXPECT_TRUE(std::equal(b.last_payload.begin(), b.last_payload.end(), memory.begin() + 100,
                         memory.begin() + 100 + kFetchBytes));
  a.wire->has_room_again();
  EXPECT_TRUE(together([&] { return a.wire->has_taken(*link, end); }));
  EXPECT_TRUE(a.wire->has_room_again()) << "an engine that waits for it is told";
  EXPECT_EQ(a.count(Counter::kPacketsLent), 1u);
}

// The last bytes of a message may be too few to be lent. Who waits for what was lent does not wait for them.
TEST_F(OfiLendingTest, Packet_behind__need_not_be_told_of) {
  ASSERT_TRUE(lend(1, 0, kFetchBytes));
  ASSERT_TRUE(send(a, *link, 2, "the rest"));
  const std::uint64_t end = a.wire->next_packet(*link);
  EXPECT_TRUE(together([&] { return a.wire->has_taken(*link, end); }));
}

TEST_F(OfiLendingTest, Order__is_that_of_the_packets_lent_or_not) {
  ASSERT_TRUE(send(a, *link, 0, "first"));
  for (std::uint64_t i = 1; i < 40; ++i) {
    ASSERT_TRUE(i % 3 != 0 ? lend(i, i * 4096, kFabricLendFromBytes * 2) : send(a, *link, i, "between")) << i;
  }
  ASSERT_TRUE(together([&] { return got.size() == 40; }));
  for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(got[i], i);
}

// More than there are buffers to fetch into; each is one piece of a message.
TEST_F(OfiLendingTest, Many_at_once__all_arrive) {
  for (std::uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(lend(i, i % 6 * kFetchBytes, kFetchBytes));
  std::size_t seen = 0;
  ASSERT_TRUE(together([&] {
    if (got.size() > seen) {
      EXPECT_EQ(std::memcmp(b.last_payload.data(), memory.data() + seen % 6 * kFetchBytes, kFetchBytes), 0) << seen;
      ++seen;
    }
    return seen == 30;
  }));
}

TEST_F(OfiLendingTest, Short_payload__is_not_lent) {
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kFabricLendFromBytes - 1)));
  EXPECT_TRUE(send(a, *link, 0)) << "nothing is claimed";
}

TEST_F(OfiLendingTest, Window__bounds_what_is_lent) {
  std::uint64_t lent = 0;
  while (lent < 1000 && lend(lent, 0, kFabricLendFromBytes)) ++lent;
  EXPECT_EQ(lent, kOfiWindowPackets);
}

TEST_F(OfiLendingTest, Memory_that_cannot_be_read__is_not_lent) {
  void* const place = mmap(nullptr, kFetchBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<std::byte*>(place) + kFetchBytes / 2, 4096, PROT_NONE), 0);
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(static_cast<const std::byte*>(place), kFetchBytes)));
  EXPECT_TRUE(a.wire->lend(*link, whole_loan(static_cast<const std::byte*>(place), kFetchBytes / 2)));
  a.wire->discard(*link);
  munmap(place, kFetchBytes);
  ASSERT_TRUE(send(a, *link, 7));
  EXPECT_TRUE(together([&] { return got.size() == 1; })) << "the link is as good as before";
}

TEST_F(OfiLendingTest, Discarded__nothing_is_sent) {
  ASSERT_TRUE(a.wire->lend(*link, whole_loan(memory.data(), kFetchBytes)));
  a.wire->discard(*link);
  ASSERT_TRUE(send(a, *link, 1));
  ASSERT_TRUE(together([&] { return got.size() == 1; }));
  EXPECT_EQ(got[0], 1u);
}

// Only who copies a payload may be given memory of somebody else; what is small and looked at is in the packet.
TEST_F(OfiLendingTest, Packet_of_another_kind__loses_the_link) {
  ASSERT_TRUE(lend(1, 0, kFabricLendFromBytes, PacketType::kAtomic));
  const std::uint64_t end = a.wire->next_packet(*link);
  EXPECT_TRUE(together([&] { return link->lost; }));
  EXPECT_FALSE(a.wire->has_taken(*link, end)) << "who is lost has taken nothing";
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(b.count(Counter::kSourcesEvicted), 1u);
}

// What was lent with the link can be fetched no more: nothing of it is delivered, nor what is behind it.
TEST_F(OfiLendingTest, Sender_that_ends_its_link__takes_back_what_it_has_lent) {
  ASSERT_TRUE(send(a, *link, 0));
  ASSERT_TRUE(lend(1, 0, kFetchBytes));
  ASSERT_TRUE(send(a, *link, 2));
  a.wire->disconnect(link);
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(together([&] { return b.wire->take_closed_source(&source, &context); }));
  EXPECT_EQ(got, std::vector<std::uint64_t>{0});
  link = connect(a, b);
  ASSERT_TRUE(send(a, *link, 3));
  EXPECT_TRUE(together([&] { return got.size() == 2; })) << "another link works";
}

// Answers and requests are two streams: that one has a gap says nothing about the other.
TEST_F(OfiLendingTest, Answer_behind_a_payload_that_cannot_be_had__is_delivered) {
  ASSERT_TRUE(lend(1, 0, kFetchBytes));
  ASSERT_TRUE(send(a, *link, 2));
  ASSERT_NE(a.wire->claim(*link, 0), nullptr);
  PacketHeader answer{};
  answer.type = PacketType::kAnswer;
  answer.hdr_data = 3;
  answer.uid = geteuid();
  a.wire->publish(*link, answer);
  a.wire->disconnect(link);
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(together([&] { return b.wire->take_closed_source(&source, &context); }));
  EXPECT_EQ(got, std::vector<std::uint64_t>{3});
}

}  // namespace
}  // namespace portofu
