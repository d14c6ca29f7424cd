#pragma once
// Memory for unexpected messages that lie in nobody's buffer (kEntryOwnMemory). What was given back is kept by size, so
// that messages which come and go cost no call of the allocator. Touched on duty only.
// @see Settings::unexpected_mib

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace portofu {

class MessageMemory {
 public:
  MessageMemory() = default;
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;
  ~MessageMemory() {
    for (Spare*& first : spares_) {
      while (first != nullptr) {
        Spare* next = first->next;
        std::free(first);
        first = next;
      }
    }
  }

  /// @return memory for a message of `bytes`; nullptr if there is none
  std::byte* take(std::uint64_t bytes) {
    std::byte* taken = take_uncounted(bytes);
    if (taken != nullptr) bytes_ += bytes;
    return taken;
  }

  /// @param memory  from take, of as many bytes
  void give(std::byte* memory, std::uint64_t bytes) {
    const std::size_t place = place_of(bytes);
    bytes_ -= bytes;
    if (place >= kSizes) return std::free(memory);
    auto* spare = reinterpret_cast<Spare*>(memory);
    spare->next = spares_[place];
    spares_[place] = spare;
  }

  /// Of the messages that lie here.
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Spare {
    Spare* next;
  };

  static constexpr std::uint64_t kSmallest = 64;
  static constexpr std::size_t kSizes = 12;  ///< Up to 128 KiB; longer ones go back at once.

  std::byte* take_uncounted(std::uint64_t bytes) {
    const std::size_t place = place_of(bytes);
    if (place >= kSizes) return static_cast<std::byte*>(std::malloc(bytes));
    Spare*& first = spares_[place];
    if (first == nullptr) return static_cast<std::byte*>(std::malloc(kSmallest << place));
    Spare* taken = first;
    first = taken->next;
    return reinterpret_cast<std::byte*>(taken);
  }

  static std::size_t place_of(std::uint64_t bytes) {
    return bytes <= kSmallest ? 0 : static_cast<std::size_t>(std::bit_width((bytes - 1) / kSmallest));
  }

  std::uint64_t bytes_ = 0;
  std::array<Spare*, kSizes> spares_{};  ///< By size, kSmallest << index bytes each.
};

}  // namespace portofu
