// The wire of one simulated process. Every function looks through all links of the network: simulated networks are
// small.

#include "engine/wire/sim/sim_wire.h"

#include <cstring>
#include <utility>

#include "engine/queue/assert.h"

namespace portofu {

SimWire::SimWire(SimMedium& medium, std::uint32_t endpoint_index)
    : Wire({.max_payload_bytes = medium.options.max_payload_bytes},
           {.loans = medium.options.max_lent_bytes != 0 ? this : nullptr,
            .copies = medium.options.max_lent_bytes != 0 ? this : nullptr,
            .peer_memory = medium.options.shows_memory ? this : nullptr,
            .completions = medium.options.max_ack_slots != 0 ? this : nullptr,
            .other_nodes = nullptr}),
      medium_(medium),
      endpoint_index_(endpoint_index) {}

SimWire::~SimWire() {
  if (held_link_ != nullptr) release();
  medium_.end(endpoint_index_, /*killed=*/false);
  for (const auto& link : medium_.links) {
    if (link->sender_index == endpoint_index_) link->sender_holds = false;
  }
  medium_.collect_links();
}

SimLink& SimWire::own(Link& link) const {
  SimLink& sim_link = static_cast<SimLink&>(link);
  PORTOFU_ASSERT(sim_link.sender_index == endpoint_index_ && sim_link.sender_holds && sim_link.connected);
  return sim_link;
}

SimLink* SimWire::find_link(ProcessId peer) {
  SimLink* found = nullptr;
  for (const auto& link : medium_.links) {
    const bool is_ours = link->sender_index == endpoint_index_ && link->sender_holds;
    if (!is_ours || link->peer != peer) continue;
    if (medium_.endpoints[link->receiver_index].alive && !link->broken) {
      found = link.get();
    } else if (link->connected) {
      link->lost = true;
    } else {
      link->sender_holds = false;  // The peer died while the connect was in progress.
    }
  }
  medium_.collect_links();
  return found;
}

ConnectResult SimWire::connect(ProcessId peer, Link** link) {
  const auto peer_index = medium_.find_living(peer);
  if (!alive()) return ConnectResult::kNoSuchPeer;
  SimLink* found = find_link(peer);
  if (!peer_index) return ConnectResult::kNoSuchPeer;
  if (found == nullptr) found = &medium_.make_link(endpoint_index_, *peer_index);
  if (found->in_progress_left > 0) {
    --found->in_progress_left;
    return ConnectResult::kInProgress;
  }
  found->connected = true;
  *link = found;
  return ConnectResult::kConnected;
}

void SimWire::disconnect(Link* link) {
  SimLink& sim_link = own(*link);
  PORTOFU_ASSERT(!alive() || !sim_link.claimed);
  if (sim_link.sender_open || sim_link.broken) sim_link.sender_end_known = true;
  sim_link.close_lane();
  sim_link.sender_open = false;
  sim_link.sender_holds = false;
  medium_.collect_links();
}

bool SimWire::has_unheard(ProcessId, std::uint64_t life) {
  for (const auto& link : medium_.links) {
    const bool is_ours = link->receiver_index == endpoint_index_ && link->connected;
    if (!is_ours || link->source.life != life) continue;
    if (!link->packets.empty() || link->held_packets > 0) return true;
  }
  return false;
}

std::byte* SimWire::claim(Link& link, std::uint32_t payload_bytes) {
  SimLink& sim_link = own(link);
  PORTOFU_ASSERT(!sim_link.claimed && payload_bytes <= max_payload_bytes());
  if (sim_link.lost) return nullptr;
  if (!sim_link.has_room()) {
    sim_link.room_wanted = true;
    return nullptr;
  }
  sim_link.claimed.emplace(payload_bytes);
  sim_link.claimed_bytes = payload_bytes;
  return sim_link.claimed->data();
}

void SimWire::publish(Link& link, const PacketHeader& header) {
  SimLink& sim_link = own(link);
  PORTOFU_ASSERT(sim_link.claimed && header.payload_bytes <= sim_link.claimed_bytes);
  const std::optional<Loan> loan = std::exchange(sim_link.claimed_loan, std::nullopt);
  SimPayload payload(loan ? 0 : header.payload_bytes);
  if (!loan) std::memcpy(payload.data(), sim_link.claimed->data(), header.payload_bytes);
  sim_link.claimed.reset();
  if (sim_link.lost || sim_link.broken) return;
  if (!is_settled(header.flags)) {
    sim_link.leave_order();
    sim_link.unsettled_end = sim_link.published + 1;
  }
  const auto delay_polls = static_cast<std::uint32_t>(medium_.random.below(medium_.options.max_delay_polls + 1));
  sim_link.packets.push_back({header, std::move(payload), delay_polls, loan, sim_link.published++});
  sim_link.packets.back().header.wire_word = static_cast<std::uint32_t>(medium_.random.next());
}

void SimWire::discard(Link& link) {
  SimLink& sim_link = own(link);
  PORTOFU_ASSERT(sim_link.claimed);
  sim_link.claimed.reset();
  sim_link.claimed_loan.reset();
}

bool SimWire::must_wait_for_older(const SimLink& link) {
  const ProcessId sender = medium_.endpoints[link.sender_index].process;
  for (const auto& older : medium_.links) {  // In order of creation.
    if (older.get() == &link) return false;
    const bool is_ours = older->receiver_index == endpoint_index_ && older->receiver_open && older->connected;
    if (!is_ours || medium_.endpoints[older->sender_index].process != sender) continue;
    if (older->sender_index != link.sender_index || older->broken) older->sender_end_known = true;
    return true;
  }
  return false;
}

std::vector<SimLink*> SimWire::poll_sources() {
  std::vector<SimLink*> visible;
  if (!alive()) return visible;
  for (const auto& link : medium_.links) {
    if (link->receiver_index != endpoint_index_ || link->packets.empty() || must_wait_for_older(*link)) continue;
    if (link->packets.front().delay_polls > 0) {
      --link->packets.front().delay_polls;
    } else {
      visible.push_back(link.get());
    }
  }
  return visible;
}

bool SimWire::peek(Packet& packet) {
  PORTOFU_ASSERT(held_link_ == nullptr);
  const std::vector<SimLink*> sources = poll_sources();
  if (sources.empty()) return false;
  held_link_ = sources[medium_.random.below(sources.size())];
  held_link_->held_packets = 1;
  held_packet_.emplace(std::move(held_link_->packets.front()));
  held_link_->packets.pop_front();
  packet.source = medium_.endpoints[held_link_->sender_index].process;
  packet.header = held_packet_->header;
  packet.payload = held_packet_->placed ? Payload::placed_by(held_link_->lender)
                   : held_packet_->loan ? Payload::in_memory_of(held_link_->lender, held_packet_->loan->payload)
                                        : Payload(held_packet_->payload.data());
  packet.source_context = &held_link_->source;
  return true;
}

void SimWire::release() {
  PORTOFU_ASSERT(held_link_ != nullptr);
  held_link_->held_packets = 0;
  ++held_link_->released;
  if (!held_link_->reads_later) held_link_->given_back = held_link_->released;
  held_link_ = nullptr;
  held_packet_.reset();
  medium_.collect_links();
}

bool SimWire::has_packets() { return !poll_sources().empty(); }

bool SimWire::has_room_again() {
  bool any = false;
  for (const auto& link : medium_.links) {
    if (link->sender_index != endpoint_index_ || !link->room_wanted) continue;
    const bool has_room = !link->lost && link->has_room();
    if (has_room || link->lost) link->room_wanted = false;
    any = any || has_room;
  }
  for (const auto& link : medium_.links) {
    if (link->sender_index != endpoint_index_ || link->awaited == 0 || link->given_back < link->awaited) continue;
    link->awaited = 0;
    any = true;
  }
  return any;
}

int SimWire::check_peers() {
  if (!alive()) return 0;
  int lost_count = 0;
  for (const auto& link : medium_.links) {
    if (link->receiver_index == endpoint_index_ && !link->sender_open) link->sender_end_known = true;
    const bool is_ours = link->sender_index == endpoint_index_ && link->sender_holds && link->connected && !link->lost;
    const bool is_over = link->broken || (link->sender_open && !medium_.endpoints[link->receiver_index].alive);
    if (is_ours && is_over) {
      link->lost = true;
      link->close_lane();
      ++lost_count;
    }
  }
  return lost_count;
}

bool SimWire::take_closed_source(ProcessId* source, void** engines) {
  for (const auto& link : medium_.links) {
    const bool is_incoming = link->receiver_index == endpoint_index_ && link->receiver_open && link->connected;
    const bool is_closed = !link->sender_open && link->sender_end_known;
    if (!is_incoming || !is_closed || !link->packets.empty() || link->held_packets > 0 || link->reads_later) continue;
    *source = medium_.endpoints[link->sender_index].process;
    *engines = link->source.engines;
    link->receiver_open = false;
    medium_.collect_links();
    return true;
  }
  return false;
}

}  // namespace portofu
