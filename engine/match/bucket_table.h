#pragma once
// Hash table of one class: from the hash of a masked key to the FIFO of the entries that have this key. The tags of a
// class stay in the nearest caches, so a probe that finds nothing is cheap, whatever the size of the class.

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "engine/match/tag_group.h"

namespace portofu {

/// Slots with heads of FIFOs. Knows nothing of keys: whoever searches brings the test. Owns slots, not entries.
template <class Entry>
class BucketTable {
 public:
  /// Head of the bucket with this hash for whose first entry `is_same` is true; null when there is none.
  template <class IsSame>
  Entry** find(std::uint64_t hash, IsSame&& is_same);

  /// Makes room for one more bucket. False: no memory, or the table would exceed `most_slots`; the table is unchanged.
  template <class HashOf>
  bool make_room(std::uint64_t most_slots, HashOf&& hash_of);

  /// A new bucket for a key that is not in the table. make_room() has said yes; the caller sets the head at once.
  Entry*& insert(std::uint64_t hash);

  /// Takes out a bucket whose last entry has gone. `head` is what find() or insert() returned for `hash`.
  void erase(std::uint64_t hash, Entry** head);

  std::size_t bucket_count() const { return bucket_count_; }
  std::size_t slot_count() const { return groups_ == nullptr ? 0 : (group_mask_ + 1) * kGroupSlots; }

  /// Forgets all buckets and gives the memory back.
  void clear() { *this = BucketTable(); }

 private:
  static constexpr std::size_t kFirstGroupCount = 4;   ///< A power of two.
  static constexpr std::size_t kBucketsPerGroup = 10;  ///< Mean number above which the table grows; few overflow.
  static constexpr std::size_t kGroupStride = 16;      ///< Elements of `heads_` for each group; the last one is unused.

  static std::uint8_t tag_of(std::uint64_t hash) {
    const auto tag = static_cast<std::uint8_t>(hash >> 56);
    return tag != 0 ? tag : 1;
  }
  template <class IsSame>
  Entry** find_in_group(std::size_t group_index, std::uint8_t tag, IsSame&& is_same);
  template <class IsSame>
  Entry** find_beyond(std::size_t home, std::uint8_t tag, IsSame&& is_same);
  template <class HashOf>
  bool rehash(std::size_t group_count, HashOf&& hash_of);

  std::unique_ptr<TagGroup[]> groups_;  ///< Null until the first bucket.
  std::unique_ptr<Entry*[]> heads_;     ///< Heads of the buckets; valid where the tag is not 0.
  std::size_t group_mask_ = 0;          ///< Number of groups - 1; a power of two - 1.
  std::size_t bucket_count_ = 0;        ///< Slots that are not free.
};

template <class Entry>
template <class IsSame>
inline Entry** BucketTable<Entry>::find(std::uint64_t hash, IsSame&& is_same) {
  if (groups_ == nullptr) return nullptr;
  const std::size_t home = hash & group_mask_;
  if (Entry** head = find_in_group(home, tag_of(hash), is_same)) return head;
  return groups_[home].overflow == 0 ? nullptr : find_beyond(home, tag_of(hash), is_same);
}

template <class Entry>
template <class IsSame>
inline Entry** BucketTable<Entry>::find_in_group(std::size_t group_index, std::uint8_t tag, IsSame&& is_same) {
  for (std::uint32_t slots = groups_[group_index].slots_with(tag); slots != 0; slots &= slots - 1) {
    Entry** head = &heads_[group_index * kGroupStride + static_cast<std::uint32_t>(std::countr_zero(slots))];
    if (is_same(**head)) return head;
  }
  return nullptr;
}

/// Goes on behind the home group: rare, so it stays out of the way of the compiler.
template <class Entry>
template <class IsSame>
[[gnu::noinline]] Entry** BucketTable<Entry>::find_beyond(std::size_t home, std::uint8_t tag, IsSame&& is_same) {
  for (std::size_t probe = 1; probe <= group_mask_; ++probe) {
    const std::size_t group_index = (home + probe) & group_mask_;
    if (Entry** head = find_in_group(group_index, tag, is_same)) return head;
    if (groups_[group_index].overflow == 0) return nullptr;
  }
  return nullptr;
}

template <class Entry>
template <class HashOf>
bool BucketTable<Entry>::make_room(std::uint64_t most_slots, HashOf&& hash_of) {
  const std::size_t group_count = groups_ == nullptr ? 0 : group_mask_ + 1;
  if (bucket_count_ < group_count * kBucketsPerGroup) return true;
  const std::size_t new_count = group_count == 0 ? kFirstGroupCount : 2 * group_count;
  return new_count * kGroupSlots <= most_slots && rehash(new_count, hash_of);
}

template <class Entry>
Entry*& BucketTable<Entry>::insert(std::uint64_t hash) {
  assert(bucket_count_ < slot_count());
  ++bucket_count_;
  for (std::size_t group_index = hash & group_mask_;; group_index = (group_index + 1) & group_mask_) {
    TagGroup& group = groups_[group_index];
    if (const std::uint32_t slots = group.slots_with(0); slots != 0) {  // Some group has a free slot: see make_room.
      const auto slot = static_cast<std::size_t>(std::countr_zero(slots));
      group.tags[slot] = tag_of(hash);
      return heads_[group_index * kGroupStride + slot];
    }
    group.count_passing();
  }
}

template <class Entry>
void BucketTable<Entry>::erase(std::uint64_t hash, Entry** head) {
  assert(bucket_count_ > 0);
  --bucket_count_;
  const auto position = static_cast<std::size_t>(head - heads_.get());
  const std::size_t home = position / kGroupStride;
  groups_[home].tags[position % kGroupStride] = 0;
  for (std::size_t i = hash & group_mask_; i != home; i = (i + 1) & group_mask_) groups_[i].count_passing_back();
}

template <class Entry>
template <class HashOf>
bool BucketTable<Entry>::rehash(std::size_t group_count, HashOf&& hash_of) {
  BucketTable larger;
  larger.groups_.reset(new (std::nothrow) TagGroup[group_count]);
  larger.heads_.reset(new (std::nothrow) Entry*[group_count * kGroupStride]);
  if (larger.groups_ == nullptr || larger.heads_ == nullptr) return false;
  larger.group_mask_ = group_count - 1;
  for (std::size_t i = 0; groups_ != nullptr && i <= group_mask_; ++i) {
    for (std::size_t slot = 0; slot < kGroupSlots; ++slot) {
      if (groups_[i].tags[slot] == 0) continue;
      Entry* head = heads_[i * kGroupStride + slot];
      larger.insert(hash_of(*head)) = head;
    }
  }
  *this = std::move(larger);
  return true;
}

}  // namespace portofu
