#include "engine/wire/ofi/doorplate.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/topology/socket_address.h"
#include "tests/process/child_process.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

const std::uint32_t kDoorA = test_network() + 2;
const std::uint32_t kDoorB = test_network() + 3;

std::uint16_t test_port() {
  static const auto port = static_cast<std::uint16_t>(10000 + getpid() % 20000);  // Children keep it.
  return port;
}

/// Knocks, and waits a little for what comes back.
bool is_absent(Doorplate& own, std::uint32_t nid, Absent* told = nullptr, std::uint64_t sent_ns = 0) {
  own.knock(nid, test_port(), {sent_ns});
  Absent absent;
  for (int i = 0; i < 100; ++i) {
    if (own.take_absent(&absent)) {
      if (told != nullptr) *told = absent;
      return absent.nid == nid && absent.port == test_port();
    }
    usleep(1000);
  }
  return false;
}

TEST(Doorplate, Nobody_there__is_known_soon) {
  Doorplate a;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  EXPECT_TRUE(is_absent(a, kDoorB));
  EXPECT_TRUE(is_absent(a, kDoorB)) << "once more";
}

TEST(Doorplate, Nobody_there__is_told_with_the_knock_that_found_nobody) {
  Doorplate a;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  Absent absent;
  ASSERT_TRUE(is_absent(a, kDoorB, &absent, 4711));
  EXPECT_TRUE(absent.says_node);
  EXPECT_EQ(absent.datagram_bytes, sizeof(Knock));
  EXPECT_EQ(absent.knocked_ns(), 4711u);
}

TEST(Doorplate, Nobody_there__is_told_with_the_letter_that_asked) {
  Doorplate a;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  Absent absent;
  const auto ask = [&](LetterKind kind) {
    a.send(kDoorB, test_port(), kind, 4712);
    for (int i = 0; i < 100 && !a.take_absent(&absent); ++i) usleep(1000);
    return absent.knocked_ns();
  };
  EXPECT_EQ(ask(LetterKind::kAsk), 4712u);
  EXPECT_EQ(ask(LetterKind::kShort), 0u) << "the time is the other's";
}

TEST(Doorplate, Letter__arrives_with_its_sender_and_may_be_answered) {
  Doorplate a;
  Doorplate b;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  ASSERT_TRUE(b.open(kDoorB, test_port()));
  a.knock(kDoorB, test_port(), {1});
  a.send(kDoorB, test_port(), LetterKind::kAsk, 4711);
  std::uint32_t nid = 0;
  std::uint16_t port = 0;
  Letter letter{};
  ASSERT_TRUE(eventually([&] { return b.take_letter(&nid, &port, &letter); }));
  EXPECT_EQ(nid, kDoorA);
  EXPECT_EQ(port, test_port());
  EXPECT_EQ(letter.kind, LetterKind::kAsk);
  EXPECT_EQ(letter.sent_ns, 4711u);
  EXPECT_FALSE(b.take_letter(&nid, &port, &letter)) << "a knock is no letter";
  b.send(nid, port, LetterKind::kShort, letter.sent_ns);
  ASSERT_TRUE(eventually([&] { return a.take_letter(&nid, &port, &letter); }));
  EXPECT_EQ(nid, kDoorB);
  EXPECT_EQ(letter.kind, LetterKind::kShort);
}

TEST(Doorplate, Letter__of_another_length_or_kind_is_nobodys) {
  const int other = socket(AF_INET, SOCK_DGRAM, 0);
  Doorplate a;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  const sockaddr_in own = socket_address(kDoorA, test_port());
  const char bytes[64] = {};
  for (std::size_t length = 0; length <= sizeof bytes; ++length) {
    if (length == sizeof(Letter)) continue;
    ASSERT_EQ(sendto(other, bytes, length, 0, reinterpret_cast<const sockaddr*>(&own), sizeof own),
              static_cast<ssize_t>(length));
  }
  const Letter foreign{kLetterMagic + 1, LetterKind::kAsk, 2};
  sendto(other, &foreign, sizeof foreign, 0, reinterpret_cast<const sockaddr*>(&own), sizeof own);
  const Letter real{kLetterMagic, LetterKind::kAsk, 1};
  sendto(other, &real, sizeof real, 0, reinterpret_cast<const sockaddr*>(&own), sizeof own);
  std::uint32_t nid = 0;
  std::uint16_t port = 0;
  Letter letter{};
  ASSERT_TRUE(eventually([&] { return a.take_letter(&nid, &port, &letter); }));
  EXPECT_EQ(letter.sent_ns, 1u) << "the only one of ours";
  EXPECT_FALSE(a.take_letter(&nid, &port, &letter));
  close(other);
}

TEST(Doorplate, Letter__to_nobody_does_not_hide_one_that_arrives) {
  Doorplate a;
  Doorplate b;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  a.send(kDoorB, test_port(), LetterKind::kAsk, 1);
  Absent absent;
  ASSERT_TRUE(eventually([&] { return a.take_absent(&absent); }));
  ASSERT_TRUE(b.open(kDoorB, test_port()));
  a.send(kDoorB, test_port(), LetterKind::kAsk, 2);
  std::uint32_t nid = 0;
  std::uint16_t port = 0;
  Letter letter{};
  ASSERT_TRUE(eventually([&] { return b.take_letter(&nid, &port, &letter); }));
  EXPECT_EQ(letter.sent_ns, 2u);
}

TEST(Doorplate, Socket_of_somebody_else__tells_what_it_found) {
  const int other = socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in own = socket_address(kDoorA, test_port());
  ASSERT_EQ(bind(other, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  Doorplate a;
  ASSERT_TRUE(a.open(kDoorA, 0));
  EXPECT_FALSE(a.watch_socket(kDoorB, test_port())) << "there is none";
  ASSERT_TRUE(a.watch_socket(kDoorA, test_port()));
  const sockaddr_in peer = socket_address(kDoorB, test_port());
  const char text[] = "a long datagram that somebody else sends to a place where nobody is";
  ASSERT_EQ(sendto(other, text, sizeof text, 0, reinterpret_cast<const sockaddr*>(&peer), sizeof peer),
            static_cast<ssize_t>(sizeof text));
  Absent absent;
  ASSERT_TRUE(eventually([&] { return a.take_absent(&absent); }));
  EXPECT_EQ(absent.nid, kDoorB);
  EXPECT_EQ(absent.port, test_port());
  EXPECT_TRUE(absent.says_node);
  ASSERT_EQ(absent.datagram_bytes, sizeof text);
  EXPECT_STREQ(absent.datagram, text);
  close(other);
}

TEST(Doorplate, Somebody_there__is_not_absent_however_often_one_knocks) {
  Doorplate a;
  Doorplate b;
  ASSERT_TRUE(a.open(kDoorA, test_port()) && b.open(kDoorB, test_port()));
  for (int i = 0; i < 10000; ++i) a.knock(kDoorB, test_port());
  EXPECT_FALSE(is_absent(a, kDoorB));
}

TEST(Doorplate, Port__has_one_owner) {
  Doorplate a;
  Doorplate again;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  EXPECT_FALSE(again.open(kDoorA, test_port()));
}

TEST(Doorplate, Stopped_process__is_there_and_a_killed_one_is_not) {
  Doorplate a;
  ASSERT_TRUE(a.open(kDoorA, test_port()));
  ChildProcess child([] {
    Doorplate b;
    if (!b.open(kDoorB, test_port())) return 1;
    for (;;) pause();
  });
  ASSERT_TRUE(eventually([&] { return !is_absent(a, kDoorB); }));
  child.send_signal(SIGSTOP);
  EXPECT_FALSE(is_absent(a, kDoorB));
  child.kill_now();
  EXPECT_TRUE(is_absent(a, kDoorB));
}

}  // namespace
}  // namespace portofu
