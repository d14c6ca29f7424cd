// Processes on several nodes over unreliable datagrams, which are made worse than they are: every effect is there
// exactly once and in order all the same. PORTOFU_TEST_OPERATIONS: how many operations in all, for a longer run.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/wire/sim/sim_random.h"
#include "tests/conformance/harness/fixture.h"
#include "tests/process/between_nodes.h"
#include "tests/process/engine_counter.h"
#include "tests/process/own_node.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr const char* kBad = "loss=10,duplicate=5,reorder=64,corrupt=1,seed=7";

/// Each process is on a node of its own.
void live_on_node(int number) { setenv("PORTOFU_NID", test_address(number + 1).c_str(), 1); }

/// @param faults  PORTOFU_DATAGRAM_FAULTS
void run_on_nodes(int count, const char* faults, const Body& body) {
  live_on_node(0);  // Here the number of the network is made, so that the children agree.
  setenv("PORTOFU_FABRIC", "1", 1);
  setenv("PORTOFU_FABRIC_ENDPOINT", "datagram", 1);
  setenv("PORTOFU_DATAGRAM_FAULTS", faults, 1);
  run_processes(count, [&](Process& self) {
    live_on_node(self.rank());
    body(self);
  });
  for (const char* name : {"PORTOFU_NID", "PORTOFU_FABRIC", "PORTOFU_FABRIC_ENDPOINT", "PORTOFU_DATAGRAM_FAULTS"}) {
    unsetenv(name);
  }
}

// ---- Everything exactly once, in order -----------------------------------------------------------------------------

constexpr std::size_t kMaxProcesses = 4;
constexpr std::size_t kUnderWay = 128;  ///< Operations of one process that are not answered yet.
constexpr ptl_size_t kPutBytes = 2000;

/// What peers reach of a process.
struct Exposed {
  std::int64_t tickets = 0;                    ///< Raised by each fetch-and-add.
  std::int64_t sums[kMaxProcesses] = {};       ///< Raised by each atomic of a peer by the number of the operation.
  std::int64_t constants[kMaxProcesses] = {};  ///< Fetched by gets.
  std::int64_t fetched[kUnderWay] = {};        ///< What own operations have fetched; of nobody else.
  unsigned char data[kPutBytes] = {};
};

/// What a process has done to one peer.
struct Done {
  std::uint64_t ordered = 0;  ///< Operations with a number in hdr_data: 1, 2, 3, ...
  std::int64_t sum = 0;
  std::int64_t tickets = 0;
  std::int64_t ticket_sum = 0;
  std::int64_t last_ticket = -1;
};

enum class Kind : std::uint8_t { kPut, kAtomic, kFetchAdd, kGet };

/// One process that does something to each other one, and looks what they do to it.
class Mixer {
 public:
  Mixer(Process& self, std::uint64_t operations)
      : self_(self),
        ni_(self),
        ends_(ni_, 0, operations + 1024),
        operations_(operations / static_cast<std::uint64_t>(self.size())),
        random_(static_cast<std::uint64_t>(self.rank()) + 100) {
    for (std::size_t i = 0; i < kMaxProcesses; ++i) exposed_.constants[i] = constant(self.rank(), i);
    append(ni_, me_of(ni_, &exposed_, sizeof exposed_));
    md_ = bind_quiet(ni_, &exposed_, sizeof exposed_, ends_.source_eq);
    value_md_ = bind_quiet(ni_, values_, sizeof values_, ends_.source_eq);
    for (std::size_t i = kUnderWay; i > 0; --i) free_.push_back(i - 1);
    self.barrier();
  }

  void run() {
    for (std::uint64_t i = 0; i < operations_; ++i) {
      while (free_.empty()) take_answer(next_event(ends_.source_eq));
      start();
      look();
    }
    while (free_.size() < kUnderWay) take_answer(next_event(ends_.source_eq));
    self_.barrier();  // What was answered has happened.
    look();
    check();
    self_.barrier();
  }

 private:
  static std::int64_t constant(int rank, std::size_t index) { return rank * 1000 + static_cast<int>(index) + 1; }
  ptl_size_t offset_of(const void* place) const {
    return static_cast<ptl_size_t>(static_cast<const char*>(place) - reinterpret_cast<const char*>(&exposed_));
  }

  void start() {
    const std::size_t slot = free_.back();
    free_.pop_back();
    const int step = 1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(self_.size()) - 1));
    const int to = (self_.rank() + step) % self_.size();
    const Kind kind = static_cast<Kind>(random_.below(4));
    pending_[slot] = {kind, to};
    Done& done = done_[to];
    Message message{.length = 8, .local_offset = slot * 8, .user_ptr = tag(slot)};
    if (kind != Kind::kGet) message.hdr_data = ++done.ordered;
    switch (kind) {
      case Kind::kPut:
        message.local_offset = offset_of(exposed_.data);
        message.remote_offset = offset_of(exposed_.data);
        message.length = random_.below(kPutBytes);
        return put(md_, ni_.id(to), message);
      case Kind::kAtomic:
        values_[slot] = static_cast<std::int64_t>(message.hdr_data);
        done.sum += values_[slot];
        message.remote_offset = offset_of(&exposed_.sums[self_.rank()]);
        return atomic(value_md_, ni_.id(to), message);
      case Kind::kFetchAdd:
        values_[slot] = 1;
        message.remote_offset = offset_of(&exposed_.tickets);
        return fetch_atomic(md_, offset_of(&exposed_.fetched[slot]), value_md_, ni_.id(to), message);
      case Kind::kGet:
        message.local_offset = offset_of(&exposed_.fetched[slot]);
        message.remote_offset = offset_of(&exposed_.constants[slot % kMaxProcesses]);
        return get(md_, ni_.id(to), message);
    }
  }

  void take_answer(const ptl_event_t& event) {
    const auto slot = reinterpret_cast<std::uintptr_t>(event.user_ptr);
    const auto [kind, to] = pending_[slot];
    ASSERT_EQ(event.ni_fail_type, PTL_NI_OK) << describe(event);
    const bool fetches = kind == Kind::kFetchAdd || kind == Kind::kGet;
    ASSERT_EQ(event.type, fetches ? PTL_EVENT_REPLY : PTL_EVENT_ACK) << describe(event);
    if (kind == Kind::kGet) {
      EXPECT_EQ(exposed_.fetched[slot], constant(to, slot % kMaxProcesses));
    }
    if (kind == Kind::kFetchAdd) {
      Done& done = done_[to];
      EXPECT_GT(exposed_.fetched[slot], done.last_ticket) << "Executed twice, or out of order.";
      done.last_ticket = exposed_.fetched[slot];
      done.ticket_sum += exposed_.fetched[slot];
      ++done.tickets;
    }
    free_.push_back(slot);
  }

  /// Takes what peers have done here: of each of them in the order in which it was started.
  void look() {
    for (const ptl_event_t& event : drain(ends_.target_eq)) {
      if (event.type == PTL_EVENT_GET) continue;
      int from = 0;
      while (from < self_.size() && !same_process(ni_, ni_.id(from), event.initiator)) ++from;
      ASSERT_LT(from, self_.size());
      ASSERT_EQ(event.hdr_data, ++seen_[from]) << "from " << from << ": " << describe(event);
    }
  }

  /// What others say that they have done here is what has happened.
  void check() {
    struct Report {
      Done done[kMaxProcesses];
    };
    Report mine;
    std::copy_n(done_, kMaxProcesses, mine.done);
    const std::vector<Report> all = self_.share(mine);
    std::int64_t tickets = 0;
    std::int64_t ticket_sum = 0;
    for (int from = 0; from < self_.size(); ++from) {
      const Done& done = all[static_cast<std::size_t>(from)].done[self_.rank()];
      EXPECT_EQ(seen_[from], done.ordered) << "from " << from;
      EXPECT_EQ(exposed_.sums[from], done.sum) << "from " << from;
      tickets += done.tickets;
      ticket_sum += done.ticket_sum;
    }
    EXPECT_EQ(exposed_.tickets, tickets);
    EXPECT_EQ(ticket_sum, tickets * (tickets - 1) / 2) << "Each ticket was drawn by one.";
  }

  Process& self_;
  const Ni ni_;
  const Ends ends_;
  const std::uint64_t operations_;
  SimRandom random_;
  Exposed exposed_;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;        ///< Over exposed_.
  ptl_handle_md_t value_md_ = PTL_INVALID_HANDLE;  ///< Over values_.
  std::int64_t values_[kUnderWay] = {};            ///< Operands.
  std::pair<Kind, int> pending_[kUnderWay];        ///< Kind and target.
  std::vector<std::size_t> free_;
  Done done_[kMaxProcesses];                ///< To each.
  std::uint64_t seen_[kMaxProcesses] = {};  ///< Ordered operations of each.
};

std::uint64_t operation_count(std::uint64_t usual) {
  const char* given = std::getenv("PORTOFU_TEST_OPERATIONS");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : usual;
}

TEST(Datagram, Mixed_operations__happen_exactly_once_and_in_order) {
  const std::uint64_t operations = operation_count(100'000);
  run_on_nodes(2, "", [&](Process& self) { Mixer(self, operations).run(); });
}

TEST(Datagram, Mixed_operations_over_a_bad_network__happen_exactly_once_and_in_order) {
  const std::uint64_t operations = operation_count(100'000);
  run_on_nodes(3, kBad, [&](Process& self) {
    Mixer mixer(self, operations);
    mixer.run();
    // What ptl_info shows of the network.
    EXPECT_GT(engine_counter(Counter::kFramesSentAgain), 0u);
    EXPECT_LT(engine_counter(Counter::kFramesSentAgain), engine_counter(Counter::kFramesSent));
    EXPECT_GT(engine_counter(Counter::kFramesDuplicate), 0u);
  });
}

TEST(Datagram, Long_messages_over_a_bad_network__arrive_whole_both_ways) {
  run_on_nodes(2, kBad, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    constexpr std::size_t kBytes = 1u << 20;
    const std::vector<unsigned char> sent = pattern(kBytes, static_cast<unsigned>(self.rank() + 1));
    std::vector<unsigned char> memory(kBytes);
    append(ni, me_of(ni, memory.data(), memory.size()));
    const ptl_handle_md_t md = bind_quiet(ni, sent.data(), kBytes, ends.source_eq);
    self.barrier();
    put(md, ni.id(1 - self.rank()), {.length = kBytes});
    ptl_event_t event;
    unsigned int which = 0;
    ASSERT_EQ(PtlEQPoll(&ends.source_eq, 1, 50'000, &event, &which), PTL_OK);
    EXPECT_EQ(event.type, PTL_EVENT_ACK);
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(memory, pattern(kBytes, static_cast<unsigned>(2 - self.rank())));
    self.barrier();
  });
}

// 3.10.1: what was put with PTL_MD_UNRELIABLE need not arrive, but keeps its place and is never there twice.
TEST(Datagram, Unreliable_puts__may_be_lost_and_are_not_sent_again) {
  run_on_nodes(2, "loss=30,duplicate=5,seed=3", [](Process& self) {
    constexpr std::uint64_t kPuts = 1000;
    const Ni ni(self);
    const Ends ends(ni, 0, 2 * kPuts);
    std::vector<unsigned char> memory(64);
    append(ni, me_of(ni, memory.data(), memory.size()));
    self.barrier();
    self.initiator([&] {
      const ptl_handle_md_t md =
          bind_md(ni, md_of(ends.data.data(), 64, ends.source_eq, PTL_CT_NONE, PTL_MD_UNRELIABLE));
      for (std::uint64_t i = 1; i <= kPuts; ++i) {
        put(md, ni.target(), {.length = 8, .hdr_data = i, .ack = PTL_NO_ACK_REQ});
        next_event(ends.source_eq, PTL_EVENT_SEND);
      }
      put_and_wait(ends, ni.target(), {.length = 8, .hdr_data = kPuts + 1});
    });
    if (self.is_target()) {
      std::uint64_t last = 0;
      std::uint64_t arrived = 0;
      for (const ptl_event_t& event : drain(ends.target_eq)) {
        EXPECT_GT(event.hdr_data, last);
        last = event.hdr_data;
        ++arrived;
      }
      EXPECT_EQ(last, kPuts + 1);
      EXPECT_GT(arrived, kPuts / 2);
      EXPECT_LT(arrived, kPuts - kPuts / 10);
    }
    self.barrier();
  });
}

// ---- Who serves the timers -----------------------------------------------------------------------------------------

/// Words of the target's memory, each of which is put once.
constexpr std::size_t kWords = 50;

/// The target computes until all of them are there, and says so.
void await_words(const std::vector<std::atomic<int>>& words, std::atomic<int>& arrived) {
  for (const std::atomic<int>& word : words) ASSERT_TRUE(compute_until(word, 30));
  arrived.store(1);
}

/// The initiator starts the puts, and then computes until the target has said so.
void put_words(Ends& ends, ptl_process_t target, const std::atomic<int>& arrived) {
  std::fill(ends.data.begin(), ends.data.end(), 1);
  for (std::size_t i = 0; i < kWords; ++i) {
    put(ends.md, target, {.length = sizeof(int), .remote_offset = i * sizeof(int), .ack = PTL_NO_ACK_REQ});
  }
  EXPECT_TRUE(compute_until(arrived, 30));
}

// Half of all is lost, and no application thread calls the library after it has started its puts.
TEST(Datagram, Processes_that_compute__are_served_by_the_library) {
  SharedMemory<std::atomic<int>> arrived;
  run_on_nodes(2, "loss=50,seed=9", [&](Process& self) {
    const Ni ni(self);
    Ends ends(ni);
    std::vector<std::atomic<int>> memory(kWords);
    append(ni, me_of(ni, memory.data(), kWords * sizeof(int)));
    self.barrier();
    if (self.is_target()) {
      await_words(memory, *arrived);
    } else {
      put_words(ends, ni.target(), *arrived);
    }
    self.barrier();
  });
}

// A thread sleeps in the library already when another one puts and computes.
TEST(Datagram, Sleeping_thread__wakes_for_what_another_one_has_to_send_again) {
  SharedMemory<std::atomic<int>> arrived;
  run_on_nodes(2, "loss=50,seed=9", [&](Process& self) {
    const Ni ni(self);
    Ends ends(ni);
    std::vector<std::atomic<int>> memory(kWords);
    append(ni, me_of(ni, memory.data(), kWords * sizeof(int)));
    const ptl_handle_ct_t never = alloc_ct(ni);
    self.barrier();
    if (self.is_target()) {
      await_words(memory, *arrived);
    } else {
      put_and_wait(ends, ni.target(), {.length = 0});
      std::atomic<pid_t> sleeping{0};
      std::thread sleeper([&] {
        sleeping = gettid();
        ptl_ct_event_t count;
        PtlCTWait(never, 1, &count);
      });
      while (sleeping == 0) std::this_thread::yield();
      wait_for_sleep(sleeping);
      put_words(ends, ni.target(), *arrived);
      PtlCTInc(never, {1, 0});
      sleeper.join();
    }
    self.barrier();
  });
}

TEST(Datagram, Process_that_leaves__has_delivered_what_it_put) {
  run_on_nodes(2, "loss=50,seed=9", [](Process& self) {
    constexpr int kPuts = 50;
    std::vector<unsigned char> memory(64);
    auto ni = std::make_unique<Ni>(self);
    const Ends ends(*ni);
    append(*ni, me_of(*ni, memory.data(), memory.size()));
    self.barrier();
    if (self.is_target()) {
      for (int i = 0; i < kPuts; ++i) {
        EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, static_cast<ptl_hdr_data_t>(i));
      }
    } else {
      for (int i = 0; i < kPuts; ++i) {
        put(ends.md, ni->target(), {.length = 8, .hdr_data = static_cast<ptl_hdr_data_t>(i), .ack = PTL_NO_ACK_REQ});
      }
      ni.reset();
    }
    self.barrier();
  });
}

TEST(Datagram, Idle_processes__use_no_cpu) { run_on_nodes(2, "", expect_idle_uses_no_cpu); }

// ---- Death ---------------------------------------------------------------------------------------------------------

void expect_undeliverable_soon(Process& self) { expect_death_is_told(self, 1.0); }

TEST(Datagram, Killed_process__ends_what_is_under_way_within_a_second) {
  run_on_nodes(2, "", expect_undeliverable_soon);
}

TEST(Datagram, Killed_process_on_a_bad_network__ends_what_is_under_way_within_a_second) {
  run_on_nodes(2, kBad, expect_undeliverable_soon);
}

TEST(Datagram, Stopped_process__is_waited_for) {
  SharedMemory<std::atomic<int>> target_pid;
  run_on_nodes(2, kBad, [&](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::vector<unsigned char> memory(64);
    append(ni, me_of(ni, memory.data(), memory.size()));
    if (self.is_target()) target_pid->store(getpid());
    self.barrier();
    if (self.is_initiator()) {
      put_and_wait(ends, ni.target(), {.length = 8});
      ASSERT_EQ(kill(target_pid->load(), SIGSTOP), 0);
      // Every thread of it: until then one of them may answer.
      const std::string tasks = "/proc/" + std::to_string(target_pid->load()) + "/task";
      for (const auto& task : std::filesystem::directory_iterator(tasks)) wait_for_state(task.path().string(), 'T');
      put(ends.md, ni.target(), {.length = 8});
      usleep(1'500'000);
      expect_empty(ends.source_eq);
      ASSERT_EQ(kill(target_pid->load(), SIGCONT), 0);
      next_event(ends.source_eq, PTL_EVENT_ACK);
    }
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
