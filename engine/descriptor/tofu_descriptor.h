#pragma once
// A prepared descriptor of uTofu as it lies in the caller's memory: 32 bytes, or 64 where data of more than 8 bytes
// travels with it. Nothing of it is believed when it is posted.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/descriptor/descriptor.h"

namespace portofu {

inline constexpr std::size_t kMaxTofuDescriptorBytes = 64;
inline constexpr std::size_t kShortTofuDescriptorBytes = 32;
inline constexpr std::size_t kMaxPiggybackBytes = 32;

/// Bits of TofuDescriptor::code.
inline constexpr std::uint8_t kTofuCodeOperation = 63;  ///< kTofuArmw: AtomicOperation.
inline constexpr std::uint8_t kTofuCodeWide = 1u << 6;  ///< kTofuArmw: 64 bits, else 32.
inline constexpr std::uint8_t kTofuCodeLong = 1u << 7;  ///< A second half follows.

/// First half, of every kind.
struct TofuDescriptor {
  PacketType kind = PacketType::kTofuNop;
  std::uint8_t code = 0;     ///< kTofuCode* bits.
  std::uint16_t meta = 0;    ///< PacketHeader::tofu_meta.
  std::uint32_t length = 0;  ///< Bytes.
  std::uint64_t remote_vcq_id = 0;
  std::uint64_t remote_stadd = 0;
  std::uint64_t local = 0;  ///< STADD; ARMW: value; short piggyback: data.
};
static_assert(sizeof(TofuDescriptor) == kShortTofuDescriptorBytes && std::is_trivially_copyable_v<TofuDescriptor>);

/// Both halves. The second is the data of a piggyback, or what a compare-and-swap compares with.
struct TofuCell {
  TofuDescriptor head;
  std::array<std::byte, kMaxPiggybackBytes> more{};

  std::size_t bytes() const {
    return (head.code & kTofuCodeLong) != 0 ? kMaxTofuDescriptorBytes : kShortTofuDescriptorBytes;
  }
};
static_assert(sizeof(TofuCell) == kMaxTofuDescriptorBytes);

}  // namespace portofu
