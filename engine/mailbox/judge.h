#pragma once
// Step 5, what is looked at in every header that begins a message: lengths that agree with each other, and values that
// mean something. The engine of an honest peer sends nothing else. Before it: run/dispatch, which has checked key and
// flags. After it: the steps, which use the header as it stands.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/atomic/atomic_unit.h"
#include "engine/core/core.h"

namespace portofu {

/// What a packet may carry that begins a message.
enum class PayloadRule : std::uint8_t {
  kNothing,
  kUpToLength,  ///< The message, or its beginning.
  kWhole,       ///< The message.
  kAtomic,      ///< The message, behind its operand, of an operation and a type that fit.
};

/// What a header may say.
struct HeaderRule {
  std::uint64_t longest;  ///< Bytes of the message at most.
  PayloadRule payload;
  bool wants_answer;             ///< It has to.
  std::uint8_t first_interface;  ///< Interfaces that it may name.
  std::uint8_t last_interface;
  std::uint8_t fail_count;  ///< Outcomes that it may tell; 0: there is no such packet.
};

/// By PacketType, of those that ask for something.
extern const std::array<HeaderRule, 13> kRequestRules;

/// Of a uTofu put without payload, because its data is at its place already.
extern const HeaderRule kPlacedPutRule;

/// Of what nobody sends.
extern const HeaderRule kNoSuchRule;

/// Of a packet that asks for something.
inline const HeaderRule& rule_of_request(const PacketHeader& header) {
  if ((header.flags & kFlagPlaced) != 0 && is_tofu(header.type)) [[unlikely]]
    return header.type == PacketType::kTofuPut ? kPlacedPutRule : kNoSuchRule;
  const auto index = static_cast<std::size_t>(header.type);
  return index < kRequestRules.size() ? kRequestRules[index] : kNoSuchRule;
}

/// Bytes of the operand that the payload of a request begins with.
inline std::uint32_t operand_bytes(const PacketHeader& header) {
  const auto operation = static_cast<AtomicOperation>(header.atomic_operation);
  if (header.type == PacketType::kTofuArmw) return operation == AtomicOperation::kCswap ? kOperandBytes : 0;
  return header.type == PacketType::kSwap && operation != AtomicOperation::kSwap ? kOperandBytes : 0;
}

/// Whether operation and datatype go together, in what the header asks for.
bool is_legal_atomic(const PacketHeader& header);

/// Whether the header keeps the rule.
[[gnu::always_inline]] inline bool is_sane(const PacketHeader& header, const HeaderRule& rule) {
  if (header.length > rule.longest || header.ni_fail_type >= rule.fail_count) return false;
  if (header.interface_index < rule.first_interface || header.interface_index > rule.last_interface) return false;
  if (rule.wants_answer && (header.flags & kFlagAnswerWanted) == 0) return false;
  switch (rule.payload) {
    case PayloadRule::kNothing: return header.payload_bytes == 0;
    case PayloadRule::kUpToLength: return header.payload_bytes <= header.length;
    case PayloadRule::kWhole: return header.payload_bytes == header.length;
    case PayloadRule::kAtomic: break;
  }
  const std::uint32_t operand = operand_bytes(header);
  if (operand != 0 && header.length > operand) return false;  // Each item has an operand of its own.
  return header.payload_bytes == header.length + operand && is_legal_atomic(header);
}

}  // namespace portofu
