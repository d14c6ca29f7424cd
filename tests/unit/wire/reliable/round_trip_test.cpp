// Tests of engine/wire/reliable/round_trip.h and liveness.h: what is concluded from times.

#include "engine/wire/reliable/round_trip.h"

#include <gtest/gtest.h>

#include "engine/wire/reliable/liveness.h"

namespace portofu {
namespace {

TEST(RoundTrip, Timeout__follows_what_was_measured) {
  RoundTrip round_trip;
  EXPECT_EQ(round_trip.timeout_ns(1), RoundTrip::kFirstTimeoutNs);
  for (int i = 0; i < 100; ++i) round_trip.measured(2'000'000);
  EXPECT_NEAR(static_cast<double>(round_trip.timeout_ns(1)), 2e6, 1e4);
  for (int i = 0; i < 100; ++i) round_trip.measured(i % 2 == 0 ? 1'000'000 : 3'000'000);
  EXPECT_GT(round_trip.timeout_ns(1), 4'000'000u) << "what varies is given more time";
}

TEST(RoundTrip, Timeout__doubles_and_has_bounds) {
  RoundTrip round_trip;
  round_trip.measured(1000);
  EXPECT_EQ(round_trip.timeout_ns(1), RoundTrip::kMinTimeoutNs);
  EXPECT_EQ(round_trip.timeout_ns(3), 4 * RoundTrip::kMinTimeoutNs);
  EXPECT_LE(round_trip.timeout_ns(1000), RoundTrip::kMaxTimeoutNs);
  RoundTrip slow;
  slow.measured(60'000'000'000);
  EXPECT_EQ(slow.timeout_ns(1), RoundTrip::kMaxTimeoutNs);
}

TEST(RoundTrip, Peer_that_stood_still__does_not_make_the_sender_patient) {
  RoundTrip round_trip;
  for (int i = 0; i < 20; ++i) round_trip.measured(1'000'000);
  const std::uint64_t before = round_trip.timeout_ns(1);
  round_trip.measured(5'000'000'000);
  EXPECT_EQ(round_trip.timeout_ns(1), before);
  round_trip.measured(RoundTrip::kMaxTimeoutNs);
  EXPECT_GT(round_trip.timeout_ns(1), before) << "so long a way is possible";
}

TEST(Liveness, Silence__counts_from_the_first_question_that_was_not_answered) {
  Liveness liveness;
  liveness.heard(100);
  EXPECT_EQ(liveness.silence_ns(1000), 0u) << "nobody has asked";
  liveness.asked(200);
  liveness.asked(300);
  EXPECT_EQ(liveness.silence_ns(1000), 800u);
  liveness.heard(900);
  EXPECT_EQ(liveness.silence_ns(1000), 0u);
}

TEST(Liveness, Unreachable__is_believed_when_it_is_said_again_later) {
  Liveness liveness;
  liveness.heard(1);
  EXPECT_FALSE(liveness.told_unreachable(1000));
  EXPECT_FALSE(liveness.told_unreachable(1001)) << "perhaps of an earlier life";
  EXPECT_TRUE(liveness.is_suspected(1001));
  EXPECT_TRUE(liveness.told_unreachable(1000 + Liveness::kConfirmNs));
}

TEST(Liveness, Unreachable__is_believed_at_once_if_it_was_found_out_after_the_process_was_met) {
  Liveness liveness;
  liveness.heard(1);
  EXPECT_FALSE(liveness.told_unreachable(1000, 900)) << "it may not have begun";
  liveness.met(2000);
  liveness.heard(3000);
  EXPECT_FALSE(liveness.told_unreachable(3001, 900)) << "it had not begun then";
  EXPECT_FALSE(liveness.told_unreachable(3001, 4000)) << "we have not sent that yet";
  EXPECT_FALSE(liveness.told_unreachable(3001, 0)) << "nobody knows when";
  liveness.met(3500);
  EXPECT_TRUE(liveness.told_unreachable(4000, 2001));
}

TEST(Liveness, Nobody_there__is_believed_when_nobody_answers_for_a_while_after_fresh_news) {
  Liveness liveness;
  liveness.heard(1000);
  liveness.told_unreachable(2000, 999);
  EXPECT_FALSE(liveness.is_nobody_there(2000 + Liveness::kConfirmNs)) << "news of before";
  liveness.told_unreachable(3000, 1000);
  EXPECT_FALSE(liveness.is_nobody_there(2999 + Liveness::kConfirmNs));
  EXPECT_TRUE(liveness.is_nobody_there(3000 + Liveness::kConfirmNs));
  liveness.heard(4000);
  EXPECT_FALSE(liveness.is_nobody_there(4000 + Liveness::kConfirmNs)) << "somebody has answered";
}

TEST(Liveness, Unreachable__is_forgotten_when_something_is_heard_or_with_time) {
  Liveness liveness;
  EXPECT_FALSE(liveness.told_unreachable(1000));
  liveness.heard(2000);
  EXPECT_FALSE(liveness.told_unreachable(1000 + Liveness::kConfirmNs));
  EXPECT_FALSE(liveness.told_unreachable(10 * Liveness::kSuspicionNs)) << "long after the first word";
}

TEST(Liveness, Pardon__lets_waiting_begin_anew) {
  Liveness liveness;
  liveness.asked(1);
  liveness.pardon(1000);
  EXPECT_EQ(liveness.silence_ns(1500), 500u);
}

}  // namespace
}  // namespace portofu
