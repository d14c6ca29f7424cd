#pragma once
// An engine over played wires and a played clock, with an interface, an MD and a counter. The clock moves on by itself
// with every look, so that whatever waits for time ends without waiting.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "engine/run/engine.h"
#include "engine/target/close_interface.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {

class EngineFixture : public testing::Test {
 protected:
  static constexpr ProcessId kSelf{1, 1};
  static constexpr ProcessId kPeer{1, 2};
  static constexpr std::uint32_t kIndex = kMatchingPhysical;
  static constexpr std::uint64_t kSecondNs = 1'000'000'000;

  EngineFixture() {
    settings.spin_count = 4;
    settings.sleep_after_us = 10'000'000;  // Far beyond every timeout of these tests: nobody sleeps.
    settings.window_operations = 4;
    open();
  }
  ~EngineFixture() override {
    if (engine != nullptr) close();
  }

  void open() {
    engine = std::make_unique<Engine>(settings, kSelf, 1000, Engine::World{{&loopback, &wire}, read_clock, this});
    const Engine::Duty duty(*engine);
    duty.core().interfaces[kIndex] = std::make_unique<Interface>(kIndex, kDefaultLimits);
    Interface& ni = *duty.core().interface(kIndex);
    Handle handle = 0;
    md = ni.mds.allocate(&handle);
    md->segment.describe(memory.data(), memory.size());
    md->handle = handle;
    ni.cts.allocate(&ct)->reset_on_duty();
  }
  void close() {
    {
      const Engine::Duty duty(*engine);
      close_interface_on_duty(duty.core(), kIndex);
    }
    engine.reset();
  }

  Descriptor put(std::uint64_t length = 8) const {
    Descriptor d;
    d.interface_index = kIndex;
    d.portals.md_handle = md->handle;
    d.portals.target = kPeer;
    d.length = length;
    return d;
  }
  Descriptor get(std::uint64_t length = 8) const {
    Descriptor d = put(length);
    d.type = PacketType::kGet;
    return d;
  }
  Descriptor increment() const {
    Descriptor d;
    d.type = PacketType::kCountIncrement;
    d.interface_index = kIndex;
    d.count = {ct, false, 1, 0};
    return d;
  }
  void post(const Descriptor& posted) {
    Descriptor descriptor = posted;
    const Engine::Duty duty(*engine);
    engine->post_on_duty(descriptor);
  }
  void arrive_answer() {
    PacketHeader header{};
    header.type = PacketType::kAnswer;
    header.operation_id = wire.take().header.operation_id;
    wire.arrive({kPeer, header, {}});
  }
  std::uint32_t pending() {
    const Engine::Duty duty(*engine);
    return md->pending;
  }
  std::uint64_t counted(Counter counter) {
    const Engine::Duty duty(*engine);
    return duty.core().counters.get(counter);
  }

  static std::uint64_t read_clock(void* context) {
    auto* test = static_cast<EngineFixture*>(context);
    while (test->clock_hangs) {
      test->somebody_hangs = true;
      std::this_thread::yield();
    }
    return test->now_ns.fetch_add(test->clock_step_ns);
  }

  std::atomic<std::uint64_t> now_ns{1};
  std::uint64_t clock_step_ns = 1'000'000;
  std::atomic<bool> clock_hangs{false};  ///< Whoever reads it meanwhile does not come back.
  std::atomic<bool> somebody_hangs{false};
  FakeWire loopback;
  FakeWire wire;
  Settings settings;
  std::vector<std::byte> memory = std::vector<std::byte>(64 * FakeWire::kMaxPayloadBytes);
  std::unique_ptr<Engine> engine;
  MemoryDescriptor* md = nullptr;
  Handle ct = 0;
};

}  // namespace portofu
