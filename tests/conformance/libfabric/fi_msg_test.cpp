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

}  // namespace
}  // namespace portofu::test
