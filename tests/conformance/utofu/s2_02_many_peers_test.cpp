// Guide 2.2: more processes than a node has CQs by default, all of them with all others at the same time.
#include <cstring>

#include "utofu_fixture.h"

using namespace conformance;

// Puts with both notices: from each peer in order, and nothing is lost. Gets and ARMWs between them.
UTOFU_TEST(12, ManyPeers, Section2_2_10__everybody_with_everybody) {
  setenv("PORTOFU_CQS", "16", 1);
  constexpr std::size_t kSlot = 64, kWordAt = 2048;
  constexpr std::uint64_t kRounds = 40;
  Ring ring(self, 4096);
  const auto size = static_cast<std::size_t>(self.size()), rank = static_cast<std::size_t>(self.rank());
  std::memset(ring.memory.data() + 1024, self.rank() + 1, kSlot);
  std::vector<std::uint64_t> puts_there(size), puts_here(size);
  std::size_t local = 0, remote = 0, armws = 0;
  const auto take_notices = [&] {
    utofu_mrq_notice notice{};
    int rc = UTOFU_SUCCESS;
    while ((rc = utofu_poll_mrq(ring.vcq, 0, &notice)) != UTOFU_ERR_NOT_FOUND) {
      ASSERT_EQ(rc, UTOFU_SUCCESS);
      std::size_t peer = 0;
      while (peer < size && ring.places[peer].vcq_id != notice.vcq_id) ++peer;
      ASSERT_LT(peer, size);
      if (notice.notice_type == UTOFU_MRQ_TYPE_LCL_PUT) {
        EXPECT_EQ(notice.edata, puts_there[peer]++) << "to " << peer;
        ++local;
      } else if (notice.notice_type == UTOFU_MRQ_TYPE_RMT_PUT) {
        EXPECT_EQ(notice.edata, puts_here[peer]++) << "from " << peer;
        ++remote;
      } else {
        ASSERT_EQ(notice.notice_type, UTOFU_MRQ_TYPE_LCL_ARMW);
        ++armws;
      }
    }
  };
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (std::size_t peer = 0; peer < size; ++peer) {
      const auto& to = ring.places[peer];
      const unsigned long flags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
      ASSERT_EQ(
          utofu_put(ring.vcq, to.vcq_id, ring.stadd + 1024, to.stadd + kSlot * rank, kSlot, round, flags, nullptr),
          UTOFU_SUCCESS);
      ASSERT_EQ(utofu_armw8(ring.vcq, to.vcq_id, UTOFU_ARMW_OP_ADD, rank + 1, to.stadd + kWordAt, 0,
                            UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
    }
    take_notices();
  }
  const std::size_t expected = size * kRounds;
  EXPECT_TRUE(eventually([&] {
    take_notices();
    return local == expected && remote == expected && armws == expected;
  })) << local
      << " " << remote << " " << armws;
  self.barrier();
  for (std::size_t peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < kSlot; ++i) ASSERT_EQ(ring.memory[kSlot * peer + i], peer + 1);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, ring.memory.data() + kWordAt, sizeof word);
  EXPECT_EQ(word, kRounds * size * (size + 1) / 2);
  self.barrier();
}

// All send to one, which polls only now and then.
UTOFU_TEST(16, ManyPeers, Section2_2_3__all_to_one) {
  setenv("PORTOFU_CQS", "16", 1);
  constexpr std::size_t kBytes = 20000;
  constexpr std::uint64_t kRounds = 30;
  Ring ring(self, kBytes * 16);
  const auto target = ring.places[0];
  const auto rank = static_cast<std::size_t>(self.rank());
  if (rank != 0) {
    std::memset(ring.memory.data(), self.rank(), kBytes);
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const unsigned long flags = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
      ASSERT_EQ(utofu_put(ring.vcq, target.vcq_id, ring.stadd, target.stadd + kBytes * rank, kBytes, round, flags,
                          callback(round)),
                UTOFU_SUCCESS);
    }
    void* cbdata = nullptr;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      ASSERT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
      ASSERT_EQ(cbdata, callback(round));
    }
  } else {
    std::vector<std::uint64_t> next(16);
    for (std::uint64_t i = 0; i < 15 * kRounds; ++i) {
      utofu_mrq_notice notice{};
      ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      std::size_t peer = 1;
      while (peer < 16 && ring.places[peer].vcq_id != notice.vcq_id) ++peer;
      ASSERT_LT(peer, 16u);
      EXPECT_EQ(notice.edata, next[peer]++);
      EXPECT_EQ(ring.memory[kBytes * (peer + 1) - 1], peer);
    }
  }
  self.barrier();
}
