#pragma once
// Memory of the sender for long payloads, in its own segment, shared by all its links; receivers map it and only read.
// Before it: LinkSet claims room for a payload. After it: a cell names the chunk, and SourceSet of the receiver finds
// it.
//
// Why not the ring: what counts is how long ago a line was used. A ring of a few packets is rewritten while its lines
// lie in the second-level cache of the other core, and every store waits for that. A chunk of the area comes round only
// after all others were used. One area for all peers keeps the memory of a process bounded.
//
// A sender uses the area only for a receiver that has said that it maps it (RingControlShared::area_mapped), so that
// what a process has sent outlives it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/queue/assert.h"
#include "engine/queue/cell_producer.h"
#include "engine/queue/clock.h"
#include "engine/segment/mapping.h"
#include "engine/segment/process_segment.h"
#include "engine/wire/header.h"
#include "engine/wire/shm/store_choice.h"

namespace portofu {

/// How long payloads travel; values of PORTOFU_LONG_DATA.
enum class LongData : std::uint8_t {
  kMeasured = 0,   ///< Through the area, with the stores that are found to be better.
  kRing = 1,       ///< Through the ring; there is no area.
  kOrdinary = 2,   ///< Through the area, with ordinary stores.
  kStreaming = 3,  ///< Through the area, with streaming stores.
  kInPlace = 4,    ///< Not at all, where the peer's kernel, or ours, can copy it from where it is to where it goes.
};

/// First in, first out, never more than a number that is known beforehand.
template <class Item>
class BoundedFifo {
 public:
  /// @param capacity  a power of two
  explicit BoundedFifo(std::size_t capacity = 0) : items_(capacity) {}
  bool empty() const { return taken_ == added_; }
  std::size_t size() const { return added_ - taken_; }
  const Item& front() const { return items_[taken_ & (items_.size() - 1)]; }
  void push(const Item& item) {
    PORTOFU_ASSERT(size() < items_.size());
    items_[added_++ & (items_.size() - 1)] = item;
  }
  void pop() { ++taken_; }

 private:
  std::vector<Item> items_;
  std::size_t taken_ = 0;  ///< Items ever taken out.
  std::size_t added_ = 0;  ///< Items ever put in.
};

/// What one link has in the area.
struct AreaLink {
  /// A chunk that the receiver may still read: until its cell has come back.
  struct Loan {
    std::uint64_t position = 0;  ///< Of the cell.
    std::uint32_t chunk = 0;
  };
  BoundedFifo<Loan> loans;  ///< In the order of positions; one for each cell at most.
  StoreChoice stores;
  std::uint32_t claimed_bytes = 0;  ///< Of the payload that is claimed and not published; 0: none in the area.
  std::uint32_t claimed_chunk = 0;
  bool mapped = false;     ///< The receiver reads the area.
  bool streaming = false;  ///< The claimed chunk is to be written by streaming stores.
  bool timed = false;      ///< The copy into the claimed chunk is being timed.
  MonotonicClock::time_point started;
};

/// The area of one wire. Used by the thread on duty.
class SendArea {
 public:
  using Producer = CellProducer<PacketHeader>;

  /// @param own  must outlive the area
  SendArea(ProcessSegment& own, LongData way);

  /// Claims a chunk, and a cell for it. @return where to write the payload; nullptr: the ring has to do
  std::byte* claim(AreaLink& link, Producer& producer, std::uint32_t payload_bytes);

  /// The claimed payload is about to be published. @pre claimed_bytes is not 0
  void publish(AreaLink& link, const Producer& producer);

  /// The claimed payload is not published.
  void discard(AreaLink& link);

  /// Nobody will read any more what the link has in the area.
  void forget(AreaLink& link);

  /// Whether all of it was used, so that what it costs does not tell of memory that is touched for the first time.
  bool has_gone_round() const { return chunks_ != 0 && published_ >= chunks_; }

 private:
  bool open();
  void collect(AreaLink& link, const Producer& producer);
  bool choose_stores(AreaLink& link);

  ProcessSegment& own_;
  Counters counters_;
  LongData way_;
  Mapping memory_;                   ///< Empty until a receiver asks for it.
  BoundedFifo<std::uint32_t> free_;  ///< Chunks; the one that was used longest ago comes first.
  std::uint32_t chunks_ = 0;         ///< All of them; 0: there is no area yet.
  std::uint64_t published_ = 0;      ///< Payloads so far.
};

}  // namespace portofu
