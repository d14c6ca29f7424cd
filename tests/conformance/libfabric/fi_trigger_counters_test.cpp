// fi_trigger(3) and fi_cntr(3): counters that deferred work and triggered operations wait for, or change.

#include "tests/conformance/libfabric/trigger_fixture.h"

namespace portofu::test {
namespace {

/// fi_cntr(3): "If resources are still associated with the counter when attempting to close, the call will return
/// -FI_EBUSY." fi_trigger(3): what is referenced by deferred work "must remain valid until the operation completes or
/// is canceled".
class FiTriggerBusy : public FiTrigger {
 protected:
  void SetUp() override {
    FiTrigger::SetUp();
    fi_cntr_attr attr{};
    ASSERT_EQ(fi_cntr_open(domain, &attr, &counter, nullptr), 0);
  }

  fi_deferred_work message(fi_op_type type, fid_cntr* completion, std::uint64_t threshold) {
    op = {a.ep, {&piece, nullptr, 1, type == FI_OP_TRECV ? FI_ADDR_UNSPEC : to_b, 8, 0, nullptr, 0}, 0};
    fi_deferred_work work = work_at(threshold, type, completion);
    work.op.tagged = &op;
    return work;
  }

  /// Of two pieces of the region 1.
  fi_deferred_work read_in_parts() {
    read = {a.ep, {&whole, nullptr, 1, to_b, remote.data(), 2, nullptr, 0}, 0};
    fi_deferred_work work = work_at(1, FI_OP_READ, counter);
    work.op.rma = &read;
    return work;
  }

  std::array<std::uint32_t, 2> local{};
  const iovec whole{local.data(), sizeof local};
  const std::array<fi_rma_iov, 2> remote{{{0, 4, 1}, {4, 4, 1}}};
  fi_op_rma read{};
  int word = 5;
  const iovec piece{&word, sizeof word};
  fi_op_tagged op{};
  fid_cntr* counter = nullptr;
};

TEST_F(FiTriggerBusy, Counter_that_starts_work_is_in_use) {
  fi_deferred_work work = message(FI_OP_TSEND, done, 1);
  work.triggering_cntr = counter;
  ASSERT_EQ(queue(work), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &work), 0) << "it is still there";
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(FiTriggerBusy, Counter_that_counts_the_end_of_work_is_in_use) {
  for (const fi_op_type type : {FI_OP_TSEND, FI_OP_TRECV}) {
    fi_deferred_work work = message(type, counter, 1);
    ASSERT_EQ(queue(work), 0);
    EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY) << type;
    ASSERT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &work), 0) << type;
  }
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(FiTriggerBusy, Counter_that_counts_work_in_several_parts_is_in_use) {
  std::array<std::uint32_t, 2> memory{1, 2};
  fid_mr* region = open_memory(memory.data(), sizeof memory, 1);
  fi_deferred_work work = read_in_parts();
  ASSERT_EQ(queue(work), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(counter, 1, kPatienceMs), 0);
  EXPECT_EQ(local, memory);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiTriggerBusy, All_parts_of_work_are_flushed) {
  fi_deferred_work work = read_in_parts();
  ASSERT_EQ(queue(work), 0);
  ASSERT_EQ(fi_control(&gate->fid, FI_FLUSH_WORK, nullptr), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &work), -FI_ENOENT);
}

TEST_F(FiTriggerBusy, Work_of_another_domain_is_refused) {
  fid_domain* other = nullptr;
  fid_cntr* of_other = nullptr;
  fi_cntr_attr attr{};
  ASSERT_EQ(fi_domain(fabric, info.get(), &other, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(other, &attr, &of_other, nullptr), 0);
  fi_deferred_work work = message(FI_OP_TSEND, of_other, 1);
  EXPECT_EQ(queue(work), -FI_EDOMAIN);
  work.completion_cntr = nullptr;
  EXPECT_EQ(fi_control(&other->fid, FI_QUEUE_WORK, &work), -FI_EDOMAIN);
  work.triggering_cntr = of_other;
  EXPECT_EQ(queue(work), -FI_EDOMAIN);
  fi_triggered_context2 context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {of_other, 1};
  op.msg.context = &context;
  EXPECT_EQ(fi_tsendmsg(a.ep, &op.msg, FI_TRIGGER), -FI_EINVAL);
  EXPECT_EQ(fi_close(&of_other->fid), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(FiTriggerBusy, Counter_that_work_changes_is_in_use) {
  fi_op_cntr raise{};
  raise.cntr = counter;
  raise.value = 1;
  fi_deferred_work work = work_at(1, FI_OP_CNTR_ADD, nullptr);
  work.op.cntr = &raise;
  ASSERT_EQ(queue(work), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(counter, 1, kPatienceMs), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(FiTriggerBusy, Work_that_has_started_still_counts_its_end) {
  fi_deferred_work work = message(FI_OP_TRECV, counter, 1);
  ASSERT_EQ(queue(work), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY) << "the receive waits for its message";
  const int sent = 7;
  ASSERT_EQ(fi_tinject(b.ep, &sent, sizeof sent, to_a, 8), 0);
  EXPECT_EQ(fi_cntr_wait(counter, 1, kPatienceMs), 0);
  EXPECT_EQ(word, 7);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(FiTriggerBusy, Counter_is_free_when_the_endpoint_of_its_work_is_closed) {
  Node c;
  c.open(domain, info.get());
  for (const std::uint64_t threshold : {0, 1}) {
    fi_deferred_work work = message(FI_OP_TRECV, counter, threshold);
    op.ep = c.ep;
    ASSERT_EQ(queue(work), 0);
  }
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  c.close();
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(FiTriggerBusy, Counter_of_a_triggered_operation_is_in_use) {
  fi_triggered_context2 context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {counter, 1};
  fi_msg_tagged msg{&piece, nullptr, 1, FI_ADDR_UNSPEC, 3, 0, &context, 0};
  ASSERT_EQ(fi_trecvmsg(a.ep, &msg, FI_TRIGGER), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_cancel(&a.ep->fid, &context), 0);
  const Completion canceled = a.next();
  EXPECT_EQ(canceled.err, FI_ECANCELED);
  EXPECT_EQ(canceled.op_context, &context);
  EXPECT_EQ(canceled.flags, FI_RECV | FI_TAGGED);
  msg.addr = to_b;
  ASSERT_EQ(fi_tsendmsg(a.ep, &msg, FI_TRIGGER), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  ASSERT_EQ(fi_cancel(&a.ep->fid, &context), 0);
  EXPECT_EQ(a.next().flags, FI_SEND | FI_TAGGED);
  EXPECT_EQ(fi_cancel(&a.ep->fid, &context), -FI_ENOENT);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(FiTriggerBusy, Flush_of_a_counter_leaves_the_work_of_others) {
  fi_deferred_work work = message(FI_OP_TSEND, done, 1);
  ASSERT_EQ(queue(work), 0);
  EXPECT_EQ(fi_control(&counter->fid, FI_FLUSH_WORK, nullptr), 0);
  EXPECT_EQ(fi_control(&domain->fid, FI_FLUSH_WORK, counter), -FI_EINVAL) << "<rdma/fabric.h>: its argument is NULL";
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

// What is refused does not wait: its memory is the program's again.
TEST_F(FiTriggerBusy, Of_work_in_parts_that_is_refused_nothing_waits) {
  if (have_two_engines()) {
    EXPECT_EQ(fi_close(&counter->fid), 0);
    GTEST_SKIP() << "it needs a million waiting operations, and they are in one engine";
  }
  std::array<std::uint32_t, 2> memory{1, 2};
  fid_mr* region = open_memory(memory.data(), sizeof memory, 1);
  fi_op_cntr raise{};
  raise.cntr = done;
  fi_deferred_work one = work_at(2, FI_OP_CNTR_ADD, nullptr), all = one;
  one.op.cntr = all.op.cntr = &raise;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(queue(one), 0);
  while (queue(all) == 0) {
  }
  ASSERT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &one), 0);
  fi_deferred_work work = read_in_parts();
  EXPECT_EQ(queue(work), -FI_EAGAIN) << "there is room for one part, and for what tells of both";
  ASSERT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &all), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(local[0], 0u);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// fi_endpoint(3), fi_cancel: "search for the operation and, if it is still pending, complete it as having been
/// canceled".
TEST_F(FiTriggerBusy, Triggered_access_is_canceled_with_all_its_pieces) {
  std::array<std::uint32_t, 2> memory{5, 6};
  fid_mr* region = open_memory(memory.data(), sizeof memory, 1);
  fid_cntr* writes = open_cntr(domain);
  fid_cntr* reads = open_cntr(domain);
  Node c;
  c.open(domain, info.get(), 0, writes, FI_WRITE, FI_WAIT_UNSPEC, reads, FI_READ);
  local = {1, 2};
  fi_triggered_context2 context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {counter, 1};
  std::array<std::uint32_t, 2> old{};
  const fi_ioc items{local.data(), 2};
  fi_ioc fetched{old.data(), 2};
  const std::array<fi_rma_ioc, 2> places{{{0, 1, 1}, {4, 1, 1}}};
  const fi_addr_t from_c = c.insert(b);
  const fi_msg_rma access{&whole, nullptr, 1, from_c, remote.data(), 2, &context, 0};
  const fi_rma_iov both{0, 8, 1};
  const fi_msg_rma plain{&whole, nullptr, 1, from_c, &both, 1, &context, 0};
  const fi_msg_atomic sum{&items, nullptr, 1, from_c, places.data(), 2, FI_UINT32, FI_SUM, &context, 0};
  const auto expect_canceled = [&](ssize_t posted, std::uint64_t flags) {
    ASSERT_EQ(posted, 0);
    ASSERT_EQ(fi_cancel(&c.ep->fid, &context), 0);
    const Completion canceled = c.next();
    EXPECT_EQ(canceled.err, FI_ECANCELED);
    EXPECT_EQ(canceled.op_context, &context);
    EXPECT_EQ(canceled.flags, flags);
    EXPECT_EQ(fi_cancel(&c.ep->fid, &context), -FI_ENOENT);
  };
  for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{FI_INJECT}, std::uint64_t{FI_REMOTE_CQ_DATA}}) {
    expect_canceled(fi_writemsg(c.ep, &plain, FI_TRIGGER | more), FI_WRITE | FI_RMA);
    expect_canceled(fi_writemsg(c.ep, &access, FI_TRIGGER | more), FI_WRITE | FI_RMA);
    expect_canceled(fi_atomicmsg(c.ep, &sum, FI_TRIGGER | more), FI_WRITE | FI_ATOMIC);
  }
  expect_canceled(fi_readmsg(c.ep, &access, FI_TRIGGER), FI_READ | FI_RMA);
  expect_canceled(fi_fetch_atomicmsg(c.ep, &sum, &fetched, nullptr, 1, FI_TRIGGER), FI_READ | FI_ATOMIC);
  EXPECT_EQ(fi_cntr_readerr(writes), 9u);
  EXPECT_EQ(fi_cntr_readerr(reads), 2u);
  ASSERT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_TRUE(c.is_quiet());
  EXPECT_TRUE(b.is_quiet());
  EXPECT_EQ(memory, (std::array<std::uint32_t, 2>{5, 6}));
  ASSERT_EQ(fi_writemsg(c.ep, &access, FI_TRIGGER), 0) << "its threshold has been reached";
  EXPECT_EQ(c.next().err, 0);
  EXPECT_EQ(memory, local);
  EXPECT_EQ(fi_cancel(&c.ep->fid, &context), -FI_ENOENT) << "it is over";
  c.close();
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiTriggerBusy, Triggered_access_to_several_pieces_is_told_once) {
  std::array<std::uint32_t, 2> memory{};
  fid_mr* region = open_memory(memory.data(), sizeof memory, 1);
  local = {1, 2};
  std::array<fi_triggered_context2, 2> contexts{};
  Node c;
  c.open(domain, info.get());
  for (fi_triggered_context2& context : contexts) {
    context.event_type = FI_TRIGGER_THRESHOLD;
    context.trigger.threshold = {counter, 1};
  }
  fi_msg_rma msg{&whole, nullptr, 1, to_b, remote.data(), 2, &contexts[0], 0};
  ASSERT_EQ(fi_writemsg(a.ep, &msg, FI_TRIGGER), 0);
  msg.addr = c.insert(b);
  msg.context = &contexts[1];
  ASSERT_EQ(fi_readmsg(c.ep, &msg, FI_TRIGGER), 0);
  c.close();
  EXPECT_TRUE(a.is_quiet());
  ASSERT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(a.next().op_context, &contexts[0]);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(memory, local);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

}  // namespace
}  // namespace portofu::test
