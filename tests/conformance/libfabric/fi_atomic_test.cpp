// fi_atomic(3): every combination of operation, type and family that there is, executed and compared with a plain
// computation; every other one refused.

#include <sys/mman.h>

#include <complex>
#include <cstdint>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

enum class Family { kBase, kFetch, kCompare };

constexpr std::uint64_t kKey = 3;

bool is_complex(fi_datatype type) {
  return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
}
bool is_integer(fi_datatype type) { return type <= FI_UINT64; }

/// The table of the page.
bool is_legal(Family family, fi_datatype type, fi_op op) {
  switch (op) {
    case FI_MIN:
    case FI_MAX: return family != Family::kCompare && !is_complex(type);
    case FI_SUM:
    case FI_PROD:
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
    case FI_ATOMIC_WRITE: return family != Family::kCompare;
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR: return family != Family::kCompare && is_integer(type);
    case FI_ATOMIC_READ: return family == Family::kFetch;
    case FI_CSWAP:
    case FI_CSWAP_NE: return family == Family::kCompare;
    case FI_MSWAP: return family == Family::kCompare && is_integer(type);
    default: return family == Family::kCompare && !is_complex(type);
  }
}

/// What the target becomes. Types without order or bits never ask for them.
template <class T>
T computed(fi_op op, T target, T source, T compare) {
  if constexpr (!std::is_class_v<T>) {
    switch (op) {
      case FI_MIN: return source < target ? source : target;
      case FI_MAX: return source > target ? source : target;
      case FI_CSWAP_LE: return compare <= target ? source : target;
      case FI_CSWAP_LT: return compare < target ? source : target;
      case FI_CSWAP_GE: return compare >= target ? source : target;
      case FI_CSWAP_GT: return compare > target ? source : target;
      default: break;
    }
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case FI_BOR: return static_cast<T>(target | source);
      case FI_BAND: return static_cast<T>(target & source);
      case FI_BXOR: return static_cast<T>(target ^ source);
      case FI_MSWAP: return static_cast<T>((source & compare) | (target & ~compare));
      default: break;
    }
  }
  const bool target_is_true = target != T(0);
  const bool source_is_true = source != T(0);
  switch (op) {
    case FI_SUM: return static_cast<T>(target + source);
    case FI_PROD: return static_cast<T>(target * source);
    case FI_LOR: return T(target_is_true || source_is_true);
    case FI_LAND: return T(target_is_true && source_is_true);
    case FI_LXOR: return T(target_is_true != source_is_true);
    case FI_ATOMIC_WRITE: return source;
    case FI_CSWAP: return compare == target ? source : target;
    case FI_CSWAP_NE: return compare != target ? source : target;
    default: return target;
  }
}

class FiAtomic : public Fabric {
 protected:
  template <class T>
  void run_all(fi_datatype type) {
    for (const Family family : {Family::kBase, Family::kFetch, Family::kCompare}) {
      for (int op = 0; op < FI_ATOMIC_OP_LAST; ++op) run<T>(family, type, static_cast<fi_op>(op));
    }
  }

  template <class T>
  void run(Family family, fi_datatype type, fi_op op) {
    SCOPED_TRACE(std::string("type ") + std::to_string(type) + ", operation " + std::to_string(op) + ", family " +
                 std::to_string(static_cast<int>(family)));
    std::size_t count = 0;
    const int expected = is_legal(family, type, op) ? 0 : -FI_EOPNOTSUPP;
    ASSERT_EQ(valid(family, type, op, &count), expected);
    fi_atomic_attr attr{};
    ASSERT_EQ(fi_query_atomic(domain, type, op, &attr, flags_of(family)), expected);
    alignas(64) T target = T(6);
    T source = T(3), compare = T(6), result = T(0);
    fid_mr* region = open_memory(&target, sizeof target, kKey);
    const ssize_t called = call(family, type, op, {&source, &compare, &result});
    EXPECT_EQ(called, expected);
    if (called == 0) {
      EXPECT_EQ(attr.count, count);
      EXPECT_EQ(attr.size, sizeof(T));
      EXPECT_EQ(a.next().err, 0);
      EXPECT_EQ(target, computed(op, T(6), T(3), T(6)));
      EXPECT_EQ(result, family != Family::kBase ? T(6) : T(0));
      ++done;
    }
    EXPECT_EQ(fi_close(&region->fid), 0);
  }

  struct Memory {
    const void* source;
    const void* compare;
    void* result;
  };

  int valid(Family family, fi_datatype type, fi_op op, std::size_t* count) const {
    switch (family) {
      case Family::kFetch: return fi_fetch_atomicvalid(a.ep, type, op, count);
      case Family::kCompare: return fi_compare_atomicvalid(a.ep, type, op, count);
      default: return fi_atomicvalid(a.ep, type, op, count);
    }
  }

  static std::uint64_t flags_of(Family family) {
    return family == Family::kFetch ? FI_FETCH_ATOMIC : family == Family::kCompare ? FI_COMPARE_ATOMIC : 0;
  }

  ssize_t call(Family family, fi_datatype type, fi_op op, const Memory& m) const {
    switch (family) {
      case Family::kFetch:
        return fi_fetch_atomic(a.ep, m.source, 1, nullptr, m.result, nullptr, to_b, 0, kKey, type, op, nullptr);
      case Family::kCompare:
        return fi_compare_atomic(a.ep, m.source, 1, nullptr, m.compare, nullptr, m.result, nullptr, to_b, 0, kKey, type,
                                 op, nullptr);
      default: return fi_atomic(a.ep, m.source, 1, nullptr, to_b, 0, kKey, type, op, nullptr);
    }
  }

  int done = 0;
};

TEST_F(FiAtomic, All_354_combinations_and_no_other) {
  run_all<std::int8_t>(FI_INT8);
  run_all<std::uint8_t>(FI_UINT8);
  run_all<std::int16_t>(FI_INT16);
  run_all<std::uint16_t>(FI_UINT16);
  run_all<std::int32_t>(FI_INT32);
  run_all<std::uint32_t>(FI_UINT32);
  run_all<std::int64_t>(FI_INT64);
  run_all<std::uint64_t>(FI_UINT64);
  run_all<float>(FI_FLOAT);
  run_all<double>(FI_DOUBLE);
  run_all<std::complex<float>>(FI_FLOAT_COMPLEX);
  run_all<std::complex<double>>(FI_DOUBLE_COMPLEX);
  run_all<long double>(FI_LONG_DOUBLE);
  run_all<std::complex<long double>>(FI_LONG_DOUBLE_COMPLEX);
  EXPECT_EQ(done, 354);
}

TEST_F(FiAtomic, What_is_no_operation_or_type_is_refused) {
  std::size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(a.ep, FI_DATATYPE_LAST, FI_SUM, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomicvalid(a.ep, FI_INT8, FI_ATOMIC_OP_LAST, &count), -FI_EOPNOTSUPP);
}

TEST_F(FiAtomic, As_many_items_as_it_says_and_no_more) {
  std::size_t count = 0;
  ASSERT_EQ(fi_atomicvalid(a.ep, FI_UINT64, FI_SUM, &count), 0);
  std::vector<std::uint64_t> target(count, 1), source(count + 1, 2), result(count);
  fid_mr* region = open_memory(target.data(), count * 8, kKey);
  EXPECT_EQ(fi_atomic(a.ep, source.data(), count + 1, nullptr, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr),
            -FI_EMSGSIZE);
  const fi_ioc sources[] = {{source.data(), 1}, {source.data() + 1, count - 1}};
  fi_ioc results[] = {{result.data(), count - 1}, {result.data() + count - 1, 1}};
  ASSERT_EQ(fi_fetch_atomicv(a.ep, sources, nullptr, 2, results, nullptr, 2, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr),
            0);
  EXPECT_EQ(a.next().flags, FI_READ | FI_ATOMIC);
  EXPECT_EQ(target, std::vector<std::uint64_t>(count, 3));
  EXPECT_EQ(result, std::vector<std::uint64_t>(count, 1));
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiAtomic, Every_item_is_compared_with_its_own) {
  constexpr std::size_t kItems = 40;
  std::vector<std::uint32_t> target(kItems), source(kItems, 1000), compare(kItems), result(kItems);
  for (std::uint32_t i = 0; i < kItems; ++i) {
    target[i] = i;
    compare[i] = i % 2 == 0 ? i : i + 1;
  }
  fid_mr* region = open_memory(target.data(), kItems * 4, kKey);
  const fi_ioc sources[] = {{source.data(), 7}, {source.data() + 7, kItems - 7}};
  fi_ioc results[] = {{result.data(), kItems}};
  const fi_ioc compares[] = {{compare.data(), kItems - 1}, {compare.data() + kItems - 1, 1}};
  ASSERT_EQ(fi_compare_atomicv(a.ep, sources, nullptr, 2, compares, nullptr, 2, results, nullptr, 1, to_b, 0, kKey,
                               FI_UINT32, FI_CSWAP, &target),
            0);
  const Completion done_all = a.next();
  EXPECT_EQ(done_all.err, 0);
  EXPECT_EQ(done_all.op_context, &target);
  for (std::uint32_t i = 0; i < kItems; ++i) {
    EXPECT_EQ(result[i], i);
    EXPECT_EQ(target[i], i % 2 == 0 ? 1000 : i);
  }
  EXPECT_TRUE(a.is_quiet());
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiAtomic, Injected_and_message_forms) {
  std::uint64_t target = 1;
  std::uint64_t source = 4;
  fid_mr* region = open_memory(&target, 8, kKey);
  ASSERT_EQ(fi_inject_atomic(a.ep, &source, 1, to_b, 0, kKey, FI_UINT64, FI_SUM), 0);
  const fi_ioc piece{&source, 1};
  const fi_rma_ioc remote{0, 1, kKey};
  fi_msg_atomic msg{&piece, nullptr, 1, to_b, &remote, 1, FI_UINT64, FI_SUM, &target, 0};
  ASSERT_EQ(fi_atomicmsg(a.ep, &msg, 0), 0);
  const Completion done_one = a.next();
  EXPECT_EQ(done_one.op_context, &target);
  EXPECT_EQ(done_one.flags, FI_WRITE | FI_ATOMIC);
  EXPECT_EQ(target, 9u);
  std::uint64_t old = 0;
  const std::uint64_t expected = 9;
  fi_ioc result{&old, 1};
  const fi_ioc compare{const_cast<std::uint64_t*>(&expected), 1};
  msg.op = FI_CSWAP;
  ASSERT_EQ(fi_compare_atomicmsg(a.ep, &msg, &compare, nullptr, 1, &result, nullptr, 1, 0), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(old, 9u);
  EXPECT_EQ(target, 4u);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiAtomic, Values_are_compared_as_values) {
  double target = -0.0;
  const double compare = 0.0;
  const double source = 5.0;
  double old = 1.0;
  fid_mr* region = open_memory(&target, 8, kKey);
  ASSERT_EQ(call(Family::kCompare, FI_DOUBLE, FI_CSWAP, {&source, &compare, &old}), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(target, 5.0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiAtomic, Several_remote_pieces_are_one_call) {
  std::array<std::uint32_t, 8> target{};
  std::array<std::uint32_t, 5> source{1, 2, 3, 4, 5}, result{}, compare{};
  fid_mr* region = open_memory(target.data(), sizeof target, kKey);
  const fi_ioc sources[] = {{source.data(), 2}, {source.data() + 2, 3}};
  fi_ioc results[] = {{result.data(), 4}, {result.data() + 4, 1}};
  const fi_ioc compares[] = {{compare.data(), 5}};
  const fi_rma_ioc remote[] = {{24, 1, kKey}, {0, 3, kKey}, {16, 1, kKey}};
  fi_msg_atomic msg{sources, nullptr, 2, to_b, remote, 3, FI_UINT32, FI_SUM, &target, 0};
  ASSERT_EQ(fi_atomicmsg(a.ep, &msg, 0), 0);
  EXPECT_EQ(a.next().op_context, &target);
  EXPECT_TRUE(a.is_quiet());
  const std::array<std::uint32_t, 8> after{2, 3, 4, 0, 5, 0, 1, 0};
  EXPECT_EQ(target, after);
  ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &msg, results, nullptr, 2, 0), 0);
  EXPECT_EQ(a.next().op_context, &target);
  EXPECT_EQ(result, source);
  EXPECT_TRUE(a.is_quiet());
  compare = {2, 4, 0, 8, 10};
  msg.op = FI_CSWAP;
  ASSERT_EQ(fi_compare_atomicmsg(a.ep, &msg, compares, nullptr, 1, results, nullptr, 2, 0), 0);
  EXPECT_EQ(a.next().op_context, &target);
  EXPECT_EQ(result, (std::array<std::uint32_t, 5>{2, 4, 6, 8, 10}));
  EXPECT_EQ(target, (std::array<std::uint32_t, 8>{2, 6, 4, 0, 5, 0, 1, 0})) << "the third was not equal";
  msg.rma_iov_count = 2;
  EXPECT_EQ(fi_atomicmsg(a.ep, &msg, 0), -FI_EOPNOTSUPP) << "no such operation in this family";
  msg.op = FI_SUM;
  EXPECT_EQ(fi_atomicmsg(a.ep, &msg, 0), -FI_EINVAL) << "less remote items than local ones";
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// "The target of the atomic operation is a tagged receive buffer": the key is the tag, the address an offset in it.
class FiTaggedAtomic : public Fabric {
 protected:
  fi_msg_atomic message(fi_op op) { return {&piece, nullptr, 1, to_b, &remote, 1, FI_UINT64, op, &source, 0}; }

  std::array<std::uint64_t, 4> target{10, 20, 30, 40};
  std::uint64_t source = 5;
  std::uint64_t old = 0;
  fi_ioc piece{&source, 1};
  fi_rma_ioc remote{16, 1, 77};
  fi_ioc result{&old, 1};
};

TEST_F(FiTaggedAtomic, Changes_the_buffer_of_a_receive_that_waits) {
  fi_atomic_attr attr{};
  ASSERT_EQ(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED), 0);
  EXPECT_GT(attr.count, 1u);
  ASSERT_EQ(fi_trecv(b.ep, target.data(), sizeof target, nullptr, FI_ADDR_UNSPEC, 77, 0, &target), 0);
  fi_msg_atomic msg = message(FI_SUM);
  ASSERT_EQ(fi_atomicmsg(a.ep, &msg, FI_TAGGED), 0);
  const Completion done = b.next();
  EXPECT_EQ(done.op_context, &target);
  EXPECT_EQ(done.flags, FI_RECV | FI_TAGGED | FI_ATOMIC);
  EXPECT_EQ(done.tag, 77u);
  EXPECT_EQ(done.len, 8u);
  EXPECT_EQ(done.source, to_a);
  EXPECT_EQ(target, (std::array<std::uint64_t, 4>{10, 20, 35, 40}));
  EXPECT_EQ(a.next().op_context, &source);
}

TEST_F(FiTaggedAtomic, Fetches_and_compares) {
  ASSERT_EQ(fi_trecv(b.ep, target.data(), sizeof target, nullptr, FI_ADDR_UNSPEC, 77, 0, nullptr), 0);
  fi_msg_atomic msg = message(FI_SUM);
  ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &msg, &result, nullptr, 1, FI_TAGGED), 0);
  EXPECT_EQ(a.next().flags, FI_READ | FI_ATOMIC);
  EXPECT_EQ(old, 30u);
  EXPECT_EQ(b.next().err, 0);
  ASSERT_EQ(fi_trecv(b.ep, target.data(), sizeof target, nullptr, FI_ADDR_UNSPEC, 77, 0, nullptr), 0);
  std::uint64_t expected = 35;
  const fi_ioc compare{&expected, 1};
  msg.op = FI_CSWAP;
  ASSERT_EQ(fi_compare_atomicmsg(a.ep, &msg, &compare, nullptr, 1, &result, nullptr, 1, FI_TAGGED), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(old, 35u);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(target[2], 5u);
  fi_atomic_attr attr{};
  ASSERT_EQ(fi_query_atomic(domain, FI_UINT64, FI_CSWAP, &attr, FI_TAGGED | FI_COMPARE_ATOMIC), 0);
  EXPECT_EQ(attr.count, 4u);
}

TEST_F(FiTaggedAtomic, Compares_as_many_items_as_it_says) {
  const std::array<std::uint64_t, 4> sources{1, 2, 3, 4};
  const std::array<std::uint64_t, 4> expected{10, 21, 30, 40};
  std::array<std::uint64_t, 4> results{};
  const fi_ioc pieces{const_cast<std::uint64_t*>(sources.data()), 4};
  const fi_ioc compared[] = {{const_cast<std::uint64_t*>(expected.data()), 1},
                             {const_cast<std::uint64_t*>(expected.data() + 1), 3}};
  fi_ioc fetched{results.data(), 4};
  remote = {0, 4, 77};
  fi_msg_atomic msg = message(FI_CSWAP);
  msg.msg_iov = &pieces;
  ASSERT_EQ(fi_trecv(b.ep, target.data(), sizeof target, nullptr, FI_ADDR_UNSPEC, 77, 0, nullptr), 0);
  ASSERT_EQ(fi_compare_atomicmsg(a.ep, &msg, compared, nullptr, 2, &fetched, nullptr, 1, FI_TAGGED), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(b.next().len, 32u);
  EXPECT_EQ(results, (std::array<std::uint64_t, 4>{10, 20, 30, 40}));
  EXPECT_EQ(target, (std::array<std::uint64_t, 4>{1, 20, 3, 4}));
}

TEST_F(FiTaggedAtomic, Without_a_receive_there_is_nothing_to_change) {
  fi_msg_atomic msg = message(FI_SUM);
  ASSERT_EQ(fi_atomicmsg(a.ep, &msg, FI_TAGGED), 0);
  EXPECT_NE(a.next().err, 0);
  ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &msg, &result, nullptr, 1, FI_TAGGED), 0);
  EXPECT_NE(a.next().err, 0);
  ASSERT_EQ(fi_trecv(b.ep, target.data(), sizeof target, nullptr, FI_ADDR_UNSPEC, 77, 0, nullptr), 0);
  EXPECT_TRUE(b.is_quiet());
}

/// fi_domain(3), "Unmatched RMA / RMA Overrun", which "deal with the processing of RMA and atomic operations": those
/// that "attempt to access outside of the target memory region will fail, resulting in a transmit error".
TEST_F(FiTaggedAtomic, Outside_of_the_buffer_fails_at_its_initiator) {
  const std::array<std::uint64_t, 4> before = target;
  const std::array<std::uint64_t, 2> sources{5, 6};
  std::array<std::uint64_t, 2> compares{30, 40}, results{77, 78};
  const fi_ioc two{const_cast<std::uint64_t*>(sources.data()), 2};
  const fi_ioc compared{compares.data(), 2};
  fi_ioc fetched{results.data(), 2};
  ASSERT_EQ(fi_trecv(b.ep, target.data(), 24, nullptr, FI_ADDR_UNSPEC, 77, 0, &target), 0);
  for (const std::uint64_t at : {16, 24, 1 << 20}) {  // Half of it fits, or none.
    remote = {at, 2, 77};
    fi_msg_atomic msg = message(FI_SUM);
    msg.msg_iov = &two;
    ASSERT_EQ(fi_atomicmsg(a.ep, &msg, FI_TAGGED), 0);
    Completion failed = a.next();
    EXPECT_EQ(failed.err, FI_EKEYREJECTED) << at;
    EXPECT_EQ(failed.op_context, &source);
    ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &msg, &fetched, nullptr, 1, FI_TAGGED), 0);
    EXPECT_EQ(a.next().err, FI_EKEYREJECTED) << at;
    msg.op = FI_CSWAP;
    ASSERT_EQ(fi_compare_atomicmsg(a.ep, &msg, &compared, nullptr, 1, &fetched, nullptr, 1, FI_TAGGED), 0);
    EXPECT_EQ(a.next().err, FI_EKEYREJECTED) << at;
  }
  EXPECT_EQ(target, before);
  EXPECT_EQ(results, (std::array<std::uint64_t, 2>{77, 78}));
  EXPECT_TRUE(b.is_quiet()) << "the receive waits for the next";
  remote = {16, 1, 77};
  const fi_msg_atomic msg = message(FI_SUM);
  ASSERT_EQ(fi_atomicmsg(a.ep, &msg, FI_TAGGED), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(b.next().op_context, &target);
  EXPECT_EQ(target[2], 35u);
}

TEST_F(FiTaggedAtomic, Goes_to_one_piece_of_one_receive) {
  const fi_rma_ioc two[] = {{0, 1, 77}, {8, 0, 77}};
  fi_msg_atomic msg = message(FI_SUM);
  msg.rma_iov = two;
  msg.rma_iov_count = 2;
  EXPECT_EQ(fi_atomicmsg(a.ep, &msg, FI_TAGGED), -FI_EINVAL);
}

/// "The target buffer of fetch-atomic operations must be enabled for remote read access." That is all that is needed of
/// the one that changes nothing, also of memory itself.
TEST_F(FiAtomic, What_only_reads_needs_no_right_to_write) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const items = static_cast<std::uint64_t*>(page);
  items[0] = 7;
  items[1] = 8;
  ASSERT_EQ(mprotect(page, 4096, PROT_READ), 0);
  std::uint64_t one = 1;
  std::array<std::uint64_t, 2> old{};
  const auto fetch = [&](std::uint64_t key, fi_op op) {
    EXPECT_EQ(fi_fetch_atomic(a.ep, op == FI_ATOMIC_READ ? nullptr : &one, op == FI_ATOMIC_READ ? 2 : 1, nullptr,
                              old.data(), nullptr, to_b, 0, key, FI_UINT64, op, nullptr),
              0);
    return a.next().err;
  };
  fid_mr* readable = open_memory(page, 4096, 50, FI_REMOTE_READ);
  std::uint64_t word = 9;
  fid_mr* writable = open_memory(&word, sizeof word, 51, FI_REMOTE_WRITE);
  EXPECT_EQ(fetch(50, FI_ATOMIC_READ), 0);
  EXPECT_EQ(old, (std::array<std::uint64_t, 2>{7, 8}));
  EXPECT_EQ(fetch(50, FI_SUM), FI_EACCES);
  EXPECT_EQ(fetch(51, FI_SUM), FI_EACCES) << "it reads, too";
  EXPECT_EQ(word, 9u);
  EXPECT_EQ(fi_close(&readable->fid), 0);
  EXPECT_EQ(fi_close(&writable->fid), 0);
  EXPECT_EQ(munmap(page, 4096), 0);
}

/// Alignment in C is enough: a complex number needs that of its parts.
TEST_F(FiAtomic, Item_that_is_not_aligned_as_in_C_is_refused) {
  alignas(64) std::array<std::byte, 128> memory{};
  fid_mr* region = open_memory(memory.data(), memory.size(), kKey);
  struct Row {
    fi_datatype type;
    std::uint64_t offset;
    bool aligned;
  };
  for (const Row& row : {Row{FI_UINT16, 1, false}, Row{FI_UINT32, 2, false}, Row{FI_UINT64, 4, false},
                         Row{FI_UINT64, 60, false}, Row{FI_UINT64, 56, true}, Row{FI_LONG_DOUBLE, 8, false},
                         Row{FI_DOUBLE_COMPLEX, 4, false}, Row{FI_DOUBLE_COMPLEX, 8, true}}) {
    memory.fill({});
    std::array<std::byte, 16> ones{};
    ones.fill(std::byte{0x3f});
    ASSERT_EQ(fi_atomic(a.ep, ones.data(), 1, nullptr, to_b, row.offset, kKey, row.type, FI_ATOMIC_WRITE, nullptr), 0);
    EXPECT_EQ(a.next().err, row.aligned ? 0 : FI_EKEYREJECTED) << row.type << " at " << row.offset;
    EXPECT_EQ(memory[row.offset], row.aligned ? ones[0] : std::byte{0});
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiAtomic, Failure_of_many_items_is_one_failure) {
  std::array<std::uint64_t, 16> items{}, compares{}, results{};
  int context = 0;
  ASSERT_EQ(fi_compare_atomic(a.ep, items.data(), items.size(), nullptr, compares.data(), nullptr, results.data(),
                              nullptr, to_b, 0, 4711, FI_UINT64, FI_CSWAP, &context),
            0);
  const Completion failed = a.next();
  EXPECT_EQ(failed.err, FI_EKEYREJECTED);
  EXPECT_EQ(failed.op_context, &context);
  EXPECT_EQ(failed.flags, FI_READ | FI_ATOMIC);
  EXPECT_TRUE(a.is_quiet());
}

}  // namespace
}  // namespace portofu::test
