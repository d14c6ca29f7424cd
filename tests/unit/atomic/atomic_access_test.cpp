// Tests of engine/atomic/atomic_access.h: the atomic unit against the application's own atomics and against itself,
// from several threads. No update is lost, no item is torn.

#include "engine/atomic/atomic_access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <complex>
#include <functional>
#include <thread>
#include <vector>

#include "engine/atomic/atomic_unit.h"

namespace portofu {
namespace {

/// Updates of one thread: long enough that the threads really run at the same time, also on a busy machine.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 40000;
#else
constexpr int kRounds = 300000;
#endif

/// Runs the functions at the same time and waits for all.
void run_together(const std::vector<std::function<void()>>& functions) {
  std::atomic<std::size_t> ready = 0;
  std::vector<std::thread> threads;
  for (const auto& function : functions) {
    threads.emplace_back([&] {
      ready.fetch_add(1);
      while (ready.load() < functions.size()) std::this_thread::yield();
      function();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Executes an atomic on one item and ignores what was there.
template <class T>
void execute(AtomicOperation operation, AtomicType type, std::byte* target, const T& source) {
  const AtomicRequest request{operation, type,    target, reinterpret_cast<const std::byte*>(&source),
                              nullptr,   nullptr, 1};
  ASSERT_EQ(execute_atomic(request), AtomicResult::kDone);
}

template <class T>
T read_item(AtomicType type, std::byte* target) {
  T value;
  std::byte* fetched = reinterpret_cast<std::byte*>(&value);
  EXPECT_EQ(execute_atomic({AtomicOperation::kAtomicRead, type, target, nullptr, fetched, nullptr, 1}),
            AtomicResult::kDone);
  return value;
}

/// What an application does that has a 16-byte compare-and-swap.
template <class T>
void add_by_word16(std::byte* target, const T& addend) {
  Word16 old = {0, 0};
  Word16 desired;
  do {
    T value;
    std::memcpy(static_cast<void*>(&value), &old, sizeof value);
    value += addend;
    desired = {0, 0};
    std::memcpy(&desired, static_cast<const void*>(&value), sizeof value);
    // The first round stores nothing unless the item is 0: `old` is a guess.
  } while (!compare_exchange_word16(target, old, desired));
}

// ---- No update is lost ---------------------------------------------------------------------------------------------

/// Two engines add, one of them by way of the difference, while the application adds with its own atomic.
template <class T>
void expect_sums_to_meet(AtomicType type, const std::function<void(std::byte*)>& add_one) {
  alignas(16) std::byte item[16] = {};
  const T one{1};
  run_together({[&] {
                  for (int round = 0; round < kRounds; ++round) execute(AtomicOperation::kSum, type, item, one);
                },
                [&] {
                  const T minus_one = static_cast<T>(T{} - one);
                  for (int round = 0; round < kRounds; ++round) execute(AtomicOperation::kDiff, type, item, minus_one);
                },
                [&] {
                  for (int round = 0; round < kRounds; ++round) add_one(item);
                }});
  T sum;
  std::memcpy(static_cast<void*>(&sum), item, sizeof sum);
  if constexpr (std::is_integral_v<T>) {
    EXPECT_EQ(sum, static_cast<T>(3 * kRounds));
  } else {
    EXPECT_EQ(sum, T(3 * kRounds));
  }
}

template <class T>
void add_by_atomic_ref(std::byte* target) {
  std::atomic_ref<T>(*reinterpret_cast<T*>(target)).fetch_add(T{1});
}

TEST(CpuAccess, Sums_with_the_application__lose_nothing) {
  expect_sums_to_meet<std::int8_t>(AtomicType::kInt8, add_by_atomic_ref<std::int8_t>);
  expect_sums_to_meet<std::uint8_t>(AtomicType::kUint8, add_by_atomic_ref<std::uint8_t>);
  expect_sums_to_meet<std::int16_t>(AtomicType::kInt16, add_by_atomic_ref<std::int16_t>);
  expect_sums_to_meet<std::uint16_t>(AtomicType::kUint16, add_by_atomic_ref<std::uint16_t>);
  expect_sums_to_meet<std::int32_t>(AtomicType::kInt32, add_by_atomic_ref<std::int32_t>);
  expect_sums_to_meet<std::uint32_t>(AtomicType::kUint32, add_by_atomic_ref<std::uint32_t>);
  expect_sums_to_meet<std::int64_t>(AtomicType::kInt64, add_by_atomic_ref<std::int64_t>);
  expect_sums_to_meet<std::uint64_t>(AtomicType::kUint64, add_by_atomic_ref<std::uint64_t>);
  expect_sums_to_meet<float>(AtomicType::kFloat, add_by_atomic_ref<float>);
  expect_sums_to_meet<double>(AtomicType::kDouble, add_by_atomic_ref<double>);
}

TEST(CpuAccess, Sums_of_16_byte_types_with_the_application__lose_nothing) {
  if (!cpu_has_word16()) GTEST_SKIP() << "this CPU has no 16-byte atomics";
  expect_sums_to_meet<long double>(AtomicType::kLongDouble, [](std::byte* target) { add_by_word16(target, 1.0L); });
  expect_sums_to_meet<std::complex<double>>(AtomicType::kDoubleComplex,
                                            [](std::byte* target) { add_by_word16(target, std::complex<double>(1)); });
}

/// Adds 1 to every item of a vector, round after round.
template <class T>
void add_ones(AtomicType type, std::byte* target, std::size_t item_count, AtomicOperation operation, T one) {
  const std::vector<T> ones(item_count, one);
  for (int round = 0; round < kRounds / 10; ++round) {
    const AtomicRequest request{operation, type,    target,    reinterpret_cast<const std::byte*>(ones.data()),
                                nullptr,   nullptr, item_count};
    ASSERT_EQ(execute_atomic(request), AtomicResult::kDone);
  }
}

/// Two engines add vectors that overlap and begin and end in the middle of 8-byte words, while the application adds to
/// single items of these words. Every item must get what was added to it, and its neighbours outside nothing.
template <class T>
void expect_vectors_to_meet(AtomicType type) {
  constexpr std::size_t kItems = 64 / sizeof(T);
  alignas(64) T items[kItems] = {};
  std::byte* memory = reinterpret_cast<std::byte*>(items);
  const std::size_t last = kItems - 1;
  run_together(
      {[&] { add_ones<T>(type, memory + sizeof(T), kItems - 2, AtomicOperation::kSum, T{1}); },
       [&] { add_ones<T>(type, memory + 3 * sizeof(T), kItems - 4, AtomicOperation::kDiff, static_cast<T>(T{} - 1)); },
       [&] {
         for (int round = 0; round < kRounds / 10; ++round) {
           for (const std::size_t at : {std::size_t{0}, kItems / 2, last}) {
             add_by_atomic_ref<T>(memory + at * sizeof(T));
           }
         }
       }});
  for (std::size_t at = 0; at < kItems; ++at) {
    const int adders = (at >= 1 && at < last) + (at >= 3 && at < last) + (at == 0 || at == kItems / 2 || at == last);
    EXPECT_EQ(items[at], static_cast<T>(adders * (kRounds / 10))) << sizeof(T) << " bytes, item " << at;
  }
}

TEST(CpuAccess, Vectors_of_small_items__lose_nothing_and_stay_in_their_bounds) {
  expect_vectors_to_meet<std::uint8_t>(AtomicType::kUint8);
  expect_vectors_to_meet<std::int16_t>(AtomicType::kInt16);
  expect_vectors_to_meet<std::uint32_t>(AtomicType::kUint32);
  expect_vectors_to_meet<float>(AtomicType::kFloat);
}

TEST(CpuAccess, Conditional_and_masked_swaps__lose_nothing) {
  alignas(8) std::byte item[8] = {};
  // Counts in its half of the item with a masked swap of it; only this thread writes the half.
  const auto count_in_half = [&](std::uint64_t unit, std::uint64_t mask) {
    for (std::uint64_t count = 1; count <= kRounds; ++count) {
      const std::uint64_t source = count * unit;
      EXPECT_EQ(execute_atomic({AtomicOperation::kMswap, AtomicType::kUint64, item,
                                reinterpret_cast<const std::byte*>(&source), nullptr,
                                reinterpret_cast<const std::byte*>(&mask), 1}),
                AtomicResult::kDone);
    }
  };
  // Counts in the middle of the other half with compare-and-swap, against the thread above.
  const auto count_by_cswap = [&](std::uint64_t unit) {
    std::uint64_t operand = 0;
    for (int count = 0; count < kRounds;) {
      const std::uint64_t source = operand + unit;
      std::uint64_t old = 0;
      execute_atomic({AtomicOperation::kCswap, AtomicType::kUint64, item, reinterpret_cast<const std::byte*>(&source),
                      reinterpret_cast<std::byte*>(&old), reinterpret_cast<const std::byte*>(&operand), 1});
      if (old == operand) ++count;
      operand = old;
    }
  };
  run_together({[&] { count_in_half(std::uint64_t{1} << 32, 0xffffffff00000000u); }, [&] { count_by_cswap(1); }});
  const std::uint64_t expected = (std::uint64_t{kRounds} << 32) + kRounds;
  EXPECT_EQ(read_item<std::uint64_t>(AtomicType::kUint64, item), expected);
}

/// Engines of one process add to both components of an item without a CPU atomic, while another one reads it.
template <class T>
void expect_locked_sums_to_meet(AtomicType type, std::byte* item) {
  using Number = typename T::value_type;
  const T one(1, 1);
  const auto add = [&] {
    for (int round = 0; round < kRounds; ++round) execute(AtomicOperation::kSum, type, item, one);
  };
  run_together({add, add, [&] {
                  for (int round = 0; round < kRounds; ++round) {
                    const T seen = read_item<T>(type, item);
                    ASSERT_EQ(seen.real(), seen.imag());
                  }
                }});
  EXPECT_EQ(read_item<T>(type, item), T(Number{2} * kRounds, Number{2} * kRounds));
}

TEST(LockedAccess, Engines_of_one_process__lose_nothing_and_see_whole_items) {
  alignas(64) std::byte memory[3][64] = {};
  expect_locked_sums_to_meet<std::complex<float>>(AtomicType::kFloatComplex, memory[0] + 4);
  expect_locked_sums_to_meet<std::complex<double>>(AtomicType::kDoubleComplex, memory[1] + 8);
  expect_locked_sums_to_meet<std::complex<long double>>(AtomicType::kLongDoubleComplex, memory[2] + 16);
}

// ---- No item is torn -----------------------------------------------------------------------------------------------

/// Engines write items of equal bytes; the application reads pieces that must be whole. `Piece` is what is read and
/// written whole: the item, or its half.
template <class Piece>
void expect_whole_pieces(AtomicType type, std::byte* item, std::size_t piece_count) {
  std::memset(item, 0, piece_count * sizeof(Piece));
  std::atomic<bool> stop = false;
  const auto write = [&](AtomicOperation operation, int first_byte) {
    std::byte source[32];
    for (int round = 0; round < kRounds; ++round) {
      std::memset(source, first_byte + round % 2, sizeof source);
      execute(operation, type, item, source);
    }
    stop = true;
  };
  run_together({[&] { write(AtomicOperation::kAtomicWrite, 1); }, [&] { write(AtomicOperation::kSwap, 3); },
                [&] {
                  while (!stop) {
                    for (std::size_t at = 0; at < piece_count; ++at) {
                      const Piece seen = load_word<Piece>(item + at * sizeof(Piece));
                      Piece whole;
                      std::memset(&whole, *reinterpret_cast<const unsigned char*>(&seen), sizeof whole);
                      ASSERT_EQ(std::memcmp(&whole, &seen, sizeof whole), 0);
                    }
                  }
                }});
}

TEST(CpuAccess, Items__are_never_torn) {
  alignas(64) std::byte memory[64] = {};
  expect_whole_pieces<std::uint16_t>(AtomicType::kInt16, memory, 1);
  expect_whole_pieces<std::uint32_t>(AtomicType::kFloat, memory, 1);
  expect_whole_pieces<std::uint64_t>(AtomicType::kFloatComplex, memory, 1);
  expect_whole_pieces<std::uint64_t>(AtomicType::kDouble, memory, 1);
  if (!cpu_has_word16()) GTEST_SKIP() << "this CPU has no 16-byte atomics";
  expect_whole_pieces<Word16>(AtomicType::kLongDouble, memory, 1);
  expect_whole_pieces<Word16>(AtomicType::kDoubleComplex, memory, 1);
}

TEST(LockedAccess, Halves__are_never_torn) {
  alignas(64) std::byte memory[64] = {};
  expect_whole_pieces<std::uint32_t>(AtomicType::kFloatComplex, memory + 4, 2);
  expect_whole_pieces<std::uint64_t>(AtomicType::kDoubleComplex, memory + 8, 2);
  if (!cpu_has_word16()) GTEST_SKIP() << "this CPU has no 16-byte atomics";
  expect_whole_pieces<Word16>(AtomicType::kLongDoubleComplex, memory + 16, 2);
}

}  // namespace
}  // namespace portofu
