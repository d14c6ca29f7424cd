// Attaches, kills and watches simulated processes.

#include "engine/wire/sim/sim_network.h"

#include <algorithm>

#include "engine/queue/assert.h"

namespace portofu {

SimNetwork::SimNetwork(std::uint64_t seed, const SimOptions& options) : medium_{options, SimRandom(seed), {}, {}} {
  PORTOFU_ASSERT(options.max_payload_bytes >= 4096 && options.max_payload_bytes % 64 == 0);
  PORTOFU_ASSERT(options.max_link_packets >= 1);
}

std::unique_ptr<SimWire> SimNetwork::attach(ProcessId process) {
  PORTOFU_ASSERT(!medium_.find_living(process));
  medium_.endpoints.push_back({process, true, nullptr});
  if (medium_.options.shows_memory) medium_.endpoints.back().regions.reset(new RegionTableShared{});
  return std::make_unique<SimWire>(medium_, static_cast<std::uint32_t>(medium_.endpoints.size() - 1));
}

void SimNetwork::kill(ProcessId process) {
  const auto index = medium_.find_living(process);
  PORTOFU_ASSERT(index);
  medium_.end(*index, /*killed=*/true);
}

void SimNetwork::break_link(ProcessId from, ProcessId to) {
  const auto sender_index = medium_.find_living(from), receiver_index = medium_.find_living(to);
  PORTOFU_ASSERT(sender_index && receiver_index);
  medium_.break_links(*sender_index, *receiver_index);
}

std::uint64_t SimNetwork::choose(std::uint64_t bound) { return medium_.random.below(bound); }

bool SimNetwork::quiet() const {
  return std::ranges::none_of(medium_.links, [this](const std::unique_ptr<SimLink>& link) {
    const bool pending = !link->packets.empty() || link->held_packets > 0;
    return pending && medium_.endpoints[link->receiver_index].alive;
  });
}

RegionTableShared& SimNetwork::regions(ProcessId process) {
  const auto index = medium_.find_living(process);
  PORTOFU_ASSERT(index && medium_.options.shows_memory);
  return *medium_.endpoints[*index].regions;
}

bool SimNetwork::is_visited(ProcessId process, std::uint64_t key) const {
  const auto index = medium_.find_living(process);
  return std::ranges::any_of(medium_.links, [&](const std::unique_ptr<SimLink>& link) {
    return index && link->receiver_index == *index && link->visited.load(std::memory_order_relaxed) == key;
  });
}

}  // namespace portofu
