// Payloads whose sender's memory may not be read any more: the sender writes them, because it is asked to.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>
#include <vector>

#include "engine/wire/ways.h"
#include "tests/unit/support/refused_call.h"
#include "tests/unit/support/whole_loan.h"
#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

/// A sender that lends, and a receiver that could read its memory until now.
class SourceBringingTest : public testing::Test {
 protected:
  void SetUp() override {
    a.wire = std::make_unique<ShmWire>(*a.segment, true, LongData::kInPlace);
    link = a.connect(b);
    // The receiver says so when it has seen a long packet.
    ASSERT_TRUE(a.send(link, std::string(kAreaFromBytes, 'x')));
    ASSERT_TRUE(b.receive());
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 251);
  }

  /// Lends one message of `parts` packets. @return number of the packet behind them
  std::uint64_t lend(std::size_t parts) {
    const std::uint64_t first = a.wire->next_packet(*link);
    for (std::size_t i = 0; i < parts; ++i) {
      const Loan loan{memory.data() + i * kPart, kPart, first, i * kPart, i + 1 == parts};
      EXPECT_TRUE(a.wire->lend(*link, loan));
      PacketHeader header{};
      header.type = i == 0 ? PacketType::kPut : PacketType::kData;
      header.payload_bytes = kPart;
      a.wire->publish(*link, header);
    }
    return a.wire->next_packet(*link);
  }

  /// Runs `body` in a thread that the kernel does not let read other processes' memory, which is what they are here.
  /// @param meanwhile  what the sender does, again and again
  void where_nothing_may_be_read(
      const std::function<void()>& body, const std::function<void()>& meanwhile = [] {}) {
    std::atomic<bool> ended{false};
    bool refused = false;
    std::thread receiver([&] {
      refused = refuse_call(SYS_process_vm_readv, EPERM);
      if (refused) body();
      ended = true;
    });
    while (!ended) {
      meanwhile();
      std::this_thread::yield();
    }
    receiver.join();
    if (!refused) GTEST_SKIP() << "the kernel takes no filter";
  }

  void help() { a.wire->help(*link); }
  bool peek() {
    if (!b.wire->peek(packet)) return false;
    EXPECT_TRUE(packet.payload.is_in_memory());
    return true;
  }
  bool is_there(std::size_t first, std::size_t bytes) const {
    return std::equal(target.begin() + first, target.begin() + first + bytes, memory.begin() + first);
  }

  static constexpr std::uint32_t kPart = 16384;
  SegmentDirectory directory;
  WirePeer a{directory.options(1)};
  WirePeer b{directory.options(2)};
  std::vector<std::byte> memory = std::vector<std::byte>(4 * kPart);
  std::vector<std::byte> target = std::vector<std::byte>(4 * kPart);
  Link* link = nullptr;
  Packet packet;
};

TEST_F(SourceBringingTest, Payload__is_written_by_its_sender) {
  const std::uint64_t end = lend(1);
  bool read = false;
  where_nothing_may_be_read(
      [&] {
        if (!peek()) return;
        read = packet.payload.read_to(target.data(), kPart);
        b.wire->release();
      },
      [&] { help(); });
  EXPECT_TRUE(read);
  EXPECT_TRUE(is_there(0, kPart));
  EXPECT_TRUE(a.wire->has_taken(*link, end));
}

TEST_F(SourceBringingTest, Payload__is_brought_once_however_many_pieces_are_read) {
  lend(1);
  bool first = false;
  bool rest = false;
  std::atomic<bool> helps{true};
  where_nothing_may_be_read(
      [&] {
        if (!peek()) return;
        first = packet.payload.read_to(target.data(), 100);
        helps = false;
        rest = packet.payload.behind(100).read_to(target.data() + 100, kPart - 100);
        b.wire->release();
      },
      [&] {
        if (helps) help();
      });
  EXPECT_TRUE(first);
  EXPECT_TRUE(rest) << "what was brought is at hand";
  EXPECT_TRUE(is_there(0, kPart));
}

TEST_F(SourceBringingTest, Every_packet_of_a_message__is_brought) {
  const std::uint64_t end = lend(4);
  int read = 0;
  where_nothing_may_be_read(
      [&] {
        for (std::size_t i = 0; i < 4 && peek(); ++i) {
          read += packet.payload.read_to(target.data() + i * kPart, kPart) ? 1 : 0;
          b.wire->release();
        }
      },
      [&] { help(); });
  EXPECT_EQ(read, 4);
  EXPECT_TRUE(is_there(0, 4 * kPart));
  EXPECT_TRUE(a.wire->has_taken(*link, end));
}

// The sender writes to where it is asked to then, and not to the place of the message.
TEST_F(SourceBringingTest, Message_that_was_offered_a_place__is_brought_to_another) {
  lend(2);
  Packet first;
  ASSERT_TRUE(b.wire->peek(first));
  ASSERT_TRUE(first.payload.read_to(target.data(), kPart)) << "it may be read as yet";
  std::vector<std::byte> offered(2 * kPart);
  b.wire->offer(offered.data(), offered.size());
  b.wire->release();
  std::atomic<bool> taken{false};
  bool read = false;
  where_nothing_may_be_read(
      [&] {
        taken = peek();  // Nobody else copies it from now on, unless it is laid down.
        if (!taken) return;
        read = packet.payload.read_to(target.data() + kPart, kPart);
        b.wire->release();
      },
      [&] {
        if (taken) help();
      });
  EXPECT_TRUE(read);
  EXPECT_TRUE(is_there(0, 2 * kPart));
  EXPECT_TRUE(std::ranges::all_of(offered, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_F(SourceBringingTest, Payloads_read_later__are_brought_each) {
  const std::uint64_t end = lend(3);
  std::uint32_t read = 0;
  where_nothing_may_be_read(
      [&] {
        for (std::size_t i = 0; i < 3 && peek(); ++i) {
          if (!b.wire->read_later(target.data() + i * kPart, kPart)) return;
          b.wire->release();
        }
        read = b.wire->read_now();
        b.wire->give_back_read();
      },
      [&] { help(); });
  EXPECT_EQ(read, 7u);
  EXPECT_TRUE(is_there(0, 3 * kPart));
  EXPECT_TRUE(a.wire->has_taken(*link, end));
}

TEST_F(SourceBringingTest, Sender__lends_nothing_more) {
  lend(1);
  where_nothing_may_be_read(
      [&] {
        if (!peek()) return;
        packet.payload.read_to(target.data(), kPart);
        b.wire->release();
      },
      [&] { help(); });
  EXPECT_FALSE(a.wire->lend(*link, whole_loan(memory.data(), kPart)));
  ASSERT_TRUE(a.send(link, "short"));
  EXPECT_EQ(b.receive(), "short") << "the link is as good as before";
}

TEST_F(SourceBringingTest, Sender__that_is_asked_is_told_of_once) {
  lend(2);
  testing::internal::CaptureStderr();
  where_nothing_may_be_read(
      [&] {
        for (std::size_t i = 0; i < 2 && peek(); ++i) {
          packet.payload.read_to(target.data() + i * kPart, kPart);
          b.wire->release();
        }
      },
      [&] { help(); });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(":1 does not let us read its memory any more"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

std::uint64_t computed_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// A living one is waited for, for a second, by looking again and again.
TEST_F(SourceBringingTest, Dead_sender__is_not_waited_for) {
  lend(1);
  bool read = true;
  std::uint64_t spent_ns = UINT64_MAX;
  where_nothing_may_be_read([&] {
    if (!peek()) return;
    a.die();
    const std::uint64_t before = computed_ns();
    read = packet.payload.read_to(target.data(), kPart);
    spent_ns = computed_ns() - before;
    b.wire->release();
  });
  EXPECT_FALSE(read);
  EXPECT_LT(spent_ns, 100'000'000u);
}

// Beyond what was lent there is nothing that a sender could be asked for.
TEST_F(SourceBringingTest, Bytes_that_were_not_lent__are_not_asked_for) {
  lend(1);
  bool read = true;
  where_nothing_may_be_read(
      [&] {
        if (!peek()) return;
        read = packet.payload.behind(1).read_to(target.data(), kPart);
        b.wire->release();
      },
      [&] { help(); });
  EXPECT_FALSE(read);
}

}  // namespace
}  // namespace portofu
