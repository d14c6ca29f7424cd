// Classes of an unexpected list: their birth, upkeep and end. See unexpected_index.h.

#include "engine/match/unexpected_index.h"

#include <bit>
#include <cassert>

namespace portofu {

namespace {

/// A class may replace another one after walks of this many times the list.
constexpr std::uint64_t kWalksPerReplacement = 8;

/// Names the links of one class.
struct ClassLinks {
  std::uint32_t class_index;  ///< Which of them.
  FifoLinks<UnexpectedEntry>& operator()(UnexpectedEntry& entry) const { return entry.class_links[class_index]; }
};

/// The header that is found is in no cache: whoever looks at it asks for the message before it at the same time.
void prefetch_header(const UnexpectedEntry& entry) { __builtin_prefetch(reinterpret_cast<const char*>(&entry) - 64); }

}  // namespace

UnexpectedEntry** UnexpectedIndex::find_bucket(Class& one, std::uint64_t hash, const MaskedKey& key) {
  return one.buckets.find(hash, [&](const UnexpectedEntry& head) {
    prefetch_header(head);
    return one.mask.apply(head.key) == key;
  });
}

std::uint32_t UnexpectedIndex::find_class(const MatchMask& mask) {
  for (std::uint32_t live = live_classes_; live != 0; live &= live - 1) {
    const auto class_index = static_cast<std::uint32_t>(std::countr_zero(live));
    if (classes_[class_index].mask != mask) continue;
    classes_[class_index].last_use = ++use_count_;
    return class_index;
  }
  return kNoClass;
}

std::uint32_t UnexpectedIndex::start_class(const MatchMask& mask, std::size_t size) {
  auto class_index = static_cast<std::uint32_t>(std::countr_one(live_classes_));
  if (class_index >= limits_.unexpected_classes) {
    walked_headers_ += size;
    if (limits_.unexpected_classes == 0 || walked_headers_ <= kWalksPerReplacement * size) return kNoClass;
    walked_headers_ = 0;
    class_index = least_recently_used();
    end_class(class_index);
  }
  classes_[class_index].mask = mask;
  classes_[class_index].last_use = ++use_count_;
  return class_index;
}

/// All classes are live.
std::uint32_t UnexpectedIndex::least_recently_used() const {
  std::uint32_t oldest = 0;
  for (std::uint32_t i = 1; i < limits_.unexpected_classes; ++i) {
    if (classes_[i].last_use < classes_[oldest].last_use) oldest = i;
  }
  return oldest;
}

bool UnexpectedIndex::catch_up(std::uint32_t class_index, UnexpectedEntry* head) {
  Class& one = classes_[class_index];
  UnexpectedEntry* entry = one.last != nullptr ? one.last->arrival_links.next : head;
  live_classes_ |= 1u << class_index;
  for (; entry != nullptr; entry = entry->arrival_links.next) {
    if (!add_to_class(class_index, *entry)) {
      end_class(class_index);
      return false;
    }
    one.last = entry;
  }
  return true;
}

void UnexpectedIndex::remove(UnexpectedEntry& entry, const UnexpectedEntry* head) {
  for (std::uint32_t live = live_classes_; live != 0; live &= live - 1) {
    const auto class_index = static_cast<std::uint32_t>(std::countr_zero(live));
    Class& one = classes_[class_index];
    if (entry.order > one.last->order) continue;
    remove_from_class(class_index, entry);
    if (one.last == &entry) one.last = head == &entry ? nullptr : entry.arrival_links.prev;
    if (one.last == nullptr) live_classes_ &= ~(1u << class_index);
  }
}

/// False: no memory for its bucket; nothing has changed.
bool UnexpectedIndex::add_to_class(std::uint32_t class_index, UnexpectedEntry& entry) {
  Class& one = classes_[class_index];
  const MaskedKey key = one.mask.apply(entry.key);
  const std::uint64_t hash = key.hash();
  UnexpectedEntry** head = find_bucket(one, hash, key);
  if (head == nullptr) {
    const auto hash_of = [&](const UnexpectedEntry& first) { return one.mask.apply(first.key).hash(); };
    if (!one.buckets.make_room(limits_.slots_per_class, hash_of)) return false;
    head = &one.buckets.insert(hash);
    *head = nullptr;
  }
  fifo_append(*head, entry, ClassLinks{class_index});
  return true;
}

void UnexpectedIndex::remove_from_class(std::uint32_t class_index, UnexpectedEntry& entry) {
  const ClassLinks links{class_index};
  if (!fifo_is_at_an_end(entry, links)) return fifo_remove_between(entry, links);
  Class& one = classes_[class_index];
  const MaskedKey key = one.mask.apply(entry.key);
  const std::uint64_t hash = key.hash();
  UnexpectedEntry** head = find_bucket(one, hash, key);
  assert(head != nullptr);
  fifo_remove(*head, entry, links);
  if (*head == nullptr) one.buckets.erase(hash, head);
}

UnexpectedEntry* UnexpectedIndex::find_first(std::uint32_t class_index, const MatchCriteria& criteria) {
  Class& one = classes_[class_index];
  const MaskedKey key = one.mask.apply(criteria);
  UnexpectedEntry** head = find_bucket(one, key.hash(), key);
  return head != nullptr ? *head : nullptr;
}

/// Ends a class, whether it holds headers or not. Their links in it stay as they are and mean nothing.
void UnexpectedIndex::end_class(std::uint32_t class_index) {
  classes_[class_index].buckets.clear();
  classes_[class_index].last = nullptr;
  live_classes_ &= ~(1u << class_index);
}

}  // namespace portofu
