// fi_endpoint(3), "shared contexts".

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

/// Two endpoints, `first` and `second`, that share their receives.
class FiSharedContext : public Fabric {
 protected:
  void SetUp() override {
    Fabric::SetUp();
    ASSERT_EQ(fi_srx_context(domain_of_b, info->rx_attr, &srx, nullptr), 0);
    ASSERT_EQ(fi_stx_context(domain_of_b, info->tx_attr, &stx, nullptr), 0);
    fi_av_attr attr{};
    ASSERT_EQ(fi_av_open(domain_of_b, &attr, &av, nullptr), 0);
    open_member(first);
    open_member(second);
    to_first = a.insert(first);
    to_second = a.insert(second);
    from_a = first.insert(a);
  }
  void TearDown() override {
    EXPECT_EQ(fi_close(&srx->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&stx->fid), -FI_EBUSY);
    first.av = second.av = nullptr;
    first.close();
    second.close();
    for (fid* object : {&srx->fid, &stx->fid, &av->fid}) EXPECT_EQ(fi_close(object), 0);
    Fabric::TearDown();
  }

  void open_member(Node& node, std::uint64_t cq_flags = 0, fid_cntr* counter = nullptr) {
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    node.av = av;
    ASSERT_EQ(fi_cq_open(domain_of_b, &cq_attr, &node.cq, nullptr), 0);
    info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    ASSERT_EQ(fi_endpoint(domain_of_b, info.get(), &node.ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(node.ep, &av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(node.ep, &node.cq->fid, FI_TRANSMIT | FI_RECV | cq_flags), 0);
    if (counter != nullptr) {
      ASSERT_EQ(fi_ep_bind(node.ep, &counter->fid, FI_RECV), 0);
    }
    EXPECT_NE(fi_enable(node.ep), 0) << "it has no receives";
    ASSERT_EQ(fi_ep_bind(node.ep, &srx->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(node.ep, &stx->fid, 0), 0);
    ASSERT_EQ(fi_enable(node.ep), 0);
  }

  /// Not enabled, and bound to no shared context.
  void open_scalable(Node& node) {
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    node.av = av;
    ASSERT_EQ(fi_cq_open(domain_of_b, &cq_attr, &node.cq, nullptr), 0);
    ASSERT_EQ(fi_scalable_ep(domain_of_b, info.get(), &node.ep, nullptr), 0);
    ASSERT_EQ(fi_scalable_ep_bind(node.ep, &av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(node.ep, &node.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  }

  void close_second() {
    second.av = nullptr;
    second.close();
  }

  /// `second` is a scalable endpoint from now on, as `info` says, with a shared context.
  void open_second_scalable(fid* shared) {
    close_second();
    ASSERT_EQ(fi_av_remove(a.av, &to_second, 1, 0), 0);
    open_scalable(second);
    ASSERT_EQ(fi_scalable_ep_bind(second.ep, shared, 0), 0);
    ASSERT_EQ(fi_enable(second.ep), 0);
  }

  /// A message to `second` and one back. @param receiving, sending  by which it does so
  void exchange_with_second(fid_ep* receiving, fid_ep* sending) {
    to_second = a.insert(second);
    ASSERT_EQ(fi_recv(receiving, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[0]), 0);
    ASSERT_EQ(fi_inject(a.ep, &sent[0], sizeof(int), to_second), 0);
    EXPECT_EQ(second.next().op_context, &received[0]);
    ASSERT_EQ(fi_recv(a.ep, &received[1], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[1]), 0);
    ASSERT_EQ(fi_send(sending, &sent[1], sizeof(int), nullptr, from_a, &received[2]), 0);
    EXPECT_EQ(second.next().op_context, &received[2]);
    EXPECT_EQ(a.next().source, to_second);
    EXPECT_EQ(received[1], sent[1]);
  }

  /// Returns when the message, of tag 5, is there.
  void send_unexpected(fi_addr_t to, const int& word) {
    const iovec piece{const_cast<int*>(&word), sizeof word};
    const fi_msg_tagged msg{&piece, nullptr, 1, to, 5, 0, nullptr, 0};
    ASSERT_EQ(fi_tsendmsg(a.ep, &msg, FI_TRANSMIT_COMPLETE), 0);
    ASSERT_EQ(a.next().err, 0);
  }

  fid_ep* srx = nullptr;
  fid_stx* stx = nullptr;
  fid_av* av = nullptr;
  Node first;
  Node second;
  fi_addr_t to_first = FI_ADDR_NOTAVAIL;
  fi_addr_t to_second = FI_ADDR_NOTAVAIL;
  fi_addr_t from_a = FI_ADDR_NOTAVAIL;
  std::array<int, 4> received{};
  const std::array<int, 4> sent{1, 2, 3, 4};
};

TEST_F(FiSharedContext, Messages_take_receives_of_all_and_are_told_at_their_endpoint) {
  for (int& place : received) ASSERT_EQ(fi_trecv(srx, &place, sizeof place, nullptr, FI_ADDR_UNSPEC, 5, 0, &place), 0);
  ASSERT_EQ(fi_tinject(a.ep, &sent[0], sizeof(int), to_second, 5), 0);
  const Completion at_second = second.next();
  EXPECT_EQ(at_second.op_context, &received[0]);
  EXPECT_EQ(at_second.source, from_a);
  ASSERT_EQ(fi_tinject(a.ep, &sent[1], sizeof(int), to_first, 5), 0);
  EXPECT_EQ(first.next().op_context, &received[1]);
  EXPECT_TRUE(second.is_quiet());
  EXPECT_EQ(received[0], 1);
  EXPECT_EQ(received[1], 2);
}

TEST_F(FiSharedContext, Without_endpoints_it_knows_no_source) {
  fid_ep* lone = nullptr;
  info->rx_attr->caps |= FI_DIRECTED_RECV;
  ASSERT_EQ(fi_srx_context(domain_of_b, info->rx_attr, &lone, nullptr), 0);
  EXPECT_EQ(fi_recv(lone, &received[0], sizeof(int), nullptr, from_a, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recv(lone, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received), 0);
  EXPECT_EQ(fi_cancel(&lone->fid, &received), 0);
  EXPECT_EQ(fi_close(&lone->fid), 0);
}

TEST_F(FiSharedContext, Unexpected_messages_wait_for_the_shared_receives) {
  ASSERT_EQ(fi_inject(a.ep, &sent[0], sizeof(int), to_second), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent[1], sizeof(int), to_first), 0);
  ASSERT_EQ(fi_recv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[0]), 0);
  ASSERT_EQ(fi_recv(srx, &received[1], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[1]), 0);
  EXPECT_EQ(second.next().op_context, &received[0]);
  EXPECT_EQ(first.next().op_context, &received[1]);
  EXPECT_EQ(received[1], 2);
}

TEST_F(FiSharedContext, Receives_are_posted_to_the_context_and_sends_to_the_endpoint) {
  EXPECT_EQ(fi_recv(first.ep, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_send(srx, &sent[0], sizeof(int), nullptr, to_first, nullptr), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_recv(b.ep, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(second.ep, &sent[2], sizeof(int), nullptr, second.insert(b), &received), 0);
  EXPECT_EQ(second.next().op_context, &received);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received[0], 3);
}

TEST_F(FiSharedContext, Endpoint_that_leaves_leaves_the_receives_to_the_others) {
  ASSERT_EQ(fi_recv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[0]), 0);
  ASSERT_EQ(fi_close(&first.ep->fid), 0);
  ASSERT_EQ(fi_close(&first.cq->fid), 0);
  first = {};
  ASSERT_EQ(fi_inject(a.ep, &sent[3], sizeof(int), to_second), 0);
  EXPECT_EQ(second.next().op_context, &received[0]);
  ASSERT_EQ(fi_recv(srx, &received[1], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[1]), 0);
  ASSERT_EQ(fi_cancel(&srx->fid, &received[1]), 0);
  EXPECT_EQ(second.next().err, FI_ECANCELED);
}

/// "Completed receive operations are posted to the CQs bound to the endpoint": to those of one that is closed, nothing.
TEST_F(FiSharedContext, Message_for_an_endpoint_that_is_closed_takes_no_receive) {
  send_unexpected(to_second, sent[0]);
  close_second();
  ASSERT_EQ(fi_trecv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, 5, 0, &received[0]), 0);
  EXPECT_TRUE(first.is_quiet());
  ASSERT_EQ(fi_tinject(a.ep, &sent[1], sizeof(int), to_first, 5), 0);
  EXPECT_EQ(first.next().op_context, &received[0]);
  EXPECT_EQ(received[0], sent[1]);
}

TEST_F(FiSharedContext, New_endpoint_gets_no_message_of_one_that_had_its_number) {
  send_unexpected(to_second, sent[0]);
  close_second();
  open_member(second);
  ASSERT_EQ(fi_trecv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, 5, 0, &received[0]), 0);
  EXPECT_TRUE(first.is_quiet());
  EXPECT_TRUE(second.is_quiet());
  EXPECT_EQ(fi_cancel(&srx->fid, &received[0]), 0);
}

/// fi_tagged(3), FI_CLAIM: the message is "reserved"; whoever has claimed it may have it, or discard it.
TEST_F(FiSharedContext, Claimed_message_of_an_endpoint_that_is_closed_stays_claimed) {
  send_unexpected(to_second, sent[2]);
  fi_context context{};
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 5;
  msg.context = &context;
  ASSERT_EQ(fi_trecvmsg(srx, &msg, FI_PEEK | FI_CLAIM), 0);
  close_second();
  const iovec piece{&received[0], sizeof(int)};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  while (!first.is_quiet()) continue;  // It may have been told of what was found.
  ASSERT_EQ(fi_trecvmsg(srx, &msg, FI_CLAIM), 0);
  const Completion told = first.next();
  EXPECT_EQ(told.err, 0);
  EXPECT_EQ(told.op_context, &context);
  EXPECT_EQ(received[0], sent[2]);
}

/// Of a message in the middle of its receive either the endpoint is told, or nobody, and then the receive is still
/// there.
TEST_F(FiSharedContext, Endpoint_that_is_closed_while_a_message_arrives_loses_no_receive) {
  std::vector<char> large(std::size_t{16} << 20, 'm');
  std::vector<char> room(large.size());
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(fi_recv(srx, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, &room), 0);
    ASSERT_EQ(fi_send(a.ep, large.data(), large.size(), nullptr, to_second, &large), 0);
    ASSERT_EQ(fi_close(&second.ep->fid), 0);
    second.ep = nullptr;
    a.next();
    fi_cq_tagged_entry entry{};
    const ssize_t told = fi_cq_read(second.cq, &entry, 1);
    if (told == -FI_EAGAIN) {
      ASSERT_EQ(fi_cancel(&srx->fid, &room), 0) << "it is neither told nor there";
      EXPECT_EQ(first.next().err, FI_ECANCELED);
    } else {
      ASSERT_EQ(told, 1);
      EXPECT_EQ(entry.op_context, &room);
      EXPECT_EQ(room, large);
      EXPECT_EQ(fi_cancel(&srx->fid, &room), -FI_ENOENT);
    }
    second.av = nullptr;
    second.close();
    open_member(second);
    to_second = a.insert(second);
  }
}

/// Without endpoints there is no queue in which to tell of anything.
TEST_F(FiSharedContext, Claimed_message_waits_until_there_is_an_endpoint) {
  send_unexpected(to_second, sent[2]);
  fi_context context{};
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 5;
  msg.context = &context;
  ASSERT_EQ(fi_trecvmsg(srx, &msg, FI_PEEK | FI_CLAIM), 0);
  close_second();
  first.av = nullptr;
  first.close();
  const iovec piece{&received[0], sizeof(int)};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  EXPECT_EQ(fi_trecvmsg(srx, &msg, FI_CLAIM), -FI_EOPBADSTATE);
  open_member(first);
  ASSERT_EQ(fi_trecvmsg(srx, &msg, FI_CLAIM), 0);
  EXPECT_EQ(first.next().op_context, &context);
  EXPECT_EQ(received[0], sent[2]);
}

/// fi_getinfo(3): capabilities limit what an endpoint does, by whichever context it receives.
TEST_F(FiSharedContext, Endpoint_that_does_not_receive_takes_no_receive) {
  info->caps &= ~std::uint64_t{FI_RECV | FI_TAGGED};
  info->rx_attr->caps = 0;
  Node sender;
  open_member(sender);
  info->caps |= FI_RECV;
  Node untagged;
  open_member(untagged);
  ASSERT_EQ(fi_trecv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, 5, 0, &received[0]), 0);
  for (const Node& node : {sender, untagged}) {
    const iovec piece{const_cast<int*>(&sent[0]), sizeof(int)};
    const fi_msg_tagged msg{&piece, nullptr, 1, a.insert(node), 5, 0, nullptr, 0};
    ASSERT_EQ(fi_tsendmsg(a.ep, &msg, FI_TRANSMIT_COMPLETE), 0);
    EXPECT_EQ(a.next().err, FI_ECONNREFUSED);
  }
  EXPECT_EQ(fi_cancel(&srx->fid, &received[0]), 0);
  EXPECT_EQ(first.next().err, FI_ECANCELED);
  for (Node* node : {&sender, &untagged}) {
    node->av = nullptr;
    node->close();
  }
}

/// fi_endpoint(3), FI_SELECTIVE_COMPLETION: it is said when an endpoint is bound to a queue, so each has its own.
TEST_F(FiSharedContext, Each_endpoint_says_whether_all_successes_are_told) {
  close_second();
  open_member(second, FI_SELECTIVE_COMPLETION);
  to_second = a.insert(second);
  for (const bool unexpected : {false, true}) {
    received = {};
    const auto post = [&](int& place) {
      ASSERT_EQ(fi_trecv(srx, &place, sizeof place, nullptr, FI_ADDR_UNSPEC, 5, 0, &place), 0);
    };
    if (!unexpected) post(received[0]);
    send_unexpected(to_second, sent[0]);
    if (unexpected) post(received[0]);
    EXPECT_TRUE(second.is_quiet());
    EXPECT_EQ(received[0], sent[0]);
    if (!unexpected) post(received[1]);
    send_unexpected(to_first, sent[1]);
    if (unexpected) post(received[1]);
    EXPECT_EQ(first.next().op_context, &received[1]);
    EXPECT_TRUE(first.is_quiet());
  }
  const iovec piece{&received[2], sizeof(int)};
  const fi_msg_tagged asked{&piece, nullptr, 1, FI_ADDR_UNSPEC, 5, 0, &received[2], 0};
  ASSERT_EQ(fi_trecvmsg(srx, &asked, FI_COMPLETION), 0);
  send_unexpected(to_second, sent[2]);
  EXPECT_EQ(second.next().op_context, &received[2]);
}

/// "Operations that fail asynchronously will still generate completions, even if a completion is not requested."
TEST_F(FiSharedContext, Failure_is_told_where_successes_are_not) {
  close_second();
  open_member(second, FI_SELECTIVE_COMPLETION);
  to_second = a.insert(second);
  ASSERT_EQ(fi_trecv(srx, &received[0], 1, nullptr, FI_ADDR_UNSPEC, 5, 0, &received[0]), 0);
  ASSERT_EQ(fi_tinject(a.ep, &sent[0], sizeof(int), to_second, 5), 0);
  EXPECT_EQ(second.next().err, FI_ETRUNC);
}

/// "If an endpoint is using a shared transmit and/or receive context, the shared contexts must be bound to the
/// endpoint."
TEST_F(FiSharedContext, Endpoint_that_uses_one_is_not_enabled_without_it) {
  for (const bool transmits : {false, true}) {
    info->ep_attr->tx_ctx_cnt = transmits ? FI_SHARED_CONTEXT : 1;
    info->ep_attr->rx_ctx_cnt = transmits ? 1 : FI_SHARED_CONTEXT;
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_endpoint(domain_of_b, info.get(), &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &first.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep), -FI_EINVAL);
    ASSERT_EQ(fi_ep_bind(ep, transmits ? &stx->fid : &srx->fid, 0), 0);
    EXPECT_EQ(fi_enable(ep), 0);
    EXPECT_EQ(fi_close(&ep->fid), 0);
  }
}

/// "An endpoint may use a shared context of one type, but a scalable set of contexts of the alternate type."
/// "All connectionless endpoints associated with a shared receive context must also share the same address vector."
TEST_F(FiSharedContext, Endpoint_with_another_vector_is_not_enabled) {
  fid_av* other = nullptr;
  fid_ep* ep = nullptr;
  fi_av_attr attr{};
  ASSERT_EQ(fi_av_open(domain_of_b, &attr, &other, nullptr), 0);
  ASSERT_EQ(fi_endpoint(domain_of_b, info.get(), &ep, nullptr), 0);
  for (fid* object : {&other->fid, &srx->fid, &stx->fid}) ASSERT_EQ(fi_ep_bind(ep, object, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &first.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), -FI_EINVAL);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  ASSERT_EQ(fi_recv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[0]), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent[0], sizeof(int), to_second), 0);
  EXPECT_EQ(second.next().source, from_a) << "the others go on";
}

TEST_F(FiSharedContext, Scalable_endpoint_receives_by_it_and_sends_by_contexts) {
  info->ep_attr->tx_ctx_cnt = 2;
  info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  fid_ep *tx = nullptr, *rx = nullptr;
  ASSERT_NO_FATAL_FAILURE(open_second_scalable(&srx->fid));
  EXPECT_EQ(fi_rx_context(second.ep, 0, nullptr, &rx, nullptr), -FI_EINVAL);
  ASSERT_EQ(fi_tx_context(second.ep, 1, nullptr, &tx, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(tx, &second.cq->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_enable(tx), 0);
  EXPECT_EQ(fi_send(second.ep, &sent[1], sizeof(int), nullptr, from_a, nullptr), -FI_EOPBADSTATE);
  exchange_with_second(srx, tx);
  EXPECT_EQ(fi_close(&tx->fid), 0);
}

TEST_F(FiSharedContext, Scalable_endpoint_sends_by_it_and_receives_by_contexts) {
  info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
  info->ep_attr->rx_ctx_cnt = 2;
  fid_ep *tx = nullptr, *rx = nullptr;
  ASSERT_NO_FATAL_FAILURE(open_second_scalable(&stx->fid));
  EXPECT_EQ(fi_tx_context(second.ep, 0, nullptr, &tx, nullptr), -FI_EINVAL);
  ASSERT_EQ(fi_rx_context(second.ep, 0, nullptr, &rx, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(rx, &second.cq->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(rx), 0);
  exchange_with_second(rx, second.ep);
  EXPECT_EQ(fi_close(&rx->fid), 0);
}

/// fi_endpoint(3): "Operations that complete in error ... increment the error counter and generate a CQ completion
/// event." A receive that nobody's message took is the first endpoint's.
TEST_F(FiSharedContext, Receive_that_is_canceled_counts_as_an_error) {
  close_second();
  fid_cntr* counter = open_cntr(domain_of_b);
  Node counted;
  open_member(counted, 0, counter);
  first.av = nullptr;
  first.close();
  std::swap(first, counted);
  fi_triggered_context waits{};
  waits.event_type = FI_TRIGGER_THRESHOLD;
  waits.trigger.threshold = {open_cntr(domain_of_b), 1};
  const iovec piece{&received[1], sizeof(int)};
  const fi_msg msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, &waits, 0};
  ASSERT_EQ(fi_recv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[0]), 0);
  ASSERT_EQ(fi_recvmsg(srx, &msg, FI_TRIGGER), 0);
  ASSERT_EQ(fi_cancel(&srx->fid, &received[0]), 0);
  EXPECT_EQ(first.next().err, FI_ECANCELED);
  EXPECT_EQ(fi_cntr_readerr(counter), 1u);
  ASSERT_EQ(fi_cancel(&srx->fid, &waits), 0);
  EXPECT_EQ(first.next().err, FI_ECANCELED);
  EXPECT_EQ(fi_cntr_readerr(counter), 2u);
  EXPECT_EQ(fi_cntr_read(counter), 0u);
}

/// fi_tagged(3), FI_PEEK: a message that is found is told as it would be if it were received.
TEST_F(FiSharedContext, Message_that_is_looked_for_is_told_at_its_endpoint) {
  send_unexpected(to_second, sent[2]);
  fi_context context{};
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 5;
  msg.context = &context;
  for (const std::uint64_t also : std::array<std::uint64_t, 3>{0, FI_CLAIM, FI_DISCARD}) {
    ASSERT_EQ(fi_trecvmsg(srx, &msg, FI_PEEK | also), 0);
    const Completion found = second.next();
    EXPECT_EQ(found.err, 0);
    EXPECT_EQ(found.op_context, &context);
    EXPECT_EQ(found.len, sizeof(int));
    EXPECT_EQ(found.source, from_a);
    EXPECT_TRUE(first.is_quiet());
    if (also != FI_CLAIM) continue;
    ASSERT_EQ(fi_trecvmsg(srx, &msg, FI_CLAIM | FI_DISCARD), 0);
    EXPECT_EQ(second.next().op_context, &context);
    send_unexpected(to_second, sent[2]);
  }
  ASSERT_EQ(fi_trecvmsg(srx, &msg, FI_PEEK), 0);
  EXPECT_EQ(first.next().err, FI_ENOMSG) << "nothing is left";
}

/// "An alias EP differs from its parent endpoint only by its default data transfer flags."
TEST_F(FiSharedContext, Alias_of_it_is_bound_to_endpoints_as_it_is) {
  fid_ep* alias = nullptr;
  fid_ep* alias_of_alias = nullptr;
  ASSERT_EQ(fi_ep_alias(srx, &alias, FI_RECV), 0);
  ASSERT_EQ(fi_ep_alias(alias, &alias_of_alias, FI_RECV), 0);
  close_second();
  std::swap(srx, alias_of_alias);
  open_member(second);
  std::swap(srx, alias_of_alias);
  to_second = a.insert(second);
  EXPECT_EQ(fi_close(&alias_of_alias->fid), 0) << "an endpoint uses what it stands for";
  ASSERT_EQ(fi_recv(alias, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[0]), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent[0], sizeof(int), to_second), 0);
  EXPECT_EQ(second.next().op_context, &received[0]);
  EXPECT_EQ(fi_close(&srx->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

TEST_F(FiSharedContext, It_has_no_address) {
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  EXPECT_EQ(fi_getname(&srx->fid, name.data(), &bytes), -FI_EINVAL);
}

/// Of an endpoint that is not enabled: it is enabled as the endpoint is, by whichever of both.
TEST_F(FiSharedContext, Endpoint_is_enabled_by_its_alias) {
  close_second();
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  ASSERT_EQ(fi_cq_open(domain_of_b, &cq_attr, &second.cq, nullptr), 0);
  ASSERT_EQ(fi_endpoint(domain_of_b, info.get(), &second.ep, nullptr), 0);
  fid_ep* alias = nullptr;
  ASSERT_EQ(fi_ep_alias(second.ep, &alias, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_ep_bind(second.ep, &av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(alias, &second.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(second.ep, &srx->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(alias, &stx->fid, 0), 0);
  ASSERT_EQ(fi_enable(alias), 0);
  EXPECT_EQ(fi_ep_bind(second.ep, &second.cq->fid, FI_RECV), -FI_EOPBADSTATE) << "it is enabled";
  to_second = a.insert(second);
  ASSERT_EQ(fi_recv(srx, &received[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, &received[0]), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent[1], sizeof(int), to_second), 0);
  EXPECT_EQ(second.next().op_context, &received[0]);
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

/// "An entry to the associated receive completion queue will always be generated when the buffer has been consumed"
/// (fi_msg(3)): it comes behind the last message, at the endpoint of that.
TEST_F(FiSharedContext, Buffer_for_many_messages_serves_all_and_ends_where_it_was_used_up) {
  for (const bool unexpected : {false, true}) {
    // Of 128 bytes the first message leaves as many as the least room that there is for another one.
    std::array<std::byte, 128> room{};
    const std::array<std::byte, 64> half{std::byte{7}};
    const iovec piece{room.data(), sizeof room};
    fi_msg msg{};
    msg.msg_iov = &piece;
    msg.iov_count = 1;
    msg.addr = FI_ADDR_UNSPEC;
    msg.context = &room;
    const auto post = [&] { ASSERT_EQ(fi_recvmsg(srx, &msg, FI_MULTI_RECV), 0); };
    if (!unexpected) post();
    for (const fi_addr_t to : {to_first, to_second}) {
      const iovec sent_piece{const_cast<std::byte*>(half.data()), half.size()};
      const fi_msg sent_msg{&sent_piece, nullptr, 1, to, nullptr, 0};
      ASSERT_EQ(fi_sendmsg(a.ep, &sent_msg, FI_TRANSMIT_COMPLETE), 0);
      ASSERT_EQ(a.next().err, 0);
    }
    if (unexpected) post();
    EXPECT_EQ(first.next().buf, room.data());
    EXPECT_EQ(second.next().buf, &room[half.size()]);
    const Completion end = second.next();
    EXPECT_EQ(end.flags, FI_MULTI_RECV);
    EXPECT_EQ(end.op_context, &room);
    EXPECT_TRUE(first.is_quiet());
    EXPECT_EQ(room[half.size()], std::byte{7});
  }
}

}  // namespace
}  // namespace portofu::test
