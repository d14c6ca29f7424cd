#pragma once
// The unexpected list of one portal table entry: headers of messages that went into the overflow list.
// `target/complete` appends them; appends and searches of LEs and MEs look for them. Structure only, like match_list.h.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/match/fifo.h"
#include "engine/match/match_criteria.h"
#include "engine/match/match_limits.h"
#include "engine/match/unexpected_index.h"

namespace portofu {

/// List of headers in the order of arrival. A search walks the first few headers; when that does not decide it, all
/// headers are indexed for the mask of the search. As long as headers of that index are left, a search with that mask
/// costs one hash probe, after it has indexed what arrived since the last one. Used only by the thread on duty.
/// @spec Portals 4.3, 2.5 and 3.12.2
class UnexpectedList {
 public:
  explicit UnexpectedList(const MatchLimits& limits = {}) : limits_(limits) {}
  ~UnexpectedList() { clear(); }
  UnexpectedList(const UnexpectedList&) = delete;
  UnexpectedList& operator=(const UnexpectedList&) = delete;

  /// Appends a header. O(1), and cannot fail.
  /// @param entry  not in any list; its `key` is set and stays as it is while it is linked
  void append(UnexpectedEntry& entry);

  /// Takes a header out of this list. O(masks in use), at most kMaxUnexpectedClasses.
  void remove(UnexpectedEntry& entry);

  /// Earliest header that matches; null when there is none.
  UnexpectedEntry* find_first(const MatchCriteria& criteria);

  /// Next later header that matches. To visit all: take the next one *before* `after` is removed, as in
  ///   for (entry = find_first(c); entry; entry = following) { following = find_next(c, *entry); ...remove(*entry)... }
  /// Between the calls headers may be appended, and any but `following` may be removed.
  /// @param criteria  as given to the find_first or find_next that returned `after`
  /// @param after     in this list, and matches `criteria`
  UnexpectedEntry* find_next(const MatchCriteria& criteria, const UnexpectedEntry& after);

  /// Iteration in order of arrival, with the same rule as find_next.
  UnexpectedEntry* first() const { return head_; }
  static UnexpectedEntry* next(const UnexpectedEntry& entry) { return entry.arrival_links.next; }

  std::size_t size() const { return size_; }
  bool empty() const { return head_ == nullptr; }

  /// Unlinks all headers, which must still exist, and gives the index's memory back. The destructor does it, too.
  void clear();

 private:
  UnexpectedEntry* search(const MatchCriteria& criteria, UnexpectedEntry* position, const UnexpectedEntry* after);
  std::uint32_t index_for(const MatchMask& mask, std::uint32_t class_index);

  UnexpectedEntry* head_ = nullptr;         ///< Earliest header; null when empty.
  std::size_t size_ = 0;                    ///< Number of headers.
  std::uint64_t next_order_ = 1;            ///< `order` of the next header; never used twice.
  MatchLimits limits_;                      ///< Constant.
  std::unique_ptr<UnexpectedIndex> index_;  ///< Null until a search needed it; kept afterwards.
};

}  // namespace portofu
