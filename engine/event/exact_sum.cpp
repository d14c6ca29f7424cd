#include "engine/event/exact_sum.h"

#include <bit>
#include <limits>

namespace portofu {
namespace {

constexpr std::uint32_t kSeenNan = 1;
constexpr std::uint32_t kSeenInfinity = 2;
constexpr std::uint32_t kSeenMinusInfinity = 4;
constexpr std::uint32_t kSeenMinusZero = 8;
constexpr std::uint32_t kSeenOther = 16;  ///< Anything but minus zero: a zero sum is plus zero.

constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << 52) - 1;
constexpr std::uint32_t kExponentMask = 0x7ff;

}  // namespace

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool negative = bits >> 63 != 0;
  const auto exponent = static_cast<std::uint32_t>(bits >> 52) & kExponentMask;
  std::uint64_t mantissa = bits & kMantissaMask;
  if (exponent == kExponentMask) {
    specials_ |= mantissa != 0 ? kSeenNan : negative ? kSeenMinusInfinity : kSeenInfinity;
    return;
  }
  if (exponent == 0 && mantissa == 0) {
    specials_ |= negative ? kSeenMinusZero : kSeenOther;
    return;
  }
  specials_ |= kSeenOther;
  if (exponent != 0) mantissa |= kMantissaMask + 1;
  const unsigned shift = exponent == 0 ? 0 : exponent - 1;
  negative ? subtract_magnitude(mantissa, shift) : add_magnitude(mantissa, shift);
}

void ExactSum::add_magnitude(std::uint64_t mantissa, unsigned shift) {
  std::size_t at = shift / 64;
  unsigned __int128 carry = static_cast<unsigned __int128>(mantissa) << shift % 64;
  for (; at < kWords && carry != 0; ++at) {
    carry += words_[at];
    words_[at] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
}

void ExactSum::subtract_magnitude(std::uint64_t mantissa, unsigned shift) {
  std::size_t at = shift / 64;
  unsigned __int128 wide = static_cast<unsigned __int128>(mantissa) << shift % 64;
  for (; at < kWords && wide != 0; ++at) {
    const auto low = static_cast<std::uint64_t>(wide);
    const bool borrow = words_[at] < low;
    words_[at] -= low;
    wide = (wide >> 64) + (borrow ? 1 : 0);
  }
}

void ExactSum::add(const ExactSum& other) {
  unsigned __int128 carry = 0;
  for (std::size_t i = 0; i < kWords; ++i) {
    carry += words_[i];
    carry += other.words_[i];
    words_[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  specials_ |= other.specials_;
}

double ExactSum::value() const {
  const bool both = (specials_ & kSeenInfinity) != 0 && (specials_ & kSeenMinusInfinity) != 0;
  if ((specials_ & kSeenNan) != 0 || both) return std::numeric_limits<double>::quiet_NaN();
  if ((specials_ & kSeenInfinity) != 0) return std::numeric_limits<double>::infinity();
  if ((specials_ & kSeenMinusInfinity) != 0) return -std::numeric_limits<double>::infinity();

  std::array<std::uint64_t, kWords> magnitude = words_;
  const bool negative = words_.back() >> 63 != 0;
  if (negative) {
    bool carry = true;
    for (std::uint64_t& word : magnitude) {
      word = ~word + (carry ? 1 : 0);
      carry = carry && word == 0;
    }
  }
  std::size_t top = kWords;
  while (top > 0 && magnitude[top - 1] == 0) --top;
  if (top == 0) return specials_ == kSeenMinusZero ? -0.0 : 0.0;
  const auto bit_count =
      static_cast<unsigned>((top - 1) * 64 + 64 - static_cast<unsigned>(std::countl_zero(magnitude[top - 1])));
  const auto bit = [&magnitude](unsigned at) { return (magnitude[at / 64] >> at % 64 & 1) != 0; };
  const unsigned lowest = bit_count > 53 ? bit_count - 53 : 0;  // Of the bits that are kept.
  std::uint64_t mantissa = 0;
  for (unsigned at = bit_count; at > lowest; --at) mantissa = mantissa << 1 | (bit(at - 1) ? 1 : 0);
  if (lowest > 0 && bit(lowest - 1)) {
    bool above_half = (mantissa & 1) != 0;
    for (unsigned at = 0; at + 1 < lowest && !above_half; ++at) above_half = bit(at);
    if (above_half) ++mantissa;
  }
  // A subnormal or the smallest normal binade has lowest == 0, and its bits are the mantissa. A carry out of the
  // mantissa goes into the exponent by itself, up to infinity.
  std::uint64_t bits = mantissa;
  if (lowest > 0) bits = (static_cast<std::uint64_t>(lowest) << 52) + mantissa;
  if (lowest >= kExponentMask - 1 || bits >= std::uint64_t{kExponentMask} << 52) {
    bits = std::uint64_t{kExponentMask} << 52;
  }
  return std::bit_cast<double>(bits | (negative ? std::uint64_t{1} << 63 : 0));
}

}  // namespace portofu
