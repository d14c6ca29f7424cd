// What two values of a round come to, and which values there are.

#include "engine/initiator/reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace portofu {
namespace {

GateValue value(ReduceOperation operation, std::initializer_list<std::uint64_t> items) {
  GateValue made;
  made.operation = operation;
  made.item_count = static_cast<std::uint8_t>(items.size());
  std::copy(items.begin(), items.end(), made.items.begin());
  return made;
}

std::uint64_t combined(ReduceOperation operation, std::uint64_t one, std::uint64_t other) {
  GateValue into = value(operation, {one});
  combine(into, value(operation, {other}));
  EXPECT_EQ(into.mismatch, 0);
  return into.items[0];
}

// 3.8.2: utofu_reduce_op.
TEST(Reduction, Operation__is_that_of_its_name) {
  EXPECT_EQ(combined(ReduceOperation::kBand, 6, 12), 4u);
  EXPECT_EQ(combined(ReduceOperation::kBor, 6, 12), 14u);
  EXPECT_EQ(combined(ReduceOperation::kBxor, 6, 12), 10u);
  EXPECT_EQ(combined(ReduceOperation::kMax, 6, 12), 12u);
  EXPECT_EQ(combined(ReduceOperation::kSum, 6, 12), 18u);
}

TEST(Reduction, Items_behind_the_last__are_left_alone) {
  GateValue into = value(ReduceOperation::kSum, {1, 2});
  GateValue other = value(ReduceOperation::kSum, {10, 20});
  other.items[2] = 5;
  combine(into, other);
  EXPECT_EQ(into.items, (std::array<std::uint64_t, kMaxReduceItems>{11, 22}));
}

TEST(Reduction, Maxloc__takes_the_smaller_location_of_equal_values) {
  GateValue into = value(ReduceOperation::kMaxloc, {5, 9, 5, 1, 4, 7});
  combine(into, value(ReduceOperation::kMaxloc, {5, 3, 5, 8, ~0ull, 9}));
  EXPECT_EQ(into.items, (std::array<std::uint64_t, kMaxReduceItems>{5, 3, 5, 1, ~0ull, 9}));
}

TEST(Reduction, Doubles__are_added_unrounded) {
  GateValue into = value(ReduceOperation::kBfpsum, {});
  into.item_count = 2;
  GateValue other = into;
  into.sums[0].add(1e300);
  into.sums[1].add(0.5);
  other.sums[0].add(1.0);
  other.sums[1].add(0.25);
  combine(into, other);
  into.sums[0].add(-1e300);
  EXPECT_EQ(into.sums[0].value(), 1.0);
  EXPECT_EQ(into.sums[1].value(), 0.75);
}

TEST(Reduction, Mismatch__stays_one) {
  for (const GateValue& other : {value(ReduceOperation::kMax, {1}), value(ReduceOperation::kSum, {1, 2})}) {
    GateValue into = value(ReduceOperation::kSum, {1});
    combine(into, other);
    EXPECT_EQ(into.mismatch, 1);
    combine(into, value(ReduceOperation::kSum, {1}));
    EXPECT_EQ(into.mismatch, 1);
    EXPECT_EQ(into.items[0], 1u);
    GateValue good = value(ReduceOperation::kSum, {1});
    combine(good, into);
    EXPECT_EQ(good.mismatch, 1) << "others have told of it";
  }
}

TEST(Reduction, Possible__is_a_known_operation_with_items_that_fit) {
  GateValue one;
  EXPECT_TRUE(is_possible(one));
  for (const int operation : {0, 9}) {
    one.operation = static_cast<ReduceOperation>(operation);
    EXPECT_FALSE(is_possible(one));
  }
  one.operation = ReduceOperation::kSum;
  one.item_count = kMaxReduceItems;
  EXPECT_TRUE(is_possible(one));
  ++one.item_count;
  EXPECT_FALSE(is_possible(one));
  one.operation = ReduceOperation::kBfpsum;
  one.item_count = kMaxReduceSums;
  EXPECT_TRUE(is_possible(one));
  ++one.item_count;
  EXPECT_FALSE(is_possible(one));
}

}  // namespace
}  // namespace portofu
