#include "engine/core/polled_objects.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace portofu {
namespace {

std::uint64_t looks_at(const PolledObjects& polled, WaitKind kind, std::uint64_t object) {
  const auto found = std::ranges::find_if(
      polled.places(), [&](const PolledObject& place) { return place.kind == kind && place.object == object; });
  return found != polled.places().end() ? found->looks : 0;
}

TEST(PolledObjects, Looks__of_a_loop_over_several_objects_are_counted_for_each) {
  PolledObjects polled;
  for (std::uint32_t round = 0; round < 10 * PolledObjects::kPeriod; ++round) {
    polled.note(WaitKind::kTcq, 9);
    polled.note(WaitKind::kMrq, 9);
    polled.note(WaitKind::kMrq, 10);
    polled.note(WaitKind::kCounters, 11);
  }
  EXPECT_EQ(looks_at(polled, WaitKind::kTcq, 9), 10u);
  EXPECT_EQ(looks_at(polled, WaitKind::kMrq, 9), 10u);
  EXPECT_EQ(looks_at(polled, WaitKind::kMrq, 10), 10u);
  EXPECT_EQ(looks_at(polled, WaitKind::kCounters, 11), 10u);
  EXPECT_EQ(looks_at(polled, WaitKind::kGate, 9), 0u);
}

TEST(PolledObjects, Looks__after_a_rest_are_counted_for_each_object) {
  PolledObjects polled;
  for (int turn = 0; turn < 3; ++turn) {
    polled.note_next();
    polled.note(WaitKind::kEventQueue, 9);
    polled.note(WaitKind::kCounters, 11);
  }
  EXPECT_EQ(looks_at(polled, WaitKind::kEventQueue, 9), 3u);
  EXPECT_EQ(looks_at(polled, WaitKind::kCounters, 11), 3u);
  for (std::uint32_t look = 0; look < PolledObjects::kPlaces; ++look) polled.note(WaitKind::kMrq, 9);
  const std::uint64_t before = looks_at(polled, WaitKind::kMrq, 9);
  for (std::uint32_t look = 0; look < PolledObjects::kPeriod; ++look) polled.note(WaitKind::kMrq, 9);
  EXPECT_EQ(looks_at(polled, WaitKind::kMrq, 9), before + 1) << "no longer a loop that rests";
}

TEST(PolledObjects, Wait__is_counted_each_time_and_no_look_of_a_loop_for_it) {
  PolledObjects polled;
  for (int i = 0; i < 3; ++i) polled.note_at_once(WaitKind::kCounters, 11);
  EXPECT_EQ(looks_at(polled, WaitKind::kCounters, 11), 3u);
  for (std::uint32_t look = 0; look < PolledObjects::kPeriod; ++look) polled.note(WaitKind::kMrq, 9);
  EXPECT_EQ(looks_at(polled, WaitKind::kMrq, 9), 1u);
}

TEST(PolledObjects, Place__goes_to_who_looked_last) {
  PolledObjects polled;
  for (std::uint64_t object = 0; object < 1000 * PolledObjects::kPeriod; ++object)
    polled.note(WaitKind::kCounters, object);
  EXPECT_EQ(looks_at(polled, WaitKind::kCounters, 1000 * PolledObjects::kPeriod - 1), 1u);
}

}  // namespace
}  // namespace portofu
