// Appends to and removals from the index of a long match list. See match_index.h.

#include "engine/match/match_index.h"

#include <cassert>

namespace portofu {

MatchEntry* MatchCandidates::earliest_of_several() {
  earliest_index_ = 0;
  for (std::uint32_t i = 1; i < count_; ++i) {
    if (entries_[i]->order < entries_[earliest_index_]->order) earliest_index_ = i;
  }
  return entries_[earliest_index_];
}

void MatchCandidates::advance(const MatchKey& key) {
  MatchEntry* entry = entries_[earliest_index_]->bucket_links.next;
  while (entry != nullptr && !matches(entry->criteria, key)) entry = entry->bucket_links.next;
  entries_[earliest_index_] = entry != nullptr ? entry : entries_[--count_];
}

void MatchIndex::collect_rest(const MatchKey& key, MatchCandidates& candidates) const {
  for (MatchEntry* entry = rest_; entry != nullptr; entry = entry->bucket_links.next) {
    if (matches(entry->criteria, key)) return candidates.add(entry);
  }
}

void MatchIndex::add(MatchEntry& entry) {
  const std::uint32_t class_index = class_for(MatchMask::of(entry.criteria));
  if (class_index != kRestClass && add_to_class(class_index, entry)) return;
  entry.class_index = kRestClass;
  fifo_append(rest_, entry, &MatchEntry::bucket_links);
}

void MatchIndex::remove(MatchEntry& entry) {
  if (entry.class_index == kRestClass) return fifo_remove(rest_, entry, &MatchEntry::bucket_links);
  if (!fifo_is_at_an_end(entry, &MatchEntry::bucket_links)) {
    return fifo_remove_between(entry, &MatchEntry::bucket_links);
  }
  Class& one = classes_[entry.class_index];
  MatchEntry** head = find_bucket(one, entry.hash, one.mask.apply(entry.criteria));
  assert(head != nullptr);
  fifo_remove(*head, entry, &MatchEntry::bucket_links);
  if (*head != nullptr) return;
  one.buckets.erase(entry.hash, head);
  if (one.buckets.bucket_count() == 0) live_classes_ &= ~(1u << entry.class_index);
}

/// Index of the live class of this mask, else of a free one, which is given the mask; kRestClass when all are taken.
std::uint32_t MatchIndex::class_for(const MatchMask& mask) {
  for (std::uint32_t live = live_classes_; live != 0; live &= live - 1) {
    const auto class_index = static_cast<std::uint32_t>(std::countr_zero(live));
    if (classes_[class_index].mask == mask) return class_index;
  }
  const auto free_index = static_cast<std::uint32_t>(std::countr_one(live_classes_));
  if (free_index >= limits_.match_classes) return kRestClass;
  classes_[free_index].mask = mask;
  return free_index;
}

/// False: no memory for its bucket; nothing has changed. The class is live afterwards if it has a bucket.
bool MatchIndex::add_to_class(std::uint32_t class_index, MatchEntry& entry) {
  Class& one = classes_[class_index];
  const MaskedKey key = one.mask.apply(entry.criteria);
  entry.hash = key.hash();
  MatchEntry** head = find_bucket(one, entry.hash, key);
  if (head == nullptr) {
    const auto hash_of = [](const MatchEntry& first) { return first.hash; };
    if (!one.buckets.make_room(limits_.slots_per_class, hash_of)) return false;
    head = &one.buckets.insert(entry.hash);
    *head = nullptr;
  }
  entry.class_index = static_cast<std::uint8_t>(class_index);
  fifo_append(*head, entry, &MatchEntry::bucket_links);
  live_classes_ |= 1u << class_index;
  return true;
}

}  // namespace portofu
