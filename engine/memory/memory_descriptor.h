#pragma once
// A memory descriptor: the initiator's side of a transfer.

#include <cstdint>

#include "engine/descriptor/handle.h"
#include "engine/memory/memory_segment.h"

namespace portofu {

/// Option bits of an MD; the values of portals4.h.
inline constexpr std::uint32_t kMdEventSendDisable = 1u << 1;
inline constexpr std::uint32_t kMdEventSuccessDisable = 1u << 2;
inline constexpr std::uint32_t kMdEventCtSend = 1u << 3;
inline constexpr std::uint32_t kMdEventCtReply = 1u << 4;
inline constexpr std::uint32_t kMdEventCtAck = 1u << 5;
inline constexpr std::uint32_t kMdEventCtBytes = 1u << 6;
inline constexpr std::uint32_t kMdUnordered = 1u << 7;
inline constexpr std::uint32_t kMdVolatile = 1u << 8;
inline constexpr std::uint32_t kMdUnreliable = 1u << 9;

/// For one operation, which frees it when it ends, its acknowledgement included. libfabric's.
inline constexpr std::uint32_t kMdOneShot = 1u << 10;

/// @spec Portals 4.3, 3.10
struct MemoryDescriptor {
  MemorySegment segment;      ///< The memory.
  std::uint32_t options = 0;  ///< kMd* bits.
  Handle handle = 0;          ///< Its own.
  Handle eq_handle = 0;       ///< For full events; 0 for none.
  Handle ct_handle = 0;       ///< For counts; 0 for none.
  std::uint32_t pending = 0;  ///< Operations whose SEND or REPLY is still to come.
  bool released = false;      ///< PtlMDRelease was called; the slot is freed when `pending` is 0.
  std::uint32_t use = 0;      ///< HandleTable::use_of its handle, which others may have had before.
};

}  // namespace portofu
