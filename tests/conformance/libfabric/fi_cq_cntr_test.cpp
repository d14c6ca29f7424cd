// fi_cq(3), fi_cntr(3), fi_poll(3): who waits, and for what.

#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiCq : public Fabric {};

TEST_F(FiCq, Blocking_read_ends_with_a_completion_a_signal_or_its_time) {
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 10), -FI_EAGAIN);
  ASSERT_EQ(fi_cq_signal(b.cq), 0);
  EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, -1), -FI_EAGAIN);
  int received = 0;
  const int sent = 9;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &received), 0);
  std::thread sender([&] { EXPECT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0); });
  EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 20000), 1);
  sender.join();
  EXPECT_EQ(entry.op_context, &received);
}

TEST_F(FiCq, File_descriptor_wakes) {
  Node c;
  c.open(domain, info.get(), 0, nullptr, 0, FI_WAIT_FD);
  const fi_addr_t to_c = a.insert(c);
  int fd = -1;
  ASSERT_EQ(fi_control(&c.cq->fid, FI_GETWAIT, &fd), 0);
  int received = 0;
  const int sent = 9;
  ASSERT_EQ(fi_recv(c.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &received), 0);
  fid* waited = &c.cq->fid;
  ASSERT_EQ(fi_trywait(fabric, &waited, 1), 0);
  pollfd look{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_c), 0);
  EXPECT_EQ(::poll(&look, 1, 20000), 1);
  EXPECT_EQ(fi_trywait(fabric, &waited, 1), -FI_EAGAIN);
  EXPECT_EQ(c.next().op_context, &received);
  EXPECT_EQ(fi_trywait(fabric, &waited, 1), 0);
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  c.close();
}

TEST_F(FiCq, More_completions_than_its_size_are_kept) {
  constexpr int kCount = 5000;
  int word = 0;
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(fi_send(a.ep, &word, sizeof word, nullptr, to_b, nullptr), 0);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(a.next().err, 0);
  EXPECT_TRUE(a.is_quiet());
}

TEST_F(FiCq, Formats_end_where_they_say) {
  struct Case {
    fi_cq_format format;
    std::size_t bytes;
  };
  for (const Case& one :
       {Case{FI_CQ_FORMAT_CONTEXT, sizeof(fi_cq_entry)}, Case{FI_CQ_FORMAT_MSG, sizeof(fi_cq_msg_entry)},
        Case{FI_CQ_FORMAT_DATA, sizeof(fi_cq_data_entry)}}) {
    fi_cq_attr attr{};
    attr.format = one.format;
    fid_cq* cq = nullptr;
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &a.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(ep), 0);
    const int sent = 1;
    for (int i = 0; i < 2; ++i) ASSERT_EQ(fi_send(ep, &sent, sizeof sent, nullptr, to_b, &attr), 0);
    std::array<std::byte, 256> entries;
    entries.fill(std::byte{0xee});
    EXPECT_EQ(fi_cq_read(cq, entries.data(), 2), 2);
    void* context = nullptr;
    std::memcpy(&context, entries.data() + one.bytes, sizeof context);
    EXPECT_EQ(context, &attr);
    EXPECT_EQ(entries[2 * one.bytes], std::byte{0xee});
    EXPECT_EQ(fi_close(&ep->fid), 0);
    EXPECT_EQ(fi_close(&cq->fid), 0);
  }
}

class FiCntr : public Fabric {
 protected:
  void SetUp() override {
    open_domain(make_hints().get());
    sends = open_cntr();
    receives = open_cntr();
    a.open(domain, info.get(), 0, sends, FI_SEND);
    b.open(domain, info.get(), 0, receives, FI_RECV);
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
  EXPECT_EQ(fi_cntr_wait(receives, 5, 20000), 0);
  EXPECT_EQ(fi_cntr_read(sends), 5u);
  EXPECT_EQ(fi_cntr_read(receives), 5u);
  EXPECT_EQ(fi_cntr_readerr(receives), 0u);
  EXPECT_EQ(fi_cntr_wait(receives, 6, 10), -FI_ETIMEDOUT);
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

TEST_F(FiCntr, Poll_set_names_who_has_news) {
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(domain, &attr, &set), 0);
  receives->fid.context = &receives;
  b.cq->fid.context = &b;
  ASSERT_EQ(fi_poll_add(set, &receives->fid, 0), 0);
  ASSERT_EQ(fi_poll_add(set, &b.cq->fid, 0), 0);
  std::array<void*, 4> contexts{};
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  int received = 0;
  const int sent = 3;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
  ASSERT_EQ(fi_cntr_wait(receives, 1, 20000), 0);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 2);
  EXPECT_EQ(fi_poll_del(set, &b.cq->fid, 0), 0);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
  EXPECT_EQ(b.next().err, 0);
}

TEST_F(FiCntr, Deferred_work_starts_at_its_threshold) {
  int received = 0;
  int sent = 21;
  const iovec piece{&sent, sizeof sent};
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 8, 0, nullptr), 0);
  fid_cntr* gate = open_cntr();
  fid_cntr* done = open_cntr();
  fi_op_tagged op{};
  op.ep = a.ep;
  op.msg.msg_iov = &piece;
  op.msg.iov_count = 1;
  op.msg.addr = to_b;
  op.msg.tag = 8;
  fi_deferred_work work{};
  work.threshold = 3;
  work.triggering_cntr = gate;
  work.completion_cntr = done;
  work.op_type = FI_OP_TSEND;
  work.op.tagged = &op;
  ASSERT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &work), 0);
  fi_op_cntr raise{};
  raise.cntr = sends;
  raise.value = 100;
  fi_deferred_work count{};
  count.threshold = 3;
  count.triggering_cntr = gate;
  count.op_type = FI_OP_CNTR_ADD;
  count.op.cntr = &raise;
  ASSERT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &count), 0);
  ASSERT_EQ(fi_cntr_add(gate, 2), 0);
  EXPECT_TRUE(b.is_quiet());
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(b.next().tag, 8u);
  EXPECT_EQ(received, 21);
  EXPECT_EQ(fi_cntr_wait(done, 1, 20000), 0);
  EXPECT_EQ(fi_cntr_wait(sends, 100, 20000), 0);
}

TEST_F(FiCntr, Triggered_operation_waits_for_its_counter) {
  int received = 0;
  int sent = 22;
  const iovec piece{&sent, sizeof sent};
  fid_cntr* gate = open_cntr();
  fi_triggered_context2 context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {gate, 1};
  fi_msg msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = to_b;
  msg.context = &context;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_TRIGGER), 0);
  EXPECT_TRUE(b.is_quiet());
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, 22);
  EXPECT_EQ(a.next().op_context, &context);
}

}  // namespace
}  // namespace portofu::test
