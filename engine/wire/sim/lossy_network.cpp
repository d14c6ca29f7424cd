// Processes, time, and the way of a datagram from queue to queue.

#include "engine/wire/sim/lossy_network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/queue/assert.h"

namespace portofu {

LossyNetwork::LossyNetwork(std::uint64_t seed, Topology topology, const LossyOptions& options)
    : topology_(std::move(topology)),
      options_(options),
      random_(seed),
      node_dead_(topology_.node_count()),
      links_(topology_.links().size()) {}

LossyNetwork::~LossyNetwork() = default;

// ---- Processes -----------------------------------------------------------------------------------------------------

std::unique_ptr<LossyEndpoint> LossyNetwork::attach(ProcessId process, std::uint32_t node) {
  PORTOFU_ASSERT(node < topology_.node_count() && find_living(process) == nullptr);
  const auto index = static_cast<std::uint32_t>(endpoints_.size());
  endpoints_.push_back(std::make_unique<Endpoint>());
  endpoints_.back()->process = process;
  endpoints_.back()->node = node;
  living_[process_key(process)] = index;
  node_of_[process_key(process)] = node;
  node_dead_[node] = false;
  return std::make_unique<LossyEndpoint>(*this, index);
}

LossyNetwork::Endpoint* LossyNetwork::find_living(ProcessId process) {
  const auto found = living_.find(process_key(process));
  return found == living_.end() ? nullptr : endpoints_[found->second].get();
}

void LossyNetwork::kill(ProcessId process) {
  Endpoint* endpoint = find_living(process);
  if (endpoint == nullptr) return;
  endpoint->alive = false;
  living_.erase(process_key(process));
  for (auto& arrived : endpoint->arrived) arrived.clear();
  endpoint->unreachable.clear();
  room_again();
}

void LossyNetwork::kill_node(std::uint32_t node) {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->alive && endpoint->node == node) kill(endpoint->process);
  }
  node_dead_[node] = true;
}

bool LossyNetwork::is_apart(std::uint32_t node_a, std::uint32_t node_b) const {
  const auto part = [this](std::uint32_t node) { return node < parts_.size() ? parts_[node] : 0; };
  return part(node_a) != part(node_b);
}

// ---- Time ----------------------------------------------------------------------------------------------------------

void LossyNetwork::schedule(std::uint64_t at_ns, EventKind kind, std::uint32_t index) {
  events_.push({at_ns, serial_++, kind, index});
}

void LossyNetwork::advance(std::uint64_t to_ns) {
  while (!events_.empty() && events_.top().at_ns <= to_ns) {
    const Event event = events_.top();
    events_.pop();
    now_ns_ = std::max(now_ns_, event.at_ns);
    handle(event);
  }
  now_ns_ = std::max(now_ns_, to_ns);
}

void LossyNetwork::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kArrive: return arrive(event.index);
    case EventKind::kLinkFree: links_[event.index].busy = false; return start(event.index);
    case EventKind::kRetry: links_[event.index].blocked = false; return start(event.index);
    case EventKind::kSetFree:
      if (transits_[event.index] != nullptr && transits_[event.index]->overtakers > 0) set_free(event.index);
      return;
    case EventKind::kDeliver: return deliver(event.index);
    case EventKind::kNotice: {
      Endpoint& asker = *endpoints_[transits_[event.index]->from];
      const bool arrives = asker.alive && !is_apart(asker.node, transits_[event.index]->to_node);
      if (arrives && !chance(options_.loss)) {
        asker.unreachable.push_back({transits_[event.index]->to, transits_[event.index]->sent_ns});
        receivers_.push_back(asker.process);
      }
      return end_transit(event.index);
    }
  }
}

std::uint64_t LossyNetwork::draw_delay() {
  constexpr std::uint64_t kSteps = 1u << 20;
  const double uniform = (static_cast<double>(random_.below(kSteps)) + 1) / kSteps;  // (0, 1]
  const auto mean = static_cast<double>(options_.mean_delay_ns);
  switch (options_.delay) {
    case DelayKind::kNone: return 0;
    case DelayKind::kUniform: return static_cast<std::uint64_t>(2 * mean * uniform);
    case DelayKind::kExponential: return static_cast<std::uint64_t>(-mean * std::log(uniform));
    case DelayKind::kPareto: {
      const double least = mean / 3;
      return static_cast<std::uint64_t>(std::min(least / std::pow(uniform, 1 / 1.5), 1000 * least));
    }
  }
  return 0;
}

std::uint32_t LossyNetwork::new_transit(Transit transit) {
  if (free_transits_.empty()) {
    free_transits_.push_back(static_cast<std::uint32_t>(transits_.size()));
    transits_.emplace_back();
  }
  const std::uint32_t index = free_transits_.back();
  free_transits_.pop_back();
  transits_[index] = std::make_unique<Transit>(std::move(transit));
  return index;
}

void LossyNetwork::end_transit(std::uint32_t index) {
  transits_[index].reset();
  free_transits_.push_back(index);
}

// ---- Into the network ----------------------------------------------------------------------------------------------

void LossyNetwork::damage(std::vector<std::byte>& bytes) {
  if (random_.below(8) == 0) return bytes.resize(1 + random_.below(bytes.size()));
  for (std::uint64_t bits = 1 + random_.below(8); bits > 0; --bits) {
    bytes[random_.below(bytes.size())] ^= static_cast<std::byte>(1u << random_.below(8));
  }
}

bool LossyNetwork::send(std::uint32_t from, ProcessId to, TrafficClass traffic, std::vector<std::byte> bytes) {
  Endpoint& sender = *endpoints_[from];
  if (!options_.two_classes) traffic = TrafficClass::kRequest;
  if (!has_room(sender.node, traffic)) return false;  // The first link of every route has the number of the node.
  const auto node = node_of_.find(process_key(to));
  if (node == node_of_.end() || chance(options_.loss)) return true;
  const int copies = chance(options_.duplicates) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    Transit transit;
    transit.bytes = bytes;
    transit.from = from;
    transit.to = to;
    transit.to_node = node->second;
    transit.traffic = traffic;
    transit.route = topology_.route(sender.node, node->second);
    transit.extra_delay_ns = draw_delay();
    transit.sent_ns = now_ns_;
    if (chance(options_.damaged)) damage(transit.bytes);
    const bool aside = chance(options_.reordered);
    if (aside) transit.overtakers = 1 + static_cast<std::uint32_t>(random_.below(options_.reorder_span));
    const std::uint32_t index = new_transit(std::move(transit));
    if (!aside) {
      enter(index);
      continue;
    }
    sender.aside.push_back(index);
    schedule(now_ns_ + options_.reorder_limit_ns, EventKind::kSetFree, index);
  }
  let_overtake(sender, to);
  return true;
}

/// One more has overtaken those of the pair that were set aside.
void LossyNetwork::let_overtake(Endpoint& sender, ProcessId to) {
  const std::vector<std::uint32_t> aside = sender.aside;
  for (const std::uint32_t index : aside) {
    Transit& transit = *transits_[index];
    if (transit.to == to && --transit.overtakers == 0) set_free(index);
  }
}

void LossyNetwork::set_free(std::uint32_t index) {
  std::erase(endpoints_[transits_[index]->from]->aside, index);
  transits_[index]->overtakers = 0;
  enter(index);
}

// ---- From queue to queue -------------------------------------------------------------------------------------------

bool LossyNetwork::has_room(std::uint32_t link, TrafficClass traffic) const {
  const LinkFigures& figures = topology_.links()[link];
  const bool keeps_some = options_.two_classes && traffic == TrafficClass::kRequest;
  return links_[link].used() + (keeps_some ? figures.reserved_datagrams : 0) < figures.queue_datagrams;
}

/// Puts a datagram into the queue of its link. If others wait for room, its place was promised.
void LossyNetwork::enter(std::uint32_t index) {
  const Transit& transit = *transits_[index];
  const std::uint32_t link = transit.route[transit.hop];
  if (!options_.blocking && !has_room(link, transit.traffic)) {
    ++dropped_full_;
    return end_transit(index);
  }
  links_[link].waiting[static_cast<std::size_t>(transit.traffic)].push_back(index);
  start(link);
}

/// Where the network blocks, a datagram leaves a queue only when the next one has a place for it.
bool LossyNetwork::may_go_on(const Transit& transit) {
  if (!options_.blocking) return true;
  if (transit.hop + 1 < transit.route.size()) return has_room(transit.route[transit.hop + 1], transit.traffic);
  const Endpoint* receiver = find_living(transit.to);
  const auto traffic = static_cast<std::size_t>(transit.traffic);
  return receiver == nullptr ||
         receiver->arrived[traffic].size() + receiver->promised[traffic] < options_.receive_datagrams;
}

bool LossyNetwork::start_one(std::uint32_t link, TrafficClass traffic) {
  auto& waiting = links_[link].waiting[static_cast<std::size_t>(traffic)];
  if (waiting.empty() || !may_go_on(*transits_[waiting.front()])) return false;
  const std::uint32_t index = waiting.front();
  waiting.pop_front();
  const Transit& transit = *transits_[index];
  if (options_.blocking) {
    if (transit.hop + 1 < transit.route.size()) {
      ++links_[transit.route[transit.hop + 1]].promised;
    } else if (Endpoint* receiver = find_living(transit.to)) {
      ++receiver->promised[static_cast<std::size_t>(traffic)];
    }
  }
  const LinkFigures& figures = topology_.links()[link];
  const std::uint64_t sending_ns = figures.bytes_per_us == 0 ? 0 : transit.bytes.size() * 1000 / figures.bytes_per_us;
  links_[link].busy = true;
  schedule(now_ns_ + sending_ns, EventKind::kLinkFree, link);
  schedule(now_ns_ + sending_ns + figures.latency_ns, EventKind::kArrive, index);
  room_again();
  return true;
}

void LossyNetwork::start(std::uint32_t link) {
  if (links_[link].busy) return;
  if (start_one(link, TrafficClass::kAnswer) || start_one(link, TrafficClass::kRequest)) return;
  if (links_[link].blocked || links_[link].used() == links_[link].promised) return;
  links_[link].blocked = true;
  blocked_.push_back(link);
}

/// Something has left a queue: whoever waits for a place looks again.
void LossyNetwork::room_again() {
  for (const std::uint32_t link : std::exchange(blocked_, {})) schedule(now_ns_, EventKind::kRetry, link);
}

void LossyNetwork::arrive(std::uint32_t index) {
  Transit& transit = *transits_[index];
  if (++transit.hop == transit.route.size()) {
    if (transit.extra_delay_ns == 0) return deliver(index);
    return schedule(now_ns_ + transit.extra_delay_ns, EventKind::kDeliver, index);
  }
  if (options_.blocking) --links_[transit.route[transit.hop]].promised;
  enter(index);
}

/// As kernels do it: a second gives one notice, and they are saved up to so many.
bool LossyNetwork::may_notify(std::uint32_t from_node, std::uint32_t to_node) {
  constexpr std::uint64_t kEachNs = 1'000'000'000;
  if (options_.notices_in_a_row == 0) return true;
  std::uint64_t& full_ns = notices_full_ns_[{from_node, to_node}];
  const std::uint64_t after_ns = std::max(full_ns, now_ns_) + kEachNs;
  if (after_ns > now_ns_ + options_.notices_in_a_row * kEachNs) return false;
  full_ns = after_ns;
  return true;
}

void LossyNetwork::deliver(std::uint32_t index) {
  Transit& transit = *transits_[index];
  const Endpoint& sender = *endpoints_[transit.from];
  Endpoint* receiver = find_living(transit.to);
  const auto traffic = static_cast<std::size_t>(transit.traffic);
  if (receiver != nullptr && receiver->promised[traffic] > 0) --receiver->promised[traffic];
  if (is_apart(sender.node, transit.to_node) || node_dead_[transit.to_node]) return end_transit(index);
  if (receiver == nullptr) {
    if (!may_notify(transit.to_node, sender.node)) return end_transit(index);
    return schedule(now_ns_ + topology_.latency_ns(transit.to_node, sender.node), EventKind::kNotice, index);
  }
  if (receiver->arrived[traffic].size() >= options_.receive_datagrams) {
    ++dropped_full_;
    return end_transit(index);
  }
  receiver->arrived[traffic].push_back({sender.process, std::move(transit.bytes)});
  receivers_.push_back(receiver->process);
  end_transit(index);
}

// ---- The endpoint --------------------------------------------------------------------------------------------------

LossyEndpoint::~LossyEndpoint() {
  if (own().alive) network_.kill(own().process);
}

bool LossyEndpoint::send(ProcessId peer, TrafficClass traffic, std::span<const std::byte> head,
                         std::span<const std::byte> body) {
  PORTOFU_ASSERT(head.size() + body.size() <= max_bytes());
  if (!own().alive) return true;
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  return network_.send(index_, peer, traffic, std::move(bytes));
}

std::uint32_t LossyEndpoint::receive(std::byte* buffer, ProcessId* source) {
  auto& arrived = own().arrived[has_of_class(TrafficClass::kAnswer) ? 1 : 0];
  if (arrived.empty()) return 0;
  const std::vector<std::byte> bytes = std::move(arrived.front().bytes);
  *source = arrived.front().source;
  arrived.pop_front();
  std::memcpy(buffer, bytes.data(), bytes.size());
  network_.room_again();
  return static_cast<std::uint32_t>(bytes.size());
}

bool LossyEndpoint::has_datagrams() {
  const bool arrived = has_of_class(TrafficClass::kAnswer) || has_of_class(TrafficClass::kRequest);
  return arrived || !own().unreachable.empty();
}

bool LossyEndpoint::take_unreachable(ProcessId* peer) {
  auto& unreachable = own().unreachable;
  if (unreachable.empty()) return false;
  *peer = unreachable.front().process;
  own().unreachable_since_ns = unreachable.front().since_ns;
  unreachable.pop_front();
  return true;
}

std::uint64_t LossyEndpoint::unreachable_since_ns() const { return own().unreachable_since_ns; }

}  // namespace portofu
