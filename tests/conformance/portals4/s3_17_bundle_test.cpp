// Portals 4.3, 3.17: PtlStartBundle and PtlEndBundle.
#include <algorithm>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Bundle);

// 3.17.2: "At each call to PtlEndBundle(), the implementation must initiate all communication operations that have been
// deferred", in their order (2.7).
TEST_BOTH_WAYS(Bundle, Section3_17_2__end_starts_all_operations) {
  const Ni ni(self);
  Ends ends(ni);
  unsigned char memory[64] = {};
  self.target([&] { append(ni, me_of(ni, memory, 64)); });
  self.initiator([&] {
    EXPECT_RC(PtlStartBundle(ni), PTL_OK);
    for (ptl_hdr_data_t i = 0; i < 20; ++i) put(ends.md, ni.target(), {.length = 8, .hdr_data = i});
    get(ends.md, ni.target(), {.length = 8, .local_offset = 1000});
    EXPECT_RC(PtlEndBundle(ni), PTL_OK);
    for (int i = 0; i < 21; ++i) EXPECT_EQ(next_event(ends.source_eq).ni_fail_type, PTL_NI_OK);
  });
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < 20; ++i) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, i);
    next_event(ends.target_eq, PTL_EVENT_GET);
  });
}

// 3.17.1: "can be called multiple times, and each call increments a reference count"; 3.17.2: also an inner end starts
// what has been deferred.
TEST_BOTH_WAYS(Bundle, Section3_17_1__nested) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, me_of(ni, nullptr, 0)); });
  self.initiator([&] {
    REQUIRE_OK(PtlStartBundle(ni));
    REQUIRE_OK(PtlStartBundle(ni));
    put(ends.md, ni.target(), {.length = 8});
    EXPECT_RC(PtlEndBundle(ni), PTL_OK);
    next_event(ends.source_eq, PTL_EVENT_ACK);
    put(ends.md, ni.target(), {.length = 8});
    EXPECT_RC(PtlEndBundle(ni), PTL_OK);
    next_event(ends.source_eq, PTL_EVENT_ACK);
    put_and_wait(ends, ni.target(), {.length = 8});
  });
}

// 3.17.1: "only impacts operations on that ni_handle".
TEST_BOTH_WAYS(Bundle, Section3_17_1__other_interfaces_are_not_held_back) {
  const Ni ni(self);
  const Ni plain(self, kNonMatching);
  const Ends plain_ends(plain);
  self.target([&] { append(plain, le_of(nullptr, 0)); });
  self.initiator([&] {
    REQUIRE_OK(PtlStartBundle(ni));
    put_and_wait(plain_ends, plain.target(), {.length = 8});
    REQUIRE_OK(PtlEndBundle(ni));
  });
}

// 3.17.1: the implementation "may begin deferring" operations of the initiator; as a target the process goes on.
TEST_PROCESSES(2, Bundle, Section3_17_1__target_with_an_open_bundle_still_answers) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    append(ni, me_of(ni, nullptr, 0));
    REQUIRE_OK(PtlStartBundle(ni));
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    REQUIRE_OK(PtlEndBundle(ni));
  });
}

// 3.17: bundles are "a mechanism for allowing the Portals implementation to optimize": with and without them the same
// happens, for every kind of operation.
TEST_BOTH_WAYS(Bundle, Section3_17__changes_nothing_but_the_time) {
  const Ni ni(self);
  Ends ends(ni);
  alignas(8) unsigned char memory[2][64] = {};
  self.target([&] {
    for (ptl_match_bits_t bits : {0u, 1u}) {
      ptl_me_t me = me_of(ni, memory[bits], 64);
      me.match_bits = bits;
      append(ni, me);
    }
  });
  self.initiator([&] {
    for (ptl_match_bits_t bits : {0u, 1u}) {
      if (bits == 1) REQUIRE_OK(PtlStartBundle(ni));
      put(ends.md, ni.target(), {.length = 64, .match_bits = bits});
      atomic(ends.md, ni.target(), {.length = 32, .match_bits = bits});
      fetch_atomic(ends.md, 1000, ends.md, ni.target(), {.length = 32, .match_bits = bits});
      swap(ends.md, 1000, ends.md, ni.target(), {.length = 8, .match_bits = bits, .op = PTL_SWAP});
      get(ends.md, ni.target(), {.length = 64, .local_offset = 2000 + 64 * bits, .match_bits = bits});
      if (bits == 1) REQUIRE_OK(PtlEndBundle(ni));
      for (int i = 0; i < 5; ++i) EXPECT_EQ(next_event(ends.source_eq).ni_fail_type, PTL_NI_OK);
    }
    EXPECT_TRUE(std::equal(&ends.data[2000], &ends.data[2064], &ends.data[2064]));
  });
  self.target([&] { EXPECT_TRUE(std::equal(memory[0], memory[0] + 64, memory[1])); });
}
