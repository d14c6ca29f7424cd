// fi_msg(3): messages without tags, and buffers for many of them.

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiMsg : public Fabric {};

TEST_F(FiMsg, Messages_arrive_in_order) {
  constexpr int kCount = 500;
  std::vector<int> sent(kCount), received(kCount, -1);
  for (int i = 0; i < kCount; ++i) sent[i] = i;
  for (int i = 0; i < kCount / 2; ++i)
    ASSERT_EQ(fi_recv(b.ep, &received[i], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[i]), 0);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(fi_send(a.ep, &sent[i], sizeof(int), nullptr, to_b, nullptr), 0);
  for (int i = kCount / 2; i < kCount; ++i)
    ASSERT_EQ(fi_recv(b.ep, &received[i], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[i]), 0);
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(b.next().op_context, &received[i]);
  EXPECT_EQ(received, sent);
}

TEST_F(FiMsg, One_buffer_takes_many_messages_until_it_is_used_up) {
  std::array<char, 100> buffer{};
  const iovec piece{buffer.data(), buffer.size()};
  std::size_t least = 30;
  ASSERT_EQ(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  std::size_t got = 0;
  std::size_t bytes = sizeof got;
  ASSERT_EQ(fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &bytes), 0);
  EXPECT_EQ(got, 30u);
  std::array<char, 25> sent{};
  sent.fill('1');
  // The first is unexpected.
  ASSERT_EQ(fi_inject(a.ep, sent.data(), sent.size(), to_b), 0);
  fi_msg msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = FI_ADDR_UNSPEC;
  msg.context = &buffer;
  ASSERT_EQ(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
  sent.fill('2');
  ASSERT_EQ(fi_inject(a.ep, sent.data(), sent.size(), to_b), 0);
  sent.fill('3');
  ASSERT_EQ(fi_inject(a.ep, sent.data(), sent.size(), to_b), 0);
  for (int i = 0; i < 3; ++i) {
    const Completion done = b.next();
    EXPECT_EQ(done.op_context, &buffer);
    EXPECT_EQ(done.len, 25u);
    EXPECT_EQ(static_cast<char*>(done.buf)[0], '1' + i);
  }
  const Completion over = b.next();
  EXPECT_EQ(over.flags, FI_MULTI_RECV) << "it is no message";
  EXPECT_EQ(over.op_context, &buffer);
}

TEST_F(FiMsg, Buffer_for_many_messages_is_free_when_it_is_canceled) {
  std::array<char, 100> buffer{};
  const iovec piece{buffer.data(), buffer.size()};
  fi_msg msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = FI_ADDR_UNSPEC;
  msg.context = &buffer;
  for (const std::uint64_t flags : std::array<std::uint64_t, 2>{FI_MULTI_RECV, 0}) {
    ASSERT_EQ(fi_recvmsg(b.ep, &msg, flags), 0);
    ASSERT_EQ(fi_cancel(&b.ep->fid, &buffer), 0);
    const Completion canceled = b.next();
    EXPECT_EQ(canceled.err, FI_ECANCELED);
    EXPECT_EQ(canceled.op_context, &buffer);
    EXPECT_EQ(canceled.flags, FI_MSG | FI_RECV | flags);
  }
  EXPECT_TRUE(b.is_quiet());
}

TEST_F(FiMsg, Completion_only_where_it_is_asked_for) {
  TearDown();
  a = b = {};
  open(make_hints().get(), FI_SELECTIVE_COMPLETION);
  int sent = 1;
  int received = 0;
  const iovec out{&sent, sizeof sent};
  const iovec in{&received, sizeof received};
  fi_msg msg{};
  msg.iov_count = 1;
  msg.msg_iov = &in;
  msg.addr = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_recvmsg(b.ep, &msg, 0), 0);
  ASSERT_EQ(fi_recvmsg(b.ep, &msg, FI_COMPLETION), 0);
  msg.msg_iov = &out;
  msg.addr = to_b;
  msg.context = &sent;
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, 0), 0);
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_COMPLETION), 0);
  EXPECT_EQ(a.next().op_context, &sent);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_TRUE(b.is_quiet());
}

TEST_F(FiMsg, Injected_message_with_completion) {
  int sent = 5;
  int received = 0;
  const iovec out{&sent, sizeof sent};
  fi_msg msg{};
  msg.msg_iov = &out;
  msg.iov_count = 1;
  msg.addr = to_b;
  msg.context = &sent;
  msg.data = 99;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_INJECT | FI_COMPLETION | FI_REMOTE_CQ_DATA), 0);
  sent = 6;
  EXPECT_EQ(a.next().op_context, &sent);
  EXPECT_EQ(b.next().data, 99u);
  EXPECT_EQ(received, 5);
}

TEST_F(FiMsg, Nobody_is_not_a_target) {
  const int sent = 0;
  EXPECT_EQ(fi_send(a.ep, &sent, sizeof sent, nullptr, 4711, nullptr), -FI_EINVAL);
}

/// "An entry to the associated receive completion queue will always be generated when the buffer has been consumed,
/// even if other receive completions have been suppressed."
TEST_F(FiMsg, End_of_a_buffer_is_told_though_messages_are_not) {
  TearDown();
  a = b = {};
  open(make_hints().get(), FI_SELECTIVE_COMPLETION);
  std::array<char, 100> buffer{};
  const iovec piece{buffer.data(), buffer.size()};
  const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &buffer, 0};
  ASSERT_EQ(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(fi_inject(a.ep, buffer.data(), 30, to_b), 0);
  const Completion over = b.next();
  EXPECT_EQ(over.flags, FI_MULTI_RECV);
  EXPECT_EQ(over.op_context, &buffer);
  EXPECT_TRUE(b.is_quiet());
}

/// fi_endpoint(3), fi_cancel: it "will complete within a bounded period of time", whatever is on its way to the buffer.
TEST_F(FiMsg, Buffer_in_use_is_canceled_when_its_message_is_whole) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  std::vector<char> buffer(2 * kBytes), sent(kBytes, 'x'), other(kBytes);
  const iovec piece{buffer.data(), buffer.size()};
  const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &buffer, 0};
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
    ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, &sent), 0);
    fi_cq_tagged_entry early{};
    const bool was_early = fi_cq_read(b.cq, &early, 1) == 1;
    ASSERT_EQ(fi_cancel(&b.ep->fid, &buffer), 0) << i;
    EXPECT_EQ(fi_cancel(&b.ep->fid, &buffer), -FI_ENOENT) << i;
    int messages = was_early ? 1 : 0;
    Completion told = b.next();
    for (; told.err == 0; told = b.next()) {
      ++messages;
      EXPECT_EQ(told.buf, buffer.data());
      EXPECT_EQ(told.len, kBytes);
    }
    EXPECT_EQ(told.err, FI_ECANCELED);
    EXPECT_EQ(told.op_context, &buffer);
    EXPECT_EQ(told.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
    ASSERT_LE(messages, 1);
    if (messages == 0) {
      ASSERT_EQ(fi_recv(b.ep, other.data(), other.size(), nullptr, FI_ADDR_UNSPEC, &other), 0);
      EXPECT_EQ(b.next().op_context, &other);
    }
    EXPECT_EQ(a.next().op_context, &sent);
  }
  EXPECT_TRUE(b.is_quiet());
}

/// "The buffer will be released by the provider when the available buffer space falls below the specified minimum."
TEST_F(FiMsg, Buffer_that_is_filled_to_its_end_is_released_once) {
  std::array<char, 8> buffer{};
  const iovec piece{buffer.data(), buffer.size()};
  std::size_t least = 4;
  ASSERT_EQ(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &buffer, 0};
  ASSERT_EQ(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(fi_inject(a.ep, "1234", 4, to_b), 0);
  for (int i = 0; i < 2; ++i) {
    const Completion done = b.next();
    EXPECT_EQ(done.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(done.buf, buffer.data() + 4 * i);
  }
  EXPECT_EQ(b.next().flags, FI_MULTI_RECV);
  EXPECT_TRUE(b.is_quiet());
  EXPECT_EQ(fi_cancel(&b.ep->fid, &buffer), -FI_ENOENT);
}

/// A message that does not fit what is left, which is not less than the minimum, ends in error like any other receive.
TEST_F(FiMsg, Message_that_is_longer_than_the_rest_of_a_buffer_is_cut) {
  std::array<char, 100> buffer{};
  const std::array<char, 90> sent{};
  const iovec piece{buffer.data(), buffer.size()};
  std::size_t least = 30;
  ASSERT_EQ(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &buffer, 0};
  ASSERT_EQ(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
  ASSERT_EQ(fi_inject(a.ep, sent.data(), 40, to_b), 0);
  ASSERT_EQ(fi_inject(a.ep, sent.data(), 90, to_b), 0);
  EXPECT_EQ(b.next().len, 40u);
  const Completion cut = b.next();
  EXPECT_EQ(cut.err, FI_ETRUNC);
  EXPECT_EQ(cut.len, 60u);
  EXPECT_EQ(cut.olen, 30u);
  EXPECT_EQ(cut.op_context, &buffer);
  EXPECT_EQ(b.next().flags, FI_MULTI_RECV);
}

/// fi_endpoint(3), iov_limit: "the maximum number of IO vectors (scatter-gather elements) that a single posted
/// operation may reference".
TEST_F(FiMsg, As_many_pieces_as_the_limit_says_and_no_more) {
  const std::size_t limit = info->tx_attr->iov_limit;
  ASSERT_EQ(info->rx_attr->iov_limit, limit);
  std::vector<char> sent(limit + 1), received(limit + 1);
  std::vector<iovec> out, in;
  for (std::size_t i = 0; i <= limit; ++i) {
    sent[i] = static_cast<char>('a' + i % 26);
    out.push_back({&sent[i], 1});
    in.push_back({&received[limit - i], 1});
  }
  ASSERT_EQ(fi_recvv(b.ep, in.data(), nullptr, limit, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_sendv(a.ep, out.data(), nullptr, limit, to_b, nullptr), 0);
  EXPECT_EQ(b.next().len, limit);
  for (std::size_t i = 0; i < limit; ++i) EXPECT_EQ(received[limit - i], sent[i]);
  EXPECT_NE(fi_recvv(b.ep, in.data(), nullptr, limit + 1, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_NE(fi_sendv(a.ep, out.data(), nullptr, limit + 1, to_b, nullptr), 0);
}

/// fi_endpoint(3), FI_MULTI_RECV as a default of the endpoint.
TEST_F(FiMsg, Buffer_for_many_messages_may_be_the_default) {
  TearDown();
  a = b = {};
  Info hints = make_hints();
  hints->rx_attr->op_flags = FI_MULTI_RECV;
  open(hints.get());
  std::array<char, 100> buffer{};
  ASSERT_EQ(fi_recv(b.ep, buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, &buffer), 0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(fi_inject(a.ep, "1234567890123456789", 20, to_b), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(b.next().buf, buffer.data() + 20 * i);
  EXPECT_EQ(b.next().flags, FI_MULTI_RECV) << "60 bytes are left, less than 64";
}

/// "This flag can only be used with messages smaller than inject_size", which is the largest.
TEST_F(FiMsg, Injected_is_as_much_as_the_limit_says) {
  const std::vector<char> sent(info->tx_attr->inject_size + 1);
  const iovec piece{const_cast<char*>(sent.data()), sent.size()};
  const fi_msg msg{&piece, nullptr, 1, to_b, nullptr, 0};
  EXPECT_EQ(fi_inject(a.ep, sent.data(), sent.size() - 1, to_b), 0);
  EXPECT_NE(fi_inject(a.ep, sent.data(), sent.size(), to_b), 0);
  EXPECT_NE(fi_sendmsg(a.ep, &msg, FI_INJECT), 0);
  EXPECT_NE(fi_inject_write(a.ep, sent.data(), sent.size(), to_b, 0, 1), 0);
  EXPECT_TRUE(a.is_quiet());
}

/// fi_endpoint(3), FI_OPT_XPU_TRIGGER: "If the provider does not support XPU triggered operations from the given
/// device, fi_getopt() will return -FI_EOPNOTSUPP." FI_OPT_FI_HMEM_P2P: so will fi_setopt() "if the mode requested
/// cannot be supported".
TEST_F(FiMsg, Options_of_devices_are_not_supported) {
  fi_trigger_xpu trigger{};
  std::size_t bytes = sizeof trigger;
  EXPECT_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_XPU_TRIGGER, &trigger, &bytes), -FI_EOPNOTSUPP);
  for (int mode : {FI_HMEM_P2P_ENABLED, FI_HMEM_P2P_REQUIRED, FI_HMEM_P2P_PREFERRED})
    EXPECT_EQ(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, sizeof mode), -FI_EOPNOTSUPP) << mode;
  int mode = FI_HMEM_P2P_DISABLED;
  EXPECT_EQ(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, sizeof mode), 0);
  EXPECT_EQ(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, 1), -FI_EINVAL);
  mode = -1;
  bytes = 1;
  EXPECT_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, &bytes), -FI_ETOOSMALL);
  bytes = sizeof mode;
  ASSERT_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, &bytes), 0);
  EXPECT_EQ(mode, FI_HMEM_P2P_DISABLED);
  EXPECT_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &mode, &bytes), -FI_ENOPROTOOPT);
}

/// fi_inject is "an optimized version of fi_send" without completion. fi_endpoint(3), "operation flags": they are "the
/// default flags applied to an endpoint's data transfer operations, where a flags parameter is not available".
TEST_F(FiMsg, Injected_is_delivered_where_that_is_the_default) {
  fid_cntr* sends = open_cntr(domain);
  Info hints = make_hints();
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  const Info delivering = get_info(hints.get());
  ASSERT_NE(delivering, nullptr);
  ASSERT_EQ(delivering->tx_attr->op_flags & FI_DELIVERY_COMPLETE, FI_DELIVERY_COMPLETE);
  Node c, closed;
  c.open(domain, delivering.get(), 0, sends, FI_SEND);
  closed.open(domain_of_b, info.get());
  const fi_addr_t to_closed = c.insert(closed);
  std::array<char, 8> text{"1234567"};
  ASSERT_EQ(fi_inject(c.ep, text.data(), text.size(), to_closed), 0);
  ASSERT_EQ(fi_tinjectdata(c.ep, text.data(), text.size(), 1, to_closed, 1), 0);
  text = {};
  EXPECT_EQ(fi_cntr_wait(sends, 2, kPatienceMs), 0);
  EXPECT_TRUE(c.is_quiet()) << "of success it says nothing";
  std::array<char, 8> received{};
  ASSERT_EQ(fi_recv(closed.ep, received.data(), received.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(closed.next().err, 0);
  EXPECT_EQ(received, (std::array<char, 8>{"1234567"}));
  closed.close();
  ASSERT_EQ(fi_inject(c.ep, text.data(), text.size(), to_closed), 0);
  EXPECT_EQ(c.next().err, FI_ECONNREFUSED);
  ASSERT_EQ(fi_tinject(c.ep, text.data(), text.size(), to_closed, 1), 0);
  EXPECT_EQ(c.next().err, FI_ECONNREFUSED);
  EXPECT_EQ(fi_cntr_read(sends), 2u);
  EXPECT_EQ(fi_cntr_readerr(sends), 2u);
  c.close();
}

/// -FI_EMSGSIZE is what is longer than max_msg_size, also where a length in 64 bits cannot say by how much.
TEST_F(FiMsg, Pieces_that_are_too_long_together_are_refused) {
  std::array<char, 8> bytes{};
  const std::array<iovec, 2> pieces{{{bytes.data(), std::size_t{1} << 63}, {bytes.data(), std::size_t{1} << 63}}};
  EXPECT_EQ(fi_sendv(a.ep, const_cast<iovec*>(pieces.data()), nullptr, 2, to_b, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_tsendv(a.ep, const_cast<iovec*>(pieces.data()), nullptr, 2, to_b, 1, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_writev(a.ep, pieces.data(), nullptr, 2, to_b, 0, 1, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_readv(a.ep, pieces.data(), nullptr, 2, to_b, 0, 1, nullptr), -FI_EMSGSIZE);
  const std::array<fi_rma_iov, 2> remote{{{0, std::size_t{1} << 63, 1}, {0, std::size_t{1} << 63, 1}}};
  const fi_msg_rma msg{pieces.data(), nullptr, 2, to_b, remote.data(), 2, nullptr, 0};
  EXPECT_EQ(fi_writemsg(a.ep, &msg, 0), -FI_EMSGSIZE);
  // 2^64 + 1 items.
  const std::array<fi_ioc, 2> items{{{bytes.data(), std::size_t{1} << 63}, {bytes.data(), (std::size_t{1} << 63) + 1}}};
  EXPECT_EQ(fi_atomicv(a.ep, items.data(), nullptr, 2, to_b, 0, 1, FI_UINT8, FI_SUM, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_recvv(a.ep, pieces.data(), nullptr, 2, FI_ADDR_UNSPEC, nullptr), -FI_EINVAL);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_TRUE(b.is_quiet());
}

TEST_F(FiMsg, Message_of_no_bytes_is_a_message) {
  ASSERT_EQ(fi_recv(b.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, &a), 0);
  ASSERT_EQ(fi_senddata(a.ep, nullptr, 0, nullptr, 7, to_b, &b), 0);
  const Completion done = b.next();
  EXPECT_EQ(done.op_context, &a);
  EXPECT_EQ(done.len, 0u);
  EXPECT_EQ(done.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(done.data, 7u);
  EXPECT_EQ(a.next().op_context, &b);
}

/// A call that counts pieces and has none is refused, and so is deferred work.
TEST_F(FiMsg, Pieces_that_are_not_there_are_refused) {
  fi_op_msg msg{};
  fi_op_tagged tagged{};
  fi_op_rma rma{};
  fi_op_atomic atomic{};
  msg.ep = tagged.ep = rma.ep = atomic.ep = a.ep;
  msg.msg.addr = tagged.msg.addr = rma.msg.addr = atomic.msg.addr = to_b;
  msg.msg.iov_count = tagged.msg.iov_count = rma.msg.iov_count = atomic.msg.iov_count = 1;
  rma.msg.rma_iov_count = atomic.msg.rma_iov_count = 1;
  atomic.msg.datatype = FI_UINT64;
  fi_deferred_work work{};
  work.threshold = 1;
  work.triggering_cntr = open_cntr(domain);
  const auto queue = [&](fi_op_type type, auto* op) {
    work.op_type = type;
    work.op.msg = reinterpret_cast<fi_op_msg*>(op);
    return fi_control(&domain->fid, FI_QUEUE_WORK, &work);
  };
  EXPECT_EQ(queue(FI_OP_SEND, &msg), -FI_EINVAL);
  EXPECT_EQ(queue(FI_OP_RECV, &msg), -FI_EINVAL);
  EXPECT_EQ(queue(FI_OP_TSEND, &tagged), -FI_EINVAL);
  EXPECT_EQ(queue(FI_OP_TRECV, &tagged), -FI_EINVAL);
  EXPECT_EQ(queue(FI_OP_READ, &rma), -FI_EINVAL);
  EXPECT_EQ(queue(FI_OP_WRITE, &rma), -FI_EINVAL);
  EXPECT_EQ(queue(FI_OP_ATOMIC, &atomic), -FI_EINVAL);
  EXPECT_EQ(fi_sendmsg(a.ep, &msg.msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_recvmsg(a.ep, &msg.msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_tsendmsg(a.ep, &tagged.msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_sendv(a.ep, nullptr, nullptr, 1, to_b, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_readv(a.ep, nullptr, nullptr, 1, to_b, 0, 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_readmsg(a.ep, &rma.msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_writemsg(a.ep, &rma.msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_atomicmsg(a.ep, &atomic.msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_atomicv(a.ep, nullptr, nullptr, 1, to_b, 0, 1, FI_UINT64, FI_SUM, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace portofu::test
