#include "lib/sim/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace portofu::sim {
namespace {

constexpr std::size_t kMostSlices = 4096;

std::uint64_t time_of(std::uint64_t bytes, double ps_per_byte) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * ps_per_byte));
}

}  // namespace

Network::Network(const Machine& machine, Layout layout) : machine_(machine), layout_(std::move(layout)) {
  const Topology& topology = layout_.topology;
  const InterfaceCosts& interfaces = machine_.interfaces;
  const std::size_t link_count = topology.links().size();
  stages_.resize(link_count + std::size_t{topology.node_count()} * interfaces.count * 2);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const bool is_interface = i >= link_count;
    const bool is_inside = is_interface || (topology.is_direct() && topology.is_end(static_cast<std::uint32_t>(i)));
    const double gb_s = is_interface ? interfaces.gb_s
                        : is_inside  ? machine_.node.injection_gb_s
                                     : machine_.links.gb_s();
    stages_[i].ps_per_byte = 1000 / gb_s;
    stages_[i].latency_ps = is_inside ? 0 : machine_.links.latency_ps;
    stages_[i].buffer_bytes = is_interface ? 0 : machine_.links.buffer_bytes;
  }
}

std::uint32_t Network::out_stage(std::uint32_t node, std::uint32_t interface) const {
  const std::size_t number = std::size_t{layout_.places[node]} * machine_.interfaces.count + interface;
  return static_cast<std::uint32_t>(layout_.topology.links().size() + number * 2);
}

std::uint64_t Network::before_ps(PacketKind kind) const {
  const InterfaceCosts& costs = machine_.interfaces;
  switch (kind) {
    case PacketKind::kPut: return costs.command_ps + costs.dma_read_ps + costs.send_ps;
    case PacketKind::kInlinePut:
    case PacketKind::kGetRequest:
    case PacketKind::kAtomicRequest: return costs.command_ps + costs.send_ps;
    case PacketKind::kTriggeredPut:
    case PacketKind::kGetReply: return costs.request_ps + costs.dma_read_ps + costs.send_ps;
    case PacketKind::kAtomicReply: return costs.request_ps + costs.atomic_ps + costs.send_ps;
    case PacketKind::kGate: return costs.gate_ps + costs.send_ps;
    case PacketKind::kNextPut: return 0;
    case PacketKind::kAck: break;
  }
  return costs.send_ps;
}

/// From the last byte on.
std::uint64_t Network::after_ps(PacketKind kind) const {
  const InterfaceCosts& costs = machine_.interfaces;
  switch (kind) {
    case PacketKind::kPut:
    case PacketKind::kInlinePut:
    case PacketKind::kTriggeredPut:
    case PacketKind::kGetReply:
    case PacketKind::kNextPut:
    case PacketKind::kAtomicReply: return costs.receive_ps + costs.dma_write_ps;
    case PacketKind::kGetRequest:
    case PacketKind::kAtomicRequest:
    case PacketKind::kAck:
    case PacketKind::kGate: break;
  }
  return costs.receive_ps;
}

/// Links of the message into way_.
void Network::find_way(const Packet& packet) {
  const Topology& topology = layout_.topology;
  const std::uint32_t from = layout_.places[packet.from_node];
  const std::uint32_t to = layout_.places[packet.to_node];
  if (packet.path != kOwnPath && topology.is_direct()) {
    const PathCoordinates path = unpack_path(packet.path);
    const auto& lengths = topology.lengths();
    if (path[0] < lengths[3] && path[1] < lengths[4] && path[2] < lengths[5])
      return topology.find_route_by({path[0], path[1], path[2]}, from, to, &way_);
  }
  topology.find_route(from, to, &way_);
}

Passage Network::send(std::uint64_t now_ps, const Packet& packet) {
  const InterfaceCosts& costs = machine_.interfaces;
  const std::uint32_t to_interface = packet.to_interface == kSameInterface ? packet.interface : packet.to_interface;
  PORTOFU_ASSERT(packet.from_node < node_count() && packet.to_node < node_count());
  PORTOFU_ASSERT(packet.interface < costs.count && to_interface < costs.count);
  const std::uint32_t out = out_stage(packet.from_node, packet.interface);
  const std::uint32_t in = out_stage(packet.to_node, to_interface) + 1;
  find_way(packet);
  way_.insert(way_.begin(), out);
  way_.push_back(in);
  for (const std::uint32_t stage : way_) stages_[stage].calendar.forget(now_ps);

  const std::uint64_t ready_ps = now_ps + before_ps(packet.kind);
  Frame frame{0, ready_ps, ready_ps, costs.gap_ps};
  std::uint64_t gap_end_ps = 0;
  Passage passage;
  Carried carried;
  std::uint64_t longest_wait_ps = 0;
  std::uint32_t left_bytes = packet.bytes;
  do {
    const std::uint32_t payload_bytes = std::min(left_bytes, machine_.links.mtu_bytes);
    frame.bytes = payload_bytes + machine_.links.header_bytes;
    carried = carry(now_ps, frame);
    if (gap_end_ps == 0) gap_end_ps = carried.began_ps + costs.gap_ps;
    if (carried.longest_wait_ps > longest_wait_ps) {
      longest_wait_ps = carried.longest_wait_ps;
      passage.waited_for = carried.waited_for;
    }
    frame = {0, carried.left_ps, carried.alone_left_ps, 0};
    left_bytes -= payload_bytes;
  } while (left_bytes > 0);
  if (carried.left_ps < gap_end_ps) stages_[out].calendar.reserve(carried.left_ps, gap_end_ps - carried.left_ps);

  std::uint64_t& last_ps = last_arrival_ps_[std::uint64_t{out} << 32 | in];
  const std::uint64_t after = after_ps(packet.kind);
  last_ps = passage.arrived_ps = std::max(last_ps, carried.arrived_ps + after);
  passage.left_ps = carried.left_ps;
  passage.waited_ps = passage.arrived_ps - (carried.alone_arrived_ps + after);
  return passage;
}

/// Takes one packet over all stages of way_.
Network::Carried Network::carry(std::uint64_t now_ps, const Frame& frame) {
  Carried carried;
  std::uint64_t head_ps = frame.ready_ps;
  std::uint64_t tail_ps = frame.ready_ps;
  std::uint64_t alone_head_ps = frame.alone_ready_ps;
  std::uint64_t alone_tail_ps = frame.alone_ready_ps;
  for (std::size_t i = 0; i < way_.size(); ++i) {
    Stage& stage = stages_[way_[i]];
    const std::uint64_t least_ps = i == 0 ? frame.occupies_ps : 0;
    const std::uint64_t bytes_ps = time_of(frame.bytes, stage.ps_per_byte);
    const std::uint64_t from_ps = std::max(head_ps, room_from(stage, now_ps, frame.bytes));
    const std::uint64_t start_ps = stage.calendar.find(from_ps, std::max(bytes_ps, least_ps));
    stage.calendar.reserve(start_ps, bytes_ps);
    note_use(stage, head_ps, start_ps, bytes_ps);
    stage.use.bytes += frame.bytes;
    if (start_ps - head_ps > carried.longest_wait_ps) {
      carried.longest_wait_ps = start_ps - head_ps;
      carried.waited_for = way_[i];
    }
    if (i == 0) {
      carried.began_ps = start_ps;
      carried.left_ps = start_ps + bytes_ps;
      carried.alone_left_ps = alone_head_ps + bytes_ps;
    }
    if (i > 0 && stages_[way_[i - 1]].buffer_bytes > 0) {
      Stage& before = stages_[way_[i - 1]];
      before.waiting.push_back({start_ps + bytes_ps, frame.bytes});
      before.waiting_bytes += frame.bytes;
    }
    head_ps = start_ps + stage.latency_ps;
    tail_ps = std::max(tail_ps, start_ps + bytes_ps) + stage.latency_ps;
    alone_tail_ps = std::max(alone_tail_ps, alone_head_ps + bytes_ps) + stage.latency_ps;
    alone_head_ps += stage.latency_ps;
  }
  carried.arrived_ps = tail_ps;
  carried.alone_arrived_ps = alone_tail_ps;
  return carried;
}

/// When the buffer behind a stage has room for a packet: those before it have left by then.
std::uint64_t Network::room_from(Stage& stage, std::uint64_t now_ps, std::uint32_t bytes) const {
  const auto drop = [&] {
    stage.waiting_bytes -= stage.waiting.front().bytes;
    stage.waiting.pop_front();
  };
  while (!stage.waiting.empty() && stage.waiting.front().leaves_ps <= now_ps) drop();
  std::uint64_t from_ps = 0;
  while (stage.buffer_bytes > 0 && stage.waiting_bytes + bytes > stage.buffer_bytes) {
    from_ps = std::max(from_ps, stage.waiting.front().leaves_ps);
    drop();
  }
  return from_ps;
}

/// A packet came to a stage, and takes it later.
void Network::note_use(Stage& stage, std::uint64_t came_ps, std::uint64_t from_ps, std::uint64_t duration_ps) {
  Use& use = stage.use;
  ++use.packets;
  use.busy_ps += duration_ps;
  use.waited_ps += from_ps - came_ps;
  use.longest_wait_ps = std::max(use.longest_wait_ps, from_ps - came_ps);
  make_room(from_ps + duration_ps);
  add_to_slices(use.busy_by_slice, from_ps, from_ps + duration_ps);
  add_to_slices(use.waited_by_slice, came_ps, from_ps);
}

/// Makes slices so long that there are not too many up to a time.
void Network::make_room(std::uint64_t to_ps) {
  const auto halve = [](std::vector<std::uint64_t>& slices) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const std::uint64_t part_ps = std::exchange(slices[i], 0);
      slices[i / 2] += part_ps;
    }
    slices.resize((slices.size() + 1) / 2);
  };
  while (to_ps / slice_ps_ >= kMostSlices) {
    slice_ps_ *= 2;
    for (Stage& each : stages_) {
      halve(each.use.busy_by_slice);
      halve(each.use.waited_by_slice);
    }
  }
}

void Network::add_to_slices(std::vector<std::uint64_t>& slices, std::uint64_t from_ps, std::uint64_t to_ps) const {
  if (from_ps == to_ps) return;
  if (slices.size() <= to_ps / slice_ps_) slices.resize(to_ps / slice_ps_ + 1);
  for (std::uint64_t at_ps = from_ps; at_ps < to_ps;) {
    const std::uint64_t end_ps = std::min(to_ps, (at_ps / slice_ps_ + 1) * slice_ps_);
    slices[at_ps / slice_ps_] += end_ps - at_ps;
    at_ps = end_ps;
  }
}

std::string Network::stage_name(std::uint32_t stage) const {
  const auto node_name = [this](std::uint32_t place) { return layout_.place_name(place); };
  const auto link_count = static_cast<std::uint32_t>(layout_.topology.links().size());
  if (stage < link_count) return layout_.topology.link_name(stage, node_name);
  const std::uint32_t number = (stage - link_count) / 2;
  return "interface " + std::to_string(number % machine_.interfaces.count) + " of " +
         node_name(number / machine_.interfaces.count) + ((stage - link_count) % 2 == 0 ? ", out" : ", in");
}

std::vector<Network::NamedUse> Network::uses() const {
  std::vector<NamedUse> found;
  for (std::uint32_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].use.packets != 0) found.push_back({stage_name(i), &stages_[i].use});
  }
  return found;
}

}  // namespace portofu::sim
