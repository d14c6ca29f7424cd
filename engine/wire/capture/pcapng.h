#pragma once
// Of the format of captures (pcapng, draft-ietf-opsawg-pcapng), what their writer and whoever puts them together share.
// All numbers are in the byte order of this machine.

#include <cstdint>

namespace portofu {

// Types of blocks.
inline constexpr std::uint32_t kSectionBlock = 0x0a0d0d0a;
inline constexpr std::uint32_t kInterfaceBlock = 1;
inline constexpr std::uint32_t kPacketBlock = 6;

/// What every block begins with; it ends with its length once more.
struct BlockHead {
  std::uint32_t type;
  std::uint32_t block_bytes;  ///< Of the whole block, a multiple of 4.
};
inline constexpr std::uint32_t kLeastBlockBytes = sizeof(BlockHead) + sizeof(std::uint32_t);

/// What stands in front of a packet.
struct PacketBlockHead {
  std::uint32_t type;
  std::uint32_t block_bytes;
  std::uint32_t interface_number;
  std::uint32_t time_high;
  std::uint32_t time_low;
  std::uint32_t captured_bytes;
  std::uint32_t packet_bytes;
};
static_assert(sizeof(PacketBlockHead) == 28);

}  // namespace portofu
