#include "engine/topology/node_shape.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace portofu {
namespace {

NodeShape shape_of(std::string_view text) {
  const auto shape = NodeShape::parse(text);
  EXPECT_TRUE(shape) << text;
  return shape.value_or(NodeShape{});
}

TEST(NodeShape, One_to_three_numbers__are_a_shape) {
  EXPECT_EQ(shape_of("12").count(), 12u);
  EXPECT_EQ(shape_of("4x3").count(), 12u);
  EXPECT_EQ(shape_of("2x3x2").count(), 12u);
  EXPECT_EQ(shape_of("512x768x512").count(), 512u * 768 * 512);
  for (const char* text : {"", "x", "0", "2x", "x2", "2x0x2", "2x3x2x2", "-2", "2 x3", "2x3 ", "2,3", "513", "1x769",
                           "1x1x513", "99999999999"}) {
    EXPECT_FALSE(NodeShape::parse(text)) << text;
  }
}

TEST(NodeShape, Six_numbers__are_the_torus_itself) {
  const NodeShape shape = shape_of("2x3x2x2x3x2");
  ASSERT_EQ(shape.count(), 144u);
  EXPECT_EQ(shape.coordinates(1), (Coordinates{1, 0, 0, 0, 0, 0})) << "along X first";
  EXPECT_EQ(shape.coordinates(2), (Coordinates{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(shape.coordinates(12), (Coordinates{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(shape.coordinates(143), (Coordinates{1, 2, 1, 1, 2, 1}));
  std::set<Coordinates> seen;
  for (std::uint32_t number = 0; number < shape.count(); ++number) {
    EXPECT_TRUE(is_coordinates(shape.coordinates(number))) << number;
    EXPECT_TRUE(seen.insert(shape.coordinates(number)).second) << number;
  }
  EXPECT_EQ(shape_of("256x1x1x1x1x1").coordinates(255), (Coordinates{255, 0, 0, 0, 0, 0}));
  for (const char* text : {"2x3x2x2", "2x3x2x2x3", "1x1x1x3x1x1", "1x1x1x1x4x1", "1x1x1x1x1x3", "257x1x1x1x1x1",
                           "1x1x1x1x1x0", "1x1x1x1x1x1x1"}) {
    EXPECT_FALSE(NodeShape::parse(text)) << text;
  }
}

TEST(NodeShape, Group_of_twelve__is_one_group) {
  const NodeShape shape = shape_of("2x3x2");
  EXPECT_EQ(shape.coordinates(0), (Coordinates{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(shape.coordinates(1), (Coordinates{0, 0, 0, 1, 0, 0})) << "along the first side first";
  EXPECT_EQ(shape.coordinates(2), (Coordinates{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(shape.coordinates(11), (Coordinates{0, 0, 0, 1, 2, 1}));
}

TEST(NodeShape, Line__is_a_snake_in_two_axes) {
  const NodeShape shape = shape_of("6");
  EXPECT_EQ(shape.coordinates(1), (Coordinates{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(shape.coordinates(2), (Coordinates{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(shape.coordinates(3), (Coordinates{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(shape.coordinates(4), (Coordinates{2, 0, 0, 0, 0, 0}));
}

/// Links that a packet crosses between two nodes, without those that close a ring.
int hops(const Coordinates& a, const Coordinates& b) {
  int sum = 0;
  for (std::size_t axis = 0; axis < a.size(); ++axis) sum += std::abs(int{a[axis]} - int{b[axis]});
  return sum;
}

TEST(NodeShape, Neighbours__are_a_hop_apart_and_no_place_is_shared) {
  const NodeShape shape = shape_of("7x8x9");
  std::set<Coordinates> seen;
  const std::uint32_t steps[] = {1, 7, 7 * 8};
  for (std::uint32_t number = 0; number < shape.count(); ++number) {
    const Coordinates at = shape.coordinates(number);
    ASSERT_TRUE(is_coordinates(at)) << number;
    ASSERT_TRUE(seen.insert(at).second) << number;
    for (std::size_t side = 0; side < 3; ++side) {
      if (number / steps[side] % shape.sides[side] == shape.sides[side] - 1) continue;
      ASSERT_EQ(hops(at, shape.coordinates(number + steps[side])), 1) << number;
    }
  }
}

}  // namespace
}  // namespace portofu
