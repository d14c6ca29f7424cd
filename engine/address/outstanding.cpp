#include "engine/address/outstanding.h"

namespace portofu {

OutstandingOperation* OutstandingTable::open(std::uint32_t* operation_id) {
  if (free_.empty()) {
    if (slots_.size() >= kMaxOperations) return nullptr;
    slots_.emplace_back();
    const auto index = static_cast<std::uint32_t>(slots_.size() - 1);
    slots_.back().id = first_id_ | index;
    free_.push_back(index);
    if (free_.capacity() < slots_.size()) free_.reserve(2 * slots_.size());  // close() never allocates.
  }
  Slot& slot = slots_[free_.back()];
  free_.pop_back();
  slot.id += kMaxOperations;
  if (slot.id < kMaxOperations) slot.id += kMaxOperations;  // 0 in the upper bits is never an id.
  slot.operation = OutstandingOperation();
  ++open_count_;
  *operation_id = slot.id;
  return &slot.operation;
}

void OutstandingTable::close(std::uint32_t operation_id) {
  const std::uint32_t index = operation_id & (kMaxOperations - 1);
  slots_[index].operation.peer = nullptr;
  free_.push_back(index);
  --open_count_;
}

}  // namespace portofu
