// A process that stands still costs the others bounded memory and none of their traffic, and nothing is lost when it
// goes on.

#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/simulation/node.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

constexpr std::uint16_t kPt = 2;
constexpr std::uint32_t kWindow = 64;
constexpr int kMany = 20000;
constexpr std::size_t kBytes = 16384;

/// Links that hold so many packets that the window is what bounds a sender, or so few that the link does.
constexpr std::uint32_t kWide = 1u << 30;
constexpr std::uint32_t kNarrow = 8;

/// Three processes; the test says who moves.
class StoppedPeer : public testing::TestWithParam<std::uint32_t> {
 protected:
  struct Process {
    std::unique_ptr<Node> node;
    Handle target_eq = 0;
    Handle own_eq = 0;
    Handle md = 0;
  };

  void SetUp() override {
    for (std::uint32_t i = 0; i < 3; ++i) {
      NodeOptions options;
      options.id = {1, 100 + i};
      options.memory_bytes = 2 * kBytes;
      options.settings.window_operations = kWindow;
      options.clock_ns = &clock_ns_;
      Process& process = processes_[i];
      process.node = std::make_unique<Node>(network_, options);
      process.target_eq = process.node->make_queue(EventQueue::kGenerousFrom);
      process.own_eq = process.node->make_queue(EventQueue::kGenerousFrom);
      process.md = process.node->make_md({{{0, kBytes}}}, kMdEventSendDisable, process.own_eq, 0);
      process.node->make_portal(kPt, process.target_eq, false);
      append(process);
    }
  }

  void append(Process& process) {
    EntryPlan plan;
    plan.region = {{{kBytes, kBytes}}};
    plan.criteria = kAnyMessage;
    plan.options = kEntryOpPut | kEntryOpGet | kEntryEventLinkDisable;
    plan.pt_index = kPt;
    Handle handle = 0;
    append_entry(process.node->core(), process.node->interface(), process.node->request_of(plan), &handle);
  }

  void post(int from, int to, PacketType kind, AckRequest ack_req, std::uint64_t number, std::uint64_t length) {
    Descriptor d;
    d.type = kind;
    d.interface_index = 1;
    d.portals.ack_req = ack_req;
    d.portals.target = processes_[to].node->id();
    d.pt_index = kPt;
    d.portals.md_handle = processes_[from].md;
    d.length = length;
    d.hdr_data = number;
    processes_[from].node->post(d);
  }

  /// Steps some of the processes until their part of the network is at rest.
  void run(std::initializer_list<int> moving, int rounds = 200) {
    for (int round = 0; round < rounds; ++round) {
      for (const int i : moving) processes_[i].node->engine().step();
    }
  }

  /// Runs everybody until everything has ended.
  void run_all() {
    for (int round = 0; round < 100 * kMany; ++round) {
      int work = 0;
      for (Process& process : processes_) work += process.node->engine().step();
      if (work == 0 && network_.quiet()) return;
    }
    ADD_FAILURE() << "the network never comes to rest";
  }

  int take_all(int process, Handle eq, bool in_order) {
    EventQueue& queue = *processes_[process].node->interface().eqs.find(eq);
    int count = 0;
    for (; !queue.empty(); queue.remove_oldest_on_duty(), ++count) {
      EXPECT_EQ(queue.oldest_on_duty().ni_fail_type, NiFail::kOk);
      if (in_order) {
        EXPECT_EQ(queue.oldest_on_duty().hdr_data, static_cast<std::uint64_t>(count));
      }
    }
    return count;
  }

  Peer& peer_of(int process, int peer) { return processes_[process].node->core().peer(processes_[peer].node->id()); }

  std::uint64_t clock_ns_ = 0;
  SimNetwork network_{test_seed(), {.max_link_packets = GetParam()}};
  Process processes_[3];
};

// Overload loses nothing: what cannot leave waits, and costs its descriptor and nothing else.
TEST_P(StoppedPeer, Puts_with_ack__wait_in_bounded_memory) {
  run({0, 1, 2});
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < kMany; ++i) post(0, 1, PacketType::kPut, AckRequest::kFull, static_cast<std::uint64_t>(i), 512);
  run({0, 2});
  const std::size_t used = mallinfo2().uordblks - before;
  EXPECT_LE(used, kMany * (sizeof(OutgoingMessage) + LineAligned::kLineBytes + 64) + 200'000)
      << "not more than the descriptors that wait";
  EXPECT_LE(peer_of(0, 1).outstanding, kWindow);
  EXPECT_LE(processes_[0].node->core().outstanding.open_count(), kWindow);
  for (int i = 0; i < 100; ++i) {
    post(0, 2, PacketType::kPut, AckRequest::kFull, static_cast<std::uint64_t>(i), 512);
    post(2, 0, PacketType::kGet, AckRequest::kNone, static_cast<std::uint64_t>(i), 512);
    run({0, 2}, 40);
    EXPECT_EQ(take_all(0, processes_[0].own_eq, false), 1) << "the ACK of the one that moves";
    EXPECT_EQ(take_all(2, processes_[2].own_eq, false), 1);
  }
  run_all();
  EXPECT_EQ(take_all(1, processes_[1].target_eq, true), kMany);
  EXPECT_EQ(take_all(0, processes_[0].own_eq, false), kMany);
  EXPECT_EQ(processes_[0].node->core().outstanding.open_count(), 0u);
  EXPECT_TRUE(peer_of(0, 1).requests.waiting.empty());
}

TEST_P(StoppedPeer, Puts_without_ack__arrive_in_order_when_it_goes_on) {
  for (int i = 0; i < kMany; ++i) {
    post(0, 1, PacketType::kPut, AckRequest::kNone, static_cast<std::uint64_t>(i), i % 100 == 0 ? kBytes : 16);
  }
  run({0, 2});
  run_all();
  EXPECT_EQ(take_all(1, processes_[1].target_eq, true), kMany);
  EXPECT_TRUE(peer_of(0, 1).requests.waiting.empty());
}

// The window of the initiator bounds what a target has to keep for it.
TEST_P(StoppedPeer, Answers__that_nobody_takes_are_as_many_as_the_window) {
  for (int i = 0; i < kMany; ++i) post(0, 1, PacketType::kGet, AckRequest::kNone, static_cast<std::uint64_t>(i), 8192);
  for (int i = 0; i < 50; ++i) {
    run({1, 2}, 20);
    EXPECT_LE(peer_of(1, 0).answers.waiting.size(), kWindow);
    post(2, 1, PacketType::kGet, AckRequest::kNone, 0, 8192);
    run({1, 2}, 60);
    EXPECT_EQ(take_all(2, processes_[2].own_eq, false), 1) << "others are served meanwhile";
  }
  run_all();
  EXPECT_EQ(take_all(0, processes_[0].own_eq, false), kMany);
  EXPECT_EQ(peer_of(1, 0).answers.waiting.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Links, StoppedPeer, testing::Values(kNarrow, kWide),
                         [](const auto& link) { return link.param == kWide ? "wide" : "narrow"; });

}  // namespace
}  // namespace portofu::simulation
