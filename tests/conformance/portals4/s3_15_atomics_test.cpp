// Portals 4.3, 3.15.4 to 3.15.8: atomics on a few types, their events and limits, and that they are atomic. Every
// operation with every datatype: s3_15_4_operations_test.cpp.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Atomics);

namespace {

alignas(64) std::int64_t target_values[64];

// Initiator memory of eight-byte values: operands at 0, results at kResult.
constexpr ptl_size_t kResult = 64 * 8;
struct Values {
  explicit Values(const Ni& ni) : eq(alloc_eq(ni)), numbers(128), md(bind_quiet(ni, numbers.data(), 128 * 8, eq)) {}
  std::int64_t& result() { return numbers[64]; }
  ptl_handle_eq_t eq;
  std::vector<std::int64_t> numbers;
  ptl_handle_md_t md;
};

}  // namespace

// 3.15.5: target = target OP initiator; ATOMIC at the target, SEND and ACK as a put.
TEST_BOTH_WAYS(Atomics, Section3_15_5__atomic) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  const ptl_handle_md_t with_send = bind_md(ni, md_of(values.numbers.data(), 64, values.eq));
  self.target([&] {
    for (int i = 0; i < 64; ++i) target_values[i] = 1000 + i;
    append(ni, me_of(ni, target_values, sizeof target_values));
  });
  self.initiator([&] {
    for (int i = 0; i < 8; ++i) values.numbers[static_cast<std::size_t>(i)] = i;
    atomic(with_send, ni.target(), {.length = 64, .remote_offset = 16, .op = PTL_SUM});
    EXPECT_EQ(next_kinds(values.eq, 2), (std::vector<ptl_event_kind_t>{PTL_EVENT_SEND, PTL_EVENT_ACK}));
    atomic(with_send, ni.target(), {.length = 8, .local_offset = 8, .ack = PTL_NO_ACK_REQ, .op = PTL_DIFF});
    next_event(values.eq, PTL_EVENT_SEND);
  });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_ATOMIC).mlength, 64u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_ATOMIC).mlength, 8u);
    EXPECT_EQ(target_values[0], 999) << "PTL_DIFF is target minus initiator";
    for (int i = 0; i < 8; ++i) EXPECT_EQ(target_values[2 + i], 1002 + i + i);
    EXPECT_EQ(target_values[10], 1010);
  });
}

// 3.15.6: "return the value from the target prior to the operation"; SEND at the put MD, REPLY at the get MD.
TEST_BOTH_WAYS(Atomics, Section3_15_6__fetch_atomic) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  std::int64_t operand = 5;
  const ptl_handle_eq_t put_eq = alloc_eq(ni);
  const ptl_handle_md_t put_md = bind_md(ni, md_of(&operand, 8, put_eq));
  self.target([&] {
    target_values[3] = 100;
    append(ni, me_of(ni, target_values, sizeof target_values));
  });
  self.initiator([&] {
    fetch_atomic(values.md, kResult, put_md, ni.target(), {.length = 8, .remote_offset = 24, .user_ptr = tag(6)});
    EXPECT_EQ(next_event(values.eq, PTL_EVENT_REPLY).user_ptr, tag(6));
    EXPECT_EQ(values.result(), 100);
    EXPECT_EQ(next_event(put_eq, PTL_EVENT_SEND).user_ptr, tag(6));
    put_and_wait(ends, ni.target(), {.length = 0});
    expect_empty(put_eq);
    expect_empty(values.eq);
  });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC);
    EXPECT_EQ(target_values[3], 105);
  });
}

// 3.15.6 with one MD for both (openmpi.md O1): one REPLY is counted for each operation.
TEST_BOTH_WAYS(Atomics, Section3_15_6__one_descriptor_for_both_directions) {
  const Ni ni(self);
  const Ends ends(ni);
  std::int64_t numbers[2] = {1, 0};
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_md_t md =
      bind_md(ni, md_of(numbers, 16, PTL_EQ_NONE, ct, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK));
  self.target([&] { append(ni, me_of(ni, target_values, 8)); });
  self.initiator([&] {
    for (ptl_size_t i = 1; i <= 10; ++i) {
      if (i % 2 == 0) swap(md, 8, md, ni.target(), {.length = 8, .op = PTL_SWAP});
      if (i % 2 == 1) fetch_atomic(md, 8, md, ni.target(), {.length = 8});
      EXPECT_EQ(wait_for_count(ct, i).success, i);
    }
    put_and_wait(ends, ni.target(), {.length = 0});
    EXPECT_EQ(count_of(ct).success, 10u);
  });
}

// 3.15.7: the conditional swaps: the operand is compared with the target; "The target value prior to comparison is
// always delivered".
TEST_BOTH_WAYS(Atomics, Section3_15_7__swaps) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  self.target([&] { append(ni, me_of(ni, target_values, 8)); });
  const struct {
    ptl_op_t op;
    std::int64_t target, operand;
    bool swaps;
  } cases[] = {{PTL_SWAP, 1, 0, true},       {PTL_CSWAP, 5, 5, true},     {PTL_CSWAP, 5, 6, false},
               {PTL_CSWAP_NE, 5, 6, true},   {PTL_CSWAP_NE, 5, 5, false}, {PTL_CSWAP_LE, 5, 5, true},
               {PTL_CSWAP_LE, 5, -4, true},  {PTL_CSWAP_LE, 5, 6, false}, {PTL_CSWAP_LT, 5, -4, true},
               {PTL_CSWAP_LT, 5, 5, false},  {PTL_CSWAP_GE, 5, 5, true},  {PTL_CSWAP_GE, -5, 6, true},
               {PTL_CSWAP_GE, 5, 4, false},  {PTL_CSWAP_GT, 5, 6, true},  {PTL_CSWAP_GT, 5, 5, false},
               {PTL_CSWAP_GT, -5, -6, false}};
  for (const auto& one : cases) {
    self.target([&] { target_values[0] = one.target; });
    self.initiator([&] {
      values.numbers[0] = 777;
      std::int64_t operand = one.operand;
      swap(values.md, kResult, values.md, ni.target(), {.length = 8, .op = one.op}, &operand);
      operand = 12345;  // portals4.h: copied before the call returns.
      next_event(values.eq, PTL_EVENT_REPLY);
      EXPECT_EQ(values.result(), one.target) << "operation " << one.op;
    });
    self.target([&] {
      next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC);
      EXPECT_EQ(target_values[0], one.swaps ? 777 : one.target) << "operation " << one.op << ' ' << one.operand;
    });
  }
}

// 3.15.4: PTL_MSWAP: "Update the bits of the target value that are set to 1 in the operand".
TEST_BOTH_WAYS(Atomics, Section3_15_7__masked_swap) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  self.target([&] {
    target_values[0] = 0x0f0f;
    append(ni, me_of(ni, target_values, 8));
  });
  self.initiator([&] {
    values.numbers[0] = 0x3333;
    const std::int64_t mask = 0x00ff;
    swap(values.md, kResult, values.md, ni.target(), {.length = 8, .op = PTL_MSWAP}, &mask);
    next_event(values.eq, PTL_EVENT_REPLY);
    EXPECT_EQ(values.result(), 0x0f0f);
  });
  self.target([&] { EXPECT_EQ(target_values[0], 0x0f33); });
}

// 3.15.4: PTL_SWAP is the only swap of several items.
TEST_BOTH_WAYS(Atomics, Section3_15_7__swap_of_several_items) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  self.target([&] {
    for (int i = 0; i < 8; ++i) target_values[i] = i + 1;
    append(ni, me_of(ni, target_values, 64));
  });
  self.initiator([&] {
    for (std::size_t i = 0; i < 8; ++i) values.numbers[i] = static_cast<std::int64_t>(100 + i);
    swap(values.md, kResult, values.md, ni.target(), {.length = 64, .op = PTL_SWAP});
    EXPECT_EQ(next_event(values.eq, PTL_EVENT_REPLY).mlength, 64u);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(values.numbers[64 + i], static_cast<std::int64_t>(i + 1));
  });
  self.target([&] {
    for (int i = 0; i < 8; ++i) EXPECT_EQ(target_values[i], 100 + i);
  });
}

// 3.15.5, 3.15.6, 3.15.7: lengths up to the limits; longer, several items of a conditional swap, a length that is no
// multiple of the datatype: errors (for the last the spec allows to truncate as well).
TEST_PROCESSES(1, Atomics, Section3_15_5__lengths) {
  const Ni ni(self);
  Ends ends(ni);
  const ptl_size_t longest = std::min<ptl_size_t>(ni.limits().max_atomic_size, 1 << 20);
  const ptl_size_t longest_fetch = std::min<ptl_size_t>(ni.limits().max_fetch_atomic_size, 1 << 20);
  std::vector<std::int64_t> memory(std::max(longest, longest_fetch) / 8 + 8);
  std::vector<std::int64_t> numbers(std::max(longest, longest_fetch) / 4 + 32, 3);
  append(ni, me_of(ni, memory.data(), memory.size() * 8));
  const ptl_handle_md_t md = bind_quiet(ni, numbers.data(), numbers.size() * 8, ends.source_eq);
  const ptl_size_t whole = longest / 8 * 8;
  const ptl_size_t whole_fetch = longest_fetch / 8 * 8;
  atomic(md, ni.target(), {.length = whole});
  EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).mlength, whole);
  for (ptl_size_t i = 0; i < whole / 8; ++i) EXPECT_EQ(memory[i], 3);
  fetch_atomic(md, whole_fetch, md, ni.target(), {.length = whole_fetch});
  EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, whole_fetch);
  const auto atomic_rc = [&](ptl_size_t length) {
    return PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T);
  };
  const auto fetch_rc = [&](ptl_size_t length) {
    return PtlFetchAtomic(md, length, md, 0, length, ni.target(), kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T);
  };
  const std::int64_t operand = 0;
  const auto swap_rc = [&](ptl_size_t length, ptl_op_t op) {
    return PtlSwap(md, length, md, 0, length, ni.target(), kPt, 0, 0, nullptr, 0, &operand, op, PTL_INT64_T);
  };
  if (longest == ni.limits().max_atomic_size) {
    EXPECT_RC(atomic_rc(whole + 8), PTL_ARG_INVALID);
  }
  if (longest_fetch == ni.limits().max_fetch_atomic_size) {
    EXPECT_RC(fetch_rc(whole_fetch + 8), PTL_ARG_INVALID);
  }
  for (ptl_op_t op : {PTL_CSWAP, PTL_CSWAP_NE, PTL_CSWAP_LE, PTL_CSWAP_LT, PTL_CSWAP_GE, PTL_CSWAP_GT, PTL_MSWAP})
    EXPECT_RC(swap_rc(16, op), PTL_ARG_INVALID) << op;
  EXPECT_RC(atomic_rc(12), PTL_ARG_INVALID);
  EXPECT_RC(fetch_rc(7), PTL_ARG_INVALID);
}

// 3.15.6, 3.15.7: "It is an error to use memory descriptors bound to different network interfaces"; regions outside of
// an MD are errors for both of them.
TEST_PROCESSES(1, Atomics, Section3_15_6__illegal_descriptors) {
  const Ni ni(self);
  const Ni other(self, kNonMatching);
  std::int64_t numbers[4] = {};
  const ptl_handle_md_t md = bind_md(ni, md_of(numbers, 16));
  const ptl_handle_md_t foreign = bind_md(other, md_of(numbers + 2, 16));
  const auto fetch_rc = [&](ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md, ptl_size_t offset) {
    return PtlFetchAtomic(get_md, get_offset, put_md, offset, 8, ni.target(), kPt, 0, 0, nullptr, 0, PTL_SUM,
                          PTL_INT64_T);
  };
  EXPECT_RC(fetch_rc(foreign, 0, md, 0), PTL_ARG_INVALID);
  EXPECT_RC(fetch_rc(md, 0, foreign, 0), PTL_ARG_INVALID);
  EXPECT_RC(fetch_rc(md, 9, md, 0), PTL_ARG_INVALID);
  EXPECT_RC(fetch_rc(md, 0, md, 9), PTL_ARG_INVALID);
  EXPECT_RC(fetch_rc(PTL_INVALID_HANDLE, 0, md, 0), PTL_ARG_INVALID);
  EXPECT_RC(fetch_rc(md, 0, PTL_INVALID_HANDLE, 0), PTL_ARG_INVALID);
  EXPECT_RC(PtlSwap(foreign, 0, md, 0, 8, ni.target(), kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T),
            PTL_ARG_INVALID);
  EXPECT_RC(PtlSwap(md, 9, md, 0, 8, ni.target(), kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T),
            PTL_ARG_INVALID);
}

// 3.15.4: atomics on one interface are atomic to each other, from all processes: no increment is lost, every value is
// fetched once.
TEST_PROCESSES(3, Atomics, Section3_15_4__atomics_of_all_processes_are_atomic) {
  const Ni ni(self);
  constexpr int kRounds = 500;
  const Ends ends(ni, 0, 16);
  Values values(ni);
  append(ni, me_of(ni, target_values, 16, PTL_ME_EVENT_COMM_DISABLE));
  self.barrier();
  std::vector<std::int64_t> fetched;
  for (int i = 0; i < kRounds; ++i) {  // The target takes part itself.
    values.numbers[0] = 1;
    atomic(values.md, ni.target(), {.length = 8, .remote_offset = 8});
    fetch_atomic(values.md, kResult, values.md, ni.target(), {.length = 8});
    for (int k = 0; k < 2; ++k) next_event(values.eq);
    fetched.push_back(values.result());
  }
  self.barrier();
  if (self.is_target()) {
    EXPECT_EQ(target_values[0], 3 * kRounds);
    EXPECT_EQ(target_values[1], 3 * kRounds);
  }
  for (std::size_t i = 1; i < fetched.size(); ++i) EXPECT_GT(fetched[i], fetched[i - 1]);
  struct Fetched {
    std::int64_t values[kRounds];
  } mine{};
  std::copy(fetched.begin(), fetched.end(), mine.values);
  std::set<std::int64_t> all;
  for (const Fetched& one : self.share(mine)) all.insert(std::begin(one.values), std::end(one.values));
  EXPECT_EQ(all.size(), static_cast<std::size_t>(3 * kRounds));
}

// 3.15.4: with PTL_COHERENT_ATOMICS "atomic operations are atomic relative to processor-initiated atomic operations, as
// well as any other network interface that also returned PTL_COHERENT_ATOMICS".
TEST_BOTH_WAYS(Atomics, Section3_15_4__coherent_with_the_processor_and_other_interfaces) {
  const Ni ni(self);
  const Ni plain(self, kNonMatching);
  if ((ni.limits().features & PTL_COHERENT_ATOMICS) == 0) self.skip("not promised by the interface");
  constexpr int kRounds = 1000;
  Values values(ni);
  Values plain_values(plain);
  const Ends ends(ni, 0, 16);
  alloc_pt(plain, PTL_EQ_NONE);
  values.numbers[0] = plain_values.numbers[0] = 1;
  std::thread processor;
  self.target([&] {
    append(ni, me_of(ni, target_values, 8, PTL_ME_EVENT_COMM_DISABLE));
    append(plain, le_of(target_values, 8));
    processor = std::thread([&] {
      for (int i = 0; i < 100000; ++i) std::atomic_ref<std::int64_t>(target_values[0]).fetch_add(1);
    });
  });
  self.initiator([&] {
    for (int i = 0; i < kRounds; ++i) {
      atomic(values.md, ni.target(), {.length = 8});
      atomic(plain_values.md, plain.target(), {.length = 8});
      next_event(values.eq, PTL_EVENT_ACK);
      next_event(plain_values.eq, PTL_EVENT_ACK);
    }
  });
  self.target([&] {
    processor.join();
    EXPECT_EQ(std::atomic_ref<std::int64_t>(target_values[0]).load(), 100000 + 2 * kRounds);
  });
}

// 3.15.8: returns PTL_OK; openmpi.md O4: a put of eight bytes and an atomic on the same word see each other.
TEST_BOTH_WAYS(Atomics, Section3_15_8__atomic_sync) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  self.target([&] { append(ni, me_of(ni, target_values, 8)); });
  self.initiator([&] {
    values.numbers[0] = 40;
    put(values.md, ni.target(), {.length = 8});
    atomic(values.md, ni.target(), {.length = 8});
    next_kinds(values.eq, 2);
  });
  self.target([&] {
    EXPECT_RC(PtlAtomicSync(), PTL_OK);
    EXPECT_EQ(target_values[0], 80);
  });
}
