// fi_domain(3). Of "resource management": a queue that is full is -FI_EAGAIN, and nothing is lost without a word.

#include <poll.h>

#include <algorithm>
#include <numeric>

#include "tests/conformance/harness/process.h"
#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

/// The target may keep 1 MiB of messages that it has not received.
class FiDomain : public Fabric {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("PORTOFU_UNEXPECTED_MIB", "1", 1), 0);
    Fabric::SetUp();
    ASSERT_EQ(unsetenv("PORTOFU_UNEXPECTED_MIB"), 0);
  }
  static constexpr std::size_t kMib = std::size_t{1} << 20;
};

TEST_F(FiDomain, Flood_of_injected_messages_ends_and_all_of_it_arrives) {
  std::array<std::uint32_t, 1024> sent{};
  std::uint32_t count = 0;
  for (int refused = 0; refused < 100;) {
    sent.fill(count);
    const ssize_t result = fi_inject(a.ep, sent.data(), sizeof sent, to_b);
    ASSERT_TRUE(result == 0 || result == -FI_EAGAIN) << result;
    refused = result == 0 ? 0 : refused + 1;
    count += result == 0 ? 1 : 0;
    ASSERT_LT(count, 12 * kMib / sizeof sent) << "the target keeps one MiB, and some more of each sender";
  }
  std::array<std::uint32_t, 1024> received{};
  for (std::uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(fi_recv(b.ep, received.data(), sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(b.next().err, 0);
    ASSERT_EQ(received.front(), i);
    ASSERT_EQ(received.back(), i);
  }
  while (fi_inject(a.ep, sent.data(), sizeof sent, to_b) == -FI_EAGAIN) continue;
}

TEST_F(FiDomain, Long_messages_that_nobody_receives_wait_at_their_sender) {
  constexpr int kCount = 60;
  std::vector<std::uint8_t> sent(kMib), received(kMib);
  std::iota(sent.begin(), sent.end(), std::uint8_t{1});
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(fi_tsend(a.ep, sent.data(), sent.size(), nullptr, to_b, i, &sent), 0);
  // Memory of others is reached meanwhile.
  std::uint64_t word = 3;
  std::uint64_t fetched = 0;
  fid_mr* region = open_memory(&word, sizeof word, 1);
  ASSERT_EQ(fi_read(a.ep, &fetched, sizeof fetched, nullptr, to_b, 0, 1, &fetched), 0);
  int left = 0;
  while (a.next().op_context == &sent) ++left;
  EXPECT_EQ(fetched, 3u);
  EXPECT_LE(left, 12);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(fi_trecv(b.ep, received.data(), received.size(), nullptr, FI_ADDR_UNSPEC, i, 0, nullptr), 0);
    ASSERT_EQ(b.next().len, sent.size());
    ASSERT_EQ(received, sent);
  }
  for (; left < kCount; ++left) EXPECT_EQ(a.next().err, 0);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// As few operations as can be may wait for the answer of a peer.
class FiDomainWindow : public FiDomain {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("PORTOFU_WINDOW", "1", 1), 0);
    FiDomain::SetUp();
    ASSERT_EQ(unsetenv("PORTOFU_WINDOW"), 0);
  }
};

TEST_F(FiDomainWindow, Memory_is_reached_though_nobody_receives_long_messages) {
  constexpr int kCount = 5;
  std::vector<std::uint8_t> bytes(kMib);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(fi_tsend(a.ep, bytes.data(), kMib, nullptr, to_b, i, &bytes), 0);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(a.next().op_context, &bytes);
  std::uint64_t word = 3;
  std::array<std::uint64_t, kCount> fetched{};
  fid_mr* region = open_memory(&word, sizeof word, 1);
  for (std::uint64_t& place : fetched) ASSERT_EQ(fi_read(a.ep, &place, sizeof place, nullptr, to_b, 0, 1, &place), 0);
  for (std::uint64_t& place : fetched) EXPECT_EQ(a.next().op_context, &place);
  EXPECT_EQ(fetched, (std::array<std::uint64_t, kCount>{3, 3, 3, 3, 3}));
  for (int i = 0; i < kCount; ++i)
    ASSERT_EQ(fi_trecv(b.ep, bytes.data(), kMib, nullptr, FI_ADDR_UNSPEC, i, 0, &word), 0);
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(b.next().op_context, &word);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiDomain, Messages_that_are_received_know_no_bound) {
  std::vector<std::uint8_t> sent(kMib), received(kMib);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(fi_recv(b.ep, received.data(), received.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, nullptr), 0);
    EXPECT_EQ(b.next().err, 0);
    EXPECT_EQ(a.next().err, 0);
  }
}

/// A message whose receive waits arrives, although the target has not received many that were sent before: an MPI
/// program may receive in another order than it sends.
class FiDomainOrder : public FiDomain {
 protected:
  static constexpr int kCount = 40;
  static constexpr std::uint64_t kLast = kCount;

  void send_all(fi_addr_t to) {
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(fi_tsend(a.ep, sent_.data(), sent_.size(), nullptr, to, i, nullptr), 0);
    ASSERT_EQ(fi_tsend(a.ep, sent_.data(), 8, nullptr, to, kLast, nullptr), 0);
  }
  void post(const Node& target, std::uint64_t tag) {
    ASSERT_EQ(fi_trecv(target.ep, received_.data(), received_.size(), nullptr, FI_ADDR_UNSPEC, tag, 0, nullptr), 0);
  }
  void receive_others(const Node& target) {
    for (int i = 0; i < kCount; ++i) {
      post(target, i);
      EXPECT_EQ(target.next().len, kMib);
    }
    for (int i = 0; i <= kCount; ++i) EXPECT_EQ(a.next().err, 0);
  }

  /// What others do not sleep at is not what somebody sleeps at.
  void find_news_elsewhere() {
    fid* other = &b.cq->fid;
    ASSERT_EQ(fi_recv(b.ep, received_.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(a.ep, sent_.data(), 8, to_b), 0);
    while (fi_trywait(fabric_of_b, &other, 1) == 0) continue;
    EXPECT_EQ(b.next().len, 8u);
  }

  /// Sleeps at the file descriptor of a queue or of a counter. Only then somebody posts the receive, if it is not yet.
  void sleep_at(fid* waited, bool is_posted = true) {
    int fd = -1;
    ASSERT_EQ(fi_control(waited, FI_GETWAIT, &fd), 0);
    while (fi_trywait(fabric_of_b, &waited, 1) != 0) continue;
    find_news_elsewhere();
    send_all(to_c_);
    if (!is_posted) post(c_, kLast);
    pollfd look{fd, POLLIN, 0};
    EXPECT_EQ(::poll(&look, 1, kPatienceMs), 1);
    EXPECT_EQ(c_.next().tag, kLast);
    receive_others(c_);
  }
  /// An endpoint with file descriptors, whose counter counts what it receives.
  void open_sleeper() {
    fi_cntr_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    ASSERT_EQ(fi_cntr_open(domain_of_b, &attr, &cntr_, nullptr), 0);
    keep(&cntr_->fid);
    c_.open(domain_of_b, info.get(), 0, cntr_, FI_RECV, FI_WAIT_FD);
    to_c_ = a.insert(c_);
  }
  void TearDown() override {
    c_.close();
    FiDomain::TearDown();
  }

  Node c_;
  fid_cntr* cntr_ = nullptr;
  fi_addr_t to_c_ = FI_ADDR_NOTAVAIL;
  std::vector<std::uint8_t> sent_ = std::vector<std::uint8_t>(kMib);
  std::vector<std::uint8_t> received_ = std::vector<std::uint8_t>(kMib);
};

TEST_F(FiDomainOrder, Last_message_wakes_who_sleeps_at_a_queue) {
  open_sleeper();
  post(c_, kLast);
  sleep_at(&c_.cq->fid);
}

TEST_F(FiDomainOrder, Last_message_wakes_who_sleeps_at_a_counter) {
  open_sleeper();
  post(c_, kLast);
  sleep_at(&cntr_->fid);
}

TEST_F(FiDomainOrder, Receive_that_is_posted_later_wakes_who_sleeps) {
  open_sleeper();
  for (fid* waited : {&c_.cq->fid, &cntr_->fid}) sleep_at(waited, false);
}

TEST_F(FiDomainOrder, Last_message_is_counted_for_who_waits) {
  open_sleeper();
  post(c_, kLast);
  send_all(to_c_);
  EXPECT_EQ(fi_cntr_wait(cntr_, 1, kPatienceMs), 0);
  EXPECT_EQ(c_.next().tag, kLast);
  receive_others(c_);
}

TEST_F(FiDomainOrder, Last_message_is_counted_for_who_asks_a_poll_set) {
  open_sleeper();
  post(c_, kLast);
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(domain_of_b, &attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &cntr_->fid, 0), 0);
  send_all(to_c_);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  void* found = nullptr;
  while (fi_poll(set, &found, 1) == 0 && std::chrono::steady_clock::now() < deadline) continue;
  EXPECT_EQ(fi_cntr_read(cntr_), 1u);
  EXPECT_EQ(c_.next().tag, kLast);
  receive_others(c_);
  EXPECT_EQ(fi_poll_del(set, &cntr_->fid, 0), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(FiDomainOrder, Last_message_arrives_first_for_who_polls) {
  post(b, kLast);
  send_all(to_b);
  EXPECT_EQ(b.next().tag, kLast);
  receive_others(b);
}

TEST_F(FiDomainOrder, Last_message_arrives_first_for_who_blocks) {
  send_all(to_b);
  post(b, kLast);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, kPatienceMs), 1);
  EXPECT_EQ(entry.tag, kLast);
  receive_others(b);
}

TEST_F(FiDomainOrder, Last_message_is_found_by_who_peeks) {
  send_all(to_b);
  fi_msg_tagged peek{};
  peek.addr = FI_ADDR_UNSPEC;
  peek.tag = kLast;
  Completion found{};
  do {
    ASSERT_EQ(fi_trecvmsg(b.ep, &peek, FI_PEEK), 0);
    found = b.next();
  } while (found.err == FI_ENOMSG);
  EXPECT_EQ(found.len, 8u);
  post(b, kLast);
  EXPECT_EQ(b.next().tag, kLast);
  receive_others(b);
}

TEST_F(FiDomain, What_waits_for_a_peer_is_bounded) {
  std::vector<std::uint8_t> sent(kMib);
  ssize_t result = 0;
  int count = 0;
  while ((result = fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, nullptr)) == 0 && count < 100000) ++count;
  EXPECT_EQ(result, -FI_EAGAIN);
}

/// "Binding an event queue to a domain with the FI_REG_MR flag indicates that the provider should perform all memory
/// registration operations asynchronously, with the completion reported through the event queue."
TEST_F(FiDomain, Bound_event_queue_is_told_of_regions) {
  for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{FI_REG_MR}}) {
    fid_domain* own = nullptr;
    fid_eq* eq = nullptr;
    fid_eq* second = nullptr;
    fid_mr* region = nullptr;
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_UNSPEC;
    ASSERT_EQ(fi_domain(fabric_of_b, info.get(), &own, nullptr), 0);
    ASSERT_EQ(fi_eq_open(fabric_of_b, &attr, &eq, nullptr), 0);
    EXPECT_EQ(fi_domain_bind(own, &eq->fid, FI_EVENT), -FI_EBADFLAGS);
    EXPECT_EQ(fi_domain_bind(own, &own->fid, flags), -FI_EINVAL);
    ASSERT_EQ(fi_domain_bind(own, &eq->fid, flags), 0);
    EXPECT_EQ(fi_domain_bind(own, &eq->fid, 0), 0) << "it has that one";
    ASSERT_EQ(fi_eq_open(fabric_of_b, &attr, &second, nullptr), 0);
    EXPECT_EQ(fi_domain_bind(own, &second->fid, flags), -FI_EINVAL);
    EXPECT_EQ(fi_close(&second->fid), 0);
    EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
    int word = 0;
    ASSERT_EQ(fi_mr_reg(own, &word, sizeof word, FI_REMOTE_READ, 0, 1, 0, &region, &attr), 0);
    fid_mr* refused = nullptr;
    EXPECT_EQ(fi_mr_reg(own, &word, sizeof word, FI_REMOTE_READ, 0, 1, 0, &refused, nullptr), -FI_ENOKEY);
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    if (flags != 0) {
      EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, kPatienceMs, 0), static_cast<ssize_t>(sizeof entry));
      EXPECT_EQ(event, static_cast<std::uint32_t>(FI_MR_COMPLETE));
      EXPECT_EQ(entry.fid, &region->fid);
      EXPECT_EQ(entry.context, &attr);
    }
    EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAGAIN);
    for (fid* object : {&region->fid, &own->fid, &eq->fid}) EXPECT_EQ(fi_close(object), 0);
  }
}

/// fi_endpoint(3): "a lower bound on the number of transmit operations that may be posted to the given endpoint without
/// that operation returning -FI_EAGAIN". They are deprecated, and "may not be supported by all providers".
TEST_F(FiDomain, Size_that_is_left_is_a_lower_bound) {
  for (const auto size_left : {a.ep->ops->tx_size_left, a.ep->ops->rx_size_left}) {
    const ssize_t left = size_left(a.ep);
    if (left == -FI_ENOSYS) continue;
    ASSERT_GE(left, 0);
    std::array<char, 4096> bytes{};
    for (ssize_t i = 0; i < left; ++i) {
      const ssize_t posted = size_left == a.ep->ops->tx_size_left
                                 ? fi_tinject(a.ep, bytes.data(), bytes.size(), to_b, 0)
                                 : fi_recv(a.ep, bytes.data(), bytes.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
      ASSERT_EQ(posted, 0) << i << " of " << left;
    }
  }
}

/// fi_msg(3), FI_FENCE: "the requested operation ... and any operation posted after the fenced operation will be
/// deferred until all previous operations targeting the same peer endpoint have completed". That holds for messages
/// that wait at their sender until others have been received, too.
class FiDomainFence : public FiDomain {
 protected:
  void SetUp() override {
    FiDomain::SetUp();
    region_ = open_memory(memory_.data(), sizeof memory_, 1);
  }
  void TearDown() override {
    EXPECT_EQ(fi_close(&region_->fid), 0);
    Fabric::TearDown();
  }

  void send(int tag, std::uint64_t flags) {
    const iovec piece{bytes_.data(), bytes_.size()};
    const fi_msg_tagged msg{&piece, nullptr, 1, to_b, static_cast<std::uint64_t>(tag), 0, nullptr, 0};
    ASSERT_EQ(fi_tsendmsg(a.ep, &msg, flags), 0);
  }
  ssize_t access(std::size_t index, std::uint64_t flags) {
    const iovec piece{&words_[index], 8};
    const fi_rma_iov remote{index * 8, 8, 1};
    const fi_msg_rma msg{&piece, nullptr, 1, to_b, &remote, 1, &words_[index], 0};
    return index == kRead ? fi_readmsg(a.ep, &msg, flags) : fi_writemsg(a.ep, &msg, flags);
  }
  /// More messages than leave before some are received.
  void flood() {
    for (int i = 0; i < kCount; ++i) send(i, 0);
  }
  void receive(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(fi_trecv(b.ep, received_.data(), kMib, nullptr, FI_ADDR_UNSPEC, i, 0, nullptr), 0);
      ASSERT_EQ(b.next().err, 0);
    }
  }
  /// All messages end before the first access.
  void expect_accesses_behind(int count, std::size_t accesses) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(a.next().flags, FI_SEND | FI_TAGGED) << i;
    std::vector<void*> ended;
    for (std::size_t i = 0; i < accesses; ++i) ended.push_back(a.next().op_context);
    std::ranges::sort(ended);
    for (std::size_t i = 0; i < accesses; ++i) EXPECT_EQ(ended[i], &words_[i]);
  }

  static constexpr int kCount = 32;
  static constexpr std::size_t kRead = 2;
  std::array<std::uint64_t, 3> words_{1, 2, 3};
  std::array<std::uint64_t, 3> memory_{0, 0, 7};
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(kMib, 5);
  std::vector<std::uint8_t> received_ = std::vector<std::uint8_t>(kMib);
  fid_mr* region_ = nullptr;
};

TEST_F(FiDomainFence, Write_waits_for_messages_that_wait) {
  flood();
  ASSERT_EQ(access(0, FI_FENCE), 0);
  ASSERT_EQ(access(1, 0), 0);
  ASSERT_EQ(access(kRead, 0), 0);
  EXPECT_EQ(access(1, FI_INJECT), -FI_EAGAIN) << "what is injected cannot wait";
  receive(kCount);
  expect_accesses_behind(kCount, 3);
  EXPECT_EQ(memory_, (std::array<std::uint64_t, 3>{1, 2, 7}));
  EXPECT_EQ(words_[kRead], 7u);
  words_[1] = 9;
  ASSERT_EQ(access(1, FI_INJECT), 0) << "nothing is held any more";
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(memory_[1], 9u);
}

TEST_F(FiDomainFence, Write_that_waits_can_be_canceled) {
  flood();
  ASSERT_EQ(access(0, FI_FENCE), 0);
  ASSERT_EQ(access(1, 0), 0);
  ASSERT_EQ(fi_cancel(&a.ep->fid, &words_[0]), 0);
  int sends = 0;
  Completion ended = a.next();
  for (; ended.flags == (FI_SEND | FI_TAGGED); ended = a.next()) ++sends;
  EXPECT_LT(sends, kCount);
  EXPECT_EQ(ended.err, FI_ECANCELED);
  EXPECT_EQ(ended.op_context, &words_[0]);
  receive(kCount);
  for (; sends < kCount; ++sends) EXPECT_EQ(a.next().flags, FI_SEND | FI_TAGGED);
  EXPECT_EQ(a.next().op_context, &words_[1]);
  EXPECT_EQ(memory_, (std::array<std::uint64_t, 3>{0, 2, 7}));
}

/// A message that has left is complete, also if nobody receives it: b answers no mark here, and nothing else is due.
TEST_F(FiDomainFence, Waits_for_no_message_that_is_complete) {
  for (const int sent : {3, 8}) {
    for (int i = 0; i < sent; ++i) send(i, 0);
    for (int i = 0; i < sent; ++i) EXPECT_EQ(a.next().err, 0);
    ASSERT_EQ(access(0, FI_FENCE), 0);
    EXPECT_EQ(a.next().op_context, &words_[0]) << "behind " << sent << " messages";
    ASSERT_EQ(access(kRead, FI_FENCE), 0);
    EXPECT_EQ(a.next().op_context, &words_[kRead]);
    words_[1] += 1;
    ASSERT_EQ(access(1, FI_FENCE | FI_INJECT), 0);
    EXPECT_EQ(a.next().op_context, &words_[1]);
    EXPECT_EQ(memory_, (std::array<std::uint64_t, 3>{words_[0], words_[1], 7}));
    receive(sent);
  }
  for (int i = 0; i < 3; ++i) send(i, 0);
  send(3, FI_FENCE);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.next().flags, FI_SEND | FI_TAGGED) << i;
  receive(4);
}

TEST_F(FiDomainFence, Write_behind_a_fenced_message_waits_for_it) {
  flood();
  ASSERT_EQ(access(0, 0), 0) << "what is not fenced goes on";
  send(kCount, FI_FENCE);
  ASSERT_EQ(access(1, 0), 0);
  int sends = 0;
  for (bool written = false; !written;) {
    const Completion ended = a.next();
    written = ended.op_context == &words_[0];
    sends += written ? 0 : 1;
    ASSERT_LT(sends, kCount);
  }
  receive(kCount + 1);
  for (; sends <= kCount; ++sends) EXPECT_EQ(a.next().flags, FI_SEND | FI_TAGGED);
  EXPECT_EQ(a.next().op_context, &words_[1]);
  EXPECT_EQ(memory_[1], 2u);
}

/// The same between processes, where the target's own calls are not what makes it receive.
void flood_another(conformance::Process& self) {
  constexpr int kCount = 40;
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  ASSERT_EQ(setenv("PORTOFU_UNEXPECTED_MIB", "1", 1), 0);
  const LoneNode node;
  const fi_addr_t other = node.know(self.share(node.name())[self.rank() == 0 ? 1 : 0]);
  std::vector<std::uint8_t> bytes(kBytes);
  if (self.rank() == 1) {
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    for (int i = 0; i < kCount; ++i)
      ASSERT_EQ(fi_tsend(node->ep, bytes.data(), bytes.size(), nullptr, other, i, nullptr), 0);
    EXPECT_EQ(fi_tinject(node->ep, bytes.data(), 8, other, kCount), -FI_EAGAIN) << "what is injected cannot wait";
    int left = 0;
    fi_cq_tagged_entry entry{};
    while (fi_cq_sread(node->cq, &entry, 1, nullptr, 300) == 1) ++left;
    EXPECT_LE(left, 12);
    self.barrier();
    for (; left < kCount; ++left) EXPECT_EQ(node->next().err, 0);
  } else {
    self.barrier();
    std::vector<std::uint8_t> expected(kBytes);
    std::iota(expected.begin(), expected.end(), std::uint8_t{1});
    for (int i = 0; i < kCount; ++i) {
      bytes.assign(kBytes, 0);
      ASSERT_EQ(fi_trecv(node->ep, bytes.data(), bytes.size(), nullptr, FI_ADDR_UNSPEC, i, 0, nullptr), 0);
      ASSERT_EQ(node->next().len, kBytes);
      ASSERT_EQ(bytes, expected);
    }
  }
  self.barrier();
}

TEST(FiDomainProcesses, Long_messages_that_nobody_receives_wait_at_their_sender) {
  conformance::run_processes(2, flood_another);
}

/// FI_PROGRESS_AUTO: "No application action is required" (fi_domain(3)). The target posts a receive, and calls nothing
/// while messages for which it has none come before the one that it waits for.
void flood_who_is_away(conformance::Process& self, bool posts_first) {
  constexpr int kCount = 40;
  constexpr int kHeld = 20;  // From then on no message leaves before some are received.
  ASSERT_EQ(setenv("PORTOFU_UNEXPECTED_MIB", "1", 1), 0);
  const LoneNode node;
  const fi_addr_t other = node.know(self.share(node.name())[self.rank() == 0 ? 1 : 0]);
  std::vector<std::uint8_t> bytes(std::size_t{1} << 20);
  std::uint64_t word = self.rank();
  const auto post = [&] {
    ASSERT_EQ(fi_trecv(node->ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, kCount, 0, nullptr), 0);
  };
  const auto flood = [&](int first, int end) {
    for (int i = first; i < end; ++i)
      ASSERT_EQ(fi_tsend(node->ep, bytes.data(), bytes.size(), nullptr, other, i, nullptr), 0);
  };
  if (self.rank() == 0) {
    if (posts_first) post();
    self.barrier();
    self.barrier();
    if (!posts_first) post();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::atomic_ref(word).load() == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(std::atomic_ref(word).load(), 1u);
    EXPECT_EQ(node->next().tag, std::uint64_t{kCount});
  } else {
    self.barrier();
    flood(0, kHeld);
    self.barrier();
    flood(kHeld, kCount);
    ASSERT_EQ(fi_tsend(node->ep, &word, sizeof word, nullptr, other, kCount, nullptr), 0);
    for (int i = 0; i <= kCount; ++i) EXPECT_EQ(node->next().err, 0);
  }
  self.barrier();
}

TEST(FiDomainProcesses, Receive_gets_its_message_while_its_process_is_away) {
  conformance::run_processes(2, [](conformance::Process& self) { flood_who_is_away(self, true); });
}

TEST(FiDomainProcesses, Receive_that_is_posted_last_gets_its_message_too) {
  conformance::run_processes(2, [](conformance::Process& self) { flood_who_is_away(self, false); });
}

}  // namespace
}  // namespace portofu::test
