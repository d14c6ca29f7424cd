// When the names word moves, and what moves with it.

#include "engine/segment/names_word.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/segment/peer_segment.h"
#include "engine/segment/segment_alias.h"
#include "engine/segment/segment_creation.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

struct NamesWordTest : ::testing::Test {
  std::shared_ptr<PeerSegment> attach(std::uint32_t pid) const {
    std::shared_ptr<PeerSegment> peer;
    EXPECT_EQ(PeerSegment::attach(directory.path(), {kTestNid, pid}, &peer), AttachResult::kAttached);
    return peer;
  }
  static std::uint64_t names_of(PeerSegment& peer) { return peer.control().doorbell.names.load(); }

  SegmentDirectory directory;
  std::unique_ptr<ProcessSegment> mine = directory.create(7);
  std::unique_ptr<ProcessSegment> other = directory.create(8);
  FoundRegion found;
};

TEST_F(NamesWordTest, Lives__begin_with_different_words_that_may_be_remembered) {
  EXPECT_NE(mine->doorbell().names.load(), other->doorbell().names.load());
  EXPECT_EQ(mine->doorbell().names.load() % 2, 0u);
  EXPECT_NE(mine->doorbell().names.load(), kNamesMoving);
}

TEST_F(NamesWordTest, Key__is_found_with_the_word_which_moves_when_it_is_given_up) {
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  NameOwner owner;
  ASSERT_TRUE(find_alias(*other, 5, &owner));
  EXPECT_EQ(owner, mine->id());
  EXPECT_EQ(owner.names, mine->doorbell().names.load());
  ASSERT_EQ(claim_alias(*mine, 6), AliasResult::kClaimed);
  EXPECT_EQ(owner.names, mine->doorbell().names.load()) << "nobody has lost a name";
  release_alias(*other, 5);
  EXPECT_EQ(owner.names, mine->doorbell().names.load()) << "it was not theirs";
  release_alias(*mine, 5);
  EXPECT_NE(owner.names, mine->doorbell().names.load());
  EXPECT_EQ(mine->doorbell().names.load() % 2, 0u);
  ASSERT_EQ(claim_alias(*other, 5), AliasResult::kClaimed);
  ASSERT_TRUE(find_alias(*mine, 5, &owner));
  EXPECT_EQ(owner.names, other->doorbell().names.load());
}

TEST_F(NamesWordTest, Key_that_is_found_while_a_name_is_taken_away__is_not_remembered) {
  ASSERT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  const NamesChange change(mine->doorbell().names);
  NameOwner owner;
  ASSERT_TRUE(find_alias(*other, 5, &owner));
  EXPECT_EQ(owner.names, kNamesMoving);
}

TEST_F(NamesWordTest, End__moves_the_word_and_withdraws_what_is_listed) {
  const auto seen = attach(7);
  ASSERT_TRUE(publish_region(mine->regions(), {.key = region_key(1, 2), .start = 4096, .bytes = 8}));
  ASSERT_TRUE(find_published_region(seen->regions(), region_key(1, 2), &found));
  const std::uint64_t before = names_of(*seen);
  EXPECT_FALSE(seen->is_replaced());
  mine.reset();
  EXPECT_NE(names_of(*seen), before);
  EXPECT_EQ(names_of(*seen) % 2, 0u);
  EXPECT_NE(found.sequence->load(), found.seen);
  EXPECT_FALSE(find_published_region(seen->regions(), region_key(1, 2), &found));
  EXPECT_FALSE(seen->is_replaced()) << "nobody has it";
  mine = directory.create(7);
  EXPECT_TRUE(seen->is_replaced());
}

/// A child makes a segment, claims 5, lists a region, and dies when the test has attached.
struct Dying {
  explicit Dying(const SegmentDirectory& directory) {
    EXPECT_EQ(pipe(to_), 0);
    EXPECT_EQ(pipe(from_), 0);
    child_ = fork();
    if (child_ != 0) return;
    char byte = 0;
    auto segment = directory.create(9);
    const bool made = segment != nullptr && claim_alias(*segment, 5) == AliasResult::kClaimed &&
                      publish_region(segment->regions(), {.key = region_key(1, 2), .start = 4096, .bytes = 8});
    if (!made || write(from_[1], &byte, 1) != 1 || read(to_[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  ~Dying() {
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) close(fd);
  }
  void await() const {
    char byte = 0;
    ASSERT_EQ(read(from_[0], &byte, 1), 1);
  }
  void die() const {
    const char byte = 0;
    ASSERT_EQ(write(to_[1], &byte, 1), 1);
    int status = 0;
    waitpid(child_, &status, 0);
    EXPECT_EQ(status, 0);
  }

 private:
  int to_[2]{};
  int from_[2]{};
  pid_t child_ = -1;
};

/// Of a process that is dead when the test begins, and was seen before.
struct NamesOfTheDeadTest : NamesWordTest {
  void SetUp() override {
    dying.await();
    seen = attach(9);
    ASSERT_TRUE(find_published_region(seen->regions(), region_key(1, 2), &found));
    before = names_of(*seen);
    dying.die();
  }
  /// Who remembers its names, and who uses memory, which looks at the sequence only.
  void expect_that_all_see_it() {
    EXPECT_NE(names_of(*seen), before);
    EXPECT_EQ(names_of(*seen) % 2, 0u);
    EXPECT_NE(found.sequence->load(), found.seen);
    EXPECT_FALSE(find_published_region(seen->regions(), region_key(1, 2), &found));
  }

  const Dying dying{directory};
  std::shared_ptr<PeerSegment> seen;
  std::uint64_t before = 0;
};

TEST_F(NamesOfTheDeadTest, Words__move_with_whoever_removes_one) {
  EXPECT_EQ(names_of(*seen), before);
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  expect_that_all_see_it();
  const std::uint64_t after = names_of(*seen);
  EXPECT_FALSE(seen->is_replaced());
  const auto next = directory.create(9);
  ASSERT_NE(next, nullptr);
  EXPECT_NE(names_of(*seen), after) << "the PID is another's";
  EXPECT_TRUE(seen->is_replaced());
}

// Beyond RLIMIT_FSIZE the kernel ends who writes to the middle of a file, too (SIGXFSZ): setrlimit(2).
TEST_F(NamesOfTheDeadTest, Words__move_with_whoever_may_write_short_files_only) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit small{1, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  expect_that_all_see_it();
}

// Those who remember its names may be of its version.
TEST_F(NamesOfTheDeadTest, Words_of_another_version__move_too) {
  become_unknown(segment_path(directory.path(), {kTestNid, 9}));
  EXPECT_EQ(claim_alias(*mine, 5), AliasResult::kClaimed);
  expect_that_all_see_it();
  const std::uint64_t after = names_of(*seen);
  EXPECT_GT(remove_dead_segments(directory.path()), 0);
  EXPECT_NE(names_of(*seen), after) << "its PID is no longer its own either";
}

TEST_F(NamesWordTest, File_that_is_no_segment__is_left_alone) {
  const std::string path = directory.path() + "/portofu-no-segment";
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, "text", 4), 4);
  { const LastNamesChange change(fd); }
  EXPECT_EQ(lseek(fd, 0, SEEK_END), 4);
  EXPECT_EQ(read_names(fd), kNamesMoving);
  close(fd);
}

}  // namespace
}  // namespace portofu
