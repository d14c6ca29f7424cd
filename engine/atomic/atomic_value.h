#pragma once
// What an operation makes of one item, as plain arithmetic on private copies: no memory, no atomics.
// The meaning of values is said at the head of atomic_unit.h.

#include <array>
#include <cfloat>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "engine/atomic/atomic_unit.h"
#include "engine/atomic/atomic_word.h"

namespace portofu {

namespace atomic_value {

using Operation = AtomicOperation;

/// C++ types of items, in the order of AtomicType.
using Types = std::tuple<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                         std::int64_t, std::uint64_t, float, std::complex<float>, double, std::complex<double>,
                         long double, std::complex<long double>>;
static_assert(std::tuple_size_v<Types> == kAtomicTypeCount);

template <AtomicType kType>
using OfType = std::tuple_element_t<atomic_index(kType), Types>;

/// Bytes of a floating-point number that carry its value; the rest is padding.
template <class Number>
inline constexpr std::size_t kValueBytes = sizeof(Number);
template <>
inline constexpr std::size_t kValueBytes<long double> = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);

/// Reads the value that a word holds.
template <class Value, class Word>
Value value_of(const Word& word) {
  static_assert(sizeof(Value) == sizeof(Word));
  Value value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof value);
  return value;
}

/// Writes a computed value over a word; padding becomes zero.
template <class Value, class Word>
void set_word(Word& word, const Value& value) {
  static_assert(sizeof(Value) == sizeof(Word));
  word = Word{};
  std::memcpy(&word, &value, kValueBytes<Value>);
}

template <class Number, class Word>
void set_word(Word& word, const std::complex<Number>& value) {
  static_assert(sizeof value == sizeof word);
  const Number components[2] = {value.real(), value.imag()};
  word = Word{};
  std::byte* bytes = reinterpret_cast<std::byte*>(&word);
  std::memcpy(bytes, &components[0], kValueBytes<Number>);
  std::memcpy(bytes + sizeof(Number), &components[1], kValueBytes<Number>);
}

/// An integer as its value modulo 2^64, where arithmetic wraps and nothing is promoted to signed; others as they are.
template <class Value>
auto widen(const Value& value) {
  if constexpr (std::is_integral_v<Value>) {
    return static_cast<std::uint64_t>(value);
  } else {
    return value;
  }
}

/// Whether the operation moves the source under a condition, and does not compute.
constexpr bool is_conditional_move(Operation operation) {
  switch (operation) {
    case Operation::kMin:
    case Operation::kMax:
    case Operation::kCswap:
    case Operation::kCswapNe:
    case Operation::kCswapLe:
    case Operation::kCswapLt:
    case Operation::kCswapGe:
    case Operation::kCswapGt: return true;
    default: return false;
  }
}

/// The condition of a conditional move.
template <Operation kOperation, class Value>
bool permits(const Value& target, const Value& source, const Value& operand) {
  if constexpr (kOperation == Operation::kMin) return source < target;
  if constexpr (kOperation == Operation::kMax) return source > target;
  if constexpr (kOperation == Operation::kCswap) return operand == target;
  if constexpr (kOperation == Operation::kCswapNe) return operand != target;
  if constexpr (kOperation == Operation::kCswapLe) return operand <= target;
  if constexpr (kOperation == Operation::kCswapLt) return operand < target;
  if constexpr (kOperation == Operation::kCswapGe) return operand >= target;
  if constexpr (kOperation == Operation::kCswapGt) return operand > target;
}

/// The result of an operation that computes.
template <Operation kOperation, class Value>
Value compute(const Value& target, const Value& source) {
  const auto left = widen(target);
  const auto right = widen(source);
  const decltype(left) zero{};
  if constexpr (kOperation == Operation::kSum) return static_cast<Value>(left + right);
  if constexpr (kOperation == Operation::kDiff) return static_cast<Value>(left - right);
  if constexpr (kOperation == Operation::kProd) return static_cast<Value>(left * right);
  if constexpr (kOperation == Operation::kLor) return static_cast<Value>(left != zero || right != zero);
  if constexpr (kOperation == Operation::kLand) return static_cast<Value>(left != zero && right != zero);
  if constexpr (kOperation == Operation::kLxor) return static_cast<Value>((left != zero) != (right != zero));
  if constexpr (kOperation == Operation::kBor) return static_cast<Value>(left | right);
  if constexpr (kOperation == Operation::kBand) return static_cast<Value>(left & right);
  if constexpr (kOperation == Operation::kBxor) return static_cast<Value>(left ^ right);
}

}  // namespace atomic_value

/// Executes one operation on one item.
/// @param result  set if the answer is true
/// @return true if the target must become `result`, false if it stays as it is
template <AtomicOperation kOperation, class Value, class Word>
bool combine_item(const Word& target, const Word& source, const Word& operand, Word& result) {
  using Operation = AtomicOperation;
  if constexpr (kOperation == Operation::kAtomicRead) {
    return false;
  } else if constexpr (kOperation == Operation::kSwap || kOperation == Operation::kAtomicWrite) {
    result = source;
    return true;
  } else if constexpr (kOperation == Operation::kMswap) {
    result = static_cast<Word>((source & operand) | (target & ~operand));
    return true;
  } else if constexpr (atomic_value::is_conditional_move(kOperation)) {
    result = source;
    return atomic_value::permits<kOperation>(atomic_value::value_of<Value>(target),
                                             atomic_value::value_of<Value>(source),
                                             atomic_value::value_of<Value>(operand));
  } else {
    atomic_value::set_word(result, atomic_value::compute<kOperation>(atomic_value::value_of<Value>(target),
                                                                     atomic_value::value_of<Value>(source)));
    return true;
  }
}

/// Executes one operation on neighbouring items that share a word.
/// @param result  set if the answer is true
/// @return true if an item changes, so that the word must become `result`
template <AtomicOperation kOperation, class Value>
bool combine_group(std::uint64_t target, std::uint64_t source, std::uint64_t operand, std::uint64_t& result) {
  using Item = WordOfBytes<sizeof(Value)>;
  constexpr std::size_t kItemCount = sizeof target / sizeof(Item);
  std::array<Item, kItemCount> targets, sources, operands, results;
  std::memcpy(targets.data(), &target, sizeof target);
  std::memcpy(sources.data(), &source, sizeof source);
  std::memcpy(operands.data(), &operand, sizeof operand);
  bool any = false;
  for (std::size_t at = 0; at < kItemCount; ++at) {
    const bool changes = combine_item<kOperation, Value>(targets[at], sources[at], operands[at], results[at]);
    if (!changes) results[at] = targets[at];
    any |= changes;
  }
  std::memcpy(&result, results.data(), sizeof result);
  return any;
}

}  // namespace portofu
