#include "engine/wire/sim/faulty_datagrams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace portofu {
namespace {

constexpr ProcessId kPeer{1, 2};
constexpr ProcessId kOther{1, 3};
constexpr int kMany = 20000;
constexpr std::size_t kBytes = 100;

/// Keeps what it is given.
class RecordingEndpoint final : public DatagramEndpoint {
 public:
  using Sent = std::map<std::uint32_t, std::vector<std::vector<std::byte>>>;
  explicit RecordingEndpoint(Sent* sent) : sent_(sent) {}
  std::uint32_t max_bytes() const override { return 1024; }
  bool send(ProcessId peer, TrafficClass, std::span<const std::byte> head, std::span<const std::byte> body) override {
    if (full) return false;
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    (*sent_)[peer.pid].push_back(std::move(bytes));
    return true;
  }
  std::uint32_t receive(std::byte*, ProcessId*) override { return 0; }
  bool has_datagrams() override { return false; }
  bool take_unreachable(ProcessId*) override { return false; }
  std::uint64_t now_ns() const override { return 1; }

  bool full = false;

 private:
  Sent* sent_;
};

std::vector<std::byte> numbered(std::uint32_t number) {
  std::vector<std::byte> bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(number >> (i % 4 * 8));
  return bytes;
}

std::uint32_t number_of(const std::vector<std::byte>& bytes) {
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
         static_cast<std::uint32_t>(bytes[2]) << 16;
}

/// What leaves of kMany numbered datagrams.
std::vector<std::vector<std::byte>> leave(const DatagramFaults& faults, std::uint64_t salt = 5) {
  RecordingEndpoint::Sent sent;
  FaultyDatagrams faulty(std::make_unique<RecordingEndpoint>(&sent), faults, salt);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    const auto bytes = numbered(i);
    const std::span<const std::byte> whole(bytes);
    EXPECT_TRUE(faulty.send(kPeer, TrafficClass::kRequest, whole.first(64), whole.subspan(64)));
  }
  return sent[kPeer.pid];
}

TEST(FaultyDatagrams, No_faults__all_leave_as_they_are) {
  const auto sent = leave({});
  ASSERT_EQ(sent.size(), static_cast<std::size_t>(kMany));
  for (std::uint32_t i = 0; i < kMany; ++i) EXPECT_EQ(sent[i], numbered(i));
}

TEST(FaultyDatagrams, Loss_and_duplicates__are_as_frequent_as_asked_for) {
  EXPECT_NEAR(static_cast<double>(leave({.loss = 10}).size()), 0.90 * kMany, 0.02 * kMany);
  EXPECT_NEAR(static_cast<double>(leave({.duplicate = 5}).size()), 1.05 * kMany, 0.02 * kMany);
}

TEST(FaultyDatagrams, Damaged_ones__differ_in_some_bits_or_are_shorter) {
  const auto sent = leave({.corrupt = 10});
  ASSERT_EQ(sent.size(), static_cast<std::size_t>(kMany));
  int damaged = 0;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    EXPECT_LE(sent[i].size(), kBytes);
    EXPECT_GE(sent[i].size(), 1u);
    damaged += sent[i] == numbered(i) ? 0 : 1;
  }
  EXPECT_NEAR(damaged, 0.1 * kMany, 0.02 * kMany);
}

TEST(FaultyDatagrams, Reordered_ones__are_overtaken_by_no_more_than_the_span) {
  constexpr std::uint32_t kSpan = 64;
  const auto sent = leave({.reorder = kSpan});
  EXPECT_GE(sent.size(), static_cast<std::size_t>(kMany) - kSpan) << "Those that nobody has overtaken yet.";
  std::uint32_t farthest = 0;
  int late = 0;
  std::uint32_t highest = 0;
  for (const auto& bytes : sent) {
    const std::uint32_t number = number_of(bytes);
    late += number < highest ? 1 : 0;
    farthest = std::max(farthest, highest - std::min(number, highest));
    highest = std::max(highest, number);
  }
  EXPECT_NEAR(late, kMany / DatagramFaults::kReorderedOneIn, 0.02 * kMany);
  EXPECT_LE(farthest, kSpan + 1);
  EXPECT_GT(farthest, kSpan / 2);
}

TEST(FaultyDatagrams, Overtaking__counts_for_each_peer) {
  RecordingEndpoint::Sent sent;
  FaultyDatagrams faulty(std::make_unique<RecordingEndpoint>(&sent), {.reorder = 1}, 5);
  for (std::uint32_t i = 0; i < 64; ++i) faulty.send(kPeer, TrafficClass::kRequest, numbered(i), {});
  const std::size_t before = sent[kPeer.pid].size();
  for (std::uint32_t i = 0; i < 64; ++i) faulty.send(kOther, TrafficClass::kRequest, numbered(i), {});
  EXPECT_EQ(sent[kPeer.pid].size(), before);
}

TEST(FaultyDatagrams, Seed_and_salt__decide_all) {
  const DatagramFaults faults{.loss = 10, .duplicate = 5, .corrupt = 1, .reorder = 64, .seed = 7};
  EXPECT_EQ(leave(faults), leave(faults));
  EXPECT_NE(leave(faults), leave(faults, 6));
  DatagramFaults other = faults;
  other.seed = 8;
  EXPECT_NE(leave(faults), leave(other));
}

TEST(FaultyDatagrams, No_room__is_told_and_nothing_was_sent) {
  RecordingEndpoint::Sent sent;
  auto endpoint = std::make_unique<RecordingEndpoint>(&sent);
  endpoint->full = true;
  FaultyDatagrams faulty(std::move(endpoint), {}, 5);
  EXPECT_FALSE(faulty.send(kPeer, TrafficClass::kRequest, numbered(1), {}));
  EXPECT_TRUE(sent.empty());
}

TEST(DatagramFaults, Text__names_what_is_not_the_default) {
  std::string why;
  const auto all = parse_datagram_faults("loss=10,duplicate=5,reorder=64,corrupt=1,seed=7", &why);
  ASSERT_TRUE(all) << why;
  EXPECT_EQ(all->loss, 10u);
  EXPECT_EQ(all->duplicate, 5u);
  EXPECT_EQ(all->reorder, 64u);
  EXPECT_EQ(all->corrupt, 1u);
  EXPECT_EQ(all->seed, 7u);
  const auto none = parse_datagram_faults("", &why);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->loss + none->duplicate + none->reorder + none->corrupt, 0u);
}

TEST(DatagramFaults, Bad_text__is_told_with_what_is_allowed) {
  for (const char* text : {"loss", "loss=", "loss=91", "loss=-1", "loss=1x", "gain=1", "loss=1;seed=2",
                           "loss=1,,seed=2", " loss=1", "reorder=1025"}) {
    std::string why;
    EXPECT_FALSE(parse_datagram_faults(text, &why)) << text;
    EXPECT_NE(why.find("PORTOFU_DATAGRAM_FAULTS"), std::string::npos) << why;
    EXPECT_NE(why.find("loss=0..90"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace portofu
