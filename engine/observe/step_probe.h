#pragma once
// A probe for each step (USDT), under the name of the step: an instruction that does nothing until somebody traces it.
// Whoever writes a step down passes its probe.

#include "engine/observe/step_record.h"

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define PORTOFU_PROBE(name, record) \
  DTRACE_PROBE6(portofu, name, (record).kind, (record).amount, (record).nid, (record).pid, (record).id, (record).more)
#else
#define PORTOFU_PROBE(name, record) static_cast<void>(record)
#endif

namespace portofu {

/// @param step  of the record; apart, because callers often know it when they are compiled
[[gnu::always_inline]] inline void pass_probe(const StepRecord& record, Step step) {
  switch (step) {
    case Step::kCall: PORTOFU_PROBE(call, record); break;
    case Step::kReturn: PORTOFU_PROBE(return, record); break;
    case Step::kWait: PORTOFU_PROBE(wait, record); break;
    case Step::kWaitEnd: PORTOFU_PROBE(wait_end, record); break;
    case Step::kSleep: PORTOFU_PROBE(sleep, record); break;
    case Step::kWake: PORTOFU_PROBE(wake, record); break;
    case Step::kPacketOut: PORTOFU_PROBE(packet_out, record); break;
    case Step::kPacketIn: PORTOFU_PROBE(packet_in, record); break;
    case Step::kMatch: PORTOFU_PROBE(match, record); break;
    case Step::kDeliver: PORTOFU_PROBE(deliver, record); break;
    case Step::kDirect: PORTOFU_PROBE(direct, record); break;
    case Step::kEvent: PORTOFU_PROBE(event, record); break;
    case Step::kNotice: PORTOFU_PROBE(notice, record); break;
    case Step::kCount: PORTOFU_PROBE(count, record); break;
    case Step::kTrigger: PORTOFU_PROBE(trigger, record); break;
    case Step::kNone:
    case Step::kCountOfSteps: break;
  }
}

}  // namespace portofu

#undef PORTOFU_PROBE
