// Addresses of 32 bits.

#include "lib/funi/address_map.h"

#include <gtest/gtest.h>

#include <array>

namespace portofu::funi {
namespace {

struct Memory {
  alignas(4096) std::array<std::byte, 8192> bytes{};
};

TEST(FuniAddressMap, An_address__is_not_zero_and_keeps_its_place_in_the_page) {
  static Memory memory;
  AddressMap map;
  const std::uint32_t address = map.add(memory.bytes.data() + 100, 200);
  EXPECT_NE(address, 0u);
  EXPECT_EQ(address % 4096, 100u);
  EXPECT_EQ(map.find(address, 200), memory.bytes.data() + 100);
  EXPECT_EQ(map.find(address + 150, 50), memory.bytes.data() + 250);
  EXPECT_EQ(map.find(address + 200, 0), memory.bytes.data() + 300);
}

TEST(FuniAddressMap, What_is_not_mapped__is_not_found) {
  static Memory memory;
  AddressMap map;
  EXPECT_EQ(map.find(4096, 1), nullptr);
  const std::uint32_t address = map.add(memory.bytes.data() + 100, 200);
  EXPECT_EQ(map.find(address - 1, 1), nullptr);
  EXPECT_EQ(map.find(address, 201), nullptr);
  EXPECT_EQ(map.find(address + 201, 0), nullptr);
  EXPECT_EQ(map.find(0xffffffffu, 16), nullptr);
  EXPECT_FALSE(map.remove(address + 1));
  EXPECT_TRUE(map.remove(address));
  EXPECT_EQ(map.find(address, 1), nullptr);
}

TEST(FuniAddressMap, Regions__do_not_touch) {
  static Memory memory;
  AddressMap map;
  const std::uint32_t first = map.add(memory.bytes.data(), 4096);
  const std::uint32_t second = map.add(memory.bytes.data(), 4096);
  EXPECT_GE(second, first + 2 * 4096);
  EXPECT_EQ(map.find(first + 4090, 16), nullptr);
}

TEST(FuniAddressMap, The_32_bits__have_an_end) {
  static Memory memory;
  AddressMap map;
  EXPECT_EQ(map.add(memory.bytes.data(), std::size_t{1} << 32), 0u);
  EXPECT_NE(map.add(memory.bytes.data(), std::size_t{3} << 30), 0u);
  EXPECT_EQ(map.add(memory.bytes.data(), std::size_t{1} << 30), 0u);
  EXPECT_NE(map.add(memory.bytes.data(), 4096), 0u);
}

/// For hours: what is taken back is there for others, and only then. Regions do not touch then either.
TEST(FuniAddressMap, Addresses__that_are_taken_back_are_given_again_when_all_were_used) {
  static Memory memory;
  AddressMap map;
  constexpr std::size_t kQuarter = std::size_t{1} << 30;
  const std::uint32_t kept = map.add(memory.bytes.data() + 16, 4096);
  const std::uint32_t first = map.add(memory.bytes.data(), kQuarter);
  EXPECT_TRUE(map.remove(first));
  EXPECT_GT(map.add(memory.bytes.data(), kQuarter), first) << "others are left";
  EXPECT_NE(map.add(memory.bytes.data(), kQuarter), 0u);
  EXPECT_EQ(map.add(memory.bytes.data() + 8, kQuarter + 4096), 0u) << "the gap is too small by its last page";
  EXPECT_EQ(map.add(memory.bytes.data() + 8, kQuarter - 8), first + 8);
  EXPECT_EQ(map.add(memory.bytes.data(), kQuarter), 0u);
  EXPECT_TRUE(map.remove(kept));
  EXPECT_EQ(map.add(memory.bytes.data(), kQuarter), 0u) << "nor does it fit where less was";
  for (int i = 0; i < 5000; ++i) {
    const std::uint32_t again = map.add(memory.bytes.data(), 1 << 20);
    ASSERT_NE(again, 0u) << i;
    ASSERT_TRUE(map.remove(again));
  }
}

TEST(FuniAddressMap, Memory__is_found_by_where_it_is) {
  static Memory memory;
  AddressMap map;
  const std::uint32_t address = map.add(memory.bytes.data(), 4096);
  EXPECT_EQ(map.address_of(memory.bytes.data() + 16, 16), address + 16);
  EXPECT_EQ(map.address_of(memory.bytes.data() + 4090, 16), 0u);
  EXPECT_EQ(map.address_of(&map, 1), 0u);
}

}  // namespace
}  // namespace portofu::funi
