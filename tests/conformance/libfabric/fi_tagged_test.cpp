// fi_tagged(3): messages with tags.

#include <numeric>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiTagged : public Fabric {
 protected:
  int context = 0;
  int other_context = 0;
};

TEST_F(FiTagged, Message_meets_a_receive_that_waits) {
  std::uint64_t received = 0;
  const std::uint64_t sent = 42;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 7, 0, &context), 0);
  ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 7, &other_context), 0);
  const Completion done = b.next();
  EXPECT_EQ(done.err, 0);
  EXPECT_EQ(done.op_context, &context);
  EXPECT_EQ(done.flags, FI_RECV | FI_TAGGED);
  EXPECT_EQ(done.len, sizeof sent);
  EXPECT_EQ(done.buf, &received);
  EXPECT_EQ(done.tag, 7u);
  EXPECT_EQ(done.source, to_a);
  EXPECT_EQ(received, 42u);
  const Completion left = a.next();
  EXPECT_EQ(left.op_context, &other_context);
  EXPECT_EQ(left.flags, FI_SEND | FI_TAGGED);
}

TEST_F(FiTagged, Unexpected_messages_of_all_lengths_are_kept_in_order) {
  for (const std::size_t bytes : {0u, 1u, 64u, 1000u, 5000u, 70000u, 3000000u}) {
    std::vector<std::uint8_t> sent(bytes + 1), received(bytes + 1, 0xee);
    std::iota(sent.begin(), sent.end(), std::uint8_t{3});
    ASSERT_EQ(fi_tsend(a.ep, sent.data(), bytes, nullptr, to_b, 9, nullptr), 0);
    ASSERT_EQ(fi_tsend(a.ep, sent.data(), 1, nullptr, to_b, 10, nullptr), 0);
    std::uint8_t mark = 0;
    ASSERT_EQ(fi_trecv(b.ep, &mark, 1, nullptr, FI_ADDR_UNSPEC, 10, 0, nullptr), 0);
    EXPECT_EQ(b.next().tag, 10u);
    ASSERT_EQ(fi_trecv(b.ep, received.data(), bytes, nullptr, FI_ADDR_UNSPEC, 9, 0, &context), 0);
    const Completion done = b.next();
    EXPECT_EQ(done.err, 0);
    EXPECT_EQ(done.len, bytes);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end() - 1, received.begin()));
    EXPECT_EQ(received.back(), 0xee);
    a.next();
    a.next();
  }
}

TEST_F(FiTagged, Ignored_bits_do_not_count) {
  int received = 0;
  const int sent = 5;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 0x1200, 0xff, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 0x1300, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 0x12ab, nullptr), 0);
  EXPECT_EQ(b.next().tag, 0x12abu);
  EXPECT_TRUE(b.is_quiet());
}

TEST_F(FiTagged, Data_comes_with_the_message) {
  int received = 0;
  const int sent = 5;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_tsenddata(a.ep, &sent, sizeof sent, nullptr, 0x1122334455667788, to_b, 1, nullptr), 0);
  const Completion done = b.next();
  EXPECT_EQ(done.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(done.data, 0x1122334455667788u);
  ASSERT_EQ(fi_tinjectdata(a.ep, &sent, sizeof sent, 77, to_b, 2), 0);
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 2, 0, nullptr), 0);
  EXPECT_EQ(b.next().data, 77u);
}

TEST_F(FiTagged, Injected_buffers_are_free_at_once_and_tell_nobody) {
  std::array<char, 4096> sent{}, received{};
  sent.fill('x');
  ASSERT_EQ(fi_tinject(a.ep, sent.data(), sent.size(), to_b, 3), 0);
  sent.fill('y');
  ASSERT_EQ(fi_trecv(b.ep, received.data(), received.size(), nullptr, FI_ADDR_UNSPEC, 3, 0, nullptr), 0);
  EXPECT_EQ(b.next().len, 4096u);
  EXPECT_EQ(received[4095], 'x');
  EXPECT_TRUE(a.is_quiet());
  EXPECT_NE(fi_tinject(a.ep, sent.data(), 4097, to_b, 3), 0);
}

TEST_F(FiTagged, Pieces_are_gathered_and_scattered) {
  std::array<char, 4> one{'a', 'b', 'c', 'd'}, two{'e', 'f', 'g', 'h'};
  std::array<char, 8> received{};
  const iovec out[] = {{one.data(), 4}, {two.data(), 4}};
  const iovec in[] = {{received.data() + 4, 4}, {received.data(), 4}};
  ASSERT_EQ(fi_trecvv(b.ep, in, nullptr, 2, FI_ADDR_UNSPEC, 4, 0, nullptr), 0);
  ASSERT_EQ(fi_tsendv(a.ep, out, nullptr, 2, to_b, 4, &context), 0);
  EXPECT_EQ(b.next().len, 8u);
  EXPECT_EQ(std::string(received.data(), 8), "efghabcd");
  EXPECT_EQ(a.next().op_context, &context);
}

TEST_F(FiTagged, Delivery_complete_comes_when_the_message_is_at_its_place) {
  int received = 0;
  int sent = 8;
  const iovec piece{&sent, sizeof sent};
  fi_msg_tagged msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = to_b;
  msg.tag = 5;
  msg.context = &context;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr), 0);
  ASSERT_EQ(fi_tsendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(a.next().op_context, &context);
  EXPECT_EQ(received, 8);
}

TEST_F(FiTagged, Message_that_is_too_long_is_cut_and_told) {
  std::array<char, 10> sent{};
  std::array<char, 4> received{};
  for (const bool unexpected : {false, true}) {
    const auto send = [&] { return fi_tsend(a.ep, sent.data(), sent.size(), nullptr, to_b, 6, nullptr); };
    ASSERT_EQ(unexpected ? send() : 0, 0);
    ASSERT_EQ(fi_trecv(b.ep, received.data(), received.size(), nullptr, FI_ADDR_UNSPEC, 6, 0, &context), 0);
    ASSERT_EQ(unexpected ? 0 : send(), 0);
    const Completion failed = b.next();
    EXPECT_EQ(failed.err, FI_ETRUNC);
    EXPECT_EQ(failed.op_context, &context);
    EXPECT_EQ(failed.len, 4u);
    EXPECT_EQ(failed.olen, 6u);
    EXPECT_EQ(failed.tag, 6u);
  }
}

TEST_F(FiTagged, Peek_tells_of_a_message_and_leaves_it) {
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 11;
  msg.context = &context;
  ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK), 0);
  const Completion none = b.next();
  EXPECT_EQ(none.err, FI_ENOMSG);
  EXPECT_EQ(none.op_context, &context);
  const int sent = 6;
  ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 11, nullptr), 0);
  a.next();
  Completion found{};
  do {
    ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK), 0);
    found = b.next();
  } while (found.err == FI_ENOMSG);
  EXPECT_EQ(found.err, 0);
  EXPECT_EQ(found.len, sizeof sent);
  EXPECT_EQ(found.source, to_a);
  int received = 0;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 11, 0, nullptr), 0);
  b.next();
  EXPECT_EQ(received, 6);
}

TEST_F(FiTagged, Claimed_message_is_for_its_context_alone) {
  fi_context2 claim{};
  const int first = 1;
  const int second = 2;
  ASSERT_EQ(fi_tsend(a.ep, &first, sizeof first, nullptr, to_b, 12, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, &second, sizeof second, nullptr, to_b, 12, nullptr), 0);
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 12;
  msg.context = &claim;
  do {
    ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK | FI_CLAIM), 0);
  } while (b.next().err == FI_ENOMSG);
  int received = 0;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 12, 0, nullptr), 0);
  b.next();
  EXPECT_EQ(received, 2);
  const iovec piece{&received, sizeof received};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM), 0);
  EXPECT_EQ(b.next().op_context, &claim);
  EXPECT_EQ(received, 1);
}

TEST_F(FiTagged, Claimed_message_that_nobody_takes_goes_with_its_endpoint) {
  // More often than there are numbers for endpoints: none of them stays taken.
  for (int i = 0; i < 100; ++i) {
    Node c;
    ASSERT_NO_FATAL_FAILURE(c.open(domain_of_b, info.get()));
    const int sent = i;
    ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, a.insert(c), 12, nullptr), 0);
    fi_context2 claim{};
    fi_msg_tagged msg{};
    msg.addr = FI_ADDR_UNSPEC;
    msg.tag = 12;
    msg.context = &claim;
    do {
      ASSERT_EQ(fi_trecvmsg(c.ep, &msg, FI_PEEK | FI_CLAIM), 0);
    } while (c.next().err == FI_ENOMSG);
    a.next();
    c.close();
  }
}

TEST_F(FiTagged, Discarded_message_is_gone) {
  fi_context2 claim{};
  const int sent = 1;
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 13;
  msg.context = &claim;
  for (const std::uint64_t way : {FI_PEEK | FI_DISCARD, FI_PEEK | FI_CLAIM}) {
    ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 13, nullptr), 0);
    do {
      ASSERT_EQ(fi_trecvmsg(b.ep, &msg, way), 0);
    } while (b.next().err == FI_ENOMSG);
    if ((way & FI_CLAIM) != 0) {
      ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM | FI_DISCARD), 0);
      EXPECT_EQ(b.next().err, 0);
    }
    ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK), 0);
    EXPECT_EQ(b.next().err, FI_ENOMSG);
  }
}

TEST_F(FiTagged, Canceled_receive_takes_nothing) {
  int received = 0;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 14, 0, &context), 0);
  ASSERT_EQ(fi_cancel(&b.ep->fid, &context), 0);
  const Completion failed = b.next();
  EXPECT_EQ(failed.err, FI_ECANCELED);
  EXPECT_EQ(failed.op_context, &context);
  EXPECT_EQ(failed.flags & FI_TAGGED, FI_TAGGED);
  EXPECT_EQ(fi_cancel(&b.ep->fid, &context), -FI_ENOENT);
}

TEST_F(FiTagged, Tags_and_messages_do_not_meet) {
  int received = 0;
  const int sent = 3;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &context), 0);
  ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 0, nullptr), 0);
  a.next();
  EXPECT_TRUE(b.is_quiet());
  ASSERT_EQ(fi_send(a.ep, &sent, sizeof sent, nullptr, to_b, nullptr), 0);
  EXPECT_EQ(b.next().flags, FI_RECV | FI_MSG);
}

TEST_F(FiTagged, Directed_receive_takes_from_its_source_only) {
  Node c;
  c.open(domain, info.get());
  const fi_addr_t c_to_b = c.insert(b);
  const fi_addr_t from_c = b.insert(c);
  int received = 0;
  const int from_a = 1;
  const int of_c = 2;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, from_c, 15, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, &from_a, sizeof from_a, nullptr, to_b, 15, nullptr), 0);
  ASSERT_EQ(fi_tsend(c.ep, &of_c, sizeof of_c, nullptr, c_to_b, 15, nullptr), 0);
  EXPECT_EQ(b.next().source, from_c);
  EXPECT_EQ(received, 2);
  c.next();
  c.close();
}

/// "In order to use the FI_CLAIM flag, an application must supply a struct fi_context."
TEST_F(FiTagged, Claim_without_a_context_is_refused) {
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 12;
  const int sent = 1;
  ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 12, nullptr), 0);
  a.next();
  EXPECT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK | FI_CLAIM), -FI_EINVAL);
  EXPECT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM), -FI_EINVAL);
  EXPECT_TRUE(b.is_quiet());
}

/// "If this flag is used in conjunction with FI_PEEK, it indicates if the peek request completes successfully ... the
/// message is discarded", with FI_CLAIM, too. What a context has not claimed, or an endpoint or a call does not
/// receive, is not taken.
TEST_F(FiTagged, Claim_of_nothing_is_refused) {
  fi_context claimed{};
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 12;
  msg.context = &claimed;
  fi_msg untagged{};
  untagged.addr = FI_ADDR_UNSPEC;
  untagged.context = &claimed;
  const int sent = 1;
  ASSERT_EQ(fi_tinject(a.ep, &sent, sizeof sent, to_b, 12), 0);
  while (fi_trecvmsg(b.ep, &msg, FI_PEEK | FI_CLAIM | FI_DISCARD) == 0 && b.next().err == FI_ENOMSG) continue;
  EXPECT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM), -FI_EINVAL) << "it is discarded";
  ASSERT_EQ(fi_tinject(a.ep, &sent, sizeof sent, to_b, 12), 0);
  while (fi_trecvmsg(b.ep, &msg, FI_PEEK | FI_CLAIM) == 0 && b.next().err == FI_ENOMSG) {
    EXPECT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM), -FI_EINVAL) << "it has not come";
  }
  EXPECT_EQ(fi_trecvmsg(a.ep, &msg, FI_CLAIM), -FI_EINVAL) << "another endpoint has it";
  EXPECT_EQ(fi_recvmsg(b.ep, &untagged, FI_CLAIM), -FI_EINVAL) << "it has a tag";
  fi_context copy = claimed;
  ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM | FI_DISCARD), 0);
  EXPECT_EQ(b.next().err, 0);
  msg.context = &copy;
  EXPECT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM), -FI_EINVAL) << "it is taken";
  EXPECT_TRUE(b.is_quiet());
}

/// "The returned completion data will indicate the meta-data associated with the message, such as the message length,
/// completion flags, available CQ data, tag, and source address."
TEST_F(FiTagged, Peek_tells_all_of_a_message) {
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 0x100;
  msg.ignore = 0xff;
  msg.context = &context;
  const int sent = 1;
  ASSERT_EQ(fi_tinjectdata(a.ep, &sent, sizeof sent, 77, to_b, 0x123), 0);
  Completion found{};
  do {
    ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK), 0);
    found = b.next();
  } while (found.err == FI_ENOMSG);
  EXPECT_EQ(found.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(found.data, 77u);
  EXPECT_EQ(found.tag, 0x123u);
  EXPECT_EQ(found.buf, nullptr) << "no data was available to return";
  EXPECT_EQ(found.op_context, &context);
}

/// A claimed message is received like any other.
TEST_F(FiTagged, Claimed_message_that_is_too_long_is_cut) {
  fi_context2 claim{};
  const std::array<char, 10> sent{};
  std::array<char, 4> received{};
  ASSERT_EQ(fi_tsend(a.ep, sent.data(), sent.size(), nullptr, to_b, 12, nullptr), 0);
  const iovec piece{received.data(), received.size()};
  const fi_msg_tagged msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, 12, 0, &claim, 0};
  do {
    ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK | FI_CLAIM), 0);
  } while (b.next().err == FI_ENOMSG);
  ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM), 0);
  const Completion cut = b.next();
  EXPECT_EQ(cut.err, FI_ETRUNC);
  EXPECT_EQ(cut.len, 4u);
  EXPECT_EQ(cut.olen, 6u);
  EXPECT_EQ(cut.op_context, &claim);
  EXPECT_EQ(fi_trecvmsg(b.ep, &msg, FI_CLAIM), -FI_EINVAL) << "it has been retrieved";
}

/// fi_getinfo(3), FI_DIRECTED_RECV: "use the source address of an incoming message when matching it with a receive
/// buffer"; a peek matches as a receive does.
TEST_F(FiTagged, Peek_looks_for_its_source_only) {
  Node c;
  c.open(domain_of_b, info.get());
  const int sent = 1;
  ASSERT_EQ(fi_tsend(a.ep, &sent, sizeof sent, nullptr, to_b, 11, nullptr), 0);
  fi_msg_tagged msg{nullptr, nullptr, 0, to_a, 11, 0, &context, 0};
  Completion found{};
  do {
    ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK), 0);
    found = b.next();
  } while (found.err == FI_ENOMSG);
  EXPECT_EQ(found.source, to_a);
  msg.addr = b.insert(c);
  ASSERT_EQ(fi_trecvmsg(b.ep, &msg, FI_PEEK), 0);
  EXPECT_EQ(b.next().err, FI_ENOMSG);
  c.close();
}

}  // namespace
}  // namespace portofu::test
