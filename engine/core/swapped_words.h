#pragma once
// Words of this process that others compare and swap, as they do with locks, written down for onlookers
// (engine/inspect), who see who tries in vain, and who has changed the word last. Of requests only that come in
// packets: what an initiator does in memory that both sides map is not known here. Nothing of the engine reads it.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/topology/process_id.h"

namespace portofu {

/// A word as requests name it.
struct SwappedWord {
  std::uint64_t offset = 0;  ///< Into the entry; uTofu: STADD.
  std::uint64_t bits = 0;    ///< Match bits of the request; uTofu: ID of the VCQ.
  std::uint16_t pt_index = 0;
  std::uint8_t interface_index = 0;
  bool operator==(const SwappedWord&) const = default;
};

/// What one initiator has done with a word.
struct WordUse {
  SwappedWord word;
  ProcessId initiator{};       ///< {0, 0}: the place is empty.
  std::uint64_t vain = 0;      ///< Swaps since it has changed the word last, all of which found another value.
  std::uint64_t since_ns = 0;  ///< Time of the first of them.
  std::uint64_t changed = 0;   ///< Its last change was that many changes after the first of this process; 0: none.
};

/// The last few of them. Changed on duty.
class SwappedWords {
 public:
  /// A compare-and-swap.
  /// @param now  gives the time, and is asked rarely
  template <class Now>
  void swaps(const SwappedWord& word, ProcessId initiator, bool took, Now&& now) {
    WordUse* use = find(word, initiator);
    if (use == nullptr) {
      const std::size_t place = next_++ % kPlaces;
      marks_[place] = mark_of(word, initiator);
      use = &places_[place];
      *use = {word, initiator};
    }
    if (took) return change(*use);
    if (use->vain++ == 0) use->since_ns = now();
  }

  /// Another atomic operation, which may give the lock back.
  void changes(const SwappedWord& word, ProcessId initiator) {
    if (next_ == 0) return;
    if (WordUse* const use = find(word, initiator)) change(*use);
  }

  static constexpr std::size_t kPlaces = 16;
  const std::array<WordUse, kPlaces>& places() const { return places_; }

 private:
  /// A byte of whom the place is of. Nearly always it tells which place may be meant, and all are compared at once.
  static std::uint8_t mark_of(const SwappedWord& word, ProcessId initiator) {
    const std::uint64_t names = word.offset ^ word.bits ^ process_key(initiator);
    return static_cast<std::uint8_t>(names * 0x9e3779b97f4a7c15 >> 56);
  }

  WordUse* find(const SwappedWord& word, ProcessId initiator) {
    const std::uint8_t mark = mark_of(word, initiator);
    std::array<std::uint8_t, kPlaces> alike;
    std::ranges::transform(marks_, alike.begin(), [mark](std::uint8_t other) { return other == mark ? 1 : 0; });
    const auto halves = std::bit_cast<std::array<std::uint64_t, kPlaces / 8>>(alike);
    for (std::size_t half = 0; half < halves.size(); ++half) {
      for (std::uint64_t left = halves[half]; left != 0; left &= left - 1) {
        WordUse& use = places_[8 * half + static_cast<std::size_t>(std::countr_zero(left)) / 8];
        if (use.word == word && use.initiator == initiator) return &use;
      }
    }
    return nullptr;
  }
  void change(WordUse& use) {
    use.vain = 0;
    use.changed = ++changes_;
  }

  std::array<WordUse, kPlaces> places_{};
  std::array<std::uint8_t, kPlaces> marks_{};  ///< mark_of each place.
  std::size_t next_ = 0;                       ///< Place that is taken next, modulo their number.
  std::uint64_t changes_ = 0;
};

}  // namespace portofu
