#pragma once
// The bytes of a fuzzer as a sequence of numbers and choices. When they are used up every number is 0.

#include <array>
#include <cstddef>
#include <cstdint>

namespace portofu::fuzz {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t bytes) : data_(data), left_(bytes) {}

  bool is_used_up() const { return left_ == 0; }

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  /// The next `sizeof(Number)` bytes, whatever they are.
  template <class Number>
  Number raw() {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) number = static_cast<Number>(number << 8 | byte());
    return number;
  }

  /// 0..bound - 1. @pre 1 <= bound <= 256
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(byte() % bound); }

  /// True once in `times`, and never when the bytes are used up.
  bool once_in(std::uint32_t times) { return left_ > 0 && byte() % times == times - 1; }

  template <class Item, std::size_t kCount>
  Item one_of(const std::array<Item, kCount>& items) {
    return items[below(kCount)];
  }

  /// A length of a message: mostly one at which something changes.
  std::uint64_t length() {
    constexpr std::array<std::uint16_t, 15> kLengths{0,   1,   3,    4,    8,    16,   32,   100,
                                                     256, 512, 4095, 4096, 4097, 8192, 12000};
    return once_in(32) ? raw<std::uint64_t>() : one_of(kLengths);
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace portofu::fuzz
