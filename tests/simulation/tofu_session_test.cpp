// Random plans of uTofu descriptors, most of them in session mode: pipelines, forks, joins, late descriptors, errors.

#include <gtest/gtest.h>

#include "tests/simulation/seed.h"
#include "tests/simulation/tofu_session.h"

namespace portofu::simulation {
namespace {

void run_plans(int plan_count, const SessionTaste& taste) {
  run_seeds(plan_count, [&](std::uint64_t seed) { return TofuSession(seed, taste).run(); });
}

/// Random plans are worth something only if what they are about comes up in them.
TEST(TofuPlan, Plans__hold_relays_forks_joins_and_errors) {
  std::size_t forwarded = 0, again = 0, forks = 0, stuck = 0, wrong = 0, lacking = 0;
  SimRandom random(test_seed());
  for (int i = 0; i < 100; ++i) {
    const TofuPlan plan(random, {});
    for (const PlannedMessage& message : plan.messages) {
      forwarded += message.forwards ? 1 : 0;
      again += message.forwards && message.sps > 0 && plan.vcqs[message.to].session ? 1 : 0;
      forks += message.is_good() && message.sps > 1 && plan.vcqs[message.to].session ? 1 : 0;
      stuck += message.starts ? 0 : 1;
      wrong += message.fault != PlannedFault::kNone ? 1 : 0;
    }
    for (const PlannedVcq& vcq : plan.vcqs) lacking += vcq.steps > vcq.messages.size() ? 1 : 0;
  }
  EXPECT_GT(forwarded, 100u);
  EXPECT_GT(again, 50u);
  EXPECT_GT(forks, 100u);
  EXPECT_GT(stuck, 50u);
  EXPECT_GT(wrong, 50u);
  EXPECT_GT(lacking, 20u);
}

TEST(TofuSession, Relays__forward_what_has_arrived) { run_plans(4000, {}); }

TEST(TofuSession, Long_plans__agree) { run_plans(400, {.message_count = 400, .most_processes = 5}); }

/// Pipelines and joins: a step a message, NOPs that swallow steps.
TEST(TofuSession, Joins__wait_for_all_of_their_sources) {
  run_plans(2000, {.message_count = 60, .session_percent = 75, .nop_percent = 45, .fault_percent = 0, .most_steps = 1});
}

TEST(TofuSession, Lossy_network__changes_nothing) {
  run_plans(400, {.lossy = true});
  run_plans(200, {.message_count = 60, .session_percent = 0, .fault_percent = 8, .late_percent = 0, .lossy = true});
}

/// By the kernel or by loads and stores, each refused now and then.
TEST(TofuSession, Memory_of_peers__is_used_in_the_order_that_is_promised) {
  run_plans(1500, {.fault_percent = 0, .shows_memory = true});
  run_plans(1000,
            {.message_count = 60, .session_percent = 0, .fault_percent = 0, .late_percent = 0, .shows_memory = true});
}

/// Only free mode: the same order and the same notices.
TEST(TofuSession, Free_mode__keeps_the_order_of_notices) {
  run_plans(1500, {.message_count = 60, .session_percent = 0, .fault_percent = 8, .late_percent = 0});
}

/// Messages that come long before the descriptors that they start; the guide allows 2000 lacking ones.
TEST(TofuSession, Late_descriptors__start_when_they_are_written) {
  run_plans(100, {.message_count = 700, .most_processes = 3, .nop_percent = 80, .most_steps = 15, .late_percent = 70});
  run_plans(40, {.message_count = 4000, .most_processes = 1, .nop_percent = 95, .most_steps = 15, .late_percent = 90});
}

}  // namespace
}  // namespace portofu::simulation
