#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

class TofuFindings : public testing::Test {
 protected:
  std::vector<Finding> find() const {
    std::vector<Finding> findings;
    find_tofu(JobView(job_), &findings);
    return findings;
  }

  std::vector<ProcessPicture> job_ = made_up_job(2);
};

TEST_F(TofuFindings, Session__lacks_its_steps_while_somebody_waits) {
  VcqPicture& vcq = job_[0].core.vcqs.emplace_back();
  vcq.id = 0x44;
  vcq.steps = 1;
  vcq.waiting.items.push_back({3, PacketType::kTofuPut, 0});
  EXPECT_TRUE(find().empty());
  job_[0].polls = true;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kSessionLacks);
  EXPECT_EQ(found[0].lacks, 2u);
}

TEST_F(TofuFindings, Steps__that_went_to_a_queue_without_session_mode_are_told) {
  VcqPicture& vcq = job_[0].core.vcqs.emplace_back();
  vcq.id = 0x44;
  vcq.session = true;
  vcq.waiting.items.push_back({1, PacketType::kTofuPut, 0});
  vcq.waiting.size = 1;
  add_loop(job_[0], WaitKind::kTcq, 0x44);
  VcqPicture& other = job_[0].core.vcqs.emplace_back();
  other.id = 0x45;
  other.astray_steps = 2;
  other.astray_from = job_id(1);
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u) << "that nothing is to come would not be so";
  EXPECT_TRUE(found[0].sentence.ends_with(
      "; VCQ 0x45 of rank 0, which is not in session mode, has got steps: 2, the last of rank 1"))
      << found[0].sentence;
}

TEST_F(TofuFindings, Queue__that_is_polled_beside_one_with_entries_is_told_with_that) {
  job_[0].core.vcqs.resize(2);
  job_[0].core.vcqs[0].id = 0x44;
  job_[0].core.vcqs[1].id = 0x45;
  add_loop(job_[0], WaitKind::kTcq, 0x44);
  EXPECT_EQ(find().at(0).kind, FindingKind::kNoAnswerDue);
  job_[0].core.vcqs[1].tcq_unread = 3;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNoticesUnread);
  EXPECT_TRUE(found[0].sentence.ends_with("and not at the TCQ of VCQ 0x45, where entries wait: 3"));
}

TEST_F(TofuFindings, Queue__is_told_when_it_is_full) {
  VcqPicture& vcq = job_[0].core.vcqs.emplace_back();
  vcq.mrq_entries = 8;
  vcq.mrq_unread = 7;
  EXPECT_TRUE(find().empty());
  vcq.mrq_unread = 8;
  EXPECT_EQ(find().at(0).kind, FindingKind::kQueueFull);
}

TEST_F(TofuFindings, Failure__is_told_with_both_sides_while_somebody_waits) {
  VcqPicture& vcq = job_[1].core.vcqs.emplace_back();
  vcq.id = 0x44;
  vcq.last_failed = {NiFail::kBadLength, true, 0x55, 0x1008, 1};
  EXPECT_TRUE(find().empty()) << "nobody waits";
  job_[0].polls = true;
  job_[0].core.vcqs.emplace_back().id = 0x55;
  std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kCommunicationFailed);
  EXPECT_EQ(found[0].where, job_id(1));
  EXPECT_EQ(found[0].other, job_id(0));
  EXPECT_EQ(found[0].sentence.find("a communication from VCQ 0x44 of rank 1 to VCQ 0x55 of rank 0 failed "), 0u);
  EXPECT_TRUE(found[0].sentence.ends_with(
      "its remote range, which ends at STADD 0x1008, lies behind the end of its registered memory"))
      << found[0].sentence;
  vcq.last_failed = {NiFail::kUndeliverable, true, 0x66, 0x1008, 1};
  found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].sentence.ends_with("ago: no process here has that VCQ")) << found[0].sentence;
}

TEST_F(TofuFindings, Descriptors__that_nothing_starts_are_told_while_somebody_waits) {
  VcqPicture& vcq = job_[1].core.vcqs.emplace_back();
  vcq.delayed = 2;
  EXPECT_TRUE(find().empty());
  job_[0].polls = true;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kStartDelayed);
  EXPECT_EQ(found[0].lacks, 2u);
}

TEST_F(TofuFindings, Notices__that_a_polling_program_does_not_read_are_told) {
  VcqPicture& vcq = job_[0].core.vcqs.emplace_back();
  vcq.mrq_entries = 8;
  vcq.mrq_unread = 3;
  EXPECT_TRUE(find().empty());
  job_[0].polls = true;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNoticesUnread);
  EXPECT_EQ(found[0].lacks, 3u);
}

TEST_F(TofuFindings, Gate__lacks_what_its_sources_have_not_sent) {
  GatePicture& gate = job_[0].core.gates.emplace_back();
  gate.id = 1;
  gate.remote_source = 2;
  gate.local_source = 3;
  EXPECT_TRUE(find().empty()) << "no barrier runs";
  gate.has_signal = true;
  EXPECT_TRUE(find().at(0).sentence.find("which no process here has") != std::string::npos);
  job_[1].core.gates.emplace_back().id = 2;
  EXPECT_NE(find().at(0).sentence.find(" of rank 1, which sends no packets;"), std::string::npos);
  job_[1].core.gates[0].remote_target = 9;
  EXPECT_NE(find().at(0).sentence.find(" of rank 1, which sends its packets to barrier gate 0x9;"), std::string::npos);
  job_[1].core.gates[0].remote_target = 1;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].other, job_id(1));
  EXPECT_EQ(found[0].lacks, 1u);
  gate.holds_packets = true;
  EXPECT_NE(find().at(0).sentence.find(" of rank 1, which has to answer whether those that came are of this circuit;"),
            std::string::npos);
  gate.has_packet = true;
  EXPECT_TRUE(find().empty());
}

TEST_F(TofuFindings, Gate__tells_who_has_not_begun) {
  GatePicture& gate = job_[0].core.gates.emplace_back();
  gate.id = 1;
  gate.remote_source = 2;
  gate.local_source = 1;
  gate.is_start = gate.started = gate.has_signal = true;
  GatePicture& other = job_[1].core.gates.emplace_back();
  other.id = 2;
  other.remote_target = 1;
  other.is_start = true;
  EXPECT_NE(find().at(0).sentence.find(" of rank 1: rank 1 has not begun the barrier or reduction;"),
            std::string::npos);
  other.started = true;
  EXPECT_EQ(find().at(0).sentence.find("has not begun"), std::string::npos);
}

TEST_F(TofuFindings, Gate__whose_own_process_lacks_a_packet_is_not_told_again) {
  job_[0].core.gates.resize(2);
  GatePicture& relay = job_[0].core.gates[0];
  relay.id = 1;
  relay.remote_source = 2;
  relay.local_source = 3;
  relay.has_signal = true;
  GatePicture& start = job_[0].core.gates[1];
  start.id = 3;
  start.local_source = 1;
  start.is_start = start.started = true;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].object, "barrier gate 0x1");
}

TEST_F(TofuFindings, Loop__of_looks_at_a_TCQ_waits_for_nothing_if_nothing_is_under_way) {
  add_loop(job_[0], WaitKind::kTcq, 0x44).goes_on = false;
  EXPECT_TRUE(find().empty());
  job_[0].core.polls[0].goes_on = true;
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNoAnswerDue);
  EXPECT_EQ(found[0].object, "TCQ of VCQ 0x44");
  EXPECT_TRUE(found[0].sentence.ends_with("did it ask for UTOFU_ONESIDED_FLAG_TCQ_NOTICE?"));
  job_[0].core.operations.emplace_back().interface_index = kTofuInterface;
  EXPECT_TRUE(find().empty()) << "its target is told if that lasts";
}

TEST_F(TofuFindings, Loop__of_looks_at_an_MRQ_is_told_unless_the_cause_is_known) {
  add_loop(job_[0], WaitKind::kMrq, 0x44);
  EXPECT_EQ(find().at(0).kind, FindingKind::kEventLacks);
  EXPECT_EQ(find().at(0).object, "MRQ of VCQ 0x44");
  job_[0].core.vcqs.emplace_back().id = 0x44;
  VcqPicture& vcq = job_[1].core.vcqs.emplace_back();
  vcq.last_failed = {NiFail::kBadLength, true, 0x44, 0x1008, 1};
  ASSERT_EQ(find().size(), 1u);
  EXPECT_EQ(find()[0].kind, FindingKind::kCommunicationFailed);
}

// As a library behind the program has it, which looks at all of its queues whatever it waits for.
TEST_F(TofuFindings, Loop__of_looks_at_several_queues_is_told_once) {
  add_loop(job_[0], WaitKind::kTcq, 0x44);
  add_loop(job_[0], WaitKind::kMrq, 0x44);
  ASSERT_EQ(find().size(), 1u);
  EXPECT_EQ(find()[0].kind, FindingKind::kEventLacks);
  EXPECT_EQ(find()[0].object, "MRQ of VCQ 0x44");
  EXPECT_NE(find()[0].sentence.find("at the MRQ of VCQ 0x44, and at its TCQ, where no notice is: no communication"),
            std::string::npos)
      << find()[0].sentence;
  add_loop(job_[0], WaitKind::kTcq, 0x43);
  add_loop(job_[0], WaitKind::kMrq, 0x43);
  add_loop(job_[1], WaitKind::kTcq, 0x45);
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].object, "queues of its VCQs");
  EXPECT_NE(found[0].sentence.find("at the MRQ of VCQ 0x43, and at 3 queues more of its VCQs, where no notice is"),
            std::string::npos)
      << found[0].sentence;
  EXPECT_EQ(found[1].object, "TCQ of VCQ 0x45");
}

TEST_F(TofuFindings, Queue__that_is_looked_at_beside_others_is_none_that_is_forgotten) {
  for (const std::uint64_t id : {0x44, 0x45}) {
    job_[0].core.vcqs.emplace_back().id = id;
    add_loop(job_[0], WaitKind::kTcq, id);
  }
  job_[0].core.vcqs[1].tcq_unread = 3;
  ASSERT_EQ(find().size(), 1u);
  EXPECT_EQ(find()[0].kind, FindingKind::kNoAnswerDue) << "it is just about to be read";
}

TEST_F(TofuFindings, Owner__that_nobody_knows_is_told) {
  job_[1].core.ownerless.push_back({make_tofu_id(TofuIdKind::kVbg, {}, 0), 4});
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kOwnerUnknown);
  EXPECT_EQ(found[0].lacks, 4u);
}

}  // namespace
}  // namespace portofu
