// Functions and variables of the program as words of 32 bits.

#include "lib/funi/program_image.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace portofu::funi {
namespace {

int variable = 7;
int function() { return variable; }

std::uintptr_t place_of(int (*of)()) { return reinterpret_cast<std::uintptr_t>(of); }
std::uintptr_t place_of(const int* of) { return reinterpret_cast<std::uintptr_t>(of); }

TEST(FuniProgramImage, Functions_and_variables__come_back) {
  const std::uint32_t code = offset_in_program(place_of(function), /*code=*/true);
  ASSERT_NE(code, 0u);
  EXPECT_EQ(reinterpret_cast<int (*)()>(address_in_program(code, /*code=*/true))(), 7);
  const std::uint32_t data = offset_in_program(place_of(&variable), /*code=*/false);
  ASSERT_NE(data, 0u);
  EXPECT_EQ(address_in_program(data, /*code=*/false), &variable);
}

TEST(FuniProgramImage, Neither_is_taken_for_the_other) {
  EXPECT_EQ(offset_in_program(place_of(&variable), /*code=*/true), 0u);
  const std::uint32_t data = offset_in_program(place_of(&variable), /*code=*/false);
  EXPECT_EQ(address_in_program(data, /*code=*/true), nullptr);
}

TEST(FuniProgramImage, What_lies_elsewhere__has_no_word) {
  int local = 0;
  EXPECT_EQ(offset_in_program(place_of(&local), /*code=*/false), 0u);
  EXPECT_EQ(offset_in_program(reinterpret_cast<std::uintptr_t>(dlsym(RTLD_NEXT, "malloc")), /*code=*/true), 0u);
  EXPECT_EQ(offset_in_program(0, /*code=*/true), 0u);
  EXPECT_EQ(address_in_program(0, /*code=*/true), nullptr);
  EXPECT_EQ(address_in_program(0xffffffffu, /*code=*/true), nullptr);
  EXPECT_EQ(address_in_program(0xffffffffu, /*code=*/false), nullptr);
}

}  // namespace
}  // namespace portofu::funi
