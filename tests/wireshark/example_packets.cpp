#include "tests/wireshark/example_packets.h"

#include "engine/atomic/atomic_unit.h"
#include "engine/descriptor/descriptor.h"
#include "engine/event/barrier_gate.h"
#include "engine/event/event.h"
#include "engine/topology/tofu_id.h"

namespace portofu::wireshark {
namespace {

Bytes counted(std::uint32_t bytes) {
  Bytes made(bytes);
  for (std::uint32_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i + 1);
  return made;
}

ExamplePacket packet_of(PacketType type, std::uint64_t length, std::uint32_t payload_bytes) {
  ExamplePacket made;
  made.header.type = type;
  made.header.length = length;
  made.header.payload_bytes = payload_bytes;
  made.header.uid = kUid;
  made.header.job_key = kJobKey;
  made.payload = counted(payload_bytes);
  return made;
}

ExamplePacket of_portals(PacketType type, std::uint32_t operation_id, std::uint64_t length, std::uint32_t bytes) {
  ExamplePacket made = packet_of(type, length, bytes);
  made.header.interface_index = 3;
  made.header.pt_index = 17;
  made.header.match_bits = 0x1122334455667788;
  made.header.hdr_data = 0x99aabbccddeeff00;
  made.header.remote_offset = 4096;
  made.header.initiator_rank = 5;
  made.header.operation_id = operation_id;
  made.header.flags = operation_id != 0 ? kFlagAnswerWanted : 0;
  return made;
}

ExamplePacket of_tofu(PacketType type, std::uint32_t operation_id, std::uint64_t length, std::uint32_t bytes) {
  ExamplePacket made = packet_of(type, length, bytes);
  made.header.interface_index = kTofuInterface;
  made.header.tofu_meta = 0xed | kTofuRemoteNotice | kTofuStrongOrder | 3u << kTofuStepsShift;
  made.header.vcq_handle = 0x0102030405060708;
  made.header.sender_id = make_tofu_id(TofuIdKind::kVcq, {1, 2, 3, 0, 1, 0}, make_queue_number(2, 7, 1));
  made.header.remote_stadd = 0x10000000002000;
  made.header.tofu_queue = make_queue_number(4, 9, 6);
  made.header.operation_id = operation_id;
  made.header.flags = operation_id != 0 ? kFlagAnswerWanted : 0;
  return made;
}

ExamplePacket answer_to(std::uint32_t operation_id, NiFail fail, std::uint64_t length, std::uint32_t bytes) {
  ExamplePacket made = packet_of(PacketType::kAnswer, length, bytes);
  made.of_asker = false;
  made.header.operation_id = operation_id;
  made.header.ni_fail_type = static_cast<std::uint8_t>(fail);
  made.header.flags = kFlagUnordered;
  made.header.remote_offset = 4096;
  return made;
}

ExamplePacket more_data(std::uint8_t flags, std::uint64_t offset, std::uint32_t bytes) {
  ExamplePacket made = packet_of(PacketType::kData, 0, bytes);
  made.of_asker = (flags & kFlagAnswerStream) == 0;
  made.header.flags = flags;
  made.header.remote_offset = offset;
  return made;
}

ExamplePacket with_atomic(ExamplePacket packet, AtomicOperation operation, AtomicType type) {
  packet.header.atomic_operation = static_cast<std::uint8_t>(operation);
  packet.header.atomic_type = static_cast<std::uint8_t>(type);
  return packet;
}

void add_portals(std::vector<ExamplePacket>& all) {
  all.push_back(of_portals(PacketType::kPut, 1, 6, 6));
  all.push_back(answer_to(1, NiFail::kOk, 6, 0));
  all.back().header.flags |= kFlagOverflowList;
  all.push_back(of_portals(PacketType::kPut, 2, 6, 6));
  all.push_back(answer_to(2, NiFail::kPtDisabled, 0, 0));
  all.push_back(of_portals(PacketType::kPut, 3, 6, 6));
  all.push_back(answer_to(3, NiFail::kOk, 6, 0));
  all.back().header.flags |= kFlagSilent | kFlagPublished;
  // A message of three packets, and one that is cut off.
  all.push_back(of_portals(PacketType::kPut, 0, 10, 4));
  all.push_back(more_data(0, 4, 4));
  all.push_back(more_data(0, 8, 2));
  all.push_back(of_portals(PacketType::kPut, 0, 10, 4));
  all.push_back(more_data(kFlagCut, 4, 0));
  all.back().header.ni_fail_type = static_cast<std::uint8_t>(NiFail::kSegv);
  // The reply to a get, in two packets.
  all.push_back(of_portals(PacketType::kGet, 4, 12, 0));
  all.push_back(answer_to(4, NiFail::kOk, 12, 8));
  all.push_back(more_data(kFlagAnswerStream, 8, 4));
  all.push_back(with_atomic(of_portals(PacketType::kAtomic, 5, 8, 8), AtomicOperation::kSum, AtomicType::kInt32));
  all.push_back(answer_to(5, NiFail::kPermViolation, 0, 0));
  all.push_back(
      with_atomic(of_portals(PacketType::kFetchAtomic, 6, 8, 8), AtomicOperation::kBxor, AtomicType::kUint64));
  all.push_back(answer_to(6, NiFail::kOk, 8, 8));
  all.push_back(with_atomic(of_portals(PacketType::kSwap, 7, 8, kOperandBytes + 8), AtomicOperation::kCswapLe,
                            AtomicType::kDouble));
  all.push_back(answer_to(7, NiFail::kOk, 8, 8));
  all.push_back(with_atomic(of_portals(PacketType::kSwap, 8, 8, 8), AtomicOperation::kSwap, AtomicType::kInt64));
  all.push_back(answer_to(8, NiFail::kNoMatch, 0, 0));
  // Of libfabric.
  all.push_back(of_portals(PacketType::kPut, 0, 6, 6));
  all.back().header.interface_index = kFabricInterface;
  all.back().header.flags = kFlagTellsData | kFlagUnordered;
}

void add_tofu(std::vector<ExamplePacket>& all) {
  all.push_back(of_tofu(PacketType::kTofuPut, 0, 8, 8));
  all.push_back(of_tofu(PacketType::kTofuFault, 0, 0, 0));
  all.back().of_asker = false;
  all.back().header.ni_fail_type = static_cast<std::uint8_t>(NiFail::kBadStadd);
  all.back().header.remote_stadd += 8;
  all.push_back(of_tofu(PacketType::kTofuPut, 9, 64, 0));
  all.back().header.flags |= kFlagPlaced;
  all.push_back(answer_to(9, NiFail::kOk, 64, 0));
  all.push_back(of_tofu(PacketType::kTofuGet, 10, 4, 0));
  all.back().header.local_stadd = 0x10000000003000;
  all.push_back(answer_to(10, NiFail::kOk, 4, 4));
  all.push_back(with_atomic(of_tofu(PacketType::kTofuArmw, 11, 8, kOperandBytes + 8), AtomicOperation::kCswap,
                            AtomicType::kUint64));
  all.push_back(answer_to(11, NiFail::kOk, 8, 8));
  GateValue value;
  value.operation = ReduceOperation::kSum;
  value.item_count = 2;
  value.items = {3, 4};
  const auto bytes = bytes_of(value).first(gate_value_bytes(value));
  all.push_back(of_tofu(PacketType::kTofuGate, 0, bytes.size(), static_cast<std::uint32_t>(bytes.size())));
  all.back().payload.assign(bytes.begin(), bytes.end());
  all.push_back(of_tofu(PacketType::kTofuGate, 0, 0, 0));
  all.back().header.rounds_left = rounds_word(3, 2);
}

}  // namespace

Bytes whole(const ExamplePacket& packet) { return joined(bytes_of(packet.header), packet.payload); }

ExamplePacket example_put(std::uint32_t bytes) { return of_portals(PacketType::kPut, 0, bytes, bytes); }

std::vector<ExamplePacket> example_packets() {
  std::vector<ExamplePacket> all;
  add_portals(all);
  add_tofu(all);
  return all;
}

}  // namespace portofu::wireshark
