#include "engine/target/permission.h"

namespace portofu {
namespace {

/// What the entry must allow for the operation.
std::uint32_t needed(PacketType type) {
  switch (type) {
    case PacketType::kGet:
    case PacketType::kTofuGet: return kEntryOpGet;
    case PacketType::kFetchAtomic:
    case PacketType::kTofuArmw:
    case PacketType::kSwap: return kEntryOpPut | kEntryOpGet;
    default: return kEntryOpPut;
  }
}

}  // namespace

Refusal judge(const ListEntry& entry, const PacketHeader& header) {
  if (entry.uid != kUidAny && entry.uid != header.uid) return Refusal::kPermission;
  const std::uint32_t wanted = needed(header.type);
  return (entry.options & wanted) == wanted ? Refusal::kNone : Refusal::kOperation;
}

}  // namespace portofu
