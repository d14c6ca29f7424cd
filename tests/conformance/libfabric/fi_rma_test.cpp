// fi_rma(3): memory of others.

#include <algorithm>
#include <numeric>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

constexpr std::uint64_t kKey = 0x1234'5678'9abc;

class FiRma : public Fabric {
 protected:
  void SetUp() override {
    Fabric::SetUp();
    std::iota(memory.begin(), memory.end(), std::uint8_t{0});
    region = open_memory(memory.data(), memory.size(), kKey);
    ASSERT_EQ(fi_mr_key(region), kKey);
  }
  void TearDown() override {
    EXPECT_EQ(region != nullptr ? fi_close(&region->fid) : 0, 0);
    Fabric::TearDown();
  }

  /// One piece here, one there. Both have to outlive the call.
  fi_msg_rma message_of(const iovec* piece, const fi_rma_iov* remote) const {
    fi_msg_rma msg{};
    msg.msg_iov = piece;
    msg.iov_count = 1;
    msg.addr = to_b;
    msg.rma_iov = remote;
    msg.rma_iov_count = 1;
    return msg;
  }

  /// A scalable endpoint beside `b`, who writes to it, and the address that it takes for that.
  struct Scalable {
    fid_ep* ep = nullptr;
    fid_av* av = nullptr;
    fid_ep* sender = nullptr;
    std::array<std::byte, 64> name{};
    fi_addr_t to = FI_ADDR_NOTAVAIL;
  };
  void open_scalable(std::size_t contexts, Scalable* opened) {
    ASSERT_NO_FATAL_FAILURE(open_sender(4, &opened->av, &opened->sender));
    info->ep_attr->rx_ctx_cnt = contexts;
    ASSERT_EQ(fi_scalable_ep(domain_of_b, info.get(), &opened->ep, nullptr), 0);
    ASSERT_EQ(fi_scalable_ep_bind(opened->ep, &b.av->fid, 0), 0);
    std::size_t bytes = opened->name.size();
    ASSERT_EQ(fi_getname(&opened->ep->fid, opened->name.data(), &bytes), 0);
    ASSERT_EQ(fi_av_insert(opened->av, opened->name.data(), 1, &opened->to, 0, nullptr), 1);
  }
  void open_receiver(const Scalable& whole, int index, fid_ep** opened) {
    ASSERT_EQ(fi_rx_context(whole.ep, index, nullptr, opened, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(*opened, &b.cq->fid, FI_RECV), 0);
    ASSERT_EQ(fi_enable(*opened), 0);
  }

  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(300000);
  fid_mr* region = nullptr;
  int context = 0;
};

TEST_F(FiRma, Write_and_read_of_all_lengths) {
  for (const std::size_t bytes : {1u, 8u, 100u, 5000u, 250000u}) {
    std::vector<std::uint8_t> sent(bytes), fetched(bytes);
    std::iota(sent.begin(), sent.end(), std::uint8_t{77});
    ASSERT_EQ(fi_write(a.ep, sent.data(), bytes, nullptr, to_b, 11, kKey, &context), 0);
    const Completion written = a.next();
    EXPECT_EQ(written.err, 0);
    EXPECT_EQ(written.flags, FI_WRITE | FI_RMA);
    EXPECT_EQ(written.op_context, &context);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin() + 11));
    ASSERT_EQ(fi_read(a.ep, fetched.data(), bytes, nullptr, to_b, 11, kKey, &context), 0);
    EXPECT_EQ(a.next().flags, FI_READ | FI_RMA);
    EXPECT_EQ(fetched, sent);
  }
  EXPECT_TRUE(b.is_quiet());
}

// Of a call that is refused nothing is done, also where only one of its pieces is too long.
TEST_F(FiRma, Several_pieces_that_are_too_long_are_refused_as_one) {
  const std::size_t most_injected = info->tx_attr->inject_size, most = info->ep_attr->max_msg_size;
  std::array<std::uint8_t, 4> sent{9, 9, 9, 9}, there{};
  for (const bool injects : {true, false}) {
    const std::size_t too_long = (injects ? most_injected : most) + 1;
    const iovec piece{sent.data(), sent.size() + too_long};  // Nobody looks at the rest.
    const std::array<fi_rma_iov, 2> remote{{{0, sent.size(), kKey}, {4, too_long, kKey}}};
    fi_msg_rma msg = message_of(&piece, remote.data());
    msg.rma_iov_count = remote.size();
    EXPECT_EQ(fi_writemsg(a.ep, &msg, injects ? FI_INJECT : 0), injects ? -FI_EINVAL : -FI_EMSGSIZE);
    ASSERT_EQ(fi_read(a.ep, there.data(), there.size(), nullptr, to_b, 0, kKey, &context), 0);
    EXPECT_EQ(a.next().op_context, &context);
    EXPECT_EQ(there, (std::array<std::uint8_t, 4>{0, 1, 2, 3})) << injects;
  }
}

TEST_F(FiRma, Several_pieces_on_both_sides) {
  std::array<std::uint8_t, 6> one{1, 2, 3, 4, 5, 6};
  std::array<std::uint8_t, 4> two{7, 8, 9, 10};
  const iovec local[] = {{one.data(), 6}, {two.data(), 4}};
  const fi_rma_iov remote[] = {{100, 3, kKey}, {200, 5, kKey}, {300, 2, kKey}};
  fi_msg_rma msg{};
  msg.msg_iov = local;
  msg.iov_count = 2;
  msg.addr = to_b;
  msg.rma_iov = remote;
  msg.rma_iov_count = 3;
  msg.context = &context;
  ASSERT_EQ(fi_writemsg(a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(a.next().op_context, &context);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(memory[100], 1);
  EXPECT_EQ(memory[102], 3);
  EXPECT_EQ(memory[200], 4);
  EXPECT_EQ(memory[204], 8);
  EXPECT_EQ(memory[301], 10);
  std::array<std::uint8_t, 10> fetched{};
  const iovec in[] = {{fetched.data(), 1}, {fetched.data() + 1, 9}};
  msg.msg_iov = in;
  ASSERT_EQ(fi_readmsg(a.ep, &msg, 0), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(fetched, (std::array<std::uint8_t, 10>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(FiRma, Data_tells_the_target) {
  const std::uint64_t sent = 5;
  ASSERT_EQ(fi_writedata(a.ep, &sent, sizeof sent, nullptr, 4712, to_b, 0, kKey, &context), 0);
  const Completion told = b.next();
  EXPECT_EQ(told.flags, FI_REMOTE_WRITE | FI_RMA | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(told.data, 4712u);
  EXPECT_EQ(a.next().op_context, &context);
  ASSERT_EQ(fi_inject_writedata(a.ep, &sent, sizeof sent, 4713, to_b, 0, kKey), 0);
  EXPECT_EQ(b.next().data, 4713u);
  EXPECT_TRUE(a.is_quiet());
}

TEST_F(FiRma, Injected_write_tells_nobody) {
  std::uint64_t sent = 0x1111;
  ASSERT_EQ(fi_inject_write(a.ep, &sent, sizeof sent, to_b, 0, kKey), 0);
  sent = 0x2222;
  std::uint64_t fetched = 0;
  ASSERT_EQ(fi_read(a.ep, &fetched, sizeof fetched, nullptr, to_b, 0, kKey, &context), 0);
  EXPECT_EQ(a.next().op_context, &context);
  EXPECT_EQ(fetched, 0x1111u);
}

TEST_F(FiRma, What_is_not_registered_is_not_reached) {
  std::uint64_t word = 1;
  struct Wrong {
    std::uint64_t address;
    std::uint64_t key;
  };
  for (const Wrong& wrong : {Wrong{0, kKey + 1}, Wrong{memory.size() - 7, kKey}, Wrong{~std::uint64_t{0}, kKey}}) {
    ASSERT_EQ(fi_write(a.ep, &word, sizeof word, nullptr, to_b, wrong.address, wrong.key, &context), 0);
    const Completion failed = a.next();
    EXPECT_EQ(failed.err, FI_EKEYREJECTED);
    EXPECT_EQ(failed.op_context, &context);
    EXPECT_EQ(failed.flags, FI_WRITE | FI_RMA);
    ASSERT_EQ(fi_read(a.ep, &word, sizeof word, nullptr, to_b, wrong.address, wrong.key, &context), 0);
    EXPECT_EQ(a.next().err, FI_EKEYREJECTED);
  }
  EXPECT_TRUE(b.is_quiet());
}

TEST_F(FiRma, Access_is_what_was_granted) {
  std::uint64_t own = 3;
  std::uint64_t word = 1;
  fid_mr* readable = open_memory(&own, sizeof own, 5, FI_REMOTE_READ);
  ASSERT_EQ(fi_write(a.ep, &word, sizeof word, nullptr, to_b, 0, 5, nullptr), 0);
  EXPECT_EQ(a.next().err, FI_EACCES);
  ASSERT_EQ(fi_read(a.ep, &word, sizeof word, nullptr, to_b, 0, 5, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(word, 3u);
  EXPECT_EQ(fi_close(&readable->fid), 0);
  ASSERT_EQ(fi_read(a.ep, &word, sizeof word, nullptr, to_b, 0, 5, nullptr), 0);
  EXPECT_EQ(a.next().err, FI_EKEYREJECTED);
}

/// fi_getinfo(3): "Applications can use the FI_READ, FI_WRITE, FI_REMOTE_READ, and FI_REMOTE_WRITE flags to restrict
/// the types of RMA operations supported by an endpoint." A receive context may have fewer of them (fi_endpoint(3)).
TEST_F(FiRma, Endpoint_lets_others_do_what_it_was_opened_for) {
  struct Case {
    std::uint64_t caps;     ///< Beside FI_MSG and FI_RMA.
    std::uint64_t rx_caps;  ///< fi_rx_attr::caps; 0: the same.
    int written;            ///< Errors.
    int read;
  };
  for (const Case& one : {Case{0, 0, 0, 0}, Case{FI_READ | FI_WRITE, 0, FI_EACCES, FI_EACCES},
                          Case{FI_REMOTE_READ, 0, FI_EACCES, 0}, Case{FI_REMOTE_WRITE, 0, 0, FI_EACCES},
                          Case{0, FI_RMA | FI_REMOTE_READ, FI_EACCES, 0}, Case{0, FI_MSG, FI_EACCES, FI_EACCES}}) {
    Info hints = make_hints();
    hints->caps = FI_MSG | FI_RMA | one.caps;
    const Info selected = get_info(hints.get());
    ASSERT_NE(selected, nullptr);
    if (one.rx_caps != 0) selected->rx_attr->caps = one.rx_caps;
    Node c;
    c.open(domain_of_b, selected.get());
    const fi_addr_t to_c = a.insert(c);
    std::uint8_t byte = 9;
    memory[0] = 7;
    ASSERT_EQ(fi_write(a.ep, &byte, 1, nullptr, to_c, 0, kKey, nullptr), 0);
    EXPECT_EQ(a.next().err, one.written);
    EXPECT_EQ(memory[0], one.written == 0 ? 9 : 7);
    byte = 0;
    ASSERT_EQ(fi_read(a.ep, &byte, 1, nullptr, to_c, 0, kKey, nullptr), 0);
    EXPECT_EQ(a.next().err, one.read);
    EXPECT_EQ(byte, one.read == 0 ? memory[0] : 0);
    c.close();
  }
}

TEST_F(FiRma, Key_is_used_once) {
  fid_mr* second = nullptr;
  EXPECT_EQ(fi_mr_reg(domain_of_b, memory.data(), 8, FI_REMOTE_READ, 0, kKey, 0, &second, nullptr), -FI_ENOKEY);
}

TEST_F(FiRma, Endpoint_that_comes_later_reaches_it_too) {
  Node c;
  c.open(domain_of_b, info.get());
  const fi_addr_t to_c = a.insert(c);
  std::uint8_t byte = 200;
  ASSERT_EQ(fi_write(a.ep, &byte, 1, nullptr, to_c, 1, kKey, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(memory[1], 200);
  c.close();
}

TEST_F(FiRma, Fence_waits_for_what_was_before) {
  std::vector<std::uint8_t> big(200000, 9);
  std::uint64_t fetched = 0;
  const iovec piece{&fetched, sizeof fetched};
  const fi_rma_iov remote{0, sizeof fetched, kKey};
  ASSERT_EQ(fi_write(a.ep, big.data(), big.size(), nullptr, to_b, 0, kKey, nullptr), 0);
  fi_msg_rma msg = message_of(&piece, &remote);
  ssize_t result = 0;
  while ((result = fi_readmsg(a.ep, &msg, FI_FENCE)) == -FI_EAGAIN) continue;
  ASSERT_EQ(result, 0);
  EXPECT_EQ(a.next().flags, FI_WRITE | FI_RMA);
  EXPECT_EQ(a.next().flags, FI_READ | FI_RMA);
  EXPECT_EQ(fetched, 0x0909090909090909u);
}

TEST_F(FiRma, Fenced_operations_are_taken_at_once_and_start_in_turn) {
  std::vector<std::uint8_t> big(200000);
  std::array<std::uint64_t, 8> fetched{};
  std::array<std::array<std::uint8_t, 8>, 8> sent{};
  for (std::uint8_t i = 0; i < 8; ++i) {
    sent[i].fill(i);
    const iovec in{&fetched[i], 8};
    const iovec out{sent[i].data(), 8};
    const fi_rma_iov remote{0, 8, kKey};
    fi_msg_rma msg = message_of(&out, &remote);
    msg.context = &sent[i];
    ASSERT_EQ(fi_writemsg(a.ep, &msg, FI_FENCE), 0);
    msg.msg_iov = &in;
    msg.context = &fetched[i];
    ASSERT_EQ(fi_readmsg(a.ep, &msg, FI_FENCE), 0);
    ASSERT_EQ(fi_write(a.ep, big.data(), big.size(), nullptr, to_b, 8, kKey, nullptr), 0);
  }
  for (std::uint8_t i = 0; i < 8; ++i) {
    EXPECT_EQ(a.next().op_context, &sent[i]);
    // The last write has no fence: it may be over before the read.
    std::array<void*, 2> contexts{a.next().op_context, a.next().op_context};
    std::ranges::sort(contexts);
    EXPECT_EQ(contexts, (std::array<void*, 2>{nullptr, &fetched[i]}));
    EXPECT_EQ(fetched[i], i * 0x0101010101010101u);
  }
}

TEST_F(FiRma, Fence_holds_what_is_injected) {
  std::uint64_t word = 0x77;
  const iovec piece{&word, sizeof word};
  const fi_rma_iov remote{0, 8, kKey};
  fi_msg_rma msg = message_of(&piece, &remote);
  std::vector<std::uint8_t> big(200000);
  ASSERT_EQ(fi_read(a.ep, big.data(), big.size(), nullptr, to_b, 0, kKey, nullptr), 0);
  ASSERT_EQ(fi_writemsg(a.ep, &msg, FI_FENCE | FI_INJECT), 0);
  word = 0;
  a.next();
  a.next();
  std::uint64_t fetched = 0;
  ASSERT_EQ(fi_read(a.ep, &fetched, sizeof fetched, nullptr, to_b, 0, kKey, nullptr), 0);
  a.next();
  EXPECT_EQ(fetched, 0x77u);
}

TEST_F(FiRma, Injecting_by_default_leaves_reads_alone) {
  std::vector<std::uint8_t> big(200000, 1);
  std::uint64_t flags = FI_TRANSMIT | FI_INJECT;
  ASSERT_EQ(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags), 0);
  EXPECT_EQ(fi_write(a.ep, big.data(), big.size(), nullptr, to_b, 0, kKey, nullptr), -FI_EINVAL);
  ASSERT_EQ(fi_read(a.ep, big.data(), big.size(), nullptr, to_b, 0, kKey, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(big.back(), memory[big.size() - 1]);
}

TEST_F(FiRma, Fence_holds_what_is_injected_to_fetch) {
  std::uint64_t word = 0x77;
  std::uint64_t fetched = 0;
  fi_ioc out{&word, 1};
  fi_ioc in{&fetched, 1};
  fi_rma_ioc remote{0, 1, kKey};
  fi_msg_atomic msg{&out, nullptr, 1, to_b, &remote, 1, FI_UINT64, FI_ATOMIC_WRITE, nullptr, 0};
  std::vector<std::uint8_t> big(200000);
  ASSERT_EQ(fi_read(a.ep, big.data(), big.size(), nullptr, to_b, 0, kKey, nullptr), 0);
  ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &msg, &in, nullptr, 1, FI_FENCE | FI_INJECT), 0);
  word = 0;
  a.next();
  EXPECT_EQ(a.next().flags, FI_READ | FI_ATOMIC);
  ASSERT_EQ(fi_read(a.ep, &fetched, sizeof fetched, nullptr, to_b, 0, kKey, nullptr), 0);
  a.next();
  EXPECT_EQ(fetched, 0x77u);
}

/// fi_cq(3): "For completion events that are not associated with a posted operation, this field will be set to NULL."
TEST_F(FiRma, Data_may_come_without_bytes) {
  ASSERT_EQ(fi_writedata(a.ep, nullptr, 0, nullptr, 4714, to_b, 0, kKey, &context), 0);
  const Completion told = b.next();
  EXPECT_EQ(told.op_context, nullptr);
  EXPECT_EQ(told.data, 4714u);
  EXPECT_EQ(told.source, to_a);
  EXPECT_EQ(a.next().op_context, &context);
  ASSERT_EQ(fi_read(a.ep, nullptr, 0, nullptr, to_b, 0, kKey, &context), 0);
  EXPECT_EQ(a.next().op_context, &context);
  EXPECT_TRUE(b.is_quiet());
}

/// fi_endpoint(3), rma_iov_limit and iov_limit.
TEST_F(FiRma, As_many_pieces_as_the_limits_say_and_no_more) {
  const std::size_t limit = info->tx_attr->rma_iov_limit;
  std::vector<std::uint8_t> sent(limit + 1, 0x77);
  std::vector<fi_rma_iov> remote(limit + 1);
  for (std::size_t i = 0; i <= limit; ++i) remote[i] = {2 * i, 1, kKey};
  iovec piece{sent.data(), limit};
  fi_msg_rma msg{&piece, nullptr, 1, to_b, remote.data(), limit, &context, 0};
  ASSERT_EQ(fi_writemsg(a.ep, &msg, FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(a.next().op_context, &context);
  for (std::size_t i = 0; i < limit; ++i) EXPECT_EQ(static_cast<std::uint8_t>(memory[2 * i]), 0x77);
  piece.iov_len = msg.rma_iov_count = limit + 1;
  EXPECT_NE(fi_writemsg(a.ep, &msg, 0), 0);
  EXPECT_NE(fi_readmsg(a.ep, &msg, 0), 0);
  const std::vector<iovec> many(info->tx_attr->iov_limit + 1, iovec{sent.data(), 1});
  EXPECT_NE(fi_writev(a.ep, many.data(), nullptr, many.size(), to_b, 0, kKey, nullptr), 0);
  EXPECT_TRUE(a.is_quiet());
}

/// A call is one operation, however many pieces of memory it names: it completes once, and its counter counts once.
class FiRmaPieces : public FiRma, public ::testing::WithParamInterface<std::array<std::uint64_t, 2>> {};

TEST_P(FiRmaPieces, Failure_of_any_is_the_failure_of_all) {
  fid_cntr* writes = open_cntr(domain);
  fid_cntr* reads = open_cntr(domain);
  Node c;
  c.open(domain, info.get(), 0, writes, FI_WRITE, FI_WAIT_UNSPEC, reads, FI_READ);
  std::uint64_t word = 0;
  const iovec piece{&word, sizeof word};
  const std::array<fi_rma_iov, 2> remote{{{0, 4, GetParam()[0]}, {4, 4, GetParam()[1]}}};
  const fi_msg_rma msg{&piece, nullptr, 1, c.insert(b), remote.data(), 2, &context, 0};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(i == 0 ? fi_writemsg(c.ep, &msg, 0) : fi_readmsg(c.ep, &msg, 0), 0);
    const Completion failed = c.next();
    EXPECT_EQ(failed.err, FI_EKEYREJECTED) << i;
    EXPECT_EQ(failed.op_context, &context);
    EXPECT_TRUE(c.is_quiet()) << i;
  }
  EXPECT_EQ(fi_cntr_readerr(writes), 1u);
  EXPECT_EQ(fi_cntr_read(writes), 0u);
  EXPECT_EQ(fi_cntr_readerr(reads), 1u);
  EXPECT_EQ(fi_cntr_read(reads), 0u);
  c.close();
}

/// fi_cq(3): a completion at the target says that data are "immediately available". Of a write that fails it says
/// nothing.
TEST_P(FiRmaPieces, Data_of_what_fails_are_not_told) {
  std::array<std::uint32_t, 2> words{1, 2};
  const iovec piece{words.data(), sizeof words};
  std::array<fi_rma_iov, 2> remote{{{0, 4, GetParam()[0]}, {4, 4, GetParam()[1]}}};
  const fi_msg_rma msg{&piece, nullptr, 1, to_b, remote.data(), 2, &context, 11};
  const fi_ioc items{words.data(), 2};
  std::array<fi_rma_ioc, 2> places{{{0, 1, GetParam()[0]}, {4, 1, GetParam()[1]}}};
  const fi_msg_atomic add{&items, nullptr, 1, to_b, places.data(), 2, FI_UINT32, FI_SUM, &context, 12};
  for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{FI_INJECT}}) {
    ASSERT_EQ(fi_writemsg(a.ep, &msg, FI_REMOTE_CQ_DATA | flags), 0);
    EXPECT_EQ(a.next().err, FI_EKEYREJECTED);
    ASSERT_EQ(fi_atomicmsg(a.ep, &add, FI_REMOTE_CQ_DATA | flags), 0);
    EXPECT_EQ(a.next().err, FI_EKEYREJECTED);
    EXPECT_TRUE(b.is_quiet());
  }
  remote[0].key = remote[1].key = places[0].key = places[1].key = kKey;
  std::uint64_t behind = 0;
  ASSERT_EQ(fi_writemsg(a.ep, &msg, FI_REMOTE_CQ_DATA | FI_INJECT), 0);
  words = {};
  ASSERT_EQ(fi_read(a.ep, &behind, sizeof behind, nullptr, to_b, 0, kKey, &context), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(behind, 1 | std::uint64_t{2} << 32) << "fi_endpoint(3), FI_ORDER_RAW";
  Completion told = b.next();
  EXPECT_EQ(told.data, 11u);
  EXPECT_EQ(told.flags, FI_REMOTE_WRITE | FI_RMA | FI_REMOTE_CQ_DATA);
  words = {1, 1};
  ASSERT_EQ(fi_atomicmsg(a.ep, &add, FI_REMOTE_CQ_DATA), 0);
  EXPECT_EQ(a.next().err, 0);
  told = b.next();
  EXPECT_EQ(told.data, 12u);
  EXPECT_EQ(told.flags, FI_REMOTE_WRITE | FI_ATOMIC | FI_REMOTE_CQ_DATA);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_TRUE(b.is_quiet());
}

using Keys = std::array<std::uint64_t, 2>;
INSTANTIATE_TEST_SUITE_P(Wrong, FiRmaPieces, ::testing::Values(Keys{99, kKey}, Keys{kKey, 99}, Keys{99, 99}));

TEST_F(FiRma, Many_operations_in_pieces_complete_once_each) {
  constexpr std::size_t kCount = 200;
  std::vector<std::uint64_t> words(kCount);
  std::array<bool, kCount> told{};
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < kCount; ++i) {
      const iovec piece{&words[i], sizeof words[i]};
      const std::array<fi_rma_iov, 2> remote{{{0, 4, kKey}, {4, 4, i % 10 == 0 ? 99 : kKey}}};
      const fi_msg_rma msg{&piece, nullptr, 1, to_b, remote.data(), 2, &words[i], 0};
      ssize_t result = 0;
      do result = i % 2 == 0 ? fi_readmsg(a.ep, &msg, 0) : fi_writemsg(a.ep, &msg, 0);
      while (result == -FI_EAGAIN);
      ASSERT_EQ(result, 0);
    }
    told.fill(false);
    for (std::size_t i = 0; i < kCount; ++i) {
      const Completion done = a.next();
      const auto which = static_cast<std::size_t>(static_cast<std::uint64_t*>(done.op_context) - words.data());
      ASSERT_LT(which, kCount);
      EXPECT_FALSE(std::exchange(told[which], true)) << which;
      EXPECT_EQ(done.err, which % 10 == 0 ? FI_EKEYREJECTED : 0);
      EXPECT_EQ(done.flags, FI_RMA | (which % 2 == 0 ? FI_READ : FI_WRITE));
    }
    EXPECT_TRUE(a.is_quiet());
  }
}

/// fi_endpoint(3): "A scalable endpoint has a single transport level address." Memory is reached by it through
/// whichever of its contexts is open.
TEST_F(FiRma, Scalable_endpoint_is_reached_while_it_has_a_context) {
  constexpr int kContexts = 3;
  Scalable whole;
  std::array<fid_ep*, kContexts> rx{};
  std::uint64_t target = 0;
  ASSERT_NO_FATAL_FAILURE(open_scalable(kContexts, &whole));
  fid_mr* reached = open_memory(&target, sizeof target, 17);
  const auto open = [&](int i) { ASSERT_NO_FATAL_FAILURE(open_receiver(whole, i, &rx[i])); };
  const auto close = [&](int i) { ASSERT_EQ(fi_close(&std::exchange(rx[i], nullptr)->fid), 0); };
  std::uint64_t next_word = 1;
  const auto expect = [&](int error) {
    const std::uint64_t sent = next_word++;
    ASSERT_EQ(fi_writedata(whole.sender, &sent, sizeof sent, nullptr, sent, whole.to, 0, 17, nullptr), 0);
    ASSERT_EQ(a.next().err, error);
    if (error != 0) return;
    EXPECT_EQ(b.next().data, sent);
    EXPECT_EQ(target, sent);
  };
  expect(FI_EKEYREJECTED);
  // Opened or closed, and whether memory is reached then.
  constexpr std::array<std::pair<int, bool>, 12> kSteps{{{1, true},
                                                         {2, true},
                                                         {0, true},
                                                         {0, true},
                                                         {1, true},
                                                         {0, true},
                                                         {2, true},
                                                         {0, false},
                                                         {2, true},
                                                         {1, true},
                                                         {2, true},
                                                         {1, false}}};
  for (const auto& [index, is_reached] : kSteps) {
    rx[index] == nullptr ? open(index) : close(index);
    expect(is_reached ? 0 : FI_EKEYREJECTED);
  }
  for (fid* object : {&reached->fid, &whole.sender->fid, &whole.ep->fid, &whole.av->fid})
    EXPECT_EQ(fi_close(object), 0);
}

/// Who writes to a scalable endpoint does not hear of it when the first of its contexts is closed, or opened again.
TEST_F(FiRma, Scalable_endpoint_is_reached_all_the_time) {
  constexpr std::size_t kBytes = 4 << 20;
  Scalable whole;
  std::array<fid_ep*, 2> rx{};
  ASSERT_NO_FATAL_FAILURE(open_scalable(rx.size(), &whole));
  const auto open = [&](int i) { ASSERT_NO_FATAL_FAILURE(open_receiver(whole, i, &rx[i])); };
  fi_addr_t to_of_b = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(b.av, whole.name.data(), 1, &to_of_b, 0, nullptr), 1);
  for (int i = 0; i < 2; ++i) open(i);
  std::vector<std::uint8_t> sent(kBytes, 7), target(kBytes);
  fid_mr* reached = open_memory(target.data(), kBytes, 17);
  std::atomic<bool> over{false};
  std::array<std::atomic<int>, 2> written{};
  const auto write = [&](fid_ep* ep, const Node& node, fi_addr_t target_of, std::size_t length, int self) {
    constexpr int kAtOnce = 4;
    const auto write_one = [&] {
      ssize_t result = -FI_EAGAIN;
      while (result == -FI_EAGAIN) result = fi_write(ep, sent.data(), length, nullptr, target_of, 0, 17, nullptr);
      ASSERT_EQ(result, 0);
    };
    for (int i = 0; i < kAtOnce; ++i) write_one();
    for (; !over; ++written[self]) {
      ASSERT_EQ(node.next().err, 0) << self;
      write_one();
    }
    for (int i = 0; i < kAtOnce; ++i) EXPECT_EQ(node.next().err, 0) << self;
  };
  // One in the middle of its writes, and one that begins many meanwhile.
  std::thread far(write, whole.sender, std::cref(a), whole.to, kBytes, 0);
  std::thread near(write, b.ep, std::cref(b), to_of_b, std::size_t{8}, 1);
  for (int i = 0; i < 10; ++i) {
    const std::array<int, 2> before{written[0], written[1]};
    while ((written[0] < before[0] + 2 || written[1] < before[1] + 4) && !HasFailure()) std::this_thread::yield();
    EXPECT_EQ(fi_close(&rx[0]->fid), 0);
    open(0);
  }
  over = true;
  far.join();
  near.join();
  for (fid* object : {&reached->fid, &whole.sender->fid, &rx[0]->fid, &rx[1]->fid, &whole.ep->fid, &whole.av->fid})
    EXPECT_EQ(fi_close(object), 0);
}

/// Whatever is arriving, contexts that are closed at the same time are closed, and may be opened again.
TEST_F(FiRma, Scalable_endpoint_loses_its_contexts_at_the_same_time) {
  constexpr std::size_t kBytes = 4 << 20;
  Scalable whole;
  std::array<fid_ep*, 2> rx{};
  ASSERT_NO_FATAL_FAILURE(open_scalable(rx.size(), &whole));
  std::vector<std::uint8_t> sent(kBytes, 7), target(kBytes);
  fid_mr* reached = open_memory(target.data(), kBytes, 17);
  std::atomic<bool> over{false};
  std::thread writer([&] {
    while (!over) {
      ssize_t result = -FI_EAGAIN;
      while (result == -FI_EAGAIN)
        result = fi_write(whole.sender, sent.data(), kBytes, nullptr, whole.to, 0, 17, nullptr);
      ASSERT_EQ(result, 0);
      const int error = a.next().err;
      ASSERT_TRUE(error == 0 || error == FI_EKEYREJECTED) << error;
    }
  });
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    for (int i = 0; i < 2; ++i) open_receiver(whole, i, &rx[i]);
    target[kBytes - 1] = 0;
    while (std::atomic_ref(target[kBytes - 1]).load() == 0 && !HasFailure()) std::this_thread::yield();
    std::thread first([&] { EXPECT_EQ(fi_close(&rx[round % 2]->fid), 0); });
    EXPECT_EQ(fi_close(&rx[1 - round % 2]->fid), 0);
    first.join();
  }
  over = true;
  writer.join();
  for (fid* object : {&reached->fid, &whole.sender->fid, &whole.ep->fid, &whole.av->fid})
    EXPECT_EQ(fi_close(object), 0);
}

}  // namespace
}  // namespace portofu::test
