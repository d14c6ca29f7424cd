// Portals 4.3, 3.15.4: which memory an atomic may touch: alignment, vectors up to the limits, pieces of an iovec,
// memory that is not there, memory that two processes share.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(AtomicItems);

namespace {

struct TypeRow {
  ptl_datatype_t type;
  ptl_size_t bytes;
  ptl_size_t alignment;  // What lib/portals4/README.md demands: that of the type, for complex ones that of a component.
};
constexpr TypeRow kTypes[] = {{PTL_INT8_T, 1, 1},        {PTL_UINT8_T, 1, 1},
                              {PTL_INT16_T, 2, 2},       {PTL_UINT16_T, 2, 2},
                              {PTL_INT32_T, 4, 4},       {PTL_UINT32_T, 4, 4},
                              {PTL_INT64_T, 8, 8},       {PTL_UINT64_T, 8, 8},
                              {PTL_FLOAT, 4, 4},         {PTL_FLOAT_COMPLEX, 8, 4},
                              {PTL_DOUBLE, 8, 8},        {PTL_DOUBLE_COMPLEX, 16, 8},
                              {PTL_LONG_DOUBLE, 16, 16}, {PTL_LONG_DOUBLE_COMPLEX, 32, 16}};

alignas(64) unsigned char target_memory[8192];

/// Memory of the initiator: what is sent at 0, what is fetched at kFetched.
constexpr ptl_size_t kFetched = 8192;
struct Buffers {
  explicit Buffers(const Ni& ni) : eq(alloc_eq(ni)), bytes(16384), md(bind_quiet(ni, bytes.data(), bytes.size(), eq)) {}
  ptl_handle_eq_t eq;
  std::vector<unsigned char> bytes;
  ptl_handle_md_t md;
};

Message item(const TypeRow& row, ptl_size_t remote_offset, ptl_op_t op = PTL_SUM) {
  return {.length = row.bytes, .remote_offset = remote_offset, .op = op, .type = row.type};
}

unsigned char* page_without_memory() {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) stop("mmap");
  return static_cast<unsigned char*>(page);
}

}  // namespace

// 3.15.4: "an implementation is only required to support Portals atomic operations that are natively aligned";
// lib/portals4/README.md: one that is aligned less "touches nothing, and ends at the initiator with PTL_NI_DROPPED".
TEST_BOTH_WAYS(AtomicItems, Section3_15_4__unaligned_items_are_refused_untouched) {
  const Ni ni(self);
  Buffers buffers(ni);
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] { append(ni, me_of(ni, target_memory, sizeof target_memory)); });
  self.initiator([&] {
    std::fill(buffers.bytes.begin(), buffers.bytes.end(), 1);
    for (const TypeRow& row : kTypes) {
      for (ptl_size_t offset = 1; offset < row.bytes; ++offset) {
        SCOPED_TRACE("datatype " + std::to_string(row.type) + ", offset " + std::to_string(offset));
        const ptl_ni_fail_t expected = offset % row.alignment == 0 ? PTL_NI_OK : PTL_NI_DROPPED;
        const Message swapping = item(row, offset, PTL_SWAP);
        atomic(buffers.md, ni.target(), item(row, offset));
        next_event(buffers.eq, PTL_EVENT_ACK, expected);
        fetch_atomic(buffers.md, kFetched, buffers.md, ni.target(), item(row, offset));
        next_event(buffers.eq, PTL_EVENT_REPLY, expected);
        swap(buffers.md, kFetched, buffers.md, ni.target(), swapping);
        next_event(buffers.eq, PTL_EVENT_REPLY, expected);
        if (expected == PTL_NI_OK) continue;
        get(buffers.md, ni.target(), {.length = 64, .local_offset = kFetched});
        next_event(buffers.eq, PTL_EVENT_REPLY);
      }
      // What aligned ones have left is taken away before the next type.
      put(buffers.md, ni.target(), {.length = 64, .local_offset = 64});
      next_event(buffers.eq, PTL_EVENT_ACK);
    }
  });
}

// The same seen from the memory: not a byte changes.
TEST_BOTH_WAYS(AtomicItems, Section3_15_4__unaligned_items_change_no_byte) {
  const Ni ni(self);
  Buffers buffers(ni);
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] {
    std::fill(std::begin(target_memory), std::end(target_memory), 0x5a);
    append(ni, me_of(ni, target_memory, sizeof target_memory));
  });
  self.initiator([&] {
    for (const TypeRow& row : kTypes) {
      if (row.alignment == 1) continue;
      Message three = item(row, row.alignment / 2);
      three.length = 3 * row.bytes;
      atomic(buffers.md, ni.target(), three);
      next_event(buffers.eq, PTL_EVENT_ACK, PTL_NI_DROPPED);
    }
  });
  self.target([&] { EXPECT_EQ(std::count(std::begin(target_memory), std::end(target_memory), 0x5a), 8192); });
}

// 3.13.3: PTL_NI_DROPPED "should only be returned on initiator events"; 3.3.7: PTL_SR_DROP_COUNT "counts the dropped
// requests". What is dropped leaves no trace at the target: no event, no count, and a use-once entry is still there.
TEST_BOTH_WAYS(AtomicItems, Section3_15_4__unaligned_items_are_dropped_and_use_nothing_up) {
  const Ni ni(self);
  Buffers buffers(ni);
  const ptl_handle_eq_t target_eq = alloc_eq(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  alloc_pt(ni, target_eq);
  const ptl_iovec_t pieces[] = {{target_memory, 12}, {target_memory + 16, 12}};  // The second item is in both.
  const TypeRow& row = kTypes[6];
  for (const bool in_pieces : {false, true}) {
    self.target([&] {
      ptl_me_t entry = me_of(ni, target_memory, sizeof target_memory, PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM);
      if (in_pieces) entry = me_of(ni, pieces, 2, PTL_IOVEC | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM);
      entry.ct_handle = ct;
      append(ni, entry);
    });
    self.initiator([&] {
      Message two = item(row, in_pieces ? 0 : 4, PTL_SWAP);
      two.length = 16;
      swap(buffers.md, kFetched, buffers.md, ni.target(), two);
      next_event(buffers.eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
      two.op = PTL_SUM;
      fetch_atomic(buffers.md, kFetched, buffers.md, ni.target(), two);
      next_event(buffers.eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
      atomic(buffers.md, ni.target(), two);
      EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_ACK, PTL_NI_DROPPED).mlength, 0u);
      atomic(buffers.md, ni.target(), item(row, 0));
      next_event(buffers.eq, PTL_EVENT_ACK);
    });
    self.target([&] {
      next_event(target_eq, PTL_EVENT_ATOMIC);
      next_event(target_eq, PTL_EVENT_AUTO_UNLINK);
      expect_empty(target_eq);
      EXPECT_EQ(count_of(ct).success, in_pieces ? 2u : 1u);
      EXPECT_EQ(count_of(ct).failure, 0u);
      EXPECT_EQ(ni.status(PTL_SR_DROP_COUNT), in_pieces ? 6 : 3);
    });
  }
}

// 3.6.1: max_atomic_size, max_fetch_atomic_size: "Maximum size (in bytes) that can be passed to an atomic operation",
// as many items as fit, of each type.
TEST_BOTH_WAYS(AtomicItems, Section3_15_4__vectors_up_to_the_limits) {
  const Ni ni(self);
  Buffers buffers(ni);
  const ptl_size_t most = std::min<ptl_size_t>(ni.limits().max_atomic_size, kFetched);
  const ptl_size_t most_fetch = std::min<ptl_size_t>(ni.limits().max_fetch_atomic_size, kFetched);
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] { append(ni, me_of(ni, target_memory, sizeof target_memory)); });
  self.initiator([&] {
    for (const TypeRow& row : kTypes) {
      SCOPED_TRACE("datatype " + std::to_string(row.type));
      const ptl_size_t length = most / row.bytes * row.bytes;
      const ptl_size_t fetch_length = most_fetch / row.bytes * row.bytes;
      // Zeroes plus zeroes, so that no type makes a difference; then a swap that brings a pattern.
      std::fill(buffers.bytes.begin(), buffers.bytes.end(), 0);
      put(buffers.md, ni.target(), {.length = kFetched});
      next_event(buffers.eq, PTL_EVENT_ACK);
      Message whole = item(row, 0);
      whole.length = length;
      atomic(buffers.md, ni.target(), whole);
      EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_ACK).mlength, length);
      whole.length = fetch_length;
      whole.op = PTL_SWAP;
      const std::vector<unsigned char> out = pattern(fetch_length, static_cast<unsigned int>(row.type));
      std::copy(out.begin(), out.end(), buffers.bytes.begin());
      std::fill(buffers.bytes.begin() + kFetched, buffers.bytes.end(), 0xee);
      swap(buffers.md, kFetched, buffers.md, ni.target(), whole);
      EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_REPLY).mlength, fetch_length);
      EXPECT_EQ(static_cast<ptl_size_t>(std::count(buffers.bytes.begin() + kFetched, buffers.bytes.end(), 0)),
                fetch_length);
      get(buffers.md, ni.target(), {.length = fetch_length, .local_offset = kFetched});
      next_event(buffers.eq, PTL_EVENT_REPLY);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), buffers.bytes.begin() + kFetched));
    }
  });
}

// 3.11: a message that is longer than the entry is truncated, an atomic to whole items; "The mlength in the
// acknowledgment will reflect the size of the actual operation performed" (3.15.4).
TEST_BOTH_WAYS(AtomicItems, Section3_15_4__truncated_to_whole_items) {
  const Ni ni(self);
  const Ends ends(ni);
  Buffers buffers(ni);
  self.target([&] { append(ni, me_of(ni, target_memory, 20)); });
  self.initiator([&] {
    std::fill(buffers.bytes.begin(), buffers.bytes.end(), 1);
    atomic(buffers.md, ni.target(), {.length = 32, .op = PTL_BOR, .type = PTL_UINT64_T});
    EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_ACK).mlength, 16u);
    fetch_atomic(buffers.md, kFetched, buffers.md, ni.target(), {.length = 32, .op = PTL_BOR, .type = PTL_UINT64_T});
    EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_REPLY).mlength, 16u);
    EXPECT_EQ(buffers.bytes[kFetched + 16], 1) << "beyond mlength nothing is delivered";
  });
  self.target([&] {
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_ATOMIC);
    EXPECT_EQ(event.mlength, 16u);
    EXPECT_EQ(event.rlength, 32u);
    EXPECT_EQ(std::count(std::begin(target_memory), std::end(target_memory), 1), 16);
  });
}

// 3.15.4: "If the list entry sets the PTL_IOVEC option, a single datatype may not span multiple iovec entries": items
// that do not are handled in their pieces; an operation with one that does touches nothing (lib/portals4/README.md).
TEST_BOTH_WAYS(AtomicItems, Section3_15_4__items_of_an_iovec) {
  const Ni ni(self);
  const Ends ends(ni);
  Buffers buffers(ni);
  ptl_iovec_t whole[3] = {{target_memory + 64, 16}, {target_memory, 8}, {target_memory + 128, 24}};
  ptl_iovec_t split[3] = {{target_memory + 64, 16}, {target_memory, 12}, {target_memory + 128, 20}};
  self.target([&] {
    append(ni, me_of(ni, whole, 3, PTL_IOVEC));
    ptl_me_t me = me_of(ni, split, 3, PTL_IOVEC);
    me.match_bits = 1;
    append(ni, me);
  });
  self.initiator([&] {
    auto* out = reinterpret_cast<std::uint64_t*>(buffers.bytes.data());
    for (std::uint64_t i = 0; i < 6; ++i) out[i] = 100 + i;
    const Message six{.length = 48, .op = PTL_SUM, .type = PTL_UINT64_T};
    atomic(buffers.md, ni.target(), six);
    EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_ACK).mlength, 48u);
    Message bad = six;
    bad.match_bits = 1;
    atomic(buffers.md, ni.target(), bad);
    next_event(buffers.eq, PTL_EVENT_ACK, PTL_NI_DROPPED);
    fetch_atomic(buffers.md, kFetched, buffers.md, ni.target(), bad);
    next_event(buffers.eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
    fetch_atomic(buffers.md, kFetched, buffers.md, ni.target(), six);
    EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_REPLY).mlength, 48u);
    const auto* in = reinterpret_cast<const std::uint64_t*>(buffers.bytes.data() + kFetched);
    for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(in[i], 100 + i) << "item " << i << " of the iovec";
  });
  self.target([&] {
    const auto* memory = reinterpret_cast<const std::uint64_t*>(target_memory);
    EXPECT_EQ(memory[8], 200u);
    EXPECT_EQ(memory[9], 202u);
    EXPECT_EQ(memory[0], 204u);
    EXPECT_EQ(memory[1], 0u);
    EXPECT_EQ(memory[16], 206u);
    EXPECT_EQ(memory[18], 210u);
  });
}

// 3.12: "If an incoming operation attempts to access an unallocated region of the ME ... PTL_NI_SEGV": atomics too, on
// both sides, without a crash.
TEST_BOTH_WAYS(AtomicItems, Section3_15_4__memory_that_is_not_there) {
  const Ni ni(self);
  const Ends ends(ni);
  if ((ni.limits().features & PTL_TARGET_BIND_INACCESSIBLE) == 0) self.skip("not promised by the interface");
  Buffers buffers(ni);
  unsigned char* const hole = page_without_memory();
  const ptl_handle_md_t nowhere = bind_quiet(ni, hole, 4096, buffers.eq);
  self.target([&] {
    append(ni, me_of(ni, target_memory, 64));
    ptl_me_t me = me_of(ni, hole, 4096);
    me.match_bits = 1;
    append(ni, me);
  });
  self.initiator([&] {
    const Message bad{.length = 64, .match_bits = 1};
    atomic(buffers.md, ni.target(), bad);
    next_event(buffers.eq, PTL_EVENT_ACK, PTL_NI_SEGV);
    fetch_atomic(buffers.md, kFetched, buffers.md, ni.target(), bad);
    next_event(buffers.eq, PTL_EVENT_REPLY, PTL_NI_SEGV);
    swap(buffers.md, kFetched, buffers.md, ni.target(), {.length = 64, .match_bits = 1, .op = PTL_SWAP});
    next_event(buffers.eq, PTL_EVENT_REPLY, PTL_NI_SEGV);
    // Here it is the initiator's memory: what is sent, what is fetched.
    atomic(nowhere, ni.target(), {.length = 64});
    EXPECT_EQ(next_event(buffers.eq).ni_fail_type, PTL_NI_SEGV);
    fetch_atomic(nowhere, 0, buffers.md, ni.target(), {.length = 64});
    next_event(buffers.eq, PTL_EVENT_REPLY, PTL_NI_SEGV);
    fetch_atomic(buffers.md, kFetched, nowhere, ni.target(), {.length = 64});
    EXPECT_EQ(next_event(buffers.eq).ni_fail_type, PTL_NI_SEGV);
    put_and_wait(ends, ni.target(), {.length = 8});
  });
  self.target([&] {
    for (ptl_event_kind_t kind : {PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC}) {
      const ptl_event_t event = next_event(ends.target_eq, kind, PTL_NI_SEGV);
      EXPECT_EQ(event.match_bits, 1u);
      EXPECT_EQ(event.pt_index, kPt);
      EXPECT_TRUE(same_process(ni, event.initiator, ni.id(self.size() - 1)));
    }
  });
}

// 3.12.1: "zero length messages are not checked for truncation"; 3.12: "A message with an invalid address/offset pair
// that is of zero bytes will not cause a PTL_NI_SEGV": so atomics of no item fail for nothing: no memory, an offset
// beyond the entry, one that is not aligned, an entry that does not truncate.
TEST_BOTH_WAYS(AtomicItems, Section3_12__no_items_never_fail) {
  const Ni ni(self);
  const Ends ends(ni);
  Buffers buffers(ni);
  self.target([&] {
    append(ni, me_of(ni, reinterpret_cast<void*>(8), 100));
    ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_NO_TRUNCATE);
    me.match_bits = 1;
    append(ni, me);
  });
  self.initiator([&] {
    for (ptl_match_bits_t bits : {0u, 1u})
      for (ptl_size_t offset : {ptl_size_t{0}, ptl_size_t{3}, ptl_size_t{1000}, ptl_size_t{PTL_SIZE_MAX}}) {
        const Message nothing{.length = 0, .remote_offset = offset, .match_bits = bits};
        Message swapping = nothing;
        swapping.op = PTL_SWAP;
        atomic(buffers.md, ni.target(), nothing);
        EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_ACK).mlength, 0u) << offset;
        fetch_atomic(buffers.md, kFetched, buffers.md, ni.target(), nothing);
        EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_REPLY).mlength, 0u) << offset;
        swap(buffers.md, kFetched, buffers.md, ni.target(), swapping);
        EXPECT_EQ(next_event(buffers.eq, PTL_EVENT_REPLY).mlength, 0u) << offset;
      }
  });
  self.target([&] {
    for (int i = 0; i < 8; ++i)
      for (ptl_event_kind_t kind : {PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC})
        EXPECT_EQ(next_event(ends.target_eq, kind).mlength, 0u);
  });
}

// Atomics of all processes and all interfaces of a node are atomic against each other (3.15.4: "atomic
// relative to ... any other network interface that also returned PTL_COHERENT_ATOMICS"): two targets expose the same
// shared memory on all four interfaces, four processes count in it.
TEST_PROCESSES(4, AtomicItems, Section3_15_4__all_interfaces_of_all_processes_of_a_node) {
  constexpr int kRounds = 100;
  constexpr unsigned int kAllFour[] = {kMatching, kNonMatching, PTL_NI_MATCHING | PTL_NI_LOGICAL,
                                       PTL_NI_NO_MATCHING | PTL_NI_LOGICAL};
  const Ni nis[4] = {Ni(self, kAllFour[0]), Ni(self, kAllFour[1]), Ni(self, kAllFour[2]), Ni(self, kAllFour[3])};
  if ((nis[0].limits().features & PTL_COHERENT_ATOMICS) == 0) self.skip("not promised by the interface");
  const pid_t first = self.share(getpid())[0];
  const std::string name = "/portofu-test-" + std::to_string(first);
  const int fd = self.rank() == 0 ? shm_open(name.c_str(), O_CREAT | O_RDWR, 0600) : -1;
  if (self.rank() == 0) {
    ASSERT_EQ(ftruncate(fd, 4096), 0);
  }
  self.barrier();
  const int mapped = self.rank() == 0 ? fd : shm_open(name.c_str(), O_RDWR, 0600);
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
  ASSERT_NE(memory, MAP_FAILED);
  self.barrier();
  if (self.rank() == 0) shm_unlink(name.c_str());
  for (const Ni& ni : nis) {
    alloc_pt(ni, PTL_EQ_NONE);
    const bool matching = &ni == &nis[0] || &ni == &nis[2];
    if (self.rank() < 2 && matching) append(ni, me_of(ni, memory, 64));
    if (self.rank() < 2 && !matching) append(ni, le_of(memory, 64));
  }
  self.barrier();
  const long double one = 1;
  const std::int64_t unit = 1;
  for (const Ni& ni : nis) {
    const ptl_handle_ct_t ct = alloc_ct(ni);
    const ptl_handle_md_t integers = bind_md(ni, md_of(&unit, 8, PTL_EQ_NONE, ct, PTL_MD_EVENT_CT_ACK));
    const ptl_handle_md_t reals = bind_md(ni, md_of(&one, 16, PTL_EQ_NONE, ct, PTL_MD_EVENT_CT_ACK));
    for (int round = 0; round < kRounds; ++round) {
      const ptl_process_t target = ni.id((self.rank() + round) % 2);
      atomic(integers, target, {.length = 8});
      atomic(reals, target, {.length = 16, .remote_offset = 16, .type = PTL_LONG_DOUBLE});
    }
    wait_for_count(ct, 2 * kRounds);
    EXPECT_EQ(count_of(ct).failure, 0u);
  }
  self.barrier();
  EXPECT_EQ(*static_cast<std::int64_t*>(memory), 16 * kRounds);
  EXPECT_EQ(*reinterpret_cast<long double*>(static_cast<char*>(memory) + 16), 16 * kRounds);
  self.barrier();
}
