// The labels are an interface to tools; the additions must reach the shared memory.

#include "engine/observe/counters.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace portofu {
namespace {

TEST(Counters, Add__reaches_the_shared_value) {
  CountersShared shared{};
  Counters counters(shared);
  counters.add(Counter::kPutsSent);
  counters.add(Counter::kBytesSent, 4096);
  counters.add(Counter::kBytesSent, 1);
  EXPECT_EQ(counters.get(Counter::kPutsSent), 1u);
  EXPECT_EQ(shared.values[static_cast<std::size_t>(Counter::kBytesSent)].load(), 4097u);
  EXPECT_EQ(counters.get(Counter::kGetsSent), 0u);
}

TEST(CounterTable, Labels__are_unique_and_in_snake_case) {
  std::set<std::string> labels;
  for (const CounterRow& row : counter_table()) {
    const std::string label = row.label;
    EXPECT_TRUE(labels.insert(label).second) << label;
    EXPECT_EQ(label.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << label;
    EXPECT_NE(*row.unit, '\0') << label;
  }
  EXPECT_EQ(labels.size(), kCounterCount);
}

}  // namespace
}  // namespace portofu
