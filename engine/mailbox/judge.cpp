#include "engine/mailbox/judge.h"

#include <array>

#include "engine/atomic/atomic_unit.h"
#include "engine/memory/stadd_table.h"

namespace portofu {
namespace {

constexpr std::uint64_t kLongest = kDefaultLimits.max_msg_size;
constexpr std::uint8_t kLastInterface = kInterfaceCount - 1;

constexpr HeaderRule portals(std::uint64_t longest, PayloadRule payload, bool wants_answer) {
  return {longest, payload, wants_answer, 0, kLastInterface, kNiFailCount};
}
constexpr HeaderRule tofu(std::uint64_t longest, PayloadRule payload, bool wants_answer) {
  return {longest, payload, wants_answer, kTofuInterface, kTofuInterface, kNiFailCount};
}

constexpr HeaderRule kPutRule = portals(kLongest, PayloadRule::kUpToLength, false);
constexpr HeaderRule kGetRule = portals(kLongest, PayloadRule::kNothing, true);
constexpr HeaderRule kAtomicRule = portals(kMaxAtomicBytes, PayloadRule::kAtomic, false);
constexpr HeaderRule kFetchingRule = portals(kMaxAtomicBytes, PayloadRule::kAtomic, true);
constexpr HeaderRule kTofuPutRule = tofu(kMaxRegionBytes, PayloadRule::kUpToLength, false);
constexpr HeaderRule kPlacedPutRule = tofu(kMaxRegionBytes, PayloadRule::kNothing, false);
constexpr HeaderRule kTofuGetRule = tofu(kMaxRegionBytes, PayloadRule::kNothing, true);
constexpr HeaderRule kArmwRule = tofu(8, PayloadRule::kAtomic, true);
constexpr HeaderRule kNoSuchRule{0, PayloadRule::kNothing, false, 0, 0, 0};

AtomicUse use_of(PacketType type) {
  switch (type) {
    case PacketType::kFetchAtomic: return AtomicUse::kFetchAtomic;
    case PacketType::kSwap: return AtomicUse::kSwap;
    default: return AtomicUse::kAtomic;
  }
}

bool is_legal_armw(const PacketHeader& header) {
  const auto type = static_cast<AtomicType>(header.atomic_type);
  return is_armw_operation(static_cast<AtomicOperation>(header.atomic_operation)) &&
         ((type == AtomicType::kUint32 && header.length == 4) || (type == AtomicType::kUint64 && header.length == 8));
}

}  // namespace

const HeaderRule& rule_of_request(const PacketHeader& header) {
  const bool placed = (header.flags & kFlagPlaced) != 0;
  switch (header.type) {
    case PacketType::kPut: return kPutRule;
    case PacketType::kGet: return kGetRule;
    case PacketType::kAtomic: return kAtomicRule;
    case PacketType::kFetchAtomic:
    case PacketType::kSwap: return kFetchingRule;
    case PacketType::kTofuPut: return placed ? kPlacedPutRule : kTofuPutRule;
    case PacketType::kTofuGet: return placed ? kNoSuchRule : kTofuGetRule;
    case PacketType::kTofuArmw: return placed ? kNoSuchRule : kArmwRule;
    default: return kNoSuchRule;
  }
}

std::uint32_t operand_bytes(const PacketHeader& header) {
  const auto operation = static_cast<AtomicOperation>(header.atomic_operation);
  const bool compares =
      header.type == PacketType::kTofuArmw ? operation == AtomicOperation::kCswap : operation != AtomicOperation::kSwap;
  const bool swaps = header.type == PacketType::kSwap || header.type == PacketType::kTofuArmw;
  return swaps && compares ? kOperandBytes : 0;
}

bool is_legal_atomic(const PacketHeader& header) {
  if (header.type == PacketType::kTofuArmw) return is_legal_armw(header);
  const auto operation = static_cast<AtomicOperation>(header.atomic_operation);
  const auto type = static_cast<AtomicType>(header.atomic_type);
  return header.interface_index == kFabricInterface ? fabric_atomic_is_legal(operation, type, use_of(header.type))
                                                    : atomic_is_legal(operation, type, use_of(header.type));
}

}  // namespace portofu
