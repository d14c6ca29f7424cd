#include "engine/observe/recorder.h"

#include <unistd.h>

#include <utility>

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

/// By value: the fields are in registers where it is called, and need memory only here.
void Recorder::add_after_turn(StepRecord record) {
  if (!turn()) return;
  *next_++ = record;
  head_.count.store(++count_, std::memory_order_release);
  pass_probe(record, record.step);
}

void Recorder::note_empty_look() {
  if (empty_looks_++ != 0) {
    if (empty_looks_ % kLooksPerTime == 0) note_time();  // A loop that never ends has waited until then.
    return;
  }
  looking_thread_ = this_thread();
  add_of_thread(Step::kWait, kWaitsByPolls);
}

void Recorder::add_end_of_looks() {
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
