// The calls of an application of uTofu.

#include "tests/simulation/tofu_node.h"

#include <utility>

#include "engine/initiator/barrier.h"
#include "engine/initiator/circuit.h"
#include "engine/initiator/send.h"
#include "engine/initiator/tofu_send.h"
#include "engine/target/tofu_request.h"

namespace portofu::simulation {

ClaimResult TableDirectory::claim(std::uint64_t key) {
  return claims_.emplace(key, self_).second ? ClaimResult::kClaimed : ClaimResult::kTaken;
}

void TableDirectory::release(std::uint64_t key) { claims_.erase(key); }

FindResult TableDirectory::find(std::uint64_t key, NameOwner* owner) {
  const auto found = claims_.find(key);
  if (found == claims_.end()) return FindResult::kNobody;
  *owner = {found->second};
  return FindResult::kFound;
}

TofuNode::TofuNode(std::unique_ptr<Wire> carrier, const NodeOptions& options, std::unique_ptr<NodeDirectory> directory,
                   const Coordinates& at)
    : directory_(std::move(directory)), node_(std::move(carrier), options) {
  node_.core().tofu = std::make_unique<Tofu>(at, directory_.get());
  node_.core().tofu->tell_apart(node_.core().outstanding.first_id());
}

bool TofuNode::claim(std::uint32_t number) {
  const Engine::Duty duty(node_.engine());
  return tofu().claim_queue(tni_of(number), queue_of(number), CqMode::kShared) != nullptr;
}

void TofuNode::free_vcq(VirtualControlQueue& vcq) {
  const Engine::Duty duty(node_.engine());
  const std::uint64_t id = vcq.id;
  ControlQueue& queue = *tofu().queue(queue_number(id));
  leave_queue(duty.core(), vcq);
  while (const auto region = queue.stadds.take_any_of(component_of(id))) leave_region(duty.core(), *region);
  tofu().leave(vcq);
  queue.vcqs[component_of(id)].reset();
  const std::uint32_t number = queue_number(id);
  if (queue.is_empty()) tofu().release_queue(tni_of(number), queue_of(number));
}

VirtualControlQueue& TofuNode::make_vcq(std::uint32_t number, CqMode mode, std::uint32_t toq_entries) {
  const Engine::Duty duty(node_.engine());
  constexpr std::uint32_t kMrqEntries = 131072;
  ControlQueue* queue = tofu().queue(number);
  if (queue == nullptr) queue = tofu().claim_queue(tni_of(number), queue_of(number), mode);
  PORTOFU_ASSERT(queue != nullptr && queue->mode == mode);
  auto& made = queue->vcqs[component_of(number)];
  made = std::make_unique<VirtualControlQueue>(toq_entries, kMrqEntries);
  made->session = mode == CqMode::kSession;
  made->id = make_tofu_id(TofuIdKind::kVcq, tofu().coordinates, number);
  tofu().enter(*made);
  return *made;
}

std::uint64_t TofuNode::register_memory(const VirtualControlQueue& vcq, std::uint64_t at, std::uint64_t bytes,
                                        bool read_only) {
  const Engine::Duty duty(node_.engine());
  std::uint64_t stadd = 0;
  const RegionRequest request{component_of(vcq.id), memory() + at, bytes, read_only};
  PORTOFU_ASSERT(tofu().queue(queue_number(vcq.id))->stadds.add(request, &stadd) == Status::kOk);
  return stadd;
}

void TofuNode::post(VirtualControlQueue& vcq, const Descriptor& wanted, void* callback_data, bool tcq_notice) {
  const Engine::Duty duty(node_.engine());
  Core& core = duty.core();
  Descriptor descriptor = wanted;
  descriptor.interface_index = kTofuInterface;
  descriptor.tofu.vcq_handle = vcq.handle;
  descriptor.tofu.tcq_place = vcq.tcq.take(callback_data, tcq_notice);
  if (vcq.session) {
    arm_operation(core, vcq.steps, descriptor, {vcq.handle, ++vcq.posted});
  } else {
    start_descriptor(core, descriptor);
  }
  node_.engine().settle_on_duty();
}

bool TofuNode::read_tcq(VirtualControlQueue& vcq, void** callback_data, NiFail* fail) {
  const Engine::Duty duty(node_.engine());
  return vcq.tcq.read(callback_data, fail);
}

bool TofuNode::read_mrq(VirtualControlQueue& vcq, Notice* notice) {
  const Engine::Duty duty(node_.engine());
  return vcq.mrq.read(notice);
}

BarrierGate& TofuNode::make_gate(std::uint32_t number, std::uint64_t set) {
  const Engine::Duty duty(node_.engine());
  BarrierGate* gate = tofu().claim_gate(make_tofu_id(TofuIdKind::kVbg, tofu().coordinates, number));
  PORTOFU_ASSERT(gate != nullptr);
  gate->set_id = set != 0 ? set : gate->id;
  return *gate;
}

void TofuNode::free_gates(std::span<BarrierGate* const> gates) {
  const Engine::Duty duty(node_.engine());
  for (BarrierGate* const gate : gates) leave_circuit(duty.core(), *gate);
  node_.engine().settle_on_duty();
  for (const BarrierGate* const gate : gates) tofu().release_gate(gate->id);
}

void TofuNode::configure(BarrierGate& gate, const GateEnds& ends) {
  const Engine::Duty duty(node_.engine());
  configure_gate(duty.core(), gate, ends);
}

void TofuNode::leave_out(BarrierGate& gate) {
  const Engine::Duty duty(node_.engine());
  leave_circuit(duty.core(), gate);
}

void TofuNode::start(BarrierGate& gate, const GateValue& value) {
  const Engine::Duty duty(node_.engine());
  PORTOFU_ASSERT(gate.state == BarrierState::kIdle);
  start_barrier(duty.core(), gate, value);
  node_.engine().settle_on_duty();
}

BarrierState TofuNode::take_result(BarrierGate& gate, GateValue* value) {
  const Engine::Duty duty(node_.engine());
  if (gate.state == BarrierState::kRunning) return BarrierState::kRunning;
  *value = gate.result;
  return std::exchange(gate.state, BarrierState::kIdle);
}

}  // namespace portofu::simulation
