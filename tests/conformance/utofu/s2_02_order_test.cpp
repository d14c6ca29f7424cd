// Guide 2.2.10, 3.7.9: the order of notices, errors among them, and of what is read and written; flags of a path.
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "utofu_fixture.h"

using namespace conformance;

namespace {

constexpr unsigned long kTcq = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
constexpr unsigned long kLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
constexpr unsigned long kRemote = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
constexpr unsigned long kStrong = UTOFU_ONESIDED_FLAG_STRONG_ORDER;

constexpr std::size_t kBytes = 256 << 10;
constexpr std::size_t kHalf = kBytes / 2;
constexpr std::size_t kLong = 30000;

/// The next communication of the process that is told has ended so. Remote notices are passed over.
void expect_local(const Ring& ring, int rc, std::uint64_t edata) {
  utofu_mrq_notice notice{};
  int got = UTOFU_SUCCESS;
  do {
    notice = {};
    got = poll_mrq(ring.vcq, &notice);
  } while (got == UTOFU_SUCCESS && notice.notice_type % 2 != 0);
  EXPECT_EQ(got, rc);
  EXPECT_EQ(notice.edata, edata);
}

/// Communications that ask for a local notice, by number.
constexpr int kNoticed = 7;
int post_noticed(const Ring& ring, int which, std::uint64_t edata) {
  const auto [vcq_id, stadd] = ring.next;
  switch (which) {
    case 0: return utofu_put(ring.vcq, vcq_id, ring.stadd, stadd, 8, edata, kLocal, nullptr);
    case 1: return utofu_get(ring.vcq, vcq_id, ring.stadd, stadd, 8, edata, kLocal, nullptr);
    case 2: return utofu_put(ring.vcq, vcq_id, ring.stadd, stadd, 8, edata, kLocal | kStrong, nullptr);
    case 3: return utofu_put(ring.vcq, vcq_id, ring.stadd, stadd, kLong, edata, kLocal, nullptr);
    case 4: return utofu_armw8(ring.vcq, vcq_id, UTOFU_ARMW_OP_ADD, 1, stadd, edata, kLocal, nullptr);
    case 5: return utofu_put_piggyback8(ring.vcq, vcq_id, 7, stadd, 8, edata, kLocal, nullptr);
    default: return utofu_put(ring.vcq, vcq_id, ring.stadd, stadd, 600, edata, kLocal | kRemote, nullptr);
  }
}

/// A put that fails at the peer.
struct Bad {
  utofu_stadd_t stadd;
  std::size_t bytes;
  unsigned long flags;
  int rc;
};

/// It, and then one of each kind that asks for a local notice.
void expect_error_first(const Ring& ring, const Bad& bad) {
  for (int which = 0; which < 3 * kNoticed; ++which) {
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, bad.stadd, bad.bytes, 1, bad.flags, nullptr),
              UTOFU_SUCCESS);
    ASSERT_EQ(post_noticed(ring, which % kNoticed, 2), UTOFU_SUCCESS);
    SCOPED_TRACE(testing::Message() << "a put that fails with " << bad.rc << ", then " << which % kNoticed);
    expect_local(ring, bad.rc, 1);
    expect_local(ring, UTOFU_SUCCESS, 2);
    if (testing::Test::HasFailure()) return;
    void* data = nullptr;
    while (utofu_poll_tcq(ring.vcq, 0, &data) == UTOFU_SUCCESS) {
    }
  }
}

}  // namespace

/// A put that asks for no notice and fails is told by the MRQ all the same (2.2.12), and before what comes behind it.
/// The target polls in one round, and does not call in the other.
UTOFU_TEST_BOTH(Order, Section2_2_10__error_of_a_put_comes_before_the_notice_of_what_is_behind_it) {
  Ring ring(self, kBytes);
  std::vector<unsigned char> page(4096);
  utofu_stadd_t mine = 0;
  ASSERT_EQ(utofu_reg_mem(ring.vcq, page.data(), page.size(), UTOFU_REG_MEM_FLAG_READ_ONLY, &mine), UTOFU_SUCCESS);
  const utofu_stadd_t read_only = self.share(mine)[static_cast<std::size_t>((self.rank() + 1) % self.size())];
  const utofu_stadd_t end = ring.next.stadd + kBytes;
  const Bad puts[] = {{end, 8, 0, UTOFU_ERR_MRQ_RMT_STADD},
                      {end, 8, kRemote, UTOFU_ERR_MRQ_RMT_STADD},
                      {end, kLong, 0, UTOFU_ERR_MRQ_RMT_STADD},
                      {end - 4, 8, kTcq, UTOFU_ERR_MRQ_RMT_LENGTH},
                      {end - 4, 1000, kRemote, UTOFU_ERR_MRQ_RMT_LENGTH},
                      {read_only, 8, 0, UTOFU_ERR_MRQ_RMT_MEMORY}};
  for (const bool target_polls : {true, false}) {
    if (target_polls || self.rank() == 0) {
      for (const Bad& bad : puts) expect_error_first(ring, bad);
    }
    self.barrier();
  }
}

/// Good and bad ones, with and without notices, many at a time.
UTOFU_TEST_BOTH(Order, Section2_2_10__errors_are_in_order_among_local_notices) {
  Ring ring(self, kBytes);
  const utofu_stadd_t end = ring.next.stadd + kBytes;
  unsigned seed = 7;
  const auto random = [&seed](unsigned below) { return (seed = seed * 1664525 + 1013904223) / 65536 % below; };
  for (int round = 0; round < 40; ++round) {
    struct Due {
      int rc;
      std::uint64_t edata;
    };
    std::vector<Due> due;
    for (std::uint64_t edata = 0; edata < 20; ++edata) {
      switch (random(5)) {
        case 0:
          ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, 8, edata,
                              random(2) != 0 ? kRemote : 0, nullptr),
                    UTOFU_SUCCESS);
          break;
        case 1:
          ASSERT_EQ(
              utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, end, 8, edata, random(2) != 0 ? kLocal : 0, nullptr),
              UTOFU_SUCCESS);
          due.push_back({UTOFU_ERR_MRQ_RMT_STADD, edata});
          break;
        case 2:
          ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, ring.stadd, end, 8, edata, 0, nullptr), UTOFU_SUCCESS);
          due.push_back({UTOFU_ERR_MRQ_RMT_STADD, edata});
          break;
        default:
          ASSERT_EQ(post_noticed(ring, static_cast<int>(random(kNoticed)), edata), UTOFU_SUCCESS);
          due.push_back({UTOFU_SUCCESS, edata});
      }
    }
    for (const Due& one : due) expect_local(ring, one.rc, one.edata);
    if (testing::Test::HasFailure()) break;
  }
  self.barrier();
}

namespace {

/// Posts to a VCQ that is freed meanwhile until many communications were refused. A get or a long put
/// that is in its memory then is told that this was deregistered (3.6.1.4).
/// @param free_own  called once if the VCQ is of this process
void expect_order_past_free(const Ring& ring, const std::function<void()>& free_own) {
  constexpr std::uint64_t kUnderWay = 200;
  std::uint64_t posted = 0;
  std::uint64_t told = 0;
  std::uint64_t refused = 0;
  const bool all = eventually([&] {
    if (posted - told < kUnderWay) {
      EXPECT_EQ(post_noticed(ring, static_cast<int>(posted % kNoticed), posted & 255), UTOFU_SUCCESS);
      if (++posted == kUnderWay / 2) free_own();
    }
    utofu_mrq_notice notice{};
    for (int rc = 0; (rc = utofu_poll_mrq(ring.vcq, 0, &notice)) != UTOFU_ERR_NOT_FOUND;) {
      if (notice.notice_type % 2 != 0) continue;
      if (rc == UTOFU_ERR_MRQ_PEER) ++refused;
      EXPECT_EQ(refused == 0, rc == UTOFU_SUCCESS || rc == UTOFU_ERR_MRQ_RMT_STADD) << rc;
      EXPECT_EQ(notice.edata, told++ & 255);
    }
    return refused >= 2 * kUnderWay || testing::Test::HasFailure();
  });
  EXPECT_TRUE(all) << refused << " of " << told << " were refused";
}

enum class End { kFreesVcq, kDies };

/// @param lanes  nullptr: as many as there are by default
void end_what_is_put_to(Process& self, const char* lanes, End end) {
  if (lanes != nullptr) setenv("PORTOFU_LANES", lanes, 1);
  Ring ring(self, kBytes);
  utofu_vcq_hdl_t target = 0;  // Nobody else has its CQ.
  Ring::Place place{};
  ASSERT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &target), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_query_vcq_id(target, &place.vcq_id), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_reg_mem(target, ring.memory.data(), kBytes, 0, &place.stadd), UTOFU_SUCCESS);
  ring.next = self.share(place).back();
  if (self.rank() == 0) {
    expect_order_past_free(ring, [&] {
      if (self.size() != 1) return;
      EXPECT_EQ(utofu_free_vcq(std::exchange(target, 0)), UTOFU_SUCCESS);
    });
  } else {
    utofu_mrq_notice notice{};
    EXPECT_EQ(poll_mrq(target, &notice), UTOFU_SUCCESS);
    if (end == End::kDies) self.die();
    EXPECT_EQ(utofu_free_vcq(target), UTOFU_SUCCESS);
  }
  self.barrier();
}

}  // namespace

/// Local notices are in the order of posting, though the remote VCQ is freed, and its CQ is nobody's then. What is
/// refused is told behind what was posted before.
UTOFU_TEST_BOTH(Order, Section2_2_10__notices_are_in_order_when_the_remote_VCQ_is_freed) {
  end_what_is_put_to(self, nullptr, End::kFreesVcq);
}
UTOFU_TEST_BOTH(Order, Section2_2_10__notices_are_in_order_when_the_remote_VCQ_of_the_same_lane_is_freed) {
  end_what_is_put_to(self, "1", End::kFreesVcq);
}

/// The same when the other process dies, with some communications that have left and others that still wait.
UTOFU_TEST(2, Order, Section2_2_10__notices_are_in_order_when_the_peer_dies) {
  setenv("PORTOFU_WINDOW", "64", 1);
  end_what_is_put_to(self, nullptr, End::kDies);
}

/// 3.7.9.1: "reads from memory or writes to memory after prior one-sided communications [...] have read from memory or
/// written to memory". Two gets to the same place, the longer one first: what stays is of the second one.
UTOFU_TEST_BOTH(Order, Section3_7_9_1__get_in_strong_order_writes_behind_a_longer_one) {
  Ring ring(self, kBytes);
  std::memset(ring.memory.data() + kHalf, 1, kLong);
  std::memset(ring.memory.data() + kHalf + kLong, 2, 64);
  self.barrier();
  for (int round = 0; round < 50; ++round) {
    std::memset(ring.memory.data(), 0, kLong);
    const utofu_stadd_t from = ring.next.stadd + kHalf;
    ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, ring.stadd, from, kLong, 1, 0, nullptr), UTOFU_SUCCESS);
    ASSERT_EQ(
        utofu_get(ring.vcq, ring.next.vcq_id, ring.stadd + kLong - 64, from + kLong, 64, 2, kLocal | kStrong, nullptr),
        UTOFU_SUCCESS);
    expect_local(ring, UTOFU_SUCCESS, 2);
    ASSERT_EQ(ring.memory[0], 1) << "the first get has written before";
    ASSERT_EQ(ring.memory[kLong - 65], 1);
    ASSERT_EQ(ring.memory[kLong - 64], 2);
    ASSERT_EQ(ring.memory[kLong - 1], 2);
  }
  self.barrier();
}

/// What a get has read is older than what a put or an ARMW in strong order behind it writes there.
UTOFU_TEST_BOTH(Order, Section3_7_9_1__put_and_armw_in_strong_order_write_behind_a_get) {
  Ring ring(self, kBytes);
  constexpr std::size_t kWord = kHalf + kLong - 8;  ///< The last one that the get reads.
  const utofu_stadd_t there = ring.next.stadd + kWord;
  std::uint64_t was = 0;
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd + kHalf, kLong, 1, 0, nullptr),
              UTOFU_SUCCESS);
    const std::uint64_t next = was + 3;
    if (round % 2 == 0) {
      ASSERT_EQ(utofu_put_piggyback8(ring.vcq, ring.next.vcq_id, next, there, 8, 2, kLocal | kStrong, nullptr),
                UTOFU_SUCCESS);
    } else {
      ASSERT_EQ(utofu_armw8(ring.vcq, ring.next.vcq_id, UTOFU_ARMW_OP_ADD, 3, there, 2, kLocal | kStrong, nullptr),
                UTOFU_SUCCESS);
    }
    expect_local(ring, UTOFU_SUCCESS, 2);
    std::uint64_t read = 0;
    std::memcpy(&read, ring.memory.data() + kLong - 8, 8);
    ASSERT_EQ(read, was);
    was = next;
  }
  self.barrier();
}

/// 2.2.6: a NOP communicates with nobody, so no MRQ hears of it; the TCQ does.
UTOFU_TEST(1, Order, Section3_7_1_15__nop_asks_for_MRQ_notices_in_vain) {
  Ring ring(self);
  ASSERT_EQ(utofu_nop(ring.vcq, kAllNotices | kStrong, callback(5)), UTOFU_SUCCESS);
  void* data = nullptr;
  EXPECT_EQ(poll_tcq(ring.vcq, &data), UTOFU_SUCCESS);
  EXPECT_EQ(data, callback(5));
  ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, 8, 9, kLocal, nullptr), UTOFU_SUCCESS);
  expect_local(ring, UTOFU_SUCCESS, 9);
  utofu_mrq_notice notice{};
  EXPECT_EQ(utofu_poll_mrq(ring.vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
}

/// 3.7.9.2: the path may be in the flags, or in the remote VCQ ID.
UTOFU_TEST_BOTH(Order, Section3_7_9_2__path_is_in_the_flags_or_in_the_id) {
  Ring ring(self);
  std::uint8_t coords[3] = {0, 1, 1};
  utofu_path_id_t path = 0;
  ASSERT_EQ(utofu_get_path_id(ring.next.vcq_id, coords, &path), UTOFU_SUCCESS);
  utofu_vcq_id_t by_path = ring.next.vcq_id;
  ASSERT_EQ(utofu_set_vcq_id_path(&by_path, coords), UTOFU_SUCCESS);
  const auto expect_told = [&ring](std::uint64_t edata) {
    bool local = false, remote = false;
    for (int i = 0; i < 2; ++i) {
      utofu_mrq_notice notice{};
      ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      EXPECT_EQ(notice.edata, edata);
      (notice.notice_type % 2 == 0 ? local : remote) = true;
    }
    EXPECT_TRUE(local && remote);
  };
  for (std::uint64_t edata = 1; edata <= 20; ++edata) {
    const bool in_flags = edata % 2 == 0;
    const unsigned long flags = kLocal | kRemote | (in_flags ? UTOFU_ONESIDED_FLAG_PATH(path) : 0);
    ASSERT_EQ(utofu_put_piggyback8(ring.vcq, in_flags ? ring.next.vcq_id : by_path, edata, ring.next.stadd, 8, edata,
                                   flags, nullptr),
              UTOFU_SUCCESS);
    expect_told(edata);
    std::uint64_t word = 0;
    std::memcpy(&word, ring.memory.data(), 8);
    EXPECT_EQ(word, edata);
    self.barrier();
  }
  EXPECT_EQ(utofu_put_piggyback8(ring.vcq, ring.next.vcq_id, 1, ring.next.stadd, 8, 0, 0xffUL << 28, nullptr),
            UTOFU_ERR_INVALID_PATH_ID);
  self.barrier();
}

namespace {

/// Communications that tell the target, by number, some of them too long for one packet.
int post_telling(const Ring& ring, utofu_vcq_hdl_t vcq, utofu_stadd_t stadd, utofu_vcq_id_t to, int which) {
  const auto edata = static_cast<std::uint64_t>(which) & 255;
  constexpr unsigned long kFlags = kLocal | kRemote;
  switch (which % 5) {
    case 0: return utofu_put(vcq, to, stadd, ring.next.stadd, 8, edata, kFlags, nullptr);
    case 1: return utofu_get(vcq, to, stadd, ring.next.stadd, kLong, edata, kFlags, nullptr);
    case 2: return utofu_put(vcq, to, stadd, ring.next.stadd, kLong, edata, kFlags, nullptr);
    case 3: return utofu_armw8(vcq, to, UTOFU_ARMW_OP_ADD, 1, ring.next.stadd, edata, kFlags, nullptr);
    default: return utofu_put_piggyback8(vcq, to, 1, ring.next.stadd, 8, edata, kFlags, nullptr);
  }
}

}  // namespace

/// The guide orders notices for one VCQ, one remote VCQ and one path. Here remote ones are in order for all VCQs of the
/// CQ that has sent, and for all paths.
UTOFU_TEST_BOTH(Order, Section2_2_10__remote_notices_are_in_order_for_all_VCQs_of_a_CQ_and_all_paths) {
  constexpr std::size_t kQueues = 3;
  constexpr int kPosted = 600;
  Ring ring(self, kBytes);
  std::array<utofu_vcq_hdl_t, kQueues> vcqs{ring.vcq};
  std::array<utofu_stadd_t, kQueues> stadds{ring.stadd};
  std::array<int, kQueues> posted{}, told{};
  for (std::size_t i = 1; i < kQueues; ++i) {
    ASSERT_EQ(utofu_create_vcq(0, 0, &vcqs[i]), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_reg_mem(vcqs[i], ring.memory.data(), kBytes, 0, &stadds[i]), UTOFU_SUCCESS);
  }
  int sent = 0, heard = 0;
  const bool all = eventually([&] {
    if (sent < kPosted && sent - heard < 100) {
      const auto from = static_cast<std::size_t>(sent) % kQueues;
      std::uint8_t coords[3] = {0, static_cast<std::uint8_t>(sent % 3), 1};
      utofu_vcq_id_t to = ring.next.vcq_id;
      EXPECT_EQ(utofu_set_vcq_id_path(&to, coords), UTOFU_SUCCESS);
      EXPECT_EQ(post_telling(ring, vcqs[from], stadds[from], to, sent++), UTOFU_SUCCESS);
      ++posted[from];
    }
    for (std::size_t i = 0; i < kQueues; ++i) {
      for (utofu_mrq_notice notice{}; utofu_poll_mrq(vcqs[i], 0, &notice) == UTOFU_SUCCESS;) {
        if (notice.notice_type % 2 != 0) {
          EXPECT_EQ(notice.edata, static_cast<std::uint64_t>(heard++) & 255) << "of a communication with this VCQ";
        } else {
          const auto number = static_cast<std::uint64_t>(told[i]++) * kQueues + i;
          EXPECT_EQ(notice.edata, number & 255) << "of a communication of this VCQ";
        }
      }
    }
    return (sent == kPosted && heard == kPosted && told == posted) || testing::Test::HasFailure();
  });
  EXPECT_TRUE(all);
  self.barrier();
}
