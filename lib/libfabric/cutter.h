#pragma once
// Local memory in pieces, for an operation that goes as several.

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/libfabric/info.h"

namespace portofu::fabric {

/// The pieces of local memory that belong to one piece of remote memory.
class Cutter {
 public:
  Cutter(const iovec* pieces, std::size_t count) : pieces_(pieces), count_(count) {}

  /// Takes the next bytes. @return how many pieces they are in; kMostPieces + 1 if there are not so many bytes
  std::size_t take(std::uint64_t bytes, std::array<iovec, kMostPieces>& taken) {
    std::size_t used = 0;
    while (bytes > 0) {
      if (index_ == count_) return kMostPieces + 1;
      const std::uint64_t left = pieces_[index_].iov_len - offset_;
      const std::uint64_t part = std::min(left, bytes);
      if (part != 0) taken[used++] = {static_cast<std::byte*>(pieces_[index_].iov_base) + offset_, part};
      bytes -= part;
      offset_ += part;
      if (part == left) {
        ++index_;
        offset_ = 0;
      }
    }
    return used;
  }

 private:
  const iovec* pieces_;
  std::size_t count_;
  std::size_t index_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace portofu::fabric
