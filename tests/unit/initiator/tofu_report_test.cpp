// What the initiator tells of a put that wanted no answer and failed all the same.

#include "engine/initiator/tofu_report.h"

#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

constexpr std::uint64_t kTheirs = make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(1, 2, 3));

class TofuReportTest : public CoreTest {
 protected:
  TofuReportTest() {
    core.tofu = std::make_unique<Tofu>(Coordinates{}, nullptr);
    core.tofu->claim_queue(0, 1, CqMode::kShared);
    make_vcq();
  }
  /// The VCQ 2 of the queue; another one each time.
  void make_vcq() {
    auto& place = core.tofu->queue(make_queue_number(0, 1, 0))->vcqs[2];
    if (place != nullptr) core.tofu->leave(*place);
    place = std::make_unique<VirtualControlQueue>(16, 16);
    vcq = place.get();
    vcq->id = make_tofu_id(TofuIdKind::kVcq, {}, make_queue_number(0, 1, 2));
    core.tofu->enter(*vcq);
  }
  PacketHeader fault() const {
    PacketHeader header{};
    header.type = PacketType::kTofuFault;
    header.job_key = kJobKey;
    header.uid = kPeerUid;
    header.ni_fail_type = static_cast<std::uint8_t>(NiFail::kBadStadd);
    header.pt_index = 7;
    header.match_bits = vcq->handle;
    header.initiator_rank = queue_number(vcq->id);
    header.hdr_data = kTheirs;
    header.remote_offset = 100;
    return header;
  }
  VirtualControlQueue* vcq = nullptr;
};

TEST_F(TofuReportTest, Fault__is_told_to_the_VCQ_that_has_put) {
  receive(fault());
  Notice notice;
  ASSERT_TRUE(vcq->mrq.read(&notice));
  EXPECT_EQ(notice.fail, NiFail::kBadStadd);
  EXPECT_EQ(notice.vcq_id, kTheirs);
  EXPECT_EQ(notice.edata, 7u);
  EXPECT_EQ(notice.remote_stadd, 100u);
  EXPECT_EQ(vcq->last_failed.fail, NiFail::kBadStadd) << "for who asks later";
  EXPECT_EQ(vcq->last_failed.vcq_id, kTheirs);
  EXPECT_EQ(vcq->last_failed.stadd, 100u);
}

// 2.2.1: an id names one VCQ, and what an earlier one has done is not its business.
TEST_F(TofuReportTest, Late_fault__is_not_told_to_a_later_VCQ_of_the_number) {
  const PacketHeader late = fault();
  make_vcq();
  receive(late);
  Notice notice;
  EXPECT_FALSE(vcq->mrq.read(&notice));
  receive(fault());
  EXPECT_TRUE(vcq->mrq.read(&notice));
}

TEST_F(TofuReportTest, Fault_that_names_no_VCQ__is_refused) {
  PacketHeader header = fault();
  header.match_bits |= std::uint64_t{1} << 32;
  receive(header);
  header = fault();
  header.initiator_rank += 1;
  receive(header);
  EXPECT_EQ(refused(), 2u);
  Notice notice;
  EXPECT_FALSE(vcq->mrq.read(&notice));
}

}  // namespace
}  // namespace portofu
