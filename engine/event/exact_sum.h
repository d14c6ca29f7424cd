#pragma once
// A sum of doubles without rounding: a fixed-point number as wide as the range of double. Rounded once, when it is
// read; so it has the same bits whatever the order in which it was added up, and the sum of two is their IEEE sum.

#include <array>
#include <cstdint>
#include <type_traits>

namespace portofu {

class ExactSum {
 public:
  ExactSum() = default;

  void add(double value);
  void add(const ExactSum& other);

  /// The sum, rounded to nearest, ties to even. NaN if there was one, or infinities of both signs.
  double value() const;

 private:
  /// 2098 bits for every double, 62 more for 2^61 summands, and the sign.
  static constexpr std::size_t kWords = 34;

  void add_magnitude(std::uint64_t mantissa, unsigned shift);
  void subtract_magnitude(std::uint64_t mantissa, unsigned shift);

  std::array<std::uint64_t, kWords> words_{};  ///< Two's complement, lowest first; the unit is 2^-1074.
  std::uint32_t specials_ = 0;                 ///< kSeen* bits.
  [[maybe_unused]] std::uint32_t reserved_ = 0;
};
static_assert(std::is_trivially_copyable_v<ExactSum> && sizeof(ExactSum) == 280);

}  // namespace portofu
