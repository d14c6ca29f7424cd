#pragma once
// An engine of this node whose time is the test's: the only rank of a job that the test orders.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

#include "engine/run/virtual_nic.h"
#include "tests/unit/run/real_engine.h"
#include "tests/unit/support/virtual_job.h"

namespace portofu {

struct VirtualEngineTest : testing::Test {
  void SetUp() override { setenv("PMI_RANK", "0", 1); }
  void TearDown() override { unsetenv("PMI_RANK"); }

  Settings settings() const {
    Settings settings = RealEngine::settings(false);
    settings.sim = job.path();
    settings.direct = 0;
    return settings;
  }
  /// Closes an engine whose rank waits for its last turn.
  void close(std::unique_ptr<RealEngine>& engine) {
    std::thread coordinator([this] {
      if (job.await(VirtualState::kLeaving)) job.grant(job.page().clock_ps.load());
    });
    leave_virtual_time();
    coordinator.join();
    engine.reset();
  }

  /// Hands the NIC what the engine has sent itself last: the report of that number.
  void deliver(std::uint32_t number, std::uint64_t time_ps) {
    ASSERT_EQ(job.page().reports_given.load(), number + 1);
    const VirtualReport sent = job.page().reports[number];
    job.page().reports_taken.store(number + 1);
    job.deliver({sent.number, time_ps, sent.nid, sent.pid, 0, 0, 0});
    ASSERT_TRUE(job.has_taken_all());
  }

  VirtualJob job{1};
};

}  // namespace portofu
