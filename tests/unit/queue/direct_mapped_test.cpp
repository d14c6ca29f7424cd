#include "engine/queue/direct_mapped.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace portofu {
namespace {

template <std::size_t kPlaces>
std::size_t places_used(std::uint64_t first, std::uint64_t step, std::uint64_t count) {
  std::set<std::size_t> used;
  for (std::uint64_t i = 0; i < count; ++i) used.insert(DirectMapped<int, kPlaces>::index_of(first + i * step));
  EXPECT_LT(*used.rbegin(), kPlaces);
  return used.size();
}

TEST(DirectMapped, Place__keeps_what_was_put_there_last) {
  DirectMapped<int, 8> cache;
  EXPECT_EQ(cache.place(5), 0);
  cache.place(5) = 3;
  EXPECT_EQ(std::as_const(cache).place(5), 3);
  cache.clear();
  EXPECT_EQ(cache.place(5), 0);
}

TEST(DirectMapped, Keys_in_a_row__have_places_of_their_own) {
  for (std::uint64_t first = 0; first < 100'000; first += 37) {
    ASSERT_EQ(places_used<8>(first, 1, 2), 2u) << first;
    ASSERT_EQ(places_used<32>(first, 1, 10), 10u) << first;
    ASSERT_EQ(places_used<64>(first, 1, 21), 21u) << first;
    ASSERT_EQ(places_used<128>(first, 1, 42), 42u) << first;
  }
}

TEST(DirectMapped, Two_keys_of_one_place__take_turns) {
  DirectMapped<std::uint64_t, 2> cache;
  const std::uint64_t one = 1;
  std::uint64_t other = 2;
  while (DirectMapped<std::uint64_t, 2>::index_of(other) != DirectMapped<std::uint64_t, 2>::index_of(one)) ++other;
  cache.place(one) = one;
  cache.place(other) = other;
  EXPECT_EQ(cache.place(one), other);
}

}  // namespace
}  // namespace portofu
