#pragma once
// Index of a long unexpected list. The headers' keys are complete and the searches bring the masks, so each mask that
// is searched for gets a class of its own: a hash table from the masked key to the FIFO of the headers that have it. A
// class holds the headers up to the youngest one of its last search.

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "engine/match/bucket_table.h"
#include "engine/match/match_limits.h"
#include "engine/match/unexpected_entry.h"

namespace portofu {

/// Classes of one unexpected list. A class lives while it holds headers: one that is not used any more drains and makes
/// way for another mask. Used only by the thread on duty.
class UnexpectedIndex {
 public:
  /// Means "no class".
  static constexpr std::uint32_t kNoClass = kMaxUnexpectedClasses;

  explicit UnexpectedIndex(const MatchLimits& limits) : limits_(limits) {
    assert(limits.unexpected_classes <= kMaxUnexpectedClasses);
  }

  /// Live class of this mask, or kNoClass.
  std::uint32_t find_class(const MatchMask& mask);

  /// Gives a class to a mask that has none; it is empty, and live after catch_up(). When all are taken, the one that
  /// was used least recently makes way, provided that searches without class have cost several times what building one
  /// costs; so the index never costs more than a small multiple of walking, however many masks are in use.
  /// @param size  number of headers in the list
  /// @return kNoClass: none to have now; the caller will walk the list
  std::uint32_t start_class(const MatchMask& mask, std::size_t size);

  /// Takes all headers into a class that lack in it. O(1) amortised per header and class.
  /// @param head  earliest header of the list, which is not empty
  /// @return false if there is no memory; the class has ended then
  bool catch_up(std::uint32_t class_index, UnexpectedEntry* head);

  /// Earliest header that matches, by the class of its mask, which has caught up. Null when there is none.
  UnexpectedEntry* find_first(std::uint32_t class_index, const MatchCriteria& criteria);

  /// Removes a header, which is still in the list, from the classes that hold it.
  /// @param head  earliest header of the list
  void remove(UnexpectedEntry& entry, const UnexpectedEntry* head);

 private:
  struct Class {
    MatchMask mask;                        ///< What its searches have in common; meaningless while not live.
    BucketTable<UnexpectedEntry> buckets;  ///< Empty while not live; keeps its memory then.
    UnexpectedEntry* last = nullptr;       ///< The class holds it and all headers before it; null while not live.
    std::uint64_t last_use = 0;            ///< Value of `use_count_` at its last search.
  };

  bool add_to_class(std::uint32_t class_index, UnexpectedEntry& entry);
  void remove_from_class(std::uint32_t class_index, UnexpectedEntry& entry);
  std::uint32_t least_recently_used() const;
  void end_class(std::uint32_t class_index);
  static UnexpectedEntry** find_bucket(Class& one, std::uint64_t hash, const MaskedKey& key);

  MatchLimits limits_;                                ///< Constant.
  std::uint32_t live_classes_ = 0;                    ///< Bit i: classes_[i] holds headers.
  std::uint64_t use_count_ = 0;                       ///< Searches that used a class.
  std::uint64_t walked_headers_ = 0;                  ///< Cost of searches without class since the last replacement.
  std::array<Class, kMaxUnexpectedClasses> classes_;  ///< At most limits_.unexpected_classes are used.
};

}  // namespace portofu
