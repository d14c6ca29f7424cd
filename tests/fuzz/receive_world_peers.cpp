// What peers send: requests and answers that are right, almost right, wrong, early, late, twice, or never finished.

#include <algorithm>

#include "engine/atomic/atomic_unit.h"
#include "engine/run/dispatch.h"
#include "engine/run/loop.h"
#include "tests/fuzz/receive_world.h"

namespace portofu::fuzz {
namespace {

constexpr std::uint64_t kPacketBytes = FakeWire::kMaxPayloadBytes;

std::uint32_t in_one_packet(std::uint64_t bytes) { return static_cast<std::uint32_t>(std::min(bytes, kPacketBytes)); }

}  // namespace

/// A payload is exactly as long as its header says, so that a sanitizer sees who reads more.
void ReceiveWorld::receive(ProcessId source, const PacketHeader& header) {
  const std::vector<std::byte> payload(header.payload_bytes, static_cast<std::byte>(input_.byte()));
  receive(source, header, payload);
}

void ReceiveWorld::receive(ProcessId source, const PacketHeader& header, std::span<const std::byte> payload) {
  Packet packet;
  packet.source = source;
  packet.header = header;
  packet.payload = payload.data();
  if (may_be_lent(header.type) && payload_place_ != PayloadPlace::kHere) {
    packet.payload = payload_place_ == PayloadPlace::kPlaced ? Payload::placed_by(peers_memory_)
                                                             : Payload::in_memory_of(peers_memory_, payload.data());
  }
  packet.source_context = wire_.context_of(source);
  receive_packet(core_, packet);
}

/// Makes a header wrong now and then. What the wire itself vouches for stays right.
void ReceiveWorld::spoil(PacketHeader& header) {
  if (!input_.once_in(8)) return;
  switch (input_.below(14)) {
    case 0: header.type = static_cast<PacketType>(input_.byte()); break;
    case 1: header.flags = input_.byte(); break;
    case 2: header.interface_index = input_.byte(); break;
    case 3: header.ni_fail_type = input_.byte(); break;
    case 4: header.pt_index = input_.raw<std::uint16_t>(); break;
    case 5: header.atomic_operation = input_.byte(); break;
    case 6: header.atomic_type = input_.byte(); break;
    case 7: header.payload_bytes = in_one_packet(input_.length()); break;
    case 8: header.operation_id = input_.raw<std::uint32_t>(); break;
    case 9: header.remote_offset = input_.raw<std::uint64_t>(); break;
    case 10: header.length = input_.raw<std::uint64_t>(); break;
    case 11: header.uid = input_.raw<std::uint32_t>(); break;
    case 12: header.job_key = input_.raw<std::uint32_t>(); break;
    default: header.payload_bytes = 0; break;
  }
}

PacketHeader ReceiveWorld::request_header(PacketType type) {
  PacketHeader header{};
  header.type = type;
  header.flags = input_.once_in(2) ? kFlagAnswerWanted : 0;
  const Interface* ni = any_interface();
  header.interface_index = static_cast<std::uint8_t>(ni != nullptr ? ni->index : 0);
  header.pt_index = static_cast<std::uint16_t>(input_.below(kPortals));
  header.operation_id = input_.byte();
  header.match_bits = input_.below(4);
  header.remote_offset = input_.once_in(4) ? input_.below(200) : 0;
  header.length = input_.length();
  header.initiator_rank = input_.below(4);
  header.uid = input_.below(8);
  header.job_key = core_.settings.job_key;
  return header;
}

void ReceiveWorld::receive_put_packet() {
  PacketHeader header = request_header(PacketType::kPut);
  header.payload_bytes = in_one_packet(header.length);
  spoil(header);
  receive(source(), header);
}

void ReceiveWorld::receive_request_packet() {
  constexpr std::array<PacketType, 4> kTypes{PacketType::kGet, PacketType::kAtomic, PacketType::kFetchAtomic,
                                             PacketType::kSwap};
  PacketHeader header = request_header(input_.one_of(kTypes));
  if (header.type != PacketType::kAtomic) header.flags = kFlagAnswerWanted;
  if (header.type != PacketType::kGet) {
    const bool swaps = header.type == PacketType::kSwap;
    header.atomic_operation =
        static_cast<std::uint8_t>(atomic_operation_at(swaps ? 11 + input_.below(8) : input_.below(11)));
    header.atomic_type = static_cast<std::uint8_t>(atomic_type_at(input_.below(kAtomicTypeCount)));
    const std::uint32_t item = atomic_type_bytes(static_cast<AtomicType>(header.atomic_type));
    header.length = item * (input_.once_in(16) ? 128 : input_.below(4));
    const bool has_operand = swaps && header.atomic_operation != static_cast<std::uint8_t>(AtomicOperation::kSwap);
    header.payload_bytes = in_one_packet(header.length + (has_operand ? kOperandBytes : 0));
  }
  spoil(header);
  receive(source(), header);
}

/// More of the message that is arriving, if one is.
void ReceiveWorld::receive_next_data() {
  const ProcessId from = source();
  const Arrival& arrival = core_.peer(from).request_stream;
  PacketHeader header{};
  header.type = PacketType::kData;
  header.job_key = core_.settings.job_key;
  header.payload_bytes = in_one_packet(arrival.header.length - arrival.received);
  if (input_.once_in(8)) {
    header.flags = kFlagCut;
    header.ni_fail_type = static_cast<std::uint8_t>(input_.below(kNiFailCount));
    header.payload_bytes = 0;
  }
  spoil(header);
  receive(from, header);
}

void ReceiveWorld::receive_answer_packet() {
  PacketHeader header{};
  header.type = PacketType::kAnswer;
  header.job_key = core_.settings.job_key;
  ProcessId from = source();
  if (!asked_.empty()) {
    const Asked& asked = asked_[input_.below(asked_.size())];
    from = input_.once_in(16) ? from : asked.target;
    header.operation_id = asked.operation_id;
    header.length = input_.once_in(4) ? input_.length() : asked.length;
    header.payload_bytes = asked.wants_data ? in_one_packet(header.length) : 0;
  } else {
    // An operation whose request has not even left: a peer that lies can guess its number.
    core_.outstanding.for_each([&](std::uint32_t id, const OutstandingOperation& operation) {
      header.operation_id = id;
      from = operation.peer->id;
    });
  }
  constexpr std::array<std::uint8_t, 4> kFlags{0, kFlagSilent, kFlagOverflowList, kFlagSilent | kFlagOverflowList};
  header.flags = input_.one_of(kFlags);
  if (input_.once_in(4)) header.ni_fail_type = static_cast<std::uint8_t>(input_.below(kTofuNiFailCount));
  spoil(header);
  receive(from, header);
}

/// More of the answer that is arriving, if one is.
void ReceiveWorld::receive_next_answer_data() {
  const ProcessId from = source();
  const Arrival& arrival = core_.peer(from).answer_stream;
  PacketHeader header{};
  header.type = PacketType::kData;
  header.flags = kFlagAnswerStream;
  header.job_key = core_.settings.job_key;
  header.payload_bytes = in_one_packet(arrival.header.length - arrival.received);
  if (input_.once_in(8)) {
    header.flags |= kFlagCut;
    header.payload_bytes = 0;
  }
  spoil(header);
  receive(from, header);
}

/// Nothing about it is right, except by chance.
void ReceiveWorld::receive_raw_packet() {
  PacketHeader header{};
  header.type = static_cast<PacketType>(input_.below(14));
  header.flags = input_.byte();
  header.interface_index = input_.byte();
  header.ni_fail_type = input_.byte();
  header.pt_index = input_.raw<std::uint16_t>();
  header.atomic_operation = input_.byte();
  header.atomic_type = input_.byte();
  header.payload_bytes = in_one_packet(input_.length());
  header.operation_id = input_.raw<std::uint32_t>();
  header.match_bits = input_.raw<std::uint64_t>();
  header.remote_offset = input_.raw<std::uint64_t>();
  header.length = input_.raw<std::uint64_t>();
  header.initiator_rank = input_.raw<std::uint32_t>();
  header.uid = input_.raw<std::uint32_t>();
  header.job_key = core_.settings.job_key;
  receive(source(), header);
}

/// Without a packet; often of what was asked of another peer, or of nobody. From now on we may do the same.
void ReceiveWorld::receive_acknowledgement() {
  const bool known = !asked_.empty() && !input_.once_in(8);
  wire_.acks.push_back(known ? asked_[input_.below(asked_.size())].operation_id : input_.raw<std::uint32_t>());
  wire_.acknowledges = input_.once_in(2);
}

void ReceiveWorld::cycle() { run_cycle_on_duty(core_); }

void ReceiveWorld::timers() {
  now_ns_ += kConnectTimeoutNs / 2;
  run_timers_on_duty(core_);
}

void ReceiveWorld::change_room() {
  constexpr std::array<std::uint32_t, 6> kRooms{0, 0, 1, 2, 5, FakeWire::kPlentyOfRoom};
  (input_.once_in(3) ? loopback_ : wire_).room = input_.one_of(kRooms);
}

void ReceiveWorld::change_connect() {
  constexpr std::array<ConnectResult, 6> kResults{ConnectResult::kConnected,  ConnectResult::kConnected,
                                                  ConnectResult::kConnected,  ConnectResult::kInProgress,
                                                  ConnectResult::kNoSuchPeer, ConnectResult::kRefused};
  wire_.connect_result = input_.one_of(kResults);
}

/// Peers lend their payloads, or say that they are in place already; the wire reads late.
void ReceiveWorld::change_copies() {
  payload_place_ = static_cast<PayloadPlace>(input_.below(kPayloadPlaces));
  peers_memory_.is_readable = payload_place_ != PayloadPlace::kUnreadable;
  peers_memory_.is_there = input_.once_in(2);
  wire_.reads_later = input_.once_in(2);
  wire_.unread = input_.once_in(2) ? input_.byte() : 0;
}

/// A peer dies; the engine finds out now, or when it looks.
void ReceiveWorld::kill_peer() {
  const ProcessId peer = kSources[1 + input_.below(kSourceCount - 1)];
  wire_.kill(peer);
  if (input_.once_in(2)) run_timers_on_duty(core_);
}

/// The way from a peer to us ends; the way to it does not.
void ReceiveWorld::lose_source() {
  const ProcessId from = source();
  wire_.close_source(from);
  run_timers_on_duty(core_);
}

}  // namespace portofu::fuzz
