#include "engine/observe/recorder.h"

#include <unistd.h>

#include <utility>

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define PORTOFU_PROBE(name, record) \
  DTRACE_PROBE6(portofu, name, (record).kind, (record).amount, (record).nid, (record).pid, (record).id, (record).more)
#else
#define PORTOFU_PROBE(name, record) static_cast<void>(record)
#endif

namespace portofu {
namespace {

/// A thread's number in the kernel, kept because asking costs a system call. After a fork it is another one; a child
/// has recorders of its own.
struct KnownThread {
  std::uint64_t recorder = 0;
  std::uint32_t number = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local KnownThread known_thread;

}  // namespace

Recorder::Recorder(StepMemory& memory)
    : memory_(memory),
      head_(memory.head()),
      name_(monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 48),
      counts_cycles_(cpu_ticks_are_steady()) {
  head_.first_ticks = now();
  head_.first_ns = monotonic_ns();
}

/// A probe for each step (USDT), under the name of the step: an instruction that does nothing until somebody traces it.
void Recorder::pass_probe(const StepRecord& record) {
  switch (record.step) {
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

/// @return false if there is no memory; a step is lost then
bool Recorder::turn() {
  const std::span<StepRecord> memory = is_full_ ? std::span<StepRecord>() : memory_.next();
  is_full_ = memory.empty();
  if (is_full_) {
    head_.lost.store(head_.lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return false;
  }
  next_ = memory.data();
  end_ = next_ + memory.size();
  note_time();
  return true;
}

void Recorder::add_of_thread(Step step, std::uint8_t kind, std::uint64_t amount, std::uint32_t more) {
  add(step, kind, {.amount = amount, .nid = this_thread(), .more = more});
}

void Recorder::note_empty_look() {
  if (empty_looks_++ != 0) {
    if (empty_looks_ % kLooksPerTime == 0) note_time();  // A loop that never ends has waited until then.
    return;
  }
  looking_thread_ = this_thread();
  add_of_thread(Step::kWait, kWaitsByPolls);
}

void Recorder::end_looks() {
  if (empty_looks_ == 0) return;
  add(Step::kWaitEnd, kWaitsByPolls, {.amount = std::exchange(empty_looks_, 0), .nid = looking_thread_});
}

void Recorder::note_time() {
  head_.last_ticks.store(now(), std::memory_order_relaxed);
  head_.last_ns.store(monotonic_ns(), std::memory_order_relaxed);
}

std::uint32_t Recorder::this_thread() const {
  if (known_thread.recorder != name_) known_thread = {name_, static_cast<std::uint32_t>(gettid())};
  return known_thread.number;
}

}  // namespace portofu
