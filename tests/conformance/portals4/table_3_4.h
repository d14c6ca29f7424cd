// What the atomic operations of table 3-4 give, as C++ computes it.
#pragma once

#include <portals4.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace conformance {

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;

// Table 3-4, the rows PTL_MIN .. PTL_BXOR: the new value of the target; nothing if the combination is illegal.
template <class T>
std::optional<T> combine(ptl_op_t op, T target, T initiator) {
  if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<std::uint64_t>(target);  // Wide and unsigned: C++ defines how it wraps.
    const auto b = static_cast<std::uint64_t>(initiator);
    if (op == PTL_SUM) return static_cast<T>(a + b);
    if (op == PTL_DIFF) return static_cast<T>(a - b);
    if (op == PTL_PROD) return static_cast<T>(a * b);
  } else {
    if (op == PTL_SUM) return target + initiator;
    if (op == PTL_DIFF) return target - initiator;
    if (op == PTL_PROD) return target * initiator;
  }
  if constexpr (!kIsComplex<T>) {
    if (op == PTL_MIN) return std::min(target, initiator);
    if (op == PTL_MAX) return std::max(target, initiator);
  }
  if constexpr (std::is_integral_v<T>) {
    const bool a = target != 0;
    const bool b = initiator != 0;
    if (op == PTL_LOR) return static_cast<T>(a || b);
    if (op == PTL_LAND) return static_cast<T>(a && b);
    if (op == PTL_LXOR) return static_cast<T>(a != b);
    if (op == PTL_BOR) return static_cast<T>(target | initiator);
    if (op == PTL_BAND) return static_cast<T>(target & initiator);
    if (op == PTL_BXOR) return static_cast<T>(target ^ initiator);
  }
  return std::nullopt;
}

// Table 3-4, the rows PTL_SWAP .. PTL_MSWAP.
template <class T>
std::optional<T> exchange(ptl_op_t op, T target, T initiator, T operand) {
  if (op == PTL_SWAP) return initiator;
  if (op == PTL_CSWAP) return operand == target ? initiator : target;
  if (op == PTL_CSWAP_NE) return operand != target ? initiator : target;
  if constexpr (!kIsComplex<T>) {
    if (op == PTL_CSWAP_LE) return operand <= target ? initiator : target;
    if (op == PTL_CSWAP_LT) return operand < target ? initiator : target;
    if (op == PTL_CSWAP_GE) return operand >= target ? initiator : target;
    if (op == PTL_CSWAP_GT) return operand > target ? initiator : target;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == PTL_MSWAP) return static_cast<T>((target & ~operand) | (initiator & operand));
  }
  return std::nullopt;
}

template <class T>
std::vector<T> interesting_values() {
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return {T(Part(1.5), Part(-2)), T(Part(0), Part(0)), T(Part(-3), Part(0.25)), T(Part(1.5), Part(2))};
  } else if constexpr (std::is_integral_v<T>) {
    // No result leaves a signed type; unsigned ones wrap.
    return {static_cast<T>(0), static_cast<T>(1), static_cast<T>(5), static_cast<T>(-7), static_cast<T>(11)};
  } else {
    return {T(0), T(1), T(-2.5), T(1000.125), T(3)};
  }
}

}  // namespace conformance
