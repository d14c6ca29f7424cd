// Memory that runs out in a call that only looks: what it finds in the engine is nobody's call, so the call says what
// it says otherwise, nothing is thrown, and every operation of both sides ends, perhaps with a failure. Each use of the
// allocator in such calls fails once.

#include <gtest/gtest.h>
#include <portals4.h>
#include <utofu.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/failing_memory.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

/// What the two processes of a life tell each other.
struct Stage {
  std::array<std::atomic<int>, 2> ready{};  ///< How far each is.
  std::array<std::atomic<bool>, 2> ended{};
  std::array<std::atomic<utofu_vcq_id_t>, 2> vcq{};  ///< With uTofu, and the memory that each registers.
  std::array<std::atomic<utofu_stadd_t>, 2> stadd{};
};

constexpr std::size_t kLong = 1 << 20;

void meet(Stage& stage, int own, int step) {
  stage.ready[own] = step;
  eventually([&] { return stage.ready[1 - own] >= step; });
}

/// When all has ended one more put comes through, and the other side is looked for until it has come so far.
template <class Side, class Look>
int end_well(Stage& stage, int own, Side& side, Look&& look) {
  for (unsigned tries = 1;; ++tries) {
    if (tries > 20) return 4;
    if (!side.put_last()) return 5;
    for (const double end = now_s() + kLongestWaitS; side.last_ends() < tries;) {
      if (look(side) == 2) return 6;
      if (now_s() > end) return 7;
    }
    if (side.last_has_come()) break;
  }
  stage.ready[own] = 2;
  for (const double end = now_s() + kLongestWaitS; stage.ready[1 - own] < 2;) {
    look(side);
    if (now_s() > end) return 8;
  }
  return 0;
}

// ---- Portals ----

constexpr ptl_pid_t kFirstPid = 101;
constexpr std::uintptr_t kOperations = 6;
/// Where there is no memory for its header it is dropped, and nobody is told (2.8).
constexpr std::uintptr_t kUnexpected = 3;

/// One side: an entry for all that matches, one for what is unexpected, and what it has asked of the other.
class PortalsSide {
 public:
  explicit PortalsSide(int own) {
    const ptl_process_t anybody{.phys = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY}};
    good_ = PtlInit() == PTL_OK &&
            PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, kFirstPid + static_cast<ptl_pid_t>(own),
                      nullptr, nullptr, &ni_) == PTL_OK &&
            PtlEQAlloc(ni_, 1024, &eq_) == PTL_OK && PtlCTAlloc(ni_, &ct_) == PTL_OK &&
            PtlPTAlloc(ni_, 0, eq_, 0, &pt_) == PTL_OK;
    ptl_me_t me{};
    me.start = window_.data();
    me.length = window_.size() * sizeof(std::uint64_t);
    me.ct_handle = ct_;
    me.uid = PTL_UID_ANY;
    me.match_id = anybody;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE;
    me.match_bits = 1;
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    good_ = good_ && PtlMEAppend(ni_, pt_, &me, PTL_PRIORITY_LIST, nullptr, &handle) == PTL_OK;
    me.ignore_bits = ~ptl_match_bits_t{0};
    me.start = unexpected_.data();
    me.length = unexpected_.size() * sizeof(std::uint64_t);
    me.ct_handle = PTL_CT_NONE;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
    good_ = good_ && PtlMEAppend(ni_, pt_, &me, PTL_OVERFLOW_LIST, nullptr, &handle) == PTL_OK;
    ptl_md_t md{};
    md.start = memory_.data();
    md.length = memory_.size() * sizeof(std::uint64_t);
    md.eq_handle = eq_;
    md.ct_handle = PTL_CT_NONE;
    good_ = good_ && PtlMDBind(ni_, &md, &md_) == PTL_OK;
    good_ = good_ && PtlGetPhysId(ni_, &peer_) == PTL_OK;
    peer_.phys.pid = kFirstPid + static_cast<ptl_pid_t>(1 - own);
  }
  ~PortalsSide() { PtlFini(); }
  PortalsSide(const PortalsSide&) = delete;
  PortalsSide& operator=(const PortalsSide&) = delete;

  bool is_good() const { return good_; }

  bool put(std::uintptr_t number, ptl_size_t bytes, ptl_match_bits_t bits) {
    const ptl_ack_req_t ack_req = number == kUnexpected ? PTL_NO_ACK_REQ : PTL_ACK_REQ;
    return PtlPut(md_, 0, bytes, ack_req, peer_, pt_, bits, 0, user(number), 0) == PTL_OK;
  }

  /// One of each kind, each under a number.
  bool ask() {
    memory_[0] = 1;
    return PtlTriggeredPut(md_, 0, 64, PTL_ACK_REQ, peer_, pt_, 1, 0, user(0), 0, ct_, 1) == PTL_OK && put(1, 8, 1) &&
           put(2, kLong / 2, 1) && put(kUnexpected, 3000, 99) &&
           PtlGet(md_, kLong, kLong / 2, peer_, pt_, 1, 0, user(4)) == PTL_OK &&
           PtlFetchAtomic(md_, kLong, md_, 0, 8, peer_, pt_, 1, 0, user(5), 0, PTL_SUM, PTL_UINT64_T) == PTL_OK;
  }

  /// @return 0 | 1: an event | 2: something else
  int look() {
    ptl_event_t event{};
    const int rc = PtlEQGet(eq_, &event);
    if (rc == PTL_EQ_EMPTY) return 0;
    if (rc != PTL_OK) return 2;
    const auto number = reinterpret_cast<std::uintptr_t>(event.user_ptr);
    const bool is_sent = event.type == PTL_EVENT_SEND && (event.ni_fail_type != PTL_NI_OK || number == kUnexpected + 1);
    const bool is_end = is_sent || event.type == PTL_EVENT_ACK || event.type == PTL_EVENT_REPLY;
    if (is_end && number != 0) {
      ++ends_[number - 1];
      last_ = event.ni_fail_type;
    }
    return 1;
  }

  unsigned ended() const {
    unsigned count = 0;
    for (unsigned i = 0; i < kOperations; ++i) count += ends_[i] != 0 ? 1 : 0;
    return count;
  }
  unsigned ends(unsigned number) const { return ends_[number]; }
  bool put_last() { return put(kOperations, 8, 1); }
  unsigned last_ends() const { return ends_[kOperations]; }
  bool last_has_come() const { return last_ == PTL_NI_OK; }

  /// What waits for a count that never comes would never end.
  void release() { PtlCTInc(ct_, {1000, 0}); }

 private:
  static void* user(std::uintptr_t number) { return reinterpret_cast<void*>(number + 1); }

  ptl_handle_ni_t ni_ = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq_ = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt_ = 0;
  ptl_process_t peer_{};
  std::vector<std::uint64_t> window_ = std::vector<std::uint64_t>(kLong / 8);
  std::vector<std::uint64_t> unexpected_ = std::vector<std::uint64_t>(1024);
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(kLong / 4);
  std::array<unsigned, kOperations + 1> ends_{};
  int last_ = 0;
  bool good_ = false;
};

/// Both sides ask everything of each other, and look until all has ended; then one more put comes through.
/// @param look  int(PortalsSide&), which looks once
template <class Look>
int run_portals(Stage& stage, int own, Look&& look) {
  PortalsSide side(own);
  if (!side.is_good()) return 1;
  meet(stage, own, 1);
  if (!side.ask()) return 2;
  bool released = false;
  for (const double end = now_s() + kLongestWaitS; side.ended() < kOperations || !stage.ended[1 - own];) {
    if (look(side) == 2) return 3;
    if (side.ended() == kOperations) {
      stage.ended[own] = true;
    } else if (!released && side.ended() == kOperations - 1 && side.ends(0) == 0) {
      released = true;  // All that would have counted may have been lost.
      side.release();
    }
    if (now_s() > end) return 10 + static_cast<int>(side.ended());
  }
  return end_well(stage, own, side, look);
}

/// @param run  int(Stage&, int own, look), of one side; `look` makes the calls that fail
template <class Run>
End live(const char* what, int use, Run&& run) {
  const SharedMemory<Stage> stage;
  ChildProcess other([&] { return run(*stage, 1, [](auto& side) { return side.look(); }); });
  uses_left = -1;
  bool has_failed = false;
  int left = use;
  const int result = run(*stage, 0, [&](auto& side) {
    uses_left = has_failed ? -1 : left;
    const int seen = side.look();
    left = uses_left;
    has_failed |= left < 0;
    uses_left = -1;
    return seen;
  });
  if (result != 0) return tell(what, "does not end here", result);
  if (const int status = other.wait_status(); status != 0) return tell(what, "does not end there", status);
  return has_failed ? End::kGood : End::kAllUsesHaveFailed;
}

TEST(CycleMemory, Runs_out_in_a_look_at_an_event_queue) {
  const OwnNode node;
  expect_good_lives("PtlEQGet", [](int use) {
    return live("PtlEQGet", use, [](Stage& stage, int own, auto&& look) { return run_portals(stage, own, look); });
  });
}

// ---- uTofu ----

constexpr unsigned kTofuOperations = 6;
constexpr unsigned long kNotices = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

/// One side: a VCQ, and memory of which the upper half is written by the other.
class TofuSide {
 public:
  TofuSide(Stage& stage, int own) : stage_(stage), own_(own) {
    utofu_vcq_id_t id = 0;
    utofu_stadd_t stadd = 0;
    good_ = utofu_create_vcq(0, 0, &vcq_) == UTOFU_SUCCESS && utofu_query_vcq_id(vcq_, &id) == UTOFU_SUCCESS &&
            utofu_reg_mem(vcq_, memory_.data(), memory_.size(), 0, &stadd) == UTOFU_SUCCESS;
    stage.vcq[own] = id;
    stage.stadd[own] = stadd;
  }
  ~TofuSide() { utofu_free_vcq(vcq_); }
  TofuSide(const TofuSide&) = delete;
  TofuSide& operator=(const TofuSide&) = delete;

  bool is_good() const { return good_; }

  /// EDATA of one byte is the number.
  bool put(unsigned number, std::size_t bytes) {
    return utofu_put(vcq_, peer(), here(), there(kLong), bytes, number, kNotices, nullptr) == UTOFU_SUCCESS;
  }
  bool ask() {
    return put(0, 8) && put(1, 3000) && put(2, kLong / 2) &&
           utofu_get(vcq_, peer(), here() + kLong / 2, there(kLong), kLong / 2, 3, kNotices, nullptr) ==
               UTOFU_SUCCESS &&
           utofu_armw8(vcq_, peer(), UTOFU_ARMW_OP_ADD, 1, there(kLong), 4, kNotices, nullptr) == UTOFU_SUCCESS &&
           utofu_put_piggyback8(vcq_, peer(), 1, there(kLong), 8, 5, kNotices, nullptr) == UTOFU_SUCCESS;
  }

  /// @return 0 | 1: a notice
  int look() {
    utofu_mrq_notice notice{};
    const int rc = utofu_poll_mrq(vcq_, 0, &notice);
    if (rc == UTOFU_ERR_NOT_FOUND) return 0;
    const bool is_local = notice.notice_type == UTOFU_MRQ_TYPE_LCL_PUT ||
                          notice.notice_type == UTOFU_MRQ_TYPE_LCL_GET || notice.notice_type == UTOFU_MRQ_TYPE_LCL_ARMW;
    if (is_local && notice.edata <= kTofuOperations) {
      ++ends_[notice.edata];
      last_ = rc;
    }
    return 1;
  }

  unsigned ended() const {
    unsigned count = 0;
    for (unsigned i = 0; i < kTofuOperations; ++i) count += ends_[i] == 1 ? 1 : 0;
    return count;
  }
  bool put_last() { return put(kTofuOperations, 8); }
  unsigned last_ends() const { return ends_[kTofuOperations]; }
  bool last_has_come() const { return last_ == UTOFU_SUCCESS; }

 private:
  utofu_vcq_id_t peer() const { return stage_.vcq[1 - own_]; }
  utofu_stadd_t here() const { return stage_.stadd[own_]; }
  utofu_stadd_t there(std::size_t offset) const { return stage_.stadd[1 - own_] + offset; }

  Stage& stage_;
  int own_;
  utofu_vcq_hdl_t vcq_ = 0;
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * kLong);
  std::array<unsigned, kTofuOperations + 1> ends_{};
  int last_ = 0;
  bool good_ = false;
};

/// As run_portals().
template <class Look>
int run_tofu(Stage& stage, int own, Look&& look) {
  TofuSide side(stage, own);
  if (!side.is_good()) return 1;
  meet(stage, own, 1);
  if (!side.ask()) return 2;
  for (const double end = now_s() + kLongestWaitS; side.ended() < kTofuOperations || !stage.ended[1 - own];) {
    look(side);
    if (side.ended() == kTofuOperations) stage.ended[own] = true;
    if (now_s() > end) return 10 + static_cast<int>(side.ended());
  }
  return end_well(stage, own, side, look);
}

TEST(CycleMemory, Runs_out_in_a_look_at_an_MRQ) {
  const OwnNode node;
  // The engine stays open until the process ends as a program does.
  expect_good_lives("utofu_poll_mrq", [](int use) -> End {
    std::exit(static_cast<int>(live("utofu_poll_mrq", use, [](Stage& stage, int own, auto&& look) {
      const int result = run_tofu(stage, own, look);
      return own == 0 ? result : (std::exit(result), 0);
    })));
  });
}

}  // namespace
}  // namespace portofu
