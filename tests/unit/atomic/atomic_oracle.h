#pragma once
// A second, slow and plain definition of every atomic, to compare the atomic unit with: one switch for each kind of
// type, no tables, no words, compiler builtins for wrapping. Written from Portals 4.3, 3.15.4, and fi_atomic(3).

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "engine/atomic/atomic_unit.h"

namespace portofu::oracle {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// One item as bytes, so that padding and the sign of NaN are carried along.
template <class T>
using Item = std::array<std::byte, sizeof(T)>;

template <class T>
T value_of(const Item<T>& item) {
  T value;
  std::memcpy(static_cast<void*>(&value), item.data(), sizeof value);
  return value;
}

/// @param padding  what the bytes that carry no value become
template <class T>
Item<T> item_of(const T& value, std::byte padding = std::byte{0}) {
  Item<T> item;
  std::memcpy(item.data(), static_cast<const void*>(&value), sizeof value);
  constexpr std::size_t kNumberBytes = is_complex<T> ? sizeof(T) / 2 : sizeof(T);
  if constexpr (kNumberBytes == 16 && std::numeric_limits<long double>::digits == 64) {
    for (std::size_t at = 0; at < sizeof(T); at += 16) std::fill_n(item.begin() + at + 10, 6, padding);
  }
  return item;
}

/// What becomes of the target.
template <class T>
struct Outcome {
  enum class Kind {
    kIllegal,   ///< There is no such atomic.
    kKept,      ///< It stays, bit by bit.
    kMoved,     ///< It becomes the source, bit by bit.
    kComputed,  ///< It becomes `item`, in which padding is zero.
  };
  Kind kind;
  Item<T> item{};
};

template <class T>
Outcome<T> moved_if(bool condition) {
  return {condition ? Outcome<T>::Kind::kMoved : Outcome<T>::Kind::kKept};
}

template <class T>
Outcome<T> computed(const T& value) {
  return {Outcome<T>::Kind::kComputed, item_of(value)};
}

template <class T>
Outcome<T> apply_integral(AtomicOperation operation, T target, T source, T operand) {
  T wrapped{};
  switch (operation) {
    case AtomicOperation::kMin: return moved_if<T>(source < target);
    case AtomicOperation::kMax: return moved_if<T>(target < source);
    case AtomicOperation::kSum: (void)__builtin_add_overflow(target, source, &wrapped); return computed(wrapped);
    case AtomicOperation::kDiff: (void)__builtin_sub_overflow(target, source, &wrapped); return computed(wrapped);
    case AtomicOperation::kProd: (void)__builtin_mul_overflow(target, source, &wrapped); return computed(wrapped);
    case AtomicOperation::kLor: return computed<T>(target || source ? 1 : 0);
    case AtomicOperation::kLand: return computed<T>(target && source ? 1 : 0);
    case AtomicOperation::kLxor: return computed<T>(!target != !source ? 1 : 0);
    case AtomicOperation::kBor: return computed(static_cast<T>(target | source));
    case AtomicOperation::kBand: return computed(static_cast<T>(target & source));
    case AtomicOperation::kBxor: return computed(static_cast<T>(target ^ source));
    case AtomicOperation::kSwap:
    case AtomicOperation::kAtomicWrite: return moved_if<T>(true);
    case AtomicOperation::kCswap: return moved_if<T>(operand == target);
    case AtomicOperation::kCswapNe: return moved_if<T>(operand != target);
    case AtomicOperation::kCswapLe: return moved_if<T>(operand <= target);
    case AtomicOperation::kCswapLt: return moved_if<T>(operand < target);
    case AtomicOperation::kCswapGe: return moved_if<T>(operand >= target);
    case AtomicOperation::kCswapGt: return moved_if<T>(operand > target);
    case AtomicOperation::kMswap: return computed(static_cast<T>((source & operand) | (target & ~operand)));
    case AtomicOperation::kAtomicRead: return moved_if<T>(false);
  }
  return {Outcome<T>::Kind::kIllegal};
}

template <class T>
Outcome<T> apply_floating(AtomicOperation operation, T target, T source, T operand) {
  const bool target_true = std::fpclassify(target) != FP_ZERO;
  const bool source_true = std::fpclassify(source) != FP_ZERO;
  switch (operation) {
    case AtomicOperation::kMin: return moved_if<T>(std::isless(source, target));
    case AtomicOperation::kMax: return moved_if<T>(std::isgreater(source, target));
    case AtomicOperation::kSum: return computed<T>(target + source);
    case AtomicOperation::kDiff: return computed<T>(target - source);
    case AtomicOperation::kProd: return computed<T>(target * source);
    case AtomicOperation::kLor: return computed<T>(target_true || source_true ? 1 : 0);
    case AtomicOperation::kLand: return computed<T>(target_true && source_true ? 1 : 0);
    case AtomicOperation::kLxor: return computed<T>(target_true != source_true ? 1 : 0);
    case AtomicOperation::kSwap:
    case AtomicOperation::kAtomicWrite: return moved_if<T>(true);
    case AtomicOperation::kCswap: return moved_if<T>(operand == target);
    case AtomicOperation::kCswapNe: return moved_if<T>(!(operand == target));
    case AtomicOperation::kCswapLe: return moved_if<T>(std::islessequal(operand, target));
    case AtomicOperation::kCswapLt: return moved_if<T>(std::isless(operand, target));
    case AtomicOperation::kCswapGe: return moved_if<T>(std::isgreaterequal(operand, target));
    case AtomicOperation::kCswapGt: return moved_if<T>(std::isgreater(operand, target));
    case AtomicOperation::kAtomicRead: return moved_if<T>(false);
    case AtomicOperation::kBor:
    case AtomicOperation::kBand:
    case AtomicOperation::kBxor:
    case AtomicOperation::kMswap: break;
  }
  return {Outcome<T>::Kind::kIllegal};
}

template <class C>
Outcome<C> apply_complex(AtomicOperation operation, const C& target, const C& source, const C& operand) {
  using T = typename C::value_type;
  const T a = target.real(), b = target.imag(), c = source.real(), d = source.imag();
  const bool target_true = std::fpclassify(a) != FP_ZERO || std::fpclassify(b) != FP_ZERO;
  const bool source_true = std::fpclassify(c) != FP_ZERO || std::fpclassify(d) != FP_ZERO;
  const bool equal = operand.real() == a && operand.imag() == b;
  switch (operation) {
    case AtomicOperation::kSum: return computed<C>({a + c, b + d});
    case AtomicOperation::kDiff: return computed<C>({a - c, b - d});
    case AtomicOperation::kProd: return computed<C>({a * c - b * d, a * d + b * c});
    case AtomicOperation::kLor: return computed<C>(target_true || source_true ? 1 : 0);
    case AtomicOperation::kLand: return computed<C>(target_true && source_true ? 1 : 0);
    case AtomicOperation::kLxor: return computed<C>(target_true != source_true ? 1 : 0);
    case AtomicOperation::kSwap:
    case AtomicOperation::kAtomicWrite: return moved_if<C>(true);
    case AtomicOperation::kCswap: return moved_if<C>(equal);
    case AtomicOperation::kCswapNe: return moved_if<C>(!equal);
    case AtomicOperation::kAtomicRead: return moved_if<C>(false);
    default: return {Outcome<C>::Kind::kIllegal};
  }
}

template <class T>
Outcome<T> apply(AtomicOperation operation, const T& target, const T& source, const T& operand) {
  if constexpr (std::is_integral_v<T>) {
    return apply_integral(operation, target, source, operand);
  } else if constexpr (is_complex<T>) {
    return apply_complex(operation, target, source, operand);
  } else {
    return apply_floating(operation, target, source, operand);
  }
}

/// Whether a computed number is as expected: the same bits, or both NaN.
template <class T>
bool same_number(const std::byte* seen, T expected) {
  Item<T> item;
  std::copy_n(seen, sizeof(T), item.begin());
  if (item == item_of<T>(expected)) return true;
  if constexpr (std::is_floating_point_v<T>) return std::isnan(expected) && std::isnan(value_of<T>(item));
  return false;
}

/// Whether the target is what the oracle says.
template <class T>
bool as_expected(const Outcome<T>& outcome, AtomicOperation operation, const Item<T>& old, const Item<T>& source,
                 const Item<T>& seen) {
  if (outcome.kind == Outcome<T>::Kind::kKept) return seen == old;
  if (outcome.kind == Outcome<T>::Kind::kMoved) return seen == source;
  if constexpr (is_complex<T>) {
    using Number = typename T::value_type;
    const T expected = value_of<T>(outcome.item);
    const Number real = expected.real(), imag = expected.imag();
    // C99 annex G turns some NaN products into infinities; the formula above does not.
    if (operation == AtomicOperation::kProd && (std::isnan(real) || std::isnan(imag))) {
      const T product = value_of<T>(seen);
      return !std::isfinite(product.real()) || !std::isfinite(product.imag());
    }
    return same_number<Number>(seen.data(), real) && same_number<Number>(seen.data() + sizeof(Number), imag);
  } else {
    return same_number<T>(seen.data(), value_of<T>(outcome.item));
  }
}

/// Values at which things go wrong.
template <class T>
std::vector<T> edge_values() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) {
    const T middle = static_cast<T>(Limits::max() / 2);
    return {T{0},
            T{1},
            T{2},
            static_cast<T>(-1),
            Limits::min(),
            static_cast<T>(Limits::min() + 1),
            Limits::max(),
            middle,
            static_cast<T>(middle + 1),
            T{0x55},
            static_cast<T>(~T{0x55}),
            T{100},
            T{7}};
  } else if constexpr (is_complex<T>) {
    using Number = typename T::value_type;
    using NumberLimits = std::numeric_limits<Number>;
    const Number numbers[] = {0, -Number{0}, 1, Number{-2.5}, NumberLimits::infinity(), NumberLimits::quiet_NaN()};
    std::vector<T> values;
    for (const Number real : numbers) {
      for (const Number imag : numbers) values.emplace_back(real, imag);
    }
    return values;
  } else {
    return {T{0},
            -T{0},
            T{1},
            T{-1},
            T{1.5},
            T{3},
            Limits::max(),
            Limits::min(),
            Limits::lowest(),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            -Limits::quiet_NaN()};
  }
}

/// Random items: half of them edge values, so that equal ones meet, half of them any bytes.
template <class T>
class RandomItems {
 public:
  explicit RandomItems(std::mt19937_64& random) : random_(random) {}

  Item<T> next() {
    if (random_() % 2 == 0) return item_of<T>(edges_[random_() % edges_.size()], static_cast<std::byte>(random_()));
    Item<T> item;
    for (std::byte& byte : item) byte = static_cast<std::byte>(random_());
    return item;
  }

 private:
  std::mt19937_64& random_;
  std::vector<T> edges_ = edge_values<T>();
};

/// Seed of a random test: PORTOFU_TEST_SEED, or a new one. Printed, so that a failure can be repeated.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("PORTOFU_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::cout << "PORTOFU_TEST_SEED=" << seed << "\n";
  return seed;
}

}  // namespace portofu::oracle
