// A simulated process.

#include "tests/simulation/node.h"

#include "engine/run/loop.h"
#include "engine/target/close_interface.h"

namespace portofu::simulation {
namespace {

std::uint64_t read_clock(void* context) { return *static_cast<std::uint64_t*>(context); }

}  // namespace

Node::Node(std::unique_ptr<Wire> carrier, const NodeOptions& options, WireObserver* observer)
    : options_(options),
      memory_(options.memory_bytes),
      carrier_(std::move(carrier)),
      loopback_(std::make_unique<LoopbackWire>(options.id, options.ring)),
      recorded_carrier_(std::make_unique<RecordingWire>(*carrier_, observer, options.index)),
      recorded_loopback_(std::make_unique<RecordingWire>(*loopback_, observer, options.index)) {
  std::vector<Wire*> wires{recorded_carrier_.get()};
  if (options.own_loopback) wires.insert(wires.begin(), recorded_loopback_.get());
  if (options.shuffle_seed != 0) {
    for (Wire*& wire : wires) {
      shuffled_.push_back(std::make_unique<ShuffleWire>(*wire, options.shuffle_seed + shuffled_.size()));
      wire = shuffled_.back().get();
    }
  }
  engine_ = std::make_unique<Engine>(options.settings, options.id, options.uid,
                                     Engine::World{wires, read_clock, options_.clock_ns});
  core_ = &Engine::Duty(*engine_).core();
  open_interface();
}

Node::~Node() = default;

void Node::open_interface() {
  const Engine::Duty duty(*engine_);
  core_->interfaces[options_.interface_index] = std::make_unique<Interface>(options_.interface_index, options_.limits);
}

void Node::close_interface() {
  const Engine::Duty duty(*engine_);
  close_interface_on_duty(*core_, options_.interface_index);
}

void Node::run_timers() {
  const Engine::Duty duty(*engine_);
  run_timers_on_duty(*core_);
}

Handle Node::make_queue(std::uint64_t count) {
  const Engine::Duty duty(*engine_);
  Handle handle = 0;
  interface().eqs.allocate(&handle)->open(count);
  return handle;
}

Handle Node::make_counter() {
  const Engine::Duty duty(*engine_);
  Handle handle = 0;
  interface().cts.allocate(&handle)->reset_on_duty();
  return handle;
}

MemorySegment Node::segment_of(const ModelRegion& region) {
  MemorySegment segment;
  std::vector<iovec> pieces;
  for (const ModelRegion::Piece& piece : region.pieces) pieces.push_back({memory_.data() + piece.at, piece.bytes});
  if (pieces.size() == 1) {
    segment.describe(pieces[0].iov_base, pieces[0].iov_len);
  } else {
    segment.describe(pieces.data(), pieces.size());
  }
  return segment;
}

Handle Node::make_md(const ModelRegion& region, std::uint32_t md_options, Handle eq, Handle ct) {
  const Engine::Duty duty(*engine_);
  Handle handle = 0;
  MemoryDescriptor* md = interface().mds.allocate(&handle);
  *md = {segment_of(region), md_options, handle, eq, ct, 0, false};
  return handle;
}

void Node::release_md(Handle handle) {
  const Engine::Duty duty(*engine_);
  MemoryDescriptor* md = interface().mds.find(handle);
  md->released = true;
  ++md->pending;
  end_operation(interface(), *md);
}

void Node::make_portal(std::uint16_t pt_index, Handle eq, bool flow_control) {
  const Engine::Duty duty(*engine_);
  auto portal = std::make_unique<PortalTableEntry>();
  portal->eq_handle = eq;
  portal->flow_control = flow_control;
  if (flow_control) interface().eqs.find(eq)->reserve_on_duty();
  interface().portal_table[pt_index] = std::move(portal);
}

void Node::enable_portal(std::uint16_t pt_index, bool enabled) {
  const Engine::Duty duty(*engine_);
  interface().portal(pt_index)->enabled = enabled;
}

void Node::set_map(const std::vector<ProcessId>& processes) {
  const Engine::Duty duty(*engine_);
  interface().map.set(processes.data(), processes.size(), options_.id);
}

EntryRequest Node::request_of(const EntryPlan& plan) {
  EntryRequest request;
  request.segment = segment_of(plan.region);
  request.criteria = interface().is_matching() ? plan.criteria : MatchCriteria{0, ~std::uint64_t{0}, {}, true, true};
  request.min_free = (plan.options & kEntryManageLocal) != 0 ? plan.min_free : 0;
  request.user_ptr = reinterpret_cast<void*>(plan.name);
  request.options = plan.options;
  request.uid = plan.uid;
  request.ct_handle = plan.ct;
  request.pt_index = plan.pt_index;
  request.list = plan.list;
  return request;
}

void Node::post(const Descriptor& posted) {
  Descriptor descriptor = posted;
  const Engine::Duty duty(*engine_);
  engine_->post_on_duty(descriptor);
}

void Node::arm(Handle ct, std::uint64_t threshold, const Descriptor& descriptor) {
  const Engine::Duty duty(*engine_);
  arm_operation(*core_, *interface().cts.find(ct), descriptor, {ct, threshold});
}

void Node::cancel(Handle ct) {
  const Engine::Duty duty(*engine_);
  disarm_operations(interface(), *interface().cts.find(ct));
}

void Node::free_counter(Handle ct) {
  cancel(ct);
  const Engine::Duty duty(*engine_);
  interface().cts.free(ct);
}

}  // namespace portofu::simulation
