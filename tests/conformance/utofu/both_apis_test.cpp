// Both APIs in one process: one engine, one atomic unit, one memory.
#include <portals4.h>
#include <sys/wait.h>

#include <array>
#include <atomic>

#include "tests/support/eventually.h"
#include "utofu_fixture.h"

using namespace conformance;

namespace {

constexpr ptl_time_t kPatienceMs = 1000 * portofu::kLongestWait.count();

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
    EXPECT_EQ(PtlEQPoll(&eq, 1, kPatienceMs, &event, &which), PTL_OK);
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
      ASSERT_EQ(PtlEQPoll(&portals.eq, 1, kPatienceMs, &event, &which), PTL_OK);
      ASSERT_EQ(event.type, PTL_EVENT_ACK);
      ASSERT_EQ(utofu_put_piggyback8(ring.vcq, ring.next.vcq_id, round, ring.next.stadd + 32, 8, 0,
                                     UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
    } else {
      ptl_ct_event_t count{};
      unsigned int which = 0;
      ASSERT_EQ(PtlCTPoll(&ct, &round, 1, kPatienceMs, &count, &which), PTL_OK);
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

/// How the number of entries of an MRQ is asked for, and of which VCQ that is.
struct Asked {
  const char* name;
  const char* value;
  unsigned long vcq_flags;
};

/// Fills an MRQ with as many notices, in a process of its own, which ends with 0 if none overflows it.
[[noreturn]] void fill_mrq(const Asked& asked, int notices) {
  setenv(asked.name, asked.value, 1);
  own_job();
  static std::uint64_t word = 0;
  utofu_vcq_hdl_t source = 0, vcq = 0;
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;
  utofu_create_vcq(0, 0, &source);
  utofu_create_vcq(0, asked.vcq_flags, &vcq);
  utofu_query_vcq_id(vcq, &id);
  utofu_reg_mem(vcq, &word, sizeof word, 0, &stadd);
  for (int posted = 0; posted <= notices;) {  // The last one is told here: then all others have arrived.
    void* cbdata = nullptr;
    const unsigned long told =
        posted < notices ? UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE : UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
    if (utofu_put_piggyback8(source, id, 1, stadd, 8, 0, told, nullptr) == UTOFU_SUCCESS) ++posted;
    utofu_poll_tcq(source, 0, &cbdata);
  }
  utofu_mrq_notice notice{};
  _exit(poll_mrq(source, &notice) == UTOFU_SUCCESS ? 0 : 1);
}

/// @param said  gets what the process prints on standard error
/// @return its status, as of waitpid
int status_of_filling(const Asked& asked, int notices, std::string* said) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    fill_mrq(asked, notices);
  }
  close(ends[1]);
  said->clear();
  char text[512];
  for (ssize_t got = 0; (got = read(ends[0], text, sizeof text)) > 0;)
    said->append(text, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace

// Chapter 7: notices that nobody reads end the program, and it says why.
UTOFU_TEST(1, MrqOverflow, Section7__ends_the_program_with_its_message) {
  std::string said;
  const int status = status_of_filling({"UTOFU_NUM_MRQ_ENTRIES", "2Ki", 0}, 2049, &said);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_NE(said.find("utofu: asynchronous error: MRQ Overflow on TNI 0 CQ 0"), std::string::npos) << said;
}

// 4.3.2.3: "the above value closest to it is assumed", of two that are equally close the higher; units in any case.
UTOFU_TEST(1, MrqEntries, Section4_3_2_3__the_closest_size_is_taken) {
  struct Row {
    const char* value;
    int entries;
  };
  std::string said;
  for (const Row& row : {Row{"2048", 2048}, Row{"1", 2048}, Row{"5119", 2048}, Row{"5120", 8192}, Row{"8kI", 8192}}) {
    const Asked asked{"UTOFU_NUM_MRQ_ENTRIES", row.value, 0};
    EXPECT_EQ(status_of_filling(asked, row.entries, &said), 0) << row.value << ": " << said;
    EXPECT_TRUE(WIFSIGNALED(status_of_filling(asked, row.entries + 1, &said))) << row.value;
  }
}

// 4.3.2.4: an MRQ in session mode has a length of its own.
UTOFU_TEST(1, MrqEntries, Section4_3_2_4__session_mode_has_its_own) {
  std::string said;
  const Asked asked{"UTOFU_NUM_MRQ_ENTRIES_SESSION", "2Ki", UTOFU_VCQ_FLAG_SESSION_MODE};
  EXPECT_EQ(status_of_filling(asked, 2048, &said), 0) << said;
  EXPECT_TRUE(WIFSIGNALED(status_of_filling(asked, 2049, &said)));
  EXPECT_EQ(status_of_filling({asked.name, asked.value, 0}, 2049, &said), 0) << "the free mode has another: " << said;
}

// What is no number is told, and not taken for one.
UTOFU_TEST(1, MrqEntries, Section4_3_2_3__what_is_no_number_is_told) {
  for (const char* name : {"UTOFU_NUM_MRQ_ENTRIES", "UTOFU_NUM_MRQ_ENTRIES_SESSION"}) {
    std::string said;
    EXPECT_EQ(status_of_filling({name, "2K", 0}, 2049, &said), 0);
    EXPECT_NE(said.find(std::string(name) + "=2K is not allowed"), std::string::npos) << said;
  }
}
