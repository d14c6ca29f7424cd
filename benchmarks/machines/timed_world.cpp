#include "benchmarks/machines/timed_world.h"

#include <utility>

namespace portofu::machines {
namespace {

using sim::PacketKind;

/// How the packet begins.
PacketKind kind_of(const PacketHeader& header, bool by_processor) {
  switch (header.type) {
    case PacketType::kTofuGate: return by_processor ? PacketKind::kInlinePut : PacketKind::kGate;
    case PacketType::kAnswer: return header.payload_bytes > 0 ? PacketKind::kGetReply : PacketKind::kAck;
    case PacketType::kGet:
    case PacketType::kTofuGet: return PacketKind::kGetRequest;
    case PacketType::kData: return PacketKind::kNextPut;
    default: return by_processor ? PacketKind::kPut : PacketKind::kTriggeredPut;
  }
}

/// What the receiving interface has to do beyond writing, before anything follows from the packet.
std::uint64_t extra_ps(const PacketHeader& header, const sim::InterfaceCosts& costs) {
  const bool is_atomic = header.type == PacketType::kAtomic || header.type == PacketType::kFetchAtomic ||
                         header.type == PacketType::kSwap || header.type == PacketType::kTofuArmw;
  return is_atomic && costs.atomic_ps > costs.dma_write_ps ? costs.atomic_ps - costs.dma_write_ps : 0;
}

}  // namespace

std::unique_ptr<Wire> TimedWorld::attach(std::uint32_t node) { return std::make_unique<TimedWire>(*this, node); }

void TimedWorld::send(std::uint32_t from_node, std::uint32_t to_node, const PacketHeader& header, SimPayload payload) {
  const sim::Passage passage = network_.send(now_ps_, {.from_node = from_node,
                                                       .to_node = to_node,
                                                       .bytes = header.payload_bytes,
                                                       .kind = kind_of(header, by_processor_)});
  const std::uint64_t at_ps = passage.arrived_ps + extra_ps(header, network_.machine().interfaces);
  flights_.push({at_ps, serial_++, from_node, to_node, header, std::make_shared<SimPayload>(std::move(payload))});
}

std::optional<std::uint32_t> TimedWorld::deliver_next() {
  if (flights_.empty()) return std::nullopt;
  Flight flight = flights_.top();
  flights_.pop();
  set_time(flight.at_ps, /*by_processor=*/false);
  const std::uint32_t node = flight.to_node;
  wires_[node]->arrived_.push_back(std::move(flight));
  return node;
}

TimedWire::TimedWire(TimedWorld& world, std::uint32_t node)
    : Wire({.max_payload_bytes = 4096}, {.loans = nullptr,
                                         .copies = nullptr,
                                         .peer_memory = nullptr,
                                         .completions = nullptr,
                                         .other_nodes = nullptr}),
      world_(world),
      node_(node),
      sources_(world.wires_.size()) {
  world_.wires_[node] = this;
}

ConnectResult TimedWire::connect(ProcessId peer, Link** link) {
  const std::uint32_t node = peer.nid - 1;
  if (node >= world_.wires_.size() || world_.wires_[node] == nullptr || peer != TimedWorld::process_of(node))
    return ConnectResult::kNoSuchPeer;
  links_.push_back(std::make_unique<Link>());
  links_.back()->peer = peer;
  links_.back()->life = 1 + node;
  *link = links_.back().get();
  return ConnectResult::kConnected;
}

std::byte* TimedWire::claim(Link&, std::uint32_t payload_bytes) {
  PORTOFU_ASSERT(!claimed_);
  claimed_.emplace(payload_bytes);
  return claimed_->data();
}

void TimedWire::publish(Link& link, const PacketHeader& header) {
  PORTOFU_ASSERT(claimed_);
  world_.send(node_, link.peer.nid - 1, header, *std::exchange(claimed_, std::nullopt));
}

bool TimedWire::peek(Packet& packet) {
  if (arrived_.empty()) return false;
  const TimedWorld::Flight& flight = arrived_.front();
  auto& source = sources_[flight.from_node];
  if (source == nullptr) source = std::make_unique<SourceContext>(SourceContext{nullptr, 1 + flight.from_node});
  packet.source = TimedWorld::process_of(flight.from_node);
  packet.header = flight.header;
  packet.payload = flight.payload->data();
  packet.source_context = source.get();
  return true;
}

}  // namespace portofu::machines
