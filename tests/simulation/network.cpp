#include "tests/simulation/network.h"

#include <algorithm>
#include <utility>

namespace portofu::simulation {

LossyOptions bad_network() {
  LossyOptions options;
  options.loss = 100;
  options.duplicates = 50;
  options.damaged = 10;
  options.reordered = 100;
  options.reorder_span = 64;
  return options;
}

Network::Network(std::uint64_t seed, const SimOptions& options, const std::optional<LossyOptions>& lossy,
                 std::uint32_t process_count)
    : random_(seed ^ 0x11fe), shows_memory_(options.shows_memory), plain_(seed, options) {
  if (lossy) lossy_ = std::make_unique<LossyNetwork>(seed, Topology::crossbar(process_count, kLossyLink), *lossy);
}

Network::Network(std::uint64_t seed, Topology topology, const LossyOptions& lossy)
    : random_(seed ^ 0x11fe), plain_(seed), lossy_(std::make_unique<LossyNetwork>(seed, std::move(topology), lossy)) {}

std::unique_ptr<Wire> Network::attach(ProcessId id, std::uint32_t index) {
  if (lossy_ == nullptr) return plain_.attach(id);
  auto wire = std::make_unique<ReliableWire>(lossy_->attach(id, index), ReliableOptions{.life = random_.next()},
                                             Counters(frames_));
  if (index >= wires_.size()) wires_.resize(index + 1);
  wires_[index] = {wire.get(), id, true};
  return wire;
}

void Network::kill(ProcessId id) {
  if (lossy_ == nullptr) return plain_.kill(id);
  lossy_->kill(id);
  for (Attached& one : wires_) one.alive = one.alive && one.id != id;
}

bool Network::is_quiet() const {
  return plain_.quiet() && std::all_of(wires_.begin(), wires_.end(),
                                       [](const Attached& one) { return !one.alive || one.wire->is_settled(); });
}

void Network::pass(std::uint64_t for_ns) {
  if (lossy_ == nullptr) {
    clock_ns_ += for_ns;
  } else {
    lossy_->advance(lossy_->now_ns() + for_ns);
  }
}

void Network::pass_to_next(std::uint64_t at_most_ns) {
  if (lossy_ == nullptr) return;
  std::uint64_t next_ns = std::min(lossy_->next_event_ns(), lossy_->now_ns() + at_most_ns);
  for (const Attached& one : wires_) {
    if (one.alive) next_ns = std::min(next_ns, one.wire->next_due_ns());
  }
  lossy_->advance(std::max(next_ns, lossy_->now_ns() + 1));
}

std::uint64_t Network::frames_sent_again() const {
  return frames_.values[static_cast<std::size_t>(Counter::kFramesSentAgain)].load(std::memory_order_relaxed);
}

}  // namespace portofu::simulation
