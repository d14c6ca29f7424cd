// Appends to and removals from a match list; the search stands in match_list.h.

#include "engine/match/match_list.h"

#include <cassert>
#include <new>

namespace portofu {

void MatchList::append(MatchEntry& entry) {
  assert(!entry.is_linked());
  entry.order = next_order_++;
  fifo_append(head_, entry, &MatchEntry::order_links);
  ++size_;
}

void MatchList::remove(MatchEntry& entry) {
  assert(entry.is_linked() && size_ > 0);
  if (last_indexed_ != nullptr && entry.order <= last_indexed_->order) {
    index_->remove(entry);
    if (last_indexed_ == &entry) last_indexed_ = head_ == &entry ? nullptr : entry.order_links.prev;
  }
  fifo_remove(head_, entry, &MatchEntry::order_links);
  --size_;
}

/// Indexes the entries behind `last_indexed_`. False: no memory for an index.
bool MatchList::index_new_entries() {
  if (index_ == nullptr) index_.reset(new (std::nothrow) MatchIndex(limits_));
  if (index_ == nullptr) return false;
  MatchEntry* entry = last_indexed_ != nullptr ? last_indexed_->order_links.next : head_;
  for (; entry != nullptr; entry = entry->order_links.next) {
    index_->add(*entry);
    last_indexed_ = entry;
  }
  return true;
}

void MatchList::clear() {
  while (MatchEntry* entry = head_) {
    head_ = entry->order_links.next;
    entry->order_links = {};
    entry->bucket_links = {};
  }
  last_indexed_ = nullptr;
  size_ = 0;
  index_.reset();
}

}  // namespace portofu
