#include "engine/wire/reliable/crc32c.h"

#include <boost/crc.hpp>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace portofu {
namespace {

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::span<const std::byte> bytes, std::uint32_t crc) {
  std::uint64_t state = ~crc;
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  auto rest = static_cast<std::uint32_t>(state);
  for (; at < bytes.size(); ++at) rest = _mm_crc32_u8(rest, std::to_integer<std::uint8_t>(bytes[at]));
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc) {
  constexpr std::uint32_t kPolynomial = 0x1edc6f41;
  // Boost reflects the remainder that it is given, and is given the one before the final complement.
  std::uint32_t start = ~crc;
  std::uint32_t reflected = 0;
  for (int bit = 0; bit < 32; ++bit, start >>= 1) reflected = reflected << 1 | (start & 1);
  boost::crc_optimal<32, kPolynomial, 0xffffffff, 0xffffffff, true, true> state(reflected);
  state.process_bytes(bytes.data(), bytes.size());
  return state.checksum();
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_sse42(bytes, crc);
#endif
  return crc32c_portable(bytes, crc);
}

}  // namespace portofu
