#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

/// Rank 2 tries to swap a word of rank 0 in vain, and rank 1 has changed it.
class WordFindings : public testing::Test {
 protected:
  WordFindings() {
    job_[0].core.words.push_back({{kWord, job_id(1), 0, 0, 7}, false});
    job_[0].core.words.push_back({{kWord, job_id(2), 9, 1, 3}, true});
  }
  std::vector<Finding> find() const { return found_in(job_, find_held_words); }

  static constexpr SwappedWord kWord{8, 0x10, 4, 1};
  std::vector<ProcessPicture> job_ = made_up_job(3);
};

TEST_F(WordFindings, Who_tries_in_vain__is_told_with_who_has_changed_the_word_last) {
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kWordHeld);
  EXPECT_EQ(found[0].where, job_id(2));
  EXPECT_EQ(found[0].other, job_id(1));
  EXPECT_EQ(found[0].object, "the word at offset 8 of portal table entry 4, bits 0x10 of rank 0");
  EXPECT_NE(found[0].sentence.find("the last atomic operation that changed it was one of rank 1"), std::string::npos)
      << found[0].sentence;
}

TEST_F(WordFindings, Word_of_a_list_entry__has_no_bits) {
  for (auto& word : job_[0].core.words) word.use.word.interface_index = 0;
  EXPECT_EQ(find()[0].object, "the word at offset 8 of portal table entry 4 of rank 0");
}

TEST_F(WordFindings, Own_lock__that_is_taken_once_more_is_told) {
  job_[0].core.words[1].use.changed = 8;
  EXPECT_TRUE(
      find()[0].sentence.ends_with(", and has found another value 9 times; the last atomic operation that "
                                   "changed it was one of its own"))
      << find()[0].sentence;
}

TEST_F(WordFindings, Locks__that_two_have_taken_crosswise_are_a_circle) {
  EXPECT_TRUE(found_in(job_, find_circles).empty()) << "rank 1 waits for nobody";
  job_[1].core.words.push_back({{kWord, job_id(2), 0, 0, 4}, false});
  job_[1].core.words.push_back({{kWord, job_id(1), 9, 1, 2}, true});
  const std::vector<Finding> found = found_in(job_, find_circles);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].sentence, "rank 1 waits for a lock of rank 2, which waits for a lock of rank 1: a circle of 2");
  job_[1].core.words[0].use.changed = 5;
  EXPECT_TRUE(keep_lasting(found, found_in(job_, find_circles)).empty()) << "one has been given on";
}

TEST_F(WordFindings, Word__that_changes_between_two_looks_is_not_told) {
  const std::vector<Finding> before = find();
  job_[0].core.words[0].use.changed = 8;
  EXPECT_TRUE(keep_lasting(before, find()).empty());
}

TEST_F(WordFindings, Swaps__that_have_ended_are_not_told) {
  std::vector<ProcessPicture> before = job_;
  job_[0].core.words[1].use.vain = 12;
  note_changes(before, &job_);
  EXPECT_EQ(find().size(), 1u);
  note_changes(std::vector(job_), &job_);
  EXPECT_TRUE(find().empty());
}

}  // namespace
}  // namespace portofu
