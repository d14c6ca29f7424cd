// What the wire inside a node can do beside carrying packets, simulated: the memory of all processes is here, and seeds
// decide when a mechanism refuses.

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/queue/assert.h"
#include "engine/wire/mapped_region.h"
#include "engine/wire/sim/sim_wire.h"

namespace portofu {
namespace {

/// One of so many attempts is refused, so that what comes instead is seen, too.
constexpr std::uint64_t kRefusedPeriod = 4;

}  // namespace

// ---- Loans ---------------------------------------------------------------------------------------------------------

std::uint32_t SimWire::most_lent_bytes(const Link& link) const {
  return static_cast<const SimLink&>(link).max_lent_bytes;
}

bool SimWire::lend(Link& link, const Loan& loan) {
  SimLink& sim_link = own(link);
  PORTOFU_ASSERT(!sim_link.claimed && loan.bytes <= sim_link.max_lent_bytes);
  if (sim_link.lost || !sim_link.has_room() || medium_.random.below(kRefusedPeriod) == 0) return false;
  sim_link.claimed.emplace(0);
  sim_link.claimed_bytes = loan.bytes;
  sim_link.claimed_loan = loan;
  return true;
}

bool SimWire::has_taken(Link& link, std::uint64_t packet) {
  SimLink& sim_link = own(link);
  if (sim_link.given_back >= packet) return true;
  if (sim_link.awaited == 0 || packet < sim_link.awaited) sim_link.awaited = packet;
  return false;
}

// ---- Copies --------------------------------------------------------------------------------------------------------

std::uint64_t SimWire::shares_from_bytes(Link& link, std::uint64_t /*message*/) { return own(link).max_lent_bytes / 2; }

bool SimWire::help(Link& link) {
  SimLink& sim_link = own(link);
  const bool is_there = medium_.endpoints[sim_link.receiver_index].alive;
  if (sim_link.lost || !is_there || !sim_link.offer || medium_.random.below(2) == 0) return false;
  const SimOffer& offer = *sim_link.offer;
  // The receiver begins at the front, so this begins at the end.
  const auto mine = std::find_if(sim_link.packets.rbegin(), sim_link.packets.rend(), [&](const SimPacket& packet) {
    return packet.loan && packet.loan->message == offer.message && !packet.placed;
  });
  if (mine == sim_link.packets.rend()) return false;
  const Loan& loan = *mine->loan;
  if (loan.offset > offer.bytes || loan.bytes > offer.bytes - loan.offset) return false;
  std::memcpy(offer.target + loan.offset, loan.payload, loan.bytes);
  mine->placed = true;
  return true;
}

void SimWire::offer(std::byte* target, std::uint64_t bytes) {
  PORTOFU_ASSERT(held_link_ != nullptr);
  held_link_->offer = {held_packet_->number, target, bytes};
}

void SimWire::take_offers_back(ProcessId source) {
  for (const auto& link : medium_.links) {
    const bool is_its = medium_.endpoints[link->sender_index].process == source;
    if (is_its && link->receiver_index == endpoint_index_) link->offer.reset();
  }
}

bool SimWire::read_later(std::byte* target, std::uint64_t bytes) {
  PORTOFU_ASSERT(held_link_ != nullptr && held_packet_->loan && !held_packet_->placed);
  const bool is_full = late_.size() == kMostReadLater || (late_link_ != nullptr && late_link_ != held_link_);
  if (is_full || medium_.random.below(kRefusedPeriod) == 0) return false;
  late_link_ = held_link_;
  late_link_->reads_later = true;
  late_.push_back({target, held_packet_->loan->payload, bytes});
  return true;
}

std::uint32_t SimWire::read_now() {
  std::uint32_t read = 0;
  std::uint32_t bit = 1;
  for (const LateRead& late : std::exchange(late_, {})) {
    if (late_link_->lender.read_lent(reinterpret_cast<std::uintptr_t>(late.place), late.target, late.bytes))
      read |= bit;
    bit <<= 1;
  }
  return read;
}

void SimWire::give_back_read() {
  if (late_link_ == nullptr) return;
  PORTOFU_ASSERT(late_.empty());
  late_link_->reads_later = false;
  late_link_->given_back = late_link_->released;
  late_link_ = nullptr;
  medium_.collect_links();
}

// ---- PeerMemory ----------------------------------------------------------------------------------------------------

bool SimWire::put_directly(Link& link, const DirectPut& put) {
  const SimLink& sim_link = own(link);
  const SimEndpoint& peer = medium_.endpoints[sim_link.receiver_index];
  if (sim_link.lost || !peer.alive || sim_link.given_back < sim_link.published) return false;
  if (medium_.random.below(kRefusedPeriod) == 0) return false;
  FoundRegion region;
  if (!find_published_region(*peer.regions, region_key(put.control_queue, put.stag), &region)) return false;
  const RegionVerdict verdict = judge_region(region.bytes, region.writable, put.offset, put.bytes, true);
  if (verdict != RegionVerdict::kFine || region.user != put.component) return false;
  std::memcpy(reinterpret_cast<std::byte*>(region.start) + put.offset, put.data, put.bytes);
  return true;
}

bool SimWire::find_mapped(Link& link, std::uint64_t key, MappedRegion* mapped) {
  SimLink& sim_link = own(link);
  const SimEndpoint& peer = medium_.endpoints[sim_link.receiver_index];
  if (sim_link.lost || !peer.alive || medium_.random.below(kRefusedPeriod) == 0) return false;
  FoundRegion region;
  if (!find_published_region(*peer.regions, key, &region)) return false;
  *mapped = mapped_region(region, reinterpret_cast<std::byte*>(region.start), &sim_link.visited);
  return true;
}

bool SimWire::find_published(Link& link, std::uint64_t key, MappedRegion* published) {
  const SimEndpoint& peer = medium_.endpoints[own(link).receiver_index];
  FoundRegion region;
  if (!peer.alive || !find_published_region(*peer.regions, key, &region)) return false;
  *published = mapped_region(region, nullptr, nullptr);
  return true;
}

bool SimWire::has_settled(Link& link) { return own(link).given_back >= own(link).unsettled_end; }

// ---- Completions ---------------------------------------------------------------------------------------------------

bool SimWire::acknowledge(ProcessId sender, std::uint32_t operation_id) {
  SimLink* const link = late_link_ != nullptr && late_.empty() ? late_link_ : held_link_;
  if (link == nullptr || medium_.endpoints[link->sender_index].process != sender) return false;
  return acknowledge(*link, operation_id);
}

bool SimWire::acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) {
  const auto open = std::ranges::find_if(medium_.links, [&](const auto& link) {
    const bool is_its = medium_.endpoints[link->sender_index].process == sender && link->source.life == life;
    return is_its && link->receiver_index == endpoint_index_ && link->connected && link->sender_open;
  });
  return open != medium_.links.end() && acknowledge(**open, operation_id);
}

bool SimWire::acknowledge(SimLink& link, std::uint32_t operation_id) {
  if (link.acks.size() >= link.ack_slots) return false;
  const auto delay_polls = static_cast<std::uint32_t>(medium_.random.below(medium_.options.max_delay_polls + 1));
  link.acks.push_back({operation_id, delay_polls});
  return true;
}

std::uint32_t SimWire::take_acknowledgement(Link& link) {
  std::deque<SimAck>& acks = own(link).acks;
  if (acks.empty()) return 0;
  if (acks.front().delay_polls > 0) {
    --acks.front().delay_polls;
    return 0;
  }
  const std::uint32_t operation_id = acks.front().operation_id;
  acks.pop_front();
  return operation_id;
}

bool SimWire::has_acknowledgement(Link& link) {
  const std::deque<SimAck>& acks = own(link).acks;
  return !acks.empty() && acks.front().delay_polls == 0;
}

}  // namespace portofu
