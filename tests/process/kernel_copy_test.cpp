// Long messages of ordinary memory that the kernel copies, each part by whichever side comes to it first, between real
// processes: what arrives, and what is told and touched when one of the two ends in the middle.

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "tests/conformance/harness/fixture.h"
#include "tests/conformance/utofu/utofu_fixture.h"
#include "tests/process/child_process.h"
#include "tests/process/engine_counter.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr ptl_size_t kVeryLong = 64 << 20;

/// A program of uTofu leaves its segment to whoever comes next, so it has no node of its own.
class KernelCopyTofu : public testing::Test {
 protected:
  KernelCopyTofu() {
    setenv("PORTOFU_LONG_DATA", "4", 1);
    setenv("PORTOFU_PEER_CHECK_MS", "20", 1);
  }
  ~KernelCopyTofu() override {
    unsetenv("PORTOFU_LONG_DATA");
    unsetenv("PORTOFU_PEER_CHECK_MS");
  }
};

class KernelCopy : public KernelCopyTofu {
 protected:
  OwnNode node;
};

/// The first long message of two processes goes another way: the target finds out by it that it can read.
void get_acquainted(Process& self, const Ni& ni, const Ends& ends) {
  std::vector<unsigned char> sink(4096);
  if (self.is_target()) append(ni, me_of(ni, sink.data(), sink.size(), PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE));
  self.barrier();
  if (self.is_initiator()) put_and_wait(ends, ni.target(), {.length = sink.size()});
  if (self.is_target()) next_event(ends.target_eq, PTL_EVENT_PUT);
  self.barrier();
}

/// A message from the initiator to the target, who has an entry for it.
struct VeryLong {
  VeryLong(Process& self, const Ni& its_ni, const Ends& its_ends) : ni(its_ni), ends(its_ends) {
    get_acquainted(self, ni, ends);
    if (self.is_target()) append(ni, me_of(ni, sink.data(), sink.size()));
    self.barrier();
  }

  void send() const {
    put(bind_quiet(ni, source.data(), source.size(), ends.source_eq), ni.target(), {.length = kVeryLong});
  }

  const Ni& ni;
  const Ends& ends;
  const std::vector<unsigned char> source = pattern(kVeryLong);
  std::vector<unsigned char> sink = std::vector<unsigned char>(kVeryLong);
};

/// 3.15.1, 3.15.3, at lengths around those where the way changes, and at odd places.
TEST_F(KernelCopy, Puts_and_gets__arrive_whole) {
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    get_acquainted(self, ni, ends);
    for (const std::size_t length : {16384u, 16385u, 65536u, 131071u, 131072u, 131073u, 1u << 20, (5u << 20) + 3}) {
      const auto there = pattern(length + 13, 2);
      const auto here = pattern(length + 7, static_cast<unsigned>(length));
      auto sink = there;
      auto fetched = pattern(length, 3);
      ptl_handle_me_t entry = PTL_INVALID_HANDLE;
      if (self.is_target()) entry = append(ni, me_of(ni, sink.data(), sink.size()));
      self.barrier();
      if (self.is_initiator()) {
        const ptl_handle_md_t md = bind_quiet(ni, here.data(), here.size(), ends.source_eq);
        put(md, ni.target(), {.length = length, .local_offset = 7, .remote_offset = 5});
        next_event(ends.source_eq, PTL_EVENT_ACK);
        const ptl_handle_md_t fetch_md = bind_quiet(ni, fetched.data(), fetched.size(), ends.source_eq);
        get(fetch_md, ni.target(), {.length = length, .remote_offset = 13});
        next_event(ends.source_eq, PTL_EVENT_REPLY);
        EXPECT_TRUE(std::equal(here.begin() + 15, here.end(), fetched.begin())) << length;
        REQUIRE_OK(PtlMDRelease(md));
        REQUIRE_OK(PtlMDRelease(fetch_md));
      }
      self.barrier();
      if (self.is_target()) {
        next_event(ends.target_eq, PTL_EVENT_PUT);
        next_event(ends.target_eq, PTL_EVENT_GET);
        EXPECT_TRUE(std::equal(here.begin() + 7, here.end(), sink.begin() + 5)) << length;
        EXPECT_TRUE(std::equal(there.begin(), there.begin() + 5, sink.begin())) << "before it";
        EXPECT_TRUE(std::equal(there.end() - 8, there.end(), sink.end() - 8)) << "behind it";
        REQUIRE_OK(PtlMEUnlink(entry));
      }
      self.barrier();
    }
    EXPECT_GT(engine_counter(Counter::kPacketsLent), 0u) << "rank " << self.rank();
  });
}

/// A user without rights, whose processes may read each other for now.
void become_nobody() {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) return;
  ASSERT_EQ(setresgid(kNobody, kNobody, kNobody), 0);
  ASSERT_EQ(setresuid(kNobody, kNobody, kNobody), 0);
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
}

/// A program may take the right to read it away at any time; its messages then go another way, and it is not dead.
TEST_F(KernelCopy, Process_that_lets_nobody_read_it_any_more__sends_and_answers_all_the_same) {
  run_processes(2, [](Process& self) {
    become_nobody();
    constexpr ptl_size_t kLength = 1 << 20;
    const Ni ni(self);
    const Ends ends(ni);
    get_acquainted(self, ni, ends);
    const auto there = pattern(kLength, 2);
    const auto here = pattern(kLength, 5);
    for (const int readable : {1, 0}) {
      auto sink = there;
      std::vector<unsigned char> fetched(kLength);
      ptl_handle_me_t entry = PTL_INVALID_HANDLE;
      if (self.is_target()) entry = append(ni, me_of(ni, sink.data(), sink.size()));
      ASSERT_EQ(prctl(PR_SET_DUMPABLE, readable), 0);
      self.barrier();
      if (self.is_initiator()) {
        const ptl_handle_md_t fetch_md = bind_quiet(ni, fetched.data(), fetched.size(), ends.source_eq);
        get(fetch_md, ni.target(), {.length = kLength});
        next_event(ends.source_eq, PTL_EVENT_REPLY);
        EXPECT_EQ(fetched, there) << readable;
        put(bind_quiet(ni, here.data(), here.size(), ends.source_eq), ni.target(), {.length = kLength});
        next_event(ends.source_eq, PTL_EVENT_ACK);
      } else {
        next_event(ends.target_eq, PTL_EVENT_GET);
        next_event(ends.target_eq, PTL_EVENT_PUT);
        EXPECT_EQ(sink, here) << readable;
        REQUIRE_OK(PtlMEUnlink(entry));
      }
      self.barrier();
    }
  });
}

/// The same for what is under way when the right is taken away: it was lent, and is not read yet.
TEST_F(KernelCopy, Process_that_lets_nobody_read_it_any_more__brings_what_it_has_lent) {
  setenv("PORTOFU_PROGRESS_THREAD", "0", 1);  // Nobody reads before the test wants it.
  run_processes(2, [](Process& self) {
    become_nobody();
    constexpr int kPuts = 4;
    for (const ptl_size_t length : {ptl_size_t{20000}, ptl_size_t{1} << 20, ptl_size_t{3} << 20}) {
      ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
      const Ni ni(self);
      const Ends ends(ni);
      get_acquainted(self, ni, ends);
      const auto here = pattern(length, 5);
      auto sink = pattern(length, 2);
      if (self.is_target()) append(ni, me_of(ni, sink.data(), sink.size()));
      self.barrier();
      if (self.is_initiator()) {
        const ptl_handle_md_t md = bind_quiet(ni, here.data(), here.size(), ends.source_eq);
        for (int i = 0; i < kPuts; ++i) put(md, ni.target(), {.length = length});
        EXPECT_GT(engine_counter(Counter::kPacketsLent), 0u);
        ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
      }
      self.barrier();
      for (int i = 0; i < kPuts; ++i) {
        if (self.is_initiator()) next_event(ends.source_eq, PTL_EVENT_ACK);
        if (self.is_target()) next_event(ends.target_eq, PTL_EVENT_PUT);
      }
      if (self.is_target()) {
        EXPECT_EQ(sink, here) << length;
      }
      self.barrier();
    }
  });
  unsetenv("PORTOFU_PROGRESS_THREAD");
}

/// 2.2.3, 6.1.3.1 of the guide: a target that only reads its memory sees a put, the last line last.
TEST_F(KernelCopyTofu, Puts__are_seen_whole_by_a_target_that_only_reads) {
  SharedMemory<std::atomic<std::uint64_t>> seen;
  run_processes(2, [&](Process& self) {
    constexpr std::size_t kBytes = 1 << 20;
    constexpr std::size_t kWords = kBytes / sizeof(std::uint64_t);
    constexpr std::uint64_t kRounds = 300;
    Ring ring(self, kBytes);
    const auto words = reinterpret_cast<std::uint64_t*>(ring.memory.data());
    self.barrier();
    utofu_mrq_notice notice{};
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      if (self.rank() == 0) {
        std::fill_n(words, kWords, round);
        ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, kBytes, 5,
                            UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr),
                  UTOFU_SUCCESS);
        for (const double end = now_s() + kLongestWaitS; *seen != round && now_s() < end;)
          utofu_poll_mrq(ring.vcq, 0, &notice);
        ASSERT_EQ(*seen, round);
      } else {
        const std::atomic_ref last(words[kWords - 1]);
        for (const double end = now_s() + kLongestWaitS;
             last.load(std::memory_order_acquire) != round && now_s() < end;) {
        }
        ASSERT_EQ(std::count(words, words + kWords, round), static_cast<std::ptrdiff_t>(kWords))
            << "in round " << round;
        *seen = round;
      }
    }
    self.barrier();
    EXPECT_EQ(utofu_free_vcq(ring.vcq), UTOFU_SUCCESS);
  });
}

/// A program that sends and computes leaves all to the target and to the library's own thread.
TEST_F(KernelCopy, Initiator_that_computes__does_not_keep_its_message_back) {
  SharedMemory<std::atomic<int>> arrived;
  run_processes(2, [&](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    VeryLong message(self, ni, ends);
    if (self.is_initiator()) {
      message.send();
      EXPECT_TRUE(compute_until(*arrived, 5));
      next_event(ends.source_eq, PTL_EVENT_ACK);
    }
    if (self.is_target()) {
      next_event(ends.target_eq, PTL_EVENT_PUT);
      *arrived = 1;
      EXPECT_EQ(message.sink, message.source);
    }
    self.barrier();
  });
}

/// 3.6.3: what belongs to a closed interface is the program's again, and no initiator that helps writes there.
TEST_F(KernelCopy, Interface_closed_in_the_middle__its_memory_is_not_touched_again) {
  constexpr int kRounds = 12;
  constexpr unsigned char kMark = 0x55;
  SharedMemory<std::atomic<int>> checked;
  run_processes(2, [&](Process& self) {
    std::vector<unsigned char> sink(self.is_target() ? kVeryLong : 0);
    const std::vector<unsigned char> source(self.is_initiator() ? kVeryLong : 0, 0xaa);
    for (int round = 0; round < kRounds; ++round) {
      std::fill(sink.begin(), sink.end(), 0);
      {
        const Ni ni(self);
        const Ends ends(ni);
        get_acquainted(self, ni, ends);
        if (self.is_target()) append(ni, me_of(ni, sink.data(), sink.size()));
        self.barrier();
        if (self.is_initiator()) {
          const ptl_handle_md_t md = bind_quiet(ni, source.data(), source.size(), ends.source_eq);
          for (int i = 0; i < 4; ++i) put(md, ni.target(), {.length = kVeryLong});
          ptl_event_t event{};
          unsigned int which = 0;
          for (const double end = now_s() + kLongestWaitS; *checked <= round && now_s() < end;) {
            PtlEQPoll(&ends.source_eq, 1, 1, &event, &which);
          }
          EXPECT_GT(*checked, round);
        } else {
          const std::atomic_ref place(sink[kVeryLong - 1 - static_cast<std::size_t>(round) * 5'000'000]);
          const std::atomic_ref front(sink[static_cast<std::size_t>(round) * 100'000]);
          ptl_event_t event{};
          for (const double end = now_s() + kLongestWaitS; place == 0 && front == 0 && now_s() < end;) {
            PtlEQGet(ends.target_eq, &event);
          }
        }
      }
      if (self.is_target()) {
        std::fill(sink.begin(), sink.end(), kMark);
        const double end = now_s() + 0.01;
        while (now_s() < end) {
        }
        EXPECT_EQ(std::count(sink.begin(), sink.end(), kMark), static_cast<std::ptrdiff_t>(kVeryLong));
        *checked = round + 1;
      }
      self.barrier();
    }
  });
}

/// 2.7, 3.13: a stream of messages that lie one behind the other, so that several are copied at once; some of the
/// memory that they go to is not there, and some of what they bring neither.
TEST_F(KernelCopy, Stream__arrives_whole_and_in_order_and_whatever_fails_does_so_alone) {
  run_processes(2, [](Process& self) {
    constexpr ptl_size_t kPlace = 65536;
    constexpr std::uint64_t kPuts = 400;
    const Ni ni(self);
    const Ends ends(ni);
    const auto length_of = [](std::uint64_t k) { return 16384 + k * 7919 % 40000; };
    // After one that fails the kernel is not asked any more.
    const auto fails = [](std::uint64_t k) { return k > 300 && k % 37 == 5; };
    get_acquainted(self, ni, ends);
    const auto data = pattern(kPlace + kPuts);
    std::vector<unsigned char> sinks(self.is_target() ? kPuts * kPlace : 1);
    void* const gone = mmap(nullptr, kPlace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gone, MAP_FAILED);
    for (std::uint64_t k = 0; self.is_target() && k < kPuts; ++k) {
      auto me = me_of(ni, fails(k) ? gone : sinks.data() + k * kPlace, kPlace,
                      PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_LINK_DISABLE);
      me.match_bits = k;
      append(ni, me);
    }
    self.barrier();
    if (self.is_initiator()) {
      const ptl_handle_md_t md = bind_quiet(ni, data.data(), data.size(), ends.source_eq);
      for (std::uint64_t k = 0; k < kPuts; ++k) {
        put(md, ni.target(), {.length = length_of(k), .local_offset = k, .match_bits = k, .hdr_data = k});
      }
      for (std::uint64_t k = 0; k < kPuts; ++k) {
        const ptl_event_t event = next_event(ends.source_eq);
        ASSERT_EQ(event.type, PTL_EVENT_ACK);
      }
    } else {
      for (std::uint64_t k = 0; k < kPuts; ++k) {
        const ptl_event_t event = next_event(ends.target_eq);
        ASSERT_EQ(event.type, PTL_EVENT_PUT);
        ASSERT_EQ(event.hdr_data, k);
        ASSERT_EQ(event.rlength, length_of(k));
        ASSERT_EQ(event.ni_fail_type, fails(k) ? PTL_NI_SEGV : PTL_NI_OK) << k;
        if (fails(k)) continue;
        const auto* const sink = sinks.data() + k * kPlace;
        ASSERT_TRUE(std::equal(sink, sink + length_of(k), data.data() + k)) << k;
        ASSERT_EQ(sink[length_of(k)], 0) << k;
      }
    }
    self.barrier();
    munmap(gone, kPlace);
  });
}

/// What has not left its sender when that dies never arrives, and the target is told so.
TEST_F(KernelCopy, Initiator_that_dies_in_the_middle__ends_its_message_with_a_failure) {
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    VeryLong message(self, ni, ends);
    if (self.is_initiator()) {
      message.send();
      self.die();
    }
    const FairStopwatch watch;
    const ptl_event_t event = next_event(ends.target_eq);
    EXPECT_EQ(event.type, PTL_EVENT_PUT);
    EXPECT_EQ(event.ni_fail_type, PTL_NI_UNDELIVERABLE);
    EXPECT_LT(watch.seconds(), 1.0);
  });
}

TEST_F(KernelCopy, Target_that_dies_in_the_middle__is_told_within_a_second) {
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    VeryLong message(self, ni, ends);
    if (self.is_target()) {
      const std::atomic_ref front(message.sink[0]);
      ptl_event_t event{};
      for (const double end = now_s() + kLongestWaitS; front == 0 && now_s() < end;) PtlEQGet(ends.target_eq, &event);
      self.die();
    }
    // Several, so that one of them is in the middle even if the target is late to die.
    constexpr int kMessages = 8;
    for (int i = 0; i < kMessages; ++i) message.send();
    int failed = 0;
    std::optional<FairStopwatch> watch(std::in_place);
    for (int i = 0; i < kMessages; ++i) {
      const ptl_event_t event = next_event(ends.source_eq);
      if (event.ni_fail_type == PTL_NI_OK && failed == 0) {
        watch.emplace();
      } else {
        EXPECT_EQ(event.ni_fail_type, PTL_NI_UNDELIVERABLE);
        ++failed;
      }
    }
    EXPECT_GT(failed, 0);
    EXPECT_LT(watch->seconds(), 1.0);
  });
}

// ---- A process under the number of a dead one ----------------------------------------------------------------------

struct NumberBoard {
  std::atomic<int> owner_ready{0};
  std::atomic<int> warm{0};
  std::atomic<int> stranger_ready{0};
  std::atomic<int> done{0};
  std::atomic<utofu_vcq_id_t> vcq_id{0};
  std::atomic<utofu_stadd_t> stadd{0};
};

constexpr std::size_t kNumberBytes = 1 << 20;

/// Memory at the same address in every process that asks for it.
unsigned char* fixed_memory() {
  void* const place = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const memory =
      mmap(place, kNumberBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory != place) _exit(90);
  return static_cast<unsigned char*>(memory);
}

int own_number(NumberBoard& board) {
  unsigned char* const memory = fixed_memory();
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS || utofu_query_vcq_id(vcq, &id) != UTOFU_SUCCESS) return 91;
  if (utofu_reg_mem(vcq, memory, kNumberBytes, 0, &stadd) != UTOFU_SUCCESS) return 92;
  board.vcq_id = id;
  board.stadd = stadd;
  board.owner_ready = 1;
  for (;;) pause();
}

/// Has memory where the dead one had its own. @return 0 if nobody has written there
int take_number(NumberBoard& board) {
  unsigned char* const memory = fixed_memory();
  board.stranger_ready = 1;
  for (int i = 0; i < 20000 && board.done == 0; ++i) usleep(1000);
  return std::all_of(memory, memory + kNumberBytes, [](unsigned char byte) { return byte == 0; }) ? 0 : 1;
}

/// Puts once to the owner, and once when that is dead. @return 0 if the second one fails and the first did not
int put_twice(NumberBoard& board) {
  constexpr unsigned long kFlags = UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  std::vector<unsigned char> memory(kNumberBytes, 7);
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS) return 93;
  if (utofu_reg_mem(vcq, memory.data(), memory.size(), 0, &stadd) != UTOFU_SUCCESS) return 94;
  void* cbdata = nullptr;
  utofu_mrq_notice notice{};
  const auto put_once = [&] {
    if (utofu_put(vcq, board.vcq_id, stadd, board.stadd, kNumberBytes, 1, kFlags, nullptr) != UTOFU_SUCCESS) return 1;
    if (poll_tcq(vcq, &cbdata) != UTOFU_SUCCESS) return 2;
    return poll_mrq(vcq, &notice);
  };
  if (!eventually([&] { return board.owner_ready != 0; }) || put_once() != UTOFU_SUCCESS) return 95;
  board.warm = engine_counter(Counter::kPutsDirect) > 0 ? 1 : 2;
  if (!eventually([&] { return board.stranger_ready != 0; })) return 96;
  const int second = put_once();
  board.done = 1;
  return second == UTOFU_ERR_MRQ_PEER ? 0 : 97;
}

/// A child with this number. @return -1 if the kernel does not let us choose
pid_t fork_as(pid_t number) {
  clone_args wanted{};
  wanted.exit_signal = SIGCHLD;
  wanted.set_tid = reinterpret_cast<std::uintptr_t>(&number);
  wanted.set_tid_size = 1;
  return static_cast<pid_t>(syscall(SYS_clone3, &wanted, sizeof wanted));
}

/// A number is given to others as soon as its process is reaped; what was meant for the one is not the other's.
TEST_F(KernelCopyTofu, Long_put_to_the_dead__does_not_go_to_who_has_its_number_now) {
  setenv("PORTOFU_PEER_CHECK_MS", "1000", 1);  // Nobody has noticed the death.
  own_job();
  const SharedMemory<NumberBoard> board;
  ChildProcess owner([&] { return own_number(*board); });
  ChildProcess initiator([&] { return put_twice(*board); });
  ASSERT_TRUE(eventually([&] { return board->warm != 0; }));
  if (board->warm == 2) GTEST_SKIP() << "this kernel lets no process write another one's memory";
  const pid_t number = owner.pid();
  owner.kill_now();
  const pid_t stranger = fork_as(number);
  if (stranger == 0) _exit(take_number(*board));
  if (stranger < 0) GTEST_SKIP() << "this user cannot choose the number of a process";
  EXPECT_EQ(stranger, number);
  EXPECT_EQ(initiator.wait_status(), 0);
  int status = -1;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0) << "its memory was written";
}

}  // namespace
}  // namespace portofu
