// What fi_cq(3) and fi_errno(3) promise of a peer that is gone: operations on their way to it end with errors, and so
// do those that come later.

#include <set>

#include "tests/conformance/libfabric/peer_process.h"

namespace portofu::test {
namespace {

class FiDeath : public Fabric {
 protected:
  // The peer is made before this process has an engine.
  void SetUp() override {
    ASSERT_TRUE(peer.is_there());
    Fabric::SetUp();
    ASSERT_EQ(fi_av_insert(a.av, peer.name().data(), 1, &to_peer, 0, nullptr), 1);
  }

  /// The error of an operation that `start` starts again and again until one fails.
  template <class Start>
  int first_error(Start start) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (const ssize_t result = start(); result == -FI_EAGAIN) continue;
      if (const int error = a.next().err; error != 0) return error;
    }
    return 0;
  }

  const OneMib bound;
  PeerProcess peer;
  fi_addr_t to_peer = FI_ADDR_NOTAVAIL;
  std::uint64_t word = 1;
};

TEST_F(FiDeath, Messages_and_reads_end_with_errors) {
  const iovec piece{&word, sizeof word};
  fi_msg msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = to_peer;
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(a.next().err, 0);
  peer.kill();
  EXPECT_EQ(first_error([&] { return fi_sendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE); }), FI_ECONNABORTED);
  EXPECT_EQ(first_error([&] { return fi_read(a.ep, &word, 8, nullptr, to_peer, 0, 1, nullptr); }), FI_ECONNABORTED);
  // Others are not concerned.
  ASSERT_EQ(fi_send(a.ep, &word, sizeof word, nullptr, to_b, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
}

TEST_F(FiDeath, Long_message_on_its_way_ends) {
  std::vector<char> big(64 << 20, 'x');
  ASSERT_EQ(fi_send(a.ep, &word, sizeof word, nullptr, to_peer, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  const iovec piece{big.data(), big.size()};
  fi_msg msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = to_peer;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
  peer.kill();
  int failed = 0;
  for (int i = 0; i < 4; ++i) failed += a.next().err != 0 ? 1 : 0;
  EXPECT_GT(failed, 0);
}

TEST_F(FiDeath, Messages_that_wait_until_others_are_received_end_too) {
  constexpr int kCount = 40;
  std::vector<char> sent(1 << 20, 'x');
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_peer, nullptr), 0);
  peer.kill();
  int failed = 0;
  for (int i = 0; i < kCount; ++i) failed += a.next().err == FI_ECONNABORTED ? 1 : 0;
  EXPECT_GE(failed, kCount - 12);
  EXPECT_TRUE(a.is_quiet());
}

TEST_F(FiDeath, Read_of_several_pieces_ends_with_one_error) {
  const iovec piece{&word, sizeof word};
  const std::array<fi_rma_iov, 2> remote{{{0, 4, 1}, {4, 4, 1}}};
  const fi_msg_rma msg{&piece, nullptr, 1, to_peer, remote.data(), 2, nullptr, 0};
  ASSERT_EQ(fi_readmsg(a.ep, &msg, 0), 0);
  EXPECT_EQ(a.next().err, FI_EKEYREJECTED);
  peer.kill();
  ASSERT_EQ(fi_readmsg(a.ep, &msg, 0), 0);
  EXPECT_NE(a.next().err, 0);
  EXPECT_TRUE(a.is_quiet());
}

/// fi_endpoint(3), fi_cancel: "if it is still pending, complete it as having been canceled". Here a peer that is
/// stopped has not answered what came before a fence, so what is fenced has not left, and what was posted later waits
/// behind it.
TEST_F(FiDeath, Messages_at_a_fence_can_be_canceled) {
  const iovec piece{&word, sizeof word};
  std::array<fi_msg, 4> messages;
  for (fi_msg& msg : messages) msg = {&piece, nullptr, 1, to_peer, &msg, 0};
  ASSERT_EQ(fi_sendmsg(a.ep, messages.data(), FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(a.next().err, 0);
  peer.stop();
  ASSERT_EQ(fi_sendmsg(a.ep, messages.data(), FI_DELIVERY_COMPLETE), 0);
  for (int i = 1; i < 4; ++i) ASSERT_EQ(fi_sendmsg(a.ep, &messages[i], i == 1 ? FI_FENCE : 0), 0);
  for (const int i : {2, 1}) {
    ASSERT_EQ(fi_cancel(&a.ep->fid, &messages[i]), 0);
    const Completion told = a.next();
    EXPECT_EQ(told.err, FI_ECANCELED);
    EXPECT_EQ(told.op_context, &messages[i]);
    EXPECT_EQ(told.flags, FI_SEND | FI_MSG);
    EXPECT_EQ(fi_cancel(&a.ep->fid, &messages[i]), -FI_ENOENT) << "it has ended";
  }
  peer.go_on();
  std::set<void*> ended{a.next().op_context, a.next().op_context};
  EXPECT_EQ(ended, (std::set<void*>{messages.data(), &messages[3]})) << "nothing is before it any more";
  EXPECT_TRUE(a.is_quiet());
}

/// fi_cancel "attempts to cancel an outstanding asynchronous operation" of one context; its siblings send under the
/// same number, and may use the same context parameter.
TEST_F(FiDeath, Messages_of_a_sibling_context_are_not_canceled) {
  Node c;
  c.open(domain, info.get());
  info->ep_attr->tx_ctx_cnt = 2;
  fid_ep* sep = nullptr;
  std::array<fid_ep*, 2> tx{};
  ASSERT_EQ(fi_scalable_ep(domain, info.get(), &sep, nullptr), 0);
  ASSERT_EQ(fi_scalable_ep_bind(sep, &a.av->fid, 0), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_tx_context(sep, i, nullptr, &tx[i], nullptr), 0);
    ASSERT_EQ(fi_ep_bind(tx[i], &(i == 0 ? a : c).cq->fid, FI_TRANSMIT), 0);
    ASSERT_EQ(fi_enable(tx[i]), 0);
  }
  const std::array<iovec, 2> pieces{{{&word, 4}, {&word, 4}}};
  fi_msg msg{pieces.data(), nullptr, 1, to_peer, nullptr, 0};
  ASSERT_EQ(fi_sendmsg(tx[0], &msg, FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(a.next().err, 0);
  peer.stop();
  ASSERT_EQ(fi_sendmsg(tx[0], &msg, FI_DELIVERY_COMPLETE), 0);
  msg.context = &word;
  for (const std::size_t count : {1, 2}) {
    msg.iov_count = count;
    ASSERT_EQ(fi_sendmsg(tx[1], &msg, FI_FENCE), 0);
    ASSERT_EQ(fi_sendmsg(tx[0], &msg, 0), 0);
    ASSERT_EQ(fi_cancel(&tx[0]->fid, &word), 0);
    const Completion told = a.next();
    EXPECT_EQ(told.err, FI_ECANCELED);
    EXPECT_EQ(told.op_context, &word);
    EXPECT_EQ(fi_cancel(&tx[0]->fid, &word), -FI_ENOENT) << "that of the sibling is not its own";
    EXPECT_EQ(fi_cancel(&sep->fid, &word), -FI_ENOENT);
  }
  EXPECT_TRUE(c.is_quiet());
  peer.go_on();
  EXPECT_EQ(a.next().err, 0);
  for (int i = 0; i < 2; ++i) {
    const Completion sent = c.next();
    EXPECT_EQ(sent.err, 0);
    EXPECT_EQ(sent.op_context, &word);
  }
  EXPECT_TRUE(a.is_quiet());
  for (fid_ep* ep : {tx[0], tx[1], sep}) EXPECT_EQ(fi_close(&ep->fid), 0);
  c.close();
}

}  // namespace
}  // namespace portofu::test
