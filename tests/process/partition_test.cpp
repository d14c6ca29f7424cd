// A network that is cut for a while and healed. PORTOFU_TEST_CUT and PORTOFU_TEST_HEAL are commands that do it, and
// PORTOFU_TEST_NETNS names the two hosts; tests/hosts makes them. Whatever was under way has ended: well, and was done
// once, or with an error; then traffic goes on.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <portals4.h>
#include <sched.h>
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

constexpr ptl_pt_index_t kPt = 3;
constexpr ptl_pid_t kPid = 4000;
constexpr std::chrono::seconds kPatience{90};  ///< For what TCP takes to try again after a cut of half a minute.

struct PartitionBoard {
  std::atomic<int> stop{0};
  std::atomic<std::uint32_t> nid[2] = {};
  std::atomic<std::uint64_t> added{0};   ///< Atomics that ended well.
  std::atomic<std::uint64_t> failed{0};  ///< Atomics that ended with PTL_NI_UNDELIVERABLE: done, or not.
  std::atomic<std::uint64_t> under_way{0};
  std::atomic<std::uint64_t> word{0};  ///< What they have added to.
};

/// The host whose turn it is.
bool enter_host(int rank) {
  const std::string names = std::getenv("PORTOFU_TEST_NETNS");
  const std::size_t comma = names.find(',');
  const std::string name = rank == 0 ? names.substr(0, comma) : names.substr(comma + 1);
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  alarm(0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("PORTOFU_FABRIC", "1", 1);
  return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && close(fd) == 0;
}

bool open_interface(int rank, PartitionBoard& board, ptl_handle_ni_t* ni) {
  ptl_process_t self{};
  if (!enter_host(rank) || PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, kPid, nullptr, nullptr, ni) != PTL_OK ||
      PtlGetPhysId(*ni, &self) != PTL_OK)
    return false;
  board.nid[rank] = self.phys.nid;
  return true;
}

int run_target(PartitionBoard& board) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_pt_index_t index = 0;
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  if (!open_interface(0, board, &ni) || PtlPTAlloc(ni, 0, PTL_EQ_NONE, kPt, &index) != PTL_OK) return 1;
  const ptl_le_t le{&board.word, 8, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
  if (PtlLEAppend(ni, kPt, &le, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return 2;
  while (board.stop == 0) usleep(10'000);
  return 0;
}

int run_initiator(PartitionBoard& board) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  std::uint64_t one = 1;
  if (!open_interface(1, board, &ni) || PtlEQAlloc(ni, 4096, &eq) != PTL_OK) return 1;
  const ptl_md_t described{&one, 8, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
  if (PtlMDBind(ni, &described, &md) != PTL_OK) return 2;
  while (board.nid[0] == 0) usleep(1000);
  ptl_process_t target{};
  target.phys = {board.nid[0], kPid};
  constexpr std::uint64_t kMostUnderWay = 256;
  while (board.stop == 0 || board.under_way > 0) {
    while (board.stop == 0 && board.under_way < kMostUnderWay) {
      if (PtlAtomic(md, 0, 8, PTL_ACK_REQ, target, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T) != PTL_OK) return 3;
      board.under_way.fetch_add(1);
    }
    ptl_event_t event{};
    unsigned int which = 0;
    if (PtlEQPoll(&eq, 1, 100, &event, &which) != PTL_OK) continue;
    board.under_way.fetch_sub(1);
    if (event.ni_fail_type == PTL_NI_OK) {
      board.added.fetch_add(1);
    } else if (event.ni_fail_type == PTL_NI_UNDELIVERABLE) {
      board.failed.fetch_add(1);
    } else {
      return 4;
    }
  }
  return 0;
}

TEST(Partition, Network_cut_for_thirty_seconds__loses_and_doubles_nothing_and_traffic_goes_on) {
  const char* cut = std::getenv("PORTOFU_TEST_CUT");
  const char* heal = std::getenv("PORTOFU_TEST_HEAL");
  if (cut == nullptr || heal == nullptr || std::getenv("PORTOFU_TEST_NETNS") == nullptr)
    GTEST_SKIP() << "it needs hosts: ./run test hosts";
  const SharedMemory<PartitionBoard> board;
  ChildProcess target([&] { return run_target(*board); });
  ChildProcess initiator([&] { return run_initiator(*board); });
  ASSERT_TRUE(eventually([&] { return board->added > 1000; }, kPatience)) << "there is no network";
  ASSERT_EQ(std::system(cut), 0);
  sleep(30);
  const std::uint64_t before = board->added;
  const std::uint64_t failed = board->failed;
  ASSERT_EQ(std::system(heal), 0);
  const double healed_s = now_s();
  EXPECT_TRUE(eventually([&] { return board->added > before + 1000; }, kPatience)) << "traffic does not go on";
  std::printf("  %llu failed while the network was cut; %.1f s later a thousand were done\n",
              static_cast<unsigned long long>(failed), now_s() - healed_s);
  board->stop = 1;
  EXPECT_EQ(initiator.wait_status(), 0);
  EXPECT_EQ(target.wait_status(), 0);
  EXPECT_GE(board->word, board->added);
  EXPECT_LE(board->word, board->added + board->failed);
}

}  // namespace
}  // namespace portofu
