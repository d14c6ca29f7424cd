// Tests of engine/atomic/atomic_unit.cpp: legality against table 3-4, results against an oracle, refusals, faults,
// floating-point environment. What several threads do at once is in atomic_access_test.cpp.

#include "engine/atomic/atomic_unit.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cfenv>
#include <string>
#include <tuple>
#include <utility>

#include "engine/atomic/atomic_kernels.h"
#include "engine/memory/guarded_copy.h"
#include "tests/unit/atomic/atomic_oracle.h"

namespace portofu {
namespace {

using oracle::Item;
using oracle::item_of;

using AllTypes = std::tuple<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                            std::int64_t, std::uint64_t, float, std::complex<float>, double, std::complex<double>,
                            long double, std::complex<long double>>;

/// Calls `test.operator()<T>(type)` for every datatype and its C++ type.
template <class Test>
void for_each_type(const Test& test) {
  [&]<std::size_t... kType>(std::index_sequence<kType...>) {
    (test.template operator()<std::tuple_element_t<kType, AllTypes>>(atomic_type_at(kType)), ...);
  }
  (std::make_index_sequence<kAtomicTypeCount>());
}

std::vector<AtomicOperation> all_operations() {
  std::vector<AtomicOperation> operations;
  for (std::size_t at = 0; at < kAtomicOperationCount; ++at) operations.push_back(atomic_operation_at(at));
  return operations;
}

std::string name_of(AtomicOperation operation, AtomicType type) {
  return "operation " + std::to_string(static_cast<int>(operation)) + ", type " +
         std::to_string(static_cast<int>(type));
}

template <class T>
bool is_legal_for(AtomicOperation operation) {
  return oracle::apply<T>(operation, T{}, T{}, T{}).kind != oracle::Outcome<T>::Kind::kIllegal;
}

/// Alignments below the size at which an item is also served.
template <class T>
constexpr std::size_t least_alignment() {
  return oracle::is_complex<T> ? sizeof(T) / 2 : sizeof(T);
}

/// User memory with room for a vector at any alignment, and a pattern around it that must stay.
template <class T>
class UserMemory {
 public:
  /// @param misalignment  bytes from a 64-byte boundary to the first item
  UserMemory(const std::vector<Item<T>>& items, std::size_t misalignment) : item_count_(items.size()) {
    bytes_.assign(64 + misalignment + item_count_ * sizeof(T) + 64, kPattern);
    void* start = bytes_.data();
    std::size_t space = bytes_.size();
    target_ =
        static_cast<std::byte*>(std::align(64, misalignment + item_count_ * sizeof(T), start, space)) + misalignment;
    for (std::size_t at = 0; at < item_count_; ++at) std::memcpy(target_ + at * sizeof(T), items[at].data(), sizeof(T));
  }

  std::byte* target() { return target_; }

  Item<T> item(std::size_t at) const {
    Item<T> item;
    std::memcpy(item.data(), target_ + at * sizeof(T), sizeof(T));
    return item;
  }

  bool surroundings_intact() const {
    const std::byte* end = target_ + item_count_ * sizeof(T);
    const auto is_pattern = [](std::byte byte) { return byte == kPattern; };
    return std::all_of(bytes_.data(), static_cast<const std::byte*>(target_), is_pattern) &&
           std::all_of(end, bytes_.data() + bytes_.size(), is_pattern);
  }

 private:
  static constexpr std::byte kPattern{0xa5};
  std::size_t item_count_;
  std::vector<std::byte> bytes_;
  std::byte* target_;
};

/// A private buffer of a request at an odd address.
template <class T>
class OddBuffer {
 public:
  explicit OddBuffer(const std::vector<Item<T>>& items) : bytes_(1 + items.size() * sizeof(T)) {
    for (std::size_t at = 0; at < items.size(); ++at) std::memcpy(data() + at * sizeof(T), items[at].data(), sizeof(T));
  }

  std::byte* data() { return bytes_.data() + 1; }

  Item<T> item(std::size_t at) {
    Item<T> item;
    std::memcpy(item.data(), data() + at * sizeof(T), sizeof(T));
    return item;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// One vector of items for an atomic, and the comparison with the oracle.
template <class T>
struct Trial {
  AtomicOperation operation;
  AtomicType type;
  std::vector<Item<T>> targets;
  std::vector<Item<T>> sources;
  std::vector<Item<T>> operands;

  /// @param run  executes a request
  template <class Run>
  bool matches(std::size_t misalignment, bool fetch, const Run& run) const {
    UserMemory<T> memory(targets, misalignment);
    OddBuffer<T> source(sources), operand(operands), fetched(targets);
    std::memset(fetched.data(), 0, targets.size() * sizeof(T));
    run({operation, type, memory.target(), source.data(), fetch ? fetched.data() : nullptr, operand.data(),
         targets.size()});
    for (std::size_t at = 0; at < targets.size(); ++at) {
      const auto outcome = oracle::apply<T>(operation, oracle::value_of<T>(targets[at]),
                                            oracle::value_of<T>(sources[at]), oracle::value_of<T>(operands[at]));
      if (!oracle::as_expected<T>(outcome, operation, targets[at], sources[at], memory.item(at))) return false;
      if (fetch && fetched.item(at) != targets[at]) return false;
    }
    return memory.surroundings_intact();
  }
};

const auto run_unit = [](const AtomicRequest& request) { EXPECT_EQ(execute_atomic(request), AtomicResult::kDone); };

/// As on a CPU that has no 16-byte atomics.
const auto run_without_word16 = [](const AtomicRequest& request) {
  find_atomic_kernel(request.operation, request.type,
                     choose_atomic_access(request.type, request.target, false))(request);
};

/// Executes a trial in every way in which its items can be reached.
template <class T>
bool matches_in_every_way(const Trial<T>& trial) {
  bool matches = trial.matches(0, true, run_unit) && trial.matches(sizeof(T) % 64, false, run_unit) &&
                 trial.matches(0, true, run_without_word16);
  if (least_alignment<T>() < sizeof(T)) {
    matches = matches && trial.matches(least_alignment<T>(), true, run_unit) &&
              trial.matches(least_alignment<T>(), true, run_without_word16);
  }
  return matches;
}

// ---- Tables --------------------------------------------------------------------------------------------------------

TEST(AtomicType, Bytes__are_those_of_the_C_types) {
  for_each_type([]<class T>(AtomicType type) { EXPECT_EQ(atomic_type_bytes(type), sizeof(T)); });
  EXPECT_EQ(atomic_type_bytes(atomic_type_at(kAtomicTypeCount)), 0u);
  EXPECT_EQ(atomic_type_bytes(static_cast<AtomicType>(static_cast<int>(AtomicType::kInt8) - 1)), 0u);
  EXPECT_EQ(atomic_type_bytes(static_cast<AtomicType>(0)), 0u);
  EXPECT_EQ(atomic_type_bytes(static_cast<AtomicType>(255)), 0u);
}

/// Table 3-4: I integral, F floating, C complex; A PtlAtomic, X PtlFetchAtomic, S PtlSwap.
struct LegalRow {
  AtomicOperation operation;
  const char* classes;
  const char* uses;
};

constexpr LegalRow kLegalRows[] = {
    {AtomicOperation::kMin, "IF", "AX"},     {AtomicOperation::kMax, "IF", "AX"},
    {AtomicOperation::kSum, "IFC", "AX"},    {AtomicOperation::kProd, "IFC", "AX"},
    {AtomicOperation::kLor, "I", "AX"},      {AtomicOperation::kLand, "I", "AX"},
    {AtomicOperation::kBor, "I", "AX"},      {AtomicOperation::kBand, "I", "AX"},
    {AtomicOperation::kLxor, "I", "AX"},     {AtomicOperation::kBxor, "I", "AX"},
    {AtomicOperation::kSwap, "IFC", "S"},    {AtomicOperation::kCswap, "IFC", "S"},
    {AtomicOperation::kCswapNe, "IFC", "S"}, {AtomicOperation::kCswapLe, "IF", "S"},
    {AtomicOperation::kCswapLt, "IF", "S"},  {AtomicOperation::kCswapGe, "IF", "S"},
    {AtomicOperation::kCswapGt, "IF", "S"},  {AtomicOperation::kMswap, "I", "S"},
    {AtomicOperation::kDiff, "IFC", "AX"},   {AtomicOperation::kAtomicRead, "", ""},
    {AtomicOperation::kAtomicWrite, "", ""},
};

TEST(AtomicIsLegal, Every_combination__is_that_of_table_3_4) {
  static_assert(std::size(kLegalRows) == kAtomicOperationCount);
  for (const LegalRow& row : kLegalRows) {
    for_each_type([&]<class T>(AtomicType type) {
      const char type_class = std::is_integral_v<T> ? 'I' : oracle::is_complex<T> ? 'C' : 'F';
      const bool type_fits = std::string(row.classes).find(type_class) != std::string::npos;
      for (const AtomicUse use : {AtomicUse::kAtomic, AtomicUse::kFetchAtomic, AtomicUse::kSwap}) {
        const bool use_fits = std::string(row.uses).find("AXS"[static_cast<int>(use)]) != std::string::npos;
        EXPECT_EQ(atomic_is_legal(row.operation, type, use), type_fits && use_fits)
            << name_of(row.operation, type) << ", use " << static_cast<int>(use);
      }
    });
  }
}

TEST(AtomicIsLegal, Bytes_that_are_no_operation_or_type__are_illegal) {
  for (const AtomicUse use : {AtomicUse::kAtomic, AtomicUse::kFetchAtomic, AtomicUse::kSwap}) {
    EXPECT_FALSE(atomic_is_legal(atomic_operation_at(kAtomicOperationCount), AtomicType::kInt8, use));
    EXPECT_FALSE(atomic_is_legal(static_cast<AtomicOperation>(0), AtomicType::kInt8, use));
    EXPECT_FALSE(atomic_is_legal(AtomicOperation::kSum, static_cast<AtomicType>(0), use));
    EXPECT_FALSE(atomic_is_legal(AtomicOperation::kSum, atomic_type_at(kAtomicTypeCount), use));
    EXPECT_FALSE(atomic_is_legal(static_cast<AtomicOperation>(255), static_cast<AtomicType>(255), use));
  }
}

TEST(AtomicIsLegal, What_Portals_allows__the_unit_executes) {
  for (int operation = 0; operation < 256; ++operation) {
    for (int type = 0; type < 256; ++type) {
      std::byte nothing[64] = {};
      const AtomicRequest request{static_cast<AtomicOperation>(operation),
                                  static_cast<AtomicType>(type),
                                  nothing,
                                  nothing,
                                  nullptr,
                                  nothing,
                                  0};
      for (const AtomicUse use : {AtomicUse::kAtomic, AtomicUse::kFetchAtomic, AtomicUse::kSwap}) {
        if (atomic_is_legal(request.operation, request.type, use)) {
          EXPECT_EQ(execute_atomic(request), AtomicResult::kDone) << name_of(request.operation, request.type);
        }
      }
    }
  }
}

// ---- Results -------------------------------------------------------------------------------------------------------

TEST(FabricAtomicIsLegal, Combinations__are_the_354_of_fi_atomic) {
  int count = 0;
  for (std::size_t operation = 0; operation < kAtomicOperationCount; ++operation) {
    for (std::size_t type = 0; type < kAtomicTypeCount; ++type) {
      for (const AtomicUse use : {AtomicUse::kAtomic, AtomicUse::kFetchAtomic, AtomicUse::kSwap})
        count += fabric_atomic_is_legal(atomic_operation_at(operation), atomic_type_at(type), use) ? 1 : 0;
    }
  }
  EXPECT_EQ(count, 354);
  EXPECT_FALSE(fabric_atomic_is_legal(AtomicOperation{0}, AtomicType::kInt8, AtomicUse::kAtomic));
  EXPECT_FALSE(fabric_atomic_is_legal(AtomicOperation::kSum, AtomicType{0}, AtomicUse::kAtomic));
}

TEST(ExecuteAtomic, Edge_values__every_operation_and_type_as_the_oracle) {
  for_each_type([]<class T>(AtomicType type) {
    const std::vector<T> edges = oracle::edge_values<T>();
    for (const AtomicOperation operation : all_operations()) {
      if (!is_legal_for<T>(operation)) continue;
      for (const T& target : edges) {
        // All sources and operands that can meet this target, as one vector.
        const bool uses_operand = operation >= AtomicOperation::kCswap && operation <= AtomicOperation::kMswap;
        Trial<T> trial{operation, type, {}, {}, {}};
        for (const T& source : edges) {
          for (const T& operand : uses_operand ? edges : std::vector<T>{T{}}) {
            trial.targets.push_back(item_of<T>(target, std::byte{0x11}));
            trial.sources.push_back(item_of<T>(source, std::byte{0x22}));
            trial.operands.push_back(item_of<T>(operand, std::byte{0x33}));
          }
        }
        ASSERT_TRUE(matches_in_every_way(trial)) << name_of(operation, type) << ", target " << target;
      }
    }
  });
}

TEST(ExecuteAtomic, Random_vectors__every_operation_and_type_as_the_oracle) {
  std::mt19937_64 random(oracle::test_seed());
  for_each_type([&]<class T>(AtomicType type) {
    oracle::RandomItems<T> items(random);
    for (const AtomicOperation operation : all_operations()) {
      if (!is_legal_for<T>(operation)) continue;
      for (int round = 0; round < 50; ++round) {
        Trial<T> trial{operation, type, {}, {}, {}};
        for (std::size_t left = random() % 20; left > 0; --left) {
          trial.targets.push_back(items.next());
          trial.sources.push_back(items.next());
          trial.operands.push_back(items.next());
        }
        ASSERT_TRUE(matches_in_every_way(trial)) << name_of(operation, type) << ", round " << round;
      }
    }
  });
}

/// Executes one operation on one item.
/// @return the target afterwards
template <class T>
T once(AtomicOperation operation, AtomicType type, const T& target, const T& source, const T& operand = T{}) {
  alignas(64) T memory = target;
  const Item<T> source_item = item_of(source), operand_item = item_of(operand);
  EXPECT_EQ(execute_atomic({operation, type, reinterpret_cast<std::byte*>(&memory), source_item.data(), nullptr,
                            operand_item.data(), 1}),
            AtomicResult::kDone);
  return memory;
}

TEST(ExecuteAtomic, Integers__wrap) {
  EXPECT_EQ(once<std::int8_t>(AtomicOperation::kSum, AtomicType::kInt8, 127, 1), -128);
  EXPECT_EQ(once<std::int64_t>(AtomicOperation::kDiff, AtomicType::kInt64, INT64_MIN, 1), INT64_MAX);
  EXPECT_EQ(once<std::uint16_t>(AtomicOperation::kProd, AtomicType::kUint16, 0xffff, 0xffff), 1);
  EXPECT_EQ(once<std::int32_t>(AtomicOperation::kProd, AtomicType::kInt32, INT32_MIN, -1), INT32_MIN);
}

TEST(ExecuteAtomic, Minus_zero__equals_zero) {
  EXPECT_TRUE(once(AtomicOperation::kCswap, AtomicType::kDouble, -0.0, 5.0, 0.0) == 5.0);
  EXPECT_FALSE(once(AtomicOperation::kCswapNe, AtomicType::kDouble, -0.0, 5.0, 0.0) == 5.0);
  EXPECT_TRUE(std::signbit(once(AtomicOperation::kMax, AtomicType::kFloat, -0.0f, 0.0f)));
}

TEST(ExecuteAtomic, Nan__equals_nothing_and_never_wins_min_or_max) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(once(AtomicOperation::kCswap, AtomicType::kDouble, nan, 5.0, nan)));
  EXPECT_EQ(once(AtomicOperation::kCswapNe, AtomicType::kDouble, nan, 5.0, nan), 5.0);
  EXPECT_TRUE(std::isnan(once(AtomicOperation::kCswapLe, AtomicType::kDouble, nan, 5.0, 1.0)));
  EXPECT_EQ(once(AtomicOperation::kMin, AtomicType::kDouble, 1.0, nan), 1.0);
  EXPECT_TRUE(std::isnan(once(AtomicOperation::kMax, AtomicType::kDouble, nan, 1.0)));
}

TEST(ExecuteAtomic, Long_double__compares_without_its_padding_and_moves_with_it) {
  using T = long double;
  Trial<T> equal{AtomicOperation::kCswap,
                 AtomicType::kLongDouble,
                 {item_of<T>(1.5L, std::byte{0x11})},
                 {item_of<T>(2.5L, std::byte{0x22})},
                 {item_of<T>(1.5L, std::byte{0x33})}};
  UserMemory<T> memory(equal.targets, 0);
  run_unit(
      {equal.operation, equal.type, memory.target(), equal.sources[0].data(), nullptr, equal.operands[0].data(), 1});
  EXPECT_EQ(memory.item(0), item_of<T>(2.5L, std::byte{0x22}));

  // A sum has zeros there.
  run_unit(
      {AtomicOperation::kSum, AtomicType::kLongDouble, memory.target(), equal.sources[0].data(), nullptr, nullptr, 1});
  EXPECT_EQ(memory.item(0), item_of<T>(5.0L, std::byte{0}));
}

TEST(ExecuteAtomic, Operand_order__is_that_of_the_spec) {
  // PTL_CSWAP_LT: if the operand is less than the target.
  EXPECT_EQ(once<std::int32_t>(AtomicOperation::kCswapLt, AtomicType::kInt32, 10, 99, 9), 99);
  EXPECT_EQ(once<std::int32_t>(AtomicOperation::kCswapLt, AtomicType::kInt32, 10, 99, 11), 10);
  EXPECT_EQ(once<std::uint32_t>(AtomicOperation::kMswap, AtomicType::kUint32, 0xaaaa, 0x5555, 0x00ff), 0xaa55u);
  EXPECT_EQ(once<std::int32_t>(AtomicOperation::kDiff, AtomicType::kInt32, 10, 3), 7);
}

TEST(ExecuteAtomic, Fetched_in_place_of_the_source__is_the_old_target) {
  alignas(8) std::uint64_t memory[3] = {1, 2, 3};
  std::uint64_t buffer[3] = {10, 20, 30};
  std::byte* bytes = reinterpret_cast<std::byte*>(buffer);
  EXPECT_EQ(execute_atomic({AtomicOperation::kSum, AtomicType::kUint64, reinterpret_cast<std::byte*>(memory), bytes,
                            bytes, nullptr, 3}),
            AtomicResult::kDone);
  EXPECT_TRUE(std::ranges::equal(memory, std::array<std::uint64_t, 3>{11, 22, 33}));
  EXPECT_TRUE(std::ranges::equal(buffer, std::array<std::uint64_t, 3>{1, 2, 3}));
}

TEST(ExecuteAtomic, Read__needs_no_source) {
  alignas(8) std::uint64_t memory = 42;
  std::uint64_t fetched = 0;
  EXPECT_EQ(execute_atomic({AtomicOperation::kAtomicRead, AtomicType::kUint64, reinterpret_cast<std::byte*>(&memory),
                            nullptr, reinterpret_cast<std::byte*>(&fetched), nullptr, 1}),
            AtomicResult::kDone);
  EXPECT_EQ(fetched, 42u);
}

// ---- Refusals ------------------------------------------------------------------------------------------------------

/// Executes on one item of zeros.
/// @return true if the answer is `expected` and nothing was touched
bool touches_nothing(AtomicOperation operation, AtomicType type, std::size_t misalignment, AtomicResult expected) {
  alignas(64) std::byte memory[128] = {}, untouched[128] = {};
  std::byte ones[64];
  std::memset(ones, 0xff, sizeof ones);
  std::byte fetched[64] = {};
  const AtomicResult result = execute_atomic({operation, type, memory + misalignment, ones, fetched, ones, 1});
  return result == expected && std::memcmp(memory, untouched, sizeof memory) == 0 &&
         std::memcmp(fetched, untouched, sizeof fetched) == 0;
}

TEST(ExecuteAtomic, Unaligned_target__is_refused) {
  for_each_type([]<class T>(AtomicType type) {
    for (const AtomicOperation operation : all_operations()) {
      if (!is_legal_for<T>(operation)) continue;
      for (std::size_t misalignment = 1; misalignment < sizeof(T); ++misalignment) {
        if (misalignment % least_alignment<T>() == 0) continue;
        EXPECT_TRUE(touches_nothing(operation, type, misalignment, AtomicResult::kUnaligned))
            << name_of(operation, type) << ", misaligned by " << misalignment;
      }
    }
  });
}

TEST(ExecuteAtomic, Illegal_combination__is_refused) {
  for_each_type([]<class T>(AtomicType type) {
    for (const AtomicOperation operation : all_operations()) {
      if (is_legal_for<T>(operation)) continue;
      EXPECT_TRUE(touches_nothing(operation, type, 0, AtomicResult::kIllegal)) << name_of(operation, type);
    }
  });
  for (int byte = 0; byte < 256; ++byte) {
    const auto operation = static_cast<AtomicOperation>(byte);
    const auto type = static_cast<AtomicType>(byte);
    if (atomic_index(operation) >= kAtomicOperationCount) {
      EXPECT_TRUE(touches_nothing(operation, AtomicType::kInt32, 0, AtomicResult::kIllegal));
    }
    if (atomic_index(type) >= kAtomicTypeCount) {
      EXPECT_TRUE(touches_nothing(AtomicOperation::kSum, type, 0, AtomicResult::kIllegal));
    }
  }
}

TEST(ExecuteAtomic, No_items__are_done_at_any_address) {
  std::byte* nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{1});
  EXPECT_EQ(execute_atomic({AtomicOperation::kSum, AtomicType::kInt64, nowhere, nullptr, nullptr, nullptr, 0}),
            AtomicResult::kDone);
}

/// One page that may be used, and after it one that may not.
class PageBeforeNothing {
 public:
  PageBeforeNothing() {
    void* pages = mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start_ = static_cast<std::byte*>(pages);
    mprotect(start_ + kPageBytes, kPageBytes, PROT_NONE);
  }
  ~PageBeforeNothing() { munmap(start_, 2 * kPageBytes); }
  PageBeforeNothing(const PageBeforeNothing&) = delete;
  PageBeforeNothing& operator=(const PageBeforeNothing&) = delete;

  std::byte* end() { return start_ + kPageBytes; }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  std::byte* start_;
};

TEST(ExecuteAtomic, Target_that_is_not_mapped__ends_as_a_fault_and_leaves_the_unit_usable) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer executes atomics itself, under a lock of its own that a fault leaves held";
#endif
  install_fault_guard();
  PageBeforeNothing page;
  for (int attempt = 0; attempt < 2; ++attempt) {  // The second one would hang on a lock that was left behind.
    for_each_type([&]<class T>(AtomicType type) {
      const std::vector<Item<T>> sources(2, item_of<T>(T{1}));
      const AtomicRequest request{
          AtomicOperation::kSwap, type, page.end() - sizeof(T), sources[0].data(), nullptr, nullptr, 2};
      std::memset(request.target, 0, sizeof(T));
      EXPECT_EQ(execute_atomic(request), AtomicResult::kFault) << name_of(request.operation, type);
      EXPECT_EQ(std::memcmp(request.target, sources[0].data(), sizeof(T)), 0);  // The item before the bad address.
    });
  }
}

// ---- Floating-point environment ------------------------------------------------------------------------------------

/// Adds 1 and a number far below its last bit: 1 when rounded to nearest.
template <class T>
void expect_rounding_to_nearest(AtomicType type) {
  EXPECT_EQ(once<T>(AtomicOperation::kSum, type, T{1}, std::numeric_limits<T>::epsilon() / 8), T{1});
}

TEST(ExecuteAtomic, Rounding_and_flags_of_the_caller__neither_matter_nor_change) {
  for (const int caller_rounding : {FE_TONEAREST, FE_UPWARD}) {
    std::fesetround(caller_rounding);
    std::feclearexcept(FE_ALL_EXCEPT);
    expect_rounding_to_nearest<float>(AtomicType::kFloat);
    expect_rounding_to_nearest<double>(AtomicType::kDouble);
    expect_rounding_to_nearest<long double>(AtomicType::kLongDouble);
    const int flags = std::fetestexcept(FE_ALL_EXCEPT);
    const int rounding = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(flags, 0);
    EXPECT_EQ(rounding, caller_rounding);
  }
}

TEST(ExecuteAtomic, Traps_of_the_caller__do_not_fire) {
  const std::complex<double> huge(std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const long double largest = std::numeric_limits<long double>::max();
  feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
  once(AtomicOperation::kCswapLe, AtomicType::kDouble, nan, nan, nan);
  once(AtomicOperation::kProd, AtomicType::kDoubleComplex, huge, huge);
  once(AtomicOperation::kProd, AtomicType::kLongDouble, largest, largest);
  EXPECT_EQ(fegetexcept(), FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
  fedisableexcept(FE_ALL_EXCEPT);
}

}  // namespace
}  // namespace portofu
