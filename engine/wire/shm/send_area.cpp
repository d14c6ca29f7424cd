// Chunks go round: free, claimed, on loan to a receiver, free again.

#include "engine/wire/shm/send_area.h"

#include <utility>

#include "engine/observe/system_failure.h"
#include "engine/segment/shared_room.h"

namespace portofu {

SendArea::SendArea(ProcessSegment& own, LongData way)
    : own_(own), counters_(own.counters()), way_(own.layout().area_bytes == 0 ? LongData::kRing : way) {}

/// Takes memory for the area once a receiver reads it.
bool SendArea::open() {
  if (memory_) return true;
  const std::uint32_t chunks = own_.layout().area_bytes / kAreaChunkBytes;
  BoundedFifo<std::uint32_t> all_free(chunks);  // First, since it takes memory.
  if (shared_room(own_.directory()).is_plenty_for(own_.layout().area_bytes)) memory_ = own_.map_send_area();
  if (!memory_) {
    tell_of_little_room(own_.directory());
    way_ = LongData::kRing;
    return false;
  }
  chunks_ = chunks;
  free_ = std::move(all_free);
  for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) free_.push(chunk);
  return true;
}

std::byte* SendArea::claim(AreaLink& link, Producer& producer, std::uint32_t payload_bytes) {
  link.streaming = false;
  if (way_ == LongData::kRing || payload_bytes > kAreaChunkBytes) return nullptr;
  if (!link.mapped) {
    // Without memory for what is to be known of the area, too.
    endure([&] {
      if (!producer.receiver_maps_area() || !open()) return;
      link.loans = BoundedFifo<AreaLink::Loan>(producer.cell_count());
      link.mapped = true;
    });
    if (!link.mapped) return nullptr;
  }
  if (free_.empty()) collect(link, producer);
  if (free_.empty() || !producer.claim_cell(free_.front())) return nullptr;
  link.claimed_chunk = free_.front();
  link.claimed_bytes = payload_bytes;
  free_.pop();
  link.streaming = choose_stores(link);
  return memory_.at(std::uint64_t{link.claimed_chunk} * kAreaChunkBytes);
}

bool SendArea::choose_stores(AreaLink& link) {
  link.timed = false;
  if (way_ == LongData::kOrdinary || way_ == LongData::kStreaming) return way_ == LongData::kStreaming;
  const bool streaming = link.stores.choose();
  link.timed = has_gone_round() && link.stores.wants_time();
  if (link.timed) link.started = MonotonicClock::now();
  return streaming;
}

void SendArea::publish(AreaLink& link, const Producer& producer) {
  if (link.timed) {
    const auto taken = MonotonicClock::now() - link.started;
    link.stores.note(static_cast<std::uint64_t>(taken / std::chrono::nanoseconds(1)), link.claimed_bytes);
  }
  ++published_;
  counters_.add(Counter::kPacketsByArea);
  if (link.streaming) counters_.add(Counter::kPacketsStreamed);
  collect(link, producer);
  link.loans.push({producer.position(), link.claimed_chunk});
  link.claimed_bytes = 0;
}

void SendArea::discard(AreaLink& link) {
  if (link.claimed_bytes == 0) return;
  free_.push(link.claimed_chunk);
  link.claimed_bytes = 0;
}

void SendArea::collect(AreaLink& link, const Producer& producer) {
  const std::uint64_t released = producer.released_position();
  for (; !link.loans.empty() && link.loans.front().position < released; link.loans.pop()) {
    free_.push(link.loans.front().chunk);
  }
}

void SendArea::forget(AreaLink& link) {
  for (; !link.loans.empty(); link.loans.pop()) free_.push(link.loans.front().chunk);
}

}  // namespace portofu
