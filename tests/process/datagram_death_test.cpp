// kill -9 of a process on another node, over datagrams, with twenty operations under way all the time: whoever waits is
// told soon. The nodes are network namespaces, because kernels do not limit what they say of free ports
// within one: to another node six times at once and then once a second, whatever was sent there. Needs root and ip(8).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <portals4.h>
#include <sched.h>
#include <utofu.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"

namespace portofu {
namespace {

constexpr int kUnderWay = 20;
constexpr int kRuns = 3;

/// Half of the time after which silence alone is death. Usually it is 0.2 s; when earlier datagrams have used up what
/// the node says at once, a second until it says it again, and on a busy machine more.
constexpr double kLongestS = 5;

/// What the two processes of a run tell each other, and the test.
struct Meeting {
  std::atomic<int> ready{0};
  std::atomic<std::uint64_t> answered{0};
  std::atomic<utofu_vcq_id_t> vcq_id{0};
  std::atomic<utofu_stadd_t> stadd{0};
};

/// Two nodes with addresses of their own, removed at the end.
class TwoNodes {
 public:
  explicit TwoNodes(int run_number)
      : tag_("pdd" + std::to_string(getpid()) + "-" + std::to_string(run_number)),
        network_("10.212." + std::to_string(getpid() % 250 + 1)) {
    made_ = geteuid() == 0 && run("ip netns add " + name(0)) && run("ip netns add " + name(1)) &&
            run("ip link add e0 netns " + name(0) + " type veth peer name e0 netns " + name(1)) && set_up(0) &&
            set_up(1);
  }
  ~TwoNodes() {
    run("ip netns delete " + name(0));
    run("ip netns delete " + name(1));
  }
  TwoNodes(const TwoNodes&) = delete;
  TwoNodes& operator=(const TwoNodes&) = delete;

  bool made() const { return made_; }

  /// From now on this process is there.
  void enter(int node) const {
    const int fd = ::open(("/var/run/netns/" + name(node)).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) _exit(80);
    ::close(fd);
    setenv("PORTOFU_NID", address(node).c_str(), 1);
    setenv("PORTOFU_FABRIC", "1", 1);
    setenv("PORTOFU_FABRIC_ENDPOINT", "datagram", 1);
    setenv("PORTOFU_JOB_KEY", std::to_string(getppid()).c_str(), 1);
  }

  std::uint32_t nid(int node) const {
    return 10u << 24 | 212u << 16 | (static_cast<std::uint32_t>(getppid()) % 250 + 1) << 8 |
           static_cast<std::uint32_t>(node + 1);
  }

 private:
  static bool run(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }
  std::string name(int node) const { return tag_ + (node == 0 ? "a" : "b"); }
  std::string address(int node) const { return network_ + "." + std::to_string(node + 1); }
  bool set_up(int node) const {
    const std::string ip = "ip -n " + name(node) + " ";
    return run(ip + "link set lo up") && run(ip + "address add " + address(node) + "/24 dev e0") &&
           run(ip + "link set e0 up");
  }

  const std::string tag_;
  const std::string network_;
  bool made_ = false;
};

class DatagramDeath : public testing::Test {
 protected:
  /// Kills the target in the middle, several times, each time on new nodes, whose kernels have not said anything yet.
  void run_all(int (*target)(Meeting&), int (*initiator)(Meeting&, std::uint32_t)) {
    for (int run_number = 0; run_number < kRuns; ++run_number) {
      const TwoNodes nodes(run_number);
      if (!nodes.made()) GTEST_SKIP() << "no network namespaces";
      run_once(nodes, target, initiator);
    }
  }

 private:
  static void run_once(const TwoNodes& nodes, int (*target)(Meeting&), int (*initiator)(Meeting&, std::uint32_t)) {
    SharedMemory<Meeting> meeting;
    ChildProcess there([&] {
      nodes.enter(1);
      return target(*meeting);
    });
    ASSERT_TRUE(eventually([&] { return meeting->ready == 1; }));
    ChildProcess here([&] {
      nodes.enter(0);
      return initiator(*meeting, nodes.nid(1));
    });
    ASSERT_TRUE(eventually([&] { return meeting->answered > 2000; }));
    there.send_signal(SIGKILL);
    EXPECT_EQ(there.wait_death(), SIGKILL);
    const FairStopwatch watch({here.pid()});
    here.wait_death();
    EXPECT_LT(watch.seconds(), kLongestS);
    EXPECT_EQ(here.wait_status(), 0);
  }
};

// ---- Portals -------------------------------------------------------------------------------------------------------

constexpr ptl_pid_t kPid = 77;

ptl_handle_ni_t open_interface(ptl_pid_t pid) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  if (PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, &ni) != PTL_OK) {
    _exit(81);
  }
  return ni;
}

int portals_target(Meeting& meeting) {
  static char memory[4096];
  const ptl_handle_ni_t ni = open_interface(kPid);
  ptl_pt_index_t pt = 0;
  if (PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt) != PTL_OK) return 1;
  ptl_le_t le{};
  le.start = memory;
  le.length = sizeof memory;
  le.ct_handle = PTL_CT_NONE;
  le.uid = PTL_UID_ANY;
  le.options = PTL_LE_OP_PUT | PTL_LE_EVENT_COMM_DISABLE;
  ptl_handle_le_t handle;
  if (PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &handle) != PTL_OK) return 2;
  meeting.ready = 1;
  for (;;) pause();
}

/// Every operation ends; the first that fails says why.
int portals_initiator(Meeting& meeting, std::uint32_t nid) {
  static char memory[4096];
  const ptl_handle_ni_t ni = open_interface(PTL_PID_ANY);
  ptl_handle_eq_t eq;
  if (PtlEQAlloc(ni, 1000, &eq) != PTL_OK) return 1;
  const ptl_md_t md{memory, sizeof memory, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE};
  ptl_handle_md_t md_handle;
  if (PtlMDBind(ni, &md, &md_handle) != PTL_OK) return 2;
  ptl_process_t target{};
  target.phys = {nid, kPid};
  int under_way = 0;
  for (bool lost = false; !lost || under_way > 0;) {
    while (!lost && under_way < kUnderWay) {
      if (PtlPut(md_handle, 0, 100, PTL_ACK_REQ, target, 0, 0, 0, nullptr, 0) != PTL_OK) return 3;
      ++under_way;
    }
    ptl_event_t event;
    if (PtlEQWait(eq, &event) != PTL_OK || event.type != PTL_EVENT_ACK) return 4;
    --under_way;
    if (event.ni_fail_type == PTL_NI_OK) ++meeting.answered;
    if (event.ni_fail_type != PTL_NI_OK && event.ni_fail_type != PTL_NI_UNDELIVERABLE) return 5;
    lost = lost || event.ni_fail_type != PTL_NI_OK;
  }
  return 0;
}

TEST_F(DatagramDeath, Portals__twenty_puts_under_way_end_soon) { run_all(portals_target, portals_initiator); }

// ---- uTofu ---------------------------------------------------------------------------------------------------------

int tofu_target(Meeting& meeting) {
  alignas(256) static char memory[4096];
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  utofu_vcq_id_t id = 0;
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS) return 1;
  if (utofu_reg_mem(vcq, memory, sizeof memory, 0, &stadd) != UTOFU_SUCCESS) return 2;
  if (utofu_query_vcq_id(vcq, &id) != UTOFU_SUCCESS) return 3;
  meeting.vcq_id = id;
  meeting.stadd = stadd;
  meeting.ready = 1;
  for (;;) pause();
}

int tofu_initiator(Meeting& meeting, std::uint32_t) {
  alignas(256) static char memory[4096];
  utofu_vcq_hdl_t vcq = 0;
  utofu_stadd_t stadd = 0;
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS) return 1;
  if (utofu_reg_mem(vcq, memory, sizeof memory, 0, &stadd) != UTOFU_SUCCESS) return 2;
  int under_way = 0;
  for (bool lost = false; !lost || under_way > 0;) {
    while (!lost && under_way < kUnderWay) {
      const int rc =
          utofu_put(vcq, meeting.vcq_id, stadd, meeting.stadd, 100, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr);
      if (rc == UTOFU_ERR_BUSY) break;
      if (rc != UTOFU_SUCCESS) return 3;
      ++under_way;
    }
    utofu_mrq_notice notice{};
    const int rc = utofu_poll_mrq(vcq, 0, &notice);
    if (rc == UTOFU_ERR_NOT_FOUND) continue;
    --under_way;
    if (rc == UTOFU_SUCCESS) ++meeting.answered;
    if (rc != UTOFU_SUCCESS && rc != UTOFU_ERR_MRQ_PEER) return 4;
    lost = lost || rc != UTOFU_SUCCESS;
  }
  return 0;
}

TEST_F(DatagramDeath, Tofu__twenty_puts_under_way_end_soon) { run_all(tofu_target, tofu_initiator); }

}  // namespace
}  // namespace portofu
