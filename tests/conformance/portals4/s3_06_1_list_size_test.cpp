// Portals 4.3, 3.6.1 and 3.11.2, 3.12.2: max_list_size, "Maximum number of entries that can be attached to the list on
// any portal table index"; PTL_LIST_TOO_LONG: "the resulting list is too long".

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(ListSize);

namespace {

alignas(64) unsigned char memory[64];

constexpr int kMost = 2;
constexpr unsigned int kOnceQuiet = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;

ptl_ni_limits_t small_lists() {
  ptl_ni_limits_t limits = generous_limits();
  limits.max_list_size = kMost;
  return limits;
}

ptl_me_t matching(const Ni& ni, ptl_match_bits_t bits, unsigned int options = 0) {
  ptl_me_t me = me_of(ni, memory, sizeof memory, options);
  me.match_bits = bits;
  return me;
}

int try_to_append(const Ni& ni, const ptl_me_t& me) {
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  return PtlMEAppend(ni, kPt, &me, PTL_PRIORITY_LIST, tag(1), &handle);
}

}  // namespace

TEST_PROCESSES(1, ListSize, Section3_6_1__each_list_has_its_own) {
  const ptl_ni_limits_t desired = small_lists();
  const Ni ni(self, kMatching, &desired);
  if (ni.limits().max_list_size != kMost) self.skip("the limit is not granted as asked for");
  const Ends ends(ni);
  const ptl_me_t me = matching(ni, 1);
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  for (ptl_list_t list : {PTL_OVERFLOW_LIST, PTL_PRIORITY_LIST}) {
    append(ni, me, list);
    const ptl_handle_me_t last = append(ni, me, list);
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    EXPECT_RC(PtlMEAppend(ni, kPt, &me, list, nullptr, &handle), PTL_LIST_TOO_LONG);
    EXPECT_RC(PtlMEUnlink(last), PTL_OK);
    append(ni, me, list);
    append(ni, me, list, nullptr, kOtherPt);
  }
}

TEST_PROCESSES(1, ListSize, Section3_11_2__each_list_has_its_own) {
  const ptl_ni_limits_t desired = small_lists();
  const Ni ni(self, kNonMatching, &desired);
  if (ni.limits().max_list_size != kMost) self.skip("the limit is not granted as asked for");
  const Ends ends(ni);
  const ptl_le_t le = le_of(memory, sizeof memory);
  for (ptl_list_t list : {PTL_OVERFLOW_LIST, PTL_PRIORITY_LIST}) {
    append(ni, le, list);
    append(ni, le, list);
    ptl_handle_le_t handle = PTL_INVALID_HANDLE;
    EXPECT_RC(PtlLEAppend(ni, kPt, &le, list, nullptr, &handle), PTL_LIST_TOO_LONG);
  }
}

// 3.12.2: a use-once entry that finds a header "is not inserted into the priority list", so no list becomes too long;
// one that is refused takes no header.
TEST_BOTH_WAYS(ListSize, Section3_12_2__entry_that_is_not_inserted_needs_no_place) {
  const ptl_ni_limits_t desired = small_lists();
  const Ni ni(self, kMatching, &desired);
  if (ni.limits().max_list_size != kMost) self.skip("the limit is not granted as asked for");
  const Ends ends(ni);
  self.target([&] { append(ni, matching(ni, 7, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < 4; ++i)
      put_and_wait(ends, ni.target(), {.length = 10, .match_bits = 7, .hdr_data = i});
  });
  self.target([&] {
    for (int i = 0; i < kMost; ++i) append(ni, matching(ni, 1));
    EXPECT_RC(try_to_append(ni, matching(ni, 7)), PTL_LIST_TOO_LONG);
    ptl_me_t managed = matching(ni, 7, PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH);
    managed.min_free = 1;
    EXPECT_RC(try_to_append(ni, managed), PTL_LIST_TOO_LONG) << "four headers leave 24 bytes of it";
    expect_empty(ends.target_eq);
    EXPECT_RC(try_to_append(ni, matching(ni, 7, kOnceQuiet)), PTL_OK);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, 0u);
    managed.length = 30;
    EXPECT_RC(try_to_append(ni, managed), PTL_OK) << "the three headers that are left use it up (3.12.1)";
    for (ptl_hdr_data_t i : {1u, 2u, 3u}) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
    next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK);
    EXPECT_RC(try_to_append(ni, matching(ni, 7, kOnceQuiet)), PTL_LIST_TOO_LONG) << "it finds no header";
    expect_empty(ends.target_eq);
  });
}
