// Portals 4.3, 3.6: limits, the four logical interfaces of a physical one, reference counts, pids, status registers.
// Maps of logical interfaces: s3_06_6_map_test.cpp.
#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(NetworkInterface);

namespace {

constexpr unsigned int kAllFour[] = {PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_NI_MATCHING | PTL_NI_LOGICAL,
                                     PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL};

int open_ni(ptl_handle_ni_t* ni, unsigned int options = kMatching, ptl_pid_t pid = PTL_PID_ANY) {
  return PtlNIInit(PTL_IFACE_DEFAULT, options, pid, nullptr, nullptr, ni);
}

// Asks for as few objects as possible, so that the limit of one kind can be reached.
ptl_ni_limits_t small_limits() {
  ptl_ni_limits_t limits = generous_limits();
  limits.max_mds = limits.max_cts = limits.max_eqs = limits.max_entries = limits.max_list_size = 8;
  limits.max_triggered_ops = 8;
  return limits;
}

// Allocates up to the limit, and one more. The use of desired limits is implementation dependent (3.6.2), so an
// implementation may grant more than we want to try.
template <class Allocate>
void expect_enforced(Process& self, int limit, int expected, const Allocate& allocate) {
  if (limit > 100000) self.skip("the limit is too high to be reached");
  for (int i = 0; i < limit; ++i) {
    const int rc = allocate();
    if (rc != PTL_OK) stop("object " + std::to_string(i) + " of " + std::to_string(limit) + ": " + name_of_rc(rc));
  }
  EXPECT_RC(allocate(), expected);
}

}  // namespace

// 3.6.1: the minimum that an interface must support.
TEST_PROCESSES(1, NetworkInterface, Section3_6_1__actual_limits_reach_the_minimum) {
  for (unsigned int options : kAllFour) {
    const Ni ni(self, options);
    EXPECT_GE(ni.limits().max_pt_index, 249);
    EXPECT_GE(ni.limits().max_waw_ordered_size, 64u);
    EXPECT_GE(ni.limits().max_war_ordered_size, 8u);
    EXPECT_GT(ni.limits().max_entries, 0);
    EXPECT_GT(ni.limits().max_unexpected_headers, 0);
    EXPECT_GT(ni.limits().max_mds, 0);
    EXPECT_GT(ni.limits().max_cts, 0);
    EXPECT_GT(ni.limits().max_eqs, 0);
    EXPECT_GT(ni.limits().max_iovecs, 0);
    EXPECT_GT(ni.limits().max_list_size, 0);
    EXPECT_GT(ni.limits().max_triggered_ops, 0);
    EXPECT_GT(ni.limits().max_msg_size, 0u);
    EXPECT_GE(ni.limits().max_atomic_size, 16u);  // One item of the largest native integer or double complex.
    EXPECT_GE(ni.limits().max_fetch_atomic_size, 16u);
  }
}

// 3.6.2: the caller may ask for the largest values; 3.6.1: limits asked as 0 still give a usable interface.
TEST_PROCESSES(1, NetworkInterface, Section3_6_2__desired_limits_are_hints) {
  const ptl_ni_limits_t largest = generous_limits();
  {
    const Ni ni(self, kMatching, &largest);
    EXPECT_GE(ni.limits().max_pt_index, 249);
    EXPECT_GT(ni.limits().max_entries, 0);
    EXPECT_EQ(ni.limits().features & ~largest.features, 0u) << "only defined features";
  }
  const ptl_ni_limits_t nothing{};
  const Ni ni(self, kMatching, &nothing);
  EXPECT_GE(ni.limits().max_pt_index, 249);
  const Ends ends(ni);
  append(ni, me_of(ni, nullptr, 0));
  put_and_wait(ends, ni.target(), {.length = 1});
}

// 3.6.1, 3.6.2, lib/portals4/README.md: a smaller value is granted as asked, so that a program can test what it does at
// its limits.
TEST_PROCESSES(1, NetworkInterface, Section3_6_2__smaller_limits_are_granted_as_asked) {
  ptl_ni_limits_t small{};
  small.max_entries = 3;
  small.max_unexpected_headers = 5;
  small.max_mds = 6;
  small.max_cts = 2;
  small.max_eqs = 7;
  small.max_pt_index = 4;
  small.max_iovecs = 1;
  small.max_list_size = 2;
  small.max_triggered_ops = 1;
  small.max_msg_size = 100;
  small.max_atomic_size = 8;
  small.max_fetch_atomic_size = 4;
  small.max_waw_ordered_size = 16;
  small.max_war_ordered_size = 1;
  small.max_volatile_size = 2;
  for (unsigned int options : kAllFour) {
    const Ni ni(self, options, &small);
    const ptl_ni_limits_t& actual = ni.limits();
    EXPECT_EQ(actual.max_entries, 3);
    EXPECT_EQ(actual.max_unexpected_headers, 5);
    EXPECT_EQ(actual.max_mds, 6);
    EXPECT_EQ(actual.max_cts, 2);
    EXPECT_EQ(actual.max_eqs, 7);
    EXPECT_EQ(actual.max_pt_index, 4);
    EXPECT_EQ(actual.max_iovecs, 1);
    EXPECT_EQ(actual.max_list_size, 2);
    EXPECT_EQ(actual.max_triggered_ops, 1);
    EXPECT_EQ(actual.max_msg_size, 100u);
    EXPECT_EQ(actual.max_atomic_size, 8u);
    EXPECT_EQ(actual.max_fetch_atomic_size, 4u);
    EXPECT_EQ(actual.max_waw_ordered_size, 16u);
    EXPECT_EQ(actual.max_war_ordered_size, 1u);
    EXPECT_EQ(actual.max_volatile_size, 2u);
  }
}

// 3.6.2: "A quality implementation will enforce the limits that are returned": indexes, and the sizes of messages.
TEST_PROCESSES(1, NetworkInterface, Section3_6_2__smaller_limits_are_enforced) {
  ptl_ni_limits_t small{};
  small.max_pt_index = 4;
  small.max_msg_size = 100;
  small.max_atomic_size = 16;
  small.max_fetch_atomic_size = 8;
  const Ni ni(self, kMatching, &small);
  ptl_pt_index_t index = 0;
  EXPECT_RC(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 5, &index), PTL_ARG_INVALID);
  for (ptl_pt_index_t i = 0; i <= 4; ++i) EXPECT_RC(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_OK);
  EXPECT_RC(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_PT_FULL);
  EXPECT_RC(PtlPTFree(ni, 5), PTL_ARG_INVALID);
  std::vector<unsigned char> data(256);
  const ptl_handle_md_t md = bind_md(ni, md_of(data.data(), data.size(), PTL_EQ_NONE));
  const auto put_of = [&](ptl_size_t length) {
    return PtlPut(md, 0, length, PTL_NO_ACK_REQ, ni.target(), 0, 0, 0, nullptr, 0);
  };
  EXPECT_RC(put_of(100), PTL_OK);
  EXPECT_RC(put_of(101), PTL_ARG_INVALID);
  EXPECT_RC(PtlGet(md, 0, 101, ni.target(), 0, 0, 0, nullptr), PTL_ARG_INVALID);
  const auto atomic_of = [&](ptl_size_t length) {
    return PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, ni.target(), 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T);
  };
  EXPECT_RC(atomic_of(16), PTL_OK);
  EXPECT_RC(atomic_of(24), PTL_ARG_INVALID);
  EXPECT_RC(PtlFetchAtomic(md, 0, md, 128, 16, ni.target(), 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T),
            PTL_ARG_INVALID);
}

// What nobody asks for is there all the same, on each of the four interfaces: put, get, atomic, triggers,
// unexpected headers, scattered memory.
TEST_BOTH_WAYS(NetworkInterface, Section3_6_2__limits_of_zero_give_a_usable_interface) {
  const ptl_ni_limits_t nothing{};
  for (unsigned int options : kAllFour) {
    SCOPED_TRACE("options " + std::to_string(options));
    const Ni ni(self, options, &nothing);
    const Ends ends(ni);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    alignas(8) unsigned char memory[64] = {};
    ptl_iovec_t pieces[2] = {{memory, 16}, {memory + 32, 16}};
    const bool matching = (options & PTL_NI_MATCHING) != 0;
    self.target([&] {
      if (matching) append(ni, me_of(ni, pieces, 2, PTL_IOVEC), PTL_OVERFLOW_LIST);
      if (!matching) append(ni, le_of(pieces, 2, PTL_IOVEC), PTL_OVERFLOW_LIST);
    });
    self.initiator([&] {
      put_and_wait(ends, ni.target(), {.length = 32});
      get(ends.md, ni.target(), {.length = 32});
      next_event(ends.source_eq, PTL_EVENT_REPLY);
      atomic(ends.md, ni.target(), {.length = 8});
      next_event(ends.source_eq, PTL_EVENT_ACK);
      REQUIRE_OK(PtlTriggeredPut(ends.md, 0, 8, PTL_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, 0, ct, 1));
      REQUIRE_OK(PtlCTInc(ct, {1, 0}));
      next_event(ends.source_eq, PTL_EVENT_ACK);
    });
    self.target([&] {
      for (ptl_event_kind_t kind : {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_PUT})
        next_event(ends.target_eq, kind);
      if (matching) append(ni, me_of(ni, nullptr, 0));
      if (!matching) append(ni, le_of(nullptr, 0));
      for (int i = 0; i < 4; ++i) next_event(ends.target_eq);
    });
  }
}

// lib/portals4/README.md: "granted only because they are true": the three features of 3.6.1 are there on every
// interface, whatever is desired. That they are true: 2.7.1 in s2_07, 3.15.4 in s3_15, 3.12 in s3_13_3.
TEST_PROCESSES(1, NetworkInterface, Section3_6_1__features) {
  const unsigned int all = PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS;
  ptl_ni_limits_t wanted = generous_limits();
  for (unsigned int features : {0u, all}) {
    wanted.features = features;
    for (unsigned int options : kAllFour) {
      const Ni ni(self, options, &wanted);
      EXPECT_EQ(ni.limits().features, all);
      EXPECT_LE(ni.limits().max_war_ordered_size, ni.limits().max_waw_ordered_size) << "2.7.1";
    }
  }
}

// 3.6.2: desired NULL and actual NULL are legal.
TEST_PROCESSES(1, NetworkInterface, Section3_6_2__desired_and_actual_may_be_null) {
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &ni), PTL_OK);
  PtlFini();
}

// 3.6.2: "exactly one of" matching and non-matching, of logical and physical.
TEST_PROCESSES(1, NetworkInterface, Section3_6_2__options_are_mutually_exclusive) {
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  EXPECT_RC(open_ni(&ni, 0), PTL_ARG_INVALID);
  EXPECT_RC(open_ni(&ni, PTL_NI_MATCHING), PTL_ARG_INVALID);
  EXPECT_RC(open_ni(&ni, PTL_NI_LOGICAL), PTL_ARG_INVALID);
  EXPECT_RC(open_ni(&ni, PTL_NI_MATCHING | PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL), PTL_ARG_INVALID);
  EXPECT_RC(open_ni(&ni, PTL_NI_MATCHING | PTL_NI_LOGICAL | PTL_NI_PHYSICAL), PTL_ARG_INVALID);
  PtlFini();
}

// 3.6.2: a pid is "less than the value PTL_PID_MAX or PTL_PID_ANY"; there is no interface of an invented number.
TEST_PROCESSES(1, NetworkInterface, Section3_6_2__illegal_pid_and_interface) {
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  EXPECT_RC(open_ni(&ni, kMatching, PTL_PID_MAX), PTL_ARG_INVALID);
  EXPECT_RC(open_ni(&ni, kMatching, PTL_PID_ANY - 1), PTL_ARG_INVALID);
  EXPECT_RC(PtlNIInit(0x7ffffff0u, kMatching, PTL_PID_ANY, nullptr, nullptr, &ni), PTL_ARG_INVALID);
  PtlFini();
}

// 3.6.2: the second PtlNIInit of a logical interface gives "the values obtained by the first caller" and ignores pid.
TEST_PROCESSES(1, NetworkInterface, Section3_6_2__second_init_gives_the_values_of_the_first) {
  const Ni first(self);
  const ptl_ni_limits_t nothing{};
  ptl_ni_limits_t actual{};
  ptl_handle_ni_t second = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, first.target().phys.pid + 1, &nothing, &actual, &second));
  EXPECT_NE(PtlHandleIsEqual(second, first), 0);
  EXPECT_EQ(actual.max_entries, first.limits().max_entries);
  EXPECT_EQ(actual.max_unexpected_headers, first.limits().max_unexpected_headers);
  EXPECT_EQ(actual.max_mds, first.limits().max_mds);
  EXPECT_EQ(actual.max_cts, first.limits().max_cts);
  EXPECT_EQ(actual.max_eqs, first.limits().max_eqs);
  EXPECT_EQ(actual.max_pt_index, first.limits().max_pt_index);
  EXPECT_EQ(actual.max_iovecs, first.limits().max_iovecs);
  EXPECT_EQ(actual.max_list_size, first.limits().max_list_size);
  EXPECT_EQ(actual.max_triggered_ops, first.limits().max_triggered_ops);
  EXPECT_EQ(actual.max_msg_size, first.limits().max_msg_size);
  EXPECT_EQ(actual.max_atomic_size, first.limits().max_atomic_size);
  EXPECT_EQ(actual.max_fetch_atomic_size, first.limits().max_fetch_atomic_size);
  EXPECT_EQ(actual.max_waw_ordered_size, first.limits().max_waw_ordered_size);
  EXPECT_EQ(actual.max_war_ordered_size, first.limits().max_war_ordered_size);
  EXPECT_EQ(actual.max_volatile_size, first.limits().max_volatile_size);
  EXPECT_EQ(actual.features, first.limits().features);
  ptl_process_t id{};
  REQUIRE_OK(PtlGetPhysId(second, &id));
  EXPECT_EQ(id.phys.pid, first.target().phys.pid);
  EXPECT_RC(PtlNIFini(second), PTL_OK);
  for (const ptl_pid_t pid : {ptl_pid_t{0}, ptl_pid_t{PTL_PID_MAX}, ptl_pid_t{PTL_PID_ANY - 1}}) {
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, pid, nullptr, nullptr, &second));
    EXPECT_RC(PtlNIFini(second), PTL_OK) << pid;
  }
}

// 3.6.3: "Resources can only be released when the reference count reaches zero."
TEST_PROCESSES(1, NetworkInterface, Section3_6_3__lives_until_the_last_fini) {
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_ni_t again = PTL_INVALID_HANDLE;
  REQUIRE_OK(open_ni(&ni));
  REQUIRE_OK(open_ni(&again));
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlEQAlloc(ni, 8, &eq));
  ptl_event_t event{};
  EXPECT_RC(PtlNIFini(again), PTL_OK);
  EXPECT_RC(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
  EXPECT_RC(PtlNIFini(ni), PTL_OK);
  EXPECT_RC(PtlEQGet(eq, &event), PTL_ARG_INVALID);
  EXPECT_RC(PtlNIFini(ni), PTL_ARG_INVALID);
  PtlFini();
}

// 3.6.3: the interface may be "reinitialized by another call to PtlNIInit()"; with the same pid, which is free again.
TEST_PROCESSES(1, NetworkInterface, Section3_6_3__may_be_opened_again) {
  REQUIRE_OK(PtlInit());
  ptl_pid_t pid = PTL_PID_ANY;
  for (int round = 0; round < 5; ++round) {
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    REQUIRE_OK(open_ni(&ni, kMatching, pid));
    ptl_process_t id{};
    REQUIRE_OK(PtlGetPhysId(ni, &id));
    if (round > 0) {
      EXPECT_EQ(id.phys.pid, pid);
    }
    pid = id.phys.pid;
    ptl_pt_index_t pt = 0;
    REQUIRE_OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, kPt, &pt));  // Nothing of the round before is left.
    REQUIRE_OK(PtlNIFini(ni));
  }
  PtlFini();
}

// 3.6.3 and Open MPI (openmpi.md M16): ends with objects still allocated, which are freed.
TEST_PROCESSES(1, NetworkInterface, Section3_6_3__frees_the_objects_of_the_interface) {
  const Ni other(self, kNonMatching);  // Keeps the library and the physical interface open.
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  REQUIRE_OK(open_ni(&ni));
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  char memory[8];
  REQUIRE_OK(PtlEQAlloc(ni, 8, &eq));
  REQUIRE_OK(PtlCTAlloc(ni, &ct));
  const ptl_md_t described = md_of(memory, sizeof memory, eq, ct);
  REQUIRE_OK(PtlMDBind(ni, &described, &md));
  REQUIRE_OK(PtlPTAlloc(ni, 0, eq, kPt, &pt));
  REQUIRE_OK(PtlTriggeredCTInc(ct, {1, 0}, ct, 10));
  EXPECT_RC(PtlNIFini(ni), PTL_OK);
  ptl_ct_event_t count{};
  ptl_event_t event{};
  EXPECT_RC(PtlCTGet(ct, &count), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQGet(eq, &event), PTL_ARG_INVALID);
  EXPECT_RC(PtlMDRelease(md), PTL_ARG_INVALID);
  PtlFini();
}

// 3.6: "All logical network interfaces associated with a single physical network interface share the same nid/pid".
TEST_PROCESSES(1, NetworkInterface, Section3_6__four_interfaces_share_one_nid_and_pid) {
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t nis[4];
  ptl_process_t ids[4];
  for (int i = 0; i < 4; ++i) {
    REQUIRE_OK(open_ni(&nis[i], kAllFour[i]));
    REQUIRE_OK(PtlGetPhysId(nis[i], &ids[i]));
    EXPECT_EQ(ids[i].phys.nid, ids[0].phys.nid);
    EXPECT_EQ(ids[i].phys.pid, ids[0].phys.pid);
    for (int k = 0; k < i; ++k) EXPECT_EQ(PtlHandleIsEqual(nis[i], nis[k]), 0);
  }
  // "Each logical network interface is initialized and shut down independently."
  EXPECT_RC(PtlNIFini(nis[1]), PTL_OK);
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlEQAlloc(nis[1], 8, &eq), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQAlloc(nis[2], 8, &eq), PTL_OK);
  PtlFini();
}

// 3.6: "all other resources are unique to a logical network interface": a message reaches the interface of its kind.
TEST_BOTH_WAYS(NetworkInterface, Section3_6__four_interfaces_do_not_mix_their_messages) {
  const Ni nis[4] = {Ni(self, kAllFour[0]), Ni(self, kAllFour[1]), Ni(self, kAllFour[2]), Ni(self, kAllFour[3])};
  const Ends ends[4] = {Ends(nis[0]), Ends(nis[1]), Ends(nis[2]), Ends(nis[3])};  // kPt on each.
  unsigned char memory[4][8] = {};
  self.target([&] {
    for (int i = 0; i < 4; ++i) {
      if (i < 2) append(nis[i], me_of(nis[i], memory[i], 8), PTL_PRIORITY_LIST, tag(100 + i));
      if (i >= 2) append(nis[i], le_of(memory[i], 8), PTL_PRIORITY_LIST, tag(100 + i));
    }
  });
  self.initiator([&] {
    for (ptl_size_t i = 0; i < 4; ++i) put_and_wait(ends[i], nis[i].target(), {.length = i + 1, .hdr_data = 200 + i});
  });
  self.target([&] {
    for (int i = 0; i < 4; ++i) {
      const ptl_event_t event = next_event(ends[i].target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(event.user_ptr, tag(100 + i));
      EXPECT_EQ(event.hdr_data, 200u + i);
      EXPECT_EQ(event.mlength, static_cast<ptl_size_t>(i + 1));
      EXPECT_TRUE(same_process(nis[i], event.initiator, nis[i].id(self.size() - 1)));
      expect_empty(ends[i].target_eq);
      EXPECT_EQ(nis[i].status(PTL_SR_DROP_COUNT), 0);
    }
  });
}

// 3.6.2: "Indicates that pid is currently in use"; a requested pid is given.
TEST_PROCESSES(2, NetworkInterface, Section3_6_2__requested_pid) {
  REQUIRE_OK(PtlInit());
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_process_t id{};
  if (self.rank() == 0) {
    int rc = PTL_PID_IN_USE;
    ptl_pid_t wanted = 41234;
    for (; rc == PTL_PID_IN_USE && wanted < 41300; ++wanted) rc = open_ni(&ni, kMatching, wanted);
    EXPECT_RC(rc, PTL_OK);
    REQUIRE_OK(PtlGetPhysId(ni, &id));
    EXPECT_EQ(id.phys.pid, wanted - 1);
  }
  const ptl_pid_t taken = self.share(id)[0].phys.pid;
  if (self.rank() == 1) {
    EXPECT_RC(open_ni(&ni, kMatching, taken), PTL_PID_IN_USE);
    EXPECT_RC(open_ni(&ni, kNonMatching, taken), PTL_PID_IN_USE);
    REQUIRE_OK(open_ni(&ni));
    REQUIRE_OK(PtlGetPhysId(ni, &id));
    EXPECT_NE(id.phys.pid, taken);
    REQUIRE_OK(PtlNIFini(ni));
  }
  self.barrier();
  if (self.rank() == 0) REQUIRE_OK(PtlNIFini(ni));
  self.barrier();
  if (self.rank() == 1) {
    EXPECT_RC(open_ni(&ni, kMatching, taken), PTL_OK);
  }
  PtlFini();
}

// 3.6.4: reads a register; an index that names none is an error.
TEST_PROCESSES(1, NetworkInterface, Section3_6_4__status_registers) {
  const Ni ni(self);
  for (ptl_sr_index_t index : {PTL_SR_DROP_COUNT, PTL_SR_PERMISSION_VIOLATIONS, PTL_SR_OPERATION_VIOLATIONS})
    EXPECT_EQ(ni.status(index), 0);  // Of an interface to which nothing has come.
  ptl_sr_value_t value = 0;
  EXPECT_RC(PtlNIStatus(ni, static_cast<ptl_sr_index_t>(PTL_SR_LAST), &value), PTL_ARG_INVALID);
  static_assert(sizeof(ptl_sr_value_t) >= 4 && static_cast<ptl_sr_value_t>(-1) < 0);  // 3.3.7: signed, 32 bits.
}

// 3.6.5: the interface "with which the object is associated"; for an interface "the same value it is passed".
TEST_PROCESSES(1, NetworkInterface, Section3_6_5__handle_of_the_interface_of_an_object) {
  const Ni ni(self);
  const Ni plain(self, kNonMatching);
  const Ends ends(ni);
  const auto owner = [](ptl_handle_any_t handle) {
    ptl_handle_ni_t out = PTL_INVALID_HANDLE;
    REQUIRE_OK(PtlNIHandle(handle, &out));
    return out;
  };
  EXPECT_EQ(owner(ni), ni);
  EXPECT_EQ(owner(ends.md), ni);
  EXPECT_EQ(owner(ends.target_eq), ni);
  EXPECT_EQ(owner(alloc_ct(ni)), ni);
  EXPECT_EQ(owner(append(ni, me_of(ni, nullptr, 0))), ni);
  EXPECT_EQ(owner(plain), plain);
  EXPECT_EQ(owner(alloc_eq(plain)), plain);
  alloc_pt(plain, PTL_EQ_NONE);
  EXPECT_EQ(owner(append(plain, le_of(nullptr, 0))), plain);
}

// 3.6.1: "Maximum number of ... that can be allocated at any one time"; 3.6.2: beyond it PTL_NO_SPACE.
TEST_PROCESSES(1, NetworkInterface, Section3_6_1__max_mds) {
  const ptl_ni_limits_t small = small_limits();
  const Ni ni(self, kMatching, &small);
  char memory[8];
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  const ptl_md_t described = md_of(memory, sizeof memory);
  expect_enforced(self, ni.limits().max_mds, PTL_NO_SPACE, [&] { return PtlMDBind(ni, &described, &md); });
}

TEST_PROCESSES(1, NetworkInterface, Section3_6_1__max_cts) {
  const ptl_ni_limits_t small = small_limits();
  const Ni ni(self, kMatching, &small);
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  expect_enforced(self, ni.limits().max_cts, PTL_NO_SPACE, [&] { return PtlCTAlloc(ni, &ct); });
}

TEST_PROCESSES(1, NetworkInterface, Section3_6_1__max_eqs) {
  const ptl_ni_limits_t small = small_limits();
  const Ni ni(self, kMatching, &small);
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  expect_enforced(self, ni.limits().max_eqs, PTL_NO_SPACE, [&] { return PtlEQAlloc(ni, 1, &eq); });
}

TEST_PROCESSES(1, NetworkInterface, Section3_6_1__max_entries) {
  ptl_ni_limits_t small = small_limits();
  small.max_list_size = 100000;  // This limit must not be the first one met.
  const Ni ni(self, kMatching, &small);
  if (ni.limits().max_list_size < ni.limits().max_entries) self.skip("max_list_size is smaller than max_entries");
  alloc_pt(ni, PTL_EQ_NONE);
  const ptl_me_t me = me_of(ni, nullptr, 0);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  const auto allocate = [&] { return PtlMEAppend(ni, kPt, &me, PTL_PRIORITY_LIST, nullptr, &handle); };
  if (ni.limits().max_list_size == ni.limits().max_entries) self.skip("max_list_size equals max_entries");
  expect_enforced(self, ni.limits().max_entries, PTL_NO_SPACE, allocate);
  EXPECT_RC(PtlMEUnlink(handle), PTL_OK);  // "at any one time": room for another one.
  EXPECT_RC(allocate(), PTL_OK);
}

TEST_PROCESSES(1, NetworkInterface, Section3_6_1__max_list_size) {
  ptl_ni_limits_t small = small_limits();
  small.max_entries = 100000;
  const Ni ni(self, kMatching, &small);
  if (ni.limits().max_entries <= ni.limits().max_list_size) self.skip("max_entries is not above max_list_size");
  alloc_pt(ni, PTL_EQ_NONE);
  const ptl_me_t me = me_of(ni, nullptr, 0);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  const auto allocate = [&] { return PtlMEAppend(ni, kPt, &me, PTL_PRIORITY_LIST, nullptr, &handle); };
  expect_enforced(self, ni.limits().max_list_size, PTL_LIST_TOO_LONG, allocate);
  // "attached to the list on any portal table index": another index has room, and so has this one after an unlink.
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  const ptl_handle_me_t last = handle;
  EXPECT_RC(PtlMEAppend(ni, kOtherPt, &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_OK);
  EXPECT_RC(PtlMEUnlink(last), PTL_OK);
  EXPECT_RC(allocate(), PTL_OK);
  EXPECT_RC(allocate(), PTL_LIST_TOO_LONG);
}

TEST_PROCESSES(1, NetworkInterface, Section3_6_1__max_triggered_ops) {
  const ptl_ni_limits_t small = small_limits();
  const Ni ni(self, kMatching, &small);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  expect_enforced(self, ni.limits().max_triggered_ops, PTL_NO_SPACE, [&] {
    return PtlTriggeredCTInc(ct, {1, 0}, ct, 1000);
  });
  REQUIRE_OK(PtlCTCancelTriggered(ct));
  EXPECT_RC(PtlTriggeredCTInc(ct, {1, 0}, ct, 1000), PTL_OK);
}

// 3.6.1: "Maximum size (in bytes) of a message"; longer is an error of the caller (3.4).
TEST_PROCESSES(1, NetworkInterface, Section3_6_1__max_msg_size) {
  const Ni ni(self);
  const ptl_handle_md_t everything = bind_md(ni, md_of(nullptr, PTL_SIZE_MAX));
  if (ni.limits().max_msg_size == PTL_SIZE_MAX) self.skip("messages have no limit");
  const ptl_size_t length = ni.limits().max_msg_size + 1;
  EXPECT_RC(PtlPut(everything, 0, length, PTL_NO_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, 0), PTL_ARG_INVALID);
  EXPECT_RC(PtlGet(everything, 0, length, ni.target(), kPt, 0, 0, nullptr), PTL_ARG_INVALID);
}
