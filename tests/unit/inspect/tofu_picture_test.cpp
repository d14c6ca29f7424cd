#include "engine/inspect/core_picture.h"

#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

TEST(TofuPicture, Queues_and_gates__are_seen) {
  OwnMemory own;
  Tofu tofu({1, 2, 3, 0, 0, 0}, nullptr);
  ControlQueue* const cq = tofu.claim_queue(0, 1, CqMode::kSession);
  ASSERT_NE(cq, nullptr);
  cq->vcqs[0] = std::make_unique<VirtualControlQueue>(16, 8);
  VirtualControlQueue& vcq = *cq->vcqs[0];
  vcq.id = 77;
  vcq.session = true;
  ASSERT_TRUE(tofu.enter(vcq));
  FiredOperations fired;
  auto* operation = new TriggeredOperation;
  operation->threshold = 2;
  vcq.steps.add_success_on_duty(1, fired);
  vcq.steps.add_triggered_on_duty(operation, fired);
  vcq.mrq.post(Notice{});
  vcq.last_failed = {NiFail::kBadStadd, true, 5, 6, 7};
  const std::uint64_t gate_id = make_tofu_id(TofuIdKind::kVbg, tofu.coordinates, make_queue_number(0, 5, 0));
  BarrierGate* const gate = tofu.claim_gate(gate_id);
  ASSERT_NE(gate, nullptr);
  gate->remote_source = 99;
  gate->rounds.signal_counted = true;
  gate->state = BarrierState::kRunning;
  gate->rounds.packets.push_back(GateValue());
  tofu.ownerless[123].emplace_back();

  CorePicture seen;
  look_at_tofu(*own, &tofu, &seen);
  ASSERT_EQ(seen.vcqs.size(), 1u);
  EXPECT_EQ(seen.vcqs[0].id, 77u);
  EXPECT_TRUE(seen.vcqs[0].session);
  EXPECT_EQ(seen.vcqs[0].steps, 1u);
  ASSERT_EQ(seen.vcqs[0].waiting.items.size(), 1u);
  EXPECT_EQ(seen.vcqs[0].waiting.items[0].threshold, 2u);
  EXPECT_EQ(seen.vcqs[0].mrq_unread, 1u);
  EXPECT_EQ(seen.vcqs[0].last_failed.fail, NiFail::kBadStadd);
  EXPECT_EQ(seen.vcqs[0].last_failed.stadd, 6u);
  EXPECT_EQ(seen.vcqs[0].mrq_entries, 8u);
  EXPECT_EQ(seen.vcqs[0].tcq_entries, 16u);
  ASSERT_EQ(seen.gates.size(), 1u);
  EXPECT_EQ(seen.gates[0].remote_source, 99u);
  EXPECT_TRUE(seen.gates[0].started);
  EXPECT_TRUE(seen.gates[0].has_signal);
  EXPECT_FALSE(seen.gates[0].has_packet);
  EXPECT_FALSE(seen.gates[0].holds_packets);
  ASSERT_EQ(seen.ownerless.size(), 1u);
  EXPECT_EQ(seen.ownerless[0].key, 123u);
  EXPECT_EQ(seen.ownerless[0].requests, 1u);
  gate->source.asks = true;
  CorePicture asking;
  look_at_tofu(*own, &tofu, &asking);
  EXPECT_TRUE(asking.gates.at(0).holds_packets);

  CorePicture quick;
  look_at_tofu(*own, &tofu, &quick, Depth::kQueues);
  ASSERT_EQ(quick.vcqs.size(), 1u);
  EXPECT_EQ(quick.vcqs[0].mrq_unread, 1u);
  EXPECT_TRUE(quick.vcqs[0].waiting.items.empty());
  EXPECT_TRUE(quick.gates.empty());

  const auto progress = [&own, &tofu] {
    CorePicture look;
    look_at_tofu(*own, &tofu, &look);
    return std::pair(look.vcqs.at(0).tcq_progress, look.vcqs.at(0).mrq_progress);
  };
  const auto before = progress();
  EXPECT_EQ(before, progress());
  Notice notice;
  ASSERT_TRUE(vcq.read_notice(&notice));
  EXPECT_NE(before.second, progress().second);
  EXPECT_EQ(before.first, progress().first);
  vcq.tcq.take_done(nullptr);
  const std::uint64_t taken = progress().first;
  EXPECT_NE(before.first, taken);
  void* data = nullptr;
  NiFail fail = NiFail::kOk;
  ASSERT_TRUE(vcq.tcq.read(&data, &fail));
  EXPECT_NE(taken, progress().first);
}

}  // namespace
}  // namespace portofu
