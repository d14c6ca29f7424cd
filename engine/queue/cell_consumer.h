#pragma once
// The receiver's end of a ring of cells (cell_ring.h). Before it: the sender's end (cell_producer.h). After it: the
// receiver's wire, which peeks.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/queue/cell_layout.h"
#include "engine/queue/line_owner.h"

namespace portofu {

/// A receiver whose sender has been ahead for so many packets in a row asks for the cell that comes so many later.
inline constexpr std::uint32_t kStreamCells = 8;
inline constexpr std::uint32_t kAheadCells = 2;

/// Outcome of CellConsumer::take.
enum class TakeResult : std::uint8_t {
  kPacket,  ///< Header copied and bounded.
  kLie,     ///< Offset or length point outside of the ring: nothing beyond the header's line was touched.
  kLater,   ///< The sender has just begun to copy the payload itself.
};

/// Where the payload in hand is.
enum class TakenFrom : std::uint8_t {
  kRing,    ///< In the ring.
  kArea,    ///< In the sender's area.
  kHeap,    ///< In the sender's heap, which is mapped here, and may turn out not to be there.
  kMemory,  ///< In the sender's memory, at the address that take has said.
  kPlaced,  ///< The sender has copied it to where it was offered to.
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

  /// Tells the sender that its operation is complete. @return false if the sender has not taken enough of the earlier
  /// ones
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

  /// Takes the last offer back. @return false if the sender may still be writing there; ask again
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
