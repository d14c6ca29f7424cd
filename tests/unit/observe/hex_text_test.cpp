#include "engine/observe/hex_text.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(HexText, Numbers__have_as_many_digits_as_they_need) {
  EXPECT_EQ(hex_text(0), "0x0");
  EXPECT_EQ(hex_text(0xabc0), "0xabc0");
  EXPECT_EQ(hex_text(UINT64_MAX), "0xffffffffffffffff");
}

}  // namespace
}  // namespace portofu
