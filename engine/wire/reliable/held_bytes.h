#pragma once
// How much all windows of a wire hold, and ever held.

#include <algorithm>
#include <cstddef>

namespace portofu {

struct HeldBytes {
  std::size_t now = 0;
  std::size_t most = 0;

  void add(std::size_t bytes) {
    now += bytes;
    most = std::max(most, now);
  }
  void remove(std::size_t bytes) { now -= bytes; }
};

}  // namespace portofu
