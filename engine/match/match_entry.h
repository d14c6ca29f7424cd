#pragma once
// The part of an LE or ME that the match lists know. `target/` derives its list entry from it.

#include <cstddef>
#include <cstdint>

#include "engine/match/fifo.h"
#include "engine/match/match_criteria.h"

namespace portofu {

/// Base of a list entry. It is linked by address: neither copied nor moved, and it outlives its stay in a list. A
/// derived class starts its own fields in the second cache line.
struct alignas(64) MatchEntry {
  MatchEntry() = default;
  MatchEntry(const MatchEntry&) = delete;
  MatchEntry& operator=(const MatchEntry&) = delete;

  /// True while the entry is in a list.
  bool is_linked() const { return order_links.prev != nullptr; }

  // First cache line: all that finding an entry reads.
  MatchCriteria criteria;             ///< Set by the owner before append; constant while linked.
  std::uint64_t order = 0;            ///< Position in the list, set by append: the smaller one was appended earlier.
  FifoLinks<MatchEntry> order_links;  ///< List order. Only MatchList writes it.
  std::uint64_t hash = 0;             ///< Hash of the masked criteria while in a bucket. Only MatchIndex uses it.

  // Second cache line: read when the entry is removed, or passed over.
  FifoLinks<MatchEntry> bucket_links;  ///< Entries of the same bucket, or of the rest. Only MatchIndex writes it.
  std::uint8_t class_index = 0;        ///< Class whose bucket holds it, or kRestClass. Only MatchIndex uses it.
};

static_assert(offsetof(MatchEntry, bucket_links) == 64, "what a search reads stays in one cache line");

}  // namespace portofu
