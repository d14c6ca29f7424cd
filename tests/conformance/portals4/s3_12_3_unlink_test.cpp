// Portals 4.3, 3.12.3: PtlMEUnlink.
#include <algorithm>
#include <atomic>
#include <thread>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Unlink);

namespace {

alignas(64) unsigned char target_memory[64];

ptl_me_t entry(const Ni& ni, unsigned int options = 0) {
  return me_of(ni, target_memory, sizeof target_memory, options);
}

}  // namespace

// 3.12.3 and openmpi.md M10: PTL_OK: the entry is gone, no event of it comes, and messages do not find it.
TEST_BOTH_WAYS(Unlink, Section3_12_3__posted_entry) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    const ptl_handle_me_t first = append(ni, entry(ni, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, tag(1));
    const ptl_handle_me_t second = append(ni, entry(ni), PTL_PRIORITY_LIST, tag(2));
    append(ni, entry(ni), PTL_PRIORITY_LIST, tag(3));
    EXPECT_RC(PtlMEUnlink(second), PTL_OK);
    EXPECT_RC(PtlMEUnlink(first), PTL_OK);
    expect_empty(ends.target_eq);  // AUTO_UNLINK is for entries that unlink themselves.
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).user_ptr, tag(3));
    expect_empty(ends.target_eq);
  });
}

// 3.12.3: "If PtlMEUnlink() returned PTL_OK, it is an error to use the match list entry handle".
TEST_PROCESSES(1, Unlink, Section3_12_3__handle_is_dead_afterwards) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_me_t handle = append(ni, entry(ni));
  EXPECT_RC(PtlMEUnlink(handle), PTL_OK);
  EXPECT_RC(PtlMEUnlink(handle), PTL_ARG_INVALID);
  const ptl_handle_me_t next = append(ni, entry(ni));
  EXPECT_RC(PtlMEUnlink(handle), PTL_ARG_INVALID) << "also when its place is used again";
  EXPECT_RC(PtlMEUnlink(next), PTL_OK);
}

// 3.12.3: PTL_IN_USE "if the match list entry is on the overflow list and has associated unexpected headers"; then "the
// list entry will not be unlinked".
TEST_BOTH_WAYS(Unlink, Section3_12_3__overflow_entry_with_headers_is_in_use) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_handle_me_t overflow = PTL_INVALID_HANDLE;
  self.target([&] { overflow = append(ni, entry(ni), PTL_OVERFLOW_LIST, tag(9)); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8, .hdr_data = 1}); });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_RC(PtlMEUnlink(overflow), PTL_IN_USE);
    EXPECT_RC(PtlMEUnlink(overflow), PTL_IN_USE) << "the handle stays valid";
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8, .hdr_data = 2}); });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).user_ptr, tag(9)) << "it is still linked";
    const ptl_me_t search = entry(ni, PTL_ME_USE_ONCE);
    REQUIRE_OK(PtlMESearch(ni, kPt, &search, PTL_SEARCH_DELETE, nullptr));
    next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_RC(PtlMEUnlink(overflow), PTL_IN_USE) << "one header is left";
    const ptl_handle_me_t receive = append(ni, entry(ni, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, 2u);
    EXPECT_RC(PtlMEUnlink(receive), PTL_IN_USE) << "it has been used up before it was linked";
    EXPECT_RC(PtlMEUnlink(overflow), PTL_OK);
    expect_empty(ends.target_eq);  // No AUTO_FREE: it did not unlink itself.
  });
}

// 3.12.3: "If the match list entry has been unlinked before a call to PtlMEUnlink() but before the next call to
// PtlMEAppend(), PtlMEUnlink() must return PTL_IN_USE."
TEST_BOTH_WAYS(Unlink, Section3_12_3__entry_that_has_unlinked_itself_is_in_use) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_handle_me_t once = PTL_INVALID_HANDLE;
  self.target([&] { once = append(ni, entry(ni, PTL_ME_USE_ONCE)); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_RC(PtlMEUnlink(once), PTL_IN_USE);
    next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK);
    EXPECT_RC(PtlMEUnlink(once), PTL_IN_USE);
  });
}

// openmpi.md M4: when the event of the only operation is visible, a persistent entry has nothing pending.
TEST_BOTH_WAYS(Unlink, Section3_12_3__entry_is_free_when_the_event_is_visible) {
  const Ni ni(self);
  Ends ends(ni);
  std::vector<unsigned char> memory = pattern(300000, 5);
  std::vector<unsigned char> in(memory.size());
  const ptl_handle_md_t md = bind_quiet(ni, in.data(), in.size(), ends.source_eq);
  for (ptl_size_t length : {8u, 5000u, 300000u}) {
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    self.target([&] { handle = append(ni, me_of(ni, memory.data(), memory.size())); });
    if (self.is_initiator()) get(md, ni.target(), {.length = length});
    if (self.is_target()) {
      next_event(ends.target_eq, PTL_EVENT_GET);
      EXPECT_RC(PtlMEUnlink(handle), PTL_OK) << length << " bytes";
    }
    if (self.is_initiator()) {
      next_event(ends.source_eq, PTL_EVENT_REPLY);
      EXPECT_TRUE(std::equal(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(length), memory.begin()));
    }
    self.barrier();
  }
}

// 3.12.3: against messages under way: each entry is either unlinked (no event) or used (PUT event), never both.
TEST_BOTH_WAYS(Unlink, Section3_12_3__race_with_messages) {
  const Ni ni(self);
  constexpr int kEntries = 300;
  const Ends ends(ni, 0, 4 * kEntries);
  std::vector<ptl_handle_me_t> handles;
  self.target([&] {
    for (std::uintptr_t i = 0; i < kEntries; ++i)
      handles.push_back(
          append(ni, entry(ni, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE), PTL_PRIORITY_LIST, tag(i)));
    append(ni, entry(ni, PTL_ME_EVENT_COMM_DISABLE));
  });
  const auto send_all = [&] {
    for (int i = 0; i < kEntries; ++i) put(ends.md, ni.target(), {.length = 8});
    for (int i = 0; i < kEntries; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  };
  std::vector<bool> unlinked(kEntries);
  const auto unlink_all = [&] {
    for (int i = kEntries - 1; i >= 0; --i) {
      const int rc = PtlMEUnlink(handles[static_cast<std::size_t>(i)]);
      EXPECT_TRUE(rc == PTL_OK || rc == PTL_IN_USE) << name_of_rc(rc);
      unlinked[static_cast<std::size_t>(i)] = rc == PTL_OK;
    }
  };
  if (self.size() == 1) {
    std::thread other(unlink_all);
    send_all();
    other.join();
  } else if (self.is_target()) {
    unlink_all();
  } else {
    send_all();
  }
  self.barrier();
  self.target([&] {
    std::vector<bool> used(kEntries);
    for (const ptl_event_t& event : drain(ends.target_eq)) {
      EXPECT_EQ(event.type, PTL_EVENT_PUT);
      used[reinterpret_cast<std::uintptr_t>(event.user_ptr)] = true;
    }
    for (std::size_t i = 0; i < kEntries; ++i) EXPECT_NE(unlinked[i], used[i]) << "entry " << i;
  });
}

// 3.12.3: "If the list entry handle passed to PtlMEUnlink() has pending operations, e.g., an unfinished put operation,
// then PtlMEUnlink() will return PTL_IN_USE, and the list entry will not be unlinked."
TEST_PROCESSES(2, Unlink, Section3_12_3__entry_with_an_unfinished_put_is_in_use) {
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> memory(std::size_t{16} << 20);
  const std::vector<unsigned char> out(memory.size(), 9);
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  self.target([&] { handle = append(ni, me_of(ni, memory.data(), memory.size()), PTL_PRIORITY_LIST, tag(1)); });
  if (self.is_initiator()) {
    put(md, ni.target(), {.length = out.size()});
    next_event(ends.source_eq, PTL_EVENT_ACK);
  } else {
    while (std::atomic_ref(memory[0]).load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    const int rc = PtlMEUnlink(handle);
    const bool complete = memory.back() == 9;
    if (!complete) {
      EXPECT_RC(rc, PTL_IN_USE) << "the put has begun and has not ended";
    }
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).mlength, memory.size());
    if (rc == PTL_IN_USE) {
      EXPECT_RC(PtlMEUnlink(handle), PTL_OK) << "it was not unlinked";
    }
  }
  self.barrier();
}
