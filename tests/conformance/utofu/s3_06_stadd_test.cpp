// Guide 2.2.2 and 3.6: registration.
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "utofu_fixture.h"

using namespace conformance;

namespace {

/// Memory of this process that is not swapped out, in KiB.
long locked_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) return std::stol(line.substr(6));
  }
  return -1;
}

struct Registered {
  Registered() {
    own_job();
    EXPECT_EQ(utofu_create_vcq(0, 0, &vcq), UTOFU_SUCCESS);
  }
  utofu_vcq_hdl_t vcq = 0;
  alignas(256) unsigned char memory[4096] = {};
};

}  // namespace

UTOFU_TEST(1, Stadd, Section3_6_1_1__the_same_region_keeps_its_stadd_and_is_counted) {
  static Registered r;
  utofu_stadd_t first = 0, again = 0, part = 0, other = 0;
  ASSERT_EQ(utofu_reg_mem(r.vcq, r.memory, 4096, 0, &first), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_reg_mem(r.vcq, r.memory, 4096, 0, &again), UTOFU_SUCCESS);
  EXPECT_EQ(first, again);
  EXPECT_EQ(first & ((utofu_stadd_t{1} << 40) - 1), 0u);
  ASSERT_EQ(utofu_reg_mem(r.vcq, r.memory + 100, 50, 0, &part), UTOFU_SUCCESS);
  EXPECT_NE(part >> 40, first >> 40) << "it is registered as long as it is itself";
  ASSERT_EQ(utofu_reg_mem(r.vcq, r.memory, 4096, 0, &again), UTOFU_SUCCESS);
  EXPECT_EQ(first, again) << "whatever was registered meanwhile";
  EXPECT_EQ(utofu_dereg_mem(r.vcq, again, 0), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_reg_mem(r.vcq, r.memory, 4096, UTOFU_REG_MEM_FLAG_READ_ONLY, &other), UTOFU_SUCCESS);
  EXPECT_NE(other >> 40, first >> 40);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, first, 0), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, first, 0), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, first, 0), UTOFU_ERR_INVALID_STADD);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, part, 0), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, part, 0), UTOFU_ERR_INVALID_STADD);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, other, 0), UTOFU_SUCCESS);
}

UTOFU_TEST(1, Stadd, Section3_6_1_2__chosen_stags_are_computable) {
  static Registered r;
  utofu_vcq_hdl_t second = 0;
  ASSERT_EQ(utofu_create_vcq(0, 0, &second), UTOFU_SUCCESS);
  utofu_vcq_id_t id = 0;
  utofu_stadd_t given = 0, computed = 0;
  ASSERT_EQ(utofu_reg_mem_with_stag(second, r.memory, 512, 255, 0, &given), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_query_vcq_id(second, &id), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_query_stadd(id, 255, &computed), UTOFU_SUCCESS);
  EXPECT_EQ(given, computed);
  EXPECT_EQ(given, utofu_stadd_t{(8 + 1) << 8 | 255} << 40);
  EXPECT_EQ(utofu_reg_mem_with_stag(second, r.memory, 256, 255, 0, &given), UTOFU_ERR_USED);
  EXPECT_EQ(utofu_reg_mem_with_stag(r.vcq, r.memory, 256, 255, 0, &given), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_dereg_mem(second, computed, 0), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_reg_mem_with_stag(second, r.memory + 256, 256, 255, 0, &given), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_reg_mem_with_stag(r.vcq, r.memory + 1, 256, 1, 0, &given), UTOFU_ERR_INVALID_ADDRESS);
  EXPECT_EQ(utofu_reg_mem_with_stag(r.vcq, r.memory, 255, 1, 0, &given), UTOFU_ERR_INVALID_SIZE);
  EXPECT_EQ(utofu_reg_mem_with_stag(r.vcq, r.memory, 256, 256, 0, &given), UTOFU_ERR_INVALID_STAG);
  EXPECT_EQ(utofu_query_stadd(id, 256, &computed), UTOFU_ERR_INVALID_STAG);
  EXPECT_EQ(utofu_query_stadd(1, 0, &computed), UTOFU_ERR_INVALID_VCQ_ID);
}

UTOFU_TEST(1, Stadd, Section3_6_1__arguments) {
  static Registered r;
  utofu_stadd_t stadd = 0;
  EXPECT_EQ(utofu_reg_mem(r.vcq, r.memory, 0, 0, &stadd), UTOFU_ERR_INVALID_SIZE);
  EXPECT_EQ(utofu_reg_mem(r.vcq, nullptr, 8, 0, &stadd), UTOFU_ERR_INVALID_ADDRESS);
  EXPECT_EQ(utofu_reg_mem(r.vcq, callback(4096), 8, 0, &stadd), UTOFU_ERR_INVALID_ADDRESS);
  EXPECT_EQ(utofu_reg_mem(r.vcq, r.memory, 8, 2, &stadd), UTOFU_ERR_INVALID_FLAGS);
  EXPECT_EQ(utofu_reg_mem(r.vcq, r.memory, 8, 0, nullptr), UTOFU_ERR_INVALID_POINTER);
  EXPECT_EQ(utofu_reg_mem(0, r.memory, 8, 0, &stadd), UTOFU_ERR_INVALID_VCQ_HDL);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, 0, 0), UTOFU_ERR_INVALID_STADD);
  ASSERT_EQ(utofu_reg_mem(r.vcq, r.memory, 8, 0, &stadd), UTOFU_SUCCESS);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, stadd, 1), UTOFU_ERR_INVALID_FLAGS);
  EXPECT_EQ(utofu_dereg_mem(r.vcq, stadd + 1, 0), UTOFU_ERR_INVALID_STADD);
}

// "If a value other than 0 or 1 is specified, it is assumed to be 1."
UTOFU_TEST(1, Stadd, Section4_3_2_5__registered_memory_is_locked) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur < 131072) return;  // Then the guide lets it be swapped.
  setenv("UTOFU_SWAP_PROTECT", "-1", 1);
  static Registered r;
  const long before = locked_kib();
  utofu_stadd_t stadd = 0;
  ASSERT_EQ(utofu_reg_mem(r.vcq, r.memory, sizeof r.memory, 0, &stadd), UTOFU_SUCCESS);
  EXPECT_GE(locked_kib(), before + 4);
  // "the memory region used for communication": of what is used no more nothing counts against the limit, and a part of
  // a region that goes is locked as long as another has it.
  alignas(4096) static unsigned char pages[4 * 4096];
  const long without = locked_kib();
  utofu_stadd_t whole = 0, middle = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(utofu_reg_mem(r.vcq, pages, sizeof pages, 0, &whole), UTOFU_SUCCESS);
    ASSERT_EQ(utofu_reg_mem(r.vcq, pages + 4096 + 100, 4096, 0, &middle), UTOFU_SUCCESS);
    EXPECT_EQ(locked_kib(), without + 16);
    ASSERT_EQ(utofu_dereg_mem(r.vcq, whole, 0), UTOFU_SUCCESS);
    EXPECT_EQ(locked_kib(), without + 8);
    EXPECT_EQ(utofu_dereg_mem(r.vcq, middle, 0), UTOFU_SUCCESS);
    EXPECT_EQ(locked_kib(), without);
  }
  ASSERT_EQ(utofu_reg_mem(r.vcq, pages, sizeof pages, 0, &whole), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_free_vcq(r.vcq), UTOFU_SUCCESS);
  EXPECT_EQ(locked_kib(), before);
}

// 3.6: what is deregistered is reached no more, though a part of it is registered still.
UTOFU_TEST(2, Deregistration, Section3_6_1_4__of_a_whole_ends_what_no_part_has) {
  Ring ring(self, 4096);
  utofu_stadd_t whole = 0, part = 0;
  ASSERT_EQ(utofu_reg_mem(ring.vcq, ring.memory.data(), 2048, 0, &whole), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_reg_mem(ring.vcq, ring.memory.data() + 64, 8, 0, &part), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_dereg_mem(ring.vcq, whole, 0), UTOFU_SUCCESS);
  const auto other = static_cast<std::size_t>(1 - self.rank());
  const utofu_stadd_t their_whole = self.share(whole)[other];
  const utofu_stadd_t their_part = self.share(part)[other];
  const auto put = [&](utofu_stadd_t to) {
    utofu_mrq_notice notice{};
    EXPECT_EQ(
        utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, to, 8, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
        UTOFU_SUCCESS);
    return poll_mrq(ring.vcq, &notice);
  };
  EXPECT_EQ(put(their_part), UTOFU_SUCCESS);
  EXPECT_EQ(put(their_whole), UTOFU_ERR_MRQ_RMT_STADD);
  EXPECT_EQ(put(their_part), UTOFU_SUCCESS);
  self.barrier();
}

// 3.1.2.1: the remote STADD is outside of what is registered. The target serves peers only in its calls, so the data is
// on its way when the memory goes.
UTOFU_TEST(2, Deregistration, Section3_6_1_4__what_a_get_still_reads_is_told_as_a_wrong_stadd) {
  constexpr std::size_t kBytes = 12'000'000;
  setenv("PORTOFU_PROGRESS_THREAD", "0", 1);
  setenv("PORTOFU_DIRECT", "0", 1);
  Ring ring(self, kBytes);
  utofu_mrq_notice notice{};
  static unsigned char word[8];
  utofu_stadd_t own_word = 0;
  ASSERT_EQ(utofu_reg_mem(ring.vcq, word, sizeof word, 0, &own_word), UTOFU_SUCCESS);
  const auto words = self.share(own_word);
  if (self.rank() == 0) {
    ASSERT_EQ(utofu_get(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, kBytes, 7,
                        UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
              UTOFU_SUCCESS);
    self.barrier();
    self.barrier();
    EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_RMT_STADD);
    EXPECT_EQ(notice.edata, 7u);
    EXPECT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, own_word, words[1], sizeof word, 8,
                        UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
              UTOFU_SUCCESS);
    EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
    self.barrier();
  } else {
    self.barrier();
    for (int look = 0; look < 100; ++look) EXPECT_EQ(utofu_poll_mrq(ring.vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
    ASSERT_EQ(utofu_dereg_mem(ring.vcq, ring.stadd, 0), UTOFU_SUCCESS);
    self.barrier();
    // What is lost on the way is sent again only while somebody calls, so this serves rank 0 until that has its
    // notices.
    std::atomic<bool> is_over{false};
    std::thread end([&] {
      self.barrier();
      is_over = true;
    });
    bool came = false;
    const auto look = [&] {
      if (utofu_poll_mrq(ring.vcq, 0, &notice) == UTOFU_SUCCESS && notice.edata == 8) came = true;
    };
    while (!is_over) look();
    look();
    end.join();
    EXPECT_TRUE(came);
  }
}
