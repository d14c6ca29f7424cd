#pragma once
// Handles: how an application names an object of an interface. One 32-bit number; never 0, never from 0xe0000000 up,
// where the constants of portals4.h live.

#include <cstdint>

namespace portofu {

using Handle = std::uint32_t;

/// What a handle names; the topmost bits of it.
enum class HandleKind : std::uint8_t {
  kInterface = 1,
  kMemoryDescriptor = 2,
  kListEntry = 3,
  kEventQueue = 4,
  kCountingEvent = 5
};

inline constexpr std::uint32_t kHandleIndexBits = 20;
inline constexpr std::uint32_t kHandleGenerationBits = 6;
inline constexpr std::uint32_t kHandleInterfaceBits = 3;
inline constexpr std::uint32_t kHandleMaxObjects = 1u << kHandleIndexBits;
static_assert(kHandleIndexBits + kHandleGenerationBits + kHandleInterfaceBits + 3 == 32);

constexpr Handle make_handle(HandleKind kind, std::uint32_t interface_index, std::uint32_t generation,
                             std::uint32_t index) {
  return static_cast<std::uint32_t>(kind) << 29 | (interface_index & 7u) << 26 | (generation & 63u) << 20 | index;
}
constexpr std::uint32_t handle_kind(Handle handle) { return handle >> 29; }
constexpr std::uint32_t handle_interface(Handle handle) { return handle >> 26 & 7u; }
constexpr std::uint32_t handle_generation(Handle handle) { return handle >> 20 & 63u; }
constexpr std::uint32_t handle_index(Handle handle) { return handle & (kHandleMaxObjects - 1); }

}  // namespace portofu
