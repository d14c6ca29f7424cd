#pragma once
// A number as everything that tells of handles, bits and addresses writes it, so that what one says can be looked for
// in what another one has said.

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace portofu {

/// "0x1f".
inline std::string hex_text(std::uint64_t number) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

}  // namespace portofu
