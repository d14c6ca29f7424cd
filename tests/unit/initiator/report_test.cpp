// What the initiator is told: SEND, ACK and REPLY, as events and as counts, of success and of failure.

#include "engine/initiator/report.h"

#include <gtest/gtest.h>

#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReportTest : public CoreTest {
 protected:
  MemoryDescriptor& md_with(std::uint32_t options) { return make_md(ni, memory.data(), memory.size(), options); }

  /// An answered operation that holds `md`.
  OutstandingOperation operation(MemoryDescriptor& md, PacketType kind, AckRequest ack_req = AckRequest::kNone) {
    OutstandingOperation made;
    made.peer = &peer();
    made.kind = kind;
    made.interface_index = kMatchingPhysical;
    made.ack_req = ack_req;
    made.portals.md_handle = md.handle;
    made.md_use = md.use;
    made.length = 100;
    made.mlength = 60;
    made.remote_offset = 5;
    made.user_ptr = &caller;
    ++ni.outstanding;
    return made;
  }

  int caller = 0;
};

TEST_F(ReportTest, Send__event_has_length_and_caller) {
  const MemoryDescriptor& md = md_with(0);
  report_send_event(core, ni, md, {100, &caller, NiFail::kOk});
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kSend);
  EXPECT_EQ(event.mlength, 100u);
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_EQ(event.ni_fail_type, NiFail::kOk);
}

TEST_F(ReportTest, Send__event_can_be_disabled_always_or_for_success) {
  report_send_event(core, ni, md_with(kMdEventSendDisable), {1, nullptr, NiFail::kSegv});
  report_send_event(core, ni, md_with(kMdEventSuccessDisable), {1, nullptr, NiFail::kOk});
  EXPECT_THAT(kinds(), IsEmpty());
  report_send_event(core, ni, md_with(kMdEventSuccessDisable), {1, nullptr, NiFail::kSegv});
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(ReportTest, Send__counts_operations_bytes_or_failures_if_asked_to) {
  report_send_count(core, ni, md_with(0), {100, nullptr, NiFail::kOk});
  EXPECT_EQ(successes(), 0u);
  report_send_count(core, ni, md_with(kMdEventCtSend), {100, nullptr, NiFail::kOk});
  EXPECT_EQ(successes(), 1u);
  report_send_count(core, ni, md_with(kMdEventCtSend | kMdEventCtBytes), {100, nullptr, NiFail::kOk});
  EXPECT_EQ(successes(), 101u);
  report_send_count(core, ni, md_with(kMdEventCtSend | kMdEventCtBytes), {100, nullptr, NiFail::kSegv});
  EXPECT_EQ(successes(), 101u);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(ReportTest, Acknowledgement__is_noticed_by_a_counter_or_by_a_queue_for_full_ones) {
  const MemoryDescriptor& counting = md_with(kMdEventCtAck);
  const MemoryDescriptor& not_counting = md_with(0);
  for (const AckRequest ack_req : {AckRequest::kFull, AckRequest::kCount, AckRequest::kOperation}) {
    EXPECT_TRUE(acknowledgement_is_noticed(counting, ack_req));
  }
  EXPECT_FALSE(acknowledgement_is_noticed(counting, AckRequest::kNone));
  EXPECT_TRUE(acknowledgement_is_noticed(not_counting, AckRequest::kFull));
  EXPECT_FALSE(acknowledgement_is_noticed(not_counting, AckRequest::kCount));
  EXPECT_FALSE(acknowledgement_is_noticed(not_counting, AckRequest::kOperation));
  MemoryDescriptor& alone = md_with(kMdEventCtAck);
  alone.ct_handle = 0;
  alone.eq_handle = 0;
  EXPECT_FALSE(acknowledgement_is_noticed(alone, AckRequest::kFull));
}

TEST_F(ReportTest, Ack__has_what_the_target_said) {
  MemoryDescriptor& md = md_with(kMdEventCtAck | kMdEventCtBytes);
  OutstandingOperation done = operation(md, PacketType::kPut, AckRequest::kFull);
  done.list = ListKind::kOverflow;
  report_answer(core, done);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kAck);
  EXPECT_EQ(event.mlength, 60u);
  EXPECT_EQ(event.remote_offset, 5u);
  EXPECT_EQ(event.ptl_list, ListKind::kOverflow);
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_EQ(successes(), 60u);
  EXPECT_EQ(ni.outstanding, 0u);
}

TEST_F(ReportTest, Ack__by_count_only) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  report_answer(core, operation(md, PacketType::kPut, AckRequest::kCount));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 1u);
}

TEST_F(ReportTest, Ack__that_the_target_keeps_silent_about) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  for (const AckRequest ack_req : {AckRequest::kFull, AckRequest::kCount}) {
    OutstandingOperation done = operation(md, PacketType::kPut, ack_req);
    done.silent = true;
    report_answer(core, done);
  }
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes() + failures(), 0u);
}

TEST_F(ReportTest, Ack_of_the_operation__counts_also_refusals_as_success_but_not_what_was_not_processed) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  OutstandingOperation done = operation(md, PacketType::kPut, AckRequest::kOperation);
  done.silent = true;
  for (const NiFail fail : {NiFail::kOk, NiFail::kPermViolation, NiFail::kDropped}) {
    done.fail = fail;
    report_answer(core, done);
  }
  EXPECT_EQ(successes(), 3u);
  for (const NiFail fail : {NiFail::kUndeliverable, NiFail::kSegv, NiFail::kPtDisabled}) {
    done.fail = fail;
    report_answer(core, done);
  }
  EXPECT_EQ(failures(), 3u);
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(ReportTest, Ack__after_the_release_of_its_descriptor_is_dropped) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  md.pending = 1;
  release_md(ni, md.handle);
  report_answer(core, operation(md, PacketType::kPut, AckRequest::kFull));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 0u);
  EXPECT_EQ(md.pending, 1u);
  end_operation(ni, md);
}

TEST_F(ReportTest, Ack__of_a_descriptor_that_is_gone) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  const OutstandingOperation done = operation(md, PacketType::kPut, AckRequest::kFull);
  release_md(ni, md.handle);
  report_answer(core, done);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(ni.outstanding, 0u);
}

TEST_F(ReportTest, Answer__of_a_put_raises_no_SEND_and_ends_no_hold) {
  MemoryDescriptor& md = md_with(0);
  md.pending = 1;  // Of another put, whose SEND has not come.
  OutstandingOperation done = operation(md, PacketType::kPut, AckRequest::kFull);
  done.fail = NiFail::kPtDisabled;
  report_answer(core, done);
  const Event ack = next_event();
  EXPECT_EQ(ack.type, EventKind::kAck);
  EXPECT_EQ(ack.ni_fail_type, NiFail::kPtDisabled);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(md.pending, 1u);
}

TEST_F(ReportTest, Answer__for_a_released_descriptor_is_not_for_another_with_its_handle) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  const Handle handle = md.handle;
  const OutstandingOperation late = operation(md, PacketType::kPut, AckRequest::kFull);
  release_md(ni, handle);
  constexpr int kMost = 1 << 20;  // Handles are 32 bits: one comes again.
  int left = kMost;
  for (Handle another = 0; another != handle && left > 0; --left) {
    if (another != 0) release_md(ni, another);
    another = md_with(kMdEventCtAck).handle;
  }
  ASSERT_GT(left, 0);
  report_answer(core, late);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 0u);
  EXPECT_EQ(ni.outstanding, 0u);
}

TEST_F(ReportTest, Reply__of_a_get_is_told_and_ends_the_hold) {
  MemoryDescriptor& md = md_with(kMdEventCtReply | kMdEventCtBytes);
  md.pending = 1;
  OutstandingOperation done = operation(md, PacketType::kGet);
  done.expects_data = true;
  done.portals.reply_md_handle = md.handle;
  report_answer(core, done);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kReply);
  EXPECT_EQ(event.mlength, 60u);
  EXPECT_EQ(successes(), 60u);
  EXPECT_EQ(md.pending, 0u);
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(ReportTest, Reply__that_failed) {
  MemoryDescriptor& md = md_with(kMdEventCtReply | kMdEventSuccessDisable);
  md.pending = 1;
  OutstandingOperation done = operation(md, PacketType::kGet);
  done.expects_data = true;
  done.portals.reply_md_handle = md.handle;
  done.fail = NiFail::kDropped;
  report_answer(core, done);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kDropped);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(ReportTest, Answer__for_a_closed_interface_is_nothing) {
  OutstandingOperation done;
  done.interface_index = kMatchingLogical;
  report_answer(core, done);
}

TEST_F(ReportTest, Not_started__put_with_a_full_acknowledgement_raises_SEND_and_ACK_failed) {
  MemoryDescriptor& md = md_with(kMdEventCtSend | kMdEventCtAck);
  Descriptor d = descriptor(PacketType::kPut, 100);
  d.portals.ack_req = AckRequest::kFull;
  d.portals.md_handle = md.handle;
  d.portals.user_ptr = &caller;
  report_not_started(core, ni, d, NiFail::kUndeliverable);
  for (const EventKind kind : {EventKind::kSend, EventKind::kAck}) {
    const Event event = next_event();
    EXPECT_EQ(event.type, kind);
    EXPECT_EQ(event.ni_fail_type, NiFail::kUndeliverable);
    EXPECT_EQ(event.user_ptr, &caller);
  }
  EXPECT_EQ(failures(), 2u);
  EXPECT_EQ(md.pending, 0u) << "nothing was held";
}

TEST_F(ReportTest, Not_started__by_a_failure_of_ours_raises_no_ACK) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  Descriptor d = descriptor(PacketType::kPut, 100);
  d.portals.ack_req = AckRequest::kFull;
  d.portals.md_handle = md.handle;
  report_not_started(core, ni, d, NiFail::kSegv);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(failures(), 0u);
}

TEST_F(ReportTest, Failed_send__tells_it_by_its_event_or_by_its_count) {
  for (const AckRequest ack_req : {AckRequest::kFull, AckRequest::kCount, AckRequest::kOperation}) {
    EXPECT_TRUE(failed_send_tells(md_with(0), ack_req));
    EXPECT_FALSE(failed_send_tells(md_with(kMdEventSendDisable), ack_req));
    EXPECT_TRUE(failed_send_tells(md_with(kMdEventSuccessDisable), ack_req)) << "which hides successes only";
    MemoryDescriptor& alone = md_with(kMdEventCtSend);
    alone.eq_handle = 0;
    EXPECT_TRUE(failed_send_tells(alone, ack_req));
    alone.ct_handle = 0;
    EXPECT_FALSE(failed_send_tells(alone, ack_req));
  }
}

TEST_F(ReportTest, Failed_send__that_is_only_counted_takes_no_event_of_an_acknowledgement) {
  const MemoryDescriptor& md = md_with(kMdEventSendDisable | kMdEventCtSend);
  EXPECT_FALSE(failed_send_tells(md, AckRequest::kFull));
  EXPECT_TRUE(failed_send_tells(md, AckRequest::kCount));
  EXPECT_TRUE(failed_send_tells(md, AckRequest::kOperation));
}

TEST_F(ReportTest, Not_started__acknowledgement_of_a_released_descriptor_is_dropped) {
  MemoryDescriptor& md = md_with(kMdEventCtAck);
  md.pending = 1;
  release_md(ni, md.handle);
  Descriptor d = descriptor(PacketType::kPut, 100);
  d.portals.ack_req = AckRequest::kFull;
  d.portals.md_handle = md.handle;
  report_not_started(core, ni, d, NiFail::kUndeliverable);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  EXPECT_EQ(failures(), 0u);
  end_operation(ni, md);
}

TEST_F(ReportTest, Not_started__get_and_fetching_raise_REPLY_failed) {
  MemoryDescriptor& md = md_with(kMdEventCtReply);
  Descriptor get = descriptor(PacketType::kGet, 100);
  get.portals.md_handle = md.handle;
  report_not_started(core, ni, get, NiFail::kUndeliverable);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(failures(), 1u);
  Descriptor swap = descriptor(PacketType::kSwap, 4);
  swap.portals.md_handle = md.handle;
  swap.portals.get_md_handle = md.handle;
  report_not_started(core, ni, swap, NiFail::kUndeliverable);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kReply));
}

TEST_F(ReportTest, Not_started__with_descriptors_that_are_gone_is_nothing) {
  Descriptor swap = descriptor(PacketType::kSwap, 4);
  swap.portals.md_handle = make_handle(HandleKind::kMemoryDescriptor, kMatchingPhysical, 9, 9);
  swap.portals.get_md_handle = swap.portals.md_handle;
  report_not_started(core, ni, swap, NiFail::kUndeliverable);
  EXPECT_THAT(kinds(), IsEmpty());
}

}  // namespace
}  // namespace portofu
