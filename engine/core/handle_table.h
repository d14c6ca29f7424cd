#pragma once
// The table behind one kind of handle of one interface. Objects never move. Slots are taken from a queue of free ones,
// so that a handle which has just been given back stays recognisable for as long as possible (3.11.3).
//
// Changed on duty only. `find` may also be called off duty by a caller that knows the object to be alive.

#include <array>
#include <atomic>
#include <cstdint>
#include <new>

#include "engine/descriptor/handle.h"
#include "engine/observe/system_failure.h"

namespace portofu {

template <class T>
class HandleTable {
 public:
  HandleTable(HandleKind kind, std::uint32_t interface_index) : kind_(kind), interface_index_(interface_index) {}
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  ~HandleTable() {
    for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }

  /// Most objects that may be allocated at once; at most kHandleMaxObjects.
  void set_limit(std::uint32_t limit) { limit_ = limit < kHandleMaxObjects ? limit : kHandleMaxObjects; }
  std::uint32_t limit() const { return limit_; }
  std::uint32_t live_count() const { return live_count_; }

  /// Takes a free slot. The object is as the last user left it, or new.
  /// @return nullptr if the limit or the memory is reached
  T* allocate(Handle* handle) {
    if (live_count_ >= limit_) return nullptr;
    std::uint32_t index = 0;
    // Old slots are used again only when enough of them wait, which keeps stale handles recognisable.
    if (used_ - live_count_ > kFreeQueue || used_ >= limit_) {
      index = first_free_;
      first_free_ = next_free(index);
    } else {
      index = used_;
      if (!ensure_chunk(index)) return nullptr;
      ++used_;
    }
    Slot& slot = slot_at(index);
    ++slot.uses;
    ++live_count_;
    slot.handle = *handle = make_handle(kind_, interface_index_, slot.uses, index);
    return &slot.object;
  }

  /// Gives the slot back, which takes no memory. The handle no longer resolves; `find_stale` still knows it until the
  /// slot is used again.
  void free(Handle handle) noexcept {
    const std::uint32_t index = handle_index(handle);
    slot_at(index).handle = 0;
    (used_ == live_count_ ? first_free_ : next_free(last_free_)) = index;
    last_free_ = index;
    --live_count_;
  }

  /// @return the object, nullptr for anything but a live handle of this table
  [[gnu::always_inline]] T* find(Handle handle) const {
    Chunk* chunk = chunks_[handle_index(handle) / kChunkObjects].load(std::memory_order_acquire);
    if (chunk == nullptr || handle == 0) [[unlikely]]
      return nullptr;
    Slot& slot = chunk->slots[handle_index(handle) % kChunkObjects];
    return slot.handle == handle ? &slot.object : nullptr;
  }

  /// Tells objects apart that have the same handle one after the other, as happens after some thousands.
  /// @return another number for each; 0 for anything but a live handle of this table
  std::uint32_t use_of(Handle handle) const { return find(handle) != nullptr ? slot_at(handle_index(handle)).uses : 0; }

  /// @return the object that the handle named before it was freed, as long as its slot is not used again, else nullptr
  const T* find_stale(Handle handle) const {
    Slot* slot = resolve(handle);
    return slot != nullptr && slot->handle == 0 && handle_index(handle) < used_ ? &slot->object : nullptr;
  }

  /// Calls `visit(handle, object)` for every live object.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::uint32_t index = 0; index < used_; ++index) {
      Slot& slot = slot_at(index);
      if (slot.handle != 0) visit(slot.handle, slot.object);
    }
  }

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  static constexpr std::uint32_t kChunkObjects = 1024;
  static constexpr std::uint32_t kFreeQueue = 64;
  static constexpr std::uint32_t kGenerations = (1u << kHandleGenerationBits) - 1;

  struct Slot {
    Handle handle = 0;       ///< Of the object; 0: the slot is free. In one line with the object's beginning.
    std::uint32_t uses = 0;  ///< Moves on when the slot is allocated; its lower bits are the generation of the handle.
    T object{};
  };
  struct Chunk {
    std::array<Slot, kChunkObjects> slots;
    std::array<std::uint32_t, kChunkObjects> next_free;  ///< Of a slot that is free: the one that was freed next.
  };

  Slot& slot_at(std::uint32_t index) const {
    return chunks_[index / kChunkObjects].load(std::memory_order_acquire)->slots[index % kChunkObjects];
  }
  std::uint32_t& next_free(std::uint32_t index) const {
    return chunks_[index / kChunkObjects].load(std::memory_order_relaxed)->next_free[index % kChunkObjects];
  }

  Slot* resolve(Handle handle) const {
    if (handle_kind(handle) != static_cast<std::uint32_t>(kind_) || handle_interface(handle) != interface_index_)
      return nullptr;
    const std::uint32_t index = handle_index(handle);
    Chunk* chunk = chunks_[index / kChunkObjects].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    Slot& slot = chunk->slots[index % kChunkObjects];
    return (slot.uses & kGenerations) == handle_generation(handle) ? &slot : nullptr;
  }

  bool ensure_chunk(std::uint32_t index) {
    auto& chunk = chunks_[index / kChunkObjects];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      Chunk* const fresh = new (std::nothrow) Chunk;
      if (fresh == nullptr) tell_of_memory("more objects of an interface");
      chunk.store(fresh, std::memory_order_release);
    }
    return chunk.load(std::memory_order_relaxed) != nullptr;
  }

  HandleKind kind_;
  std::uint32_t interface_index_;
  std::uint32_t limit_ = kHandleMaxObjects;
  std::uint32_t live_count_ = 0;
  std::uint32_t used_ = 0;        ///< Slots that were ever taken: 0..used_-1. Those that are not live are free.
  std::uint32_t first_free_ = 0;  ///< Given back before all others; if any is free.
  std::uint32_t last_free_ = 0;
  std::array<std::atomic<Chunk*>, kHandleMaxObjects / kChunkObjects> chunks_{};
};

}  // namespace portofu
