#pragma once
// A start/end gate and a relay gate of one set, and other gates that are played by the test.

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/initiator/barrier.h"
#include "engine/initiator/circuit.h"
#include "engine/run/death.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/played_directory.h"

namespace portofu {

class BarrierTest : public CoreTest {
 protected:
  static constexpr GateValue kBarrier{};
  static constexpr std::uint32_t kSetting = 50;  ///< Of the stranger.
  static constexpr std::uint64_t kStranger = make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(3, 9, 0));

  BarrierTest() {
    directory.result = FindResult::kFound;
    core.tofu = std::make_unique<Tofu>(Coordinates{}, &directory);
    wire.room = FakeWire::kPlentyOfRoom;
    start = gate(0);
    relay = gate(16);
  }

  /// A gate of the set of gate 0.
  BarrierGate* gate(std::uint32_t index) {
    const auto id = [](std::uint32_t at) { return make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(0, at, 0)); };
    BarrierGate* made = core.tofu->claim_gate(id(index));
    made->set_id = id(0);
    return made;
  }

  /// The start/end gate signals to a relay gate that waits for packets of a stranger, and that signals back.
  void connect_through_stranger() {
    configure_gate(core, *start, {.local_source = relay->id, .local_target = relay->id});
    configure_gate(core, *relay, {.local_source = start->id, .remote_source = kStranger, .local_target = start->id});
  }

  /// The relay passes packets of a gate of kPeer on to another one there.
  void connect_to_peer() {
    configure_gate(core, *relay, {.remote_source = kStranger, .remote_target = kStranger + 256});
    wire.sent.clear();
  }

  static GateValue value(ReduceOperation operation, std::initializer_list<std::uint64_t> items) {
    GateValue made;
    made.operation = operation;
    made.item_count = static_cast<std::uint8_t>(items.size());
    std::copy(items.begin(), items.end(), made.items.begin());
    return made;
  }

  void receive_value(const GateValue& made, std::uint64_t source = kStranger) {
    receive_bytes(made, gate_value_bytes(made), source);
  }
  void receive_of_setting(std::uint32_t setting) { receive_round(setting, ++rounds[{kStranger, setting}]); }

  void receive_round(std::uint32_t setting, std::uint32_t round) {
    GateValue made = kBarrier;
    made.setting = round;
    const auto* const from = reinterpret_cast<const std::byte*>(&made);
    PacketHeader header = header_of(kLeastGateBytes, kStranger);
    header.gate_setting = setting;
    receive(header, std::vector<std::byte>(from, from + kLeastGateBytes));
    run();
  }

  void receive_end(std::uint64_t word, std::uint64_t source = kStranger, std::uint32_t setting = kSetting) {
    PacketHeader header = header_of(0, source);
    header.rounds_left = word;
    header.gate_setting = setting;
    receive(header, std::vector<std::byte>{});
    run();
  }

  /// A packet with the first `bytes` bytes of a value.
  void receive_bytes(GateValue made, std::size_t bytes, std::uint64_t source = kStranger) {
    made.setting = ++rounds[{source, kSetting}];
    const auto* const from = reinterpret_cast<const std::byte*>(&made);
    std::vector<std::byte> payload(from, from + std::min(bytes, sizeof made));
    payload.resize(bytes);
    receive(header_of(bytes, source), payload);
    run();
  }

  PacketHeader header_of(std::size_t bytes, std::uint64_t source) const {
    PacketHeader header{};
    header.type = PacketType::kTofuGate;
    header.interface_index = kTofuInterface;
    header.initiator_rank = queue_number(relay->id);
    header.hdr_data = source;
    header.gate_setting = kSetting;
    header.length = header.payload_bytes = static_cast<std::uint32_t>(bytes);
    header.uid = kPeerUid;
    header.job_key = kJobKey;
    return header;
  }

  void run() {
    while (run_cycle_on_duty(core) > 0) {
    }
  }

  ~BarrierTest() override {
    run();
    core.tofu.reset();
  }

  PlayedDirectory directory;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> rounds;  ///< Last one of a source in a setting.
  BarrierGate* start = nullptr;
  BarrierGate* relay = nullptr;
};

}  // namespace portofu
