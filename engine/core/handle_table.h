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
  HandleTable(HandleKind kind, std::uint32_t interface_index) : base_(make_handle(kind, interface_index, 0, 0)) {}
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  ~HandleTable() {
    for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }

  /// Most objects that may be allocated at once; at most kHandleMaxObjects.
  void set_limit(std::uint32_t limit) { limit_ = limit < kHandleMaxObjects ? limit : kHandleMaxObjects; }
  std::uint32_t limit() const { return limit_; }
  std::uint32_t live_count() const { return live_count_; }

  /// Slots are used again as soon as they are free, which keeps those in use few and close together: for handles that
  /// nobody may hold longer than the object lives.
  void reuse_at_once() { waiting_ = 0; }

  /// Takes a free slot. The object is as the last user left it, or new.
  /// @return nullptr if the limit or the memory is reached
  T* allocate(Handle* handle) {
    if (live_count_ >= limit_) return nullptr;
    std::uint32_t index = first_free_;
    // Old slots are used again only when enough of them wait, which keeps stale handles recognisable.
    const bool is_new = used_ - live_count_ <= waiting_ && used_ < limit_;
    if (is_new) [[unlikely]] {
      index = used_;
      if (!ensure_chunk(index)) return nullptr;
      ++used_;
    }
    Chunk& chunk = chunk_of(index);
    Label& label = chunk.labels[index % kChunkObjects];
    if (!is_new) first_free_ = label.next_free;
    ++label.uses;
    ++live_count_;
    label.handle = *handle = handle_of(label, index);
    return &chunk.objects[index % kChunkObjects];
  }

  /// Gives the slot back, which takes no memory. The handle no longer resolves; `find_stale` still knows it until the
  /// slot is used again.
  void free(Handle handle) noexcept {
    Label& label = label_at(handle_index(handle));
    label.handle = 0;
    (used_ == live_count_ ? first_free_ : last_free_->next_free) = handle_index(handle);
    last_free_ = &label;
    --live_count_;
  }

  /// @return the object, nullptr for anything but a live handle of this table
  [[gnu::always_inline]] T* find(Handle handle) const {
    Chunk* chunk = chunks_[handle_index(handle) / kChunkObjects].load(std::memory_order_acquire);
    if (chunk == nullptr || handle == 0) [[unlikely]]
      return nullptr;
    const std::uint32_t index = handle_index(handle) % kChunkObjects;
    return chunk->labels[index].handle == handle ? &chunk->objects[index] : nullptr;
  }

  /// Tells objects apart that have the same handle one after the other, as happens after some thousands.
  /// @return another number for each; 0 for anything but a live handle of this table
  std::uint32_t use_of(Handle handle) const {
    return find(handle) != nullptr ? label_at(handle_index(handle)).uses : 0;
  }

  /// @return the object that the handle named before it was freed, as long as its slot is not used again, else nullptr
  const T* find_stale(Handle handle) const {
    const std::uint32_t index = handle_index(handle);
    Chunk* chunk = chunks_[index / kChunkObjects].load(std::memory_order_acquire);
    if (chunk == nullptr || index >= used_) return nullptr;
    const Label& label = chunk->labels[index % kChunkObjects];
    const bool was_its = label.handle == 0 && handle == handle_of(label, index);
    return was_its ? &chunk->objects[index % kChunkObjects] : nullptr;
  }

  /// Calls `visit(handle, object)` for every live object.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::uint32_t index = 0; index < used_; ++index) {
      const Handle handle = label_at(index).handle;
      if (handle != 0) visit(handle, chunk_of(index).objects[index % kChunkObjects]);
    }
  }

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  static constexpr std::uint32_t kChunkObjects = 1024;

  /// What is known of a slot beside its object. It stands apart: an object of whole lines would leave a line to it.
  struct Label {
    Handle handle = 0;            ///< Of the object; 0: the slot is free.
    std::uint32_t uses = 0;       ///< Moves on when the slot is allocated; its lower bits are the handle's generation.
    std::uint32_t next_free = 0;  ///< Of a slot that is free: the one that was freed next.
  };
  struct Chunk {
    std::array<T, kChunkObjects> objects{};
    std::array<Label, kChunkObjects> labels{};
  };

  Handle handle_of(const Label& label, std::uint32_t index) const {
    return base_ | make_handle(HandleKind{}, 0, label.uses, index);
  }

  /// @pre the slot was taken before
  Chunk& chunk_of(std::uint32_t index) const { return *chunks_[index / kChunkObjects].load(std::memory_order_relaxed); }
  Label& label_at(std::uint32_t index) const { return chunk_of(index).labels[index % kChunkObjects]; }

  bool ensure_chunk(std::uint32_t index) {
    auto& chunk = chunks_[index / kChunkObjects];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      Chunk* const fresh = new (std::nothrow) Chunk;
      if (fresh == nullptr) tell_of_memory("more objects of an interface");
      chunk.store(fresh, std::memory_order_release);
    }
    return chunk.load(std::memory_order_relaxed) != nullptr;
  }

  const Handle base_;  ///< What all its handles have in common.
  std::uint32_t limit_ = kHandleMaxObjects;
  std::uint32_t waiting_ = 64;  ///< So many free slots are kept before one is used again.
  std::uint32_t live_count_ = 0;
  std::uint32_t used_ = 0;        ///< Slots that were ever taken: 0..used_-1. Those that are not live are free.
  std::uint32_t first_free_ = 0;  ///< Given back before all others; if any is free.
  Label* last_free_ = nullptr;    ///< Given back behind all others; the same.
  std::array<std::atomic<Chunk*>, kHandleMaxObjects / kChunkObjects> chunks_{};
};

}  // namespace portofu
