// fi_trigger(3): deferred work and triggered operations.

#include "tests/conformance/libfabric/trigger_fixture.h"

namespace portofu::test {
namespace {

TEST_F(FiTrigger, Deferred_work_starts_at_its_threshold) {
  int received = 0;
  int sent = 21;
  const iovec piece{&sent, sizeof sent};
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 8, 0, nullptr), 0);
  fid_cntr* raised = open_cntr(domain);
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
  raise.cntr = raised;
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
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_wait(raised, 100, kPatienceMs), 0);
}

TEST_F(FiTrigger, Triggered_operation_waits_for_its_counter) {
  int received = 0;
  int sent = 22;
  fi_triggered_context2 context{};
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(send_at_gate(&sent, &context), 0);
  EXPECT_TRUE(b.is_quiet());
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, 22);
  EXPECT_EQ(a.next().op_context, &context);
}

TEST_F(FiTrigger, Deferred_receive_is_posted_at_its_threshold) {
  std::array<int, 2> received{};
  const std::array<int, 2> sent{31, 32};
  iovec piece{&received[0], sizeof(int)};
  fi_op_msg op{};
  op.ep = a.ep;
  op.msg.msg_iov = &piece;
  op.msg.iov_count = 1;
  op.msg.addr = FI_ADDR_UNSPEC;
  fi_deferred_work work = work_at(1, FI_OP_RECV, done);
  work.op.msg = &op;
  ASSERT_EQ(queue(work), 0);
  iovec tagged_piece{&received[1], sizeof(int)};
  fi_op_tagged tagged{};
  tagged.ep = a.ep;
  tagged.msg.msg_iov = &tagged_piece;
  tagged.msg.iov_count = 1;
  tagged.msg.addr = FI_ADDR_UNSPEC;
  tagged.msg.tag = 7;
  tagged.msg.context = &tagged;
  tagged.flags = FI_COMPLETION;
  fi_deferred_work tagged_work = work_at(2, FI_OP_TRECV, done);
  tagged_work.op.tagged = &tagged;
  ASSERT_EQ(queue(tagged_work), 0);
  ASSERT_EQ(fi_inject(b.ep, &sent[0], sizeof(int), to_a), 0);
  ASSERT_EQ(fi_tinject(b.ep, &sent[1], sizeof(int), to_a, 7), 0);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(fi_cntr_read(done), 0u);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  EXPECT_EQ(received[0], 31);
  EXPECT_TRUE(a.is_quiet()) << "it has asked for no completion";
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(a.next().op_context, &tagged);
  EXPECT_EQ(fi_cntr_read(done), 2u);
  EXPECT_EQ(received[1], 32);
}

TEST_F(FiTrigger, Triggered_receive_waits_for_its_counter) {
  int received = 0;
  const int sent = 33;
  fi_triggered_context2 context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {gate, 1};
  const iovec piece{&received, sizeof received};
  fi_msg_tagged msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 3;
  msg.context = &context;
  ASSERT_EQ(fi_trecvmsg(a.ep, &msg, FI_TRIGGER), 0);
  ASSERT_EQ(fi_tinject(b.ep, &sent, sizeof sent, to_a, 3), 0);
  EXPECT_TRUE(a.is_quiet());
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(a.next().op_context, &context);
  EXPECT_EQ(received, 33);
}

TEST_F(FiTrigger, Memory_is_reached_at_its_threshold) {
  std::uint64_t word = 5;
  fid_mr* region = open_memory(&word, sizeof word, 1);
  std::uint64_t local = 7;
  std::uint64_t fetched = 0;
  const iovec piece{&local, sizeof local};
  const fi_rma_iov remote{0, sizeof word, 1};
  fi_op_rma write{};
  write.ep = a.ep;
  write.msg.msg_iov = &piece;
  write.msg.iov_count = 1;
  write.msg.addr = to_b;
  write.msg.rma_iov = &remote;
  write.msg.rma_iov_count = 1;
  fi_deferred_work first = work_at(1, FI_OP_WRITE, gate);
  first.op.rma = &write;
  const fi_ioc operand{&local, 1};
  fi_ioc result{&fetched, 1};
  const fi_rma_ioc target{0, 1, 1};
  fi_op_fetch_atomic add{};
  add.ep = a.ep;
  add.msg = {&operand, nullptr, 1, to_b, &target, 1, FI_UINT64, FI_SUM, nullptr, 0};
  add.fetch.msg_iov = &result;
  add.fetch.iov_count = 1;
  fi_deferred_work second = work_at(2, FI_OP_FETCH_ATOMIC, done);
  second.op.fetch_atomic = &add;
  ASSERT_EQ(queue(second), 0);
  ASSERT_EQ(queue(first), 0);
  EXPECT_EQ(word, 5u);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  EXPECT_EQ(fetched, 7u) << "the write was counted at the counter for which the atomic waited";
  EXPECT_EQ(word, 14u);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// Work of each kind on memory of b, in two pieces on either side where that is possible.
class FiTriggerKinds : public FiTrigger {
 protected:
  using Words = std::array<std::uint32_t, 2>;

  void SetUp() override {
    FiTrigger::SetUp();
    region = open_memory(memory.data(), sizeof memory, 1);
  }
  void TearDown() override {
    EXPECT_EQ(fi_close(&region->fid), 0);
    FiTrigger::TearDown();
  }

  /// Queues it, raises the counter, and waits until it has been counted, once.
  void run(fi_op_type type, void* op) {
    fi_deferred_work work = work_at(++threshold, type, done);
    work.op.msg = static_cast<fi_op_msg*>(op);  // A union of pointers.
    ASSERT_EQ(queue(work), 0) << type;
    EXPECT_TRUE(a.is_quiet());
    ASSERT_EQ(fi_cntr_add(gate, 1), 0);
    EXPECT_EQ(fi_cntr_wait(done, threshold, kPatienceMs), 0) << type;
    EXPECT_TRUE(a.is_quiet()) << type;
    EXPECT_EQ(fi_cntr_read(done), threshold) << type;
  }

  fi_msg_rma access() const { return {pieces.data(), nullptr, 2, to_b, remote.data(), 2, nullptr, 0}; }
  fi_msg_atomic atomic(fi_op op) const {
    return {operands.data(), nullptr, 2, to_b, targets.data(), 2, FI_UINT32, op, nullptr, 0};
  }

  Words memory{1, 2};
  Words local{10, 20};
  Words fetched{};
  Words compared{11, 99};
  std::array<iovec, 2> pieces{{{&local[0], 4}, {&local[1], 4}}};
  std::array<fi_rma_iov, 2> remote{{{0, 4, 1}, {4, 4, 1}}};
  std::array<fi_ioc, 2> operands{{{&local[0], 1}, {&local[1], 1}}};
  std::array<fi_ioc, 2> results{{{&fetched[0], 1}, {&fetched[1], 1}}};
  std::array<fi_ioc, 2> compares{{{&compared[0], 1}, {&compared[1], 1}}};
  std::array<fi_rma_ioc, 2> targets{{{0, 1, 1}, {4, 1, 1}}};
  fid_mr* region = nullptr;
  std::uint64_t threshold = 0;
};

TEST_F(FiTriggerKinds, Access_to_memory_counts_once) {
  fi_op_rma rma{a.ep, access(), 0};
  run(FI_OP_READ, &rma);
  EXPECT_EQ(local, (Words{1, 2}));
  local = {3, 4};
  run(FI_OP_WRITE, &rma);
  EXPECT_EQ(memory, (Words{3, 4}));
}

TEST_F(FiTriggerKinds, Atomics_count_once) {
  fi_op_atomic add{a.ep, atomic(FI_SUM), 0};
  run(FI_OP_ATOMIC, &add);
  EXPECT_EQ(memory, (Words{11, 22}));
  fi_op_compare_atomic swap{a.ep, atomic(FI_CSWAP), {results.data(), nullptr, 2}, {compares.data(), nullptr, 2}, 0};
  run(FI_OP_COMPARE_ATOMIC, &swap);
  EXPECT_EQ(fetched, (Words{11, 22}));
  EXPECT_EQ(memory, (Words{10, 22}));
  fi_op_fetch_atomic fetch{a.ep, atomic(FI_SUM), {results.data(), nullptr, 2}, 0};
  run(FI_OP_FETCH_ATOMIC, &fetch);
  EXPECT_EQ(fetched, (Words{10, 22}));
  EXPECT_EQ(memory, (Words{20, 42}));
}

TEST_F(FiTriggerKinds, Messages_count_once) {
  Words received{};
  ASSERT_EQ(fi_recv(b.ep, received.data(), sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  fi_op_msg message{a.ep, {pieces.data(), nullptr, 2, to_b, nullptr, 0}, 0};
  run(FI_OP_SEND, &message);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, local);
  ASSERT_EQ(fi_trecv(b.ep, received.data(), sizeof received, nullptr, FI_ADDR_UNSPEC, 9, 0, nullptr), 0);
  fi_op_tagged tagged{a.ep, {pieces.data(), nullptr, 2, to_b, 9, 0, nullptr, 0}, FI_DELIVERY_COMPLETE};
  run(FI_OP_TSEND, &tagged);
  EXPECT_EQ(b.next().tag, 9u);
  local = {};
  ASSERT_EQ(fi_tinject(b.ep, received.data(), sizeof received, to_a, 9), 0);
  tagged.msg.addr = FI_ADDR_UNSPEC;
  tagged.flags = 0;
  run(FI_OP_TRECV, &tagged);
  EXPECT_EQ(local, received);
  local = {};
  ASSERT_EQ(fi_inject(b.ep, received.data(), sizeof received, to_a), 0);
  message.msg.addr = FI_ADDR_UNSPEC;
  run(FI_OP_RECV, &message);
  EXPECT_EQ(local, received);
}

TEST_F(FiTrigger, Failures_reach_a_threshold_too) {
  fi_op_cntr raise{};
  raise.cntr = done;
  raise.value = 4;
  fi_deferred_work work = work_at(2, FI_OP_CNTR_ADD, nullptr);
  work.op.cntr = &raise;
  ASSERT_EQ(queue(work), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_read(done), 0u);
  ASSERT_EQ(fi_cntr_adderr(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 4, kPatienceMs), 0);
}

TEST_F(FiTrigger, Set_leaves_the_failures) {
  ASSERT_EQ(fi_cntr_adderr(done, 3), 0);
  fi_op_cntr set{};
  set.cntr = done;
  set.value = 9;
  fi_deferred_work work = work_at(1, FI_OP_CNTR_SET, nullptr);
  work.op.cntr = &set;
  ASSERT_EQ(queue(work), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 9, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_readerr(done), 3u);
  work.completion_cntr = done;
  EXPECT_EQ(queue(work), -FI_EINVAL) << "counters have no completion";
}

TEST_F(FiTrigger, Canceled_work_never_starts) {
  int received = 0;
  iovec piece{&received, sizeof received};
  std::array<fi_op_tagged, 3> ops{};
  std::array<fi_deferred_work, 3> works{};
  for (int i = 0; i < 3; ++i) {
    ops[i].ep = a.ep;
    ops[i].msg.msg_iov = &piece;
    ops[i].msg.iov_count = 1;
    ops[i].msg.addr = i == 2 ? FI_ADDR_UNSPEC : to_b;
    ops[i].msg.tag = 40 + i;
    works[i] = work_at(1, i == 2 ? FI_OP_TRECV : FI_OP_TSEND, done);
    works[i].op.tagged = &ops[i];
    ASSERT_EQ(queue(works[i]), 0);
  }
  ASSERT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &works[0]), 0);
  EXPECT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &works[0]), -FI_ENOENT);
  ASSERT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &works[2]), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  int taken = 0;
  ASSERT_EQ(fi_trecv(b.ep, &taken, sizeof taken, nullptr, FI_ADDR_UNSPEC, 40, 3, nullptr), 0);
  EXPECT_EQ(b.next().tag, 41u);
  EXPECT_TRUE(b.is_quiet());
}

TEST_F(FiTrigger, Flushed_work_is_gone) {
  std::uint64_t word = 0;
  fid_mr* region = open_memory(&word, sizeof word, 1);
  std::array<std::uint32_t, 2> local{1, 2}, compare{}, results{};
  const fi_ioc operand{local.data(), 2};
  const fi_ioc compared{compare.data(), 2};
  fi_ioc fetched{results.data(), 2};
  const fi_rma_ioc target{0, 2, 1};
  fi_op_compare_atomic op{};
  op.ep = a.ep;
  op.msg = {&operand, nullptr, 1, to_b, &target, 1, FI_UINT32, FI_CSWAP, nullptr, 0};
  op.fetch = {&fetched, nullptr, 1};
  op.compare = {&compared, nullptr, 1};
  fi_deferred_work work = work_at(1, FI_OP_COMPARE_ATOMIC, done);
  work.op.compare_atomic = &op;
  ASSERT_EQ(queue(work), 0);
  ASSERT_EQ(fi_control(&domain->fid, FI_FLUSH_WORK, nullptr), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 1, 20), -FI_ETIMEDOUT);
  EXPECT_EQ(word, 0u);
  ASSERT_EQ(queue(work), 0) << "its threshold has been reached";
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  EXPECT_NE(word, 0u);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiTrigger, Work_ends_with_its_endpoint) {
  Node c;
  c.open(domain, info.get());
  const fi_addr_t from_c = c.insert(b);
  std::array<std::uint32_t, 2> target{};
  fid_mr* region = open_memory(target.data(), sizeof target, 1);
  std::array<std::uint32_t, 2> local{1, 2};
  const std::array<iovec, 2> pieces{{{&local[0], 4}, {&local[1], 4}}};
  const fi_rma_iov remote{0, sizeof target, 1};
  fi_op_rma op{};
  op.ep = c.ep;
  op.msg = {pieces.data(), nullptr, 2, from_c, &remote, 1, nullptr, 0};
  fi_deferred_work write = work_at(1, FI_OP_WRITE, done);
  write.op.rma = &op;
  ASSERT_EQ(queue(write), 0);
  fi_op_tagged receive_op{};
  receive_op.ep = c.ep;
  receive_op.msg.msg_iov = pieces.data();
  receive_op.msg.iov_count = 1;
  receive_op.msg.addr = FI_ADDR_UNSPEC;
  fi_deferred_work receive = work_at(1, FI_OP_TRECV, done);
  receive.op.tagged = &receive_op;
  ASSERT_EQ(queue(receive), 0);
  c.close();
  EXPECT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &write), -FI_ENOENT);
  EXPECT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &receive), -FI_ENOENT);
  op.ep = a.ep;
  op.msg.addr = to_b;
  local = {3, 4};
  ASSERT_EQ(queue(write), 0) << "another endpoint's goes on";
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  EXPECT_EQ(target, local);
  EXPECT_EQ(fi_cntr_wait(done, 2, 20), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// A domain has memory descriptors for so many pieces of waiting work; what is flushed has to give its ones back.
/// fi_trigger(3): "FI_FLUSH_WORK ... may be used to cancel all requests waiting on a specific triggering_cntr."
TEST_F(FiTrigger, Memory_of_work_is_free_when_its_counter_is_flushed) {
  constexpr int kDescriptors = 1'000'000;
  constexpr int kPieces = 8;
  constexpr int kWorks = 1000;
  std::uint64_t local = 0;
  const iovec piece{&local, kPieces};
  std::array<fi_rma_iov, kPieces> remote{};
  for (int i = 0; i < kPieces; ++i) remote[i] = {static_cast<std::uint64_t>(i), 1, 1};
  fi_op_rma op{};
  op.ep = a.ep;
  op.msg = {&piece, nullptr, 1, to_b, remote.data(), kPieces, nullptr, 0};
  fi_cntr_attr attr{};
  for (int i = 0; i <= kDescriptors / kPieces / kWorks; ++i) {
    fid_cntr* closed = nullptr;
    ASSERT_EQ(fi_cntr_open(domain, &attr, &closed, nullptr), 0);
    fi_deferred_work work = work_at(1, FI_OP_WRITE, done);
    work.triggering_cntr = closed;
    work.op.rma = &op;
    for (int k = 0; k < kWorks; ++k) ASSERT_EQ(queue(work), 0) << i;
    ASSERT_EQ(fi_close(&closed->fid), -FI_EBUSY);
    ASSERT_EQ(fi_control(&closed->fid, FI_FLUSH_WORK, nullptr), 0);
    ASSERT_EQ(fi_close(&closed->fid), 0);
  }
}

/// fi_msg(3), FI_INJECT: "the outbound data buffer should be returned to user immediately after the send call returns";
/// so it is of every kind of transmit. That the transfer waits for a counter does not make the buffer the library's.
TEST_F(FiTrigger, Injected_data_are_those_of_the_call) {
  std::array<std::uint64_t, 4> memory{};
  fid_mr* region = open_memory(memory.data(), sizeof memory, 1);
  std::array<fi_triggered_context2, 5> contexts{};
  for (fi_triggered_context2& context : contexts) {
    context.event_type = FI_TRIGGER_THRESHOLD;
    context.trigger.threshold = {gate, 1};
  }
  std::array<std::uint32_t, 2> data{1, 2};
  std::uint64_t one = 1, old = 0;
  std::array<iovec, 2> pieces{{{&data[0], 4}, {&data[1], 4}}};
  fi_rma_iov remote{0, 8, 1};
  fi_ioc item{&one, 1}, fetched{&old, 1};
  fi_rma_ioc place{8, 1, 1};
  const fi_msg sent{pieces.data(), nullptr, 2, to_b, &contexts[0], 0};
  ASSERT_EQ(fi_sendmsg(a.ep, &sent, FI_TRIGGER | FI_INJECT), 0);
  const fi_msg_rma written{pieces.data(), nullptr, 2, to_b, &remote, 1, &contexts[1], 0};
  ASSERT_EQ(fi_writemsg(a.ep, &written, FI_TRIGGER | FI_INJECT), 0);
  fi_msg_atomic added{&item, nullptr, 1, to_b, &place, 1, FI_UINT64, FI_SUM, &contexts[2], 0};
  ASSERT_EQ(fi_atomicmsg(a.ep, &added, FI_TRIGGER | FI_INJECT), 0);
  place.addr = 16;
  added.context = &contexts[3];
  ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &added, &fetched, nullptr, 1, FI_TRIGGER | FI_INJECT), 0);
  place.addr = 24;
  added.op = FI_CSWAP;
  added.context = &contexts[4];
  std::uint64_t compared = 0;
  const fi_ioc compare{&compared, 1};
  ASSERT_EQ(fi_compare_atomicmsg(a.ep, &added, &compare, nullptr, 1, &fetched, nullptr, 1, FI_TRIGGER | FI_INJECT), 0);
  data = {11, 12};
  one = compared = 100;
  pieces = {};
  std::array<std::uint32_t, 2> received{};
  ASSERT_EQ(fi_recv(b.ep, received.data(), sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  for (std::size_t i = 0; i < contexts.size(); ++i) EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, (std::array<std::uint32_t, 2>{1, 2}));
  EXPECT_EQ(memory, (std::array<std::uint64_t, 4>{1 | std::uint64_t{2} << 32, 1, 1, 1}));
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiTrigger, Injected_data_that_wait_can_be_canceled) {
  fi_triggered_context2 context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {gate, 1};
  int word = 5;
  const iovec piece{&word, sizeof word};
  const fi_msg msg{&piece, nullptr, 1, to_b, &context, 0};
  ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_INJECT), 0);
  ASSERT_EQ(fi_cancel(&a.ep->fid, &context), 0);
  EXPECT_EQ(a.next().err, FI_ECANCELED);
  EXPECT_EQ(fi_cancel(&a.ep->fid, &context), -FI_ENOENT);
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_TRUE(b.is_quiet());
}

/// "Deferred work requests are not acted upon by the provider until the associated event has occurred ... Referenced
/// data buffers are not read or otherwise accessed."
TEST_F(FiTrigger, Buffers_of_deferred_work_are_read_when_it_starts) {
  std::array<std::uint64_t, 6> memory{10, 20, 30, 40, 50, 60};
  fid_mr* region = open_memory(memory.data(), sizeof memory, 1);
  std::array<std::uint64_t, 6> source{}, compared{}, old{};
  fi_ioc out{source.data(), 6}, in{old.data(), 6};
  const std::array<fi_ioc, 2> compare{{{&compared[0], 2}, {&compared[2], 4}}};
  const fi_rma_ioc place{0, 6, 1};
  fi_op_compare_atomic op{};
  op.ep = a.ep;
  op.msg = {&out, nullptr, 1, to_b, &place, 1, FI_UINT64, FI_CSWAP, nullptr, 0};
  op.fetch.msg_iov = &in;
  op.fetch.iov_count = 1;
  op.compare.msg_iov = compare.data();
  op.compare.iov_count = 2;
  fi_deferred_work work = work_at(1, FI_OP_COMPARE_ATOMIC, done);
  work.op.compare_atomic = &op;
  ASSERT_EQ(queue(work), 0);
  ASSERT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &work), 0);
  EXPECT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, &work), -FI_ENOENT);
  ASSERT_EQ(queue(work), 0);
  source = {1, 2, 3, 4, 5, 6};
  compared = {10, 20, 30, 40, 50, 61};
  ASSERT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_wait(done, 1, kPatienceMs), 0);
  EXPECT_EQ(memory, (std::array<std::uint64_t, 6>{1, 2, 3, 4, 5, 60}));
  EXPECT_EQ(old, (std::array<std::uint64_t, 6>{10, 20, 30, 40, 50, 60}));
  for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{FI_INJECT}}) {
    source = {7, 8};
    const iovec piece{source.data(), 8};
    const fi_rma_iov remote{0, 8, 1};
    fi_op_rma write{a.ep, {&piece, nullptr, 1, to_b, &remote, 1, nullptr, 0}, flags};
    fi_deferred_work writing = work_at(fi_cntr_read(gate) + 1, FI_OP_WRITE, done);
    writing.op.rma = &write;
    ASSERT_EQ(queue(writing), 0);
    source[0] = 9 + flags;
    const std::uint64_t ended = fi_cntr_read(done);
    ASSERT_EQ(fi_cntr_add(gate, 1), 0);
    EXPECT_EQ(fi_cntr_wait(done, ended + 1, kPatienceMs), 0);
    EXPECT_EQ(memory[0], 9 + flags);
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiTrigger, What_is_no_trigger_is_refused) {
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_XPU;
  int word = 0;
  const iovec piece{&word, sizeof word};
  fi_msg_tagged msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = to_b;
  msg.context = &context;
  EXPECT_EQ(fi_tsendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
  context.event_type = FI_TRIGGER_THRESHOLD;
  EXPECT_EQ(fi_tsendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL) << "of no counter";
  msg.context = nullptr;
  EXPECT_EQ(fi_tsendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
  msg.addr = FI_ADDR_UNSPEC;
  EXPECT_EQ(fi_trecvmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
  EXPECT_TRUE(a.is_quiet());
}

/// "If a specific request is not supported by the provider, it will fail the operation with -FI_ENOSYS." Nothing of it
/// happens before its time, or ever.
TEST_F(FiTrigger, Looking_for_a_message_does_not_wait_for_a_counter) {
  const int sent = 3;
  ASSERT_EQ(fi_tinject(a.ep, &sent, sizeof sent, to_b, 8), 0);
  fi_triggered_context2 context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {gate, 1};
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 8;
  msg.context = &context;
  fi_cntr_add(gate, 1);
  for (const std::uint64_t flags : {FI_PEEK, FI_PEEK | FI_DISCARD, FI_PEEK | FI_CLAIM, FI_CLAIM})
    EXPECT_EQ(fi_trecvmsg(b.ep, &msg, FI_TRIGGER | flags), -FI_ENOSYS) << flags;
  fi_op_tagged op{};
  op.ep = a.ep;
  op.msg = msg;
  op.flags = FI_PEEK | FI_COMPLETION;
  fi_deferred_work work = work_at(1, FI_OP_TRECV, done);
  work.op.tagged = &op;
  EXPECT_EQ(queue(work), -FI_ENOSYS);
  EXPECT_TRUE(a.is_quiet());
  EXPECT_TRUE(b.is_quiet());
  int received = 0;
  ASSERT_EQ(fi_trecv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, 8, 0, nullptr), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, 3) << "nobody has discarded it";
}

TEST_F(FiTrigger, What_is_no_work_is_refused) {
  fi_deferred_work work{};
  EXPECT_EQ(queue(work), -FI_EINVAL);
  for (int type = FI_OP_RECV; type <= FI_OP_CNTR_ADD; ++type) {
    work = work_at(1, static_cast<fi_op_type>(type), nullptr);
    EXPECT_EQ(queue(work), -FI_EINVAL) << type << " without an operation";
    std::array<std::byte, 256> nothing{};
    work.op.msg = reinterpret_cast<fi_op_msg*>(nothing.data());
    EXPECT_EQ(queue(work), -FI_EINVAL) << type << " of nothing";
  }
  work = work_at(1, static_cast<fi_op_type>(FI_OP_CNTR_ADD + 1), nullptr);
  EXPECT_EQ(queue(work), -FI_ENOSYS);
  EXPECT_EQ(fi_control(&domain->fid, FI_CANCEL_WORK, nullptr), -FI_EINVAL);
}

/// "Threshold operations are triggered in the order of the threshold values. This is true even if the counter
/// increments by a value greater than 1. If two triggered operations have the same threshold, they will be triggered in
/// the order in which they were submitted to the endpoint."
TEST_F(FiTrigger, Operations_start_in_the_order_of_their_thresholds) {
  std::array<fi_triggered_context2, 4> contexts{};
  std::array<int, 4> sent{2, 1, 3, 4};
  std::array<int, 4> received{};
  constexpr std::array<std::size_t, 4> kThresholds{2, 1, 2, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    contexts[i].event_type = FI_TRIGGER_THRESHOLD;
    contexts[i].trigger.threshold = {gate, kThresholds[i]};
    const iovec piece{&sent[i], sizeof(int)};
    const fi_msg msg{&piece, nullptr, 1, to_b, &contexts[i], 0};
    ASSERT_EQ(fi_sendmsg(a.ep, &msg, FI_TRIGGER), 0);
    ASSERT_EQ(fi_recv(b.ep, &received[i], sizeof(int), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  ASSERT_EQ(fi_cntr_add(gate, 3), 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, (std::array<int, 4>{1, 2, 3, 4}));
}

/// fi_cntr(3): the error value is of operations "that completed in error and were unable to update the counter".
TEST_F(FiTrigger, Failed_work_is_counted_as_failed) {
  std::uint64_t word = 0;
  const iovec piece{&word, sizeof word};
  const std::array<fi_rma_iov, 2> remote{{{0, 4, 99}, {4, 4, 99}}};
  fi_op_rma op{a.ep, {&piece, nullptr, 1, to_b, remote.data(), 2, nullptr, 0}, 0};
  for (const fi_op_type type : {FI_OP_WRITE, FI_OP_READ}) {
    fi_deferred_work work = work_at(0, type, done);
    work.op.rma = &op;
    const std::uint64_t before = fi_cntr_readerr(done);
    ASSERT_EQ(queue(work), 0) << "its threshold has been reached";
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (fi_cntr_readerr(done) == before && std::chrono::steady_clock::now() < deadline) continue;
    EXPECT_EQ(fi_cntr_readerr(done), before + 1) << type;
  }
  EXPECT_EQ(fi_cntr_read(done), 0u);
}

}  // namespace
}  // namespace portofu::test
