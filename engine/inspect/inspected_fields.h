#pragma once
// What an onlooker needs of the structures of the engine that is private there. All of it is given as it stands in a
// copy; where it points to is another process.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/core/core.h"

namespace portofu {

struct InspectedFields {
  // HandleTable.
  template <class T>
  using Label = typename HandleTable<T>::Label;
  template <class T>
  static std::uint32_t used_slots(const HandleTable<T>& table) {
    return table.used_;
  }
  template <class T>
  static constexpr std::uint32_t chunk_slots(const HandleTable<T>&) {
    return HandleTable<T>::kChunkObjects;
  }
  /// How many a table can have.
  template <class T>
  static constexpr std::uint32_t most_slots(const HandleTable<T>&) {
    return kHandleMaxObjects;
  }
  /// Addresses of the objects of a chunk, and of what is known of their slots.
  template <class T>
  static const T* objects(const HandleTable<T>& table, std::size_t chunk_index) {
    auto* const chunk = table.chunks_[chunk_index].load(std::memory_order_relaxed);
    return chunk != nullptr ? chunk->objects.data() : nullptr;
  }
  template <class T>
  static const Label<T>* labels(const HandleTable<T>& table, std::size_t chunk_index) {
    auto* const chunk = table.chunks_[chunk_index].load(std::memory_order_relaxed);
    return chunk != nullptr ? chunk->labels.data() : nullptr;
  }
  template <class T>
  static Handle handle_of(const Label<T>& label) {
    return label.handle;
  }

  // OutstandingTable.
  using OperationChunk = OutstandingTable::Chunk;
  static const std::vector<std::unique_ptr<OperationChunk>>& chunks(const OutstandingTable& table) {
    return table.chunks_;
  }

  // CountingEvent.
  using WaitingOperations = CountingEvent::WaitingOperations;
  static const WaitingOperations& waiting(const CountingEvent& counter) { return counter.waiting_; }

  // EventQueue.
  static std::uint64_t size(const EventQueue& queue) { return queue.size_; }
  static std::uint64_t oldest_place(const EventQueue& queue) { return queue.head_; }
  static const Event* oldest(const EventQueue& queue) { return &queue.events_[queue.head_ & (queue.slots_ - 1)]; }
  static bool has_lost(const EventQueue& queue) { return queue.dropped_; }
  static bool grows(const EventQueue& queue) { return queue.grows_; }

  // MemorySegment. nullptr: of several pieces.
  static const std::byte* start(const MemorySegment& segment) {
    return segment.pieces_ == nullptr ? segment.start_ : nullptr;
  }

  // uTofu.
  static const std::vector<VirtualControlQueue*>& vcqs(const Tofu& tofu) { return tofu.by_handle_; }
  static const std::unordered_map<std::uint32_t, std::unique_ptr<BarrierGate>>& gates(const Tofu& tofu) {
    return tofu.gates_;
  }
  static std::uint64_t entry_count(const TransmitCompleteQueue& tcq) { return tcq.entry_count_; }
  static std::uint64_t entry_count(const MessageReceiveQueue& mrq) { return mrq.entry_count_; }
  // What has come to a queue, and what has been read.
  static std::uint64_t passed(const TransmitCompleteQueue& tcq) { return tcq.next_ + tcq.oldest_; }
  static std::uint64_t passed(const MessageReceiveQueue& mrq) { return mrq.posted() + mrq.read_count(); }
  static std::uint64_t passed(const OwnNoticeQueue& own) { return own.head_ + own.tail_; }
};

}  // namespace portofu
