// Both APIs in one process: one engine, one atomic unit, one memory.
#include <portals4.h>
#include <sys/wait.h>

#include <array>
#include <atomic>

#include "utofu_fixture.h"

using namespace conformance;

namespace {

/// A word that everybody may change by Portals, too.
struct PortalsSide {
  PortalsSide(void* memory, std::size_t bytes) {
    EXPECT_EQ(PtlInit(), PTL_OK);
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni),
              PTL_OK);
    EXPECT_EQ(PtlGetPhysId(ni, &id), PTL_OK);
    EXPECT_EQ(PtlEQAlloc(ni, 64, &eq), PTL_OK);
    ptl_pt_index_t pt = 0;
    EXPECT_EQ(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 3, &pt), PTL_OK);
    ptl_le_t le{};
    le.start = memory;
    le.length = bytes;
    le.ct_handle = PTL_CT_NONE;
    le.uid = PTL_UID_ANY;
    le.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_LINK_DISABLE;
    ptl_handle_le_t handle = 0;
    EXPECT_EQ(PtlLEAppend(ni, 3, &le, PTL_PRIORITY_LIST, nullptr, &handle), PTL_OK);
    ptl_md_t described{};
    described.start = operands;
    described.length = sizeof operands;
    described.eq_handle = eq;
    described.ct_handle = PTL_CT_NONE;
    described.options = PTL_MD_EVENT_SEND_DISABLE;
    EXPECT_EQ(PtlMDBind(ni, &described, &md), PTL_OK);
  }

  /// Adds 1 to the word at the target. @return what was there
  std::uint64_t fetch_add(ptl_process_t target) {
    operands[0] = 1;
    EXPECT_EQ(PtlFetchAtomic(md, 8, md, 0, 8, target, 3, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T), PTL_OK);
    ptl_event_t event{};
    unsigned int which = 0;
    EXPECT_EQ(PtlEQPoll(&eq, 1, kTofuPatienceMs, &event, &which), PTL_OK);
    EXPECT_EQ(event.type, PTL_EVENT_REPLY);
    return operands[1];
  }

  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_process_t id{};
  std::uint64_t operands[2] = {};
};

}  // namespace

UTOFU_TEST(4, BothApis, Section2_2_5__one_word_through_both_and_the_cpu) {
  constexpr std::uint64_t kRounds = 200;
  Ring ring(self);
  PortalsSide portals(ring.memory.data(), 8);
  const auto ids = self.share(portals.id);
  std::uint64_t fetched_sum = 0;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    if (self.rank() == 0) {
      fetched_sum += std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(ring.memory.data())).fetch_add(1);
    } else if (i % 2 == 0) {
      fetched_sum += portals.fetch_add(ids[0]);
    } else {
      utofu_mrq_notice notice{};
      ASSERT_EQ(utofu_armw8(ring.vcq, ring.places[0].vcq_id, UTOFU_ARMW_OP_ADD, 1, ring.places[0].stadd, 0,
                            UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
      ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      fetched_sum += notice.rmt_value;
    }
  }
  const auto sums = self.share(fetched_sum);
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all += sum;
  const std::uint64_t total = kRounds * 4;
  EXPECT_EQ(all, total * (total - 1) / 2);  // Every value was fetched once.
  if (self.rank() == 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, ring.memory.data(), 8);
    EXPECT_EQ(word, total);
  }
  self.barrier();
}

// Guide 2.2.5 and Portals 3.15: what eight processes fetch by turns through both APIs are all values, each once.
UTOFU_TEST(8, BothApis, Section2_2_5__eight_processes_fetch_a_permutation) {
  constexpr std::uint64_t kRounds = 16;  // Of each API, so that a share of the values fits into one exchange.
  Ring ring(self);
  PortalsSide portals(ring.memory.data(), 8);
  const auto ids = self.share(portals.id);
  std::array<std::uint16_t, 2 * kRounds> fetched{};
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    if ((i + static_cast<std::size_t>(self.rank())) % 2 == 0) {
      fetched[i] = static_cast<std::uint16_t>(portals.fetch_add(ids[0]));
    } else {
      utofu_mrq_notice notice{};
      ASSERT_EQ(utofu_armw8(ring.vcq, ring.places[0].vcq_id, UTOFU_ARMW_OP_ADD, 1, ring.places[0].stadd, 0,
                            UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
      ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      fetched[i] = static_cast<std::uint16_t>(notice.rmt_value);
    }
  }
  std::vector<int> seen(fetched.size() * 8);
  for (const auto& values : self.share(fetched)) {
    for (const std::uint16_t value : values) {
      ASSERT_LT(value, seen.size());
      ++seen[value];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  if (self.rank() == 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, ring.memory.data(), 8);
    EXPECT_EQ(word, seen.size());
  }
  self.barrier();
}

// What the local MRQ notice of a put has told (guide 2.2.3) is in memory when a later Portals message is counted, and
// what an ACK has told is there when a later uTofu put is noticed.
UTOFU_TEST(2, BothApis, Section2_2_3__one_api_tells_what_the_other_has_written) {
  Ring ring(self);
  PortalsSide portals(ring.memory.data(), ring.memory.size());
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlCTAlloc(portals.ni, &ct), PTL_OK);
  ptl_pt_index_t pt = 0;
  ASSERT_EQ(PtlPTAlloc(portals.ni, 0, PTL_EQ_NONE, 4, &pt), PTL_OK);
  const ptl_le_t le{ring.memory.data(), 8, ct, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  ASSERT_EQ(PtlLEAppend(portals.ni, 4, &le, PTL_PRIORITY_LIST, nullptr, &entry), PTL_OK);
  const auto ids = self.share(portals.id);
  auto* words = reinterpret_cast<std::uint64_t*>(ring.memory.data());
  utofu_mrq_notice notice{};
  for (std::uint64_t round = 1; round <= 50; ++round) {
    if (self.rank() == 0) {
      portals.operands[0] = words[2] = round;
      ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd + 16, ring.next.stadd + 8, 8, 0,
                          UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
      ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      ASSERT_EQ(PtlPut(portals.md, 0, 0, PTL_NO_ACK_REQ, ids[1], 4, 0, 0, nullptr, 0), PTL_OK);
      ASSERT_EQ(PtlPut(portals.md, 0, 8, PTL_ACK_REQ, ids[1], 3, 0, 24, nullptr, 0), PTL_OK);
      ptl_event_t event{};
      unsigned int which = 0;
      ASSERT_EQ(PtlEQPoll(&portals.eq, 1, kTofuPatienceMs, &event, &which), PTL_OK);
      ASSERT_EQ(event.type, PTL_EVENT_ACK);
      ASSERT_EQ(utofu_put_piggyback8(ring.vcq, ring.next.vcq_id, round, ring.next.stadd + 32, 8, 0,
                                     UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
    } else {
      ptl_ct_event_t count{};
      unsigned int which = 0;
      ASSERT_EQ(PtlCTPoll(&ct, &round, 1, kTofuPatienceMs, &count, &which), PTL_OK);
      EXPECT_EQ(std::atomic_ref(words[1]).load(), round);
      ASSERT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
      EXPECT_EQ(std::atomic_ref(words[3]).load(), round);
    }
    self.barrier();
  }
}

UTOFU_TEST(2, BothApis, Section2_1__utofu_goes_on_after_portals_has_ended) {
  Ring ring(self);
  {
    PortalsSide portals(ring.memory.data(), 8);
    self.barrier();
    PtlNIFini(portals.ni);
    PtlFini();
  }
  self.barrier();
  utofu_mrq_notice notice{};
  ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd + 8, 8, 1,
                      UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr),
            UTOFU_SUCCESS);
  EXPECT_EQ(poll_mrq(ring.vcq, &notice), UTOFU_SUCCESS);
  self.barrier();
}

namespace {

/// Fills an MRQ of 2048 entries with one notice more, in a process of its own.
[[noreturn]] void overflow_mrq() {
  setenv("UTOFU_NUM_MRQ_ENTRIES", "2Ki", 1);
  own_job();
  static std::uint64_t word = 0;
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;
  utofu_create_vcq(0, 0, &vcq);
  utofu_query_vcq_id(vcq, &id);
  utofu_reg_mem(vcq, &word, sizeof word, 0, &stadd);
  for (int posted = 0; posted < 2049;) {
    void* cbdata = nullptr;
    if (utofu_put_piggyback8(vcq, id, 1, stadd, 8, 0, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr) == 0) ++posted;
    utofu_poll_tcq(vcq, 0, &cbdata);
  }
  void* cbdata = nullptr;
  wait_until([&] { return utofu_poll_tcq(vcq, 0, &cbdata) == UTOFU_SUCCESS; });
  _exit(0);
}

}  // namespace

// Chapter 7: notices that nobody reads end the program, and it says why.
UTOFU_TEST(1, MrqOverflow, Section7__ends_the_program_with_its_message) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    overflow_mrq();
  }
  close(ends[1]);
  std::string said;
  char text[512];
  for (ssize_t got = 0; (got = read(ends[0], text, sizeof text)) > 0;) said.append(text, static_cast<std::size_t>(got));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_NE(said.find("utofu: asynchronous error: MRQ Overflow on TNI 0 CQ 0"), std::string::npos) << said;
}
