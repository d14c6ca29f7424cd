// Which way is chosen for which costs.

#include "engine/wire/shm/way_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/queue/ring_geometry.h"
#include "engine/wire/shm/copy_cost.h"

namespace portofu {
namespace {

/// Two ways, what they cost for 64 KiB, and a stream of whole packets that go one of them.
class Ways {
 public:
  std::uint64_t area_ns = 2200;
  std::uint64_t kernel_ns = 3000;
  std::uint64_t cold_chunks = 0;  ///< Of the area, behind the last copy of the kernel: they cost cold_ns.
  std::uint64_t cold_ns = 0;

  /// @return of so many MiB in the longest packets, the MiB that the kernel has copied
  std::uint64_t send(WayChoice& choice, std::uint64_t mib) {
    std::uint64_t by_kernel = 0;
    for (std::uint64_t left = mib << 20; left > 0;) {
      const std::uint32_t most = choice.most_bytes();
      const bool kernel = choice.choose({area_.ns(), kernel_.ns()}, {.bytes = most, .last = false});
      const std::uint32_t bytes = kernel ? most : kAreaChunkBytes;
      if (kernel) {
        kernel_.note(kernel_ns * bytes / 65536, bytes);
        by_kernel += bytes;
        warm_ = 0;
      } else {
        area_.note((warm_ < cold_chunks ? cold_ns : area_ns) * bytes / 65536, bytes);
        ++warm_;
      }
      left -= std::min<std::uint64_t>(left, bytes);
    }
    return by_kernel >> 20;
  }

 private:
  CopyCost<8> area_;
  CopyCost<4> kernel_;
  std::uint64_t warm_ = 1 << 20;  ///< Chunks in a row that have gone by the area.
};

struct WayChoiceTest : ::testing::Test {
  Ways ways;
  WayChoice choice;
};

TEST_F(WayChoiceTest, Cheaper_area__takes_all_but_trials) {
  EXPECT_LE(ways.send(choice, 1000), 30u) << "one packet in 32 MiB, in the beginning more";
  EXPECT_FALSE(choice.prefers_kernel());
}

TEST_F(WayChoiceTest, Cheaper_kernel__takes_all_but_trials) {
  ways.area_ns = 5000;
  EXPECT_GE(ways.send(choice, 1000), 980u);
  EXPECT_TRUE(choice.prefers_kernel());
}

TEST_F(WayChoiceTest, Little_cheaper_kernel__is_not_worth_a_change) {
  ways.area_ns = 3200;
  ways.send(choice, 1000);
  EXPECT_FALSE(choice.prefers_kernel());
}

TEST_F(WayChoiceTest, Costs_that_change__are_followed) {
  for (int i = 0; i < 10; ++i) {
    ways.area_ns = i % 2 != 0 ? 6000 : 2200;
    ways.send(choice, 300);
    EXPECT_EQ(choice.prefers_kernel(), i % 2 != 0) << i;
  }
}

TEST_F(WayChoiceTest, Area_that_is_dear_only_at_first__is_found_again) {
  ways.area_ns = 5000;
  ways.send(choice, 100);
  ASSERT_TRUE(choice.prefers_kernel());
  ways.area_ns = 2200;
  ways.cold_chunks = 100;
  ways.cold_ns = 3600;
  ways.send(choice, 300);
  EXPECT_FALSE(choice.prefers_kernel()) << "a short trial sees the first chunks only";
}

TEST_F(WayChoiceTest, Twice_as_dear__is_tried_rarely) {
  ways.area_ns = 20'000;
  ways.send(choice, 100);
  EXPECT_GE(ways.send(choice, 10'000), 9980u);
}

TEST_F(WayChoiceTest, Kernel_whose_cost_is_not_known__is_tried_no_more_rarely) {
  std::uint64_t sent = 0, tried = 0;
  while (sent < std::uint64_t{1} << 30) {
    const bool kernel = choice.choose({.area = 2200, .kernel = 0}, {.bytes = kMostTriedBytes, .last = false});
    sent += kernel ? kMostTriedBytes : kAreaChunkBytes;
    if (kernel) ++tried;
  }
  EXPECT_GE(tried, 60u);
}

TEST_F(WayChoiceTest, Packets_longer_than_a_trial__miss_none) {
  ways.area_ns = 5000;
  ways.send(choice, 100);
  ASSERT_TRUE(choice.prefers_kernel());
  std::uint64_t sent = 0, tried = 0;
  while (sent < std::uint64_t{1} << 30) {
    constexpr std::uint32_t kOddBytes = kMostLentBytes - 3 * kAreaChunkBytes;
    const bool kernel = choice.choose({.area = 5000, .kernel = 3000}, {.bytes = kOddBytes, .last = false});
    sent += kernel ? kOddBytes : kAreaChunkBytes;
    if (!kernel) ++tried;
  }
  EXPECT_GE(tried, 31 * WayChoice::kTrial) << "32 MiB between two";
}

TEST_F(WayChoiceTest, Rest_of_a_message_that_began_by_the_area__stays_there) {
  ways.send(choice, 100);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_FALSE(choice.choose({.area = 9000, .kernel = 1000}, {.bytes = 65'535, .offset = 8192, .last = true}));
  }
}

}  // namespace
}  // namespace portofu
