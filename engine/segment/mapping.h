#pragma once
// A stretch of a segment file mapped into this process, and nothing else: who may map what is decided elsewhere.

#include <cstddef>
#include <cstdint>

namespace portofu {

/// Owns one mapping. Not inherited over fork (MADV_DONTFORK): a child that touches it faults instead of corrupting
/// rings that its parent uses, and the child's copy of this object leaves the address range alone.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  /// Maps [offset, offset + bytes) of `fd`, shared, readable and writable; offset is a multiple of the page size.
  /// @return an empty mapping if the kernel refuses
  static Mapping map(int fd, std::uint64_t offset, std::uint64_t bytes);

  /// Takes the right to write to the first `bytes` bytes away from this process.
  void protect_front(std::uint64_t bytes);

  /// Lets the file go, and what locks of it the mapping holds. What lies there now is zero, and this process's alone.
  void let_go();

  /// Brings all pages in at once, for what will be used from end to end; a kernel that cannot do it brings them one by
  /// one later.
  void populate();

  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  explicit operator bool() const { return base_ != nullptr; }

 private:
  std::byte* base_ = nullptr;          ///< nullptr if nothing is mapped.
  std::size_t bytes_ = 0;              ///< Length of the mapping.
  std::uint64_t fork_generation_ = 0;  ///< fork_generation() when it was made.
};

}  // namespace portofu
