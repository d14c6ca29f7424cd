// The checksum of frames, with the instruction of the CPU and without.

#include "engine/wire/reliable/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace portofu {
namespace {

std::span<const std::byte> as_span(std::string_view text) { return std::as_bytes(std::span(text)); }

// The check value of the catalogue of CRC algorithms.
TEST(Crc32c, Of_123456789__is_e3069283) {
  EXPECT_EQ(crc32c(as_span("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c_portable(as_span("123456789")), 0xe3069283u);
}

TEST(Crc32c, In_two_pieces__is_that_of_the_whole) {
  for (std::size_t cut = 0; cut <= 9; ++cut) {
    const std::string_view text = "123456789";
    EXPECT_EQ(crc32c(as_span(text.substr(cut)), crc32c(as_span(text.substr(0, cut)))), 0xe3069283u);
    EXPECT_EQ(crc32c_portable(as_span(text.substr(cut)), crc32c_portable(as_span(text.substr(0, cut)))), 0xe3069283u);
  }
}

TEST(Crc32c, Of_every_length__is_the_same_both_ways) {
  const std::string text(100, 'x');
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    const auto part = as_span(std::string_view(text).substr(0, bytes));
    EXPECT_EQ(crc32c(part), crc32c_portable(part)) << bytes << " bytes";
  }
}

}  // namespace
}  // namespace portofu
