#pragma once
// Index of a long match list. Entries that ask with the same mask (ignore bits, wildcards) form a class; a class is a
// hash table from the masked key to the FIFO of the entries that want it. An incoming message probes every live class
// and takes the earliest of what it finds, so list order is kept exactly.

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

#include "engine/match/bucket_table.h"
#include "engine/match/match_entry.h"
#include "engine/match/match_limits.h"

namespace portofu {

/// Index value of the entries that found no class.
inline constexpr std::uint8_t kRestClass = kMaxMatchClasses;

/// What a message found in each class, from which its entries are taken in list order.
class MatchCandidates {
 public:
  void add(MatchEntry* entry) { entries_[count_++] = entry; }

  /// Earliest candidate; null when none is left.
  MatchEntry* earliest() {
    if (count_ > 1) return earliest_of_several();
    earliest_index_ = 0;
    return count_ == 1 ? entries_[0] : nullptr;
  }

  /// Replaces what earliest() has returned by the next one of the same bucket, or of the rest, that matches.
  void advance(const MatchKey& key);

 private:
  MatchEntry* earliest_of_several();

  MatchEntry* entries_[kMaxMatchClasses + 1];  ///< One per class that has a match, one for the rest.
  std::uint32_t count_ = 0;                    ///< Valid elements of `entries_`.
  std::uint32_t earliest_index_ = 0;           ///< Set by earliest().
};

/// All entries of one list, by class. A class lives while it has entries. Entries whose mask finds no free class, or
/// whose class gets no memory, go to the rest, which is walked. Used only by the thread on duty.
class MatchIndex {
 public:
  explicit MatchIndex(const MatchLimits& limits) : limits_(limits) { assert(limits.match_classes <= kMaxMatchClasses); }

  /// Adds an entry that is later than all others. O(1) amortised.
  void add(MatchEntry& entry);

  /// Removes an entry. O(1).
  void remove(MatchEntry& entry);

  /// Puts the first matching entry of each class into `candidates`.
  void collect(const MatchKey& key, MatchCandidates& candidates);

 private:
  struct Class {
    MatchMask mask;                   ///< What its entries have in common; meaningless while not live.
    BucketTable<MatchEntry> buckets;  ///< Keeps its memory for the next class in this place.
  };

  std::uint32_t class_for(const MatchMask& mask);
  void collect_rest(const MatchKey& key, MatchCandidates& candidates) const;
  bool add_to_class(std::uint32_t class_index, MatchEntry& entry);
  static MatchEntry** find_bucket(Class& one, std::uint64_t hash, const MaskedKey& key);

  MatchLimits limits_;                           ///< Constant.
  std::uint32_t live_classes_ = 0;               ///< Bit i: classes_[i] has entries.
  std::array<Class, kMaxMatchClasses> classes_;  ///< At most limits_.match_classes are used.
  MatchEntry* rest_ = nullptr;                   ///< FIFO over `bucket_links` of the entries without a class.
};

inline MatchEntry** MatchIndex::find_bucket(Class& one, std::uint64_t hash, const MaskedKey& key) {
  return one.buckets.find(hash, [&](const MatchEntry& head) { return one.mask.apply(head.criteria) == key; });
}

inline void MatchIndex::collect(const MatchKey& key, MatchCandidates& candidates) {
  for (std::uint32_t live = live_classes_; live != 0; live &= live - 1) {
    Class& one = classes_[std::countr_zero(live)];
    const MaskedKey masked = one.mask.apply(key);
    if (MatchEntry** head = find_bucket(one, masked.hash(), masked)) candidates.add(*head);
  }
  if (rest_ != nullptr) collect_rest(key, candidates);
}

}  // namespace portofu
