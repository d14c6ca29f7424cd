// Switching of contexts, as an operating system does it: by registers alone. @spec thesis, 4.2, appendix B
//
// SPEC: not copied from appendix B, where it cannot work:
// - It waits for CSQR and has not set CSQM. Here CSQM is set.
// - It resends what was drained with a TICKET by which no line is free. Here all are.
// - It resends the drained replies as requests, too, and restores the request queues from the registers of the reply
//   queues. Here each queue is its own.
// - It sets no QMASK for the drained queues. Here it does.

#include <funi.h>

#include <chrono>
#include <cstdint>

#include "lib/funi/packet.h"

namespace portofu::funi {
namespace {

/// One call of funi_save_context or funi_restore_context. After the first error nothing more is done.
class Switch {
 public:
  Switch(funi_t ni, std::uint32_t timeout_ms)
      : ni_(ni), end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms)) {}

  int error() const { return error_; }

  std::uint32_t read(funi_register_t which) {
    std::uint32_t value = 0;
    if (error_ == FUNI_SUCCESS) error_ = funi_read(ni_, which, &value);
    return value;
  }
  void write(funi_register_t which, std::uint32_t value) {
    if (error_ == FUNI_SUCCESS) error_ = funi_write_privileged(ni_, which, value);
  }

  /// Until all bits are set.
  void wait_for_bits(std::uint32_t bits) {
    while (error_ == FUNI_SUCCESS && (read(FUNI_CNTL) & bits) != bits) sleep();
  }
  void wait_for_value(funi_register_t which, std::uint32_t value) {
    while (error_ == FUNI_SUCCESS && read(which) != value) sleep();
  }

 private:
  void sleep() {
    if (std::chrono::steady_clock::now() > end_) {
      error_ = FUNI_ERR_TIMEOUT;
    } else if (error_ == FUNI_SUCCESS) {
      funi_wait(ni_, 1);
    }
  }

  funi_t ni_;
  std::chrono::steady_clock::time_point end_;
  int error_ = FUNI_SUCCESS;
};

constexpr std::uint32_t kHalted = FUNI_CTXM | FUNI_CSQM | FUNI_CRQM;

/// The drained queues of a context: those of replies, then of requests, where a base may be.
std::uint32_t* drain_memory(funi_context_t* of) {
  const auto start = reinterpret_cast<std::uintptr_t>(of->memory);
  const std::uintptr_t aligned = (start + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
  return of->memory + (aligned - start) / 4;
}

constexpr std::uint32_t kDrainBytes = FUNI_DRAIN_SLOTS * kSlotBytes;

bool is_group(std::uint32_t group) { return group < FUNI_GROUPS && group % kContexts != kContexts - 1; }

void drain(Switch& step, std::uint32_t address, funi_context_t* context) {
  step.write(FUNI_RPRQ_BASE, address);
  step.write(FUNI_RQRQ_BASE, address + kDrainBytes);
  step.write(FUNI_QMASK, FUNI_DRAIN_SLOTS - 1);
  step.write(FUNI_CNTL, FUNI_CTXM | FUNI_CSQM | FUNI_DRAIN);
  step.wait_for_bits(FUNI_CTXR2);
  context->drained[kReply] = step.read(FUNI_RPRQ_HD);
  context->drained[kRequest] = step.read(FUNI_RQRQ_HD);
  step.write(FUNI_CNTL, kHalted);
  step.wait_for_bits(FUNI_CRQR);
}

/// "When the context is restored, the drained packets need to be returned onto the network" (4.2).
void bring_back(Switch& step, std::uint32_t address, const funi_context_t* context) {
  step.write(FUNI_TICKET, 0xff);
  step.write(FUNI_RPSQ_BASE, address);
  step.write(FUNI_RQSQ_BASE, address + kDrainBytes);
  step.write(FUNI_QMASK, FUNI_DRAIN_SLOTS - 1);
  step.write(FUNI_RPSQ_HD, context->drained[kReply]);
  step.write(FUNI_RQSQ_HD, context->drained[kRequest]);
  step.write(FUNI_GID, FUNI_SYSTEM_GROUP);
  step.write(FUNI_CNTL, FUNI_CRQM);
  step.wait_for_value(FUNI_RPSQ_TL, context->drained[kReply]);
  step.wait_for_value(FUNI_RQSQ_TL, context->drained[kRequest]);
  step.wait_for_value(FUNI_TICKET, 0xff);
  step.write(FUNI_CNTL, kHalted);
  step.wait_for_bits(FUNI_CTXR1);
}

}  // namespace
}  // namespace portofu::funi

using namespace portofu::funi;

int funi_begin_context(funi_context_t* context, uint32_t group) {
  if (context == nullptr || !is_group(group)) return FUNI_ERR_ARGUMENT;
  *context = {};
  context->registers[FUNI_CNTL] = FUNI_CSQM | FUNI_CRQM;
  context->registers[FUNI_QMASK] = 1;
  context->registers[FUNI_GID] = group;
  context->registers[FUNI_TICKET] = 0xff;
  return FUNI_SUCCESS;
}

int funi_save_context(funi_t ni, funi_context_t* context, uint32_t timeout_ms) {
  if (ni == nullptr || context == nullptr) return FUNI_ERR_ARGUMENT;
  Switch step(ni, timeout_ms);
  funi_context_t saved{};
  saved.registers[FUNI_CNTL] = step.read(FUNI_CNTL) & (FUNI_CSQM | FUNI_CRQM | FUNI_DRAIN);
  step.write(FUNI_CNTL, kHalted);
  step.wait_for_bits(FUNI_CSQR | FUNI_CTXR1 | FUNI_CRQR);
  for (int i = FUNI_QMASK; i < FUNI_REGISTERS; ++i) saved.registers[i] = step.read(static_cast<funi_register_t>(i));
  if (step.error() != FUNI_SUCCESS) {
    // The program goes on as before.
    funi_write_privileged(ni, FUNI_CNTL, saved.registers[FUNI_CNTL]);
    return step.error();
  }
  *context = saved;
  std::uint32_t address = 0;
  const int mapped = funi_map(ni, drain_memory(context), 2 * kDrainBytes, &address);
  if (mapped != FUNI_SUCCESS) return mapped;
  drain(step, address, context);
  funi_unmap(ni, address);
  return step.error();
}

int funi_restore_context(funi_t ni, const funi_context_t* context, uint32_t timeout_ms) {
  if (ni == nullptr || context == nullptr || !is_group(context->registers[FUNI_GID])) return FUNI_ERR_ARGUMENT;
  Switch step(ni, timeout_ms);
  if ((step.read(FUNI_CNTL) & FUNI_CTXM) == 0) return FUNI_ERR_BUSY;
  step.write(FUNI_CNTL, kHalted);
  step.wait_for_bits(FUNI_CTXR1 | FUNI_CRQR);
  if (context->drained[kReply] != 0 || context->drained[kRequest] != 0) {
    std::uint32_t address = 0;
    // The interface only reads it.
    auto* memory = drain_memory(const_cast<funi_context_t*>(context));
    const int mapped = funi_map(ni, memory, 2 * kDrainBytes, &address);
    if (mapped != FUNI_SUCCESS) return mapped;
    bring_back(step, address, context);
    funi_unmap(ni, address);
  }
  // Bases before ends, which they make zero; the mask before the ends, which it bounds.
  for (int i = FUNI_QMASK; i < FUNI_REGISTERS; ++i) {
    step.write(static_cast<funi_register_t>(i), context->registers[i]);
  }
  step.write(FUNI_CNTL, context->registers[FUNI_CNTL]);
  return step.error();
}
