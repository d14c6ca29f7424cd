#pragma once
// The ring that carries the packets of one sender to one receiver, in memory that both map (or in private memory for
// packets to oneself). Before it: wire/shm or wire/loopback claims a cell. After it: the receiver's wire peeks.
//
// Layout: control (one line a writer), cells, data area. A cell is the header's line and one line of inline payload;
// the last word of the header's line is the sequence word, written last and with release, and only ever at this place,
// so that no payload can look like one. Its low half tells the lap: (position + 1) mod 2^16, which the cell's previous
// lap never left there; its high half says where the payload lies: 0 inline, kInHeader in the header's line in place of
// `length`, which then equals `payload_bytes`, kAreaBit + index of a chunk of the sender's area (which is not the
// ring's business), kLent where it has always been: in the sender's memory, where the LentPlace says that stands
// inline; else 1 + index of its first granule.
//
// What is lent from memory that the receiver does not map costs a copy by the kernel, which either end can make: the
// receiver out of the sender's memory, or, once the receiver has said where a message goes (offer), the sender into the
// receiver's. The word `taker` of the LentPlace says who has got it; the receiver begins with the first packet, the
// sender with the last.
//
// Only the sender writes cells and data, only the receiver writes `released`. Use of the data area is first in, first
// out and ends with the cell, so the sender keeps, in private memory, where the data of each cell ended. Neither end
// believes the other: the receiver bounds offset and length, the sender bounds `released`.
//
// Beside the cells the receiver tells the sender which of its operations are complete: 8 bytes each, and no packet.
//
// One thread at a time uses each end. Acquire and release sites are labelled (R1) to (R6) with their partner.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "engine/queue/assert.h"
#include "engine/queue/cell_layout.h"
#include "engine/queue/fresh_line.h"
#include "engine/queue/line_owner.h"

namespace portofu {

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
  /// @return nullptr: claim has to look
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
  /// @return false: there is no offer. Nothing is to follow
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

  /// The next operation that is complete. @return 0: none is
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

/// The receiver's end: ready and take (together they are peek), then release.
template <CellHeader Header>
class CellConsumer {
 public:
  CellConsumer() = default;
  /// @param other_core  the sender has a core of its own, and caches
  explicit CellConsumer(const RingView& ring, bool other_core = true)
      : ring_(ring), cell_mask_(ring.geometry.cell_count - 1), throws_away_(kThrowsLinesAway && other_core) {}

  /// The word that the next packet will write, and the low half that it will have then: all that a poll needs.
  const std::atomic<std::uint32_t>* next_word() const { return &cell_at(position_).wire_word; }
  std::uint32_t next_lap() const { return lap_of(position_); }

  /// @return true if a packet is there, and not being copied by its sender
  static bool word_ready(const std::atomic<std::uint32_t>* word, std::uint32_t lap) {
    // (R1) acquire: partner is the release in CellProducer::publish.
    const std::uint32_t found = word->load(std::memory_order_acquire);
    if (static_cast<std::uint16_t>(found) != lap) return false;
    return found >> 16 != kLent || taker_behind(word).load(std::memory_order_acquire) != Taker::kSender;
  }

  /// Asks for the line of the inline payload together with the header's: when both arrive at once, a message of up to
  /// kInlineBytes costs hardly more than an empty one. `word` is a next_word().
  static void prefetch_payload(const std::atomic<std::uint32_t>* word) { __builtin_prefetch(word + 1); }

  bool ready() const { return word_ready(next_word(), next_lap()); }

  /// Copies the header of the packet that is ready, once, and bounds the copy.
  /// @param payload  set on kPacket to `header.payload_bytes` bytes, valid until release
  TakeResult take(Header& header, const std::byte** payload) {
    CellShared& cell = cell_at(position_);
    std::memcpy(&header, &cell, sizeof header);
    const std::uint32_t granule = header.wire_word >> 16;
    taken_bytes_ = 0;
    taken_inline_ = granule == 0;
    taken_from_ = TakenFrom::kRing;
    taken_awaited_ = lent_end_ > published_;
    if (granule == kInHeader) {
      if (header.payload_bytes > kShortBytes) return TakeResult::kLie;
      std::memcpy(short_payload_, &header.length, sizeof short_payload_);
      header.length = header.payload_bytes;
      *payload = short_payload_;
      return TakeResult::kPacket;
    }
    if (granule == 0) {
      if (header.payload_bytes > kInlineBytes) return TakeResult::kLie;
      *payload = cell.inline_payload;
      return TakeResult::kPacket;
    }
    if (granule == kLent) return take_lent(cell, header.payload_bytes, payload);
    if ((granule & kAreaBit) != 0) {
      const std::uint32_t chunk = granule & ~kAreaBit;
      if (chunk >= area_chunks_ || header.payload_bytes > kAreaChunkBytes) return TakeResult::kLie;
      *payload = area_ + std::size_t{chunk} * kAreaChunkBytes;
      taken_from_ = TakenFrom::kArea;
      return TakeResult::kPacket;
    }
    const std::uint64_t offset = std::uint64_t{granule - 1} * kGranuleBytes;
    if (header.payload_bytes > ring_.geometry.max_payload_bytes) return TakeResult::kLie;
    if (offset + header.payload_bytes > ring_.geometry.data_bytes) return TakeResult::kLie;
    *payload = ring_.data + offset;
    taken_bytes_ = round_up_to_granule(header.payload_bytes);
    return TakeResult::kPacket;
  }

  /// Ends the use of the packet taken. Its room is withheld until a quarter of the ring can be given back at once, or
  /// until the receiver finds nothing more and calls publish_released. What is awaited is given back at once, and so is
  /// what was lent before a packet that is not.
  /// @return true if room has been given back
  bool release() {
    const CellShared& cell = cell_at(position_);
    ++position_;
    if (throws_away_) {
      if (ready()) {
        // The sender streams, and will soon write this cell again. If it has been ahead for a while it still is, so a
        // cell that comes soon is asked for.
        throw_away(cell.head);
        if (taken_inline_) throw_away(cell.inline_payload);
        if (++streamed_ > kStreamCells) __builtin_prefetch(cell_at(position_ + kAheadCells).head);
      } else {
        streamed_ = 0;
      }
    }
    withheld_bytes_ += taken_bytes_;
    const bool enough = taken_awaited_ || position_ - published_ >= ring_.geometry.cell_count / 4 ||
                        withheld_bytes_ >= ring_.geometry.data_bytes / 4;
    return enough && publish_released();
  }

  /// Gives all withheld room back.
  /// @return true if there was any
  bool publish_released() {
    if (published_ == position_ || holds_) return false;
    published_ = position_;
    withheld_bytes_ = 0;
    // (R2) release: partner is the acquire in CellProducer::refresh_released.
    ring_.control->released.store(published_, std::memory_order_release);
    return true;
  }

  /// The payload in hand is used beyond release: nothing is given back until let_go.
  void hold() { holds_ = true; }
  /// @return true if room has been given back
  bool let_go() {
    holds_ = false;
    return publish_released();
  }

  /// Tells the sender that its operation is complete. @return false: it has not taken enough of the earlier ones
  bool acknowledge(std::uint32_t operation_id) {
    if (acks_ - acks_seen_taken_ >= kAckSlots) {
      acks_seen_taken_ = ring_.control->acks_taken.load(std::memory_order_acquire);  // (R5)
      if (acks_ - acks_seen_taken_ >= kAckSlots) return false;
    }
    ring_.control->acks[acks_ % kAckSlots].store(ack_word(acks_, operation_id), std::memory_order_release);  // (R6)
    ++acks_;
    return true;
  }

  /// Where the payload in hand is.
  TakenFrom taken_from() const { return taken_from_; }

  bool withholds_room() const { return published_ != position_; }

  /// The sender's area is mapped here from now on, and the sender may use it.
  void use_area(const std::byte* area, std::uint32_t area_bytes) {
    area_ = area;
    area_chunks_ = area_bytes / kAreaChunkBytes;
    ring_.control->area_mapped.store(1, std::memory_order_relaxed);
  }

  /// The sender's heap is mapped here from now on, and the sender may lend memory of it.
  void use_heap(const std::byte* heap, std::uint64_t bytes) {
    heap_ = heap;
    heap_bytes_ = bytes;
    ring_.control->heap_mapped.store(1, std::memory_order_relaxed);
  }

  /// The sender's memory can be read from here from now on, and the sender may lend any of it.
  void read_memory() {
    reads_memory_ = true;
    ring_.control->memory_read.store(1, std::memory_order_relaxed);
  }

  /// It turned out that it cannot: the sender should lend no more of it.
  void stop_reading() { ring_.control->memory_read.store(0, std::memory_order_relaxed); }

  /// The sender is dead. What it was copying itself is to be taken like what nobody copies.
  void take_over() {
    for (std::uint64_t position = position_; position != position_ + ring_.geometry.cell_count; ++position) {
      CellShared& cell = cell_at(position);
      const std::uint32_t word = cell.wire_word.load(std::memory_order_acquire);
      if (static_cast<std::uint16_t>(word) != lap_of(position)) return;
      Taker sender = Taker::kSender;
      if (word >> 16 == kLent) taker_in(cell).compare_exchange_strong(sender, Taker::kNobody);
    }
  }

  /// Tells the sender what copies cost here.
  void tell_costs(std::uint64_t area_ns, std::uint64_t read_ns) {
    ring_.control->area_cost.store(static_cast<std::uint32_t>(area_ns), std::memory_order_relaxed);
    ring_.control->read_cost.store(static_cast<std::uint32_t>(read_ns), std::memory_order_relaxed);
  }

  std::uint32_t area_chunks() const { return area_chunks_; }

  /// The sender may write the first `bytes` of the message that begins with the packet in hand to `address`. A message
  /// is offered a place once, or after take_offer_back: who sees the same message twice has seen one offer (R3).
  void offer(std::uint64_t address, std::uint64_t bytes) { offer_message(position_, address, bytes); }
  void offer_message(std::uint64_t position, std::uint64_t address, std::uint64_t bytes) {
    RingControlShared& control = *ring_.control;
    // (R3) release: who sees a part of this does not see the last offer any more; who sees the message sees its place.
    control.offered.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    control.offered_address.store(address, std::memory_order_relaxed);
    control.offered_bytes.store(bytes, std::memory_order_relaxed);
    control.offered.store(position + 1, std::memory_order_release);
  }

  /// Position of the packet in hand, or of the next one.
  std::uint64_t position() const { return position_; }

  /// A payload that was lent, and that this end has got, cannot be copied here: the sender may write it to `address`,
  /// this packet alone. The cell has not been given back. @see pick_up
  void lay_down(std::uint64_t position, std::uint64_t address, std::uint64_t bytes) {
    taker_in(cell_at(position)).store(Taker::kNobody, std::memory_order_release);
    offer_message(position, address, bytes);
  }

  /// Takes it again, if nobody has got it. @return who had
  Taker pick_up(std::uint64_t position) {
    Taker had = Taker::kNobody;
    taker_in(cell_at(position)).compare_exchange_strong(had, Taker::kReceiver, std::memory_order_acq_rel);
    return had;
  }
  Taker taker_at(std::uint64_t position) const { return taker_in(cell_at(position)).load(std::memory_order_acquire); }

  /// Takes the last offer back. @return false: the sender may still be writing there; ask again
  bool take_offer_back() {
    ring_.control->offered.store(0, std::memory_order_seq_cst);  // (R4)
    return ring_.control->placing.load(std::memory_order_seq_cst) == 0;
  }

  /// To be asked after room was given back, and after the fence of a process that cannot rely on membarrier.
  bool producer_wants_room() const { return ring_.control->wants_room.load(std::memory_order_relaxed) != 0; }

 private:
  CellShared& cell_at(std::uint64_t position) const { return ring_.cells[position & cell_mask_]; }

  /// The word of the LentPlace behind a sequence word.
  static std::atomic_ref<Taker> taker_behind(const std::atomic<std::uint32_t>* word) {
    auto* const head = reinterpret_cast<const std::byte*>(word) - offsetof(CellShared, wire_word);
    return taker_in(*reinterpret_cast<CellShared*>(const_cast<std::byte*>(head)));
  }

  TakeResult take_lent(CellShared& cell, std::uint64_t bytes, const std::byte** payload) {
    LentPlace place;
    std::memcpy(&place, cell.inline_payload, sizeof place);
    if (bytes > kMostLentBytes) return TakeResult::kLie;
    taken_awaited_ = place.awaited != 0;
    lent_end_ = position_ + 1;
    if (place.in_memory != 0) {
      if (!reads_memory_) return TakeResult::kLie;
      Taker taker = Taker::kNobody;
      taker_in(cell).compare_exchange_strong(taker, Taker::kReceiver, std::memory_order_acq_rel);
      if (taker == Taker::kSender) return TakeResult::kLater;
      if (taker == Taker::kReceiver || taker > Taker::kPlaced) return TakeResult::kLie;
      *payload = reinterpret_cast<const std::byte*>(place.place);
      taken_from_ = taker == Taker::kPlaced ? TakenFrom::kPlaced : TakenFrom::kMemory;
      return TakeResult::kPacket;
    }
    if (heap_ == nullptr || bytes > heap_bytes_ || place.place > heap_bytes_ - bytes) return TakeResult::kLie;
    *payload = heap_ + place.place;
    taken_from_ = TakenFrom::kHeap;
    return TakeResult::kPacket;
  }

  RingView ring_;
  std::uint32_t cell_mask_ = 0;       ///< cell_count - 1.
  std::uint64_t position_ = 0;        ///< Of the next packet, counted from 0 since the ring began.
  std::uint64_t published_ = 0;       ///< What `released` says.
  std::uint32_t taken_bytes_ = 0;     ///< Bytes of the data area that the packet in hand uses.
  std::uint32_t withheld_bytes_ = 0;  ///< Bytes of the data area taken since `published_`.
  alignas(kShortBytes) std::byte short_payload_[kShortBytes] = {};  ///< Of the packet in hand.
  const std::byte* area_ = nullptr;                                 ///< The sender's area, once it is mapped.
  std::uint32_t area_chunks_ = 0;                                   ///< Chunks in it.
  const std::byte* heap_ = nullptr;                                 ///< The sender's heap, once it is mapped.
  std::uint64_t heap_bytes_ = 0;                                    ///< Its length; 0: it is not.
  std::uint32_t acks_ = 0;                                          ///< Since the ring began, mod 2^32.
  std::uint32_t acks_seen_taken_ = 0;                               ///< Copy of RingControlShared::acks_taken.
  std::uint32_t streamed_ = 0;                                      ///< Packets in a row that another one followed.
  bool throws_away_ = false;                                        ///< Lines, when the sender streams.
  bool taken_inline_ = false;                                       ///< The packet in hand has its payload inline.
  bool reads_memory_ = false;                                       ///< The sender may lend all of its memory.
  TakenFrom taken_from_ = TakenFrom::kRing;                         ///< Where the packet in hand has its payload.
  bool taken_awaited_ = false;                                      ///< Everything withheld goes back with it.
  std::uint64_t lent_end_ = 0;                                      ///< Behind the last packet taken that was lent.
  bool holds_ = false;                                              ///< Between hold and let_go.
};

}  // namespace portofu
