#include "engine/wire/ofi/directory_socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "engine/topology/socket_address.h"
#include "tests/process/resources.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

const std::uint32_t kNodeA = test_network() + 2;
const std::uint32_t kNodeB = test_network() + 3;
const std::uint32_t kNodeC = test_network() + 5;
constexpr std::uint64_t kKey = 0x5000000300000500;

DirectoryOptions options_of(std::uint32_t nid, std::uint32_t job_key = 7) {
  const auto port = static_cast<std::uint16_t>(30000 + getpid() % 20000);
  return {nid, {port}, job_key, geteuid()};
}

bool nobody(std::uint64_t, const Knower&, NameOwner*) { return false; }

/// Of this process, with the sockets of questions that are under way.
std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

struct OwnCounters {
  CountersShared counters{};
};

/// A socket with counters of its own.
class Directory : private OwnCounters, public DirectorySocket {
 public:
  explicit Directory(const DirectoryOptions& options, Find find = nobody)
      : DirectorySocket(options, Counters(counters), std::move(find), [this](ProcessId process, std::uint64_t life) {
          moved.push_back(process);
          ended.push_back(life);
        }) {}
  std::uint64_t count(Counter counter) { return Counters(counters).get(counter); }
  std::vector<ProcessId> moved;
  std::vector<std::uint64_t> ended;
};

/// Answers questions in a thread, as an engine does on duty.
class Answering {
 public:
  Answering(const DirectoryOptions& options, ProcessId owner)
      : socket_(options, [owner](std::uint64_t key, const Knower& asker, NameOwner* found) {
          *found = {owner, asker.port != 0 ? 0 : kNamesMoving};
          return key == kKey;
        }) {
    EXPECT_TRUE(socket_.listen());
    thread_ = std::thread([this] {
      while (!stop_) {
        socket_.serve();
        usleep(500);
      }
    });
  }
  ~Answering() {
    stop_ = true;
    thread_.join();
  }

 private:
  Directory socket_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Asks until there is an answer, and answers meanwhile.
AskResult ask(DirectorySocket& socket, std::uint32_t nid, std::uint64_t key, NameOwner* owner) {
  AskResult result = AskResult::kAsking;
  for (; (result = socket.ask(nid, key, owner)) == AskResult::kAsking; usleep(500)) socket.serve();
  return result;
}

/// Node B is asked for the owner of a key that it has, and of another one.
void expect_owner_is_told(const DirectoryOptions& at_a, const DirectoryOptions& at_b) {
  const Answering b(at_b, {kNodeB, 4242});
  Directory a(at_a);
  NameOwner owner;
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kFound);
  EXPECT_EQ(owner, (ProcessId{kNodeB, 4242}));
  EXPECT_EQ(ask(a, kNodeB, kKey + 256, &owner), AskResult::kNobody);
}

TEST(DirectorySocket, Owner__is_told_by_the_node) { expect_owner_is_told(options_of(kNodeA), options_of(kNodeB)); }

TEST(DirectorySocket, Three_processes_of_a_node__listen_on_one_port_and_two_that_are_silent_do_not_matter) {
  Directory silent(options_of(kNodeB));
  Directory silent_too(options_of(kNodeB));
  ASSERT_TRUE(silent.listen() && silent_too.listen());
  const Answering b(options_of(kNodeB), {kNodeB, 1});
  Directory a(options_of(kNodeA));
  NameOwner owner;
  int found = 0;
  // Each try reaches a silent one with odds of two to three.
  for (int i = 0; i < 5; ++i) found += ask(a, kNodeB, kKey, &owner) == AskResult::kFound ? 1 : 0;
  EXPECT_EQ(found, 5);
}

TEST(DirectorySocket, Two_that_ask_each_other__both_get_an_answer) {
  const auto owner_of = [](std::uint32_t nid) {
    return [nid](std::uint64_t, const Knower&, NameOwner* owner) {
      *owner = {{nid, 9}};
      return true;
    };
  };
  Directory a(options_of(kNodeA), owner_of(kNodeA));
  Directory b(options_of(kNodeB), owner_of(kNodeB));
  ASSERT_TRUE(a.listen() && b.listen());
  // Nobody answers but those who ask.
  std::atomic<int> asking{2};
  const auto run = [&asking](DirectorySocket& socket, std::uint32_t other) {
    NameOwner owner;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(socket, other, kKey, &owner), AskResult::kFound);
    for (--asking; asking > 0; usleep(500)) socket.serve();
  };
  std::thread thread([&] { run(a, kNodeB); });
  run(b, kNodeA);
  thread.join();
}

TEST(DirectorySocket, Nobody_who_listens__is_known_at_once) {
  Directory a(options_of(kNodeA));
  NameOwner owner;
  const FairStopwatch watch;
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kNobody) << "the next one may be asked for at once";
  EXPECT_LT(watch.seconds(), 1);
}

TEST(DirectorySocket, Another_job__gets_no_answer_within_the_bound) {
  const Answering b(options_of(kNodeB, 8), {kNodeB, 1});
  Directory a(options_of(kNodeA));
  NameOwner owner;
  const FairStopwatch watch;
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kNoAnswer);
  EXPECT_LT(watch.seconds(), 7);
}

// The engine asks on duty: no call may wait for the answer, be it of a node that never gives one.
TEST(DirectorySocket, Silent_node__keeps_nobody_waiting_and_others_answer_meanwhile) {
  const std::uint32_t kSilentNode = test_network() + 4;
  Directory silent(options_of(kSilentNode));  // Its port is taken, and it never looks.
  ASSERT_TRUE(silent.listen());
  const Answering b(options_of(kNodeB), {kNodeB, 4242});
  Directory a(options_of(kNodeA));
  const auto begin = std::chrono::steady_clock::now();
  const FairStopwatch watch;
  const long slept = sleeps_of_thread();
  AskResult result = AskResult::kAsking;
  int answers = 0;
  long rests = 0;
  NameOwner owner;
  while (result == AskResult::kAsking) {
    result = a.ask(kSilentNode, kKey, &owner);
    answers += a.ask(kNodeB, kKey, &owner) == AskResult::kFound ? 1 : 0;
    usleep(200);
    ++rests;
  }
  EXPECT_EQ(result, AskResult::kNoAnswer);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4)) << "slow processes are given time";
  EXPECT_LT(watch.seconds(), 7);
  EXPECT_LE(sleeps_of_thread() - slept, rests + 3) << "a call has waited";
  EXPECT_GT(answers, 10);
}

/// That of the system with a clock of the test's own.
class ClockedKernel final : public Kernel {
 public:
  ClockedKernel() { use_kernel(this); }
  ~ClockedKernel() override { use_kernel(nullptr); }
  std::unique_ptr<DatagramSocket> open_socket(PortAddress at) override { return system_.open_socket(at); }
  std::uint64_t now_ns() override { return now_ms * 1'000'000; }
  bool draw_random(void* into, std::size_t bytes) override { return system_.draw_random(into, bytes); }
  void wait(std::span<DatagramSocket* const> sockets, const Meanwhile& meanwhile) override {
    system_.wait(sockets, meanwhile);
  }
  std::uint64_t now_ms = 1;

 private:
  Kernel& system_ = kernel();
};

/// @return milliseconds for which a node is asked that does not answer
std::uint64_t silence_ms(Patience patience) {
  Directory silent(options_of(kNodeB));
  EXPECT_TRUE(silent.listen());
  Directory a(options_of(kNodeA));
  NameOwner owner;
  ClockedKernel clocked;
  while (a.ask(kNodeB, kKey, &owner, patience) == AskResult::kAsking) ++clocked.now_ms;
  return clocked.now_ms;
}

// It is asked again because somebody may have begun there, but what goes there shall end soon.
TEST(DirectorySocket, Node_that_has_been_silent__is_asked_for_two_seconds_and_others_for_five) {
  EXPECT_NEAR(static_cast<double>(silence_ms(Patience::kFull)), 5000, 200);
  EXPECT_NEAR(static_cast<double>(silence_ms(Patience::kShort)), 2040, 100);
}

TEST(DirectorySocket, Many_questions__take_a_bounded_number_of_sockets) {
  Directory silent(options_of(kNodeB));
  ASSERT_TRUE(silent.listen());
  Directory a(options_of(kNodeA));
  NameOwner owner;
  const std::ptrdiff_t files = open_files();
  std::ptrdiff_t each = 0;
  for (std::uint64_t i = 0; i < 2 * DirectorySocket::kMostQuestions; ++i) {
    EXPECT_EQ(a.ask(kNodeB, kKey + 256 * i, &owner), AskResult::kAsking);
    if (i == 0) each = open_files() - files;
  }
  EXPECT_GT(each, 0);
  EXPECT_EQ(open_files() - files, each * static_cast<std::ptrdiff_t>(DirectorySocket::kMostQuestions));
}

// ---- Lies ----------------------------------------------------------------------------------------------------------

/// A message as it travels.
struct Message {
  std::uint32_t magic, job_key, uid, kind;
  std::uint64_t key, nonce;
  std::uint32_t pid, reserved;
};
constexpr std::uint32_t kFoundKind = 2;

/// A socket at a directory's port that says what a test wants.
class Liar {
 public:
  explicit Liar(std::uint32_t nid) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in own = socket_address(nid, options_of(nid).ports.front());
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    const timeval patience{5, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Liar() { close(fd_); }

  /// The next question that somebody puts here.
  Message hear() {
    Message message{};
    socklen_t length = sizeof asker_;
    EXPECT_EQ(recvfrom(fd_, &message, sizeof message, 0, reinterpret_cast<sockaddr*>(&asker_), &length),
              static_cast<ssize_t>(sizeof message));
    return message;
  }
  void answer(const Message& message) { send(asker_, message, sizeof message); }
  void tell(std::uint32_t nid, const Message& message, std::size_t bytes = sizeof(Message)) {
    send(socket_address(nid, options_of(nid).ports.front()), message, bytes);
  }

 private:
  void send(const sockaddr_in& to, const Message& message, std::size_t bytes) {
    std::byte data[2 * sizeof message]{};
    std::memcpy(data, &message, sizeof message);
    EXPECT_EQ(sendto(fd_, data, bytes, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes));
  }

  int fd_;
  sockaddr_in asker_{};
};

TEST(DirectorySocket, Questions_that_it_refuses__are_counted) {
  Liar liar(kNodeB);
  int asked = 0;
  Directory a(options_of(kNodeA), [&asked](std::uint64_t, const Knower&, NameOwner*) {
    ++asked;
    return false;
  });
  ASSERT_TRUE(a.listen());
  Directory honest(options_of(kNodeC));
  NameOwner owner;
  honest.ask(kNodeB, kKey, &owner);
  const Message good = liar.hear();
  Message bad = good;
  bad.job_key ^= 1;
  liar.tell(kNodeA, bad);
  bad = good;
  bad.uid ^= 1;
  liar.tell(kNodeA, bad);
  a.serve();
  EXPECT_EQ(a.count(Counter::kPacketsRefusedKey), 2u);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedMalformed), 0u);
  liar.tell(kNodeA, good, sizeof good - 1);
  liar.tell(kNodeA, good, sizeof good + 1);
  liar.tell(kNodeA, good, 0);
  bad = good;
  bad.magic ^= 1;
  liar.tell(kNodeA, bad);
  bad = good;
  bad.kind = kFoundKind;
  liar.tell(kNodeA, bad);
  a.serve();
  EXPECT_EQ(a.count(Counter::kPacketsRefusedMalformed), 5u);
  EXPECT_EQ(asked, 0);
  liar.tell(kNodeA, good);
  a.serve();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedKey), 2u);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedMalformed), 5u);
}

TEST(DirectorySocket, Answers_that_it_does_not_believe__are_counted_and_late_ones_are_not) {
  Liar liar(kNodeB);
  Directory a(options_of(kNodeA));
  NameOwner owner;
  EXPECT_EQ(a.ask(kNodeB, kKey, &owner), AskResult::kAsking);
  Message good = liar.hear();
  const auto says = [&](const Message& message) {
    liar.answer(message);
    return a.ask(kNodeB, kKey, &owner);
  };
  EXPECT_EQ(says(good), AskResult::kAsking) << "its own question";
  good.kind = kFoundKind;
  EXPECT_EQ(says(good), AskResult::kAsking) << "no process has the PID 0";
  good.pid = 77;
  EXPECT_EQ(a.count(Counter::kPacketsRefusedMalformed), 2u);
  Message bad = good;
  bad.job_key ^= 1;
  EXPECT_EQ(says(bad), AskResult::kAsking);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedKey), 1u);
  bad = good;
  bad.nonce ^= 1;
  EXPECT_EQ(says(bad), AskResult::kAsking);
  EXPECT_EQ(says(good), AskResult::kFound);
  EXPECT_EQ(owner, (ProcessId{kNodeB, 77}));
  EXPECT_EQ(a.count(Counter::kPacketsRefusedKey), 1u);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedMalformed), 2u);
}

TEST(DirectorySocket, Default_ports__are_in_their_range_and_differ_between_jobs) {
  EXPECT_NE(DirectorySocket::default_ports(1, 0), DirectorySocket::default_ports(2, 0));
  for (std::uint32_t key = 0; key < 100; ++key) {
    const std::vector<std::uint16_t> ports = DirectorySocket::default_ports(key, 1000);
    ASSERT_EQ(ports.size(), 2u);
    EXPECT_NE(ports.front(), ports.back());
    EXPECT_GE(std::min(ports.front(), ports.back()), 20000);
    EXPECT_LE(std::max(ports.front(), ports.back()), 29999);
  }
}

DirectoryOptions with_two_ports(std::uint32_t nid) {
  DirectoryOptions options = options_of(nid);
  options.ports.push_back(static_cast<std::uint16_t>(options.ports.front() + 1));
  return options;
}

/// A program that has nothing to do with us has this port of node B, and says nothing.
OwnDescriptor stranger_at(std::uint16_t port) {
  OwnDescriptor made(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = socket_address(kNodeB, port);
  EXPECT_EQ(bind(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return made;
}

TEST(DirectorySocket, First_port_of_a_stranger__leaves_the_second) {
  const DirectoryOptions at_b = with_two_ports(kNodeB);
  const OwnDescriptor stranger = stranger_at(at_b.ports.front());
  expect_owner_is_told(with_two_ports(kNodeA), at_b);
}

TEST(DirectorySocket, Who_had_to_take_the_second_port__is_found_when_the_first_is_free_again) {
  const DirectoryOptions at_b = with_two_ports(kNodeB);
  auto stranger = std::make_unique<OwnDescriptor>(stranger_at(at_b.ports.front()));
  const Answering b(at_b, {kNodeB, 4242});
  stranger.reset();
  Directory a(with_two_ports(kNodeA));
  NameOwner owner;
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kFound);
}

TEST(DirectorySocket, Two_ports_where_nobody_listens__say_that_there_is_nobody) {
  Directory a(with_two_ports(kNodeA));
  NameOwner owner;
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kNobody);
}

TEST(DirectorySocket, Both_ports_of_strangers__cannot_be_listened_at) {
  const DirectoryOptions at_b = with_two_ports(kNodeB);
  const OwnDescriptor first = stranger_at(at_b.ports.front()), second = stranger_at(at_b.ports.back());
  Directory b(at_b);
  EXPECT_FALSE(b.listen());
}

TEST(DirectorySocket, Who_listens_already__may_be_told_to_once_more) {
  Directory b(options_of(kNodeB));
  EXPECT_TRUE(b.listen());
  EXPECT_TRUE(b.listen());
}

/// Nothing is left half open, where it would take questions that nobody answers.
TEST(DirectorySocket, Who_lacks_descriptors__listens_when_there_are_some_again) {
  constexpr rlim_t kWanted = 3;  // Two sockets, and what waits at both.
  for (rlim_t spare = 0; spare < kWanted; ++spare) {
    Directory b(options_of(kNodeB), [](std::uint64_t, const Knower&, NameOwner* owner) {
      *owner = {{kNodeB, 77}, 0};
      return true;
    });
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    const int lowest = dup(0);
    close(lowest);
    limit.rlim_cur = static_cast<rlim_t>(lowest) + spare;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const bool listens = b.listen();
    const int error = errno;
    limit.rlim_cur = before;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_FALSE(listens);
    EXPECT_EQ(error, EMFILE);
    ASSERT_TRUE(b.listen()) << spare;
    EXPECT_NE(b.open_ear(), 0) << spare;
    Directory a(options_of(kNodeA));
    NameOwner owner;
    AskResult result = AskResult::kAsking;
    for (int i = 0; i < 1000 && result == AskResult::kAsking; ++i) {
      result = a.ask(kNodeB, kKey, &owner);
      pollfd waited{b.fd(), POLLIN, 0};
      if (poll(&waited, 1, 5) == 1) b.serve();
    }
    EXPECT_EQ(result, AskResult::kFound) << spare;
    EXPECT_EQ(owner.pid, 77u);
  }
}

TEST(DirectorySocket, Who_can_be_told__may_remember_the_answer) {
  const Answering b(options_of(kNodeB), {kNodeB, 4242});
  Directory a(options_of(kNodeA));
  NameOwner owner;
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kFound);
  EXPECT_EQ(owner.names, kNamesMoving) << "it does not listen";
  ASSERT_TRUE(a.listen());
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kFound);
  EXPECT_EQ(owner.names, 0u);
}

/// Where a socket can be told.
Knower ear_of(Directory& socket) {
  Knower ear;
  Directory b(options_of(kNodeB), [&ear](std::uint64_t, const Knower& asker, NameOwner* owner) {
    ear = asker;
    *owner = {{kNodeB, 9}};
    return true;
  });
  EXPECT_TRUE(b.listen());
  NameOwner owner;
  while (socket.ask(kNodeB, kKey, &owner) == AskResult::kAsking) b.serve();
  return ear;
}

TEST(DirectorySocket, News__are_heard_and_answered_and_make_questions_anew) {
  Directory a(options_of(kNodeA));
  ASSERT_TRUE(a.listen());
  const Knower ear = ear_of(a);
  EXPECT_EQ(ear.nid, kNodeA);
  ASSERT_NE(ear.port, 0u);
  NameOwner owner;
  EXPECT_EQ(a.ask(kNodeB, kKey, &owner), AskResult::kAsking);
  const int teller = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto bound_to = [teller](std::uint32_t nid) {
    const sockaddr_in from = socket_address(nid, 0);
    return bind(teller, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0;
  };
  ASSERT_TRUE(bound_to(kNodeB));
  const sockaddr_in to = socket_address(ear.nid, ear.port);
  ASSERT_EQ(connect(teller, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  NamesNews news{kNewsMagic, options_of(kNodeA).job_key, geteuid(), NewsKind::kMoved, kNodeB, 9, 77, 5};
  const auto tell = [&] { return send(teller, &news, sizeof news, 0) == static_cast<ssize_t>(sizeof news); };
  ASSERT_TRUE(tell());
  const std::ptrdiff_t files = open_files();
  a.serve();
  EXPECT_LT(open_files(), files) << "the answer that is under way may be older";
  EXPECT_EQ(a.moved, (std::vector<ProcessId>{{kNodeB, 9}}));
  EXPECT_EQ(a.ended, (std::vector<std::uint64_t>{5}));
  NamesNews answer{};
  ASSERT_EQ(recv(teller, &answer, sizeof answer, MSG_DONTWAIT), static_cast<ssize_t>(sizeof answer));
  EXPECT_EQ(answer.kind, NewsKind::kHeard);
  EXPECT_EQ(answer.nonce, 77u);
  news.nid = kNodeA;  // Not the node that tells.
  ASSERT_TRUE(tell());
  news.nid = kNodeB;
  news.job_key += 1;
  ASSERT_TRUE(tell());
  a.serve();
  EXPECT_EQ(a.moved.size(), 1u);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedMalformed), 1u);
  EXPECT_EQ(a.count(Counter::kPacketsRefusedKey), 1u);
  close(teller);
}

}  // namespace
}  // namespace portofu
