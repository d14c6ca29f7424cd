// Guide 2.2.8: session mode in several processes. What one relay does alone is in s3_07_onesided_test.cpp.
#include <chrono>
#include <cstring>

#include "tests/support/eventually.h"
#include "utofu_fixture.h"

using namespace conformance;

namespace {

constexpr unsigned long kRemoteNotice = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

unsigned long steps(unsigned long sps) { return UTOFU_ONESIDED_FLAG_SPS(sps); }

void expect_nothing(utofu_vcq_hdl_t vcq) {
  utofu_mrq_notice notice{};
  EXPECT_EQ(utofu_poll_mrq(vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
}

/// Waits for one notice of a put to here.
utofu_mrq_notice take_put(utofu_vcq_hdl_t vcq) {
  utofu_mrq_notice notice{};
  EXPECT_EQ(poll_mrq(vcq, &notice), UTOFU_SUCCESS);
  EXPECT_EQ(notice.notice_type, UTOFU_MRQ_TYPE_RMT_PUT);
  return notice;
}

}  // namespace

// Figure 2.14: three processes bring a part each, the fourth passes all of it on to the fifth.
UTOFU_TEST(5, Session, Section2_2_8_3__a_join_waits_for_all) {
  constexpr std::size_t kPart = 100;
  const bool relays = self.rank() == 3;
  Ring ring(self, 4096, relays ? UTOFU_VCQ_FLAG_SESSION_MODE : 0);
  const auto relay = ring.places[3], terminal = ring.places[4];
  for (int round = 0; round < 20; ++round) {
    if (relays) {
      ASSERT_EQ(utofu_nop(ring.vcq, 0, nullptr), UTOFU_SUCCESS);
      ASSERT_EQ(utofu_nop(ring.vcq, 0, nullptr), UTOFU_SUCCESS);
      ASSERT_EQ(utofu_put(ring.vcq, terminal.vcq_id, ring.stadd, terminal.stadd, 3 * kPart, 9, kRemoteNotice, nullptr),
                UTOFU_SUCCESS);
    }
    const auto bring = [&] {
      std::memset(ring.memory.data(), 10 * round + self.rank(), kPart);
      const auto part = kPart * static_cast<std::size_t>(self.rank());
      ASSERT_EQ(utofu_put(ring.vcq, relay.vcq_id, ring.stadd, relay.stadd + part, kPart, 0,
                          steps(1) | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
      utofu_mrq_notice notice{};
      EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
    };
    const int last = round % 3;
    if (self.rank() < 3 && self.rank() != last) bring();
    self.barrier();
    if (self.rank() == 4) expect_nothing(ring.vcq);
    self.barrier();
    if (self.rank() == last) bring();
    if (self.rank() == 4) {
      take_put(ring.vcq);
      for (std::size_t i = 0; i < 3 * kPart; ++i)
        ASSERT_EQ(ring.memory[i], 10 * round + static_cast<int>(i / kPart)) << "round " << round << " byte " << i;
      expect_nothing(ring.vcq);
    }
    self.barrier();
  }
}

// Figure 2.15, with one more relay: each part goes on as soon as it has come.
UTOFU_TEST(4, Session, Section2_2_8_4__a_pipeline_passes_its_parts_on_in_order) {
  constexpr std::size_t kPart = 30000, kParts = 20;
  const bool relays = self.rank() == 1 || self.rank() == 2;
  Ring ring(self, kPart * kParts, relays ? UTOFU_VCQ_FLAG_SESSION_MODE : 0);
  const bool begins = self.rank() == 0;
  if (begins) {
    for (std::size_t i = 0; i < kPart * kParts; ++i) ring.memory[i] = static_cast<unsigned char>(i * 7 + i / kPart);
  }
  const unsigned long flags = self.rank() == 2 ? kRemoteNotice : steps(1);
  const auto send = [&] {
    for (std::size_t part = 0; part < kParts; ++part) {
      ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd + part * kPart, ring.next.stadd + part * kPart, kPart,
                          part, flags, nullptr),
                UTOFU_SUCCESS);
    }
  };
  if (relays) send();
  self.barrier();
  if (begins) send();
  if (self.rank() == 3) {
    for (std::size_t part = 0; part < kParts; ++part) {
      EXPECT_EQ(take_put(ring.vcq).edata, part);
      for (std::size_t i = part * kPart; i < (part + 1) * kPart; ++i)
        ASSERT_EQ(ring.memory[i], static_cast<unsigned char>(i * 7 + i / kPart)) << "part " << part << " byte " << i;
    }
  }
  self.barrier();
}

// 2.2.8.2: relays fork to relays. Nobody but the first does anything; half of them write their descriptors late.
UTOFU_TEST(7, Session, Section2_2_8_2__forks_of_forks_reach_everybody) {
  const bool begins = self.rank() == 0;
  Ring ring(self, 4096, begins ? 0 : UTOFU_VCQ_FLAG_SESSION_MODE);
  constexpr int kRounds = 15;
  const auto write_descriptors = [&](int round) {
    for (int child = 2 * self.rank() + 1; child <= 2 * self.rank() + 2 && child < self.size(); ++child) {
      const auto& to = ring.places[static_cast<std::size_t>(child)];
      const unsigned long sps = 2 * child + 1 < self.size() ? 2 : 0;
      ASSERT_EQ(utofu_put(ring.vcq, to.vcq_id, ring.stadd, to.stadd, 512, static_cast<std::uint64_t>(round),
                          steps(sps) | kRemoteNotice, nullptr),
                UTOFU_SUCCESS);
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    const bool late = (self.rank() + round) % 2 == 0;
    if (!begins && !late) write_descriptors(round);
    self.barrier();
    if (begins) {
      std::memset(ring.memory.data(), round + 1, 512);
      write_descriptors(round);
    }
    if (!begins && late) write_descriptors(round);
    if (!begins) {
      EXPECT_EQ(take_put(ring.vcq).edata, static_cast<std::uint64_t>(round));
      for (std::size_t i = 0; i < 512; ++i) ASSERT_EQ(ring.memory[i], round + 1);
    }
    self.barrier();
  }
}

UTOFU_TEST_BOTH(Session, Section2_2_8_1__up_to_2000_descriptors_may_be_lacking) {
  own_job();
  utofu_vcq_hdl_t free_vcq = 0, relay_vcq = 0;
  ASSERT_EQ(utofu_create_vcq(0, UTOFU_VCQ_FLAG_SESSION_MODE, &relay_vcq), UTOFU_SUCCESS);
  utofu_vcq_id_t relay_id = 0;
  ASSERT_EQ(utofu_query_vcq_id(relay_vcq, &relay_id), UTOFU_SUCCESS);
  unsigned char byte = 1;
  utofu_stadd_t relay_stadd = 0, stadd = 0;
  unsigned char place = 0;
  ASSERT_EQ(utofu_reg_mem(relay_vcq, &place, 1, 0, &relay_stadd), UTOFU_SUCCESS);
  const auto ids = self.share(relay_id);
  const auto stadds = self.share(relay_stadd);
  const auto next = static_cast<std::size_t>((self.rank() + 1) % self.size());
  ASSERT_EQ(utofu_create_vcq(1, 0, &free_vcq), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_reg_mem(free_vcq, &byte, 1, 0, &stadd), UTOFU_SUCCESS);
  constexpr int kPuts = 133, kLacking = 133 * 15;
  utofu_mrq_notice notice{};
  for (int i = 0; i < kPuts; ++i) {
    const unsigned long flags = steps(15) | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
    ASSERT_EQ(utofu_put(free_vcq, ids[next], stadd, stadds[next], 1, 0, flags, nullptr), UTOFU_SUCCESS);
    ASSERT_EQ(poll_mrq(free_vcq, &notice), UTOFU_SUCCESS);
  }
  self.barrier();
  for (std::uintptr_t i = 0; i <= kLacking; ++i)
    ASSERT_EQ(utofu_nop(relay_vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, callback(i)), UTOFU_SUCCESS);
  void* cbdata = nullptr;
  for (std::uintptr_t i = 0; i < kLacking; ++i) {
    ASSERT_EQ(poll_tcq(relay_vcq, &cbdata), UTOFU_SUCCESS);
    ASSERT_EQ(cbdata, callback(i));
  }
  EXPECT_EQ(utofu_poll_tcq(relay_vcq, 0, &cbdata), UTOFU_ERR_NOT_FOUND) << "This one was not lacking.";
  self.barrier();
}

UTOFU_TEST(2, Session, Section2_2_8_1__a_put_that_fails_starts_nothing) {
  const bool relays = self.rank() == 1;
  Ring ring(self, 4096, relays ? UTOFU_VCQ_FLAG_SESSION_MODE : 0);
  void* cbdata = nullptr;
  if (relays) {
    ASSERT_EQ(utofu_nop(ring.vcq, UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr), UTOFU_SUCCESS);
  }
  self.barrier();
  if (!relays) {
    utofu_mrq_notice notice{};
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd + 4090, 8, 3, steps(1), nullptr),
              UTOFU_SUCCESS);
    EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_ERR_MRQ_RMT_LENGTH);
  }
  self.barrier();
  if (relays) {
    EXPECT_EQ(utofu_poll_tcq(ring.vcq, 0, &cbdata), UTOFU_ERR_NOT_FOUND);
  }
  self.barrier();
  if (!relays) {
    ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, 8, 3, steps(1), nullptr),
              UTOFU_SUCCESS);
  }
  if (relays) {
    EXPECT_EQ(poll_tcq(ring.vcq, &cbdata), UTOFU_SUCCESS);
  }
  self.barrier();
}

// 2.2.8: the relays are of the interface, not of the program: every process behind the first one spins on its own
// memory and calls nothing, not even the system, until what it waits for is there. More processes than many machines'
// cores.
UTOFU_TEST(5, Session, Section2_2_8__relays_go_on_while_the_programs_only_look_at_their_memory) {
  constexpr std::size_t kBytes = 10000;
  constexpr unsigned char kLast = 0x5a;
  const bool begins = self.rank() == 0;
  const bool ends = self.rank() == self.size() - 1;
  Ring ring(self, kBytes, begins ? 0 : UTOFU_VCQ_FLAG_SESSION_MODE);
  volatile const unsigned char* const last = ring.memory.data() + kBytes - 1;
  if (begins) std::memset(ring.memory.data(), kLast, kBytes);
  const auto send = [&] {
    ASSERT_EQ(
        utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd, kBytes, 0, steps(ends ? 0 : 1), nullptr),
        UTOFU_SUCCESS);
  };
  if (!begins && !ends) send();
  self.barrier();
  if (begins) send();
  const auto start = std::chrono::steady_clock::now();
  while (*last != kLast && std::chrono::steady_clock::now() - start < portofu::kLongestWait) {
  }
  ASSERT_EQ(*last, kLast);
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(ring.memory[i], kLast) << "byte " << i;
  self.barrier();
}
