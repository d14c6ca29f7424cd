// The region behind a STADD, and what may be done to it.

#include "engine/memory/stadd_access.h"

#include <gtest/gtest.h>

#include <array>

namespace portofu {
namespace {

class StaddAccessTest : public testing::Test {
 protected:
  StaddAccessTest() {
    table.add({0, memory.data(), 100, false}, &open);
    table.add({0, memory.data() + 100, 100, true}, &read_only);
  }

  /// What goes wrong; kOk if the region is found.
  NiFail fail_of(std::uint64_t stadd, std::uint64_t bytes, PacketType use) {
    NiFail fail = NiFail::kOk;
    const bool found = find_region(table, {stadd, bytes, use}, &fail) != nullptr;
    EXPECT_EQ(found, fail == NiFail::kOk);
    return fail;
  }

  std::array<std::byte, 200> memory{};
  StaddTable table;
  std::uint64_t open = 0;
  std::uint64_t read_only = 0;
};

constexpr std::array<PacketType, 3> kUses{PacketType::kTofuPut, PacketType::kTofuGet, PacketType::kTofuArmw};

TEST_F(StaddAccessTest, Range_inside__is_found) {
  for (const PacketType use : kUses) {
    EXPECT_EQ(fail_of(open, 100, use), NiFail::kOk);
    EXPECT_EQ(fail_of(open + 99, 1, use), NiFail::kOk);
    EXPECT_EQ(fail_of(open + 100, 0, use), NiFail::kOk);
  }
}

TEST_F(StaddAccessTest, Range_that_leaves__is_a_matter_of_length) {
  for (const PacketType use : kUses) {
    EXPECT_EQ(fail_of(open + 99, 2, use), NiFail::kBadLength);
    EXPECT_EQ(fail_of(open + 1, kMaxRegionBytes, use), NiFail::kBadLength);
  }
}

TEST_F(StaddAccessTest, Address_behind_or_without_a_region__is_a_matter_of_the_stadd) {
  for (const PacketType use : kUses) {
    EXPECT_EQ(fail_of(open + 100, 1, use), NiFail::kBadStadd);
    EXPECT_EQ(fail_of(open + 101, 0, use), NiFail::kBadStadd);
    EXPECT_EQ(fail_of(make_stadd(9999), 1, use), NiFail::kBadStadd);
    EXPECT_EQ(fail_of(~std::uint64_t{0}, 1, use), NiFail::kBadStadd);
  }
}

TEST_F(StaddAccessTest, Read_only_region__is_only_read) {
  EXPECT_EQ(fail_of(read_only, 8, PacketType::kTofuGet), NiFail::kOk);
  EXPECT_EQ(fail_of(read_only, 8, PacketType::kTofuPut), NiFail::kSegv);
  EXPECT_EQ(fail_of(read_only, 8, PacketType::kTofuArmw), NiFail::kSegv);
}

}  // namespace
}  // namespace portofu
