#include "engine/initiator/direct.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

/// A region as a peer has published it, and its words in shared memory.
struct Published {
  std::atomic<std::uint64_t> sequence{4};
  std::atomic<std::uint64_t> visited{0};
  alignas(8) std::byte memory[64]{};

  MappedRegion region(bool writable = true, bool readable = true, std::uint32_t user = 7) {
    return {.memory = memory,
            .bytes = sizeof memory,
            .writable = writable,
            .readable = readable,
            .user = user,
            .sequence = &sequence,
            .seen = 4,
            .visited = &visited};
  }
};

TEST(Direct, Region__may_be_used_within_its_bounds) {
  Published published;
  const MappedRegion region = published.region();
  EXPECT_TRUE(may_use(region, {.user = 7, .offset = 0, .bytes = 64, .writes = true}));
  EXPECT_TRUE(may_use(region, {.user = 7, .offset = 63, .bytes = 1, .reads = true}));
  EXPECT_FALSE(may_use(region, {.user = 7, .offset = 1, .bytes = 64, .writes = true}));
  EXPECT_FALSE(may_use(region, {.user = 7, .offset = UINT64_MAX, .bytes = 2, .writes = true}));
  EXPECT_FALSE(may_use(region, {.user = 7, .offset = 0, .bytes = 0, .writes = true})) << "for packets to complete";
}

TEST(Direct, Region__may_be_used_by_whom_it_is_for) {
  Published published;
  EXPECT_FALSE(may_use(published.region(), {.user = 8, .bytes = 1, .writes = true}));
  EXPECT_TRUE(may_use(published.region(true, true, kUidAny), {.user = 8, .bytes = 1, .writes = true}));
}

TEST(Direct, Region__may_be_used_as_its_owner_lets) {
  Published published;
  EXPECT_FALSE(may_use(published.region(false, true), {.user = 7, .bytes = 1, .writes = true}));
  EXPECT_TRUE(may_use(published.region(false, true), {.user = 7, .bytes = 1, .reads = true}));
  EXPECT_FALSE(may_use(published.region(true, false), {.user = 7, .bytes = 1, .reads = true}));
  EXPECT_TRUE(may_use(published.region(true, false), {.user = 7, .bytes = 1, .writes = true}));
}

TEST(Direct, Visit__says_what_is_in_use_until_it_ends) {
  Published published;
  {
    const Visit visit(42, published.region());
    EXPECT_TRUE(visit.is_allowed());
    EXPECT_EQ(published.visited.load(), 42u);
  }
  EXPECT_EQ(published.visited.load(), 0u);
}

TEST(Direct, Visit__is_not_allowed_once_the_owner_has_taken_the_region_back) {
  Published published;
  published.sequence = 6;
  const Visit visit(42, published.region());
  EXPECT_FALSE(visit.is_allowed());
}

TEST(Direct, Atomic__is_done_here_only_if_it_is_atomic_for_all) {
  Published published;
  Descriptor d{};
  d.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  d.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
  const std::uint64_t five = 5;
  std::uint64_t old = 1;
  AtomicRequest request = atomic_of(d, published.memory);
  request.source = reinterpret_cast<const std::byte*>(&five);
  request.fetched = reinterpret_cast<std::byte*>(&old);
  EXPECT_TRUE(compute(request));
  EXPECT_EQ(old, 0u);
  EXPECT_EQ(published.memory[0], std::byte{5});
  request.target = published.memory + 1;
  EXPECT_FALSE(compute(request)) << "not aligned";
  d.atomic_type = 0;
  EXPECT_FALSE(compute(atomic_of(d, published.memory))) << "no type";
}

}  // namespace
}  // namespace portofu
