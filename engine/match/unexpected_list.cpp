// Appends to, removals from and searches of an unexpected list. See unexpected_list.h.

#include "engine/match/unexpected_list.h"

#include <cassert>
#include <new>

namespace portofu {

namespace {

constexpr std::uint32_t kNoClass = UnexpectedIndex::kNoClass;

}  // namespace

void UnexpectedList::append(UnexpectedEntry& entry) {
  assert(!entry.is_linked());
  entry.order = next_order_++;
  fifo_append(head_, entry, &UnexpectedEntry::arrival_links);
  ++size_;
}

void UnexpectedList::remove(UnexpectedEntry& entry) {
  assert(entry.is_linked() && size_ > 0);
  if (index_ != nullptr) index_->remove(entry, head_);
  fifo_remove(head_, entry, &UnexpectedEntry::arrival_links);
  --size_;
}

UnexpectedEntry* UnexpectedList::find_first(const MatchCriteria& criteria) {
  UnexpectedEntry* found = search(criteria, head_, nullptr);
  if (found == nullptr) return nullptr;
  // Its removal will write to both.
  __builtin_prefetch(found->arrival_links.prev, 1);
  __builtin_prefetch(found->arrival_links.next, 1);
  return found;
}

UnexpectedEntry* UnexpectedList::find_next(const MatchCriteria& criteria, const UnexpectedEntry& after) {
  assert(after.is_linked() && matches(criteria, after.key));
  return search(criteria, after.arrival_links.next, &after);
}

/// Earliest match from `position` on. `after` is the match before `position`; null when `position` is the head.
UnexpectedEntry* UnexpectedList::search(const MatchCriteria& criteria, UnexpectedEntry* position,
                                        const UnexpectedEntry* after) {
  const MatchMask mask = MatchMask::of(criteria);
  std::uint32_t class_index = index_ != nullptr ? index_->find_class(mask) : kNoClass;
  // With a class, one step is worth its cost: headers are often asked for in the order of their arrival.
  for (std::uint32_t left = class_index != kNoClass ? 1 : limits_.walk_entries; position != nullptr && left > 0;
       --left) {
    if (matches(criteria, position->key)) return position;
    position = position->arrival_links.next;
  }
  if (position == nullptr) return nullptr;
  class_index = index_for(mask, class_index);
  if (class_index == kNoClass) {
    while (position != nullptr && !matches(criteria, position->key)) position = position->arrival_links.next;
    return position;
  }
  return after != nullptr ? after->class_links[class_index].next : index_->find_first(class_index, criteria);
}

/// The class of this mask, with all headers in it, or kNoClass when there is none to have.
/// @param class_index  its class if it is live, else kNoClass
std::uint32_t UnexpectedList::index_for(const MatchMask& mask, std::uint32_t class_index) {
  if (index_ == nullptr) index_.reset(new (std::nothrow) UnexpectedIndex(limits_));
  if (index_ == nullptr) return kNoClass;
  if (class_index == kNoClass) class_index = index_->start_class(mask, size_);
  if (class_index == kNoClass || !index_->catch_up(class_index, head_)) return kNoClass;
  return class_index;
}

void UnexpectedList::clear() {
  while (UnexpectedEntry* entry = head_) {
    head_ = entry->arrival_links.next;
    entry->arrival_links = {};
  }
  size_ = 0;
  index_.reset();
}

}  // namespace portofu
