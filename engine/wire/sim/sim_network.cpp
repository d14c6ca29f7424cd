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
  medium_.endpoints.push_back({process});
  return std::make_unique<SimWire>(medium_, static_cast<std::uint32_t>(medium_.endpoints.size() - 1));
}

void SimNetwork::kill(ProcessId process) {
  const auto index = medium_.find_living(process);
  PORTOFU_ASSERT(index);
  medium_.end(*index, /*killed=*/true);
}

std::uint64_t SimNetwork::choose(std::uint64_t bound) { return medium_.random.below(bound); }

bool SimNetwork::quiet() const {
  return std::ranges::none_of(medium_.links, [this](const std::unique_ptr<SimLink>& link) {
    const bool pending = !link->packets.empty() || link->held_packets > 0;
    return pending && medium_.endpoints[link->receiver_index].alive;
  });
}

}  // namespace portofu
