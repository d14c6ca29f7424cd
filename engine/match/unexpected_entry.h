#pragma once
// The part of an unexpected header that the unexpected list knows. `target/` derives its header from it.

#include <cstdint>

#include "engine/match/fifo.h"
#include "engine/match/match_criteria.h"
#include "engine/match/match_limits.h"

namespace portofu {

/// Base of an unexpected header, behind the base that says what the message was. Of thousands of headers the one that
/// is found lies in no cache, so the fields are in the order in which they are needed: up to the links of the first
/// class they fill a line. Linked by address: neither copied nor moved, and it outlives its stay in a list.
struct alignas(64) UnexpectedEntry {
  UnexpectedEntry() {}  // NOLINT: `class_links` stay as they are, whose lines nobody needs.
  UnexpectedEntry(const UnexpectedEntry&) = delete;
  UnexpectedEntry& operator=(const UnexpectedEntry&) = delete;

  /// True while the header is in a list.
  bool is_linked() const { return arrival_links.prev != nullptr; }

  MatchKey key;                              ///< Set by the owner before append; constant while linked.
  std::uint64_t order = 0;                   ///< Position, set by append: the smaller one arrived earlier.
  FifoLinks<UnexpectedEntry> arrival_links;  ///< Order of arrival. Only UnexpectedList writes it.
  /// Headers of the same bucket in each class of the index; meaningless while a class does not hold it.
  union {
    FifoLinks<UnexpectedEntry> class_links[kMaxUnexpectedClasses];
  };
};

}  // namespace portofu
