#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

/// Rank 1 waits at portal table entry 4.
class UnmatchedFindings : public testing::Test {
 protected:
  UnmatchedFindings() {
    target_.polls = true;
    add_portal(target_, 4);
  }

  std::vector<Finding> find() const {
    const JobView view(job_);
    std::vector<Finding> findings;
    find_unmatched(view, &findings);
    find_full_queues(view, &findings);
    return findings;
  }
  PortalPicture& portal() { return interface_in(target_).portals.front(); }

  std::vector<ProcessPicture> job_ = made_up_job(3);
  ProcessPicture& target_ = job_[1];
};

TEST_F(UnmatchedFindings, Header__is_told_with_the_nearest_entry) {
  add_entry(portal(), 0xff00);
  add_entry(portal(), 0x10);
  add_header(portal(), 0x11, job_id(0));
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kHeaderWaits);
  EXPECT_EQ(found[0].differing, 1u);
  EXPECT_EQ(
      found[0].sentence,
      "a header of rank 0 (bits 0x11) waits unexpected at rank 1, portal table entry 4; the nearest entry differs "
      "in bit 0 (0x11 instead of 0x10)");
  target_.polls = false;
  EXPECT_TRUE(find().empty()) << "nobody waits for it yet";
}

TEST_F(UnmatchedFindings, Ignored_bits__do_not_differ_and_sources_may) {
  add_entry(portal(), 0x10, job_id(2), 1);
  add_header(portal(), 0x11, job_id(0));
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].differing, 0u);
  EXPECT_TRUE(found[0].sentence.ends_with("; the nearest entry wants a message of rank 2")) << found[0].sentence;
}

TEST_F(UnmatchedFindings, Header__that_matches_elsewhere_is_at_the_wrong_entry) {
  add_header(portal(), 0x11, job_id(0));
  ASSERT_EQ(find().size(), 1u);
  EXPECT_TRUE(find()[0].sentence.ends_with("; no entry is posted there"));
  add_header(portal(), 0x12, job_id(2));
  ASSERT_EQ(find().size(), 1u) << "one line for all of them";
  EXPECT_EQ(find()[0].lacks, 2u);
  EXPECT_EQ(find()[0].other, job_id(0)) << "the first";
  portal().unexpected.items.pop_back();
  add_entry(add_portal(target_, 7), 0x11);
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].sentence.ends_with("; an entry that it matches is posted at portal table entry 7"));
}

TEST_F(UnmatchedFindings, Header__that_a_search_misses_again_and_again_is_told_with_its_bits) {
  add_header(portal(), 0x10, job_id(0));
  portal().missed = {0x12, 0, job_id(2), false, false};
  portal().searches = true;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].differing, 2u);
  EXPECT_EQ(found[0].wanted, 0x12u);
  EXPECT_TRUE(found[0].sentence.ends_with(
      "; the search there differs in bit 1 (0x10 instead of 0x12) and wants a message of rank 2"))
      << found[0].sentence;
}

TEST_F(UnmatchedFindings, Search__that_finds_nothing_is_told_with_the_entry_that_takes_such_messages) {
  portal().missed = {0x12, 0, job_id(2), false, false};
  portal().searches = true;
  add_entry(portal(), 0x20);
  ASSERT_EQ(find().size(), 1u);
  EXPECT_EQ(find()[0].kind, FindingKind::kSearchLacks);
  EXPECT_EQ(find()[0].sentence,
            "rank 1 searches again and again at portal table entry 4 for a header with bits 0x12 of rank 2, where none "
            "waits");
  add_entry(portal(), 0x10, {}, 0xf);
  EXPECT_TRUE(find()[0].sentence.ends_with("that takes such messages (bits 0x10, ignore 0xf)")) << find()[0].sentence;
}

TEST_F(UnmatchedFindings, Message_to_an_interface_that_is_not_open__is_told_with_those_that_are) {
  RefusedMessage& astray = target_.core.last_astray;
  astray = {RefusedFor::kNoPortal, 4, job_id(0).pid, kJobNid, 0, 1};
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kMessageRefused);
  EXPECT_EQ(found[0].other, job_id(0));
  EXPECT_EQ(found[0].object, "non-matching, physical interface");
  EXPECT_TRUE(
      found[0].sentence.ends_with("at rank 1, which has no non-matching, physical interface open, but a "
                                  "matching, physical interface"))
      << found[0].sentence;
  astray.interface_index = static_cast<std::uint8_t>(interface_in(target_).index);
  EXPECT_TRUE(find().empty()) << "it has been opened since";
}

TEST_F(UnmatchedFindings, Refusals__are_told_while_somebody_waits) {
  add_entry(portal(), 0x10);
  interface_in(target_).last_refused = {RefusedFor::kNoMatch, 4, job_id(0).pid, kJobNid, 0x12, 1};
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kMessageRefused);
  EXPECT_EQ(found[0].differing, 2u);
  target_.polls = false;
  EXPECT_TRUE(find().empty());
  job_[0].polls = true;
  EXPECT_EQ(find().size(), 1u) << "its initiator waits";
  job_[0].polls = false;
  job_[2].polls = true;
  EXPECT_EQ(find().size(), 1u) << "it may have been meant for a third process";
}

TEST_F(UnmatchedFindings, Operations__that_reached_nobody_are_told_with_whom_they_were_for) {
  interface_in(job_[0]).undelivered = {{kJobNid, 333}, 1, 4};
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNotDelivered);
  EXPECT_EQ(found[0].where, job_id(0));
  EXPECT_EQ(found[0].other, (ProcessId{kJobNid, 333}));
  EXPECT_TRUE(found[0].sentence.starts_with("operations of rank 0 that did not come to their target: 4; the last, "))
      << found[0].sentence;
  EXPECT_NE(found[0].sentence.find(" was for PID 333, and no process of this job has that PID now"), std::string::npos)
      << found[0].sentence;
  interface_in(job_[0]).undelivered.target = job_id(2);
  EXPECT_TRUE(find()[0].sentence.ends_with(" was for rank 2")) << find()[0].sentence;
  target_.polls = false;
  EXPECT_TRUE(find().empty());
}

TEST_F(UnmatchedFindings, Entry__without_room_that_does_not_truncate_is_told_with_its_room) {
  EntryPicture& entry = add_entry(portal(), 0x10);
  entry.length = 64;
  interface_in(target_).last_refused = {RefusedFor::kNoMatch, 4, job_id(0).pid, kJobNid, 0x10, 1, 40};
  EXPECT_TRUE(find().at(0).sentence.ends_with("; an entry that it matches is posted there now"));
  entry.options = kEntryNoTruncate | kEntryManageLocal;
  entry.used = 48;
  add_header(portal(), 0x10, job_id(0));
  portal().unexpected.items[0].rlength = 17;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, FindingKind::kHeaderWaits);
  const std::string room = "; the nearest entry has room for 16 bytes and does not truncate (PTL_ME_NO_TRUNCATE), and ";
  EXPECT_TRUE(found[0].sentence.ends_with(room + "the message has 17")) << found[0].sentence;
  EXPECT_TRUE(found[1].sentence.ends_with(room + "the message has 40")) << found[1].sentence;
}

TEST_F(UnmatchedFindings, Offset__beyond_which_an_entry_has_no_room_is_told) {
  EntryPicture& entry = add_entry(portal(), 0x10);
  entry.length = 64;
  entry.options = kEntryNoTruncate;
  add_header(portal(), 0x10, job_id(0));
  portal().unexpected.items[0].rlength = 64;
  EXPECT_TRUE(find().empty()) << "it came a moment ago";
  portal().unexpected.items[0].offset = 1;
  EXPECT_TRUE(
      find().at(0).sentence.ends_with("has room for 63 bytes at offset 1 and does not truncate "
                                      "(PTL_ME_NO_TRUNCATE), and the message has 64"));
  portal().unexpected.items.clear();
  interface_in(target_).last_refused = {RefusedFor::kNoMatch, 4, job_id(0).pid, kJobNid, 0x10, 1, 8, 0, 65};
  EXPECT_TRUE(
      find().at(0).sentence.ends_with("has room for 0 bytes at offset 65 and does not truncate "
                                      "(PTL_ME_NO_TRUNCATE), and the message has 8"));
  portal().priority.items[0].origin = 64;
  EXPECT_TRUE(find().at(0).sentence.ends_with("; an entry that it matches is posted there now"));
}

/// Of libfabric: endpoint 1 has the portal table entries 4 (tagged), 5 (other messages) and 6 (memory).
TEST_F(UnmatchedFindings, Message_of_libfabric__is_told_by_its_tag_and_the_receive) {
  interface_in(target_).index = kFabricInterface;
  add_header(portal(), 0x110, job_id(0));
  EXPECT_TRUE(find().at(0).sentence.ends_with("; no receive is posted there")) << find()[0].sentence;
  add_entry(portal(), 0x100, {}, 0xf);
  EXPECT_EQ(find().at(0).sentence,
            "a message of rank 0 (tag 0x110) waits unexpected at rank 1, fi_trecv of endpoint 1; the nearest receive "
            "differs in bit 4 (0x110 instead of 0x100, ignore 0xf)");
  add_portal(target_, 5);
  add_header(interface_in(target_).portals[1], 0, job_id(0));
  portal().unexpected.items.clear();
  portal().priority.items[0].criteria.ignore_bits = ~std::uint64_t{0};
  EXPECT_EQ(
      find().at(0).sentence,
      "a message of rank 0 waits unexpected at rank 1, fi_recv of endpoint 1; a receive that it matches is posted "
      "at fi_trecv of endpoint 1");
}

/// What is refused at memory was no message, whatever receives there are.
TEST_F(UnmatchedFindings, Operation_on_memory_of_libfabric__is_told_with_the_nearest_region) {
  interface_in(target_).index = kFabricInterface;
  add_entry(portal(), 0, {}, ~std::uint64_t{0});
  add_portal(target_, 6);
  interface_in(target_).last_refused = {RefusedFor::kNoMatch, 6, job_id(0).pid, kJobNid, 0x78, 1, 8, 0, 0};
  EXPECT_TRUE(find().at(0).sentence.ends_with("where it matched nothing; no region is posted there"))
      << find()[0].sentence;
  EntryPicture& region = add_entry(interface_in(target_).portals[1], 0x77);
  region.length = 4096;
  region.options = kEntryNoTruncate;
  EXPECT_TRUE(find().at(0).sentence.starts_with("an operation of rank 0 (key 0x78) was refused "))
      << find()[0].sentence;
  EXPECT_TRUE(find().at(0).sentence.ends_with(
      " at rank 1, memory of endpoint 1, where it matched nothing; the nearest region differs in bits 0-3 (0x78 "
      "instead of 0x77)"))
      << find()[0].sentence;
  interface_in(target_).last_refused = {RefusedFor::kNoMatch, 6, job_id(0).pid, kJobNid, 0x77, 1, 8, 0, 4092};
  EXPECT_TRUE(find().at(0).sentence.ends_with(
      "; the nearest region has room for 4 bytes at offset 4092, and the operation has 8"))
      << find()[0].sentence;
  interface_in(target_).last_refused.reason = RefusedFor::kOperation;
  EXPECT_TRUE(find().at(0).sentence.ends_with(", whose region does not allow the operation")) << find()[0].sentence;
  target_.polls = false;
  EXPECT_TRUE(find().empty()) << "nobody waits";
  interface_in(job_[0]).index = kFabricInterface;
  QueuePicture& queue = interface_in(job_[0]).queues.emplace_back();
  queue.size = 1;
  EXPECT_TRUE(find().empty());
  queue.oldest_fail = NiFail::kDropped;
  EXPECT_EQ(find().at(0).kind, FindingKind::kMessageRefused) << "rank 0 does not read its error";
}

TEST_F(UnmatchedFindings, Interface__is_named_where_a_process_has_several) {
  interface_in(target_).last_refused = {RefusedFor::kNotAligned, 4, job_id(0).pid, kJobNid, 0x10, 1, 8};
  EXPECT_TRUE(find().at(0).sentence.ends_with(
      "at rank 1, portal table entry 4, where the memory is not aligned for the datatype of the atomic operation"))
      << find()[0].sentence;
  target_.core.interfaces.emplace_back().index = 2;
  EXPECT_NE(find().at(0).sentence.find("entry 4 of the matching, physical interface, where"), std::string::npos);
  target_.core.interfaces[1].last_refused = {RefusedFor::kNoMatch, 5, 0, 0, 0, 1, 8};
  EXPECT_NE(find().at(1).sentence.find("entry 5 of the non-matching, logical interface, where"), std::string::npos);
}

TEST_F(UnmatchedFindings, Disabled_entry__is_told_if_it_hurts) {
  portal().enabled = false;
  EXPECT_TRUE(find().empty()) << "the program wants it so";
  portal().disabled_by = DisabledBy::kNoResources;
  ASSERT_EQ(find().size(), 1u);
  EXPECT_EQ(find()[0].kind, FindingKind::kEntryDisabled);
  portal().disabled_by = DisabledBy::kProgram;
  interface_in(target_).last_refused = {RefusedFor::kDisabled, 4, job_id(0).pid, kJobNid, 0x12, 1};
  ASSERT_EQ(find().size(), 1u);
  EXPECT_EQ(find()[0].other, job_id(0));
}

TEST_F(UnmatchedFindings, Queues__are_told_when_they_are_full) {
  interface_in(target_).queues.emplace_back() = {.handle = kJobQueue, .size = 3, .capacity = 4};
  EXPECT_TRUE(find().empty());
  interface_in(target_).queues[0].full = true;
  EXPECT_EQ(find().at(0).kind, FindingKind::kQueueFull);
  interface_in(target_).queues[0].lost = true;
  EXPECT_EQ(find().at(0).kind, FindingKind::kEventsLost);
}

TEST_F(UnmatchedFindings, Lost_events__are_told_of_a_program_that_waits_though_it_was_told_of_them) {
  target_.events_lost = 46;
  ASSERT_EQ(find().size(), 1u);
  EXPECT_EQ(find()[0].kind, FindingKind::kEventsLost);
  EXPECT_EQ(find()[0].lacks, 46u);
  EXPECT_TRUE(find()[0].sentence.starts_with("event queues of rank 1 were full and have lost events: 46"));
  interface_in(target_).queues.emplace_back() = {.handle = kJobQueue, .size = 3, .capacity = 4, .lost = true};
  EXPECT_EQ(find().size(), 1u) << "which queue it was is known";
  interface_in(target_).queues[0].lost = false;
  target_.polls = false;
  EXPECT_TRUE(find().empty());
}

}  // namespace
}  // namespace portofu
