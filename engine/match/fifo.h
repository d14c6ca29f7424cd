#pragma once
// Intrusive first-in first-out list that is known by its head pointer alone, so that a slot of a hash table can hold
// one. `next` of the last entry is null; `prev` of the first entry is the last entry.

#include <cassert>
#include <functional>

namespace portofu {

/// Links of one entry in one FIFO. Both null while the entry is in none.
template <class Entry>
struct FifoLinks {
  Entry* next = nullptr;  ///< Younger neighbour; null for the last entry.
  Entry* prev = nullptr;  ///< Older neighbour; for the first entry, the last one.
};

/// Appends `entry`, whatever its links held before. `links` names the links: a pointer to member or a function.
template <class Entry, class Links>
void fifo_append(Entry*& head, Entry& entry, Links links) {
  FifoLinks<Entry>& own = std::invoke(links, entry);
  own.next = nullptr;
  if (head == nullptr) {
    own.prev = &entry;
    head = &entry;
    return;
  }
  FifoLinks<Entry>& first = std::invoke(links, *head);
  own.prev = first.prev;
  std::invoke(links, *own.prev).next = &entry;
  first.prev = &entry;
}

/// True for the first and for the last entry: only these are known to the head.
template <class Entry, class Links>
bool fifo_is_at_an_end(Entry& entry, Links links) {
  const FifoLinks<Entry>& own = std::invoke(links, entry);
  return own.next == nullptr || std::invoke(links, *own.prev).next == nullptr;
}

/// Removes an entry that is not at an end, for which no head is needed, and clears its links.
template <class Entry, class Links>
void fifo_remove_between(Entry& entry, Links links) {
  assert(!fifo_is_at_an_end(entry, links));
  FifoLinks<Entry>& own = std::invoke(links, entry);
  std::invoke(links, *own.prev).next = own.next;
  std::invoke(links, *own.next).prev = own.prev;
  own = {};
}

/// Removes `entry`, which is in the FIFO of `head`, and clears its links.
template <class Entry, class Links>
void fifo_remove(Entry*& head, Entry& entry, Links links) {
  FifoLinks<Entry>& own = std::invoke(links, entry);
  assert(own.prev != nullptr);
  if (head == &entry) {
    head = own.next;
    if (head != nullptr) std::invoke(links, *head).prev = own.prev;
  } else {
    std::invoke(links, *own.prev).next = own.next;
    std::invoke(links, own.next != nullptr ? *own.next : *head).prev = own.prev;
  }
  own = {};
}

}  // namespace portofu
