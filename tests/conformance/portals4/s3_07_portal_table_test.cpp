// Portals 4.3, 3.7: portal table entries; 3.8 and 3.9: usage and process identification.
#include <set>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(PortalTable);

namespace {

int alloc(const Ni& ni, ptl_pt_index_t wanted, ptl_pt_index_t* got, unsigned int options = 0,
          ptl_handle_eq_t eq = PTL_EQ_NONE) {
  return PtlPTAlloc(ni, options, eq, wanted, got);
}

}  // namespace

// 3.7.1: "If the value is set to PTL_PT_ANY, the implementation can return any portal index"; 3.6: at least 250.
TEST_PROCESSES(1, PortalTable, Section3_7_1__any_gives_every_index_once_then_full) {
  const Ni ni(self);
  std::set<ptl_pt_index_t> indexes;
  ptl_pt_index_t index = 0;
  for (int i = 0; i <= ni.limits().max_pt_index; ++i) {
    REQUIRE_OK(alloc(ni, PTL_PT_ANY, &index));
    EXPECT_LE(index, static_cast<ptl_pt_index_t>(ni.limits().max_pt_index));
    EXPECT_TRUE(indexes.insert(index).second) << "index " << index << " twice";
    if (i == 0) {
      EXPECT_EQ(index, 0u) << "PTL_PT_ANY hands out index 0 first";
    }
  }
  EXPECT_RC(alloc(ni, PTL_PT_ANY, &index), PTL_PT_FULL);
  REQUIRE_OK(PtlPTFree(ni, 17));
  EXPECT_RC(alloc(ni, PTL_PT_ANY, &index), PTL_OK);
  EXPECT_EQ(index, 17u);
}

// 3.7.1: "the Portal table entry requested is in use"; 3.6.1: indexes from 0 to max_pt_index, inclusive.
TEST_PROCESSES(1, PortalTable, Section3_7_1__requested_index_is_given) {
  const Ni ni(self);
  const auto last = static_cast<ptl_pt_index_t>(ni.limits().max_pt_index);
  ptl_pt_index_t index = 77;
  for (ptl_pt_index_t wanted : {ptl_pt_index_t{0}, ptl_pt_index_t{12}, last}) {
    EXPECT_RC(alloc(ni, wanted, &index), PTL_OK);
    EXPECT_EQ(index, wanted);
    EXPECT_RC(alloc(ni, wanted, &index), PTL_PT_IN_USE);
  }
  EXPECT_RC(alloc(ni, last + 1, &index), PTL_ARG_INVALID);
  REQUIRE_OK(PtlPTFree(ni, 12));
  EXPECT_RC(alloc(ni, 12, &index), PTL_OK);
}

// 3.7.1: PTL_PT_EQ_NEEDED "Indicates that flow control is enabled and there is no EQ attached".
TEST_PROCESSES(1, PortalTable, Section3_7_1__flow_control_needs_an_event_queue) {
  const Ni ni(self);
  ptl_pt_index_t index = 0;
  EXPECT_RC(alloc(ni, kPt, &index, PTL_PT_FLOWCTRL), PTL_PT_EQ_NEEDED);
  EXPECT_RC(alloc(ni, kPt, &index, PTL_PT_FLOWCTRL, alloc_eq(ni)), PTL_OK);
}

// 3.4: an event queue that is none, or of another interface.
TEST_PROCESSES(1, PortalTable, Section3_7_1__wrong_event_queue) {
  const Ni ni(self);
  const Ni other(self, kNonMatching);
  ptl_pt_index_t index = 0;
  EXPECT_RC(alloc(ni, kPt, &index, 0, PTL_INVALID_HANDLE), PTL_ARG_INVALID);
  EXPECT_RC(alloc(ni, kPt, &index, 0, alloc_ct(ni)), PTL_ARG_INVALID);
  EXPECT_RC(alloc(ni, kPt, &index, 0, alloc_eq(other)), PTL_ARG_INVALID);
}

// 3.7.2: PTL_PT_IN_USE "e.g., a match list entry is still attached"; attached objects "are not freed".
TEST_PROCESSES(1, PortalTable, Section3_7_2__free) {
  const Ni ni(self);
  const Ends ends(ni);
  for (ptl_list_t list : {PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST}) {
    const ptl_handle_me_t entry = append(ni, me_of(ni, nullptr, 0), list);
    EXPECT_RC(PtlPTFree(ni, kPt), PTL_PT_IN_USE);
    REQUIRE_OK(PtlMEUnlink(entry));
  }
  EXPECT_RC(PtlPTFree(ni, kPt), PTL_OK);
  EXPECT_RC(PtlPTFree(ni, kPt), PTL_ARG_INVALID);
  EXPECT_RC(PtlPTFree(ni, static_cast<ptl_pt_index_t>(ni.limits().max_pt_index + 1)), PTL_ARG_INVALID);
  expect_empty(ends.target_eq);
  EXPECT_RC(PtlEQFree(ends.target_eq), PTL_OK);
}

// 3.7: "A portal table entry must be allocated before being used."
TEST_PROCESSES(1, PortalTable, Section3_7__unallocated_index_is_invalid) {
  const Ni ni(self);
  const ptl_me_t me = me_of(ni, nullptr, 0);
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlMEAppend(ni, kPt, &me, PTL_PRIORITY_LIST, nullptr, &entry), PTL_ARG_INVALID);
  EXPECT_RC(PtlMESearch(ni, kPt, &me, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlPTDisable(ni, kPt), PTL_ARG_INVALID);
  EXPECT_RC(PtlPTEnable(ni, kPt), PTL_ARG_INVALID);
}

// 3.13.3: "every operation that is started will eventually complete", also at an entry that nobody has allocated; with
// a failure, as no data can come. What a put with PTL_ACK_REQ gets there the spec does not say, so only SEND is tested.
TEST_BOTH_WAYS(PortalTable, Section3_7__message_to_an_unallocated_index) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  std::vector<unsigned char> data = pattern(64);
  const ptl_handle_md_t md = bind_md(ni, md_of(data.data(), data.size(), eq));
  self.barrier();
  self.initiator([&] {
    put(md, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ, .pt = 100});
    next_event(eq, PTL_EVENT_SEND);
    get(md, ni.target(), {.length = 8, .user_ptr = tag(3), .pt = 100});
    const ptl_event_t reply = next_event(eq);
    EXPECT_EQ(reply.type, PTL_EVENT_REPLY);
    EXPECT_NE(reply.ni_fail_type, PTL_NI_OK);
    EXPECT_EQ(reply.user_ptr, tag(3));
    EXPECT_EQ(data, pattern(64));
  });
}

// 3.7.1: PTL_PT_ALLOC_DISABLED: "no new messages should be accepted ... until enabled with PtlPTEnable()".
TEST_BOTH_WAYS(PortalTable, Section3_7_1__entry_may_start_disabled) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_ALLOC_DISABLED);
  unsigned char memory[8] = {};
  self.target([&] { append(ni, me_of(ni, memory, 8)); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_PT_DISABLED); });
  self.target([&] {
    EXPECT_EQ(memory[0], 0);
    REQUIRE_OK(PtlPTEnable(ni, kPt));
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(memory[0], ends.data[0]);
    expect_empty(ends.target_eq);
  });
}

// 3.7.3, 3.13.3: a disabled entry refuses every operation with PTL_NI_PT_DISABLED; PtlPTDisable "does not generate a
// PTL_EVENT_PT_DISABLED event".
TEST_BOTH_WAYS(PortalTable, Section3_7_3__disabled_entry_refuses_every_operation) {
  const Ni ni(self);
  Ends ends(ni);
  unsigned char memory[16] = {};
  self.target([&] {
    append(ni, me_of(ni, memory, 16));
    EXPECT_RC(PtlPTDisable(ni, kPt), PTL_OK);
  });
  self.initiator([&] {
    const Message eight{.length = 8};
    put_and_wait(ends, ni.target(), eight, PTL_NI_PT_DISABLED);
    get(ends.md, ni.target(), eight);
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED);
    atomic(ends.md, ni.target(), eight);
    next_event(ends.source_eq, PTL_EVENT_ACK, PTL_NI_PT_DISABLED);
    fetch_atomic(ends.md, 64, ends.md, ni.target(), eight);
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED);
    swap(ends.md, 64, ends.md, ni.target(), {.length = 8, .op = PTL_SWAP});
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED);
    EXPECT_EQ(ends.data, pattern(4096));
  });
  self.target([&] {
    expect_empty(ends.target_eq);
    for (unsigned char byte : memory) EXPECT_EQ(byte, 0);
    EXPECT_RC(PtlPTEnable(ni, kPt), PTL_OK);
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] { next_event(ends.target_eq, PTL_EVENT_PUT); });
}

// 3.7.3: "Processing of operations targeting other portal table entries and local operations continues".
TEST_BOTH_WAYS(PortalTable, Section3_7_3__other_entries_and_local_operations_go_on) {
  const Ni ni(self);
  const Ends ends(ni);
  alloc_pt(ni, ends.target_eq, 0, kOtherPt);
  self.target([&] {
    append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(2), kOtherPt);
    REQUIRE_OK(PtlPTDisable(ni, kPt));
    append(ni, me_of(ni, nullptr, 0, kLink), PTL_PRIORITY_LIST, tag(1));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_LINK).user_ptr, tag(1));
    const ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_USE_ONCE);
    REQUIRE_OK(PtlMESearch(ni, kPt, &me, PTL_SEARCH_ONLY, tag(3)));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(3));
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 1, .pt = kOtherPt}); });
  self.target([&] { EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).pt_index, kOtherPt); });
}

// 3.7.1, and Open MPI's mtl (openmpi.md M8): persistent entries work in spite of PTL_PT_ONLY_USE_ONCE on the overflow
// list, which the option does not speak of.
TEST_BOTH_WAYS(PortalTable, Section3_7_1__only_use_once_and_only_truncate_speak_of_the_priority_list) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE);
  self.target([&] { append(ni, me_of(ni, nullptr, 0), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (int i = 0; i < 2; ++i) put_and_wait(ends, ni.target(), {.length = 8});
  });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    next_event(ends.target_eq, PTL_EVENT_PUT);
    append(ni, me_of(ni, nullptr, 0, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, tag(4));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).user_ptr, tag(4));
  });
}

// 3.8: "The UID is common across logical network interfaces within the same process"; 3.13.4: uid of the initiator.
TEST_BOTH_WAYS(PortalTable, Section3_8__usage_id) {
  const Ni ni(self);
  const Ni plain(self, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL);
  const Ends ends(ni);
  ptl_uid_t uid = 0;
  ptl_uid_t plain_uid = 1;
  EXPECT_RC(PtlGetUid(ni, &uid), PTL_OK);
  EXPECT_RC(PtlGetUid(plain, &plain_uid), PTL_OK);
  EXPECT_EQ(uid, plain_uid);
  EXPECT_NE(uid, PTL_UID_ANY);
  const std::vector<ptl_uid_t> uids = self.share(uid);
  self.target([&] { append(ni, me_of(ni, nullptr, 0)); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 1}); });
  self.target([&] { EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).uid, uids.back()); });
}

// 3.9: "every process running on a node has a unique process identifier"; 3.9.2, 3.9.3: one address on a physical NI.
TEST_PROCESSES(3, PortalTable, Section3_9__process_ids) {
  const Ni ni(self);
  ptl_process_t id{};
  EXPECT_RC(PtlGetId(ni, &id), PTL_OK);
  EXPECT_TRUE(same_process(ni, id, ni.id(self.rank()))) << "PtlGetId and PtlGetPhysId";
  EXPECT_NE(id.phys.pid, 0u) << "Open MPI takes pid 0 for a logical interface (openmpi.md C6)";
  EXPECT_NE(id.phys.pid, PTL_PID_ANY);
  EXPECT_NE(id.phys.nid, PTL_NID_ANY);
  EXPECT_EQ(ni.id(0).phys.nid, ni.id(1).phys.nid);
  EXPECT_NE(ni.id(0).phys.pid, ni.id(1).phys.pid);
  EXPECT_NE(ni.id(0).phys.pid, ni.id(2).phys.pid);
  EXPECT_NE(ni.id(1).phys.pid, ni.id(2).phys.pid);
  self.barrier();
}

// 3.7.4: "used to enable portal table entries that were automatically or manually disabled. The function blocks until
// the portal table entry is enabled": the next message is accepted. One that is enabled stays so.
TEST_BOTH_WAYS(PortalTable, Section3_7_4__enable_after_each_way_of_being_disabled) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL | PTL_PT_ALLOC_DISABLED);
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  const auto refused_then_accepted = [&] {
    self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 1}, PTL_NI_PT_DISABLED); });
    self.target([&] {
      EXPECT_RC(PtlPTEnable(ni, kPt), PTL_OK);
      EXPECT_RC(PtlPTEnable(ni, kPt), PTL_OK) << "a second time";
    });
    self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 1}); });
    self.target([&] { next_event(ends.target_eq, PTL_EVENT_PUT); });
  };
  self.target([&] { entry = append(ni, me_of(ni, nullptr, 0)); });
  refused_then_accepted();  // Allocated so.
  self.target([&] { REQUIRE_OK(PtlPTDisable(ni, kPt)); });
  refused_then_accepted();  // Manually.
  self.target([&] { REQUIRE_OK(PtlMEUnlink(entry)); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 1}, PTL_NI_PT_DISABLED); });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq).type, PTL_EVENT_PT_DISABLED);
    append(ni, me_of(ni, nullptr, 0));
  });
  refused_then_accepted();  // By flow control.
  self.target([&] { expect_empty(ends.target_eq); });
}

// 3.8.1: "used to retrieve the usage identifier of a process": the one that entries of this uid let in.
TEST_BOTH_WAYS(PortalTable, Section3_8_1__get_uid_names_who_may_access) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_uid_t uid = PTL_UID_ANY;
  EXPECT_RC(PtlGetUid(ni, &uid), PTL_OK);
  const ptl_uid_t initiator_uid = self.share(uid).back();
  self.target([&] {
    ptl_me_t me = me_of(ni, nullptr, 0);
    me.uid = initiator_uid;
    append(ni, me);
    me.uid = initiator_uid + 1;
    me.match_bits = 1;
    append(ni, me);
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {});
    put_and_wait(ends, ni.target(), {.match_bits = 1}, PTL_NI_PERM_VIOLATION);
  });
}

// 3.9.3: "The physical address is always returned, even for logically addressed network interfaces", and it is one
// address for all interfaces of the process.
TEST_BOTH_WAYS(PortalTable, Section3_9_3__phys_id_of_every_interface) {
  const Ni physical(self, kMatching);
  const Ni logical(self, PTL_NI_MATCHING | PTL_NI_LOGICAL);
  ptl_process_t ids[2]{};
  EXPECT_RC(PtlGetPhysId(physical, &ids[0]), PTL_OK);
  EXPECT_RC(PtlGetPhysId(logical, &ids[1]), PTL_OK);
  for (const ptl_process_t& id : ids) {
    EXPECT_EQ(id.phys.nid, physical.id(self.rank()).phys.nid);
    EXPECT_EQ(id.phys.pid, physical.id(self.rank()).phys.pid);
  }
  self.barrier();
}
