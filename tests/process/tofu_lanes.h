// What the tests of lanes have in common: VCQs with memory on lanes of a process, and threads that use them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <utofu.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/segment/segment_view.h"
#include "tests/conformance/harness/process.h"
#include "tests/support/eventually.h"

namespace portofu {

using namespace conformance;

inline constexpr int kLanes = 4;
inline constexpr int kTnis = 6;
inline constexpr unsigned long kTcq = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
inline constexpr unsigned long kLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
inline constexpr unsigned long kRemote = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

/// CQs belong to the jobs of a machine: each test is one of its own.
class TofuLanes : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("PORTOFU_JOB_KEY", std::to_string(getpid()).c_str(), 1);
    setenv("PORTOFU_LANES", std::to_string(kLanes).c_str(), 1);
    setenv("PORTOFU_PEER_CHECK_MS", "20", 1);
  }
  void TearDown() override {
    for (const char* name : {"PORTOFU_JOB_KEY", "PORTOFU_LANES", "PORTOFU_PEER_CHECK_MS"}) unsetenv(name);
  }
};

/// Segments of this process, one for each engine.
inline std::size_t count_segments() {
  std::vector<SegmentView> views;
  EXPECT_TRUE(view_segments("/dev/shm", &views));
  return static_cast<std::size_t>(std::ranges::count_if(views, [](const SegmentView& view) {
    return view.life == SegmentLife::kLiving && view.descriptor.os_pid == static_cast<std::uint32_t>(getpid());
  }));
}

/// What others need of a VCQ.
struct Name {
  utofu_vcq_id_t id = 0;
  utofu_stadd_t stadd = 0;
};

/// A VCQ with registered memory.
struct End {
  static constexpr std::size_t kBytes = 4096;

  explicit End(int tni, unsigned long flags = 0, void* memory = nullptr, std::size_t bytes = kBytes) {
    EXPECT_EQ(utofu_create_vcq(static_cast<utofu_tni_id_t>(tni), flags, &vcq), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_query_vcq_id(vcq, &name.id), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_reg_mem(vcq, memory != nullptr ? memory : own, bytes, 0, &name.stadd), UTOFU_SUCCESS);
  }
  ~End() { EXPECT_EQ(utofu_free_vcq(vcq), UTOFU_SUCCESS); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  int put(const Name& to, std::uint64_t edata, unsigned long flags) const {
    int rc = UTOFU_ERR_BUSY;
    eventually([&] {
      return (rc = utofu_put(vcq, to.id, name.stadd, to.stadd + 8, 8, edata, flags, nullptr)) != UTOFU_ERR_BUSY;
    });
    return rc;
  }
  int poll_tcq() const {
    void* data = nullptr;
    int rc = UTOFU_ERR_NOT_FOUND;
    eventually([&] { return (rc = utofu_poll_tcq(vcq, 0, &data)) != UTOFU_ERR_NOT_FOUND; });
    return rc;
  }
  int poll_mrq(utofu_mrq_notice* notice) const {
    int rc = UTOFU_ERR_NOT_FOUND;
    eventually([&] { return (rc = utofu_poll_mrq(vcq, 0, notice)) != UTOFU_ERR_NOT_FOUND; });
    return rc;
  }
  /// The next notice is the put number `number` of the peer.
  void expect_put(std::uint64_t number) const {
    utofu_mrq_notice notice{};
    EXPECT_EQ(poll_mrq(&notice), UTOFU_SUCCESS);
    EXPECT_EQ(notice.notice_type, UTOFU_MRQ_TYPE_RMT_PUT);
    EXPECT_EQ(notice.edata, number % 256);
  }

  alignas(256) char own[kBytes] = {};
  utofu_vcq_hdl_t vcq = 0;
  Name name;
};

/// Messages there and back, by one thread of each process.
inline void exchange(const End& end, const Name& peer, bool begins, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (!begins) end.expect_put(static_cast<std::uint64_t>(round));
    EXPECT_EQ(end.put(peer, static_cast<std::uint64_t>(round) % 256, kTcq | kRemote), UTOFU_SUCCESS);
    EXPECT_EQ(end.poll_tcq(), UTOFU_SUCCESS);
    if (begins) end.expect_put(static_cast<std::uint64_t>(round));
  }
}

using Ends = std::vector<std::unique_ptr<End>>;
template <std::size_t kCount>
using Names = std::array<Name, kCount>;

inline Ends make_ends(int count, bool on_one_tni = false) {
  Ends ends;
  for (int i = 0; i < count; ++i) ends.push_back(std::make_unique<End>(on_one_tni ? 0 : i % kTnis));
  return ends;
}

/// @return the names of the other process's
template <std::size_t kCount>
Names<kCount> share_names(Process& self, const Ends& ends) {
  Names<kCount> mine;
  for (std::size_t i = 0; i < kCount; ++i) mine[i] = ends[i]->name;
  return self.share(mine)[static_cast<std::size_t>(1 - self.rank())];
}

inline void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace portofu
