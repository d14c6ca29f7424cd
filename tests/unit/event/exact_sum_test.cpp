// Sums of doubles: rounded once, whatever the order.

#include "engine/event/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace portofu {
namespace {

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

double sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.value();
}

TEST(ExactSum, Two_values__give_their_ieee_sum) {
  const std::uint64_t seed = 20'261'120;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    const auto exponents = static_cast<std::uint64_t>(i % 3 == 0 ? 0 : random() % 120);
    const std::uint64_t first = random();
    std::uint64_t second = random();
    // Neighbouring exponents: that is where rounding happens.
    if (i % 3 != 0)
      second = (second & ~(std::uint64_t{0x7ff} << 52)) | ((((first >> 52) & 0x7ff) + exponents) % 2047) << 52;
    const double a = std::bit_cast<double>(first), b = std::bit_cast<double>(second);
    const double expected = a + b;
    const double got = sum_of({a, b});
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      ASSERT_EQ(bits_of(got), bits_of(expected)) << a << " + " << b;
    }
  }
}

TEST(ExactSum, Edges__are_those_of_ieee) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(bits_of(sum_of({-0.0, -0.0})), bits_of(-0.0));
  EXPECT_EQ(bits_of(sum_of({-0.0, 0.0})), bits_of(0.0));
  EXPECT_EQ(bits_of(sum_of({1.5, -1.5})), bits_of(0.0));
  EXPECT_EQ(sum_of({tiny, tiny}), 2 * tiny);
  EXPECT_EQ(sum_of({huge, huge}), infinity);
  EXPECT_EQ(sum_of({huge, huge, -huge}), huge);
  EXPECT_EQ(sum_of({-infinity, 1}), -infinity);
  EXPECT_TRUE(std::isnan(sum_of({-infinity, infinity})));
}

TEST(ExactSum, Any_order_and_grouping__gives_the_same_bits) {
  const std::uint64_t seed = 4711;
  std::mt19937_64 random(seed);
  std::vector<double> values;
  for (int i = 0; i < 100; ++i)
    values.push_back(std::ldexp(static_cast<double>(random()) - 9e18, static_cast<int>(random() % 300) - 150));
  const double expected = sum_of(values);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    ExactSum left, right;
    const std::size_t cut = random() % values.size();
    for (std::size_t i = 0; i < values.size(); ++i) (i < cut ? left : right).add(values[i]);
    left.add(right);
    EXPECT_EQ(bits_of(left.value()), bits_of(expected)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace portofu
