#pragma once
// Who has lent memory to us, as far as a payload needs to know: the segment of a peer, or a link of a simulated
// network.

#include <cstddef>
#include <cstdint>

namespace portofu {

class Lender {
 public:
  /// Copies what is at an address of the lender's. @return false if either memory is not mapped, or may not be accessed
  virtual bool read_lent(std::uint64_t address, std::byte* target, std::uint64_t bytes) const = 0;

  /// After read_lent has failed: whether it is because the lender is not there any more. One that only does not let
  /// itself be read is.
  virtual bool is_gone() const = 0;

 protected:
  ~Lender() = default;
};

}  // namespace portofu
