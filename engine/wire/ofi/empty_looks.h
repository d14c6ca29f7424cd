#pragma once
// Looks at a fabric cost a system call each, and the other wires wait meanwhile. After many that found nothing only
// some of them are made: where a job talks inside its node only, it is not to feel that the fabric is open.

#include <cstdint>

namespace portofu {

inline constexpr std::uint32_t kManyEmptyLooks = 256;
inline constexpr std::uint32_t kRareLook = 16;
inline constexpr std::uint32_t kQuietLooks = 4096;
inline constexpr std::uint32_t kQuietLook = 256;

/// @param empty_looks  that found nothing, in a row
inline bool is_left_out(std::uint32_t empty_looks) {
  if (empty_looks < kManyEmptyLooks) return false;
  return empty_looks % (empty_looks < kQuietLooks ? kRareLook : kQuietLook) != 0;
}

/// The same for what SocketKeeper::attend was given.
inline constexpr std::uint32_t kHandleLook = 64;

}  // namespace portofu
