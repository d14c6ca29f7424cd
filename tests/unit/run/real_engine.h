#pragma once
// An engine of this node, as the C libraries open it, with an interface and an MD.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/config/settings.h"
#include "engine/queue/clock.h"
#include "engine/run/engine.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {

class RealEngine {
 public:
  /// Of this node only. @param has_thread  whether it has a progress thread
  static Settings settings(bool has_thread) {
    Settings settings;
    settings.fabric = static_cast<std::uint32_t>(FabricUse::kOff);
    settings.progress_thread = has_thread ? 1 : 0;
    return settings;
  }

  /// @return nullptr if the PID is taken
  static std::unique_ptr<Engine> open(const Settings& settings, std::uint32_t pid = 0) {
    OpenError error = OpenError::kNone;
    std::string why;
    std::unique_ptr<Engine> opened = Engine::open(settings, pid, &error, &why);
    EXPECT_TRUE(opened != nullptr || error == OpenError::kPidInUse) << why;
    return opened;
  }

  explicit RealEngine(const Settings& settings) : engine_(open(settings)) {
    const Engine::Duty duty(*engine_);
    duty.core().interfaces[kIndex] = std::make_unique<Interface>(kIndex, kDefaultLimits);
    Handle handle = 0;
    md_ = duty.core().interface(kIndex)->mds.allocate(&handle);
    md_->segment.describe(memory_.data(), memory_.size());
    md_->handle = handle;
  }

  Engine* operator->() const { return engine_.get(); }
  Engine& operator*() const { return *engine_; }

  /// Asks an engine for bytes.
  void get_from(const Engine& target) {
    Descriptor d = message(PacketType::kGet, target);
    const Engine::Duty duty(*engine_);
    engine_->post_on_duty(d);
  }

  /// Puts bytes to an engine, and counts SEND.
  /// @return the counter
  Handle put_to(const Engine& target) {
    Descriptor d = message(PacketType::kPut, target);
    const Engine::Duty duty(*engine_);
    if (md_->ct_handle == 0) duty.core().interface(kIndex)->cts.allocate(&md_->ct_handle);
    md_->options |= kMdEventCtSend;
    engine_->post_on_duty(d);
    return md_->ct_handle;
  }
  std::uint64_t successes(Handle ct_handle) const {
    const Engine::Duty duty(*engine_);
    return duty.core().interface(kIndex)->cts.find(ct_handle)->success();
  }

  /// Whether all that was asked for is answered.
  bool is_answered_on_duty() const { return md_->pending == 0; }
  bool is_answered_now() const {
    const Engine::Duty duty(*engine_);
    return is_answered_on_duty();
  }
  /// @return whether all that was asked for is answered before the time is over
  bool is_answered(std::uint64_t timeout_ns) {
    auto done = [this](Core&) { return is_answered_on_duty(); };
    return engine_->wait(done, timeout_ns) == WaitResult::kReached;
  }

  std::uint64_t counted(Counter counter) const {
    const Engine::Duty duty(*engine_);
    return duty.core().counters.get(counter);
  }
  bool has_interface() const {
    const Engine::Duty duty(*engine_);
    return duty.core().interface(kIndex) != nullptr;
  }

 private:
  static constexpr std::uint32_t kIndex = kMatchingPhysical;

  Descriptor message(PacketType type, const Engine& target) const {
    Descriptor d;
    d.type = type;
    d.interface_index = kIndex;
    d.portals.md_handle = md_->handle;
    d.portals.target = target.self();
    d.length = memory_.size();
    return d;
  }

  std::array<std::byte, 8> memory_{};
  std::unique_ptr<Engine> engine_;
  MemoryDescriptor* md_ = nullptr;
};

}  // namespace portofu
