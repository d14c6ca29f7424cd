// Guide 3.7.1.11 to 3.7.1.14: where a word may lie.
#include "utofu_fixture.h"

using namespace conformance;

// 3.7.1.11-14: "The remote memory address must be aligned to 8 bytes", or 4: that, and not the STADD, whose region may
// begin anywhere.
UTOFU_TEST_BOTH(OneSidedArmw, Section3_7_1_11__armw_is_aligned_by_its_remote_address) {
  Ring ring(self, 4096);
  utofu_stadd_t odd = 0;
  ASSERT_EQ(utofu_reg_mem(ring.vcq, ring.memory.data() + 4, 64, 0, &odd), UTOFU_SUCCESS);
  const utofu_stadd_t theirs = self.share(odd)[static_cast<std::size_t>((self.rank() + 1) % self.size())];
  utofu_mrq_notice notice{};
  const auto add = [&](utofu_stadd_t to) {
    EXPECT_EQ(utofu_armw8(ring.vcq, ring.next.vcq_id, UTOFU_ARMW_OP_ADD, 1, to, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE,
                          nullptr),
              UTOFU_SUCCESS);
    return poll_mrq(ring.vcq, &notice);
  };
  for (std::uint64_t i = 0; i < 3; ++i) {  // The first is one by a packet, the others are where they can be.
    EXPECT_EQ(add(theirs + 4), UTOFU_SUCCESS);
    EXPECT_EQ(notice.rmt_value, i);
    EXPECT_EQ(add(theirs), UTOFU_ERR_MRQ_RMT_STADD);
    EXPECT_EQ(utofu_armw4(ring.vcq, ring.next.vcq_id, UTOFU_ARMW_OP_ADD, 1, theirs, 0,
                          UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
              UTOFU_SUCCESS);
    EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
    EXPECT_EQ(notice.rmt_value, i);
  }
  self.barrier();
}
