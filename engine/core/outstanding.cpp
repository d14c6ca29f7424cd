#include "engine/core/outstanding.h"

#include <memory>
#include <new>

#include "engine/observe/system_failure.h"

namespace portofu {

OutstandingOperation* OutstandingTable::open(std::uint32_t* operation_id) {
  if (free_.empty()) [[unlikely]] {
    if (open_count_ == kMaxOperations || !add_chunk()) return nullptr;
  }
  Slot& slot = slot_at(free_.back());
  free_.pop_back();
  slot.id += kMaxOperations;
  if (slot.id < kMaxOperations) slot.id += kMaxOperations;  // 0 in the upper bits is never an id.
  std::construct_at(&slot.operation);  // Where it stays: what is copied is loaded before its stores are done.
  ++open_count_;
  *operation_id = slot.id;
  return &slot.operation;
}

/// @return false if there is no memory; nothing has happened then
bool OutstandingTable::add_chunk() try {
  const auto first = static_cast<std::uint32_t>(chunks_.size()) * kChunkSlots;
  const std::size_t slots = first + kChunkSlots;
  if (free_.capacity() < slots) free_.reserve(2 * slots);  // close() never allocates.
  chunks_.push_back(std::make_unique<Chunk>());
  for (std::uint32_t i = 0; i < kChunkSlots; ++i) {
    chunks_.back()->at(i).id = first_id_ | (first + i);
    free_.push_back(first + kChunkSlots - 1 - i);
  }
  return true;
} catch (const std::bad_alloc&) {
  tell_of_memory("operations that are under way");
  return false;
}

void OutstandingTable::close(std::uint32_t operation_id) {
  const std::uint32_t index = operation_id & (kMaxOperations - 1);
  slot_at(index).operation.peer = nullptr;
  free_.push_back(index);
  --open_count_;
}

}  // namespace portofu
