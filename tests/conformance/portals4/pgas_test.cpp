// A program of the shape of Sandia OpenSHMEM on Portals: a non-matching logical interface, the symmetric heap and the
// static data as two list entries (or all of memory as one), descriptors over all of memory, nothing but counters to
// tell what is complete, PTL_OC_ACK_REQ, and barriers that run by triggers alone.
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <thread>

#include "../harness/fixture.h"

using namespace conformance;

namespace {

constexpr int kProcesses = 4;
constexpr ptl_pt_index_t kHeap = 8;
constexpr ptl_pt_index_t kStatic = 9;
constexpr ptl_pt_index_t kEverything = 10;
constexpr ptl_pt_index_t kBarrier[2] = {12, 13};  ///< One a round of the dissemination barrier: log2(kProcesses).
constexpr std::size_t kHeapWords = 64 * 1024;

/// The static data of the program: another address in every process is allowed, the same offset is not needed.
alignas(64) std::int64_t static_words[1024];

/// One process of the PGAS program. A remote address is an entry and an offset in bytes.
class Shmem {
 public:
  explicit Shmem(Process& self)
      : self_(self),
        ni_(self, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL),
        error_eq_(alloc_eq(ni_)),
        put_ct_(alloc_ct(ni_)),
        get_ct_(alloc_ct(ni_)),
        target_ct_(alloc_ct(ni_)) {
    const unsigned int silent = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_SEND_DISABLE;
    put_md_ = bind_md(ni_, md_of(nullptr, PTL_SIZE_MAX, error_eq_, put_ct_, silent | PTL_MD_EVENT_CT_ACK));
    volatile_md_ =
        bind_md(ni_, md_of(nullptr, PTL_SIZE_MAX, error_eq_, put_ct_, silent | PTL_MD_EVENT_CT_ACK | PTL_MD_VOLATILE));
    get_md_ = bind_md(ni_, md_of(nullptr, PTL_SIZE_MAX, error_eq_, get_ct_, silent | PTL_MD_EVENT_CT_REPLY));
    expose(kHeap, heap.data(), heap.size() * 8, target_ct_);
    expose(kStatic, static_words, sizeof static_words, target_ct_);
    expose(kEverything, nullptr, PTL_SIZE_MAX, target_ct_);
    for (int round = 0; round < 2; ++round) {
      barrier_ct_[round] = alloc_ct(ni_);
      expose(kBarrier[round], nullptr, 0, barrier_ct_[round]);
    }
    self.barrier();
  }

  int rank() const { return self_.rank(); }
  ptl_handle_ct_t target_ct() const { return target_ct_; }
  const Ni& ni() const { return ni_; }

  /// The source may be changed as soon as the call returns if it is short, after quiet() otherwise.
  void put(int rank, ptl_pt_index_t where, ptl_size_t offset, const void* source, ptl_size_t bytes) {
    const bool copied = bytes <= ni_.limits().max_volatile_size;
    conformance::put(copied ? volatile_md_ : put_md_, ni_.id(rank),
                     {.length = bytes,
                      .local_offset = address(source),
                      .remote_offset = offset,
                      .ack = PTL_OC_ACK_REQ,
                      .pt = where});
    ++puts_;
  }

  void get(int rank, ptl_pt_index_t where, ptl_size_t offset, void* target, ptl_size_t bytes) {
    conformance::get(get_md_, ni_.id(rank),
                     {.length = bytes, .local_offset = address(target), .remote_offset = offset, .pt = where});
    finish_gets();
  }

  void add(int rank, ptl_pt_index_t where, ptl_size_t offset, std::int64_t value) {
    conformance::atomic(volatile_md_, ni_.id(rank),
                        {.length = 8,
                         .local_offset = address(&value),
                         .remote_offset = offset,
                         .ack = PTL_OC_ACK_REQ,
                         .pt = where,
                         .op = PTL_SUM,
                         .type = PTL_INT64_T});
    ++puts_;
  }

  /// Any operation on one item of any type.
  void combine(int rank, ptl_size_t offset, const void* value, ptl_size_t bytes, ptl_op_t op, ptl_datatype_t type) {
    conformance::atomic(volatile_md_, ni_.id(rank),
                        {.length = bytes,
                         .local_offset = address(value),
                         .remote_offset = offset,
                         .ack = PTL_OC_ACK_REQ,
                         .pt = kHeap,
                         .op = op,
                         .type = type});
    ++puts_;
  }

  std::int64_t fetch_add(int rank, ptl_pt_index_t where, ptl_size_t offset, std::int64_t value) {
    std::int64_t old = -1;
    conformance::fetch_atomic(get_md_, address(&old), volatile_md_, ni_.id(rank),
                              {.length = 8,
                               .local_offset = address(&value),
                               .remote_offset = offset,
                               .pt = where,
                               .op = PTL_SUM,
                               .type = PTL_INT64_T});
    finish_gets();
    return old;
  }

  std::int64_t compare_swap(int rank, ptl_pt_index_t where, ptl_size_t offset, std::int64_t expected,
                            std::int64_t value) {
    std::int64_t old = -1;
    conformance::swap(get_md_, address(&old), volatile_md_, ni_.id(rank),
                      {.length = 8,
                       .local_offset = address(&value),
                       .remote_offset = offset,
                       .pt = where,
                       .op = PTL_CSWAP,
                       .type = PTL_INT64_T},
                      &expected);
    finish_gets();
    return old;
  }

  /// All puts and atomics of this process are in memory.
  void quiet() {
    ptl_ct_event_t value{};
    REQUIRE_OK(PtlCTWait(put_ct_, puts_, &value));
    expect_no_failure(value);
    REQUIRE_OK(PtlAtomicSync());
  }

  /// What this process puts afterwards becomes visible after what it has put before: with total data ordering there is
  /// nothing to do for messages below the limit (2.7.2, discussion).
  void fence(ptl_size_t longest) {
    const bool ordered = (ni_.limits().features & PTL_TOTAL_DATA_ORDERING) != 0;
    if (!ordered || longest > ni_.limits().max_waw_ordered_size) quiet();
  }

  /// Lets the barriers `first` .. `last`, counted from 1, run by themselves: round 1 of each is sent by round 0.
  void arm_barriers(ptl_size_t first, ptl_size_t last) {
    for (ptl_size_t epoch = first; epoch <= last; ++epoch) {
      const ptl_size_t both = 2 * epoch;  // Own entry and the signal of the neighbour, in each epoch.
      REQUIRE_OK(PtlTriggeredPut(put_md_, 0, 0, PTL_NO_ACK_REQ, ni_.id((rank() + 2) % kProcesses), kBarrier[1], 0, 0,
                                 nullptr, 0, barrier_ct_[0], both));
      REQUIRE_OK(PtlTriggeredCTInc(barrier_ct_[1], {1, 0}, barrier_ct_[0], both));
    }
  }

  void enter_barrier() {
    quiet();
    REQUIRE_OK(PtlCTInc(barrier_ct_[0], {1, 0}));
    conformance::put(put_md_, ni_.id((rank() + 1) % kProcesses), {.ack = PTL_NO_ACK_REQ, .pt = kBarrier[0]});
  }
  void leave_barrier(ptl_size_t epoch) const { wait_for_count(barrier_ct_[1], 2 * epoch); }

  /// Waits until all have entered barrier number `epoch`.
  void barrier(ptl_size_t epoch) {
    enter_barrier();
    leave_barrier(epoch);
  }

  /// Waits until a word of this process has the value; sleeps on the counter of what arrives.
  void wait_until(const std::int64_t& word, std::int64_t value) const {
    for (;;) {
      const ptl_ct_event_t before = count_of(target_ct_);
      if (std::atomic_ref(const_cast<std::int64_t&>(word)).load(std::memory_order_acquire) >= value) return;
      wait_for_count(target_ct_, before.success + 1);
    }
  }

  std::vector<std::int64_t> heap = std::vector<std::int64_t>(kHeapWords);

 private:
  static ptl_size_t address(const void* memory) { return reinterpret_cast<ptl_size_t>(memory); }

  void expose(ptl_pt_index_t pt, void* start, ptl_size_t bytes, ptl_handle_ct_t ct) {
    alloc_pt(ni_, error_eq_, 0, pt);
    ptl_le_t le = le_of(start, bytes, PTL_LE_EVENT_SUCCESS_DISABLE | PTL_LE_EVENT_CT_COMM);
    le.ct_handle = ct;
    append(ni_, le, PTL_PRIORITY_LIST, nullptr, pt);
  }

  void finish_gets() {
    ptl_ct_event_t value{};
    REQUIRE_OK(PtlCTWait(get_ct_, ++gets_, &value));
    expect_no_failure(value);
  }

  void expect_no_failure(const ptl_ct_event_t& value) const {
    if (value.failure != 0) stop("failed: " + describe(next_event(error_eq_)));
  }

  Process& self_;
  Ni ni_;
  ptl_handle_eq_t error_eq_;  ///< Successes make no events.
  ptl_handle_ct_t put_ct_;
  ptl_handle_ct_t get_ct_;
  ptl_handle_ct_t target_ct_;
  ptl_handle_ct_t barrier_ct_[2] = {};
  ptl_handle_md_t put_md_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t volatile_md_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t get_md_ = PTL_INVALID_HANDLE;
  ptl_size_t puts_ = 0;
  ptl_size_t gets_ = 0;
};

int next_of(int rank) { return (rank + 1) % kProcesses; }

}  // namespace

// Puts of all sizes into the heap and the static data of all others, quiet, barrier; then gets of what all others hold.
TEST_PROCESSES(kProcesses, Pgas, puts_and_gets_reach_heap_and_static_data) {
  Shmem shmem(self);
  constexpr std::size_t kWords = 12 * 1024;  // For each sender.
  std::vector<std::int64_t> out(kWords);
  for (std::size_t i = 0; i < kWords; ++i) out[i] = 1'000'000 * (shmem.rank() + 1) + static_cast<std::int64_t>(i);
  const auto part = static_cast<ptl_size_t>(shmem.rank()) * kWords * 8;
  for (int rank = 0; rank < kProcesses; ++rank) {
    // In pieces of 1, 2, 4 ... words, so that short and long ones are mixed.
    for (std::size_t at = 0, piece = 1; at < kWords; at += piece, piece *= 2)
      shmem.put(rank, kHeap, part + at * 8, &out[at], std::min(piece, kWords - at) * 8);
    for (std::size_t i = 0; i < 200; ++i)
      shmem.put(rank, kStatic, static_cast<ptl_size_t>(shmem.rank()) * 1600 + i * 8, &out[i], 8);
  }
  shmem.quiet();
  self.barrier();
  for (int rank = 0; rank < kProcesses; ++rank) {
    const auto expected = [rank](std::size_t i) { return 1'000'000 * (rank + 1) + static_cast<std::int64_t>(i); };
    for (std::size_t i = 0; i < kWords; ++i)
      ASSERT_EQ(shmem.heap[static_cast<std::size_t>(rank) * kWords + i], expected(i)) << "of " << rank;
    for (std::size_t i = 0; i < 200; ++i)
      ASSERT_EQ(static_words[static_cast<std::size_t>(rank) * 200 + i], expected(i)) << "of " << rank;
    std::vector<std::int64_t> in(kWords);
    shmem.get(next_of(shmem.rank()), kHeap, static_cast<ptl_size_t>(rank) * kWords * 8, in.data(), kWords * 8);
    for (std::size_t i = 0; i < kWords; ++i) ASSERT_EQ(in[i], expected(i)) << "of " << rank << " at the neighbour";
  }
  self.barrier();
}

// One entry over all of memory: a remote address is the address.
TEST_PROCESSES(kProcesses, Pgas, one_entry_over_all_of_memory) {
  Shmem shmem(self);
  std::int64_t on_the_stack[4] = {};
  struct Addresses {
    ptl_size_t stack, heap, data;
  };
  const auto mine = Addresses{reinterpret_cast<ptl_size_t>(on_the_stack), reinterpret_cast<ptl_size_t>(&shmem.heap[7]),
                              reinterpret_cast<ptl_size_t>(&static_words[7])};
  const std::vector<Addresses> all = self.share(mine);
  for (int rank = 0; rank < kProcesses; ++rank) {
    const Addresses& there = all[static_cast<std::size_t>(rank)];
    const std::int64_t value = 100 + shmem.rank();
    shmem.put(rank, kEverything, there.stack + 8 * static_cast<ptl_size_t>(shmem.rank()), &value, 8);
    shmem.add(rank, kEverything, there.heap, 1);
    shmem.add(rank, kEverything, there.data, 10);
    shmem.add(rank, kHeap, 7 * 8, 100);  // The same word through the other entry.
  }
  shmem.quiet();
  self.barrier();
  for (int rank = 0; rank < kProcesses; ++rank) EXPECT_EQ(on_the_stack[rank], 100 + rank);
  EXPECT_EQ(shmem.heap[7], 101 * kProcesses);
  EXPECT_EQ(static_words[7], 10 * kProcesses);
  self.barrier();
}

// fetch_add gives every ticket once; a lock of compare_swap and a put keeps others out: the plain increments under it,
// by get and put, are all there in the end.
TEST_PROCESSES(kProcesses, Pgas, atomics_give_tickets_and_locks) {
  Shmem shmem(self);
  constexpr std::int64_t kRounds = 100;
  constexpr ptl_size_t kTicket = 0, kLock = 8, kPlain = 16;
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < kRounds; ++i) {
    const std::int64_t ticket = shmem.fetch_add(0, kHeap, kTicket, 1);
    EXPECT_GT(ticket, last);
    last = ticket;
    shmem.add(ticket % kProcesses, kStatic, static_cast<ptl_size_t>(8 * (ticket / kProcesses)), 1);
    while (shmem.compare_swap(0, kHeap, kLock, 0, 1 + shmem.rank()) != 0) std::this_thread::yield();
    std::int64_t plain = -1;
    shmem.get(0, kHeap, kPlain, &plain, 8);
    ++plain;
    shmem.put(0, kHeap, kPlain, &plain, 8);
    shmem.quiet();
    EXPECT_EQ(shmem.compare_swap(0, kHeap, kLock, 1 + shmem.rank(), 0), 1 + shmem.rank());
  }
  shmem.quiet();
  self.barrier();
  EXPECT_EQ(std::count(std::begin(static_words), std::begin(static_words) + kRounds, 1), kRounds) << "tickets twice";
  if (shmem.rank() == 0) {
    EXPECT_EQ(shmem.heap[0], kProcesses * kRounds);
    EXPECT_EQ(shmem.heap[1], 0);
    EXPECT_EQ(shmem.heap[2], kProcesses * kRounds);
  }
  self.barrier();
}

// put, fence, put of a flag: who sees the flag sees the data; round the ring, each waiting for its own flag.
TEST_PROCESSES(kProcesses, Pgas, flag_after_fence_comes_after_the_data) {
  Shmem shmem(self);
  constexpr std::size_t kWords = 500;
  constexpr std::size_t kFlag = 1000;
  constexpr std::int64_t kRounds = 200;
  std::vector<std::int64_t> out(kWords);
  for (std::int64_t round = 1; round <= kRounds; ++round) {
    if (shmem.rank() != 0) shmem.wait_until(shmem.heap[kFlag], round);
    if (shmem.rank() == 0 && round > 1) shmem.wait_until(shmem.heap[kFlag], round - 1);
    const std::int64_t expected = shmem.rank() == 0 ? round - 1 : round;
    for (std::size_t i = 0; i < kWords; ++i) ASSERT_EQ(shmem.heap[i], expected) << "word " << i;
    std::fill(out.begin(), out.end(), round);
    shmem.put(next_of(shmem.rank()), kHeap, 0, out.data(), kWords * 8);
    shmem.fence(kWords * 8);
    shmem.put(next_of(shmem.rank()), kHeap, kFlag * 8, &round, 8);
    shmem.quiet();  // `out` is used again.
  }
  if (shmem.rank() == 0) shmem.wait_until(shmem.heap[kFlag], kRounds);
  self.barrier();
}

// Barriers of triggered puts, armed long before: nobody leaves one before all have entered it.
TEST_PROCESSES(kProcesses, Pgas, triggered_barriers_hold_everybody) {
  Shmem shmem(self);
  constexpr ptl_size_t kBarriers = 200;
  shmem.arm_barriers(1, kBarriers);
  self.barrier();
  for (ptl_size_t epoch = 1; epoch <= kBarriers; ++epoch) {
    for (int rank = 0; rank < kProcesses; ++rank) shmem.add(rank, kHeap, 0, 1);
    if (static_cast<int>(epoch) % kProcesses == shmem.rank()) std::this_thread::yield();
    shmem.barrier(epoch);
    const std::int64_t seen = std::atomic_ref(shmem.heap[0]).load();
    const auto least = static_cast<std::int64_t>(epoch) * kProcesses;
    EXPECT_GE(seen, least) << "somebody has not entered barrier " << epoch;
    EXPECT_LT(seen, least + kProcesses) << "somebody is two barriers ahead";
  }
  self.barrier();
}

// 2.1, application bypass: the others have entered the barrier and make no call any more; what their triggers send is
// all that rank 0 gets.
TEST_PROCESSES(kProcesses, Pgas, barrier_rounds_run_without_the_process) {
  Shmem shmem(self);
  shmem.arm_barriers(1, 1);
  self.barrier();
  if (shmem.rank() != 0) shmem.enter_barrier();
  self.barrier();
  if (shmem.rank() == 0) {
    shmem.enter_barrier();
    shmem.leave_barrier(1);
  }
  self.barrier();
}

// Signal by counter: a consumer sleeps on the counter of its entry until as many puts have arrived as it needs; nothing
// else tells it. A pipeline round the ring.
TEST_PROCESSES(kProcesses, Pgas, counter_signals_what_has_arrived) {
  Shmem shmem(self);
  constexpr std::int64_t kRounds = 100;
  constexpr ptl_size_t kPieces = 8;
  self.barrier();
  ptl_size_t arrived = 0;
  for (std::int64_t round = 1; round <= kRounds; ++round) {
    if (shmem.rank() != 0 || round > 1) {
      arrived += kPieces;
      wait_for_count(shmem.target_ct(), arrived);
      const std::int64_t expected = shmem.rank() == 0 ? round - 1 : round;
      for (std::size_t i = 0; i < kPieces; ++i) ASSERT_EQ(shmem.heap[i * 100], expected) << "piece " << i;
    }
    for (std::size_t i = 0; i < kPieces; ++i) shmem.put(next_of(shmem.rank()), kHeap, i * 800, &round, 8);
  }
  shmem.quiet();
  self.barrier();
}

namespace {

/// Everybody adds `one` to a word of its type at everybody.
template <class T>
void add_everywhere(Shmem& shmem, ptl_size_t offset, ptl_datatype_t type) {
  const T one = 1;
  for (int rank = 0; rank < kProcesses; ++rank) shmem.combine(rank, offset, &one, sizeof one, PTL_SUM, type);
}

template <class T>
T heap_value(const Shmem& shmem, ptl_size_t offset) {
  T value{};
  std::memcpy(&value, reinterpret_cast<const char*>(shmem.heap.data()) + offset, sizeof value);
  return value;
}

}  // namespace

// OpenSHMEM's atomics and its reductions need every type: sums of all types from all processes at once; bits that each
// process sets, and the smallest and largest rank.
TEST_PROCESSES(kProcesses, Pgas, atomics_of_all_types) {
  Shmem shmem(self);
  constexpr ptl_size_t kSlot = 32;  // Of one type; the heap starts at 16 bytes at least.
  const std::uint32_t my_bit = 1u << shmem.rank();
  const double my_rank = shmem.rank();
  self.barrier();
  for (int i = 0; i < 50; ++i) {
    add_everywhere<std::int8_t>(shmem, 0 * kSlot, PTL_INT8_T);
    add_everywhere<std::uint8_t>(shmem, 1 * kSlot, PTL_UINT8_T);
    add_everywhere<std::int16_t>(shmem, 2 * kSlot, PTL_INT16_T);
    add_everywhere<std::uint16_t>(shmem, 3 * kSlot, PTL_UINT16_T);
    add_everywhere<std::int32_t>(shmem, 4 * kSlot, PTL_INT32_T);
    add_everywhere<std::uint32_t>(shmem, 5 * kSlot, PTL_UINT32_T);
    add_everywhere<std::int64_t>(shmem, 6 * kSlot, PTL_INT64_T);
    add_everywhere<std::uint64_t>(shmem, 7 * kSlot, PTL_UINT64_T);
    add_everywhere<float>(shmem, 8 * kSlot, PTL_FLOAT);
    add_everywhere<double>(shmem, 9 * kSlot, PTL_DOUBLE);
    add_everywhere<long double>(shmem, 10 * kSlot, PTL_LONG_DOUBLE);
    add_everywhere<std::complex<float>>(shmem, 11 * kSlot, PTL_FLOAT_COMPLEX);
    add_everywhere<std::complex<double>>(shmem, 12 * kSlot, PTL_DOUBLE_COMPLEX);
    add_everywhere<std::complex<long double>>(shmem, 13 * kSlot, PTL_LONG_DOUBLE_COMPLEX);
  }
  for (int rank = 0; rank < kProcesses; ++rank) {
    shmem.combine(rank, 14 * kSlot, &my_bit, 4, PTL_BOR, PTL_UINT32_T);
    shmem.combine(rank, 15 * kSlot, &my_rank, 8, PTL_MAX, PTL_DOUBLE);
  }
  shmem.quiet();
  self.barrier();
  constexpr int kSum = 50 * kProcesses;
  EXPECT_EQ(heap_value<std::int8_t>(shmem, 0 * kSlot), static_cast<std::int8_t>(kSum));
  EXPECT_EQ(heap_value<std::uint8_t>(shmem, 1 * kSlot), static_cast<std::uint8_t>(kSum));
  EXPECT_EQ(heap_value<std::int16_t>(shmem, 2 * kSlot), kSum);
  EXPECT_EQ(heap_value<std::uint16_t>(shmem, 3 * kSlot), kSum);
  EXPECT_EQ(heap_value<std::int32_t>(shmem, 4 * kSlot), kSum);
  EXPECT_EQ(heap_value<std::uint32_t>(shmem, 5 * kSlot), static_cast<std::uint32_t>(kSum));
  EXPECT_EQ(heap_value<std::int64_t>(shmem, 6 * kSlot), kSum);
  EXPECT_EQ(heap_value<std::uint64_t>(shmem, 7 * kSlot), static_cast<std::uint64_t>(kSum));
  EXPECT_EQ(heap_value<float>(shmem, 8 * kSlot), kSum);
  EXPECT_EQ(heap_value<double>(shmem, 9 * kSlot), kSum);
  EXPECT_EQ(heap_value<long double>(shmem, 10 * kSlot), kSum);
  EXPECT_EQ(heap_value<std::complex<float>>(shmem, 11 * kSlot), std::complex<float>(kSum));
  EXPECT_EQ(heap_value<std::complex<double>>(shmem, 12 * kSlot), std::complex<double>(kSum));
  EXPECT_EQ(heap_value<std::complex<long double>>(shmem, 13 * kSlot), std::complex<long double>(kSum));
  EXPECT_EQ(heap_value<std::uint32_t>(shmem, 14 * kSlot), (1u << kProcesses) - 1);
  EXPECT_EQ(heap_value<double>(shmem, 15 * kSlot), kProcesses - 1);
  self.barrier();
}
