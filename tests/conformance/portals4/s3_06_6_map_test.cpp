// Portals 4.3, 3.6.6 and 3.6.7: the map from ranks to processes of a logical interface.
#include <algorithm>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Map);

namespace {

constexpr unsigned int kLogical = PTL_NI_MATCHING | PTL_NI_LOGICAL;

// An open logical interface without a map.
ptl_handle_ni_t open_without_map() {
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, kLogical, PTL_PID_ANY, nullptr, nullptr, &ni));
  return ni;
}

// A map of `size` processes that do not exist, except that rank 2 is this one.
std::vector<ptl_process_t> map_with_me_at_2(ptl_handle_ni_t ni, std::size_t size) {
  ptl_process_t me{};
  REQUIRE_OK(PtlGetPhysId(ni, &me));
  std::vector<ptl_process_t> map(size, me);
  for (std::size_t rank = 0; rank < size; ++rank)
    if (rank != 2) map[rank].phys.pid = static_cast<ptl_pid_t>(60000 + rank);
  return map;
}

}  // namespace

// 3.6.6: PtlNIInit, PtlGetMap and PtlGetPhysId may be called before the map is set; 3.6.7: "there was no map set".
TEST_PROCESSES(1, Map, Section3_6_7__without_a_map) {
  const ptl_handle_ni_t ni = open_without_map();
  ptl_process_t id{};
  ptl_size_t size = 77;
  EXPECT_RC(PtlGetPhysId(ni, &id), PTL_OK);
  EXPECT_NE(id.phys.pid, 0u);
  EXPECT_RC(PtlGetMap(ni, 1, &id, &size), PTL_IGNORED);
  EXPECT_RC(PtlGetId(ni, &id), PTL_ARG_INVALID);  // Undefined in the spec, promised by portals4.h.
  PtlFini();
}

// 3.6.7: the first map_size entries are copied; "the buffer beyond the actual_map_size entry is left unmodified".
TEST_PROCESSES(1, Map, Section3_6_7__map_is_read_as_far_as_it_fits) {
  const ptl_handle_ni_t ni = open_without_map();
  const std::vector<ptl_process_t> map = map_with_me_at_2(ni, 4);
  REQUIRE_OK(PtlSetMap(ni, map.size(), map.data()));
  for (std::size_t room : {2u, 4u, 6u}) {
    std::vector<ptl_process_t> read(6);
    for (ptl_process_t& entry : read) entry.phys = {0xdeadu, 0xbeefu};
    ptl_size_t actual = 0;
    REQUIRE_OK(PtlGetMap(ni, room, read.data(), &actual));
    EXPECT_EQ(actual, 4u) << "may be bigger than map_size";
    for (std::size_t rank = 0; rank < 6; ++rank) {
      const bool copied = rank < std::min<std::size_t>(room, 4);
      EXPECT_EQ(read[rank].phys.nid, copied ? map[rank].phys.nid : 0xdeadu) << "rank " << rank << " of " << room;
      EXPECT_EQ(read[rank].phys.pid, copied ? map[rank].phys.pid : 0xbeefu) << "rank " << rank << " of " << room;
    }
  }
  PtlFini();
}

// 3.6.6: "Subsequent calls will overwrite any mapping"; the array is the caller's again after the call.
TEST_PROCESSES(1, Map, Section3_6_6__later_map_replaces_the_earlier) {
  const ptl_handle_ni_t ni = open_without_map();
  std::vector<ptl_process_t> map = map_with_me_at_2(ni, 4);
  REQUIRE_OK(PtlSetMap(ni, map.size(), map.data()));
  ptl_process_t id{};
  REQUIRE_OK(PtlGetId(ni, &id));
  EXPECT_EQ(id.rank, 2u);
  std::swap(map[0], map[2]);
  REQUIRE_OK(PtlSetMap(ni, 2, map.data()));
  map[0].phys.pid = 61111;
  REQUIRE_OK(PtlGetId(ni, &id));
  EXPECT_EQ(id.rank, 0u);
  ptl_size_t actual = 0;
  REQUIRE_OK(PtlGetMap(ni, 1, &id, &actual));
  EXPECT_EQ(actual, 2u);
  EXPECT_NE(id.phys.pid, 61111u);
  PtlFini();
}

// 3.6.6, 3.6.7: "erroneous ... on a physically addressed logical network interface".
TEST_PROCESSES(1, Map, Section3_6_6__physical_interface_has_no_map) {
  const Ni ni(self, kMatching);
  const ptl_process_t map[1] = {ni.target()};
  ptl_process_t read{};
  ptl_size_t actual = 0;
  EXPECT_RC(PtlSetMap(ni, 1, map), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetMap(ni, 1, &read, &actual), PTL_ARG_INVALID);
}

// Arguments (3.4): NULL, and a map without elements (portals4.h).
TEST_PROCESSES(1, Map, Section3_6_6__illegal_arguments) {
  const ptl_handle_ni_t ni = open_without_map();
  ptl_process_t id{};
  ptl_size_t actual = 0;
  REQUIRE_OK(PtlGetPhysId(ni, &id));
  EXPECT_RC(PtlSetMap(ni, 1, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlSetMap(ni, 0, &id), PTL_ARG_INVALID);
  REQUIRE_OK(PtlSetMap(ni, 1, &id));
  EXPECT_RC(PtlGetMap(ni, 1, nullptr, &actual), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetMap(ni, 1, &id, nullptr), PTL_ARG_INVALID);
  PtlFini();
}

// 3.9.2: "If the interface is logically addressed, the logical address is returned"; 3.9.3: physical always.
TEST_BOTH_WAYS(Map, Section3_9_2__id_is_the_rank) {
  const Ni ni(self, kLogical);
  ptl_process_t id{};
  REQUIRE_OK(PtlGetId(ni, &id));
  EXPECT_EQ(id.rank, static_cast<ptl_rank_t>(self.rank()));
  ptl_process_t physical{};
  REQUIRE_OK(PtlGetPhysId(ni, &physical));
  std::vector<ptl_process_t> map(static_cast<std::size_t>(self.size()));
  ptl_size_t actual = 0;
  REQUIRE_OK(PtlGetMap(ni, map.size(), map.data(), &actual));
  EXPECT_EQ(map[static_cast<std::size_t>(self.rank())].phys.pid, physical.phys.pid);
  self.barrier();
}

// 3.6.6: target ids are ranks; 3.13.4: initiator is a rank too; 3.12.1: match_id is compared as a rank.
TEST_PROCESSES(3, Map, Section3_6_6__ranks_address_processes) {
  const Ni ni(self, kLogical);
  const Ends ends(ni);
  self.target([&] {
    for (int rank : {2, 1}) {
      ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      me.match_id = ni.id(rank);
      append(ni, me, PTL_PRIORITY_LIST, tag(static_cast<std::uintptr_t>(rank)));
    }
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 1}); });
  self.target([&] {
    for (int i = 0; i < 2; ++i) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(event.user_ptr, tag(event.initiator.rank));
    }
  });
}

// 3.6.6: PtlSetMap "is a local operation and the map set by different communicating processes may be different".
TEST_PROCESSES(2, Map, Section3_6_6__maps_of_two_processes_may_differ) {
  const ptl_handle_ni_t ni = open_without_map();
  ptl_process_t mine{};
  REQUIRE_OK(PtlGetPhysId(ni, &mine));
  const std::vector<ptl_process_t> all = self.share(mine);
  // Each process calls itself 7 and the other one 3.
  std::vector<ptl_process_t> map(8, mine);
  for (std::size_t rank = 0; rank < map.size(); ++rank) map[rank].phys.pid = static_cast<ptl_pid_t>(60000 + rank);
  map[7] = mine;
  map[3] = all[static_cast<std::size_t>(1 - self.rank())];
  REQUIRE_OK(PtlSetMap(ni, map.size(), map.data()));
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  REQUIRE_OK(PtlEQAlloc(ni, 16, &eq));
  REQUIRE_OK(PtlPTAlloc(ni, 0, eq, kPt, &pt));
  ptl_me_t me{};
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
  me.match_id.rank = 3;
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlMEAppend(ni, kPt, &me, PTL_PRIORITY_LIST, nullptr, &entry));
  const ptl_md_t described = md_of(nullptr, 0);
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlMDBind(ni, &described, &md));
  self.barrier();
  ptl_process_t other{};
  other.rank = 3;
  put(md, other, {.ack = PTL_NO_ACK_REQ});
  EXPECT_EQ(next_event(eq, PTL_EVENT_PUT).initiator.rank, 3u);
  self.barrier();
  PtlFini();
}

// 3.6.6: PtlSetMap "will overwrite any mapping". A rank is looked up when the operation is executed (3.16), so a
// triggered one goes to whom the rank is then; if it is nobody's, the operation ends with PTL_NI_UNDELIVERABLE
// (3.13.3).
TEST_PROCESSES(1, Map, Section3_16__triggered_operation_goes_by_the_map_of_its_execution) {
  const ptl_handle_ni_t ni = open_without_map();
  std::vector<ptl_process_t> map = map_with_me_at_2(ni, 4);
  const ptl_process_t me = map[2];
  REQUIRE_OK(PtlSetMap(ni, map.size(), map.data()));
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE, source_eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  REQUIRE_OK(PtlEQAlloc(ni, 16, &eq));
  REQUIRE_OK(PtlEQAlloc(ni, 16, &source_eq));
  REQUIRE_OK(PtlCTAlloc(ni, &ct));
  REQUIRE_OK(PtlPTAlloc(ni, 0, eq, kPt, &pt));
  ptl_me_t entry{};
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
  entry.match_id.rank = PTL_RANK_ANY;
  ptl_handle_me_t appended = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlMEAppend(ni, kPt, &entry, PTL_PRIORITY_LIST, nullptr, &appended));
  const ptl_md_t described = md_of(nullptr, 0, source_eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlMDBind(ni, &described, &md));
  for (const ptl_rank_t rank : {0u, 3u}) {
    ptl_process_t to{};
    to.rank = rank;
    REQUIRE_OK(PtlTriggeredPut(md, 0, 0, PTL_ACK_REQ, to, kPt, 0, 0, tag(rank), 0, ct, rank + 1));
  }
  REQUIRE_OK(PtlSetMap(ni, 1, &me));
  REQUIRE_OK(PtlCTInc(ct, {1, 0}));
  EXPECT_EQ(next_event(eq, PTL_EVENT_PUT).initiator.rank, 0u);
  EXPECT_EQ(next_event(source_eq, PTL_EVENT_ACK).user_ptr, tag(0));
  REQUIRE_OK(PtlCTInc(ct, {3, 0}));
  EXPECT_EQ(next_event(source_eq, PTL_EVENT_ACK, PTL_NI_UNDELIVERABLE).user_ptr, tag(3));
  expect_empty(eq);
  PtlFini();
}
