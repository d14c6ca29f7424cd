#pragma once
// Step 9: what the initiator is told. SEND, ACK and REPLY, as full events and as counts. @spec
// Portals 4.3, 3.13.1-3.13.4

#include <cstdint>

#include "engine/core/core.h"

namespace portofu {

/// The send buffer of a put or atomic is free, or will never be used.
struct SendReport {
  std::uint64_t length;  ///< Bytes sent.
  void* user_ptr;
  NiFail fail;
};
void count_send(Core& core, Interface& ni, const MemoryDescriptor& md, const SendReport& report);

/// Counts a SEND. It says how the sending ended, never what the target did: that is for ACK and REPLY (3.13.3).
inline void report_send_count(Core& core, Interface& ni, const MemoryDescriptor& md, const SendReport& report) {
  if ((md.options & kMdEventCtSend) != 0 && md.ct_handle != 0) count_send(core, ni, md, report);
}
/// Inlined with the event, because the report is never written anywhere then but into the queue.
[[gnu::always_inline]] inline void report_send_event(Core& core, Interface& ni, const MemoryDescriptor& md,
                                                     SendReport report) {
  if ((md.options & kMdEventSendDisable) != 0 || md.eq_handle == 0) return;
  if (report.fail == NiFail::kOk && (md.options & kMdEventSuccessDisable) != 0) return;
  post_new_event(core, ni, md.eq_handle, [report](Event& event) {
    event.type = EventKind::kSend;
    event.user_ptr = report.user_ptr;
    event.mlength = report.length;
    event.ni_fail_type = report.fail;
  });
}

/// The target is done with a put or atomic, and tells it: ACK.
void report_ack(Core& core, Interface& ni, const MemoryDescriptor& md, const AnswerReport& answer);

/// The data of a get or of a fetching atomic has come, or never will: REPLY.
void report_reply(Core& core, Interface& ni, const MemoryDescriptor& md, const AnswerReport& answer);

/// The answer to `operation` is complete: raises ACK or REPLY, and ends the operation's hold on the memory
/// descriptor of its reply. The caller closes the outstanding entry.
void report_answer(Core& core, const OutstandingOperation& operation);

/// The descriptor will not be carried out: raises every event and count that its success would have raised, failed.
/// Nothing of it has been sent, and nothing holds its memory descriptors yet.
/// @param fail  if kSegv, a failure of ours: no ACK follows a SEND that tells it (3.13.3)
void report_not_started(Core& core, Interface& ni, const Descriptor& descriptor, NiFail fail);

/// Writes down for onlookers that an operation has not come to its target.
/// @param target  nullptr: its rank is nobody's
void note_undelivered(const Core& core, Interface& ni, const ProcessId* target);

/// Whether the SEND of an operation that failed here tells it; if not, the ACK has to (3.13.3). Whoever asks for the
/// event of an ACK, and has no event of a SEND, waits for that event whatever is counted.
bool failed_send_tells(const MemoryDescriptor& md, AckRequest ack_req);

/// Whether anybody notices a SEND that succeeded.
inline bool send_is_noticed(const MemoryDescriptor& md) {
  const bool counted = md.ct_handle != 0 && (md.options & kMdEventCtSend) != 0;
  return counted || (md.eq_handle != 0 && (md.options & (kMdEventSendDisable | kMdEventSuccessDisable)) == 0);
}

/// Whether anybody would notice the acknowledgement; if not, none is asked for (3.15.2, ack_req).
inline bool acknowledgement_is_noticed(const MemoryDescriptor& md, AckRequest ack_req) {
  const bool counted = md.ct_handle != 0 && (md.options & kMdEventCtAck) != 0;
  return ack_req != AckRequest::kNone && (counted || (ack_req == AckRequest::kFull && md.eq_handle != 0));
}

}  // namespace portofu
