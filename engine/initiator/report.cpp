#include "engine/initiator/report.h"

#include "engine/initiator/tofu_report.h"
#include "engine/queue/fresh_line.h"

namespace portofu {
namespace {

void count(Core& core, Interface& ni, const MemoryDescriptor& md, NiFail fail, std::uint64_t bytes) {
  count_outcome(core, ni, md.ct_handle, fail, (md.options & kMdEventCtBytes) != 0 ? bytes : 1);
}

void post_answer_event(Core& core, Interface& ni, const MemoryDescriptor& md, const AnswerReport& answer,
                       EventKind kind) {
  if (answer.fail == NiFail::kOk && (md.options & kMdEventSuccessDisable) != 0) return;
  post_new_event(core, ni, md.eq_handle, [&answer, kind](Event& event) {
    event.type = kind;
    event.user_ptr = answer.user_ptr;
    event.ni_fail_type = answer.fail;
    event.ptl_list = answer.list;
    event.mlength = fresh(answer.mlength);
    event.remote_offset = fresh(answer.remote_offset);
  });
}

}  // namespace

bool failed_send_tells(const MemoryDescriptor& md, AckRequest ack_req) {
  if (md.eq_handle != 0 && (md.options & kMdEventSendDisable) == 0) return true;
  const bool awaits_event = md.eq_handle != 0 && ack_req == AckRequest::kFull;
  return !awaits_event && md.ct_handle != 0 && (md.options & kMdEventCtSend) != 0;
}

void report_reply(Core& core, Interface& ni, const MemoryDescriptor& md, const AnswerReport& answer) {
  if ((md.options & kMdEventCtReply) != 0) count(core, ni, md, answer.fail, answer.mlength);
  post_answer_event(core, ni, md, answer, EventKind::kReply);
}

void report_ack(Core& core, Interface& ni, const MemoryDescriptor& md, const AnswerReport& answer) {
  if (answer.ack_req == AckRequest::kOperation) {
    // That nothing matched, or that it was not allowed, is no failure of the operation (3.15.1). That it was not
    // processed (3.13.3), or has not come there, is one.
    const bool failed =
        answer.fail == NiFail::kUndeliverable || answer.fail == NiFail::kSegv || answer.fail == NiFail::kPtDisabled;
    if ((md.options & kMdEventCtAck) == 0) return;
    if (failed) {
      count_failure(core, ni, md.ct_handle);
    } else {
      count_success(core, ni, md.ct_handle, 1);
    }
    return;
  }
  if (answer.silent) return;
  if ((md.options & kMdEventCtAck) != 0) count(core, ni, md, answer.fail, answer.mlength);
  if (answer.ack_req == AckRequest::kFull) post_answer_event(core, ni, md, answer, EventKind::kAck);
}

void count_send(Core& core, Interface& ni, const MemoryDescriptor& md, const SendReport& report) {
  count(core, ni, md, report.fail, report.length);
}

void report_answer(Core& core, const OutstandingOperation& operation) {
  Interface* ni = core.interface(operation.interface_index);
  if (ni == nullptr) return report_tofu_answer(core, operation);
  --ni->outstanding;
  if (MemoryDescriptor* md = ni->mds.find(operation.portals.md_handle);
      md != nullptr && operation.kind != PacketType::kGet && md->use == operation.md_use) {
    // After PtlMDRelease the acknowledgement is discarded (3.10.4), also where another one has the handle by now.
    const bool once = (md->options & kMdOneShot) != 0;
    const bool acknowledged = operation.ack_req != AckRequest::kNone;
    if ((!md->released || once) && acknowledged) report_ack(core, *ni, *md, operation);
    if (once && acknowledged) end_operation(*ni, *md);
  }
  if (!operation.expects_data) return;
  MemoryDescriptor* reply_md = ni->mds.find(operation.portals.reply_md_handle);
  if (reply_md == nullptr) return;
  report_reply(core, *ni, *reply_md, operation);
  end_operation(*ni, *reply_md);
}

void note_undelivered(const Core& core, Interface& ni, const ProcessId* target) {
  ni.undelivered = {target != nullptr ? *target : ProcessId{}, core.now_ns(), ni.undelivered.count + 1};
}

void report_not_started(Core& core, Interface& ni, const Descriptor& descriptor, NiFail fail) {
  AnswerReport answer;
  answer.ack_req = descriptor.portals.ack_req;
  answer.user_ptr = descriptor.portals.user_ptr;
  answer.fail = fail;
  if (descriptor.type != PacketType::kGet) {
    if (MemoryDescriptor* md = ni.mds.find(descriptor.portals.md_handle)) {
      const SendReport report{descriptor.length, descriptor.portals.user_ptr, fail};
      report_send_count(core, ni, *md, report);
      report_send_event(core, ni, *md, report);
      const bool told_by_send = fail == NiFail::kSegv && failed_send_tells(*md, answer.ack_req);
      const bool discarded = md->released && (md->options & kMdOneShot) == 0;
      const bool told = told_by_send || discarded;  // After PtlMDRelease the acknowledgement is discarded (3.10.4).
      if (!told && acknowledgement_is_noticed(*md, descriptor.portals.ack_req)) report_ack(core, ni, *md, answer);
    }
  }
  const Handle reply_handle =
      descriptor.type == PacketType::kGet ? descriptor.portals.md_handle : descriptor.portals.get_md_handle;
  if (reply_handle == 0) return;
  if (const MemoryDescriptor* md = ni.mds.find(reply_handle)) report_reply(core, ni, *md, answer);
}

}  // namespace portofu
