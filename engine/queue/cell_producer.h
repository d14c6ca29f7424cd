#pragma once
// The sender's end of a ring of cells (cell_ring.h). Before it: wire/shm or wire/loopback, with a packet to send. After
// it: the receiver's end (cell_consumer.h).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "engine/queue/assert.h"
#include "engine/queue/cell_layout.h"
#include "engine/queue/line_owner.h"

namespace portofu {

/// How far ahead of its writing the sender asks for a cell.
inline constexpr std::uint64_t kPrefetchedCells = 8;

/// The sender's end: claim, then publish or discard.
template <CellHeader Header>
class CellProducer {
 public:
  CellProducer() = default;
  explicit CellProducer(const RingView& ring)
      : ring_(ring),
        cell_mask_(ring.geometry.cell_count - 1),
        data_mask_(ring.geometry.data_bytes - 1),
        data_end_of_cell_(std::make_unique<std::uint32_t[]>(ring.geometry.cell_count)) {}

  /// @return where to write `payload_bytes` bytes (aligned to 64), nullptr if there is no room or the receiver has lied
  std::byte* claim(std::uint32_t payload_bytes) {
    PORTOFU_ASSERT(!claimed_ && payload_bytes <= ring_.geometry.max_payload_bytes);
    if (!fits(payload_bytes)) [[unlikely]] {
      if (!find_room(payload_bytes)) return nullptr;
    }
    if (payload_bytes <= kInlineBytes) return claim_inline(payload_bytes);
    claimed_ = true;
    claimed_data_ = data_head_ + skip_before(payload_bytes);
    const std::uint32_t offset = claimed_data_ & data_mask_;
    claimed_granule_ = 1 + offset / kGranuleBytes;
    return ring_.data + offset;
  }

  /// The same for a payload of kInlineBytes at most, if there is room as far as is known.
  /// @return nullptr if claim has to look
  std::byte* try_claim_inline(std::uint32_t payload_bytes) {
    PORTOFU_ASSERT(!claimed_);
    return fits(payload_bytes) ? claim_inline(payload_bytes) : nullptr;
  }

  /// Whether claim_cell and claim_lent would find a cell.
  bool has_cell() {
    if (head_ - released_ >= ring_.geometry.cell_count) [[unlikely]]
      refresh_released();
    return !receiver_lied_ && head_ - released_ < ring_.geometry.cell_count;
  }

  /// Claims a cell whose payload lies in a chunk of the sender's area. @return false if no cell is free
  bool claim_cell(std::uint32_t chunk_index) {
    PORTOFU_ASSERT((kAreaBit | chunk_index) < kLent);
    return claim_bare_cell(kAreaBit | chunk_index);
  }

  /// Claims a cell whose payload stays in the sender's memory. @return as claim_cell
  bool claim_lent(const LentPlace& place) {
    if (!claim_bare_cell(kLent)) return false;
    std::memcpy(cell_at(head_).inline_payload, &place, sizeof place);
    taker_in(cell_at(head_)).store(Taker::kNobody, std::memory_order_relaxed);
    return true;
  }

  /// Sends the claimed packet; `header.payload_bytes` is what was claimed, or less.
  void publish(const Header& header) {
    PORTOFU_ASSERT(claimed_);
    CellShared& cell = cell_at(head_);
    write_head(header, cell.head);
    if (claimed_granule_ == kInHeader) {
      publish_short(cell, header);
    } else if (uses_data_area(claimed_granule_)) {
      data_head_ = claimed_data_ + round_up_to_granule(header.payload_bytes);
    }
    data_end_of_cell_[head_ & cell_mask_] = data_head_;
    // (R1) release: header and payload are visible to whoever acquires this word in CellConsumer::ready.
    cell.wire_word.store(claimed_granule_ << 16 | lap_of(head_), std::memory_order_release);
    ++head_;
    claimed_ = false;
    // A line that is here before it is written needs no wait; several may come at once.
    const CellShared& later = cell_at(head_ + kPrefetchedCells);
    ask_to_own(later.head);
    if (claimed_granule_ == 0) ask_to_own(later.inline_payload);
  }

  /// To be called after the second of two packets that follow each other at once: the receiver may be behind. The
  /// packet published last stays here, because a receiver that waits for it fetches it by itself.
  void hand_over_last_but_one() { hand_over(cell_at(head_ - 2).head); }

  /// Gives the claimed room back; the receiver sees nothing of it.
  void discard() {
    PORTOFU_ASSERT(claimed_);
    claimed_ = false;
  }

  /// Looks whether the claim that failed last would succeed now. If so the receiver is told to stop caring.
  bool has_room_again() {
    PORTOFU_ASSERT(waits_for_room_);
    refresh_released();
    if (!fits(wanted_bytes_)) return false;
    stop_waiting();
    return true;
  }

  /// True if the receiver has given back everything that was published before `position`.
  bool is_drained(std::uint64_t position) {
    if (released_ < position) refresh_released();
    return released_ >= position && !receiver_lied_;
  }
  bool is_drained() { return is_drained(head_); }

  /// The same; if not, the receiver is asked to wake a sender that sleeps whenever it gives something back.
  bool await_drained(std::uint64_t position) {
    const bool awaited = awaited_ > released_;
    if (is_drained(position)) {
      if (awaited_ != 0 && awaited_ <= released_ && !waits_for_room_) {
        ring_.control->wants_room.store(0, std::memory_order_relaxed);
        awaited_ = 0;
      }
      return true;
    }
    if (!awaited && !waits_for_room_) ring_.control->wants_room.store(1, std::memory_order_relaxed);
    if (!awaited || position < awaited_) awaited_ = position;
    return false;
  }

  /// Whether the first of what await_drained was asked for is not there yet.
  bool awaits_drain() {
    if (awaited_ > released_) refresh_released();
    return awaited_ > released_ && !receiver_lied_;
  }

  bool waits_for_room() const { return waits_for_room_; }

  /// Position of the packet that is claimed or comes next, and of the first one that has not come back, as far as the
  /// last look told. Both count from 0 since the ring began.
  std::uint64_t position() const { return head_; }
  std::uint64_t released_position() const { return released_; }
  std::uint32_t cell_count() const { return ring_.geometry.cell_count; }

  /// Whether the receiver reads the sender's area.
  bool receiver_maps_area() const { return ring_.control->area_mapped.load(std::memory_order_relaxed) != 0; }

  /// Whether it reads the sender's heap.
  bool receiver_maps_heap() const { return ring_.control->heap_mapped.load(std::memory_order_relaxed) != 0; }

  /// Whether it reads all of the sender's memory.
  bool receiver_reads_memory() const { return ring_.control->memory_read.load(std::memory_order_relaxed) != 0; }

  /// What copies cost the receiver: RingControlShared::area_cost and read_cost.
  std::uint32_t receivers_area_cost() const { return ring_.control->area_cost.load(std::memory_order_relaxed); }
  std::uint32_t receivers_read_cost() const { return ring_.control->read_cost.load(std::memory_order_relaxed); }

  /// Position of the first packet of the message that was offered a place last; if none was, no packet's.
  std::uint64_t offered_message() const { return ring_.control->offered.load(std::memory_order_relaxed) - 1; }

  /// Begins to write where a message was offered a place; end_placing is to follow.
  /// @return false if there is no offer; then nothing is to follow
  bool begin_placing(Offer* offer) {
    RingControlShared& control = *ring_.control;
    // (R4) Either this sees that the offer was taken back, or the receiver sees that somebody writes.
    control.placing.store(1, std::memory_order_seq_cst);
    const std::uint64_t offered = control.offered.load(std::memory_order_seq_cst);
    *offer = {offered - 1, control.offered_address.load(std::memory_order_relaxed),
              control.offered_bytes.load(std::memory_order_relaxed)};
    // (R3) acquire: what a later offer says is not taken for this one's.
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool good = offered != 0 && control.offered.load(std::memory_order_relaxed) == offered;
    if (!good) end_placing();
    return good;
  }
  void end_placing() { ring_.control->placing.store(0, std::memory_order_release); }

  /// Takes the copy of the packet at `position`, which was lent from memory and has not come back, from the receiver.
  bool take_back(std::uint64_t position) {
    Taker nobody = Taker::kNobody;
    return taker_of(position).compare_exchange_strong(nobody, Taker::kSender, std::memory_order_acq_rel);
  }

  /// Whether it can be taken back.
  bool is_laid_down(std::uint64_t position) {
    return taker_of(position).load(std::memory_order_acquire) == Taker::kNobody;
  }

  /// Ends what take_back began. @param placed  false: the receiver has to copy after all
  void settle(std::uint64_t position, bool placed) {
    taker_of(position).store(placed ? Taker::kPlaced : Taker::kNobody, std::memory_order_release);
  }

  /// The next operation that is complete. @return 0 if none is
  std::uint32_t take_ack() {
    // (R6) acquire: partner is the release in CellConsumer::acknowledge.
    const std::uint64_t found = ring_.control->acks[acks_taken_ % kAckSlots].load(std::memory_order_acquire);
    if (found >> 32 != ack_word(acks_taken_, 0) >> 32) return 0;
    // (R5) release: the slot was read before it is given back.
    if (++acks_taken_ % (kAckSlots / 4) == 0) {
      ring_.control->acks_taken.store(acks_taken_, std::memory_order_release);
    }
    return static_cast<std::uint32_t>(found);
  }
  bool has_ack() const {
    const std::uint64_t found = ring_.control->acks[acks_taken_ % kAckSlots].load(std::memory_order_acquire);
    return found >> 32 == ack_word(acks_taken_, 0) >> 32;
  }

  /// True once the receiver gave back more than it got; the ring is then of no use any more.
  bool receiver_lied() const { return receiver_lied_; }

 private:
  static bool uses_data_area(std::uint32_t granule) { return granule != 0 && (granule & kAreaBit) == 0; }
  CellShared& cell_at(std::uint64_t position) { return ring_.cells[position & cell_mask_]; }
  std::atomic_ref<Taker> taker_of(std::uint64_t position) {
    PORTOFU_ASSERT(position < head_ && position >= released_);
    return taker_in(cell_at(position));
  }

  /// @pre a cell is free, and the payload is not longer than kInlineBytes
  std::byte* claim_inline(std::uint32_t payload_bytes) {
    const bool is_short = payload_bytes <= kShortBytes;
    claimed_ = true;
    claimed_granule_ = is_short ? kInHeader : 0;
    return is_short ? short_payload_ : cell_at(head_).inline_payload;
  }

  /// Places a payload of kShortBytes at most, in the header if that says what its `length` was.
  void publish_short(CellShared& cell, const Header& header) {
    std::uint64_t word;
    std::memcpy(&word, short_payload_, sizeof word);
    if (header.length == header.payload_bytes) {
      std::memcpy(cell.head + offsetof(Header, length), &word, sizeof word);
    } else {
      std::memcpy(cell.inline_payload, &word, sizeof word);
      claimed_granule_ = 0;
    }
  }

  /// Granules of a payload are contiguous: @return bytes to leave unused at the end of the area before it
  std::uint32_t skip_before(std::uint32_t payload_bytes) const {
    const std::uint32_t offset = data_head_ & data_mask_;
    const bool wraps = offset + round_up_to_granule(payload_bytes) > ring_.geometry.data_bytes;
    return wraps ? ring_.geometry.data_bytes - offset : 0;
  }

  bool fits(std::uint32_t payload_bytes) const {
    if (head_ - released_ >= ring_.geometry.cell_count) return false;
    if (payload_bytes <= kInlineBytes) return true;
    const std::uint32_t used = data_head_ - data_tail_;
    return used + skip_before(payload_bytes) + round_up_to_granule(payload_bytes) <= ring_.geometry.data_bytes;
  }

  /// The copy of `released` says that there is no room: looks at the original, and asks for room if it says so too.
  bool find_room(std::uint32_t payload_bytes) {
    refresh_released();
    if (receiver_lied_) return false;
    if (fits(payload_bytes)) {
      if (waits_for_room_) stop_waiting();
      return true;
    }
    wanted_bytes_ = payload_bytes;
    if (!waits_for_room_) {
      waits_for_room_ = true;
      ring_.control->wants_room.store(1, std::memory_order_relaxed);
    }
    return false;
  }

  void stop_waiting() {
    waits_for_room_ = false;
    if (awaited_ <= released_) ring_.control->wants_room.store(0, std::memory_order_relaxed);
  }

  bool claim_bare_cell(std::uint32_t granule) {
    PORTOFU_ASSERT(!claimed_);
    if (!has_cell()) return false;
    if (waits_for_room_) stop_waiting();
    claimed_ = true;
    claimed_granule_ = granule;
    return true;
  }

  void refresh_released() {
    // (R2) acquire: the receiver has read what it gave back before it stored this, in CellConsumer::publish_released.
    const std::uint64_t released = ring_.control->released.load(std::memory_order_acquire);
    if (released == released_) return;
    if (released - released_ > head_ - released_) {
      receiver_lied_ = true;
      return;
    }
    released_ = released;
    data_tail_ = data_end_of_cell_[(released - 1) & cell_mask_];
  }

  RingView ring_;
  std::uint32_t cell_mask_ = 0;        ///< cell_count - 1.
  std::uint32_t data_mask_ = 0;        ///< data_bytes - 1.
  std::uint64_t head_ = 0;             ///< Position of the next packet, counted from 0 since the ring began.
  std::uint64_t released_ = 0;         ///< Checked copy of RingControlShared::released.
  std::uint64_t awaited_ = 0;          ///< Smallest position that await_drained still waits for.
  std::uint32_t acks_taken_ = 0;       ///< Acknowledgements taken since the ring began, mod 2^32.
  std::uint32_t data_head_ = 0;        ///< Bytes of the data area used since the ring began, mod 2^32, with skips.
  std::uint32_t data_tail_ = 0;        ///< `data_head_` as it was after the last cell that came back.
  std::uint32_t claimed_data_ = 0;     ///< Where the claimed payload begins, counted like data_head_.
  std::uint32_t claimed_granule_ = 0;  ///< High half of the sequence word of the claimed packet.
  std::uint32_t wanted_bytes_ = 0;     ///< Payload of the claim that failed last.
  bool claimed_ = false;               ///< Between claim and publish or discard.
  bool waits_for_room_ = false;        ///< What this end has written to wants_room.
  bool receiver_lied_ = false;         ///< Stays true.
  alignas(kGranuleBytes) std::byte short_payload_[kShortBytes] = {};  ///< Until publish knows where it goes.
  std::unique_ptr<std::uint32_t[]> data_end_of_cell_;                 ///< For each cell, data_head_ after its packet.
};

}  // namespace portofu
