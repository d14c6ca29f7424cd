// Portals 4.3, 3.13.1 and 3.13.2: which events occur where, and in which order those of one entry come when several
// long messages are under way to it at once.
#include <algorithm>
#include <iterator>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Occurrence);

namespace {

using Kinds = std::vector<ptl_event_kind_t>;

alignas(64) unsigned char target_memory[64];

Kinds sorted(Kinds kinds) {
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

/// One operation, and the kinds of events that figure 3-1 shows for it.
struct Row {
  const char* name;
  void (*start)(const Ni& ni, ptl_handle_md_t md);
  Kinds at_initiator;
  ptl_event_kind_t at_target;
};

const Row kFigure[] = {
    {"put",
     [](const Ni& ni, ptl_handle_md_t md) { put(md, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ}); },
     {PTL_EVENT_SEND},
     PTL_EVENT_PUT},
    {"put with acknowledgment",
     [](const Ni& ni, ptl_handle_md_t md) { put(md, ni.target(), {.length = 8}); },
     {PTL_EVENT_SEND, PTL_EVENT_ACK},
     PTL_EVENT_PUT},
    {"get",
     [](const Ni& ni, ptl_handle_md_t md) { get(md, ni.target(), {.length = 8}); },
     {PTL_EVENT_REPLY},
     PTL_EVENT_GET},
    {"atomic",
     [](const Ni& ni, ptl_handle_md_t md) { atomic(md, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ}); },
     {PTL_EVENT_SEND},
     PTL_EVENT_ATOMIC},
    {"atomic with acknowledgment",
     [](const Ni& ni, ptl_handle_md_t md) { atomic(md, ni.target(), {.length = 8}); },
     {PTL_EVENT_SEND, PTL_EVENT_ACK},
     PTL_EVENT_ATOMIC},
    {"fetch atomic",
     [](const Ni& ni, ptl_handle_md_t md) { fetch_atomic(md, 64, md, ni.target(), {.length = 8}); },
     {PTL_EVENT_SEND, PTL_EVENT_REPLY},
     PTL_EVENT_FETCH_ATOMIC},
    {"swap",
     [](const Ni& ni, ptl_handle_md_t md) { swap(md, 64, md, ni.target(), {.length = 8, .op = PTL_SWAP}); },
     {PTL_EVENT_SEND, PTL_EVENT_REPLY},
     PTL_EVENT_FETCH_ATOMIC}};

}  // namespace

// Figure 3-1: "which events are generated at the initiator and the target side" of each operation: these and no others.
TEST_BOTH_WAYS(Occurrence, Section3_13_2__of_each_operation) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), ends.data.size(), eq));
  self.target([&] { append(ni, me_of(ni, target_memory, 64)); });
  for (const Row& row : kFigure) {
    SCOPED_TRACE(row.name);
    self.initiator([&] {
      row.start(ni, md);
      EXPECT_EQ(next_kinds(eq, static_cast<int>(row.at_initiator.size())), sorted(row.at_initiator));
      expect_empty(eq);
    });
    self.target([&] {
      next_event(ends.target_eq, row.at_target);
      expect_empty(ends.target_eq);
    });
  }
}

// 3.13.2: "No initiator events are generated if the memory descriptor does not have an attached event queue. Similarly,
// no target events are generated if the portal table entry ... does not".
TEST_BOTH_WAYS(Occurrence, Section3_13_2__not_without_an_event_queue) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::vector<unsigned char> data = pattern(256);
  const ptl_handle_md_t md = bind_md(ni, md_of(data.data(), data.size(), PTL_EQ_NONE, ct,
                                               PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY));
  const ptl_handle_ct_t target_ct = alloc_ct(ni);
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 64, PTL_ME_EVENT_CT_COMM | kLink);
    me.ct_handle = target_ct;
    append(ni, me);
  });
  self.initiator([&] {
    ptl_size_t events = 0;
    for (const Row& row : kFigure) {
      row.start(ni, md);
      events += row.at_initiator.size();
    }
    EXPECT_EQ(wait_for_count(ct, events).success, events);
  });
  self.target([&] { EXPECT_EQ(wait_for_count(target_ct, std::size(kFigure)).success, std::size(kFigure)); });
}

// 3.13.1: "A PTL_EVENT_AUTO_UNLINK must be delivered after all PTL_EVENT_GET, PTL_EVENT_PUT, ... events associated with
// the list entry": also when three initiators fill it at once with messages that take their time, and the one that uses
// it up ends first.
TEST_PROCESSES(4, Occurrence, Section3_13_1__auto_unlink_after_all_messages_under_way) {
  const Ni ni(self);
  const Ends ends(ni);
  constexpr ptl_size_t kLong = 1 << 20;
  std::vector<unsigned char> memory(3 * kLong);
  const std::vector<unsigned char> out = pattern(kLong, static_cast<unsigned int>(self.rank()));
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  for (std::uintptr_t round = 0; round < 10; ++round) {
    self.target([&] {
      ptl_me_t me = me_of(ni, memory.data(), memory.size(), PTL_ME_MANAGE_LOCAL);
      me.min_free = kLong;  // Met by the third message.
      append(ni, me, PTL_PRIORITY_LIST, tag(round));
    });
    self.initiator([&] {
      // The last one to come is the shortest.
      put(md, ni.target(), {.length = kLong - 4096 * static_cast<ptl_size_t>(self.rank())});
      next_event(ends.source_eq, PTL_EVENT_ACK);
    });
    self.target([&] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).user_ptr, tag(round));
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK).user_ptr, tag(round));
      expect_empty(ends.target_eq);
    });
  }
}

// 3.11, 3.13.1: "PTL_EVENT_AUTO_FREE full event will be posted after all other events (including counting events)
// associated with the buffer have been delivered": the same on the overflow list, with receives posted meanwhile.
TEST_PROCESSES(4, Occurrence, Section3_13_1__auto_free_after_all_else) {
  const Ni ni(self);
  const Ends ends(ni);
  constexpr ptl_size_t kLong = 1 << 20;
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::vector<unsigned char> memory(3 * kLong);
  const std::vector<unsigned char> out = pattern(kLong, 1);
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  self.target([&] {
    ptl_me_t me = me_of(ni, memory.data(), memory.size(), PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_CT_COMM);
    me.min_free = kLong;
    me.ct_handle = ct;
    append(ni, me, PTL_OVERFLOW_LIST, tag(1));
  });
  if (self.is_initiator()) {
    put(md, ni.target(), {.length = kLong - 4096 * static_cast<ptl_size_t>(self.rank())});
    next_event(ends.source_eq, PTL_EVENT_ACK);
  } else {
    // Headers are taken as soon as they are there, which may be before their messages are complete.
    Kinds order;
    for (int i = 0; i < 3; ++i) {
      const ptl_me_t search = me_of(ni, nullptr, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      ptl_event_t event{};
      do {
        REQUIRE_OK(PtlMESearch(ni, kPt, &search, PTL_SEARCH_DELETE, tag(2)));
        do {
          event = next_event(ends.target_eq);
          if (event.type != PTL_EVENT_SEARCH) order.push_back(event.type);
        } while (event.user_ptr != tag(2));
      } while (event.type == PTL_EVENT_SEARCH);
    }
    while (order.size() < 8) order.push_back(next_event(ends.target_eq).type);
    EXPECT_EQ(count_of(ct).success, 3u) << "counted before AUTO_FREE";
    EXPECT_EQ(std::count(order.begin(), order.end(), PTL_EVENT_PUT), 3);
    EXPECT_EQ(std::count(order.begin(), order.end(), PTL_EVENT_PUT_OVERFLOW), 3);
    const auto at = [&order](ptl_event_kind_t kind) { return std::find(order.begin(), order.end(), kind); };
    EXPECT_EQ(std::find(at(PTL_EVENT_AUTO_UNLINK), order.end(), PTL_EVENT_PUT), order.end());
    EXPECT_EQ(order.back(), PTL_EVENT_AUTO_FREE);
    expect_empty(ends.target_eq);
  }
  self.barrier();
}
