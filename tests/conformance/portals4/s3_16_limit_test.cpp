// Portals 4.3, 3.6.1 and 3.16: max_triggered_ops, "Maximum number of triggered operations that can be outstanding": of
// an interface, whatever counter they wait for and whatever they do; beyond it PTL_NO_SPACE, at once.
#include <chrono>

#include "../harness/fixture.h"

using namespace conformance;

namespace {

constexpr int kLimit = 16;

ptl_ni_limits_t few_triggered() {
  ptl_ni_limits_t limits = generous_limits();
  limits.max_triggered_ops = kLimit;
  return limits;
}

/// An interface on which only so many operations can wait, with what the operations need.
struct Scene {
  explicit Scene(Process& self, unsigned int options = kMatching)
      : wanted(few_triggered()), ni(self, options, &wanted), ends(ni), trigger(alloc_ct(ni)), counter(alloc_ct(ni)) {
    if (ni.limits().max_triggered_ops != kLimit) self.skip("the limit is not what was asked for");
  }

  /// One of the seven kinds of triggered operations; numbers beyond them begin anew.
  int arm(int kind, ptl_handle_ct_t ct, ptl_size_t threshold) const {
    const ptl_process_t to = ni.target();
    const auto sum = PTL_SUM;
    const auto type = PTL_INT64_T;
    switch (kind % 7) {
      case 0: return PtlTriggeredPut(ends.md, 0, 8, PTL_NO_ACK_REQ, to, kPt, 0, 0, nullptr, 0, ct, threshold);
      case 1: return PtlTriggeredGet(ends.md, 0, 8, to, kPt, 0, 0, nullptr, ct, threshold);
      case 2:
        return PtlTriggeredAtomic(ends.md, 0, 8, PTL_NO_ACK_REQ, to, kPt, 0, 0, nullptr, 0, sum, type, ct, threshold);
      case 3:
        return PtlTriggeredFetchAtomic(ends.md, 64, ends.md, 0, 8, to, kPt, 0, 0, nullptr, 0, sum, type, ct, threshold);
      case 4:
        return PtlTriggeredSwap(ends.md, 64, ends.md, 0, 8, to, kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, type, ct,
                                threshold);
      case 5: return PtlTriggeredCTInc(counter, {1, 0}, ct, threshold);
      default: return PtlTriggeredCTSet(counter, {1, 0}, ct, threshold);
    }
  }

  void expect_full() const {
    for (int kind = 0; kind < 7; ++kind) EXPECT_RC(arm(kind, trigger, 1000), PTL_NO_SPACE) << "kind " << kind;
  }

  ptl_ni_limits_t wanted;
  Ni ni;
  Ends ends;
  ptl_handle_ct_t trigger;
  ptl_handle_ct_t counter;
};

}  // namespace

// The limit counts CTInc and CTSet too.
TEST_PROCESSES(1, TriggeredLimit, Section3_16__every_kind_of_operation_counts) {
  const Scene scene(self);
  for (int i = 0; i < kLimit; ++i) EXPECT_RC(scene.arm(i, scene.trigger, 1000), PTL_OK) << "operation " << i;
  const auto start = std::chrono::steady_clock::now();
  scene.expect_full();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1)) << "at once, never a hang";
}

// The limit is of the interface, not of a counter; the other interfaces have their own.
TEST_PROCESSES(1, TriggeredLimit, Section3_6_1__limit_is_of_the_interface) {
  const Scene scene(self);
  const Scene other(self, kNonMatching);
  for (int i = 0; i < kLimit; ++i) REQUIRE_OK(scene.arm(i, i % 2 == 0 ? scene.trigger : scene.counter, 1000));
  scene.expect_full();
  for (int i = 0; i < kLimit; ++i) EXPECT_RC(other.arm(i, other.trigger, 1000), PTL_OK);
  other.expect_full();
}

// 3.14.3, 3.14.4: cancelled operations, and those deleted with their counter, make room.
TEST_PROCESSES(1, TriggeredLimit, Section3_14_4__what_is_cancelled_makes_room) {
  const Scene scene(self);
  for (int round = 0; round < 3; ++round) {
    const ptl_handle_ct_t doomed = alloc_ct(scene.ni);
    for (int i = 0; i < kLimit; ++i) REQUIRE_OK(scene.arm(i, i % 2 == 0 ? doomed : scene.trigger, 1000));
    scene.expect_full();
    REQUIRE_OK(PtlCTFree(doomed));
    for (int i = 0; i < kLimit / 2; ++i) EXPECT_RC(scene.arm(i, scene.trigger, 1000), PTL_OK);
    scene.expect_full();
    REQUIRE_OK(PtlCTCancelTriggered(scene.trigger));
  }
}

// 3.16: "If a counting event has already reached the threshold when a triggered operation is created, that operation is
// immediately processed": it does not wait, so the limit is not its business.
TEST_PROCESSES(1, TriggeredLimit, Section3_16__what_runs_at_once_needs_no_room) {
  const Scene scene(self);
  append(scene.ni, me_of(scene.ni, nullptr, 0, PTL_ME_EVENT_COMM_DISABLE));
  for (int i = 0; i < kLimit; ++i) REQUIRE_OK(PtlTriggeredCTInc(scene.counter, {1, 0}, scene.trigger, 1000));
  const ptl_handle_ct_t reached = alloc_ct(scene.ni);
  REQUIRE_OK(PtlCTSet(reached, {5, 0}));
  for (ptl_size_t i = 1; i <= 100; ++i) {
    REQUIRE_OK(PtlTriggeredCTInc(scene.counter, {1, 0}, reached, 5));
    wait_for_count(scene.counter, i);
  }
  EXPECT_RC(scene.arm(0, reached, 1), PTL_OK);
  scene.expect_full();
}

// 3.16: a jump sets all waiting operations free; right after it as many can be posted again.
TEST_PROCESSES(1, TriggeredLimit, Section3_16__a_jump_makes_room_at_once) {
  ptl_ni_limits_t wanted = generous_limits();
  wanted.max_triggered_ops = 1000;
  const Ni ni(self, kMatching, &wanted);
  const int limit = ni.limits().max_triggered_ops;
  if (limit > 10000) self.skip("the limit is too high to be reached");
  const ptl_handle_ct_t trigger = alloc_ct(ni);
  const ptl_handle_ct_t counter = alloc_ct(ni);
  for (ptl_size_t round = 1; round <= 5; ++round) {
    for (int i = 0; i < limit; ++i) REQUIRE_OK(PtlTriggeredCTInc(counter, {1, 0}, trigger, round));
    REQUIRE_OK(PtlCTInc(trigger, {1, 0}));
  }
  EXPECT_EQ(wait_for_count(counter, 5u * static_cast<ptl_size_t>(limit)).success, 5u * static_cast<ptl_size_t>(limit));
}
