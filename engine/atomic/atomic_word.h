#pragma once
// Memory as the CPU's atomics see it: words of 1, 2, 4, 8 and 16 bytes that are loaded, stored, and compared and
// swapped whole. Values in the words are the business of atomic_value.h.
//
// Orders: a write is a release and a read an acquire. Partner: whoever else uses the same item, another engine or the
// application's own atomics.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace portofu {

/// 16 bytes that are compared bit by bit.
struct alignas(16) Word16 {
  std::uint64_t low;
  std::uint64_t high;
};

/// 32 bytes; more than any CPU swaps.
struct alignas(16) Word32 {
  Word16 halves[2];
};

/// The word that holds a value of this many bytes.
template <std::size_t kBytes>
using WordOfBytes =
    std::tuple_element_t<std::bit_width(kBytes) - 1,
                         std::tuple<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, Word16, Word32>>;

/// Whether this CPU has the functions below for Word16. If not, they must not be called.
bool cpu_has_word16();

template <class Word>
bool is_aligned_for(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(Word) == 0;
}

/// A word of user memory, at its natural alignment.
template <class Word>
std::atomic_ref<Word> word_at(std::byte* address) {
  static_assert(std::is_unsigned_v<Word> && std::atomic_ref<Word>::is_always_lock_free);
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(address));
}

/// Writes `desired` if the word is `expected`; else sets `expected` to the word. Memory must be writable in both cases.
inline bool compare_exchange_word16(std::byte* address, Word16& expected, const Word16& desired) {
#if defined(__x86_64__)
  // Inline, because the builtin needs a compiler flag, and goes through a lock of its own under ThreadSanitizer.
  bool swapped;
  __asm__ __volatile__("lock cmpxchg16b %1"
                       : "=@ccz"(swapped), "+m"(*reinterpret_cast<Word16*>(address)), "+a"(expected.low),
                         "+d"(expected.high)
                       : "b"(desired.low), "c"(desired.high)
                       : "memory");
  return swapped;
#else
  (void)address, (void)expected, (void)desired;
  __builtin_trap();
#endif
}

/// Reads a word of user memory whole.
template <class Word>
Word load_word(std::byte* address) {
  if constexpr (std::is_same_v<Word, Word16>) {
    Word16 seen = {0, 0};
    compare_exchange_word16(address, seen, seen);  // Either way `seen` is what the memory holds.
    return seen;
  } else {
    return word_at<Word>(address).load(std::memory_order_acquire);
  }
}

/// Writes a word of user memory whole.
template <class Word>
void store_word(std::byte* address, const Word& word) {
  if constexpr (std::is_same_v<Word, Word16>) {
    Word16 seen = {0, 0};
    while (!compare_exchange_word16(address, seen, word)) {  // Ends: somebody else's swap made progress.
    }
  } else {
    word_at<Word>(address).store(word, std::memory_order_release);
  }
}

}  // namespace portofu
