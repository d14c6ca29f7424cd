// fi_domain(3), "Threading": whoever has a domain of its own shares nothing with others. Each domain is a lane of the
// process (lib/libfabric/library.h), and what threads do with theirs is as if they were processes.

#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

constexpr std::size_t kThreads = 4;
constexpr std::uint64_t kWordKey = 5;

/// With so many lanes a process.
class FiDomainThreads : public ::testing::Test {
 protected:
  void SetUp() override { use_lanes(kThreads); }
  void TearDown() override { unsetenv("PORTOFU_LANES"); }
  static void use_lanes(std::size_t count) { setenv("PORTOFU_LANES", std::to_string(count).c_str(), 1); }
};

std::uint32_t pid_of(const LoneNode& node) {
  std::uint32_t pid = 0;
  std::memcpy(&pid, node.name().data() + sizeof(std::uint32_t), sizeof pid);
  return pid;
}

using Nodes = std::vector<std::unique_ptr<LoneNode>>;

Nodes open_nodes(std::size_t count) {
  Nodes nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(std::make_unique<LoneNode>());
  return nodes;
}

std::size_t count_engines(const Nodes& nodes) {
  std::set<std::uint32_t> pids;
  for (const auto& node : nodes) pids.insert(pid_of(*node));
  return pids.size();
}

TEST_F(FiDomainThreads, Domains_are_lanes_of_their_own) {
  conformance::run_processes(1, [](conformance::Process&) {
    Nodes nodes = open_nodes(kThreads);
    EXPECT_EQ(count_engines(nodes), kThreads);
    for (auto& more : open_nodes(3)) nodes.push_back(std::move(more));
    EXPECT_EQ(count_engines(nodes), kThreads) << "domains share them";
    nodes.erase(nodes.begin());
    nodes.erase(nodes.begin() + 2);
    for (auto& more : open_nodes(2)) nodes.push_back(std::move(more));
    EXPECT_EQ(count_engines(nodes), kThreads) << "who comes later goes where room is";
    nodes.clear();
    EXPECT_EQ(count_engines(open_nodes(kThreads)), kThreads) << "all were closed";
  });
}

TEST_F(FiDomainThreads, One_lane_is_for_all) {
  use_lanes(1);
  conformance::run_processes(1, [](conformance::Process&) { EXPECT_EQ(count_engines(open_nodes(kThreads)), 1u); });
}

/// Where there is no memory for a lane there are fewer, which is said once, and everything works.
TEST_F(FiDomainThreads, Lane_that_cannot_be_opened_is_done_without) {
  conformance::run_processes(1, [](conformance::Process&) {
    const Nodes first = open_nodes(2);
    EXPECT_EQ(count_engines(first), 2u);
    constexpr rlim_t kTooLittle = 1 << 16;
    const rlimit limit{kTooLittle, kTooLittle};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    testing::internal::CaptureStderr();
    const Nodes more = open_nodes(4);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("fi_domain goes on with 2 lanes:"), std::string::npos) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_EQ(count_engines(more), 2u);
    int received = 0;
    const int sent = 4;
    const LoneNode& last = *more.back();
    ASSERT_EQ(fi_recv(last->ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject((*first.front())->ep, &sent, sizeof sent, first.front()->know(last.name())), 0);
    EXPECT_EQ(last->next().err, 0);
    EXPECT_EQ(received, 4);
  });
}

/// fi_getinfo(3): FI_SOURCE with a service, the PID that other processes know.
TEST_F(FiDomainThreads, Wanted_address_is_that_of_the_first_lane) {
  conformance::run_processes(1, [](conformance::Process&) {
    const Nodes nodes = open_nodes(3);
    const std::string pid = std::to_string(pid_of(*nodes.front()));
    const std::string other = std::to_string(pid_of(*nodes.back()) == 4711 ? 4712 : 4711);
    const auto open_at = [](const std::string& service, fid_fabric** fabric, fid_domain** domain) {
      const Info info = get_info(make_hints().get(), nullptr, nullptr, service.c_str(), FI_SOURCE);
      EXPECT_EQ(fi_fabric(info->fabric_attr, fabric, nullptr), 0);
      return fi_domain(*fabric, info.get(), domain, nullptr);
    };
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    EXPECT_EQ(open_at(other, &fabric, &domain), -FI_EADDRINUSE);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
    ASSERT_EQ(open_at(pid, &fabric, &domain), 0);
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
  });
}

/// What a thread has: a domain with an endpoint, and the word of its owner, which everybody counts.
struct Corner {
  explicit Corner(std::uint64_t* word) {
    EXPECT_EQ(fi_mr_reg(node.domain(), word, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kWordKey, 0, &region, nullptr), 0);
  }
  ~Corner() { EXPECT_EQ(fi_close(&region->fid), 0); }
  Corner(const Corner&) = delete;
  Corner& operator=(const Corner&) = delete;

  LoneNode node;
  fid_mr* region = nullptr;
};

/// Messages there and back with the same thread of the other process, each with an addition to the word of rank 0.
void exchange(const Corner& corner, fi_addr_t peer, bool begins, std::uint64_t rounds) {
  const std::uint64_t one = 1;
  std::uint64_t received = 0;
  const auto receive = [&](std::uint64_t number) {
    EXPECT_EQ(fi_trecv(corner.node->ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, number, 0, nullptr), 0);
    EXPECT_EQ(corner.node->next().err, 0);
    EXPECT_EQ(received, number);
  };
  const auto send = [&](std::uint64_t number) {
    ssize_t rc = -FI_EAGAIN;
    while (rc == -FI_EAGAIN) rc = fi_tinject(corner.node->ep, &number, sizeof number, peer, number);
    EXPECT_EQ(rc, 0);
  };
  for (std::uint64_t i = 0; i < rounds; ++i) {
    if (!begins) {
      std::uint64_t old = 0;
      EXPECT_EQ(fi_fetch_atomic(corner.node->ep, &one, 1, nullptr, &old, nullptr, peer, 0, kWordKey, FI_UINT64, FI_SUM,
                                nullptr),
                0);
      EXPECT_EQ(corner.node->next().err, 0);
    }
    if (begins) send(i);
    receive(i);
    if (!begins) send(i);
  }
}

TEST_F(FiDomainThreads, Threads_with_a_domain_each_exchange_and_count) {
  conformance::run_processes(2, [](conformance::Process& self) {
    constexpr std::uint64_t kRounds = 1000;
    std::uint64_t word = 0;
    std::vector<std::unique_ptr<Corner>> corners;
    std::array<LoneNode::Name, kThreads> mine{};
    for (LoneNode::Name& name : mine) name = corners.emplace_back(std::make_unique<Corner>(&word))->node.name();
    const auto names = self.share(mine)[static_cast<std::size_t>(1 - self.rank())];
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      const fi_addr_t peer = corners[i]->node.know(names[i]);
      threads.emplace_back([&, i, peer] { exchange(*corners[i], peer, self.rank() == 0, kRounds); });
    }
    for (std::thread& thread : threads) thread.join();
    if (self.rank() == 0) {
      EXPECT_EQ(word, kThreads * kRounds);
    }
    self.barrier();
  });
}

/// Threads that make a domain, use it and close it, while others have theirs.
TEST_F(FiDomainThreads, Domains_come_and_go_while_others_are_used) {
  conformance::run_processes(1, [](conformance::Process&) {
    const LoneNode stays;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&stays] {
        for (int round = 0; round < 20; ++round) {
          const LoneNode passing;
          const int sent = round;
          int received = -1;
          ASSERT_EQ(fi_recv(passing->ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
          ASSERT_EQ(fi_inject(stays->ep, &sent, sizeof sent, stays.know(passing.name())), 0);
          EXPECT_EQ(passing->next().err, 0);
          EXPECT_EQ(received, round);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

/// A thread that sleeps at the queue of one lane does not keep the others from theirs, which nobody looks after.
TEST_F(FiDomainThreads, Lane_that_nobody_looks_at_is_served) {
  conformance::run_processes(2, [](conformance::Process& self) {
    std::array<std::uint64_t, 2> words{};
    Corner first(&words[0]);
    Corner second(&words[1]);
    const std::array mine{first.node.name(), second.node.name()};
    const auto names = self.share(mine)[static_cast<std::size_t>(1 - self.rank())];
    if (self.rank() == 0) {
      fi_cq_tagged_entry entry{};
      EXPECT_EQ(fi_cq_sread(first.node->cq, &entry, 1, nullptr, 300), -FI_EAGAIN);
    } else {
      const fi_addr_t owner = second.node.know(names[1]);
      const std::uint64_t one = 1;
      for (std::uint64_t i = 0; i < 100; ++i) {
        std::uint64_t old = UINT64_MAX;
        ASSERT_EQ(fi_fetch_atomic(second.node->ep, &one, 1, nullptr, &old, nullptr, owner, 0, kWordKey, FI_UINT64,
                                  FI_SUM, nullptr),
                  0);
        ASSERT_EQ(second.node->next().err, 0);
        ASSERT_EQ(old, i);
      }
    }
    self.barrier();
    if (self.rank() == 0) {
      EXPECT_EQ(words[1], 100u);
    }
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu::test
