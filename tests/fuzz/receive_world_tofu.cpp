// uTofu in the world of the fuzzer: two VCQs in free mode and one in session mode, registered memory, a circuit with
// the peers and one of our own. Requests that are right, almost right, wrong, and never finished.

#include <algorithm>
#include <cstring>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/barrier.h"
#include "engine/initiator/circuit.h"
#include "engine/initiator/send.h"
#include "engine/initiator/tofu_send.h"
#include "engine/target/tofu_request.h"
#include "tests/fuzz/receive_world.h"

namespace portofu::fuzz {
namespace {

constexpr std::uint32_t kSessionNumber = make_queue_number(0, 1, 0);
constexpr std::array<std::uint32_t, 3> kNumbers{make_queue_number(0, 0, 0), make_queue_number(0, 0, 1), kSessionNumber};
constexpr std::uint32_t kToqEntries = 24;
constexpr std::uint32_t kMrqEntries = 131072;  // An overflow would end the process, as the guide says.
constexpr std::uint32_t kGates = 4;
constexpr std::array<AtomicOperation, 6> kArmw{AtomicOperation::kCswap, AtomicOperation::kSwap, AtomicOperation::kSum,
                                               AtomicOperation::kBxor,  AtomicOperation::kBand, AtomicOperation::kBor};

std::uint64_t vcq_id(std::uint32_t number) { return make_tofu_id(TofuIdKind::kVcq, {}, number); }
std::uint64_t gate_id(std::uint32_t tni, std::uint32_t index) {
  return make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(tni, index, 0));
}

}  // namespace

void ReceiveWorld::open_tofu() {
  core_.tofu = std::make_unique<Tofu>(Coordinates{}, &directory_);
  core_.tofu->claim_queue(0, 0, CqMode::kShared);
  core_.tofu->claim_queue(0, 1, CqMode::kSession);
  for (const std::uint32_t number : kNumbers) create_vcq(number);
  for (std::uint32_t index = 0; index < kGates; ++index) {
    core_.tofu->claim_gate(gate_id(0, index))->set_id = gate_id(0, index / 2 * 2);
  }
  configure_gates();
}

void ReceiveWorld::create_vcq(std::uint32_t number) {
  auto& made = core_.tofu->queue(number)->vcqs[component_of(number)];
  made = std::make_unique<VirtualControlQueue>(kToqEntries, kMrqEntries);
  made->session = number == kSessionNumber;
  made->id = vcq_id(number);
  core_.tofu->enter(*made);
}

void ReceiveWorld::free_vcq(VirtualControlQueue& vcq) {
  ControlQueue& queue = *core_.tofu->queue(queue_number(vcq.id));
  const std::uint32_t component = component_of(vcq.id);
  leave_queue(core_, vcq);
  while (auto region = queue.stadds.take_any_of(component)) leave_region(core_, *region);
  core_.tofu->leave(vcq);
  queue.vcqs[component].reset();
}

void ReceiveWorld::replace_vcq() {
  const std::uint32_t number = input_.one_of(kNumbers);
  VirtualControlQueue* vcq = core_.tofu->vcq_of_number(number);
  vcq != nullptr ? free_vcq(*vcq) : create_vcq(number);
}

VirtualControlQueue* ReceiveWorld::any_vcq() { return core_.tofu->vcq_of_number(input_.one_of(kNumbers)); }

void ReceiveWorld::register_memory() {
  VirtualControlQueue* vcq = any_vcq();
  if (vcq == nullptr) return;
  const Range range = any_range();
  if (range.bytes == 0) return;
  const RegionRequest request{component_of(vcq->id), range.start, range.bytes, input_.once_in(4)};
  std::uint64_t stadd = 0;
  StaddTable& table = core_.tofu->queue(queue_number(vcq->id))->stadds;
  const Status status =
      input_.once_in(4) ? table.add_reserved(request, input_.below(4), &stadd) : table.add(request, &stadd);
  if (status != Status::kOk) return;
  if (!request.read_only) memory_.allow(range);
  stadds_.emplace_back(queue_number(vcq->id), stadd);
}

void ReceiveWorld::deregister_memory() {
  if (stadds_.empty()) return;
  const auto [number, stadd] = stadds_[input_.below(std::min<std::size_t>(stadds_.size(), 256))];
  std::unique_ptr<RegisteredRegion> gone;
  ControlQueue* queue = core_.tofu->queue(number);
  if (queue->stadds.remove(component_of(number), stadd, &gone) && gone != nullptr) leave_region(core_, *gone);
}

/// One that was given out, somewhere in it or behind it, or none.
std::uint64_t ReceiveWorld::any_stadd() {
  if (stadds_.empty() || input_.once_in(16)) return input_.raw<std::uint64_t>();
  const std::uint64_t stadd = stadds_[input_.below(std::min<std::size_t>(stadds_.size(), 256))].second;
  return stadd + (input_.once_in(2) ? 8 * input_.below(64) : 0);
}

/// Ours, those of the peers, and some that nobody has.
std::uint64_t ReceiveWorld::any_vcq_id() {
  const std::uint32_t number = input_.one_of(kNumbers);
  return vcq_id(make_queue_number(input_.below(4), queue_of(number), component_of(number)));
}

std::uint64_t ReceiveWorld::tofu_length() {
  constexpr std::array<std::uint16_t, 10> kLengths{0, 1, 8, 32, 256, 300, 512, 4096, 5000, 12000};
  return input_.one_of(kLengths);
}

// ---- Peers ---------------------------------------------------------------------------------------------------------

void ReceiveWorld::receive_tofu_request() {
  constexpr std::array<PacketType, 3> kTypes{PacketType::kTofuPut, PacketType::kTofuGet, PacketType::kTofuArmw};
  PacketHeader header = request_header(input_.one_of(kTypes));
  header.interface_index = kTofuInterface;
  header.pt_index = input_.raw<std::uint16_t>();
  header.initiator_rank = queue_number(any_vcq_id());
  header.hdr_data = any_vcq_id();
  header.remote_offset = any_stadd();
  header.length = tofu_length();
  if (header.type != PacketType::kTofuPut) header.flags = kFlagAnswerWanted;
  if (header.type == PacketType::kTofuPut) {
    header.payload_bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(header.length, FakeWire::kMaxPayloadBytes));
  } else if (header.type == PacketType::kTofuArmw) {
    const bool wide = input_.once_in(2);
    header.atomic_operation = static_cast<std::uint8_t>(input_.one_of(kArmw));
    header.atomic_type = static_cast<std::uint8_t>(wide ? AtomicType::kUint64 : AtomicType::kUint32);
    header.length = wide ? 8 : 4;
    const bool compares = header.atomic_operation == static_cast<std::uint8_t>(AtomicOperation::kCswap);
    header.payload_bytes = static_cast<std::uint32_t>(header.length) + (compares ? kOperandBytes : 0);
  }
  spoil(header);
  receive(source(), header);
}

void ReceiveWorld::receive_tofu_fault() {
  PacketHeader header = request_header(PacketType::kTofuFault);
  header.ni_fail_type = static_cast<std::uint8_t>(input_.below(kTofuNiFailCount));
  header.initiator_rank = queue_number(any_vcq_id());
  const VirtualControlQueue* vcq = core_.tofu->vcq_of_number(header.initiator_rank);
  header.match_bits = vcq != nullptr ? vcq->handle : 0;
  header.hdr_data = any_vcq_id();
  header.payload_bytes = 0;
  spoil(header);
  receive(source(), header);
}

void ReceiveWorld::receive_gate_packet() {
  GateValue value;
  value.operation = static_cast<ReduceOperation>(input_.below(10));
  value.item_count = static_cast<std::uint8_t>(input_.below(8));
  value.mismatch = input_.once_in(8) ? input_.byte() : 0;
  value.items.fill(input_.byte());
  const std::uint32_t place = input_.below(kGates);
  value.setting = input_.once_in(8) ? input_.byte() : gate(place).source.value_round + 1;
  std::vector<std::byte> payload(sizeof value);
  std::memcpy(payload.data(), &value, sizeof value);
  const std::size_t used = std::min(gate_value_bytes(value), sizeof value);
  PacketHeader header = request_header(PacketType::kTofuGate);
  header.interface_index = kTofuInterface;
  header.initiator_rank = queue_number(gate_id(0, place));
  header.hdr_data = gate_id(1 + input_.below(2), 0);
  header.length = header.payload_bytes = static_cast<std::uint32_t>(input_.once_in(16) ? sizeof value : used);
  if (input_.once_in(16)) {
    header.length = header.payload_bytes = 0;
    const std::uint32_t left = input_.once_in(4) ? kWhatIsLeft : input_.below(4);
    header.rounds_left = input_.once_in(4) ? kAllRounds : rounds_word(input_.below(3), left);
  }
  spoil(header);
  payload.resize(header.payload_bytes);
  receive(source(), header, payload);
}

// ---- The application -----------------------------------------------------------------------------------------------

void ReceiveWorld::post_tofu() {
  constexpr std::array<PacketType, 5> kKinds{PacketType::kTofuPut, PacketType::kTofuGet, PacketType::kTofuArmw,
                                             PacketType::kTofuPiggyback, PacketType::kTofuNop};
  take_notices();
  VirtualControlQueue* vcq = any_vcq();
  if (vcq == nullptr || !vcq->tcq.has_room(1)) return;
  Descriptor d;
  d.type = vcq->session && input_.once_in(2) ? PacketType::kTofuNop : input_.one_of(kKinds);
  d.interface_index = kTofuInterface;
  d.tofu = {vcq->handle, false, 0, 0, 0};
  d.tofu_meta = input_.raw<std::uint16_t>();
  if (d.type != PacketType::kTofuNop) {
    d.tofu.remote_vcq_id = any_vcq_id();
    d.remote_stadd = any_stadd();
    d.tofu.local_stadd = any_stadd();
    d.length = tofu_length();
  }
  if (d.type == PacketType::kTofuPiggyback) {
    d.type = PacketType::kTofuPut;
    d.tofu.brings_data = true;
    d.length = std::min<std::uint64_t>(d.length, kMaxOperandBytes);
  }
  if (d.type == PacketType::kTofuArmw) {
    const bool wide = input_.once_in(2);
    d.length = wide ? 8 : 4;
    d.remote_stadd -= d.remote_stadd % 8;
    d.atomic_operation = static_cast<std::uint8_t>(input_.one_of(kArmw));
    d.atomic_type = static_cast<std::uint8_t>(wide ? AtomicType::kUint64 : AtomicType::kUint32);
  }
  d.tofu.tcq_place = vcq->tcq.take(nullptr, (d.tofu_meta & kTofuTcqNotice) != 0);
  if (!vcq->session) return start_descriptor(core_, d);
  arm_operation(core_, vcq->steps, d, {vcq->handle, ++vcq->posted});
}

void ReceiveWorld::take_notices() {
  void* callback_data = nullptr;
  NiFail fail = NiFail::kOk;
  Notice notice;
  for (const std::uint32_t number : kNumbers) {
    VirtualControlQueue* vcq = core_.tofu->vcq_of_number(number);
    if (vcq == nullptr) continue;
    while (vcq->tcq.read(&callback_data, &fail)) {
    }
    while (vcq->mrq.read(&notice)) {
    }
  }
}

BarrierGate& ReceiveWorld::gate(std::uint32_t index) { return *core_.tofu->gate(queue_number(gate_id(0, index))); }

/// A circuit with gates of both peers, and one whose packets go to ourselves.
void ReceiveWorld::configure_gates() {
  for (std::uint32_t index = 0; index < kGates; ++index) {
    BarrierGate& one = gate(index);
    const std::uint32_t other = index ^ 1;
    if (gate(index / 2 * 2).state == BarrierState::kRunning) continue;
    const bool with_peers = index < 2;
    const std::uint64_t mate = with_peers ? gate_id(0, other) : BarrierGate::kNoGate;
    configure_gate(core_, one,
                   {.local_source = mate,
                    .remote_source = with_peers ? gate_id(1 + index, 0) : gate_id(0, other),
                    .local_target = mate,
                    .remote_target = with_peers ? gate_id(2 - index, 0) : gate_id(0, other)});
  }
}

void ReceiveWorld::use_gate() {
  BarrierGate& one = gate(2 * input_.below(kGates / 2));
  if (one.state == BarrierState::kRunning) return;
  one.state = BarrierState::kIdle;
  GateValue value;
  value.operation = static_cast<ReduceOperation>(1 + input_.below(8));
  value.item_count = value.operation == ReduceOperation::kBarrier ? 0 : 2;
  start_barrier(core_, one, value);
}

/// Nothing is under way any more: every descriptor in free mode has left, and no barrier of our own is open.
void ReceiveWorld::check_tofu() {
  take_notices();
  for (const std::uint32_t number : kNumbers) {
    VirtualControlQueue* vcq = core_.tofu->vcq_of_number(number);
    if (vcq == nullptr) continue;
    PORTOFU_ASSERT(vcq->session || (vcq->tcq.has_room(kToqEntries) && vcq->tcq.unread() == 0));
    while (auto region = core_.tofu->queue(number)->stadds.take_any_of(component_of(number))) {
      PORTOFU_ASSERT(region->pending == 0);
    }
  }
  PORTOFU_ASSERT(gate(2).state != BarrierState::kRunning);
}

}  // namespace portofu::fuzz
