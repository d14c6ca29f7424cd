#include "engine/wire/ofi/ofi_wire.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "tests/process/child_process.h"
#include "tests/process/resources.h"
#include "tests/support/eventually.h"
#include "tests/unit/wire/ofi/ofi_pair.h"

namespace portofu {
namespace {

std::vector<std::uint64_t> numbers(std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(OfiWire, Packets__arrive_in_order_with_their_payload) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(ofi_options(kNodeB));
  Link* link = connect(a, b);
  ASSERT_NE(link, nullptr);
  std::vector<std::uint64_t> got;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(eventually([&] {
      b.take(&got);
      a.wire->has_packets();
      return send(a, *link, i, std::string(i * 16, 'x'));
    }));
  }
  EXPECT_TRUE(eventually([&] {
    a.wire->has_packets();
    b.take(&got);
    return got.size() == 1000;
  }));
  EXPECT_EQ(got, numbers(1000));
  EXPECT_EQ(b.last_payload.size(), 999u * 16);
  EXPECT_EQ(b.last_source, a.id);
}

TEST(OfiWire, Both_ways_at_once__nothing_is_lost) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(ofi_options(kNodeB));
  // Both begin before either has heard of the other.
  Link* to_b = nullptr;
  Link* to_a = nullptr;
  ASSERT_TRUE(eventually([&] {
    const bool one = to_b != nullptr || a.wire->connect(b.id, &to_b) == ConnectResult::kConnected;
    const bool other = to_a != nullptr || b.wire->connect(a.id, &to_a) == ConnectResult::kConnected;
    return one && other;
  }));
  std::vector<std::uint64_t> at_a;
  std::vector<std::uint64_t> at_b;
  std::uint64_t sent_a = 0;
  std::uint64_t sent_b = 0;
  EXPECT_TRUE(eventually([&] {
    while (sent_a < 500 && send(a, *to_b, sent_a, "ping")) ++sent_a;
    while (sent_b < 500 && send(b, *to_a, sent_b, "pong")) ++sent_b;
    while (a.take(&at_a)) {
    }
    while (b.take(&at_b)) {
    }
    return at_a.size() == 500 && at_b.size() == 500;
  }));
  EXPECT_EQ(at_a, numbers(500));
  EXPECT_EQ(at_b, numbers(500));
}

TEST(OfiWire, Peer_that_takes_nothing__costs_a_window_of_packets) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(ofi_options(kNodeB));
  Link* link = connect(a, b);
  EXPECT_TRUE(a.wire->has_room_again());  // The link has just got its first.
  std::uint64_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    if (send(a, *link, sent)) ++sent;
    a.wire->has_packets();
    b.wire->has_packets();
  }
  EXPECT_EQ(sent, kOfiWindowPackets);
  EXPECT_FALSE(a.wire->has_room_again());
  std::vector<std::uint64_t> got;
  EXPECT_TRUE(eventually([&] { return b.take(&got) && got.size() == kOfiWindowPackets; }));
  EXPECT_TRUE(eventually([&] {
    a.wire->has_packets();
    b.wire->has_packets();
    return a.wire->has_room_again();
  }));
  EXPECT_TRUE(send(a, *link, sent));
}

TEST(OfiWire, Nobody_at_the_address__is_told_and_not_waited_for) {
  OfiEnd a(ofi_options(kNodeA));
  Link* link = nullptr;
  ConnectResult result = ConnectResult::kInProgress;
  timespec begin{};
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  EXPECT_TRUE(eventually([&] {
    result = a.wire->connect({kNodeB, test_pid()}, &link);
    a.wire->check_peers();
    return result != ConnectResult::kInProgress;
  }));
  clock_gettime(CLOCK_MONOTONIC, &end);
  EXPECT_EQ(result, ConnectResult::kNoSuchPeer);
  EXPECT_LE(end.tv_sec - begin.tv_sec, 1);
}

/// What was found out before is no answer for who asks later.
TEST(OfiWire, Who_asks_anew__is_not_told_that_nobody_was_there) {
  OfiEnd a(ofi_options(kNodeA));
  const ProcessId id{kNodeB, test_pid()};
  Link* link = nullptr;
  EXPECT_EQ(a.wire->connect(id, &link), ConnectResult::kInProgress);
  EXPECT_TRUE(eventually([&] {
    a.wire->check_peers();
    return a.wire->has_room_again();
  })) << "the attempt has come to an end";
  OfiEnd b(ofi_options(kNodeB));
  a.wire->ask_anew(id);
  ConnectResult result = ConnectResult::kInProgress;
  EXPECT_TRUE(eventually([&] {
    b.wire->has_packets();
    a.wire->check_peers();
    result = a.wire->connect(id, &link);
    return result != ConnectResult::kInProgress;
  }));
  EXPECT_EQ(result, ConnectResult::kConnected);
}

/// A process of a node, by another port than that of ofi_options.
/// @param port_offset  below kTestPids
OfiOptions on_node(std::uint32_t nid, std::uint32_t port_offset, std::uint64_t node) {
  OfiOptions options = ofi_options(nid);
  options.self.pid += port_offset;
  options.node = node;
  return options;
}

ConnectResult try_to_connect(OfiEnd& from, OfiEnd& to) {
  Link* link = nullptr;
  ConnectResult result = ConnectResult::kInProgress;
  EXPECT_TRUE(eventually([&] {
    to.wire->has_packets();
    result = from.wire->connect(to.id, &link);
    return result != ConnectResult::kInProgress;
  }));
  return result;
}

TEST(OfiWire, Two_nodes_with_one_nid__are_noticed_and_the_second_is_refused) {
  OfiEnd to(on_node(kNodeB, 0, 3));
  OfiEnd first(on_node(kNodeA, 0, 1));
  OfiEnd neighbour(on_node(kNodeA, 1, 1));
  OfiEnd stranger(on_node(kNodeA, 2, 2));
  OfiEnd silent(on_node(kNodeA, 3, 0));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(try_to_connect(first, to), ConnectResult::kConnected);
  EXPECT_EQ(try_to_connect(neighbour, to), ConnectResult::kConnected) << "of the same node";
  EXPECT_EQ(try_to_connect(silent, to), ConnectResult::kConnected) << "it does not say which";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(try_to_connect(stranger, to), ConnectResult::kRefused);
  EXPECT_EQ(try_to_connect(stranger, to), ConnectResult::kRefused);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("two nodes have the NID " + test_address(2)), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "once";
}

TEST(OfiWire, Node_that_has_started_anew__is_heard) {
  OfiEnd to(on_node(kNodeB, 0, 3));
  {
    OfiEnd before(on_node(kNodeA, 0, 1));
    EXPECT_EQ(try_to_connect(before, to), ConnectResult::kConnected);
  }
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(eventually([&] {
    to.wire->has_packets();
    return to.wire->take_closed_source(&source, &context);
  }));
  OfiEnd after(on_node(kNodeA, 1, 2));
  EXPECT_EQ(try_to_connect(after, to), ConnectResult::kConnected);
}

TEST(OfiWire, Disconnect__lets_all_packets_arrive_and_then_ends_the_source) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(ofi_options(kNodeB));
  Link* link = connect(a, b);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(send(a, *link, i));
  a.wire->disconnect(link);
  std::vector<std::uint64_t> got;
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(eventually([&] {
    a.wire->has_packets();
    b.take(&got);
    return b.wire->take_closed_source(&source, &context);
  }));
  EXPECT_EQ(got, numbers(10));
  EXPECT_EQ(source, a.id);
  EXPECT_FALSE(b.wire->take_closed_source(&source, &context));
}

TEST(OfiWire, Source_that_is_given_up__is_drained_and_its_sender_told) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(ofi_options(kNodeB));
  Link* link = connect(a, b);
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(send(a, *link, 0, "asked"));
  ASSERT_TRUE(eventually([&] {
    a.wire->has_packets();
    return b.wire->has_packets();
  }));
  b.wire->give_up(a.id);
  std::vector<std::uint64_t> got;
  EXPECT_TRUE(eventually([&] {
    a.wire->check_peers();
    b.wire->check_peers();
    b.take(&got);
    return link->lost && got.size() == 1;
  }));
}

TEST(OfiWire, Second_link__waits_until_the_source_of_the_first_is_taken) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(ofi_options(kNodeB));
  Link* link = connect(a, b);
  ASSERT_TRUE(send(a, *link, 0));
  a.wire->disconnect(link);
  std::vector<std::uint64_t> got;
  EXPECT_TRUE(eventually([&] {
    a.wire->has_packets();
    return b.take(&got);
  }));
  link = connect(a, b);
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(send(a, *link, 1));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(b.take(&got));
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(b.wire->take_closed_source(&source, &context));
  EXPECT_TRUE(eventually([&] { return b.take(&got); }));
  EXPECT_EQ(got, numbers(2));
}

TEST(OfiWire, Wire_that_is_destroyed__leaves_nothing_under_way) {
  OfiEnd b(ofi_options(kNodeB));
  ChildProcess child([&] {
    // The child has a wire of its own; the parent's it only inherits.
    OfiEnd a(ofi_options(kNodeA));
    Link* link = nullptr;
    if (!eventually([&] { return a.wire->connect(b.id, &link) == ConnectResult::kConnected; })) return 1;
    for (std::uint64_t i = 0; i < 50; ++i) {
      if (!send(a, *link, i, std::string(16000, 'x'))) return 2;
    }
    return 0;
  });
  std::vector<std::uint64_t> got;
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(eventually([&] {
    b.take(&got);
    return b.wire->take_closed_source(&source, &context);
  }));
  EXPECT_EQ(child.wait_status(), 0);
  EXPECT_EQ(got, numbers(50));
}

TEST(OfiWire, Peer_that_is_killed__loses_the_link_and_ends_its_source_within_a_second) {
  OfiEnd a(ofi_options(kNodeA));
  ChildProcess child([&] {
    OfiEnd b(ofi_options(kNodeB));
    Link* link = nullptr;
    std::vector<std::uint64_t> got;
    eventually([&] { return b.wire->connect(a.id, &link) == ConnectResult::kConnected; });
    send(b, *link, 0);
    for (;;) b.take(&got);
    return 0;
  });
  Link* link = nullptr;
  const ProcessId id{kNodeB, test_pid()};
  ASSERT_TRUE(eventually([&] { return a.wire->connect(id, &link) == ConnectResult::kConnected; }));
  std::vector<std::uint64_t> got;
  ASSERT_TRUE(eventually([&] { return a.take(&got); }));
  child.kill_now();
  const FairStopwatch watch;
  ProcessId source;
  void* context = nullptr;
  bool ended = false;
  EXPECT_TRUE(eventually([&] {
    a.wire->check_peers();
    a.take(&got);
    ended = ended || a.wire->take_closed_source(&source, &context);
    return link->lost && ended;
  }));
  EXPECT_LT(watch.seconds(), 1.2);
  EXPECT_EQ(a.wire->claim(*link, 0), nullptr);
}

/// A process that sends three packets to `a` when it is told to, and leaves.
struct ShortLived {
  explicit ShortLived(const OfiEnd& a) {
    EXPECT_EQ(pipe(go), 0);
    child.emplace([this, &a] {
      OfiEnd b(ofi_options(kNodeB, 1));
      Link* back = nullptr;
      char told = 0;
      eventually([&] { return b.wire->connect(a.id, &back) == ConnectResult::kConnected; });
      send(b, *back, 0);
      std::vector<std::uint64_t> got;
      while (got.empty()) b.take(&got);
      if (read(go[0], &told, 1) != 1) return 1;
      for (std::uint64_t i = 1; i < 4; ++i) send(b, *back, i);
      _exit(0);
    });
  }
  ~ShortLived() {
    close(go[0]);
    close(go[1]);
  }
  /// What it sends lies in the fabric; nobody has looked at it.
  void leave() {
    ASSERT_EQ(write(go[1], "x", 1), 1);
    EXPECT_EQ(child->wait_status(), 0);
  }

  int go[2] = {-1, -1};
  std::optional<ChildProcess> child;
};

TEST(OfiWire, Peer_that_leaves__is_heard_before_its_link_is_given_up) {
  OfiEnd a(ofi_options(kNodeA));
  ShortLived b(a);
  Link* link = nullptr;
  const ProcessId id{kNodeB, test_pid()};
  std::vector<std::uint64_t> got;
  ASSERT_TRUE(eventually([&] { return a.wire->connect(id, &link) == ConnectResult::kConnected; }));
  ASSERT_TRUE(eventually([&] { return a.take(&got); }));
  ASSERT_TRUE(send(a, *link, 0));
  b.leave();
  EXPECT_TRUE(eventually([&] {
    a.wire->check_peers();
    return link->lost;
  }));
  const std::uint64_t life = link->life;
  EXPECT_EQ(life, 1u);
  EXPECT_TRUE(a.wire->has_unheard(id, life));
  EXPECT_FALSE(a.wire->has_unheard(id, life + 1));
  while (a.take(&got)) {
  }
  EXPECT_EQ(got, numbers(4));
  EXPECT_FALSE(a.wire->has_unheard(id, life));
}

TEST(OfiWire, Peer_that_leaves__is_heard_before_its_next_life_is) {
  OfiEnd a(ofi_options(kNodeA));
  std::vector<std::uint64_t> got;
  Link* link = nullptr;
  const ProcessId id{kNodeB, test_pid()};
  {
    ShortLived b(a);
    ASSERT_TRUE(eventually([&] { return a.wire->connect(id, &link) == ConnectResult::kConnected; }));
    ASSERT_TRUE(eventually([&] { return a.take(&got); }));
    ASSERT_TRUE(send(a, *link, 0));
    b.leave();
  }
  OfiEnd next(ofi_options(kNodeB, 2));
  Link* back = nullptr;
  ASSERT_TRUE(eventually([&] {
    next.wire->connect(a.id, &back);
    a.wire->check_peers();
    return link->lost;
  }));
  EXPECT_TRUE(a.wire->has_unheard(id, 1));
  while (a.take(&got)) {
  }
  EXPECT_EQ(got, numbers(4));
}

TEST(OfiWire, Peer_that_is_stopped__is_not_taken_for_dead) {
  OfiEnd a(ofi_options(kNodeA));
  ChildProcess child([&] {
    OfiEnd b(ofi_options(kNodeB));
    std::vector<std::uint64_t> got;
    while (got.size() < 2 * kOfiWindowPackets) b.take(&got);
    return 0;
  });
  Link* link = nullptr;
  const ProcessId id{kNodeB, test_pid()};
  ASSERT_TRUE(eventually([&] { return a.wire->connect(id, &link) == ConnectResult::kConnected; }));
  child.send_signal(SIGSTOP);
  std::uint64_t sent = 0;
  const std::string payload(16000, 'x');
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (std::chrono::steady_clock::now() < end) {
    if (send(a, *link, sent, payload)) ++sent;
    a.wire->check_peers();
    usleep(1000);
  }
  EXPECT_FALSE(link->lost);
  EXPECT_EQ(sent, kOfiWindowPackets);
  child.send_signal(SIGCONT);
  EXPECT_TRUE(eventually([&] {
    a.wire->check_peers();
    if (send(a, *link, sent, payload)) ++sent;
    return sent >= 2 * kOfiWindowPackets;
  }));
  a.wire.reset();
  EXPECT_EQ(child.wait_status(), 0);
}

TEST(OfiWire, Process_that_comes_back__is_another_life) {
  OfiEnd a(ofi_options(kNodeA));
  auto b = std::make_unique<OfiEnd>(ofi_options(kNodeB, 1));
  Link* link = connect(a, *b);
  std::vector<std::uint64_t> got;
  ASSERT_TRUE(send(a, *link, 0));
  ASSERT_TRUE(eventually([&] { return b->take(&got); }));
  b.reset();
  b = std::make_unique<OfiEnd>(ofi_options(kNodeB, 2));
  // What is sent on the old link is not delivered to the new life, and the link is lost.
  EXPECT_TRUE(send(a, *link, 1));
  EXPECT_TRUE(eventually([&] {
    a.wire->check_peers();
    b->wire->has_packets();
    return link->lost;
  }));
  a.wire->disconnect(link);
  link = connect(a, *b);
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(send(a, *link, 2));
  EXPECT_TRUE(eventually([&] { return b->take(&got); }));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 2}));
}

/// The first life of a process of kNodeB: it sends something, and listens as long as it lives.
int greet_until_killed(ProcessId other) {
  OfiEnd b(ofi_options(kNodeB, 1));
  std::vector<std::uint64_t> got;
  Link* link = nullptr;
  eventually([&] { return b.wire->connect(other, &link) == ConnectResult::kConnected; });
  send(b, *link, 0);
  for (;;) b.take(&got);
}

// The link back to one who has said hello is made unseen. Its node says that this life is over before the engine asks
// for a link.
TEST(OfiWire, Link_to_a_life_that_is_over__is_not_handed_out) {
  OfiEnd a(ofi_options(kNodeA));
  const ProcessId id{kNodeB, test_pid()};
  std::vector<std::uint64_t> got;
  ChildProcess child([&] { return greet_until_killed(a.id); });
  ASSERT_TRUE(eventually([&] { return a.take(&got); })) << "it welcomes us before it sends anything";
  child.kill_now();
  a.wire->end_life(id, 1);
  OfiEnd b(ofi_options(kNodeB, 2));
  const Link* const link = connect(a, b);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->life, 2u);
}

// Its node has told us of the end sooner than the fabric brings its answer.
TEST(OfiWire, Answer_of_a_life_that_is_over__makes_no_link) {
  OfiEnd a(ofi_options(kNodeA));
  const ProcessId id{kNodeB, test_pid()};
  std::vector<std::uint64_t> got;
  ChildProcess child([&] { return greet_until_killed(a.id); });
  Link* link = nullptr;
  ConnectResult result = ConnectResult::kNoSuchPeer;  // It may not have begun.
  EXPECT_TRUE(eventually([&] {
    result = a.wire->connect(id, &link);
    a.wire->end_life(id, 1);
    return a.take(&got);
  })) << "it welcomes us before it sends anything";
  EXPECT_NE(result, ConnectResult::kConnected);
  EXPECT_NE(a.wire->connect(id, &link), ConnectResult::kConnected);
  child.kill_now();
  OfiEnd b(ofi_options(kNodeB, 2));
  link = connect(a, b);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->life, 2u);
}

// Nobody says anything to us by himself: neither the dead nor who has his address now.
TEST(OfiWire, Process_that_comes_back_and_is_silent__does_not_keep_the_links_of_its_former_life) {
  OfiEnd a(ofi_options(kNodeA));
  const ProcessId id{kNodeB, test_pid()};
  Link* link = nullptr;
  std::vector<std::uint64_t> got;
  {
    ChildProcess child([&] {
      OfiEnd b(ofi_options(kNodeB, 1));
      Link* back = nullptr;
      eventually([&] { return b.wire->connect(a.id, &back) == ConnectResult::kConnected; });
      send(b, *back, 0);
      for (;;) b.take(&got);
      return 0;
    });
    ASSERT_TRUE(eventually([&] { return a.wire->connect(id, &link) == ConnectResult::kConnected; }));
    ASSERT_TRUE(eventually([&] { return a.take(&got); }));
    child.kill_now();
  }
  OfiEnd b(ofi_options(kNodeB, 2));
  const FairStopwatch watch;
  ProcessId source;
  void* context = nullptr;
  bool ended = false;
  EXPECT_TRUE(eventually([&] {
    a.wire->check_peers();
    a.take(&got);
    b.take(&got);
    ended = ended || a.wire->take_closed_source(&source, &context);
    return link->lost && ended;
  }));
  EXPECT_LT(watch.seconds(), 1.5);
}

/// A wire with these options hears nobody of the usual ones.
void expect_refused(const OfiOptions& options, Counter counter) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(options);
  Link* link = nullptr;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(a.wire->connect(b.id, &link), ConnectResult::kInProgress);
    b.wire->has_packets();
    return b.count(counter) > 0;
  }));
}

TEST(OfiWire, Another_job__is_refused_and_counted) {
  OfiOptions options = ofi_options(kNodeB);
  options.job_key = 78;
  expect_refused(options, Counter::kPacketsRefusedKey);
}

TEST(OfiWire, Another_user__is_refused_and_counted) {
  OfiOptions options = ofi_options(kNodeB);
  ++options.uid;
  expect_refused(options, Counter::kPacketsRefusedKey);
}

TEST(OfiWire, Node_outside_the_job__is_refused_and_counted) {
  OfiOptions options = ofi_options(kNodeB);
  options.nodes = {kNodeB, kNodeB + 1};
  expect_refused(options, Counter::kPacketsRefusedSource);
}

TEST(OfiWire, Port_that_is_taken__gives_the_reason) {
  OfiEnd a(ofi_options(kNodeA));
  OfiWire second(ofi_options(kNodeA), Counters(*a.shared));
  std::string why;
  EXPECT_FALSE(second.open(&why));
  EXPECT_NE(why.find(test_address(2)), std::string::npos) << why;
}

TEST(OfiWire, Base_port__is_added_to_the_pid) {
  OfiOptions options = ofi_options(kNodeA);
  options.self.pid = 5;
  options.base_port = test_pid() - options.self.pid;  // No other test's port.
  OfiEnd a(options);
  options.self.nid = kNodeB;
  OfiEnd b(options);
  EXPECT_NE(connect(a, b), nullptr);
}

TEST(OfiWire, Wait_fd__is_readable_when_a_packet_comes_and_not_before) {
  OfiEnd a(ofi_options(kNodeA));
  OfiEnd b(ofi_options(kNodeB));
  Link* link = connect(a, b);
  EXPECT_TRUE(eventually([&] {
    a.wire->has_packets();
    return !b.wire->has_packets();
  }));
  pollfd waited{b.wire->wait_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, 50), 0);
  ASSERT_FALSE(b.wire->has_packets());
  ASSERT_TRUE(send(a, *link, 0));
  EXPECT_EQ(poll(&waited, 1, 5000), 1);
  std::vector<std::uint64_t> got;
  EXPECT_TRUE(eventually([&] { return b.take(&got); }));
}

}  // namespace
}  // namespace portofu
