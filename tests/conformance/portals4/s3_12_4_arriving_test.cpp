// Portals 4.3, 2.5, 3.12.1-3.12.4 and C.5: appends and searches that find the header of a message whose data is still
// arriving. 2.5: "Overflow events may only occur after the data has been fully delivered to the overflow buffer." The
// message is long, and all that is said of it holds as well if it has come first.

#include <atomic>
#include <functional>
#include <vector>

#include "../harness/fixture.h"

using namespace conformance;

namespace {

constexpr std::size_t kBytes = std::size_t{32} << 20;
constexpr ptl_match_bits_t kBits = 7;
constexpr unsigned char kByte = 0x5a;

ptl_me_t matching(const Ni& ni, unsigned int options = 0) {
  ptl_me_t me = me_of(ni, nullptr, 0, options);
  me.match_bits = kBits;
  return me;
}

// A long message of the initiator goes into the overflow list of the target, which has found its header.
struct Arriving {
  explicit Arriving(Process& process) : self(process), ni(process), ends(ni) {
    self.target([&] {
      memory.resize(kBytes);
      ptl_me_t me = me_of(ni, memory.data(), kBytes, PTL_ME_EVENT_COMM_DISABLE);
      me.ignore_bits = ~ptl_match_bits_t{0};
      append(ni, me, PTL_OVERFLOW_LIST, tag(99));
    });
    if (self.is_target()) {
      ptl_me_t me = matching(ni, PTL_ME_USE_ONCE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE);
      me.ct_handle = alloc_ct(ni);
      while (count_of(me.ct_handle).success == 0) REQUIRE_OK(PtlMESearch(ni, kPt, &me, PTL_SEARCH_ONLY, nullptr));
    } else {
      out.assign(kBytes, kByte);
      put(bind_quiet(ni, out.data(), kBytes, ends.source_eq), ni.target(),
          {.length = kBytes, .match_bits = kBits, .hdr_data = 5});
    }
  }
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

  bool is_here() { return std::atomic_ref(memory.back()).load() == kByte; }

  // The next event is the overflow event of the message for `user_ptr`, and its data is there.
  void expect_overflow_event(void* user_ptr) {
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_TRUE(is_here());
    EXPECT_EQ(event.user_ptr, user_ptr);
    EXPECT_EQ(event.hdr_data, 5u);
    EXPECT_EQ(event.mlength, kBytes);
  }

  Process& self;
  const Ni ni;
  const Ends ends;
  std::vector<unsigned char> out;     // Of the initiator.
  std::vector<unsigned char> memory;  // Of the target.
};

// Runs the test at the target, when it has found the header.
void while_arriving(Process& self, const std::function<void(Arriving&)>& test) {
  Arriving message(self);
  if (self.is_target()) {
    test(message);
  } else {
    next_event(message.ends.source_eq, PTL_EVENT_ACK);
  }
  self.barrier();
}

}  // namespace

// 3.12.4: "at the end of the search, a PTL_EVENT_SEARCH event is generated with a failure indication of
// PTL_NI_NO_MATCH"; 3.13.1: it indicates "that all matching list entries have been reported"; the count of failed
// events is incremented "after all of the unexpected headers have been checked".
TEST_PROCESSES(2, Arriving, Section3_12_4__persistent_search_ends_behind_its_matches) {
  while_arriving(self, [](Arriving& message) {
    ptl_me_t me = matching(message.ni);
    me.ct_handle = alloc_ct(message.ni);
    REQUIRE_OK(PtlMESearch(message.ni, kPt, &me, PTL_SEARCH_DELETE, tag(1)));
    EXPECT_EQ(wait_for_count(me.ct_handle, 1).success, 1u) << "the end before the match";
    EXPECT_TRUE(message.is_here());
    wait_for_counts(me.ct_handle, 1, 1);
    message.expect_overflow_event(tag(1));
    EXPECT_EQ(next_event(message.ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(1));
    expect_empty(message.ends.target_eq);
  });
}

// 2.5 and 3.12.4: a match that is deleted is counted when its data is there; another search finds nothing meanwhile.
TEST_PROCESSES(2, Arriving, Section3_12_4__deleting_search_counts_what_is_delivered) {
  while_arriving(self, [](Arriving& message) {
    ptl_me_t me = matching(message.ni, PTL_ME_USE_ONCE | PTL_ME_EVENT_OVER_DISABLE);
    me.ct_handle = alloc_ct(message.ni);
    REQUIRE_OK(PtlMESearch(message.ni, kPt, &me, PTL_SEARCH_DELETE, tag(1)));
    const ptl_me_t other = matching(message.ni, PTL_ME_USE_ONCE);
    REQUIRE_OK(PtlMESearch(message.ni, kPt, &other, PTL_SEARCH_DELETE, tag(2)));
    EXPECT_EQ(next_event(message.ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(2));
    wait_for_count(me.ct_handle, 1);
    EXPECT_TRUE(message.is_here());
    EXPECT_EQ(count_of(me.ct_handle).failure, 0u);
  });
}

// 3.12.4: PTL_SEARCH_ONLY tells of a message "when [it] is found in the unexpected list". 3.13.4: its mlength "is the
// same value as the mlength returned in the corresponding" event of the overflow entry.
TEST_PROCESSES(2, Arriving, Section3_12_4__search_only_tells_what_will_have_been_delivered) {
  while_arriving(self, [](Arriving& message) {
    const ptl_me_t me = matching(message.ni);
    REQUIRE_OK(PtlMESearch(message.ni, kPt, &me, PTL_SEARCH_ONLY, tag(1)));
    const ptl_event_t event = next_event(message.ends.target_eq, PTL_EVENT_SEARCH);
    EXPECT_EQ(event.hdr_data, 5u);
    EXPECT_EQ(event.rlength, kBytes);
    EXPECT_EQ(event.mlength, kBytes);
    next_event(message.ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    append(message.ni, matching(message.ni, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, tag(2));
    message.expect_overflow_event(tag(2));
    next_event(message.ends.target_eq, PTL_EVENT_AUTO_UNLINK);
  });
}

// 3.12.3: an entry that "has pending operations ... will not be unlinked"; after PTL_OK no event of it comes.
TEST_PROCESSES(2, Arriving, Section3_12_3__entry_that_waits_for_its_overflow_event_is_in_use) {
  while_arriving(self, [](Arriving& message) {
    const ptl_handle_me_t handle = append(message.ni, matching(message.ni), PTL_PRIORITY_LIST, tag(1));
    int rc = PTL_IN_USE;
    while (rc == PTL_IN_USE) {
      rc = PtlMEUnlink(handle);
      if (rc == PTL_OK) {
        EXPECT_TRUE(message.is_here()) << "unlinked while its message was arriving";
      }
    }
    EXPECT_RC(rc, PTL_OK);
    message.expect_overflow_event(tag(1));
    expect_empty(message.ends.target_eq);
  });
}

// C.5: "PTL_EVENT_AUTO_UNLINK must come after all other events on a list entry". 3.12.1: PTL_ME_LOCAL_INC_UH_RLENGTH:
// "the match list entry is not appended to the priority list and a PTL_EVENT_AUTO_UNLINK event is generated".
TEST_PROCESSES(2, Arriving, Section3_12_1__local_inc_uh_rlength_unlinks_behind_its_overflow_event) {
  while_arriving(self, [](Arriving& message) {
    std::vector<unsigned char> small(16);
    ptl_me_t me = me_of(message.ni, small.data(), 16, PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH | kLink);
    me.match_bits = kBits;
    me.min_free = 8;
    const ptl_handle_me_t handle = append(message.ni, me, PTL_PRIORITY_LIST, tag(1));
    EXPECT_RC(PtlMEUnlink(handle), PTL_IN_USE);
    message.expect_overflow_event(tag(1));
    EXPECT_EQ(next_event(message.ends.target_eq, PTL_EVENT_AUTO_UNLINK).user_ptr, tag(1));
    expect_empty(message.ends.target_eq);  // No LINK.
  });
}

// C.5, the same for an entry that a later message uses up.
TEST_PROCESSES(2, Arriving, Section3_12_1__min_free_unlinks_behind_the_overflow_events) {
  while_arriving(self, [](Arriving& message) {
    std::vector<unsigned char> small(16);
    ptl_me_t me = me_of(message.ni, small.data(), 16, PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE);
    me.ignore_bits = ~ptl_match_bits_t{0};
    me.min_free = 16;
    append(message.ni, me, PTL_PRIORITY_LIST, tag(1));
    put_and_wait(message.ends, message.ni.target(), {.length = 8, .match_bits = 9});
    message.expect_overflow_event(tag(1));
    EXPECT_EQ(next_event(message.ends.target_eq, PTL_EVENT_AUTO_UNLINK).user_ptr, tag(1));
  });
}
