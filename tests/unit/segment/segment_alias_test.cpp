// Further names of a segment: who has one, and what becomes of it.

#include "engine/segment/segment_alias.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

struct SegmentAliasTest : ::testing::Test {
  SegmentDirectory directory;
  std::unique_ptr<ProcessSegment> mine = directory.create(7);
  std::unique_ptr<ProcessSegment> other = directory.create(8);
  NameOwner owner;
};

TEST_F(SegmentAliasTest, Key__belongs_to_the_first_that_claims_it) {
  EXPECT_FALSE(find_alias(*mine, 5, &owner));
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  EXPECT_EQ(claim_alias(*other, 5), AliasResult::kTaken);
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kTaken);
  EXPECT_EQ(claim_alias(*other, 6), AliasResult::kClaimed);
  ASSERT_TRUE(find_alias(*other, 5, &owner));
  EXPECT_EQ(owner, mine->id());
  ASSERT_TRUE(find_alias(*mine, 6, &owner));
  EXPECT_EQ(owner, other->id());
}

TEST_F(SegmentAliasTest, Released_key__is_free_and_only_its_owner_releases_it) {
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  release_alias(*other, 5);
  EXPECT_TRUE(find_alias(*other, 5, &owner));
  release_alias(*mine, 5);
  EXPECT_FALSE(find_alias(*other, 5, &owner));
  EXPECT_EQ(claim_alias(*other, 5), AliasResult::kClaimed);
}

TEST_F(SegmentAliasTest, Names__go_with_their_segment) {
  const std::size_t before = directory.name_count();
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  EXPECT_EQ(claim_alias(*mine, 6), AliasResult::kClaimed);
  EXPECT_EQ(directory.name_count(), before + 2);
  mine.reset();
  EXPECT_EQ(directory.name_count(), before - 1);
  EXPECT_FALSE(find_alias(*other, 5, &owner));
}

TEST_F(SegmentAliasTest, Key_of_the_dead__is_nobodys) {
  const int status = in_dying_child([this] {
    auto child = directory.create(9);
    const bool claimed = child != nullptr && claim_alias(*child, 5) == AliasResult::kClaimed;
    return child.release() != nullptr && claimed ? 0 : 1;
  });
  ASSERT_EQ(status, 0);
  EXPECT_FALSE(find_alias(*mine, 5, &owner));
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
}

TEST_F(SegmentAliasTest, Other_process__finds_the_owner) {
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  const int status = in_dying_child([this] {
    auto child = directory.create(9);
    NameOwner found;
    const bool good = child != nullptr && find_alias(*child, 5, &found) && found == mine->id() &&
                      claim_alias(*child, 5) == AliasResult::kTaken;
    child.release();
    return good ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(find_alias(*other, 5, &owner)) << "The look of another process has not dropped the lock.";
}

TEST_F(SegmentAliasTest, Jobs__do_not_see_each_others_keys) {
  SegmentOptions options = directory.options(10);
  options.job_key = 99;
  SegmentError error{};
  const auto foreign = ProcessSegment::create(options, &error, nullptr);
  ASSERT_NE(foreign, nullptr);
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  EXPECT_FALSE(find_alias(*foreign, 5, &owner));
  EXPECT_EQ(claim_alias(*foreign, 5), AliasResult::kClaimed);
}

TEST_F(SegmentAliasTest, Name__is_known_as_an_alias_and_leads_nowhere_if_it_is_no_segment) {
  const std::string path = alias_path(directory.path(), mine->job_key(), 5);
  EXPECT_TRUE(is_alias_name(std::filesystem::path(path).filename()));
  EXPECT_FALSE(is_alias_name(std::filesystem::path(mine->path()).filename()));
  std::filesystem::create_directory(path);
  EXPECT_FALSE(find_alias(*mine, 5, &owner));
}

}  // namespace
}  // namespace portofu
