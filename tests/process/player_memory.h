#pragma once
// What both kinds of Player have: memory that peers reach, and a buffer for each operation.

#include <cstring>
#include <vector>

#include "tests/process/player.h"

namespace portofu {

class PlayerMemory {
 public:
  PlayerMemory() : bytes_(kPlayerBytes + kPageBytes + Player::kSlots * kPutBytes) {
    auto* const first = bytes_.data();
    const auto past = reinterpret_cast<std::uintptr_t>(first) % kPageBytes;
    target_ = first + (kPageBytes - past) % kPageBytes;
    for (std::uint64_t i = 0; i < kPutBytes; ++i) target_[kConstantOffset + i] = constant_byte(i);
  }

  /// kPlayerBytes, at a page boundary.
  unsigned char* target() { return target_; }

  /// All buffers, of kPutBytes each.
  unsigned char* buffers() { return target_ + kPlayerBytes; }
  unsigned char* buffer(int slot) { return buffers() + static_cast<std::uint64_t>(slot) * kPutBytes; }
  static constexpr std::uint64_t kBuffersBytes = Player::kSlots * kPutBytes;

  /// To be called before and after a get into the buffer of a slot.
  void forget(int slot) { std::memset(buffer(slot), 0, kGetBytes); }
  bool is_constant(int slot) {
    for (std::uint64_t i = 0; i < kGetBytes; ++i) {
      if (buffer(slot)[i] != constant_byte(i)) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  std::vector<unsigned char> bytes_;
  unsigned char* target_ = nullptr;
};

}  // namespace portofu
