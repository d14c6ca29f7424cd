#pragma once
// Memory of one packet or piece of a packet, in a heap block of its own.

#include <cstddef>
#include <memory>
#include <new>

namespace portofu {

/// 64-byte aligned; not initialised.
class PacketBuffer {
 public:
  PacketBuffer() = default;
  explicit PacketBuffer(std::size_t bytes) : data_(static_cast<std::byte*>(::operator new(bytes, kAlignment))) {}

  std::byte* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct AlignedDelete {
    void operator()(std::byte* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<std::byte, AlignedDelete> data_;  ///< nullptr: none.
};

}  // namespace portofu
