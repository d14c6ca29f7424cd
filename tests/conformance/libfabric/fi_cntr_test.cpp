// fi_cntr(3): counters.

#include <poll.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiCntr : public Fabric {
 protected:
  void SetUp() override {
    info = get_info(make_hints().get());
    ASSERT_NE(info, nullptr);
    ASSERT_NO_FATAL_FAILURE(open_domains());
    sends = open_cntr(domain);
    receives = open_cntr(domain_of_b);
    a.open(domain, info.get(), 0, sends, FI_SEND);
    b.open(domain_of_b, info.get(), 0, receives, FI_RECV);
    meet();
  }
  fid_cntr* sends = nullptr;
  fid_cntr* receives = nullptr;
};

TEST_F(FiCntr, Counts_what_it_is_bound_to) {
  int received = 0;
  const int sent = 3;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
    ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  EXPECT_EQ(fi_cntr_wait(receives, 5, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_read(sends), 5u);
  EXPECT_EQ(fi_cntr_read(receives), 5u);
  EXPECT_EQ(fi_cntr_readerr(receives), 0u);
  EXPECT_EQ(fi_cntr_wait(receives, 6, 10), -FI_ETIMEDOUT);
}

TEST_F(FiCntr, Thousands_come_and_go) {
  ASSERT_GE(info->domain_attr->cntr_cnt, 100'000u);
  std::vector<fid_cntr*> cntrs(100'000);
  fi_cntr_attr attr{};
  for (fid_cntr*& opened : cntrs) ASSERT_EQ(fi_cntr_open(domain, &attr, &opened, nullptr), 0);
  const std::clock_t begin = std::clock();
  for (fid_cntr* opened : cntrs) ASSERT_EQ(fi_close(&opened->fid), 0);
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC) << "none looks at all others";
}

TEST_F(FiCntr, Failures_count_apart) {
  int received = 0;
  const std::array<int, 2> sent{};
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, sent.data(), sizeof sent, to_b), 0);
  EXPECT_EQ(b.next().err, FI_ETRUNC);
  EXPECT_EQ(fi_cntr_read(receives), 0u);
  EXPECT_EQ(fi_cntr_readerr(receives), 1u);
}

TEST_F(FiCntr, Can_be_set_and_raised) {
  ASSERT_EQ(fi_cntr_set(sends, 10), 0);
  ASSERT_EQ(fi_cntr_add(sends, 5), 0);
  ASSERT_EQ(fi_cntr_adderr(sends, 2), 0);
  EXPECT_EQ(fi_cntr_read(sends), 15u);
  EXPECT_EQ(fi_cntr_readerr(sends), 2u);
  ASSERT_EQ(fi_cntr_seterr(sends, 0), 0);
  EXPECT_EQ(fi_cntr_readerr(sends), 0u);
  EXPECT_EQ(fi_cntr_read(sends), 15u);
}

TEST_F(FiCntr, Wait_ends_with_an_error_that_is_counted) {
  std::atomic<bool> over{false};
  std::thread failing([&] {
    while (!over) EXPECT_EQ(fi_cntr_adderr(sends, 1), 0);
  });
  EXPECT_EQ(fi_cntr_wait(sends, 1, kPatienceMs), -FI_EAVAIL);
  over = true;
  failing.join();
}

/// A counter at whose file descriptor somebody can wait; closed by the caller.
fid_cntr* open_at_descriptor(fid_domain* domain, int* fd) {
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_FD;
  fid_cntr* cntr = nullptr;
  EXPECT_EQ(fi_cntr_open(domain, &attr, &cntr, nullptr), 0);
  if (cntr == nullptr) return nullptr;
  EXPECT_EQ(fi_control(&cntr->fid, FI_GETWAIT, fd), 0);
  return cntr;
}

TEST_F(FiCntr, File_descriptor_wakes_for_successes_and_failures) {
  int fd = -1;
  fid_cntr* cntr = open_at_descriptor(domain, &fd);
  ASSERT_NE(cntr, nullptr);
  fid* waited = &cntr->fid;
  pollfd look{fd, POLLIN, 0};
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(fi_trywait(fabric, &waited, 1), 0);
    EXPECT_EQ(::poll(&look, 1, 0), 0);
    ASSERT_EQ(i % 2 == 0 ? fi_cntr_add(cntr, 1) : fi_cntr_adderr(cntr, 1), 0);
    EXPECT_EQ(::poll(&look, 1, kPatienceMs), 1);
    EXPECT_EQ(fi_trywait(fabric, &waited, 1), -FI_EAGAIN) << "it has changed";
  }
  EXPECT_EQ(fi_cntr_read(cntr), 2u);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

/// fi_trywait says -FI_EAGAIN "if blocking could hang the application", which has several threads.
TEST_F(FiCntr, File_descriptor_wakes_all_threads) {
  int fd = -1;
  fid_cntr* cntr = open_at_descriptor(domain, &fd);
  ASSERT_NE(cntr, nullptr);
  fid* waited = &cntr->fid;
  const auto try_wait = [&] { return fi_trywait(fabric, &waited, 1); };
  const auto is_readable = [fd] {
    pollfd look{fd, POLLIN, 0};
    return ::poll(&look, 1, 0) == 1;
  };
  std::atomic<int> turn{0};  // Odd: of the second thread.
  std::vector<int> answers;  // To the second thread.
  std::thread second([&] {
    for (int mine = 1; mine < 10; mine += 2) {
      while (turn.load() != mine) std::this_thread::yield();
      answers.push_back(try_wait());
      turn.store(mine + 1);
    }
  });
  const auto let_second_try = [&] {
    const int next = ++turn + 1;
    while (turn.load() != next) std::this_thread::yield();
  };
  let_second_try();  // And sleeps.
  ASSERT_EQ(try_wait(), 0);
  ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
  EXPECT_EQ(try_wait(), -FI_EAGAIN);
  EXPECT_EQ(try_wait(), 0);
  EXPECT_TRUE(is_readable()) << "the second thread may still sleep";
  let_second_try();
  let_second_try();
  EXPECT_EQ(try_wait(), 0);
  EXPECT_FALSE(is_readable());
  ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
  let_second_try();
  let_second_try();  // And does not come back.
  second.join();
  EXPECT_EQ(answers, (std::vector<int>{0, -FI_EAGAIN, 0, -FI_EAGAIN, 0}));
  ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
  EXPECT_EQ(try_wait(), -FI_EAGAIN);
  while (try_wait() == 0 && is_readable()) continue;  // The first is not kept awake for ever.
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

TEST_F(FiCntr, Wait_objects_of_all_kinds_let_it_wait) {
  for (const fi_wait_obj kind : {FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD}) {
    fi_cntr_attr attr{};
    attr.wait_obj = kind;
    fid_cntr* cntr = nullptr;
    ASSERT_EQ(fi_cntr_open(domain, &attr, &cntr, nullptr), 0);
    fi_wait_obj got = FI_WAIT_SET;
    EXPECT_EQ(fi_control(&cntr->fid, FI_GETWAITOBJ, &got), 0);
    EXPECT_EQ(got, kind);
    EXPECT_EQ(fi_cntr_wait(cntr, 1, 1), -FI_ETIMEDOUT);
    std::thread adder([&] { EXPECT_EQ(fi_cntr_add(cntr, 1), 0); });
    EXPECT_EQ(fi_cntr_wait(cntr, 1, kPatienceMs), 0);
    adder.join();
    EXPECT_EQ(fi_close(&cntr->fid), 0);
  }
}

TEST_F(FiCntr, Reads_and_writes_of_others_count_apart) {
  fid_cntr* reads = open_cntr(domain_of_b);
  fid_cntr* writes = open_cntr(domain_of_b);
  Node c;
  c.open(domain_of_b, info.get(), 0, reads, FI_REMOTE_READ, FI_WAIT_UNSPEC, writes, FI_REMOTE_WRITE);
  const fi_addr_t to_c = a.insert(c);
  std::uint64_t word = 0;
  std::uint64_t own = 1;
  fid_mr* region = open_memory(&word, sizeof word, 5);
  ASSERT_EQ(fi_write(a.ep, &own, sizeof own, nullptr, to_c, 0, 5, nullptr), 0);
  a.next();
  ASSERT_EQ(fi_atomic(a.ep, &own, 1, nullptr, to_c, 0, 5, FI_UINT64, FI_SUM, nullptr), 0);
  a.next();
  EXPECT_EQ(fi_cntr_wait(writes, 2, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_read(reads), 0u);
  ASSERT_EQ(fi_read(a.ep, &own, sizeof own, nullptr, to_c, 0, 5, nullptr), 0);
  a.next();
  std::uint64_t old = 0;
  ASSERT_EQ(fi_fetch_atomic(a.ep, &own, 1, nullptr, &old, nullptr, to_c, 0, 5, FI_UINT64, FI_SUM, nullptr), 0);
  a.next();
  ASSERT_EQ(
      fi_compare_atomic(a.ep, &own, 1, nullptr, &own, nullptr, &old, nullptr, to_c, 0, 5, FI_UINT64, FI_CSWAP, nullptr),
      0);
  a.next();
  EXPECT_EQ(fi_cntr_wait(reads, 3, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_read(writes), 2u);
  c.close();
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiCntr, What_it_cannot_be_is_refused) {
  fid_cntr* cntr = nullptr;
  fi_cntr_attr attr{};
  attr.events = static_cast<fi_cntr_events>(FI_CNTR_EVENTS_COMP + 1);
  EXPECT_EQ(fi_cntr_open(domain, &attr, &cntr, nullptr), -FI_EINVAL);
  attr = {};
  attr.flags = FI_MORE;
  EXPECT_EQ(fi_cntr_open(domain, &attr, &cntr, nullptr), -FI_EINVAL);
  attr = {};
  attr.wait_obj = static_cast<fi_wait_obj>(FI_WAIT_POLLFD + 1);
  EXPECT_EQ(fi_cntr_open(domain, &attr, &cntr, nullptr), -FI_EINVAL);
}

/// "Upon successful return from this call, the counter will be greater than or equal to the input threshold value."
TEST_F(FiCntr, Earlier_errors_do_not_end_a_wait) {
  ASSERT_EQ(fi_cntr_adderr(sends, 3), 0);
  EXPECT_EQ(fi_cntr_wait(sends, 1, 0), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_cntr_readerr(sends), 3u) << "the error value remains unchanged";
  ASSERT_EQ(fi_cntr_add(sends, 1), 0);
  EXPECT_EQ(fi_cntr_wait(sends, 1, 0), 0);
  EXPECT_EQ(fi_cntr_wait(sends, 0, 0), 0);
}

/// "Returns the current default operational flags associated with the counter." There are none.
TEST_F(FiCntr, Has_no_flags) {
  std::uint64_t flags = FI_MORE;
  ASSERT_EQ(fi_control(&sends->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(fi_control(&sends->fid, FI_SETOPSFLAG, &flags), 0);
  flags = FI_MORE;
  EXPECT_EQ(fi_control(&sends->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
}

/// "When closing the counter, there must be no opened endpoints ... associated with the counter."
TEST_F(FiCntr, Of_an_endpoint_it_is_in_use) { EXPECT_EQ(fi_close(&sends->fid), -FI_EBUSY); }

/// "Counters increment on all successful completions, separately from whether the operation generates an entry in an
/// event queue." fi_endpoint(3): what ends in error "increments the error counter and generates a CQ completion event".
TEST_F(FiCntr, Counts_what_the_queue_is_not_told) {
  fid_cntr* writes = open_cntr(domain);
  fid_cntr* reads = open_cntr(domain);
  std::uint64_t word = 0;
  std::uint64_t own = 1;
  fid_mr* region = open_memory(&word, sizeof word, 5);
  Node c;
  c.open(domain, info.get(), FI_SELECTIVE_COMPLETION, writes, FI_WRITE, FI_WAIT_UNSPEC, reads, FI_READ);
  const fi_addr_t from_c = c.insert(b);
  ASSERT_EQ(fi_write(c.ep, &own, sizeof own, nullptr, from_c, 0, 5, nullptr), 0);
  ASSERT_EQ(fi_inject_write(c.ep, &own, sizeof own, from_c, 0, 5), 0);
  ASSERT_EQ(fi_atomic(c.ep, &own, 1, nullptr, from_c, 0, 5, FI_UINT64, FI_SUM, nullptr), 0);
  EXPECT_EQ(fi_cntr_wait(writes, 3, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_read(reads), 0u);
  ASSERT_EQ(fi_read(c.ep, &own, sizeof own, nullptr, from_c, 0, 5, nullptr), 0);
  EXPECT_EQ(fi_cntr_wait(reads, 1, kPatienceMs), 0);
  EXPECT_EQ(own, 2u);
  EXPECT_TRUE(c.is_quiet());
  ASSERT_EQ(fi_write(c.ep, &own, sizeof own, nullptr, from_c, 0, 6, nullptr), 0);
  EXPECT_EQ(c.next().err, FI_EKEYREJECTED);
  EXPECT_EQ(fi_cntr_readerr(writes), 1u);
  ASSERT_EQ(fi_read(c.ep, &own, sizeof own, nullptr, from_c, 0, 6, nullptr), 0);
  EXPECT_EQ(c.next().err, FI_EKEYREJECTED);
  EXPECT_EQ(fi_cntr_readerr(reads), 1u);
  EXPECT_EQ(fi_cntr_read(writes), 3u);
  c.close();
  EXPECT_EQ(fi_close(&region->fid), 0);
}

}  // namespace
}  // namespace portofu::test
