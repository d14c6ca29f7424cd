// Somebody sweeps /dev/shm while processes run: they go on, and are found again.

#include <gtest/gtest.h>
#include <portals4.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

struct SweepBoard {
  std::atomic<std::uint32_t> pid{0};
  std::atomic<int> swept{0};
};

/// Leaves the child with the line that went wrong, modulo 256.
#define MUST(condition) \
  if (!(condition)) _exit(__LINE__ % 256 == 0 ? 1 : __LINE__ % 256)

constexpr unsigned int kNonMatching = PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL;

/// Waits in the library for a put, all the time.
int run_target(SweepBoard& board) {
  std::uint64_t memory = 0;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t eq{};
  ptl_handle_le_t entry{};
  ptl_pt_index_t pt = 0;
  ptl_process_t own{};
  ptl_event_t event{};
  MUST(PtlInit() == PTL_OK);
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, kNonMatching, PTL_PID_ANY, nullptr, nullptr, &ni) == PTL_OK);
  MUST(PtlEQAlloc(ni, 16, &eq) == PTL_OK && PtlPTAlloc(ni, 0, eq, 0, &pt) == PTL_OK);
  const ptl_le_t le{&memory, sizeof memory, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
  MUST(PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK);
  MUST(PtlGetPhysId(ni, &own) == PTL_OK);
  board.pid = own.phys.pid;
  MUST(PtlEQWait(eq, &event) == PTL_OK && event.type == PTL_EVENT_PUT);
  MUST(PtlNIFini(ni) == PTL_OK);
  PtlFini();
  return memory == 7 ? 0 : 99;
}

/// Comes when the name was swept and put back.
int run_initiator(std::uint32_t nid, const SweepBoard& board) {
  std::uint64_t memory = 7;
  ptl_handle_ni_t ni{};
  ptl_handle_eq_t eq{};
  ptl_handle_md_t md{};
  ptl_event_t event{};
  ptl_process_t target{};
  target.phys.nid = nid;
  target.phys.pid = board.pid;
  MUST(PtlInit() == PTL_OK);
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, kNonMatching, board.pid, nullptr, nullptr, &ni) == PTL_PID_IN_USE);
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, kNonMatching, PTL_PID_ANY, nullptr, nullptr, &ni) == PTL_OK);
  MUST(PtlEQAlloc(ni, 16, &eq) == PTL_OK);
  const ptl_md_t described{&memory, sizeof memory, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
  MUST(PtlMDBind(ni, &described, &md) == PTL_OK);
  MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, target, 0, 0, 0, nullptr, 0) == PTL_OK);
  MUST(PtlEQWait(eq, &event) == PTL_OK && event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK);
  PtlNIFini(ni);
  PtlFini();
  return 0;
}

TEST(SweptName, Process__keeps_its_pid_and_is_reached) {
  const OwnNode node;
  const SharedMemory<SweepBoard> board;
  ChildProcess target([&] { return run_target(*board); });
  ASSERT_TRUE(eventually([&] { return board->pid != 0; }));
  char path[96];
  std::snprintf(path, sizeof path, "/dev/shm/portofu-%u-%08x-%u", geteuid(), node.nid(), board->pid.load());
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(unlink(path), 0) << path;
    ASSERT_TRUE(eventually([&] { return access(path, F_OK) == 0; })) << "nobody has put it back";
  }
  ChildProcess initiator([&] { return run_initiator(node.nid(), *board); });
  EXPECT_EQ(initiator.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
}

}  // namespace
}  // namespace portofu
