#pragma once
// Whether shared memory is plentiful. What is only there for speed (rings of the usual size, send areas) is taken from
// plenty; the small rings, without which nothing goes, are left the rest.

#include <cstdint>
#include <string>

namespace portofu {

/// Room in a file system, in bytes. `total` is 0 where it has no bound.
struct SharedRoom {
  std::uint64_t total = 0;
  std::uint64_t free = 0;

  /// @return whether so many bytes more leave half of it free, or as much as no job of one node needs
  constexpr bool is_plenty_for(std::uint64_t bytes) const {
    const std::uint64_t kept = total / 2 < kKeptBytes ? total / 2 : kKeptBytes;
    return total == 0 || (free >= bytes && free - bytes >= kept);
  }

  /// Small rings between 110 processes.
  static constexpr std::uint64_t kKeptBytes = 256u << 20;
};

/// @return the room in the file system of a directory; without a bound if the kernel does not tell. A system call
SharedRoom shared_room(const std::string& directory);

/// Tells people, once, that there is less than plenty.
void tell_of_little_room(const std::string& directory);

}  // namespace portofu
