// What most tests of uTofu need: a job of their own on the node, VCQs that know each other, registered memory, and
// polls that end. Every wait ends; nothing is timed otherwise.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <utofu.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "../harness/process.h"
#include "tests/support/eventually.h"

namespace conformance {

/// Everything that may follow a call must be asked for.
inline constexpr unsigned long kAllNotices =
    UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

using portofu::eventually;

inline int poll_tcq(utofu_vcq_hdl_t vcq, void** cbdata) {
  int rc = UTOFU_ERR_NOT_FOUND;
  eventually([&] { return (rc = utofu_poll_tcq(vcq, 0, cbdata)) != UTOFU_ERR_NOT_FOUND; });
  return rc;
}

inline int poll_mrq(utofu_vcq_hdl_t vcq, utofu_mrq_notice* notice) {
  int rc = UTOFU_ERR_NOT_FOUND;
  eventually([&] { return (rc = utofu_poll_mrq(vcq, 0, notice)) != UTOFU_ERR_NOT_FOUND; });
  return rc;
}

inline int wait_barrier(utofu_vbg_id_t vbg) {
  int rc = UTOFU_ERR_NOT_COMPLETED;
  eventually([&] { return (rc = utofu_poll_barrier(vbg, 0)) != UTOFU_ERR_NOT_COMPLETED; });
  return rc;
}

inline int wait_reduce(utofu_vbg_id_t vbg, std::uint64_t* data) {
  int rc = UTOFU_ERR_NOT_COMPLETED;
  eventually([&] { return (rc = utofu_poll_reduce_uint64(vbg, 0, data)) != UTOFU_ERR_NOT_COMPLETED; });
  return rc;
}

/// Tests that run at the same time, or one behind the other, must not take each other's CQs and gates: every test is a
/// job of its own.
inline void own_job() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::size_t name = std::hash<std::string>{}(std::string(test.test_suite_name()) + '.' + test.name());
  const auto key = static_cast<std::uint32_t>(name ^ name >> 32 ^ static_cast<std::size_t>(getppid()) << 12) | 1;
  setenv("PORTOFU_JOB_KEY", std::to_string(key).c_str(), 1);
  setenv("PORTOFU_PEER_CHECK_MS", "20", 0);
}

/// One VCQ in each process with `bytes` of registered memory; everybody knows everybody's.
struct Ring {
  struct Place {
    utofu_vcq_id_t vcq_id;
    utofu_stadd_t stadd;
  };

  explicit Ring(Process& self, std::size_t bytes = 4096, unsigned long vcq_flags = 0) : memory(bytes) {
    own_job();
    EXPECT_EQ(utofu_create_vcq(0, vcq_flags, &vcq), UTOFU_SUCCESS);
    Place mine{};
    EXPECT_EQ(utofu_query_vcq_id(vcq, &mine.vcq_id), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_reg_mem(vcq, memory.data(), bytes, 0, &mine.stadd), UTOFU_SUCCESS);
    stadd = mine.stadd;
    places = self.share(mine);
    next = places[static_cast<std::size_t>((self.rank() + 1) % self.size())];
    const int before = (self.rank() + self.size() - 1) % self.size();
    previous = places[static_cast<std::size_t>(before)];
  }

  std::vector<unsigned char> memory;
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  std::vector<Place> places;  ///< By rank.
  Place next{};
  Place previous{};
};

inline void* callback(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

/// Processes that run `body`; one is its own neighbour.
#define UTOFU_TEST(count, suite, name)                                       \
  static void suite##_##name(::conformance::Process& self);                  \
  TEST(suite, name) { ::conformance::run_processes(count, suite##_##name); } \
  static void suite##_##name([[maybe_unused]] ::conformance::Process& self)

/// The same test in one process and between two.
#define UTOFU_TEST_BOTH(suite, name)                                                     \
  static void suite##_##name(::conformance::Process& self);                              \
  TEST(suite, name##_self) { ::conformance::run_processes(1, suite##_##name); }          \
  TEST(suite, name##_two_processes) { ::conformance::run_processes(2, suite##_##name); } \
  static void suite##_##name([[maybe_unused]] ::conformance::Process& self)

}  // namespace conformance
