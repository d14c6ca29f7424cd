// Guide 2.2.3-2.2.6, 2.2.10, 2.2.12, 3.7: put, get, ARMW and NOP with their notices, to oneself and to another process.
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "utofu_fixture.h"

using namespace conformance;

namespace {

std::vector<unsigned char> filled(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(1 + (i * 7 + seed * 31) % 255);
  return data;
}

/// Waits for the TCQ notice and both MRQ notices of one communication of every process with its neighbour.
void expect_notices(const Ring& ring, int local_type, std::uint64_t edata, void* cbdata, utofu_mrq_notice* local) {
  void* got = nullptr;
  EXPECT_EQ(poll_tcq(ring.vcq, &got), UTOFU_SUCCESS);
  EXPECT_EQ(got, cbdata);
  bool seen_local = false, seen_remote = false;
  for (int i = 0; i < 2; ++i) {
    utofu_mrq_notice notice{};
    ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
    EXPECT_EQ(notice.edata, edata);
    if (notice.notice_type == local_type) {
      seen_local = true;
      *local = notice;
      EXPECT_EQ(notice.vcq_id, ring.next.vcq_id);
    } else {
      seen_remote = true;
      EXPECT_EQ(notice.notice_type, local_type + 1);
      EXPECT_EQ(notice.vcq_id, ring.previous.vcq_id);
      EXPECT_EQ(notice.rmt_value, notice.rmt_stadd) << "one word on Tofu, and programs read either";
    }
  }
  EXPECT_TRUE(seen_local && seen_remote);
}

}  // namespace

UTOFU_TEST_BOTH(OneSided, Section3_7_1_1__put_of_every_size) {
  Ring ring(self, 3 << 20);
  const std::size_t half = ring.memory.size() / 2;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{255}, std::size_t{4097},
                                  std::size_t{70000}, half}) {
    const auto data = filled(bytes, static_cast<unsigned>(self.rank()));
    std::copy(data.begin(), data.end(), ring.memory.begin());
    self.barrier();
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd + half, bytes, 77, kAllNotices,
                        callback(bytes + 1)),
              UTOFU_SUCCESS);
    utofu_mrq_notice local{};
    expect_notices(ring, UTOFU_MRQ_TYPE_LCL_PUT, 77, callback(bytes + 1), &local);
    EXPECT_EQ(local.rmt_stadd, ring.next.stadd + half + bytes);
    const int before = (self.rank() + self.size() - 1) % self.size();
    const auto expected = filled(bytes, static_cast<unsigned>(before));
    EXPECT_EQ(std::memcmp(ring.memory.data() + half, expected.data(), bytes), 0) << bytes;
    self.barrier();
  }
}

UTOFU_TEST_BOTH(OneSided, Section3_7_1_7__get_of_every_size) {
  Ring ring(self, 3 << 20);
  const std::size_t half = ring.memory.size() / 2;
  const auto data = filled(half, static_cast<unsigned>(self.rank()));
  std::copy(data.begin(), data.end(), ring.memory.begin());
  const auto expected = filled(half, static_cast<unsigned>((self.rank() + 1) % self.size()));
  self.barrier();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{5000}, half}) {
    ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, ring.stadd + half, ring.next.stadd, bytes, 5, kAllNotices, nullptr),
              UTOFU_SUCCESS);
    utofu_mrq_notice local{};
    expect_notices(ring, UTOFU_MRQ_TYPE_LCL_GET, 5, nullptr, &local);
    EXPECT_EQ(local.lcl_stadd, ring.stadd + half + bytes);
    EXPECT_EQ(std::memcmp(ring.memory.data() + half, expected.data(), bytes), 0) << bytes;
    self.barrier();
  }
}

UTOFU_TEST_BOTH(OneSided, Section3_7_1_5__piggyback) {
  Ring ring(self);
  auto data = filled(32, 3);
  ASSERT_EQ(
      utofu_put_piggyback(ring.vcq, ring.next.vcq_id, data.data(), ring.next.stadd + 64, 32, 1,
                          kAllNotices | UTOFU_ONESIDED_FLAG_PADDING | UTOFU_ONESIDED_FLAG_CACHE_INJECTION, nullptr),
      UTOFU_SUCCESS);
  const auto sent = data;
  data.assign(32, 0);  // May be reused at once.
  utofu_mrq_notice local{};
  expect_notices(ring, UTOFU_MRQ_TYPE_LCL_PUT, 1, nullptr, &local);
  EXPECT_EQ(std::memcmp(ring.memory.data() + 64, sent.data(), 32), 0);
  self.barrier();
  ASSERT_EQ(
      utofu_put_piggyback8(ring.vcq, ring.next.vcq_id, 0x1122334455667788, ring.next.stadd, 3, 2, kAllNotices, nullptr),
      UTOFU_SUCCESS);
  expect_notices(ring, UTOFU_MRQ_TYPE_LCL_PUT, 2, nullptr, &local);
  const unsigned char low[4] = {0x88, 0x77, 0x66, 0};
  EXPECT_EQ(std::memcmp(ring.memory.data(), low, 4), 0);
  EXPECT_EQ(utofu_put_piggyback(ring.vcq, ring.next.vcq_id, data.data(), ring.next.stadd, 33, 0, 0, nullptr),
            UTOFU_ERR_INVALID_SIZE);
  EXPECT_EQ(utofu_put_piggyback8(ring.vcq, ring.next.vcq_id, 0, ring.next.stadd, 9, 0, 0, nullptr),
            UTOFU_ERR_INVALID_SIZE);
  self.barrier();
}

UTOFU_TEST_BOTH(OneSided, Section3_7_1_11__armw_operations) {
  Ring ring(self);
  struct Step {
    utofu_armw_op op;
    std::uint64_t operand, before, after;
  };
  const Step steps[] = {{UTOFU_ARMW_OP_SWAP, 0xffffffff, 0, 0xffffffff},
                        {UTOFU_ARMW_OP_ADD, 2, 0xffffffff, 1},
                        {UTOFU_ARMW_OP_XOR, 0xf1, 1, 0xf0},
                        {UTOFU_ARMW_OP_OR, 0x0f, 0xf0, 0xff},
                        {UTOFU_ARMW_OP_AND, 0x3c, 0xff, 0x3c}};
  for (const Step& step : steps) {
    ASSERT_EQ(utofu_armw4(ring.vcq, ring.next.vcq_id, step.op, static_cast<std::uint32_t>(step.operand),
                          ring.next.stadd + 8, 9, kAllNotices, nullptr),
              UTOFU_SUCCESS);
    utofu_mrq_notice local{};
    expect_notices(ring, UTOFU_MRQ_TYPE_LCL_ARMW, 9, nullptr, &local);
    EXPECT_EQ(local.rmt_value, step.before);
    EXPECT_EQ(local.rmt_stadd, ring.next.stadd + 8);
    std::uint64_t word = 0;
    std::memcpy(&word, ring.memory.data() + 8, 8);
    EXPECT_EQ(word, step.after);
    self.barrier();
  }
  for (const std::uint64_t expected : {std::uint64_t{7}, std::uint64_t{0x3c}}) {
    ASSERT_EQ(
        utofu_cswap8(ring.vcq, ring.next.vcq_id, expected, 1ull << 40, ring.next.stadd + 8, 0, kAllNotices, nullptr),
        UTOFU_SUCCESS);
    utofu_mrq_notice local{};
    expect_notices(ring, UTOFU_MRQ_TYPE_LCL_ARMW, 0, nullptr, &local);
    EXPECT_EQ(local.rmt_value, 0x3cu);
    std::uint64_t word = 0;
    std::memcpy(&word, ring.memory.data() + 8, 8);
    EXPECT_EQ(word, expected == 7 ? 0x3c : 1ull << 40);
    self.barrier();
  }
  EXPECT_EQ(utofu_armw8(ring.vcq, ring.next.vcq_id, static_cast<utofu_armw_op>(9), 0, ring.next.stadd, 0, 0, nullptr),
            UTOFU_ERR_INVALID_OP);
  self.barrier();
}

UTOFU_TEST_BOTH(OneSided, Section2_2_12__errors_by_kind) {
  Ring ring(self, 4096);
  void* cbdata = nullptr;
  utofu_mrq_notice notice{};
  const auto put = [&](utofu_stadd_t from, utofu_stadd_t to, std::size_t bytes) {
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, from, to, bytes, 3, 0, callback(4)), UTOFU_SUCCESS);
  };
  put(utofu_stadd_t{0x2fff} << 40, ring.next.stadd, 8);
  EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_ERR_TCQ_STADD);
  EXPECT_EQ(cbdata, callback(4));
  put(ring.stadd + 4090, ring.next.stadd, 8);
  EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_ERR_TCQ_LENGTH);
  put(ring.stadd, utofu_stadd_t{0x2fff} << 40, 8);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_RMT_STADD);
  EXPECT_EQ(notice.notice_type, UTOFU_MRQ_TYPE_LCL_PUT);
  EXPECT_EQ(notice.edata, 3u);
  EXPECT_EQ(notice.vcq_id, ring.next.vcq_id);
  put(ring.stadd, ring.next.stadd + 4090, 8);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_RMT_LENGTH);
  const auto get = [&](utofu_stadd_t to, utofu_stadd_t from) {
    ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, to, from, 8, 3, 0, nullptr), UTOFU_SUCCESS);
  };
  get(utofu_stadd_t{0x2fff} << 40, ring.next.stadd);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_LCL_STADD);
  get(ring.stadd + 4090, ring.next.stadd);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_LCL_LENGTH);
  ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, utofu_stadd_t{0x2fff} << 40, ring.next.stadd, 0, 3,
                      UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
            UTOFU_SUCCESS);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_LCL_STADD) << "of a get of nothing, too";
  get(ring.stadd, ring.next.stadd + 4090);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_RMT_LENGTH);
  static unsigned char constant[64];
  utofu_stadd_t read_only = 0;
  ASSERT_EQ(utofu_reg_mem(ring.vcq, constant, 64, UTOFU_REG_MEM_FLAG_READ_ONLY, &read_only), UTOFU_SUCCESS);
  const auto theirs = self.share(read_only);
  put(ring.stadd, theirs[static_cast<std::size_t>((self.rank() + 1) % self.size())], 8);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_RMT_MEMORY);
  get(read_only, ring.next.stadd);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_LCL_MEMORY);
  utofu_vcq_id_t nobody = 0;
  uint8_t coords[6] = {};
  ASSERT_EQ(utofu_construct_vcq_id(coords, 5, 8, 7, &nobody), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_put(ring.vcq, nobody, ring.stadd, ring.next.stadd, 8, 3, 0, nullptr), UTOFU_SUCCESS);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_PEER);
  EXPECT_EQ(notice.vcq_id, nobody);
  self.barrier();
}

UTOFU_TEST(2, OneSided, Section2_2_12__a_dead_peer_is_told) {
  Ring ring(self);
  self.barrier();
  if (self.rank() == 1) self.die();
  self.barrier();
  utofu_mrq_notice notice{};
  ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, 8, 6, 0, nullptr), UTOFU_SUCCESS);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_PEER);
  EXPECT_EQ(notice.edata, 6u);
}

UTOFU_TEST(2, OneSided, Section2_2_3__a_target_that_only_reads_its_memory_sees_the_put) {
  Ring ring(self);
  self.barrier();
  auto* words = reinterpret_cast<std::uint64_t*>(ring.memory.data());
  if (self.rank() == 0) {
    words[0] = 42;
    words[63] = 1;
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, 512, 0,
                        UTOFU_ONESIDED_FLAG_STRONG_ORDER, nullptr),
              UTOFU_SUCCESS);
    ASSERT_EQ(utofu_armw8(ring.vcq, ring.next.vcq_id, UTOFU_ARMW_OP_ADD, 5, ring.next.stadd + 512, 0, 0, nullptr),
              UTOFU_SUCCESS);
  } else {
    EXPECT_TRUE(eventually([&] { return std::atomic_ref<std::uint64_t>(words[63]).load() == 1; }));
    EXPECT_EQ(words[0], 42u);
    EXPECT_TRUE(eventually([&] { return std::atomic_ref<std::uint64_t>(words[64]).load() == 5; }));
  }
  self.barrier();
}

/// A get takes longer than what is posted behind it, and its notice must come first all the same.
UTOFU_TEST_BOTH(OneSided, Section2_2_10__notices_come_in_the_order_of_posting) {
  constexpr std::size_t kBytes = 2 << 20;
  constexpr unsigned long kBoth = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
  Ring ring(self, kBytes);
  const auto& [vcq_id, stadd] = ring.next;
  std::uint64_t edata = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(utofu_get(ring.vcq, vcq_id, ring.stadd, stadd, kBytes, edata++, kBoth, nullptr), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_put(ring.vcq, vcq_id, ring.stadd, stadd, 8, edata++, kBoth, nullptr), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_armw8(ring.vcq, vcq_id, UTOFU_ARMW_OP_ADD, 1, stadd, edata++, kBoth, nullptr), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_put(ring.vcq, vcq_id, ring.stadd, stadd, kBytes, edata++, kBoth, nullptr), UTOFU_SUCCESS);
  }
  std::uint64_t next_local = 0;
  std::uint64_t next_remote = 0;
  while (next_local < edata || next_remote < edata) {
    utofu_mrq_notice notice;
    ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
    std::uint64_t& next = notice.notice_type % 2 == 0 ? next_local : next_remote;
    EXPECT_EQ(notice.edata, next) << "type " << int{notice.notice_type};
    ++next;
  }
  self.barrier();
}

UTOFU_TEST_BOTH(OneSided, Section3_7_3__prepared_descriptors_of_all_kinds_at_once) {
  Ring ring(self);
  alignas(8) unsigned char desc[64 * 12];
  std::size_t at = 0, bytes = 0;
  const auto next = ring.next;
  auto data = filled(32, 8);
  ring.memory[0] = 11;
  ASSERT_EQ(utofu_prepare_put(ring.vcq, next.vcq_id, ring.stadd, next.stadd + 1000, 1, 1, 0, desc, &bytes),
            UTOFU_SUCCESS);
  EXPECT_EQ(bytes, 32u);
  at += bytes;
  ASSERT_EQ(
      utofu_prepare_put_piggyback(ring.vcq, next.vcq_id, data.data(), next.stadd + 1100, 32, 2, 0, desc + at, &bytes),
      UTOFU_SUCCESS);
  EXPECT_EQ(bytes, 64u);
  at += bytes;
  ASSERT_EQ(utofu_prepare_nop(ring.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, desc + at, &bytes), UTOFU_SUCCESS);
  at += bytes;
  ASSERT_EQ(utofu_prepare_put_stride(ring.vcq, next.vcq_id, ring.stadd, next.stadd + 2000, 1, 100, 3, 3,
                                     UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, desc + at,
                                     &bytes),
            UTOFU_SUCCESS);
  EXPECT_EQ(bytes, 96u);
  at += bytes;
  EXPECT_EQ(utofu_prepare_nop(ring.vcq, 0, desc + 4, &bytes), UTOFU_ERR_INVALID_POINTER);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(utofu_post_toq(ring.vcq, desc, at, callback(5)), UTOFU_SUCCESS);
    for (int i = 0; i < 4; ++i) {
      void* cbdata = nullptr;
      EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
      EXPECT_EQ(cbdata, callback(5));
    }
    for (int i = 0; i < 3; ++i) {
      utofu_mrq_notice notice{};
      EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      EXPECT_EQ(notice.rmt_stadd, next.stadd + 2001 + static_cast<unsigned>(i) * 100);
    }
  }
  self.barrier();
  EXPECT_EQ(ring.memory[1000], 11);
  EXPECT_EQ(ring.memory[2000], 11);
  EXPECT_EQ(std::memcmp(ring.memory.data() + 1100, data.data(), 32), 0);
  std::memset(desc, 0xee, sizeof desc);
  EXPECT_EQ(utofu_post_toq(ring.vcq, desc, at, nullptr), UTOFU_ERR_INVALID_DESC);
  EXPECT_EQ(utofu_post_toq(ring.vcq, nullptr, 0, nullptr), UTOFU_SUCCESS);
  self.barrier();
}

UTOFU_TEST_BOTH(OneSided, Section3_7_2__what_is_prepared_does_what_is_called) {
  Ring ring(self);
  constexpr unsigned long kTold = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  constexpr std::size_t kMtu = 1920, kGap = 1;
  alignas(8) unsigned char desc[512];
  std::size_t bytes = 0;
  const auto& to = ring.next;
  const auto word = [&](std::size_t offset) { return ring.memory[offset]; };
  const auto post = [&](int rc, int notices) {
    ASSERT_EQ(rc, UTOFU_SUCCESS);
    ASSERT_EQ(utofu_post_toq(ring.vcq, desc, bytes, nullptr), UTOFU_SUCCESS);
    utofu_mrq_notice notice{};
    for (int i = 0; i < notices; ++i) EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
    self.barrier();
  };
  ring.memory[0] = ring.memory[8] = 21;
  post(utofu_prepare_put_gap(ring.vcq, to.vcq_id, ring.stadd, to.stadd + 100, 1, 0, kTold, kMtu, kGap, desc, &bytes),
       1);
  EXPECT_EQ(word(100), 21);
  post(utofu_prepare_put_stride_gap(ring.vcq, to.vcq_id, ring.stadd, to.stadd + 200, 1, 8, 2, 0, kTold, kMtu, kGap,
                                    desc, &bytes),
       2);
  EXPECT_EQ(word(200) + word(208), 42);
  post(utofu_prepare_get_gap(ring.vcq, to.vcq_id, ring.stadd + 300, to.stadd, 1, 0, kTold, kMtu, kGap, desc, &bytes),
       1);
  EXPECT_EQ(word(300), 21);
  post(utofu_prepare_get_stride(ring.vcq, to.vcq_id, ring.stadd + 400, to.stadd + 200, 1, 8, 2, 0, kTold, desc, &bytes),
       2);
  EXPECT_EQ(word(400) + word(408), 42);
  post(utofu_prepare_get_stride_gap(ring.vcq, to.vcq_id, ring.stadd + 500, to.stadd + 200, 1, 8, 2, 0, kTold, kMtu,
                                    kGap, desc, &bytes),
       2);
  EXPECT_EQ(word(500) + word(508), 42);
  post(utofu_prepare_armw4(ring.vcq, to.vcq_id, UTOFU_ARMW_OP_ADD, 5, to.stadd + 600, 0, kTold, desc, &bytes), 1);
  EXPECT_EQ(word(600), 5);
  post(utofu_prepare_cswap4(ring.vcq, to.vcq_id, 0, 6, to.stadd + 700, 0, kTold, desc, &bytes), 1);
  EXPECT_EQ(word(700), 6);
}

UTOFU_TEST(1, OneSided, Section3_7_4_1__full_toq_is_busy_and_order_is_kept) {
  setenv("PORTOFU_TOQ_ENTRIES", "16", 1);
  Ring ring(self);
  for (std::uintptr_t i = 0; i < 16; ++i)
    ASSERT_EQ(utofu_nop(ring.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, callback(i)), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_nop(ring.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr), UTOFU_ERR_BUSY);
  std::size_t unread = 0;
  EXPECT_EQ(utofu_query_num_unread_tcq(ring.vcq, &unread), UTOFU_SUCCESS);
  EXPECT_EQ(unread, 16u);
  void* cbdata = nullptr;
  for (std::uintptr_t i = 0; i < 16; ++i) {
    ASSERT_EQ(utofu_poll_tcq(ring.vcq, 0, &cbdata), UTOFU_SUCCESS);
    EXPECT_EQ(cbdata, callback(i));
  }
  EXPECT_EQ(utofu_poll_tcq(ring.vcq, 0, &cbdata), UTOFU_ERR_NOT_FOUND);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(utofu_nop(ring.vcq, 0, nullptr), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_nop(ring.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_DELAY_START, callback(7)),
            UTOFU_SUCCESS);
  EXPECT_EQ(utofu_poll_tcq(ring.vcq, 0, &cbdata), UTOFU_ERR_NOT_FOUND);
  EXPECT_EQ(utofu_post_toq(ring.vcq, nullptr, 0, nullptr), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_poll_tcq(ring.vcq, 0, &cbdata), UTOFU_SUCCESS);
  EXPECT_EQ(cbdata, callback(7));
}

// 3.7.9.1: DELAY_START "may be ignored if the TOQ is full due to the pending one-sided communication". Whoever polls
// and tries again (3.7.1.1) gets on, whatever was held back, one by one and in blocks.
UTOFU_TEST(1, OneSided, Section3_7_9_1__what_was_held_back_does_not_keep_the_toq_full) {
  setenv("PORTOFU_TOQ_ENTRIES", "16", 1);
  Ring ring(self);
  constexpr unsigned long kLater = UTOFU_ONESIDED_FLAG_DELAY_START | UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
  std::uintptr_t posted = 0, polled = 0;
  const auto polls_once = [&] {
    void* cbdata = nullptr;
    ASSERT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
    EXPECT_EQ(cbdata, callback(polled++));
  };
  const auto& to = ring.next;
  for (; posted < 50; ++posted) {
    int rc = utofu_put(ring.vcq, to.vcq_id, ring.stadd, to.stadd + 8, 1, 0, kLater, callback(posted));
    for (; rc == UTOFU_ERR_BUSY;
         rc = utofu_put(ring.vcq, to.vcq_id, ring.stadd, to.stadd + 8, 1, 0, kLater, callback(posted)))
      polls_once();
    ASSERT_EQ(rc, UTOFU_SUCCESS);
  }
  EXPECT_EQ(utofu_post_toq(ring.vcq, nullptr, 0, nullptr), UTOFU_SUCCESS);
  while (polled < posted) polls_once();
  for (int i = 0; i < 16; ++i) ASSERT_EQ(utofu_nop(ring.vcq, UTOFU_ONESIDED_FLAG_DELAY_START, nullptr), UTOFU_SUCCESS);
  alignas(8) unsigned char desc[17 * 64];
  std::size_t bytes = 0, at = 0;
  for (int i = 0; i < 17; ++i, at += bytes) ASSERT_EQ(utofu_prepare_nop(ring.vcq, 0, desc + at, &bytes), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_post_toq(ring.vcq, desc, at, nullptr), UTOFU_ERR_INVALID_SIZE) << "there is never room for so many";
  EXPECT_EQ(utofu_post_toq(ring.vcq, desc, at - bytes, nullptr), UTOFU_SUCCESS);
}

// 3.7.1, 3.7.2: UTOFU_ERR_INVALID_VCQ_ID for what is no id of a VCQ; the 0 of a structure that nobody has filled in,
// with its STADD of 0, is one. In every function, before and behind calls that were right.
UTOFU_TEST_BOTH(OneSided, Section3_7__zero_is_no_vcq_id) {
  Ring ring(self);
  unsigned char data[8] = {};
  unsigned char desc[64];
  std::size_t size = 0;
  const auto expect_all_refused = [&](utofu_vcq_id_t id) {
    const utofu_vcq_hdl_t vcq = ring.vcq;
    const utofu_stadd_t mine = ring.stadd;
    const unsigned long flags = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
    const auto add = UTOFU_ARMW_OP_ADD;
    const int codes[] = {
        utofu_put(vcq, id, mine, 0, 8, 0, flags, nullptr),
        utofu_put(vcq, id, 0, 0, 0, 0, flags, nullptr),
        utofu_put(vcq, id, mine, 0, 100, 0, flags, nullptr),
        utofu_put_gap(vcq, id, mine, 0, 8, 0, flags, 0, 0, nullptr),
        utofu_put_stride(vcq, id, mine, 0, 8, 8, 2, 0, flags, nullptr),
        utofu_put_stride_gap(vcq, id, mine, 0, 8, 8, 2, 0, flags, 0, 0, nullptr),
        utofu_put_piggyback(vcq, id, data, 0, 8, 0, flags, nullptr),
        utofu_put_piggyback8(vcq, id, 1, 0, 8, 0, flags, nullptr),
        utofu_get(vcq, id, mine, 0, 8, 0, flags, nullptr),
        utofu_get_gap(vcq, id, mine, 0, 8, 0, flags, 0, 0, nullptr),
        utofu_get_stride(vcq, id, mine, 0, 8, 8, 2, 0, flags, nullptr),
        utofu_get_stride_gap(vcq, id, mine, 0, 8, 8, 2, 0, flags, 0, 0, nullptr),
        utofu_armw4(vcq, id, add, 1, 0, 0, flags, nullptr),
        utofu_armw8(vcq, id, add, 1, 0, 0, flags, nullptr),
        utofu_cswap4(vcq, id, 1, 2, 0, 0, flags, nullptr),
        utofu_cswap8(vcq, id, 1, 2, 0, 0, flags, nullptr),
        utofu_prepare_put(vcq, id, mine, 0, 8, 0, flags, desc, &size),
        utofu_prepare_put_piggyback8(vcq, id, 1, 0, 8, 0, flags, desc, &size),
        utofu_prepare_get(vcq, id, mine, 0, 8, 0, flags, desc, &size),
        utofu_prepare_armw8(vcq, id, add, 1, 0, 0, flags, desc, &size),
        utofu_prepare_cswap8(vcq, id, 1, 2, 0, 0, flags, desc, &size),
    };
    int index = 0;
    for (const int code : codes) EXPECT_EQ(code, UTOFU_ERR_INVALID_VCQ_ID) << "call " << index++ << ", id " << id;
  };
  for (const utofu_vcq_id_t id : {utofu_vcq_id_t{0}, utofu_vcq_id_t{1}, ~utofu_vcq_id_t{0}}) expect_all_refused(id);
  ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd + 64, 8, 0, kAllNotices, callback(1)),
            UTOFU_SUCCESS);
  utofu_mrq_notice local{};
  expect_notices(ring, UTOFU_MRQ_TYPE_LCL_PUT, 0, callback(1), &local);
  for (const utofu_vcq_id_t id : {utofu_vcq_id_t{0}, utofu_vcq_id_t{1}, ~utofu_vcq_id_t{0}}) expect_all_refused(id);
  std::size_t unread = 1;
  EXPECT_EQ(utofu_query_num_unread_tcq(ring.vcq, &unread), UTOFU_SUCCESS);
  EXPECT_EQ(unread, 0u) << "an argument error changes nothing";
  self.barrier();
}

// Not in the guide, but in the header that programs are built with: notices that have come and are not read.
UTOFU_TEST_BOTH(OneSided, Vendor_header__unread_mrq_notices_are_counted) {
  Ring ring(self);
  EXPECT_EQ(UTOFU_ONESIDED_FLAG_PACKET_RESPONSE, 1UL << 1);
  std::size_t unread = 1;
  EXPECT_EQ(utofu_query_num_unread_mrq(ring.vcq, &unread), UTOFU_SUCCESS);
  EXPECT_EQ(unread, 0u);
  EXPECT_EQ(utofu_query_num_unread_mrq(ring.vcq, nullptr), UTOFU_ERR_INVALID_POINTER);
  EXPECT_EQ(utofu_query_num_unread_mrq(0, &unread), UTOFU_ERR_INVALID_VCQ_HDL);
  self.barrier();
  const unsigned long flags = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_PACKET_RESPONSE;
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, 8, i, flags, nullptr), UTOFU_SUCCESS);
  EXPECT_TRUE(eventually([&] { return utofu_query_num_unread_mrq(ring.vcq, &unread) == 0 && unread == 5; })) << unread;
  for (std::uint64_t i = 0; i < 5; ++i) {
    utofu_mrq_notice notice{};
    EXPECT_EQ(utofu_poll_mrq(ring.vcq, 0, &notice), UTOFU_SUCCESS);
    EXPECT_EQ(notice.edata, i);
    EXPECT_EQ(utofu_query_num_unread_mrq(ring.vcq, &unread), UTOFU_SUCCESS);
    EXPECT_EQ(unread, 4 - i);
  }
  self.barrier();
}

// 2.2.8: A starts B's two prepared puts to C with one put.
// 2.2.3: a put needs nothing of the target but its memory. This one cannot do anything: it is stopped.
UTOFU_TEST(2, OneSidedStopped, Section2_2_3__put_arrives_while_the_target_is_stopped) {
  constexpr std::size_t kBytes = 300000;  // Long ones need nobody at all, short ones that nobody polls.
  Ring ring(self, 1000 + kBytes + 1);
  const auto pids = self.share(getpid());
  if (std::getenv("PORTOFU_SHUFFLE") != nullptr) self.skip("packets are shuffled, and only packets bring data then");
  unsigned char byte = 0;
  const iovec local{&byte, 1}, remote{ring.memory.data(), 1};
  if (process_vm_readv(pids[static_cast<std::size_t>(1 - self.rank())], &local, 1, &remote, 1, 0) < 0 && errno == EPERM)
    self.skip("this kernel lets no process reach the memory of another one");
  const unsigned long notices = UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  const auto put_and_wait = [&](std::uint64_t edata) {
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd + 1000, kBytes, edata, notices,
                        callback(edata)),
              UTOFU_SUCCESS);
    void* cbdata = nullptr;
    EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
    EXPECT_EQ(cbdata, callback(edata));
    utofu_mrq_notice notice{};
    EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
    EXPECT_EQ(notice.notice_type, UTOFU_MRQ_TYPE_LCL_PUT);
    EXPECT_EQ(notice.edata, edata);
    EXPECT_EQ(notice.vcq_id, ring.next.vcq_id);
    EXPECT_EQ(notice.rmt_stadd, ring.next.stadd + 1000 + kBytes);
  };
  if (self.rank() == 0) put_and_wait(1);  // They know each other now.
  self.barrier();
  if (self.rank() == 1) {
    kill(getpid(), SIGSTOP);
    EXPECT_EQ(ring.memory[1000], 7);
    EXPECT_EQ(ring.memory[999 + kBytes], 9);
    EXPECT_EQ(ring.memory[1000 + kBytes], 0);
  } else {
    eventually([&] {
      std::ifstream stat("/proc/" + std::to_string(pids[1]) + "/stat");
      std::string text;
      std::getline(stat, text);
      const auto name_end = text.rfind(')');
      return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'T';
    });
    ring.memory[0] = 7;
    ring.memory[kBytes - 1] = 9;
    put_and_wait(2);
    kill(pids[1], SIGCONT);
  }
  self.barrier();
}

// 3.7.1.1: memory that cannot be written to is an error at its owner, whoever would have written: here nobody calls
// there.
UTOFU_TEST(2, OneSidedSealed, Section3_7__put_into_memory_that_cannot_be_written_is_told_and_changes_nothing) {
  Ring ring(self, 64);
  constexpr std::size_t kBytes = 4 * 65536;  // Whole pages, of whatever size.
  auto* const sealed =
      static_cast<unsigned char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(sealed, MAP_FAILED);
  std::memset(sealed, 5, kBytes);
  ASSERT_EQ(mprotect(sealed, kBytes, PROT_READ), 0);
  utofu_stadd_t stadd = 0;
  ASSERT_EQ(utofu_reg_mem(ring.vcq, sealed, kBytes, 0, &stadd), UTOFU_SUCCESS);
  const auto theirs = self.share(stadd);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{4096}, kBytes}) {
    for (int i = 0; self.rank() == 0 && i < 10; ++i) {
      usleep(1000);
      ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, stadd, theirs[1], bytes, 1, 0, nullptr), UTOFU_SUCCESS);
      utofu_mrq_notice notice{};
      EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_RMT_MEMORY) << bytes;
    }
  }
  self.barrier();
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(sealed[i], 5) << i;
  EXPECT_EQ(utofu_dereg_mem(ring.vcq, stadd, 0), UTOFU_SUCCESS);
  self.barrier();
  munmap(sealed, kBytes);
}

UTOFU_TEST(3, SessionMode, Section2_2_8__relay_forks_joins_and_starts_late_descriptors) {
  Ring ring(self, 4096, self.rank() == 1 ? UTOFU_VCQ_FLAG_SESSION_MODE : 0);
  const auto relay = ring.places[1], terminal = ring.places[2];
  if (self.rank() == 1) {
    ASSERT_EQ(utofu_put(ring.vcq, terminal.vcq_id, ring.stadd, terminal.stadd, 8, 1, kAllNotices, nullptr),
              UTOFU_SUCCESS);
    ASSERT_EQ(utofu_put(ring.vcq, terminal.vcq_id, ring.stadd, terminal.stadd + 8, 8, 2, kAllNotices, nullptr),
              UTOFU_SUCCESS);
  }
  self.barrier();
  if (self.rank() == 0) {
    ring.memory[0] = 99;
    ASSERT_EQ(utofu_put(ring.vcq, relay.vcq_id, ring.stadd, relay.stadd, 8, 0, UTOFU_ONESIDED_FLAG_SPS(3), nullptr),
              UTOFU_SUCCESS);
  }
  if (self.rank() == 2) {
    for (const std::uint64_t edata : {1, 2}) {
      utofu_mrq_notice notice{};
      ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      EXPECT_EQ(notice.edata, edata);
    }
    EXPECT_EQ(ring.memory[0], 99);
    EXPECT_EQ(ring.memory[8], 99);
  }
  self.barrier();
  // One of the three steps was lacking: the next descriptor starts at once, the one after waits.
  if (self.rank() == 1) {
    void* cbdata = nullptr;
    EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
    EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_nop(ring.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, callback(1)), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_nop(ring.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, callback(2)), UTOFU_SUCCESS);
    EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
    EXPECT_EQ(cbdata, callback(1));
    EXPECT_EQ(utofu_poll_tcq(ring.vcq, 0, &cbdata), UTOFU_ERR_NOT_FOUND);
  }
  self.barrier();
}
