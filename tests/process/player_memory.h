#pragma once
// What both kinds of Player have: memory that peers reach, memory that they may only read, and a buffer for each
// operation, with bytes between and around them that nobody may write.

#include <cstring>
#include <vector>

#include "tests/process/player.h"

namespace portofu {

class PlayerMemory {
 public:
  PlayerMemory() : bytes_(kAllBytes + kPageBytes) {
    auto* const first = bytes_.data();
    const auto past = reinterpret_cast<std::uintptr_t>(first) % kPageBytes;
    begin_ = first + (kPageBytes - past) % kPageBytes;
    for (std::uint64_t i = 0; i < kAllBytes; ++i) begin_[i] = first_byte(i);
    std::memset(target(), 0, kPlayerBytes);
    std::memset(buffers(), 0, kBuffersBytes);
  }

  /// kPlayerBytes, at a page boundary, like the following.
  unsigned char* target() { return begin_ + kGuardBytes; }

  /// kReadOnlyBytes.
  unsigned char* read_only() { return begin_ + kReadOnlyAt; }

  /// All buffers, of kPutBytes each.
  unsigned char* buffers() { return begin_ + kBuffersAt; }
  unsigned char* buffer(int slot) { return buffers() + static_cast<std::uint64_t>(slot) * kPutBytes; }
  static constexpr std::uint64_t kBuffersBytes = Player::kSlots * kPutBytes;

  /// @return false if a byte was written that nobody may write
  bool is_untouched() const {
    for (std::uint64_t i = 0; i < kAllBytes; ++i) {
      const bool ours =
          (i >= kGuardBytes && i < kGuardBytes + kPlayerBytes) || (i >= kBuffersAt && i < kBuffersAt + kBuffersBytes);
      if (!ours && begin_[i] != first_byte(i)) return false;
    }
    return true;
  }

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
  static constexpr std::uint64_t kGuardBytes = 65536;
  static constexpr std::uint64_t kReadOnlyAt = 2 * kGuardBytes + kPlayerBytes;
  static constexpr std::uint64_t kBuffersAt = kReadOnlyAt + kReadOnlyBytes + kGuardBytes;
  static constexpr std::uint64_t kAllBytes = kBuffersAt + kBuffersBytes + kGuardBytes;

  static constexpr unsigned char first_byte(std::uint64_t at) { return constant_byte(at - kReadOnlyAt); }

  std::vector<unsigned char> bytes_;
  unsigned char* begin_ = nullptr;
};

}  // namespace portofu
