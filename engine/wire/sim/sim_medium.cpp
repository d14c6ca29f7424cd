// Life and death of processes and links in a simulated network.

#include "engine/wire/sim/sim_medium.h"

#include <cstring>

namespace portofu {

namespace {

/// Loses what a killed sender had published and nobody has peeked, but for the first few packets.
void lose_unread(SimLink& link, SimRandom& random) {
  const std::size_t kept_count = random.below(link.packets.size() + 1);
  link.packets.erase(link.packets.begin() + static_cast<std::ptrdiff_t>(kept_count), link.packets.end());
}

bool is_needed(const SimLink& link) {
  return link.sender_holds || link.receiver_open || link.held_packets > 0 || link.reads_later;
}

}  // namespace

bool SimLender::read_lent(std::uint64_t address, std::byte* target, std::uint64_t bytes) const {
  if (is_gone()) return false;
  std::memcpy(target, reinterpret_cast<const std::byte*>(address), bytes);
  return true;
}

bool SimLender::is_gone() const { return !medium->endpoints[endpoint_index].alive; }

std::optional<std::uint32_t> SimMedium::find_living(ProcessId process) const {
  for (std::uint32_t index = 0; index < endpoints.size(); ++index) {
    if (endpoints[index].alive && endpoints[index].process == process) return index;
  }
  return std::nullopt;
}

SimLink& SimMedium::make_link(std::uint32_t sender_index, std::uint32_t receiver_index) {
  links.push_back(std::make_unique<SimLink>());
  SimLink& link = *links.back();
  link.peer = endpoints[receiver_index].process;
  // Each life is an endpoint of its own; 0 is no life.
  link.life = std::uint64_t{1} + receiver_index;
  link.source.life = std::uint64_t{1} + sender_index;
  link.sender_index = sender_index;
  link.receiver_index = receiver_index;
  link.in_progress_left = static_cast<std::uint32_t>(random.below(options.max_connect_in_progress + 1));
  link.capacity_packets = 1 + static_cast<std::uint32_t>(random.below(options.max_link_packets));
  link.lender.medium = this;
  link.lender.endpoint_index = sender_index;
  if (options.max_ack_slots != 0) link.ack_slots = static_cast<std::uint32_t>(random.below(options.max_ack_slots + 1));
  if (options.max_lent_bytes != 0)
    link.max_lent_bytes = 1 + static_cast<std::uint32_t>(random.below(options.max_lent_bytes));
  return link;
}

void SimMedium::end(std::uint32_t endpoint_index, bool killed) {
  if (!endpoints[endpoint_index].alive) return;
  endpoints[endpoint_index].alive = false;
  for (const auto& link : links) {
    if (link->sender_index == endpoint_index && link->sender_open) {
      if (killed) lose_unread(*link, random);
      link->lost = true;
      link->sender_open = false;
      link->sender_end_known = !killed;
      link->receiver_open = link->receiver_open && link->connected;
    }
    if (link->receiver_index == endpoint_index) link->receiver_open = false;
  }
}

void SimMedium::break_links(std::uint32_t sender_index, std::uint32_t receiver_index) {
  for (const auto& link : links) {
    const bool is_there = link->sender_index == sender_index && link->receiver_index == receiver_index;
    if (!is_there || !link->connected || !link->sender_open) continue;
    lose_unread(*link, random);
    link->broken = true;
    link->sender_open = false;
  }
}

void SimMedium::collect_links() {
  std::erase_if(links, [](const std::unique_ptr<SimLink>& link) { return !is_needed(*link); });
}

}  // namespace portofu
