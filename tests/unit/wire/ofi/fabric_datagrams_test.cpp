#include "engine/wire/ofi/fabric_datagrams.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "engine/topology/socket_address.h"
#include "engine/wire/reliable/frame.h"
#include "tests/process/child_process.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

const std::uint32_t kSenderNode = test_network() + 2;
const std::uint32_t kReceiverNode = test_network() + 3;
const std::uint32_t kThirdNode = test_network() + 4;

/// A PID, and so a port, that no other test uses at the same time, most likely. Children keep it.
std::uint32_t datagram_pid() {
  static const std::uint32_t pid = 10000 + static_cast<std::uint32_t>(getpid()) % 20000;
  return pid;
}

FabricOptions datagram_options(std::uint32_t nid) {
  FabricOptions options;
  options.self = {nid, datagram_pid()};
  options.job_key = 77;
  options.uid = geteuid();
  return options;
}

/// An endpoint and what it counts.
struct End {
  explicit End(const FabricOptions& options) : id(options.self) {
    std::string why;
    endpoint = FabricDatagrams::open(options, Counters(*shared), &why);
    EXPECT_NE(endpoint, nullptr) << why;
    buffer = PacketBuffer(endpoint->max_bytes());
  }

  std::uint64_t count(Counter counter) const { return Counters(*shared).get(counter); }

  bool send(ProcessId to, const std::string& text) {
    return endpoint->send(to, TrafficClass::kRequest, std::as_bytes(std::span(text)), {});
  }

  /// Waits for the next datagram, for 10 s at most. @return empty: there was none
  std::string take() {
    std::uint32_t bytes = 0;
    eventually([&] { return endpoint->has_datagrams() && (bytes = endpoint->receive(buffer.data(), &source)) > 0; });
    return {reinterpret_cast<const char*>(buffer.data()), bytes};
  }

  /// @return true if it is told within a second that the peer is not there
  bool is_unreachable(ProcessId peer) {
    for (int i = 0; i < 1000; ++i) {
      ProcessId told;
      if (endpoint->has_datagrams() && endpoint->take_unreachable(&told)) return told == peer;
      send(peer, "are you there?");
      usleep(1000);
    }
    return false;
  }

  /// Looks for a while, so that what has come is dealt with.
  void look() {
    for (int i = 0; i < 200; ++i) {
      endpoint->may_sleep();
      if (endpoint->has_datagrams()) endpoint->receive(buffer.data(), &source);
      usleep(100);
    }
  }

  std::unique_ptr<CountersShared> shared = std::make_unique<CountersShared>();
  ProcessId id;
  std::unique_ptr<FabricDatagrams> endpoint;
  PacketBuffer buffer;
  ProcessId source;
};

/// A socket that sends what it likes.
struct Stranger {
  Stranger(std::uint32_t nid, std::uint16_t port) : fd(socket(AF_INET, SOCK_DGRAM, 0)) {
    const sockaddr_in own = socket_address(nid, port);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  }
  ~Stranger() { close(fd); }

  void send(const End& to, const DatagramEnvelope& envelope, const std::string& rest) const {
    std::string bytes(reinterpret_cast<const char*>(&envelope), sizeof envelope);
    send_raw(to, bytes + rest);
  }
  void send_raw(const End& to, const std::string& bytes) const {
    const sockaddr_in place = socket_address(to.id.nid, static_cast<std::uint16_t>(to.id.pid));
    sendto(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&place), sizeof place);
  }

  int fd;
};

DatagramEnvelope envelope_of(ProcessId id) {
  DatagramEnvelope envelope{0, kDatagramMagic, 77, geteuid(), id.nid, id.pid};
  seal_envelope(envelope);
  return envelope;
}

TEST(FabricDatagrams, Datagram__arrives_with_its_source) {
  End a(datagram_options(kSenderNode));
  End b(datagram_options(kReceiverNode));
  ASSERT_TRUE(a.send(b.id, "one"));
  EXPECT_EQ(b.take(), "one");
  EXPECT_EQ(b.source, a.id);
  ASSERT_TRUE(b.send(a.id, "two"));
  EXPECT_EQ(a.take(), "two");
  EXPECT_EQ(a.source, b.id);
}

TEST(FabricDatagrams, Longest_datagram__is_long_enough_and_arrives_whole_from_two_parts) {
  End a(datagram_options(kSenderNode));
  End b(datagram_options(kReceiverNode));
  const std::uint32_t most = a.endpoint->max_bytes();
  ASSERT_GE(most, kMinDatagramBytes);
  std::string text(most, 'x');
  for (std::uint32_t i = 0; i < most; ++i) text[i] = static_cast<char>('a' + i % 26);
  const auto bytes = std::as_bytes(std::span(text));
  ASSERT_TRUE(a.endpoint->send(b.id, TrafficClass::kAnswer, bytes.first(64), bytes.subspan(64)));
  EXPECT_EQ(b.take(), text);
}

TEST(FabricDatagrams, Many__are_delivered_or_lost_but_never_mixed_up) {
  End a(datagram_options(kSenderNode));
  End b(datagram_options(kReceiverNode));
  int next = 0;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(eventually([&] { return a.send(b.id, std::to_string(i)); }));
    if (i % 16 != 15) continue;
    for (std::string text = b.take(); !text.empty(); text = b.endpoint->has_datagrams() ? b.take() : "") {
      EXPECT_GE(std::stoi(text), next) << "Nothing is doubled on this machine.";
      next = std::stoi(text) + 1;
    }
  }
}

TEST(FabricDatagrams, Foreign_job_user_or_place__is_refused_and_counted) {
  FabricOptions options = datagram_options(kReceiverNode);
  options.nodes = {kSenderNode, kReceiverNode};
  End b(options);
  FabricOptions foreign = datagram_options(kSenderNode);
  foreign.job_key = 78;
  {
    End a(foreign);
    a.send(b.id, "of another job");
    b.look();
  }
  EXPECT_EQ(b.count(Counter::kPacketsRefusedKey), 1u);
  foreign = datagram_options(kSenderNode);
  foreign.uid += 1;
  {
    End a(foreign);
    a.send(b.id, "of another user");
    b.look();
  }
  EXPECT_EQ(b.count(Counter::kPacketsRefusedKey), 2u);
  End c(datagram_options(kThirdNode));
  c.send(b.id, "from a node that is not of the job");
  b.look();
  EXPECT_EQ(b.count(Counter::kPacketsRefusedSource), 1u);
  End a(datagram_options(kSenderNode));
  a.send(b.id, "from a good one");
  EXPECT_EQ(b.take(), "from a good one");
}

TEST(FabricDatagrams, Envelope__is_believed_only_with_the_right_checksum_and_address) {
  End a(datagram_options(kSenderNode));
  End b(datagram_options(kReceiverNode));
  const Stranger stranger(kThirdNode, 0);
  DatagramEnvelope damaged = envelope_of(a.id);
  damaged.pid ^= 4;
  stranger.send(b, damaged, "text");
  stranger.send_raw(b, "too short");
  stranger.send_raw(b, std::string(4000, 'l'));
  b.look();
  EXPECT_EQ(b.count(Counter::kPacketsRefusedMalformed), 3u);
  // b knows the address of a from here on.
  ASSERT_TRUE(b.send(a.id, "hello"));
  EXPECT_EQ(a.take(), "hello");
  stranger.send(b, envelope_of(a.id), "not from there");
  stranger.send(b, envelope_of(b.id), "from the process itself");
  b.look();
  EXPECT_EQ(b.count(Counter::kPacketsRefusedSource), 2u);
  ASSERT_TRUE(a.send(b.id, "from there"));
  EXPECT_EQ(b.take(), "from there");
}

TEST(FabricDatagrams, Datagram_of_a_knock__is_nothing_that_is_refused) {
  End b(datagram_options(kReceiverNode));
  const Stranger stranger(kThirdNode, 0);
  stranger.send_raw(b, "");
  stranger.send_raw(b, std::string(sizeof(Knock), 'k'));
  b.look();
  EXPECT_EQ(b.count(Counter::kPacketsRefusedMalformed), 0u);
}

// Kernels say it six times, and then once a second, whatever was sent.
TEST(FabricDatagrams, Nobody_at_the_address__is_told_with_the_time_at_which_a_datagram_found_nobody) {
  End a(datagram_options(kSenderNode));
  const std::uint64_t before_ns = a.endpoint->now_ns();
  FrameHeader frame{};
  frame.format = kFrameFormat;
  frame.sent_ns = before_ns - 5;
  const auto send_frame = [&] {
    return a.endpoint->send({kReceiverNode, datagram_pid()}, TrafficClass::kRequest,
                            std::as_bytes(std::span(&frame, 1)), {});
  };
  std::vector<std::uint64_t> told;
  ASSERT_TRUE(send_frame());
  ASSERT_TRUE(eventually([&] { return !send_frame(); })) << "what is known is not asked again before it was taken";
  ASSERT_TRUE(eventually([&] {
    ProcessId peer;
    if (a.endpoint->has_datagrams() && a.endpoint->take_unreachable(&peer)) {
      told.push_back(a.endpoint->unreachable_since_ns());
    }
    return told.size() >= 2;
  }));
  EXPECT_GE(std::count(told.begin(), told.end(), before_ns - 5), 1) << "a datagram";
  EXPECT_GE(std::count_if(told.begin(), told.end(), [&](std::uint64_t ns) { return ns >= before_ns; }), 1) << "a knock";
}

TEST(FabricDatagrams, Nobody_at_the_address__is_told) {
  End a(datagram_options(kSenderNode));
  EXPECT_TRUE(a.is_unreachable({kReceiverNode, datagram_pid()}));
  EXPECT_TRUE(a.is_unreachable({kReceiverNode, datagram_pid()})) << "once more";
}

TEST(FabricDatagrams, Stopped_process__is_there_and_a_killed_one_is_not) {
  End a(datagram_options(kSenderNode));
  const ProcessId peer{kReceiverNode, datagram_pid()};
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  ChildProcess child([&] {
    std::string why;
    CountersShared counters{};
    const auto endpoint = FabricDatagrams::open(datagram_options(kReceiverNode), Counters(counters), &why);
    if (write(ready[1], "!", 1) != 1) return 1;
    for (;;) pause();
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  child.send_signal(SIGSTOP);
  EXPECT_FALSE(a.is_unreachable(peer));
  child.kill_now();
  EXPECT_TRUE(a.is_unreachable(peer));
}

TEST(FabricDatagrams, Port__has_one_owner) {
  End a(datagram_options(kSenderNode));
  std::string why;
  EXPECT_EQ(FabricDatagrams::open(datagram_options(kSenderNode), Counters(*a.shared), &why), nullptr);
  EXPECT_NE(why.find(test_address(2) + ":" + std::to_string(datagram_pid())), std::string::npos) << why;
}

TEST(FabricDatagrams, Unknown_provider__is_a_clear_error) {
  FabricOptions options = datagram_options(kSenderNode);
  options.provider = "carrier_pigeon";
  CountersShared counters{};
  std::string why;
  EXPECT_EQ(FabricDatagrams::open(options, Counters(counters), &why), nullptr);
  EXPECT_NE(why.find("no provider of libfabric named carrier_pigeon has unreliable datagrams"), std::string::npos)
      << why;
}

bool is_readable(int fd, int timeout_ms) {
  pollfd waited{fd, POLLIN, 0};
  return poll(&waited, 1, timeout_ms) == 1;
}

TEST(FabricDatagrams, Wait_fd__is_readable_for_datagrams_for_absent_peers_and_for_what_it_attends) {
  End a(datagram_options(kSenderNode));
  End b(datagram_options(kReceiverNode));
  ASSERT_TRUE(eventually([&] { return !b.endpoint->has_datagrams() && b.endpoint->may_sleep(); }));
  EXPECT_FALSE(is_readable(b.endpoint->wait_fd(), 0));
  ASSERT_TRUE(a.send(b.id, "wake up"));
  EXPECT_TRUE(is_readable(b.endpoint->wait_fd(), 5000));
  EXPECT_EQ(b.take(), "wake up");

  ASSERT_TRUE(eventually([&] { return !a.endpoint->has_datagrams() && a.endpoint->may_sleep(); }));
  a.send({kThirdNode, datagram_pid()}, "nobody there");
  EXPECT_TRUE(is_readable(a.endpoint->wait_fd(), 5000));
  ProcessId absent;
  ASSERT_TRUE(eventually([&] { return a.endpoint->has_datagrams() && a.endpoint->take_unreachable(&absent); }));
  EXPECT_EQ(absent, (ProcessId{kThirdNode, datagram_pid()}));

  const int event = eventfd(0, EFD_NONBLOCK);
  int handled = 0;
  b.endpoint->attend(event, [&] {
    std::uint64_t value = 0;
    if (read(event, &value, sizeof value) == sizeof value) ++handled;
  });
  ASSERT_TRUE(eventually([&] { return !b.endpoint->has_datagrams() && b.endpoint->may_sleep(); }));
  const std::uint64_t one = 1;
  ASSERT_EQ(write(event, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_TRUE(is_readable(b.endpoint->wait_fd(), 5000));
  b.endpoint->may_sleep();
  EXPECT_EQ(handled, 1);
  close(event);
}

TEST(FabricDatagrams, Forked_child__sends_nothing_and_leaves_the_parent_what_it_has) {
  End a(datagram_options(kSenderNode));
  End b(datagram_options(kReceiverNode));
  ChildProcess child([&] {
    const bool over = a.endpoint->is_over() && a.send(b.id, "from the child") && !a.endpoint->has_datagrams();
    a.endpoint.reset();
    return over ? 0 : 1;
  });
  EXPECT_EQ(child.wait_status(), 0);
  EXPECT_FALSE(a.endpoint->is_over());
  ASSERT_TRUE(a.send(b.id, "from the parent"));
  EXPECT_EQ(b.take(), "from the parent");
}

/// A socket of the loopback network cannot send elsewhere.
TEST(FabricDatagrams, Way_that_the_system_closes__is_told_once) {
  constexpr std::uint32_t kElsewhere = 0xc0000209;  // 192.0.2.9, which is for examples.
  End sender(datagram_options(kSenderNode));
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(sender.send({kElsewhere, datagram_pid()}, "hello"));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("fi_inject of a datagram to node 192.0.2.9 failed: "), std::string::npos) << said;
  EXPECT_NE(said.find("routes"), std::string::npos) << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

}  // namespace
}  // namespace portofu
