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

TEST_F(TofuFindings, Queue__is_told_when_it_is_full) {
  VcqPicture& vcq = job_[0].core.vcqs.emplace_back();
  vcq.mrq_entries = 8;
  vcq.mrq_unread = 7;
  EXPECT_TRUE(find().empty());
  vcq.mrq_unread = 8;
  EXPECT_EQ(find().at(0).kind, FindingKind::kQueueFull);
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
  const std::vector<Finding> found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].other, job_id(1));
  EXPECT_EQ(found[0].lacks, 1u);
  gate.has_packet = true;
  EXPECT_TRUE(find().empty());
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
