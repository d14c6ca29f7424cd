// 3.8 Barrier communication execution.

#include "engine/door/tofu.h"

#include <algorithm>

#include "engine/door/process.h"
#include "lib/utofu/limits.h"

using namespace portofu;
using namespace portofu::utofu;

static_assert(UTOFU_REDUCE_OP_BARRIER == static_cast<int>(ReduceOperation::kBarrier));
static_assert(UTOFU_REDUCE_OP_BFPSUM == static_cast<int>(ReduceOperation::kBfpsum));

namespace {

/// Which functions a reduction belongs to.
enum class ReduceType { kNone, kInteger, kDouble };

ReduceType type_of(ReduceOperation operation) {
  if (operation == ReduceOperation::kBarrier) return ReduceType::kNone;
  return operation == ReduceOperation::kBfpsum ? ReduceType::kDouble : ReduceType::kInteger;
}

BarrierGate* start_gate(const Core& core, std::uint64_t id) {
  BarrierGate* gate = is_vbg_id(id) ? core.tofu->gate(queue_number(id)) : nullptr;
  return gate != nullptr && gate->id == id && gate->is_start() && gate->configured ? gate : nullptr;
}

int start(std::uint64_t vbg_id, unsigned long flags, const GateValue& value) {
  return guarded([&] {
    if (flags != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
    Engine* open = engine_of_gate(vbg_id);
    if (open == nullptr) return failed(UTOFU_ERR_INVALID_VBG_ID, "there is no VBG in this process");
    const Engine::Duty duty(*open);
    const RecordedCall call(duty.core(), PacketType::kTofuGate, value.item_count * sizeof(std::uint64_t));
    BarrierGate* gate = start_gate(duty.core(), vbg_id);
    if (gate == nullptr) return failed(UTOFU_ERR_INVALID_VBG_ID, "not the start/end gate of a circuit");
    if (gate->state != BarrierState::kIdle) return failed(UTOFU_ERR_BUSY, "a barrier is under way");
    start_barrier(duty.core(), *gate, value);
    open->settle_on_duty();
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

int poll(std::uint64_t vbg_id, unsigned long flags, ReduceType type, GateValue* value) {
  return guarded([&] {
    if (flags != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
    Engine* open = engine_of_gate(vbg_id);
    if (open == nullptr) return failed(UTOFU_ERR_INVALID_VBG_ID, "there is no VBG in this process");
    int rc = UTOFU_ERR_NOT_COMPLETED;
    auto ask = [&](Core& core) {
      BarrierGate* gate = start_gate(core, vbg_id);
      rc = UTOFU_ERR_NOT_COMPLETED;
      if (gate == nullptr) {
        rc = failed(UTOFU_ERR_INVALID_VBG_ID, "not the start/end gate of a circuit");
      } else if (gate->state == BarrierState::kIdle || type_of(gate->result.operation) != type) {
        rc = failed(UTOFU_ERR_BUSY, "nothing of this kind was started");
      } else if (gate->state != BarrierState::kRunning) {
        *value = gate->result;
        rc = gate->state == BarrierState::kFailed ? UTOFU_ERR_BARRIER_OTHER
             : value->mismatch != 0               ? UTOFU_ERR_BARRIER_MISMATCH
                                                  : UTOFU_SUCCESS;
        if (core.checker() != nullptr && rc != UTOFU_ERR_BARRIER_OTHER) [[unlikely]]
          TofuChecker::passes_barrier();
        gate->state = BarrierState::kIdle;
      }
      if (rc == UTOFU_ERR_NOT_COMPLETED) core.polled.note(WaitKind::kGate, vbg_id);
      return rc != UTOFU_ERR_NOT_COMPLETED;
    };
    look_into(*open, ask);
    return rc;
  });
}

}  // namespace

int utofu_barrier(utofu_vbg_id_t vbg_id, unsigned long int flags) { return start(vbg_id, flags, GateValue()); }

int utofu_reduce_uint64(utofu_vbg_id_t vbg_id, enum utofu_reduce_op op, uint64_t data[], size_t num_data,
                        unsigned long int flags) {
  if (op < UTOFU_REDUCE_OP_BAND || op > UTOFU_REDUCE_OP_SUM) return failed(UTOFU_ERR_INVALID_OP, "not of uint64_t");
  if (data == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "data is NULL");
  if (num_data == 0 || num_data > kMaxReduceItems || (op == UTOFU_REDUCE_OP_MAXLOC && num_data % 2 != 0))
    return failed(UTOFU_ERR_INVALID_NUMBER, "1 to 6 elements, an even number for MAXLOC");
  GateValue value;
  value.operation = static_cast<ReduceOperation>(op);
  value.item_count = static_cast<std::uint8_t>(num_data);
  std::copy_n(data, num_data, value.items.begin());
  return start(vbg_id, flags, value);
}

int utofu_reduce_double(utofu_vbg_id_t vbg_id, enum utofu_reduce_op op, double data[], size_t num_data,
                        unsigned long int flags) {
  if (op != UTOFU_REDUCE_OP_BFPSUM) return failed(UTOFU_ERR_INVALID_OP, "not of double");
  if (data == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "data is NULL");
  if (num_data == 0 || num_data > kMaxReduceSums) return failed(UTOFU_ERR_INVALID_NUMBER, "1 to 3 elements");
  GateValue value;
  value.operation = ReduceOperation::kBfpsum;
  value.item_count = static_cast<std::uint8_t>(num_data);
  for (std::size_t i = 0; i < num_data; ++i) value.sums[i].add(data[i]);
  return start(vbg_id, flags, value);
}

int utofu_poll_barrier(utofu_vbg_id_t vbg_id, unsigned long int flags) {
  GateValue value;
  return poll(vbg_id, flags, ReduceType::kNone, &value);
}

int utofu_poll_reduce_uint64(utofu_vbg_id_t vbg_id, unsigned long int flags, uint64_t data[]) {
  if (data == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "data is NULL");
  GateValue value;
  const int rc = poll(vbg_id, flags, ReduceType::kInteger, &value);
  if (rc == UTOFU_SUCCESS) std::copy_n(value.items.begin(), value.item_count, data);
  return rc;
}

int utofu_poll_reduce_double(utofu_vbg_id_t vbg_id, unsigned long int flags, double data[]) {
  if (data == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "data is NULL");
  GateValue value;
  const int rc = poll(vbg_id, flags, ReduceType::kDouble, &value);
  for (std::size_t i = 0; rc == UTOFU_SUCCESS && i < value.item_count; ++i) data[i] = value.sums[i].value();
  return rc;
}
