// Portals 4.3, 2.7: ordering of messages and of data.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Ordering);

namespace {

alignas(64) unsigned char target_memory[4096];

// Sizes that an implementation is likely to move in different ways, mixed.
ptl_size_t mixed_size(ptl_hdr_data_t i) {
  constexpr ptl_size_t kSizes[] = {8, 70000, 0, 500, 300000, 64, 5000, 1, 20000, 4096};
  return kSizes[(i * 7 + i / 10) % 10];
}

constexpr ptl_hdr_data_t kMessages = 200;
constexpr unsigned int kOnceQuiet = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;

}  // namespace

// 2.7: "For all messages regardless of size, message ordering is provided": message i finds entry i. 2.7.2: the data of
// long ones may come in any order, so the events may.
TEST_BOTH_WAYS(Ordering, Section2_7_2__messages_are_matched_in_the_order_they_were_sent) {
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> out = pattern(300000);
  std::vector<std::vector<unsigned char>> in(kMessages, std::vector<unsigned char>(1));
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) {
      in[i].resize(mixed_size(i) + 1);
      append(ni, me_of(ni, in[i].data(), in[i].size(), kOnceQuiet), PTL_PRIORITY_LIST, tag(i));
    }
  });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) put(md, ni.target(), {.length = mixed_size(i), .hdr_data = i});
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(event.user_ptr, tag(event.hdr_data));
      EXPECT_EQ(event.rlength, mixed_size(event.hdr_data));
      EXPECT_EQ(std::memcmp(in[event.hdr_data].data(), out.data(), event.mlength), 0) << "message " << event.hdr_data;
    }
  });
}

// 2.7.4: "Information on the ordering of unexpected headers is captured": they are found in the order they were sent,
// from several MDs of one process as well.
TEST_BOTH_WAYS(Ordering, Section2_7_4__unexpected_headers_keep_their_order) {
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> out = pattern(300000);
  const ptl_handle_md_t mds[2] = {bind_quiet(ni, out.data(), out.size(), ends.source_eq),
                                  bind_quiet(ni, out.data(), out.size(), ends.source_eq)};
  self.target([&] { append(ni, me_of(ni, nullptr, 0, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i)
      put(mds[i % 2], ni.target(), {.length = mixed_size(i), .hdr_data = i});
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) {
      append(ni, me_of(ni, nullptr, 0, kOnceQuiet));
      ASSERT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
    }
  });
}

// 2.7: all kinds of operations of one pair of processes are matched in one order.
TEST_BOTH_WAYS(Ordering, Section2_7__all_operations_share_one_order) {
  const Ni ni(self);
  Ends ends(ni);
  constexpr ptl_hdr_data_t kOperations = 100;
  self.target([&] {
    for (std::uintptr_t i = 0; i < kOperations; ++i)
      append(ni, me_of(ni, target_memory, 64, kOnceQuiet), PTL_PRIORITY_LIST, tag(i));
  });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < kOperations; ++i) {
      const Message message{.length = 8, .hdr_data = i};
      if (i % 4 == 0) put(ends.md, ni.target(), message);
      if (i % 4 == 1) get(ends.md, ni.target(), {.length = 8, .local_offset = 1000});
      if (i % 4 == 2) atomic(ends.md, ni.target(), message);
      if (i % 4 == 3) fetch_atomic(ends.md, 1000, ends.md, ni.target(), message);
    }
    for (ptl_hdr_data_t i = 0; i < kOperations; ++i) next_event(ends.source_eq);
  });
  self.target([&] {
    constexpr ptl_event_kind_t kKinds[] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC};
    for (ptl_hdr_data_t i = 0; i < kOperations; ++i) {
      const ptl_event_t event = next_event(ends.target_eq);
      EXPECT_EQ(event.type, kKinds[reinterpret_cast<std::uintptr_t>(event.user_ptr) % 4]);
      if (event.type != PTL_EVENT_GET) {
        EXPECT_EQ(event.user_ptr, tag(event.hdr_data));
      }
    }
  });
}

// 2.7.1: short writes to one place happen in their order: the last one stays.
TEST_BOTH_WAYS(Ordering, Section2_7_1__write_after_write) {
  const Ni ni(self);
  Ends ends(ni);
  const ptl_size_t length = std::min<ptl_size_t>(ni.limits().max_waw_ordered_size, 1024);
  self.target([&] { append(ni, me_of(ni, target_memory, sizeof target_memory, PTL_ME_EVENT_COMM_DISABLE)); });
  for (unsigned char round = 1; round <= 20; ++round) {
    self.initiator([&] {
      for (std::size_t i = 0; i < 20; ++i) {
        std::memset(&ends.data[i * 8], static_cast<int>(i + round), 8);
        put(ends.md, ni.target(), {.length = 8, .local_offset = i * 8, .remote_offset = 16});
      }
      std::memset(&ends.data[2048], round, length);
      put(ends.md, ni.target(), {.length = length, .local_offset = 2048});
      for (int i = 0; i < 21; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    });
    self.target([&] {
      for (ptl_size_t i = 0; i < length; ++i) ASSERT_EQ(target_memory[i], round);
    });
  }
}

// 2.7.1: write after read and read after write: a get sees the put before it and not the put after it, without waiting.
TEST_BOTH_WAYS(Ordering, Section2_7_1__read_after_write_and_write_after_read) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] { append(ni, me_of(ni, target_memory, sizeof target_memory, PTL_ME_EVENT_COMM_DISABLE)); });
  self.initiator([&] {
    for (std::size_t i = 0; i < 200; ++i) {
      std::memset(&ends.data[i * 8], static_cast<int>(1 + i), 8);
      put(ends.md, ni.target(), {.length = 8, .local_offset = i * 8});
      get(ends.md, ni.target(), {.length = 8, .local_offset = 2048 + i * 8});
    }
    for (int i = 0; i < 400; ++i) next_event(ends.source_eq);
    for (std::size_t i = 0; i < 200; ++i)
      EXPECT_EQ(std::memcmp(&ends.data[2048 + i * 8], &ends.data[i * 8], 8), 0) << "get " << i;
  });
}

// The same up to the very sizes that the interface has promised: long messages to one place, and a read behind them; a
// read of max_war_ordered_size in front of a write.
TEST_BOTH_WAYS(Ordering, Section2_7_1__ordered_sizes_are_kept) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_size_t longest = std::min<ptl_size_t>(ni.limits().max_waw_ordered_size, 1 << 20);
  const ptl_size_t war = std::min<ptl_size_t>(ni.limits().max_war_ordered_size, longest);
  constexpr std::size_t kRounds = 8;
  std::vector<unsigned char> memory(longest);
  std::vector<std::vector<unsigned char>> out, in(2 * kRounds, std::vector<unsigned char>(longest));
  for (std::size_t i = 0; i < kRounds; ++i) out.emplace_back(longest, static_cast<unsigned char>(i + 1));
  const auto bind = [&](std::vector<unsigned char>& bytes) {
    return bind_quiet(ni, bytes.data(), bytes.size(), ends.source_eq);
  };
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size(), PTL_ME_EVENT_COMM_DISABLE)); });
  const auto all_are = [](const std::vector<unsigned char>& bytes, ptl_size_t length, std::size_t value) {
    return std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length), value) ==
           static_cast<std::ptrdiff_t>(length);
  };
  self.initiator([&] {
    // Write after write, and one read after all of them.
    for (std::vector<unsigned char>& bytes : out) put(bind(bytes), ni.target(), {.length = longest});
    get(bind(in[0]), ni.target(), {.length = longest});
    for (std::size_t i = 0; i <= kRounds; ++i) next_event(ends.source_eq);
    EXPECT_TRUE(all_are(in[0], longest, kRounds));
    // Write, read, write, read: each read sees the write before it, and not the one behind it.
    for (std::size_t i = 0; i < kRounds; ++i) {
      put(bind(out[i]), ni.target(), {.length = war});
      get(bind(in[kRounds + i]), ni.target(), {.length = war});
    }
    for (std::size_t i = 0; i < 2 * kRounds; ++i) next_event(ends.source_eq);
    for (std::size_t i = 0; i < kRounds; ++i) EXPECT_TRUE(all_are(in[kRounds + i], war, i + 1)) << "read " << i;
  });
  self.target([&] { EXPECT_TRUE(all_are(memory, war, kRounds)); });
}

// 2.7.1: with PTL_TOTAL_DATA_ORDERING "the first message must be entirely delivered before any part of the second",
// also if the first is long: who sees the flag sees all of the data.
TEST_PROCESSES(2, Ordering, Section2_7_1__total_data_ordering_of_long_messages) {
  const Ni ni(self);
  if ((ni.limits().features & PTL_TOTAL_DATA_ORDERING) == 0) self.skip("not promised by the interface");
  const Ends ends(ni);
  const std::size_t words = std::min<ptl_size_t>(ni.limits().max_waw_ordered_size, 1 << 20) / 8;
  constexpr std::uint64_t kRounds = 30;
  std::vector<std::uint64_t> memory(words + 1);
  std::vector<std::uint64_t> out(words);
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), words * 8, ends.source_eq);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size() * 8, PTL_ME_EVENT_COMM_DISABLE)); });
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    if (self.is_initiator()) {
      std::fill(out.begin(), out.end(), round);
      put(md, ni.target(), {.length = words * 8});
      put(md, ni.target(), {.length = 8, .remote_offset = words * 8});
    } else {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
      while (std::atomic_ref(memory[words]).load(std::memory_order_acquire) != round)
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "round " << round;
      for (std::size_t i = 0; i < words; i += 61)
        ASSERT_EQ(std::atomic_ref(memory[i]).load(std::memory_order_relaxed), round) << "word " << i;
    }
    if (self.is_initiator())
      for (int i = 0; i < 2; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    self.barrier();
  }
}

// 2.7.1: with PTL_TOTAL_DATA_ORDERING "the first message must be entirely delivered before any part of the second
// message is delivered", visible to a target that watches its memory.
TEST_PROCESSES(2, Ordering, Section2_7_1__total_data_ordering) {
  const ptl_ni_limits_t wanted = generous_limits();
  const Ni ni(self, kMatching, &wanted);
  if ((ni.limits().features & PTL_TOTAL_DATA_ORDERING) == 0) self.skip("not promised by the interface");
  Ends ends(ni);
  constexpr std::uint64_t kRounds = 500;
  const ptl_size_t length = std::min<ptl_size_t>(ni.limits().max_waw_ordered_size, 2048) / 8 * 8;
  self.target([&] { append(ni, me_of(ni, target_memory, sizeof target_memory, PTL_ME_EVENT_COMM_DISABLE)); });
  auto* words = reinterpret_cast<std::uint64_t*>(target_memory);
  const std::size_t flag = 3000 / 8;
  std::uint64_t acknowledged = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    if (self.is_initiator()) {
      auto* data = reinterpret_cast<std::uint64_t*>(ends.data.data());
      for (std::size_t i = 0; i < sizeof target_memory / 8; ++i) data[i] = round;
      put(ends.md, ni.target(), {.length = length});
      put(ends.md, ni.target(), {.length = 8, .remote_offset = flag * 8});
      for (int i = 0; i < 2; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
      continue;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (std::atomic_ref(words[flag]).load(std::memory_order_acquire) < round)
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "round " << round;
    const std::uint64_t seen = std::atomic_ref(words[flag]).load(std::memory_order_acquire);
    for (std::size_t i = 0; i < length / 8; ++i)
      ASSERT_GE(std::atomic_ref(words[i]).load(std::memory_order_relaxed), seen) << "word " << i;
    acknowledged = seen;
    if (acknowledged >= kRounds) break;
    round = acknowledged;
  }
  self.barrier();
}

// 2.7.5: PTL_MD_UNORDERED "turns off both message and data ordering"; everything still arrives, once.
TEST_BOTH_WAYS(Ordering, Section2_7_5__unordered_messages_all_arrive) {
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> out = pattern(300000);
  std::vector<unsigned char> memory(300000);
  const ptl_handle_md_t md = bind_md(
      ni, md_of(out.data(), out.size(), ends.source_eq, PTL_CT_NONE, PTL_MD_UNORDERED | PTL_MD_EVENT_SEND_DISABLE));
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) put(md, ni.target(), {.length = mixed_size(i), .hdr_data = i});
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    std::vector<int> seen(kMessages);
    for (ptl_hdr_data_t i = 0; i < kMessages; ++i) ++seen[next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data];
    EXPECT_EQ(seen, std::vector<int>(kMessages, 1));
    EXPECT_EQ(memory, out);
  });
}

// openmpi.md M11: an entry appended before a put is found by a get that answers that put.
TEST_PROCESSES(2, Ordering, Section2_7__entry_is_matchable_by_the_answer_to_a_later_put) {
  const Ni ni(self);
  Ends ends(ni);
  append(ni, me_of(ni, nullptr, 0));
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  self.barrier();
  for (ptl_match_bits_t i = 0; i < 200; ++i) {
    if (self.rank() == 0) {
      ptl_me_t me = me_of(ni, ends.data.data(), 8, PTL_ME_USE_ONCE);
      me.match_bits = i;
      append(ni, me, PTL_PRIORITY_LIST, nullptr, kOtherPt);
      put_and_wait(ends, ni.id(1), {.hdr_data = i});
    } else {
      const ptl_hdr_data_t which = next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data;
      get(ends.md, ni.id(0), {.length = 8, .match_bits = which, .pt = kOtherPt});
      next_event(ends.source_eq, PTL_EVENT_REPLY);
    }
  }
  self.barrier();
}
