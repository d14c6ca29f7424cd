#pragma once
// Random numbers of the kernel: keys, lives, nonces. Never on the short path.

#include <cstddef>

namespace portofu {

/// Fills `into`, without waiting: from getrandom(2), or where a sandbox or an old kernel has none, from /dev/urandom.
/// @return false with errno set: there is neither
bool draw_random(void* into, std::size_t bytes);

}  // namespace portofu
