#include "engine/inspect/inspection_root.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(InspectionRoot, Stamp__is_the_same_each_time_and_not_that_of_zeroed_memory) {
  EXPECT_EQ(layout_stamp(), layout_stamp());
  EXPECT_NE(layout_stamp(), InspectionRoot{}.stamp);
}

}  // namespace
}  // namespace portofu
