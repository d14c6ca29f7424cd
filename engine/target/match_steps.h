#pragma once
// The parts of step 6 that hold for every message, whether it needs the state of an Arrival or not. `type` is that of
// the header, apart because callers often know it when they are compiled.
// @spec Portals 4.3, 2.5, 3.12

#include <algorithm>

#include "engine/atomic/atomic_unit.h"
#include "engine/core/core.h"

namespace portofu {

inline std::uint64_t offset_in(const ListEntry& entry, const PacketHeader& header) {
  return (entry.options & kEntryManageLocal) != 0 ? entry.local_offset : header.remote_offset - entry.origin;
}

/// PTL_ME_NO_TRUNCATE: a message that does not fit does not match; one of zero bytes always fits.
inline bool accepts(const ListEntry& entry, const PacketHeader& header) {
  if ((entry.options & kEntryNoTruncate) == 0 || header.length == 0) return true;
  return entry.segment.fits(offset_in(entry, header), header.length);
}

/// Bytes that are moved: what fits, for an atomic in whole items.
/// @param type  of the header
inline std::uint64_t manipulated_length(const ListEntry& entry, std::uint64_t offset, const PacketHeader& header,
                                        PacketType type) {
  const std::uint64_t room = offset < entry.segment.length() ? entry.segment.length() - offset : 0;
  const std::uint64_t length = std::min(room, header.length);
  if (type == PacketType::kPut || type == PacketType::kGet) return length;
  const std::uint32_t item = atomic_type_bytes(static_cast<AtomicType>(header.atomic_type));
  return length - length % item;
}

/// Whether a fetching atomic is the one that changes nothing. @spec fi_atomic(3), FI_ATOMIC_READ
inline bool only_reads(const PacketHeader& header) {
  return static_cast<AtomicOperation>(header.atomic_operation) == AtomicOperation::kAtomicRead;
}

/// The first entry of the list that takes a message; nullptr if none does.
/// @param initiator  as matching sees it
inline ListEntry* find_entry(MatchList& list, const Interface& ni, const PacketHeader& header, ProcessId initiator) {
  if (list.empty()) return nullptr;
  // A non-matching interface takes the first entry, whatever comes (2.5.1).
  if (!ni.is_matching()) return static_cast<ListEntry*>(list.first());
  MatchEntry* found = list.find({header.match_bits, initiator}, [&header](MatchEntry& entry) {
    return accepts(static_cast<ListEntry&>(entry), header);
  });
  return static_cast<ListEntry*>(found);
}

/// Whether the entry unlinks when so much more is in it: use once, min_free.
inline bool unlinks_by(const ListEntry& entry, std::uint64_t mlength) {
  if ((entry.options & kEntryUseOnce) != 0) return true;
  if ((entry.options & kEntryManageLocal) == 0) return false;
  return entry.segment.length() - (entry.local_offset + mlength) < entry.min_free;
}

/// Full events of its own that the message may raise at the target. A failure is told although successes are not, and
/// shows when it is too late to refuse the message; only a put of no bytes cannot fail.
/// @param type  of the header
inline std::uint32_t events_due(const ListEntry& entry, const PacketHeader& header, PacketType type) {
  const bool succeeds = type == PacketType::kPut && header.length == 0;
  const std::uint32_t disables = kEntryEventCommDisable | (succeeds ? kEntryEventSuccessDisable : 0);
  return (entry.options & disables) == 0 ? 1 : 0;
}

/// AUTO_UNLINK, if the message makes its entry raise it: at the end of the last message that is under way to the entry.
/// @param mlength  of the message
inline std::uint32_t unlinks_due(const ListEntry& entry, std::uint64_t mlength) {
  return (entry.options & kEntryEventUnlinkDisable) == 0 && unlinks_by(entry, mlength) ? 1 : 0;
}

/// Where in the entry the message goes, and how much of it.
/// @param type       of the header
/// @param placement  `entry` is set
inline void find_place(const PacketHeader& header, PacketType type, Placement& placement) {
  placement.offset = offset_in(*placement.entry, header);
  placement.mlength = manipulated_length(*placement.entry, placement.offset, header, type);
}

/// The entry takes the message that has its place: use once, locally managed offset, min_free.
/// @param placement  `list` is set, too
inline void take(PortalTableEntry& portal, const Placement& placement) {
  ListEntry& entry = *placement.entry;
  const bool unlink = unlinks_by(entry, placement.mlength);
  if ((entry.options & kEntryManageLocal) != 0) entry.local_offset += placement.mlength;
  if (!unlink) return;
  portal.list(placement.list).remove(entry);
  entry.state = EntryState::kUnlinking;
}

}  // namespace portofu
