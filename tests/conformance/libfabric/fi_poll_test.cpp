// fi_poll(3): poll sets, wait sets and fi_trywait.

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiPoll : public Fabric {
 protected:
  void SetUp() override {
    info = get_info(make_hints().get());
    ASSERT_NE(info, nullptr);
    ASSERT_NO_FATAL_FAILURE(open_domains());
    receives = open_cntr(domain_of_b);
    a.open(domain, info.get());
    b.open(domain_of_b, info.get(), 0, receives, FI_RECV);
    meet();
  }

  fid_wait* open_set(fi_wait_obj kind) {
    fi_wait_attr attr{};
    attr.wait_obj = kind;
    fid_wait* set = nullptr;
    EXPECT_EQ(fi_wait_open(fabric_of_b, &attr, &set), 0);
    return set;
  }

  /// A queue and a counter of a set, and an endpoint that tells them.
  void open_members(fid_wait* set) {
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    cq_attr.wait_obj = FI_WAIT_SET;
    cq_attr.wait_set = set;
    ASSERT_EQ(fi_cq_open(domain_of_b, &cq_attr, &c.cq, nullptr), 0);
    fi_cntr_attr cntr_attr{};
    cntr_attr.wait_obj = FI_WAIT_SET;
    cntr_attr.wait_set = set;
    ASSERT_EQ(fi_cntr_open(domain_of_b, &cntr_attr, &cntr, nullptr), 0);
    fi_av_attr av_attr{};
    ASSERT_EQ(fi_av_open(domain_of_b, &av_attr, &c.av, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain_of_b, info.get(), &c.ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(c.ep, &c.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(c.ep, &c.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(c.ep), 0);
    to_c = a.insert(c);
  }
  void close_members(fid_wait* set) {
    EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
    c.close();
    EXPECT_EQ(fi_close(&cntr->fid), 0);
    EXPECT_EQ(fi_close(&set->fid), 0);
  }

  fid_cntr* receives = nullptr;
  Node c;
  fid_cntr* cntr = nullptr;
  fi_addr_t to_c = FI_ADDR_NOTAVAIL;
  int received = 0;
  int sent = 5;
};

TEST_F(FiPoll, Set_names_who_has_news) {
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(domain_of_b, &attr, &set), 0);
  receives->fid.context = &receives;
  b.cq->fid.context = &b;
  ASSERT_EQ(fi_poll_add(set, &receives->fid, 0), 0);
  ASSERT_EQ(fi_poll_add(set, &b.cq->fid, 0), 0);
  std::array<void*, 4> contexts{};
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
  ASSERT_EQ(fi_cntr_wait(receives, 1, kPatienceMs), 0);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 2);
  EXPECT_EQ(fi_poll_del(set, &b.cq->fid, 0), 0);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY) << "the counter is in it";
  EXPECT_EQ(fi_poll_del(set, &receives->fid, 0), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
  EXPECT_EQ(b.next().err, 0);
}

/// "The context associated with a counter will be returned if the counter's success value or error value have changed
/// since the last time fi_poll, fi_cntr_set, or fi_cntr_add were called." Here to the value that was there before.
TEST_F(FiPoll, Counter_that_was_set_back_has_news_when_it_counts) {
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  std::array<void*, 4> contexts{};
  ASSERT_EQ(fi_poll_open(domain_of_b, &attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &receives->fid, 0), 0);
  fi_cntr_attr cntr_attr{};
  cntr_attr.wait_obj = FI_WAIT_FD;
  ASSERT_EQ(fi_cntr_open(domain_of_b, &cntr_attr, &cntr, nullptr), 0);
  fid* waited = &cntr->fid;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_cntr_set(receives, 0), 0);
    ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
    ASSERT_EQ(fi_cntr_wait(receives, 1, kPatienceMs), 0);
    EXPECT_EQ(fi_poll(set, contexts.data(), 4), 1);
    EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
    ASSERT_EQ(fi_cntr_set(cntr, 0), 0);
    ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
    EXPECT_EQ(fi_trywait(fabric_of_b, &waited, 1), -FI_EAGAIN);
    EXPECT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  }
  EXPECT_EQ(fi_poll_del(set, &receives->fid, 0), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

TEST_F(FiPoll, Set_asks_nobody_who_is_closed) {
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(domain_of_b, &attr, &set), 0);
  fi_cq_attr cq_attr{};
  fi_cntr_attr cntr_attr{};
  fid_cq* cq = nullptr;
  ASSERT_EQ(fi_cq_open(domain_of_b, &cq_attr, &cq, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(domain_of_b, &cntr_attr, &cntr, nullptr), 0);
  EXPECT_EQ(fi_poll_add(set, nullptr, 0), -FI_EINVAL);
  ASSERT_EQ(fi_poll_add(set, &cq->fid, 0), 0);
  ASSERT_EQ(fi_poll_add(set, &cntr->fid, 0), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
  std::array<void*, 2> contexts{};
  EXPECT_EQ(fi_poll(set, contexts.data(), 2), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

// The lock of a set that another thread of the parent asks is nothing to the child, whose sets are its own.
TEST_F(FiPoll, Child_of_a_fork_closes_its_queues_while_its_parent_polls) {
  if (have_two_engines()) GTEST_SKIP() << "the child has one";
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(domain, &attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &a.cq->fid, 0), 0);
  std::atomic<bool> over{false};
  std::thread poller([&] {
    for (void* found = nullptr; !over;) fi_poll(set, &found, 1);
  });
  int status = 0;
  for (int i = 0; i < 10 && status == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kLongestWait.count());
      { const LoneNode own; }
      _exit(HasFailure() ? 1 : 0);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
  }
  EXPECT_EQ(status, 0);
  over = true;
  poller.join();
  EXPECT_EQ(fi_poll_del(set, &a.cq->fid, 0), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(FiPoll, Wait_set_wakes_for_each_of_its_members) {
  for (const fi_wait_obj kind : {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD}) {
    fid_wait* set = open_set(kind);
    open_members(set);
    EXPECT_EQ(fi_wait(set, 5), -FI_ETIMEDOUT);
    ASSERT_EQ(fi_recv(c.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    std::thread sender([&] { EXPECT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_c), 0); });
    EXPECT_EQ(fi_wait(set, kPatienceMs), 0);
    sender.join();
    EXPECT_EQ(c.next().err, 0);
    EXPECT_EQ(fi_wait(set, 5), -FI_ETIMEDOUT);
    std::thread adder([&] { EXPECT_EQ(fi_cntr_add(cntr, 1), 0); });
    EXPECT_EQ(fi_wait(set, kPatienceMs), 0);
    adder.join();
    close_members(set);
  }
}

TEST_F(FiPoll, Wait_set_has_one_file_descriptor) {
  fid_wait* set = open_set(FI_WAIT_FD);
  open_members(set);
  int fd = -1;
  ASSERT_EQ(fi_control(&set->fid, FI_GETWAIT, &fd), 0);
  pollfd look{fd, POLLIN, 0};
  fid* waited = &set->fid;
  ASSERT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  ASSERT_EQ(fi_recv(c.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_c), 0);
  EXPECT_EQ(::poll(&look, 1, kPatienceMs), 1);
  EXPECT_EQ(fi_trywait(fabric_of_b, &waited, 1), -FI_EAGAIN);
  EXPECT_EQ(c.next().err, 0);
  close_members(set);
}

/// epoll(7): a file is watched until all descriptors of it are closed, and a child of a fork has some. What is closed
/// "must not be associated" with the set any more (fi_poll(3)), so its events wake nobody.
TEST_F(FiPoll, Wait_set_does_not_wake_for_who_is_closed_while_a_child_lives) {
  fid_wait* set = open_set(FI_WAIT_FD);
  open_members(set);
  int fd = -1;
  ASSERT_EQ(fi_control(&set->fid, FI_GETWAIT, &fd), 0);
  fid* waited = &set->fid;
  ASSERT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_c), 0);
  ASSERT_EQ(fi_recv(c.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  pollfd look{fd, POLLIN, 0};
  ASSERT_EQ(::poll(&look, 1, kPatienceMs), 1);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  c.close();
  EXPECT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  close_members(set);
}

TEST_F(FiPoll, Wait_set_wakes_at_a_condition) {
  fid_wait* set = open_set(FI_WAIT_MUTEX_COND);
  open_members(set);
  fi_mutex_cond wait{};
  ASSERT_EQ(fi_control(&set->fid, FI_GETWAIT, &wait), 0);
  fid* waited = &set->fid;
  pthread_mutex_lock(wait.mutex);
  ASSERT_EQ(fi_trywait(fabric_of_b, &waited, 1), 0);
  std::thread adder([&] { EXPECT_EQ(fi_cntr_add(cntr, 1), 0); });
  pthread_cond_wait(wait.cond, wait.mutex);
  pthread_mutex_unlock(wait.mutex);
  adder.join();
  EXPECT_EQ(fi_cntr_read(cntr), 1u);
  close_members(set);
}

/// Who asks for the condition takes nothing from those that call fi_wait.
TEST_F(FiPoll, Wait_set_wakes_threads_that_call_it_though_its_condition_is_known) {
  fid_wait* set = open_set(FI_WAIT_MUTEX_COND);
  open_members(set);
  fi_mutex_cond wait{};
  ASSERT_EQ(fi_control(&set->fid, FI_GETWAIT, &wait), 0);
  std::atomic<std::uint64_t> seen{0};
  constexpr std::uint64_t kCount = 50;
  std::thread waiter([&] {
    while (seen < kCount && fi_wait(set, 40000) == 0) seen = fi_cntr_read(cntr);
  });
  for (std::uint64_t i = 1; i <= kCount && !HasFailure(); ++i) {
    for (int turns = 0; turns < 200; ++turns) std::this_thread::yield();  // Mostly it sleeps by then.
    EXPECT_EQ(fi_cntr_add(cntr, 1), 0);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (seen < i && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_GE(seen, i) << "an event woke nobody";
  }
  EXPECT_EQ(fi_cntr_add(cntr, kCount), 0);
  waiter.join();
  close_members(set);
}

TEST_F(FiPoll, Wait_set_holds_event_queues_too) {
  fid_wait* set = open_set(FI_WAIT_UNSPEC);
  fi_eq_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  attr.wait_set = set;
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(fabric_of_b, &attr, &eq, nullptr), 0);
  EXPECT_EQ(fi_wait(set, 5), -FI_ETIMEDOUT);
  const fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_write(eq, 1, &entry, sizeof entry, 0), static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(fi_wait(set, kPatienceMs), 0);
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&eq->fid), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(FiPoll, What_a_wait_set_cannot_be_is_refused) {
  fi_wait_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  fid_wait* set = nullptr;
  EXPECT_NE(fi_wait_open(fabric_of_b, &attr, &set), 0);
  fi_cq_attr cq_attr{};
  cq_attr.wait_obj = FI_WAIT_SET;
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(domain_of_b, &cq_attr, &cq, nullptr), -FI_EINVAL) << "no set is named";
}

/// "Completion queues will return their context if they are not empty"; an error entry is one. "The context associated
/// with a counter will be returned if the counter's success value or error value have changed".
TEST_F(FiPoll, Set_names_who_has_failures) {
  fid_poll* set = nullptr;
  fi_poll_attr attr{};
  int word = 0;
  std::array<void*, 4> contexts{};
  fid_cntr* failures = open_cntr(domain);
  a.cq->fid.context = &a;
  failures->fid.context = &word;
  ASSERT_EQ(fi_poll_open(domain, &attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &a.cq->fid, 0), 0);
  ASSERT_EQ(fi_poll_add(set, &failures->fid, 0), 0);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  ASSERT_EQ(fi_recv(a.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, &word), 0);
  ASSERT_EQ(fi_cancel(&a.ep->fid, &word), 0);
  ASSERT_EQ(fi_poll(set, contexts.data(), 4), 1);
  EXPECT_EQ(contexts[0], &a);
  EXPECT_EQ(a.next().err, FI_ECANCELED);
  ASSERT_EQ(fi_cntr_adderr(failures, 1), 0);
  ASSERT_EQ(fi_poll(set, contexts.data(), 4), 1);
  EXPECT_EQ(contexts[0], &word);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  ASSERT_EQ(fi_poll_del(set, &a.cq->fid, 0), 0);
  ASSERT_EQ(fi_poll_del(set, &failures->fid, 0), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

}  // namespace
}  // namespace portofu::test
