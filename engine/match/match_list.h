#pragma once
// A priority or overflow list of one portal table entry. `target/match_header` asks it for the entry of an incoming
// message; appends and unlinks of LEs and MEs arrive here too. Structure only: no permission, no events, no memory of
// entries.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/match/match_entry.h"
#include "engine/match/match_index.h"
#include "engine/match/match_limits.h"

namespace portofu {

/// List of entries in the order of their appends. A search walks the first few entries; when that does not decide it,
/// all entries are indexed, and as long as indexed entries are left a search costs one hash probe per class of ignore
/// mask and wildcards in use, whatever the number of entries. Entries that were appended since wait for the next search
/// that needs them, so traffic that always finds the first entry pays for no index. Used only by the thread on duty.
/// @spec Portals 4.3, 2.5 and 3.12
class MatchList {
 public:
  explicit MatchList(const MatchLimits& limits = {}) : limits_(limits) {}
  ~MatchList() { clear(); }
  MatchList(const MatchList&) = delete;
  MatchList& operator=(const MatchList&) = delete;

  /// Appends an entry at the end. O(1), and cannot fail.
  /// @param entry  not in any list; its `criteria` are set and stay as they are while it is linked
  void append(MatchEntry& entry);

  /// Takes an entry out of this list. O(1).
  void remove(MatchEntry& entry);

  /// First entry in list order that matches `key` and that `accepts` takes.
  /// @param accepts  bool(MatchEntry&): false passes over an entry (NO_TRUNCATE, and the message does not fit). Called
  ///                 for matching entries only, perhaps twice for the same one; it must not change the list
  /// @return null when there is none; the entry stays in the list
  template <class Accepts>
  MatchEntry* find(const MatchKey& key, Accepts&& accepts);

  /// Iteration in list order. Take `next` before the entry is removed; other entries may be removed in between.
  MatchEntry* first() const { return head_; }
  static MatchEntry* next(const MatchEntry& entry) { return entry.order_links.next; }

  std::size_t size() const { return size_; }
  bool empty() const { return head_ == nullptr; }

  /// Unlinks all entries, which must still exist, and gives the index's memory back. The destructor does it, too.
  void clear();

 private:
  template <class Accepts>
  MatchEntry* find_behind_first(MatchKey key, Accepts accepts);
  bool index_all();
  bool index_new_entries();
  void remove_indexed(MatchEntry& entry);

  MatchEntry* head_ = nullptr;          ///< First entry in list order; null when empty.
  MatchEntry* last_indexed_ = nullptr;  ///< It and all entries before it are in `index_`; null: none is.
  std::size_t size_ = 0;                ///< Number of entries.
  std::uint64_t next_order_ = 1;        ///< `order` of the next entry; never used twice.
  MatchLimits limits_;                  ///< Constant.
  std::unique_ptr<MatchIndex> index_;   ///< Null until a search needed it; kept, empty, afterwards.
};

inline void MatchList::append(MatchEntry& entry) {
  assert(!entry.is_linked());
  entry.order = next_order_++;
  fifo_append(head_, entry, &MatchEntry::order_links);
  ++size_;
}

inline void MatchList::remove(MatchEntry& entry) {
  assert(entry.is_linked() && size_ > 0);
  if (last_indexed_ != nullptr && entry.order <= last_indexed_->order) [[unlikely]]
    remove_indexed(entry);
  fifo_remove(head_, entry, &MatchEntry::order_links);
  --size_;
}

template <class Accepts>
MatchEntry* MatchList::find(const MatchKey& key, Accepts&& accepts) {
  // Nothing precedes the first entry, and messages often come in order.
  if (head_ == nullptr) return nullptr;
  if (matches(head_->criteria, key) && accepts(*head_)) [[likely]]
    return head_;
  return find_behind_first(key, accepts);
}

/// The rest of `find`, apart, so that the first look needs no room on the stack.
template <class Accepts>
[[gnu::noinline]] MatchEntry* MatchList::find_behind_first(MatchKey key, Accepts accepts) {
  // With an index, no further step is worth its cost.
  MatchEntry* entry = head_->order_links.next;
  for (std::uint32_t left = last_indexed_ != nullptr ? 1 : limits_.walk_entries; entry != nullptr && left > 1; --left) {
    if (matches(entry->criteria, key) && accepts(*entry)) return entry;
    entry = entry->order_links.next;
  }
  if (entry == nullptr) return nullptr;
  if (!index_all()) {
    while (entry != nullptr && !(matches(entry->criteria, key) && accepts(*entry))) entry = entry->order_links.next;
    return entry;
  }
  MatchCandidates candidates;
  index_->collect(key, candidates);
  while (MatchEntry* candidate = candidates.earliest()) {
    if (accepts(*candidate)) return candidate;
    candidates.advance(key);
  }
  return nullptr;
}

/// Indexes what is not yet indexed. False: no memory for an index.
inline bool MatchList::index_all() {
  if (last_indexed_ != nullptr && last_indexed_->order_links.next == nullptr) return true;
  return index_new_entries();
}

}  // namespace portofu
