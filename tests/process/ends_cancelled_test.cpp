// A thread that is to be cancelled (pthread_cancel(3), deferred) goes through calls of both libraries, and none but
// those that wait is a place where it is: each system call in between could be one (pthreads(7), Cancellation points).

#include <portals4.h>
#include <pthread.h>
#include <utofu.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/portals_entry.h"

namespace portofu {
namespace {

constexpr std::size_t kBytes = 1 << 20;

struct Shared {
  std::atomic<bool> ready{false};
  std::atomic<bool> done{false};
  std::atomic<int> passed{0};  ///< Steps of the thread that is to be cancelled.
  ptl_process_t target{};
  utofu_vcq_id_t vcq = 0;
  utofu_stadd_t stadd = 0;
};

/// What each side has of both interfaces.
struct Side {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  std::uint8_t* memory = static_cast<std::uint8_t*>(std::calloc(1, kBytes));
};

bool open_portals(Side& side) {
  if (PtlInit() != PTL_OK) return false;
  if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &side.ni) !=
      PTL_OK) {
    return false;
  }
  if (PtlEQAlloc(side.ni, 64, &side.eq) != PTL_OK || PtlCTAlloc(side.ni, &side.ct) != PTL_OK) return false;
  if (PtlPTAlloc(side.ni, 0, PTL_EQ_NONE, 0, &side.pt) != PTL_OK) return false;
  const ptl_md_t md{side.memory, kBytes, PTL_MD_EVENT_SEND_DISABLE, side.eq, PTL_CT_NONE};
  if (PtlMDBind(side.ni, &md, &side.md) != PTL_OK) return false;
  const ptl_me_t me = entry_for_all(side.memory, kBytes, PTL_ME_OP_PUT | PTL_ME_OP_GET);
  return PtlMEAppend(side.ni, side.pt, &me, PTL_PRIORITY_LIST, nullptr, &side.me) == PTL_OK;
}

bool open_tofu(Side& side) {
  return utofu_create_vcq(0, UTOFU_VCQ_FLAG_THREAD_SAFE, &side.vcq) == UTOFU_SUCCESS &&
         utofu_reg_mem(side.vcq, side.memory, kBytes, 0, &side.stadd) == UTOFU_SUCCESS;
}

bool take_answer(const Side& side) {
  ptl_event_t event{};
  int rc = PTL_EQ_EMPTY;
  while (rc == PTL_EQ_EMPTY) rc = PtlEQGet(side.eq, &event);
  return rc == PTL_OK && event.ni_fail_type == PTL_NI_OK;
}

bool take_notice(const Side& side) {
  utofu_mrq_notice notice{};
  int rc = UTOFU_ERR_NOT_FOUND;
  while (rc == UTOFU_ERR_NOT_FOUND) rc = utofu_poll_mrq(side.vcq, 0, &notice);
  return rc == UTOFU_SUCCESS;
}

/// Messages by all ways: within a packet, through the area, by the kernel.
bool use_portals(const Side& side, const Shared& shared) {
  for (const ptl_size_t bytes : {8ul, 4096ul, kBytes}) {
    if (PtlPut(side.md, 0, bytes, PTL_ACK_REQ, shared.target, 0, 0, 0, nullptr, 0) != PTL_OK || !take_answer(side))
      return false;
    if (PtlGet(side.md, 0, bytes, shared.target, 0, 0, 0, nullptr) != PTL_OK || !take_answer(side)) return false;
  }
  return true;
}

bool use_tofu(const Side& side, const Shared& shared) {
  constexpr unsigned long kTells = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{4096}, kBytes}) {
    int rc = utofu_put(side.vcq, shared.vcq, side.stadd, shared.stadd, bytes, 0, kTells, nullptr);
    if (rc != UTOFU_SUCCESS || !take_notice(side)) return false;
    rc = utofu_get(side.vcq, shared.vcq, side.stadd, shared.stadd, bytes, 0, kTells, nullptr);
    if (rc != UTOFU_SUCCESS || !take_notice(side)) return false;
  }
  const int rc = utofu_armw8(side.vcq, shared.vcq, UTOFU_ARMW_OP_ADD, 1, shared.stadd, 0, kTells, nullptr);
  return rc == UTOFU_SUCCESS && take_notice(side);
}

bool close_all(const Side& side) {
  if (utofu_dereg_mem(side.vcq, side.stadd, 0) != UTOFU_SUCCESS || utofu_free_vcq(side.vcq) != UTOFU_SUCCESS)
    return false;
  if (PtlMEUnlink(side.me) != PTL_OK || PtlMDRelease(side.md) != PTL_OK || PtlPTFree(side.ni, side.pt) != PTL_OK)
    return false;
  if (PtlCTFree(side.ct) != PTL_OK || PtlEQFree(side.eq) != PTL_OK || PtlNIFini(side.ni) != PTL_OK) return false;
  PtlFini();
  return true;
}

constexpr int kSteps = 5;

int run_target(Shared& shared) {
  Side side;
  if (!open_portals(side) || !open_tofu(side)) return 1;
  if (PtlGetPhysId(side.ni, &shared.target) != PTL_OK || utofu_query_vcq_id(side.vcq, &shared.vcq) != UTOFU_SUCCESS)
    return 2;
  shared.stadd = side.stadd;
  shared.ready = true;
  while (!shared.done) std::this_thread::yield();
  return close_all(side) ? 0 : 3;
}

void* pass_all(void* argument) {
  auto& shared = *static_cast<Shared*>(argument);
  pthread_cancel(pthread_self());
  Side side;
  const auto pass = [&shared](bool good) {
    if (good) ++shared.passed;
    return good;
  };
  const bool all = pass(open_portals(side)) && pass(open_tofu(side)) && pass(use_portals(side, shared)) &&
                   pass(use_tofu(side, shared)) && pass(close_all(side));
  if (!all) return nullptr;
  pthread_testcancel();
  return nullptr;
}

TEST(EndsCancelled, Thread_that_is_to_be_cancelled__is_so_in_no_call_that_does_not_wait) {
  const OwnNode node;
  const SharedMemory<Shared> shared;
  // Both end by exit(3): uTofu, which has no call to end it, gives the engine back there.
  ChildProcess target([&]() -> int { std::exit(run_target(*shared)); });
  ASSERT_TRUE(eventually([&] { return shared->ready || target.has_ended(); }));
  ChildProcess initiator([&]() -> int {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, pass_all, &*shared) != 0) std::exit(1);
    void* result = nullptr;
    pthread_join(thread, &result);
    std::exit(result == PTHREAD_CANCELED ? 0 : 2);
  });
  EXPECT_TRUE(eventually([&] { return initiator.has_ended(); }));
  EXPECT_EQ(initiator.wait_status(), 0);
  EXPECT_EQ(shared->passed, kSteps);
  shared->done = true;
  EXPECT_EQ(target.wait_status(), 0);
}

}  // namespace
}  // namespace portofu
