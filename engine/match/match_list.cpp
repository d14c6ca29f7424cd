// The rare parts of a match list; the others stand in match_list.h.

#include "engine/match/match_list.h"

#include <new>

namespace portofu {

/// Takes an entry out of the index that is about to leave the list.
void MatchList::remove_indexed(MatchEntry& entry) {
  index_->remove(entry);
  if (last_indexed_ == &entry) last_indexed_ = head_ == &entry ? nullptr : entry.order_links.prev;
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
