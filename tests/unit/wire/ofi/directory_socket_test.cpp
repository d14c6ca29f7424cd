#include "engine/wire/ofi/directory_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace portofu {
namespace {

constexpr std::uint32_t kNodeA = 0x7f000002;
constexpr std::uint32_t kNodeB = 0x7f000003;
constexpr std::uint64_t kKey = 0x5000000300000500;

DirectoryOptions options_of(std::uint32_t nid, std::uint32_t job_key = 7) {
  const auto port = static_cast<std::uint16_t>(30000 + getpid() % 20000);
  return {nid, port, job_key, geteuid()};
}

/// Answers questions in a thread, as an engine does on duty.
class Answering {
 public:
  Answering(const DirectoryOptions& options, ProcessId owner)
      : socket_(options, [owner](std::uint64_t key, ProcessId* found) {
          *found = owner;
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
  DirectorySocket socket_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

bool nobody(std::uint64_t, ProcessId*) { return false; }

/// Asks until there is an answer, and answers meanwhile.
AskResult ask(DirectorySocket& socket, std::uint32_t nid, std::uint64_t key, ProcessId* owner) {
  AskResult result = AskResult::kAsking;
  for (; (result = socket.ask(nid, key, owner)) == AskResult::kAsking; usleep(500)) socket.serve();
  return result;
}

TEST(DirectorySocket, Owner__is_told_by_the_node) {
  const Answering b(options_of(kNodeB), {kNodeB, 4242});
  DirectorySocket a(options_of(kNodeA), nobody);
  ProcessId owner;
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kFound);
  EXPECT_EQ(owner, (ProcessId{kNodeB, 4242}));
  EXPECT_EQ(ask(a, kNodeB, kKey + 256, &owner), AskResult::kNobody);
}

TEST(DirectorySocket, Two_processes_of_a_node__listen_on_one_port_and_one_that_is_silent_does_not_matter) {
  DirectorySocket silent(options_of(kNodeB), nobody);
  ASSERT_TRUE(silent.listen());
  const Answering b(options_of(kNodeB), {kNodeB, 1});
  DirectorySocket a(options_of(kNodeA), nobody);
  ProcessId owner;
  int found = 0;
  // Each try reaches the silent one with even odds.
  for (int i = 0; i < 5; ++i) found += ask(a, kNodeB, kKey, &owner) == AskResult::kFound ? 1 : 0;
  EXPECT_EQ(found, 5);
}

TEST(DirectorySocket, Two_that_ask_each_other__both_get_an_answer) {
  const auto owner_of = [](std::uint32_t nid) {
    return [nid](std::uint64_t, ProcessId* owner) {
      *owner = {nid, 9};
      return true;
    };
  };
  DirectorySocket a(options_of(kNodeA), owner_of(kNodeA));
  DirectorySocket b(options_of(kNodeB), owner_of(kNodeB));
  ASSERT_TRUE(a.listen() && b.listen());
  // Nobody answers but those who ask.
  std::atomic<int> asking{2};
  const auto run = [&asking](DirectorySocket& socket, std::uint32_t other) {
    ProcessId owner;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(socket, other, kKey, &owner), AskResult::kFound);
    for (--asking; asking > 0; usleep(500)) socket.serve();
  };
  std::thread thread([&] { run(a, kNodeB); });
  run(b, kNodeA);
  thread.join();
}

TEST(DirectorySocket, Nobody_who_listens__is_known_at_once) {
  DirectorySocket a(options_of(kNodeA), nobody);
  ProcessId owner;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kNobody) << "the next one may be asked for at once";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(DirectorySocket, Another_job__gets_no_answer_within_the_bound) {
  const Answering b(options_of(kNodeB, 8), {kNodeB, 1});
  DirectorySocket a(options_of(kNodeA), nobody);
  ProcessId owner;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(a, kNodeB, kKey, &owner), AskResult::kNoAnswer);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(7));
}

// The engine asks on duty: no call may wait for the answer, be it of a node that never gives one.
TEST(DirectorySocket, Silent_node__keeps_nobody_waiting_and_others_answer_meanwhile) {
  constexpr std::uint32_t kSilentNode = 0x7f000004;
  DirectorySocket silent(options_of(kSilentNode), nobody);  // Its port is taken, and it never looks.
  ASSERT_TRUE(silent.listen());
  const Answering b(options_of(kNodeB), {kNodeB, 4242});
  DirectorySocket a(options_of(kNodeA), nobody);
  using Time = std::chrono::steady_clock;
  const auto begin = Time::now();
  int late = 0;
  AskResult result = AskResult::kAsking;
  int answers = 0;
  ProcessId owner;
  while (result == AskResult::kAsking) {
    const auto before = Time::now();
    result = a.ask(kSilentNode, kKey, &owner);
    EXPECT_EQ(a.is_asking(kSilentNode, kKey), result == AskResult::kAsking);
    answers += a.ask(kNodeB, kKey, &owner) == AskResult::kFound ? 1 : 0;
    late += Time::now() - before > std::chrono::milliseconds(50) ? 1 : 0;
    usleep(200);
  }
  EXPECT_EQ(result, AskResult::kNoAnswer);
  EXPECT_GT(Time::now() - begin, std::chrono::seconds(4)) << "slow processes are given time";
  EXPECT_LT(Time::now() - begin, std::chrono::seconds(7));
  EXPECT_LE(late, 3) << "what a busy machine may do";
  EXPECT_GT(answers, 100);
}

TEST(DirectorySocket, Many_questions__take_a_bounded_number_of_sockets) {
  DirectorySocket silent(options_of(kNodeB), nobody);
  ASSERT_TRUE(silent.listen());
  DirectorySocket a(options_of(kNodeA), nobody);
  ProcessId owner;
  std::size_t asking = 0;
  for (std::uint64_t i = 0; i < 2 * DirectorySocket::kMostQuestions; ++i) {
    EXPECT_EQ(a.ask(kNodeB, kKey + 256 * i, &owner), AskResult::kAsking);
    asking += a.is_asking(kNodeB, kKey + 256 * i) ? 1 : 0;
  }
  EXPECT_EQ(asking, DirectorySocket::kMostQuestions);
}

TEST(DirectorySocket, Default_port__is_in_its_range_and_differs_between_jobs) {
  EXPECT_NE(DirectorySocket::default_port(1, 0), DirectorySocket::default_port(2, 0));
  for (std::uint32_t key = 0; key < 100; ++key) {
    EXPECT_GE(DirectorySocket::default_port(key, 1000), 20000);
    EXPECT_LE(DirectorySocket::default_port(key, 1000), 29999);
  }
}

}  // namespace
}  // namespace portofu
