// Portals 4.3, 3.2.1, 3.3 and 3.9.1: what the base types must be able to hold, seen from programs that use them. That
// they are of the right kind and size is checked by the compiler in s3_02_constants_test.cpp.
#include <limits>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(BaseTypes);

namespace {

alignas(64) unsigned char target_memory[64];

}  // namespace

// 3.2.1: "two preprocessor constants ..., which indicate the version of the Portals specification implemented".
TEST_PROCESSES(1, BaseTypes, Section3_2_1__version_is_known_to_the_preprocessor) {
#if !defined(PTL_MAJOR_VERSION) || !defined(PTL_MINOR_VERSION)
  FAIL();
#elif PTL_MAJOR_VERSION != 4 || PTL_MINOR_VERSION != 3
  FAIL() << PTL_MAJOR_VERSION << '.' << PTL_MINOR_VERSION;
#endif
}

// 3.3: the types "represent a simple renaming of the base types provided by the C programming language": values of each
// of them can be made, copied and compared.
TEST_PROCESSES(1, BaseTypes, Section3_3__types_are_values) {
  ptl_size_t size = PTL_SIZE_MAX;
  ptl_handle_any_t any = PTL_INVALID_HANDLE;
  ptl_handle_ni_t ni = any;
  ptl_handle_md_t md = any;
  ptl_handle_le_t le = any;
  ptl_handle_me_t me = any;
  ptl_handle_eq_t eq = PTL_EQ_NONE;
  ptl_handle_ct_t ct = PTL_CT_NONE;
  EXPECT_TRUE(ni == any && md == any && le == any && me == any && eq != any && ct != any && eq != ct);
  ptl_pt_index_t index = PTL_PT_ANY;
  ptl_interface_t iface = PTL_IFACE_DEFAULT;
  ptl_time_t time = PTL_TIME_FOREVER;
  ptl_list_t list = PTL_OVERFLOW_LIST;
  ptl_search_op_t search = PTL_SEARCH_DELETE;
  ptl_ack_req_t ack = PTL_OC_ACK_REQ;
  ptl_sr_index_t sr = PTL_SR_OPERATION_VIOLATIONS;
  EXPECT_TRUE(index == PTL_PT_ANY && iface == PTL_IFACE_DEFAULT && time == PTL_TIME_FOREVER);
  EXPECT_TRUE(list != PTL_PRIORITY_LIST && search != PTL_SEARCH_ONLY && ack != PTL_ACK_REQ && sr != PTL_SR_DROP_COUNT);
  EXPECT_EQ(++size, 0u) << "unsigned";
}

// 3.3.1: "an unsigned 64-bit integral type used for representing sizes": a region and an offset beyond 2^32 mean what
// they say.
TEST_BOTH_WAYS(BaseTypes, Section3_3_1__sizes_have_64_bits) {
  static_assert(std::numeric_limits<ptl_size_t>::max() == PTL_SIZE_MAX);
  const Ni ni(self);
  const Ends ends(ni);
  constexpr ptl_size_t kFar = (ptl_size_t{1} << 40) + 5;
  unsigned char* const below = reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(target_memory) - kFar);
  self.target([&] { append(ni, me_of(ni, below, kFar + 8), PTL_PRIORITY_LIST); });
  self.initiator([&] {
    const ptl_event_t ack = put_and_wait(ends, ni.target(), {.length = 16, .remote_offset = kFar});
    EXPECT_EQ(ack.remote_offset, kFar);
    EXPECT_EQ(ack.mlength, 8u);
  });
  self.target([&] {
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(event.remote_offset, kFar);
    EXPECT_EQ(event.start, target_memory);
    EXPECT_EQ(target_memory[0], ends.data[0]);
  });
}

// 3.3.2: "Every handle value can be converted into a value of type ptl_handle_any_t without loss of information".
TEST_PROCESSES(1, BaseTypes, Section3_3_2__handles_survive_the_generic_type) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_any_t any[] = {ni, ends.md, ends.target_eq, alloc_ct(ni), append(ni, me_of(ni, nullptr, 0))};
  for (const ptl_handle_any_t handle : any) {
    ptl_handle_ni_t owner = PTL_INVALID_HANDLE;
    EXPECT_RC(PtlNIHandle(handle, &owner), PTL_OK);
    EXPECT_EQ(owner, ni);
  }
  ptl_event_t event{};
  EXPECT_RC(PtlEQGet(any[2], &event), PTL_EQ_EMPTY);
  EXPECT_RC(PtlMEUnlink(any[4]), PTL_OK);
}

// 3.3.3: "an integral type used for representing portal table indexes"; PTL_PT_ANY is none of them.
TEST_PROCESSES(1, BaseTypes, Section3_3_3__indexes) {
  const Ni ni(self);
  EXPECT_GT(PTL_PT_ANY, static_cast<ptl_pt_index_t>(ni.limits().max_pt_index));
  const Ends ends(ni);
  EXPECT_RC(PtlPTFree(ni, PTL_PT_ANY), PTL_ARG_INVALID);
  EXPECT_RC(PtlPut(ends.md, 0, 1, PTL_NO_ACK_REQ, ni.target(), PTL_PT_ANY, 0, 0, nullptr, 0), PTL_ARG_INVALID);
}

// 3.3.4: "capable of holding unsigned 64-bit integer values": each bit takes part in matching.
TEST_BOTH_WAYS(BaseTypes, Section3_3_4__match_bits_have_64_bits) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    for (std::uintptr_t bit = 0; bit < 64; ++bit) {
      ptl_me_t me = me_of(ni, nullptr, 0);
      me.match_bits = ptl_match_bits_t{1} << bit;
      append(ni, me, PTL_PRIORITY_LIST, tag(bit));
    }
  });
  self.initiator([&] {
    for (unsigned bit = 0; bit < 64; ++bit) put_and_wait(ends, ni.target(), {.match_bits = ptl_match_bits_t{1} << bit});
  });
  self.target([&] {
    for (std::uintptr_t bit = 0; bit < 64; ++bit) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(event.user_ptr, tag(bit));
      EXPECT_EQ(event.match_bits, ptl_match_bits_t{1} << bit);
    }
  });
}

// 3.3.5: "The special constant PTL_IFACE_DEFAULT identifies the default interface"; lib/portals4/README.md: which is
// also 0.
TEST_PROCESSES(1, BaseTypes, Section3_3_5__default_interface) {
  const Ni ni(self);
  ptl_handle_ni_t again = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlNIInit(0, kMatching, PTL_PID_ANY, nullptr, nullptr, &again), PTL_OK);
  EXPECT_EQ(again, ni) << "the same interface";
  EXPECT_RC(PtlNIFini(again), PTL_OK);
}

// 3.3.6: "PTL_PID_ANY matches any process identifier, PTL_NID_ANY matches any node identifier ... and PTL_UID_ANY
// matches any usage identifier"; each on its own.
TEST_BOTH_WAYS(BaseTypes, Section3_3_6__wildcards_stand_for_any_one_identifier) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  const ptl_uid_t initiator_uid = self.share(uid).back();
  const ptl_process_t initiator = ni.id(self.size() - 1);
  self.target([&] {
    const struct {
      ptl_nid_t nid;
      ptl_pid_t pid;
      ptl_uid_t uid;
    } cases[] = {{initiator.phys.nid, initiator.phys.pid, initiator_uid},
                 {PTL_NID_ANY, initiator.phys.pid, initiator_uid},
                 {initiator.phys.nid, PTL_PID_ANY, initiator_uid},
                 {initiator.phys.nid, initiator.phys.pid, PTL_UID_ANY},
                 {PTL_NID_ANY, PTL_PID_ANY, PTL_UID_ANY}};
    std::uintptr_t number = 0;
    for (const auto& one : cases) {
      ptl_me_t foreign = me_of(ni, nullptr, 0);
      foreign.match_bits = number;
      foreign.match_id.phys = {initiator.phys.nid, initiator.phys.pid + 1};  // Stands first and never matches.
      append(ni, foreign, PTL_PRIORITY_LIST, tag(99));
      ptl_me_t me = me_of(ni, nullptr, 0);
      me.match_bits = number;
      me.match_id.phys = {one.nid, one.pid};
      me.uid = one.uid;
      append(ni, me, PTL_PRIORITY_LIST, tag(number++));
    }
  });
  self.initiator([&] {
    for (ptl_match_bits_t i = 0; i < 5; ++i) put_and_wait(ends, ni.target(), {.match_bits = i});
  });
  self.target([&] {
    for (std::uintptr_t i = 0; i < 5; ++i) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).user_ptr, tag(i));
  });
}

// 3.3.7: "Each network interface maintains an array of status registers"; "these three operations are orthogonal such
// that permission violations and operations violations should not increment PTL_SR_DROP_COUNT".
TEST_BOTH_WAYS(BaseTypes, Section3_3_7__each_violation_is_counted_in_its_own_register) {
  const Ni ni(self);
  const Ni other(self, PTL_NI_MATCHING | PTL_NI_LOGICAL);
  const Ends ends(ni);
  const Ends other_ends(other);
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  const auto expect_registers = [](const Ni& which, ptl_sr_value_t drops, ptl_sr_value_t permissions,
                                   ptl_sr_value_t operations) {
    wait_for_status(which, PTL_SR_DROP_COUNT, drops);
    wait_for_status(which, PTL_SR_PERMISSION_VIOLATIONS, permissions);
    wait_for_status(which, PTL_SR_OPERATION_VIOLATIONS, operations);
  };
  self.target([&] {
    ptl_me_t foreign = me_of(ni, target_memory, 64);
    foreign.uid = uid + 1;
    append(ni, foreign);
    ptl_me_t closed = me_of(ni, target_memory, 64);
    closed.match_bits = 1;
    closed.options &= ~(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    append(ni, closed);
    append(other, me_of(other, target_memory, 64));
  });
  self.initiator([&] {
    for (int i = 0; i < 4; ++i) put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_PERM_VIOLATION);
    for (int i = 0; i < 3; ++i) put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1}, PTL_NI_OP_VIOLATION);
    for (int i = 0; i < 2; ++i) put(ends.md, ni.target(), {.length = 8, .match_bits = 2});
    get(other_ends.md, other.target(), {.length = 8, .match_bits = 2});
    next_event(other_ends.source_eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
    put_and_wait(other_ends, other.target(), {.length = 8});
  });
  self.target([&] {
    expect_registers(ni, 2, 4, 3);
    expect_registers(other, 1, 0, 0);
  });
}

// 3.9.1: "a union that can represent the process as either a physical address or a logical address".
TEST_PROCESSES(1, BaseTypes, Section3_9_1__a_process_is_a_rank_or_nid_and_pid) {
  ptl_process_t id{};
  id.phys.nid = 0x01020304u;
  id.phys.pid = 0x0506u;
  EXPECT_EQ(id.phys.nid, 0x01020304u);
  EXPECT_EQ(id.phys.pid, 0x0506u);
  id.rank = 77;
  EXPECT_EQ(id.rank, 77u);
  // openmpi.md 2.2: rank lies over nid.
  EXPECT_EQ(static_cast<void*>(&id.rank), static_cast<void*>(&id.phys.nid));
}
