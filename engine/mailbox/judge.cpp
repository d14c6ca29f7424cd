#include "engine/mailbox/judge.h"

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

constexpr HeaderRule kNone{0, PayloadRule::kNothing, false, 0, 0, 0};

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

const HeaderRule kNoSuchRule = kNone;
const HeaderRule kPlacedPutRule = tofu(kMaxRegionBytes, PayloadRule::kNothing, false);

const std::array<HeaderRule, 13> kRequestRules{{
    kNone,                                                   // kInvalid
    portals(kLongest, PayloadRule::kUpToLength, false),      // kPut
    portals(kLongest, PayloadRule::kNothing, true),          // kGet
    portals(kMaxAtomicBytes, PayloadRule::kAtomic, false),   // kAtomic
    portals(kMaxAtomicBytes, PayloadRule::kAtomic, true),    // kFetchAtomic
    portals(kMaxAtomicBytes, PayloadRule::kAtomic, true),    // kSwap
    kNone,                                                   // kData
    kNone,                                                   // kAnswer
    tofu(kMaxRegionBytes, PayloadRule::kUpToLength, false),  // kTofuPut
    tofu(kMaxRegionBytes, PayloadRule::kNothing, true),      // kTofuGet
    tofu(8, PayloadRule::kAtomic, true),                     // kTofuArmw
    kNone,                                                   // kTofuFault
    kNone,                                                   // kTofuGate
}};

bool is_legal_atomic(const PacketHeader& header) {
  if (header.type == PacketType::kTofuArmw) return is_legal_armw(header);
  const auto operation = static_cast<AtomicOperation>(header.atomic_operation);
  const auto type = static_cast<AtomicType>(header.atomic_type);
  return header.interface_index == kFabricInterface ? fabric_atomic_is_legal(operation, type, use_of(header.type))
                                                    : atomic_is_legal(operation, type, use_of(header.type));
}

}  // namespace portofu
