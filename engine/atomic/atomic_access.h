#pragma once
// The ways in which one item of user memory is updated: by one CPU atomic, or piece by piece under a lock. Which way
// serves which item, and what each promises, is said at the head of atomic_unit.h.
//
// A way has one function, `update<kOperation, Value>(target, source, operand)`, which returns the old item. With an
// 8-byte word of smaller items it updates them all, and returns the old ones.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/atomic/atomic_unit.h"
#include "engine/atomic/atomic_value.h"
#include "engine/atomic/atomic_word.h"
#include "engine/queue/assert.h"

namespace portofu {

/// One CPU atomic for each item, or for the smaller items that fill a word: a locked instruction costs the same for 1
/// byte as for 8.
class CpuAccess {
 public:
  template <AtomicOperation kOperation, class Value, class Word>
  static Word update(std::byte* target, const Word& source, const Word& operand) {
    if constexpr (std::is_same_v<Word, Word16>) {
      return update_word16<kOperation, Value>(target, source, operand);
    } else if constexpr (sizeof(Word) > sizeof(Value)) {
      return update_group<kOperation, Value>(target, source, operand);
    } else {
      return update_word<kOperation, Value>(target, source, operand);
    }
  }

 private:
  /// Up to 8 bytes: the CPU's own operation if it has one, else compare-and-swap until nobody was faster.
  template <AtomicOperation kOperation, class Value, class Word>
  static Word update_word(std::byte* target, const Word& source, const Word& operand) {
    using Operation = AtomicOperation;
    constexpr auto kOrder = std::memory_order_acq_rel;
    const std::atomic_ref<Word> word = word_at<Word>(target);
    if constexpr (kOperation == Operation::kSwap || kOperation == Operation::kAtomicWrite) {
      return word.exchange(source, kOrder);
    } else if constexpr (std::is_integral_v<Value> && kOperation == Operation::kSum) {
      return word.fetch_add(source, kOrder);
    } else if constexpr (std::is_integral_v<Value> && kOperation == Operation::kDiff) {
      return word.fetch_sub(source, kOrder);
    } else if constexpr (kOperation == Operation::kBor) {
      return word.fetch_or(source, kOrder);
    } else if constexpr (kOperation == Operation::kBand) {
      return word.fetch_and(source, kOrder);
    } else if constexpr (kOperation == Operation::kBxor) {
      return word.fetch_xor(source, kOrder);
    } else {
      Word old = word.load(std::memory_order_acquire);
      Word result;
      while (combine_item<kOperation, Value>(old, source, operand, result) &&
             !word.compare_exchange_weak(old, result, kOrder, std::memory_order_acquire)) {
      }
      return old;
    }
  }

  /// Several items in one word. Where a bit of the result depends on the same bits of the inputs alone, the word is one
  /// large item.
  template <AtomicOperation kOperation, class Value>
  static std::uint64_t update_group(std::byte* target, std::uint64_t source, std::uint64_t operand) {
    if constexpr (is_bitwise(kOperation)) {
      return update_word<kOperation, std::uint64_t>(target, source, operand);
    } else {
      const std::atomic_ref<std::uint64_t> word = word_at<std::uint64_t>(target);
      std::uint64_t old = word.load(std::memory_order_acquire);
      std::uint64_t result;
      while (combine_group<kOperation, Value>(old, source, operand, result) &&
             !word.compare_exchange_weak(old, result, std::memory_order_acq_rel, std::memory_order_acquire)) {
      }
      return old;
    }
  }

  static constexpr bool is_bitwise(AtomicOperation operation) {
    using Operation = AtomicOperation;
    return operation == Operation::kBor || operation == Operation::kBand || operation == Operation::kBxor ||
           operation == Operation::kSwap || operation == Operation::kMswap || operation == Operation::kAtomicRead ||
           operation == Operation::kAtomicWrite;
  }

  /// 16 bytes: there is no plain load, so that also an item that stays is swapped, for itself.
  template <AtomicOperation kOperation, class Value>
  static Word16 update_word16(std::byte* target, const Word16& source, const Word16& operand) {
    // A guess; if its halves are of different age the swap fails, and brings the true item.
    Word16 old = {load_word<std::uint64_t>(target), load_word<std::uint64_t>(target + 8)};
    Word16 result;
    do {
      if (!combine_item<kOperation, Value>(old, source, operand, result)) result = old;
    } while (!compare_exchange_word16(target, old, result));
    return old;
  }
};

/// Whether update_plain_word knows the operation.
constexpr bool is_plain(AtomicOperation operation) {
  using Operation = AtomicOperation;
  return operation == Operation::kSwap || operation == Operation::kSum || operation == Operation::kBxor ||
         operation == Operation::kBand || operation == Operation::kBor || operation == Operation::kCswap;
}

/// What execute_atomic does to one aligned integer in a peer's heap, which has its memory, without tables and guard.
/// @tparam Word  unsigned; what is_plain does to a signed integer is the same
/// @return the old value
template <class Word>
inline Word update_plain_word(AtomicOperation operation, std::byte* at, Word source, Word operand) {
  switch (operation) {
    case AtomicOperation::kSwap: return CpuAccess::update<AtomicOperation::kSwap, Word>(at, source, operand);
    case AtomicOperation::kSum: return CpuAccess::update<AtomicOperation::kSum, Word>(at, source, operand);
    case AtomicOperation::kBxor: return CpuAccess::update<AtomicOperation::kBxor, Word>(at, source, operand);
    case AtomicOperation::kBand: return CpuAccess::update<AtomicOperation::kBand, Word>(at, source, operand);
    case AtomicOperation::kBor: return CpuAccess::update<AtomicOperation::kBor, Word>(at, source, operand);
    default: break;
  }
  PORTOFU_ASSERT(operation == AtomicOperation::kCswap);
  return CpuAccess::update<AtomicOperation::kCswap, Word>(at, source, operand);
}

/// `Piece` by `Piece`, while the caller holds the lock of execute_atomic.
template <class Piece>
class LockedAccess {
 public:
  template <AtomicOperation kOperation, class Value, class Word>
  static Word update(std::byte* target, const Word& source, const Word& operand) {
    const Word old = load_item<Word>(target);
    Word result;
    if (combine_item<kOperation, Value>(old, source, operand, result)) store_item(target, result);
    return old;
  }

 private:
  template <class Word>
  static Word load_item(std::byte* target) {
    static_assert(sizeof(Word) % sizeof(Piece) == 0);
    std::array<Piece, sizeof(Word) / sizeof(Piece)> pieces;
    for (std::size_t index = 0; index < pieces.size(); ++index) {
      pieces[index] = load_word<Piece>(target + index * sizeof(Piece));
    }
    Word word;
    std::memcpy(&word, pieces.data(), sizeof word);
    return word;
  }

  template <class Word>
  static void store_item(std::byte* target, const Word& word) {
    std::array<Piece, sizeof(Word) / sizeof(Piece)> pieces;
    std::memcpy(pieces.data(), &word, sizeof word);
    for (std::size_t index = 0; index < pieces.size(); ++index) {
      store_word<Piece>(target + index * sizeof(Piece), pieces[index]);
    }
  }
};

}  // namespace portofu
