// Payloads that stay in the sender's memory until the receiver has fetched them: both halves.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/queue/assert.h"
#include "engine/wire/ofi/ofi_wire.h"
#include "engine/wire/ways.h"

namespace portofu {
namespace {

/// Whether all of it can be read. The provider would lose the connection over what cannot.
bool is_readable(const std::byte* memory, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = start / page * page;
  return madvise(reinterpret_cast<void*>(first), start + bytes - first, MADV_POPULATE_READ) == 0;
}

}  // namespace

std::uint32_t OfiWire::longest_fetch() const {
  return endpoint_ != nullptr && endpoint_->can_fetch() ? static_cast<std::uint32_t>(kFetchBytes) : 0;
}

bool OfiWire::lend(Link& given, const Loan& lent) {
  OfiLink& link = static_cast<OfiLink&>(given);
  PORTOFU_ASSERT(link.claimed == nullptr && lent.bytes <= longest_fetch());
  if (lent.bytes < kFabricLendFromBytes || link.lost || link.sent - link.released >= link.window) return false;
  if (!is_readable(lent.payload, lent.bytes)) return false;
  const ExposedMemory exposed = endpoint_->expose(lent.payload, lent.bytes);
  if (exposed.registration == nullptr) return false;
  link.exposed.push_back({link.sent, exposed});
  link.claimed = endpoint_->take_buffer();
  link.lends = true;
  const OfiLoan loan{exposed.address, exposed.key};
  std::memcpy(link.claimed->data + kOfiHeadBytes, &loan, sizeof loan);
  counters_.add(Counter::kPacketsLent);
  return true;
}

/// Nobody may read any more what was lent with packets before this one.
/// @return false if there was nothing
bool OfiWire::hide_until(OfiLink& link, std::uint64_t packet) {
  bool any = false;
  for (; !link.exposed.empty() && link.exposed.front().packet < packet; any = true) {
    endpoint_->hide(link.exposed.front().memory);
    link.exposed.pop_front();
  }
  return any;
}

/// Asks for payloads that are still at their senders, as many as there are buffers for.
void OfiWire::begin_fetches() {
  fetch_refused_ = false;
  for (OfiSource* source : fetching_) {
    for (OfiArrival& arrival : source->behind) {
      if (arrival.payload == OfiPayload::kAtSender && !begin_fetch(*source, arrival)) return;
    }
  }
}

/// @return false if no more can begin now; `source` may have failed
bool OfiWire::begin_fetch(OfiSource& source, OfiArrival& arrival) {
  FetchBuffer* const buffer = endpoint_->take_fetch_buffer();
  if (buffer == nullptr) return false;  // One that comes back makes progress.
  PacketHeader header;
  OfiLoan loan;
  std::memcpy(&header, arrival.data, sizeof header);
  std::memcpy(&loan, arrival.data + sizeof header, sizeof loan);
  const FabricSend result =
      endpoint_->fetch(source.owner->address, buffer, header.payload_bytes, loan.address, loan.key);
  if (result == FabricSend::kTaken) {
    buffer->owner = &source;
    arrival.fetch = buffer;
    arrival.payload = OfiPayload::kOnItsWay;
    return true;
  }
  endpoint_->give_fetch_buffer(buffer);
  fetch_refused_ = true;
  if (result != FabricSend::kLater) lose_source(source);
  return false;
}

void OfiWire::take_fetched(const FabricEvent& event) {
  if (endpoint_->take_back(event.fetch)) return;
  OfiSource& source = *static_cast<OfiSource*>(event.fetch->owner);
  const auto arrival = std::ranges::find(source.behind, event.fetch, &OfiArrival::fetch);
  PORTOFU_ASSERT(arrival != source.behind.end());
  if (event.kind == FabricEvent::Kind::kMissed) {
    endpoint_->give_fetch_buffer(std::exchange(arrival->fetch, nullptr));
    arrival->payload = OfiPayload::kAtSender;
    return lose_source(source);
  }
  arrival->payload = OfiPayload::kFetched;
  const auto is_here = [](const OfiArrival& waiting) {
    return waiting.payload == OfiPayload::kInMessage || waiting.payload == OfiPayload::kFetched;
  };
  for (; !source.behind.empty() && is_here(source.behind.front()); source.behind.pop_front()) {
    deliver(source, source.behind.front());
  }
  if (source.behind.empty()) std::erase(fetching_, &source);
}

}  // namespace portofu
