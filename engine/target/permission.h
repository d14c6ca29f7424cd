#pragma once
// Step 6, second half: whether the initiator may do what it asks with the entry that matched. @spec
// Portals 4.3, 2.5, 3.11.1

#include "engine/memory/list_entry.h"
#include "engine/target/match_header.h"
#include "engine/target/match_steps.h"
#include "engine/wire/header.h"

namespace portofu {

/// What the entry must allow for the operation.
/// @param type  of the header
inline std::uint32_t needed_options(const PacketHeader& header, PacketType type) {
  switch (type) {
    case PacketType::kGet: return kEntryOpGet;
    case PacketType::kFetchAtomic: return only_reads(header) ? kEntryOpGet : kEntryOpPut | kEntryOpGet;
    case PacketType::kSwap: return kEntryOpPut | kEntryOpGet;
    default: return kEntryOpPut;
  }
}

/// Whether an atomic goes beyond a receive of libfabric. Of a message such an entry takes what fits; that an atomic was
/// done in part, or not at all, its initiator would not learn.
inline bool overruns(const ListEntry& entry, const PacketHeader& header, PacketType type) {
  if (type == PacketType::kPut || type == PacketType::kGet || (entry.options & kEntryTakesData) == 0) return false;
  return !entry.segment.fits(offset_in(entry, header), header.length);
}

/// @param type  of the header
/// @return kNone, kPermission, kOperation or kNoMatch
inline Refusal judge(const ListEntry& entry, const PacketHeader& header, PacketType type) {
  if (entry.uid != kUidAny && entry.uid != header.uid) return Refusal::kPermission;
  const std::uint32_t wanted = needed_options(header, type);
  if ((entry.options & wanted) != wanted) return Refusal::kOperation;
  return overruns(entry, header, type) ? Refusal::kNoMatch : Refusal::kNone;
}

}  // namespace portofu
