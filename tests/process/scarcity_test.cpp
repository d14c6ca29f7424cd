// Where the system lacks or refuses something: what the call says, what people read, and that nobody waits for ever.
// Each test is a row of the table in lib/README.md.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <portals4.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utofu.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/process/scarcity.h"
#include "tests/process/test_nodes.h"
#include "tests/unit/support/refused_call.h"

namespace portofu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void fill_shared_memory() {
  const int fd = open("/dev/shm/filler", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  std::vector<char> page(4096, 'x');
  while (write(fd, page.data(), page.size()) > 0) {
  }
  close(fd);
}

/// No descriptor is free from now on. @return the limit before
rlimit use_up_descriptors() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int lowest_free = dup(STDERR_FILENO);
  close(lowest_free);
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  return before;
}

/// An interface with an entry at portal index 0 that takes everything.
struct Node {
  explicit Node(ptl_pid_t pid) {
    good = init_interface(pid, &ni) == PTL_OK && PtlEQAlloc(ni, 1024, &eq) == PTL_OK &&
           PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt) == PTL_OK;
    ptl_md_t all{};
    all.length = PTL_SIZE_MAX;
    all.eq_handle = eq;
    all.ct_handle = PTL_CT_NONE;
    ptl_le_t entry{};
    entry.start = memory.data();
    entry.length = memory.size();
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_COMM_DISABLE | PTL_LE_EVENT_LINK_DISABLE;
    ptl_handle_le_t le = PTL_INVALID_HANDLE;
    good = good && PtlMDBind(ni, &all, &md) == PTL_OK &&
           PtlLEAppend(ni, pt, &entry, PTL_PRIORITY_LIST, nullptr, &le) == PTL_OK;
  }
  ~Node() { PtlFini(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  ptl_process_t peer(ptl_pid_t pid) const {
    ptl_process_t process{};
    PtlGetPhysId(ni, &process);
    if (peer_nid != 0) process.phys.nid = peer_nid;
    process.phys.pid = pid;
    return process;
  }
  bool put(ptl_pid_t pid) {
    return PtlPut(md, reinterpret_cast<ptl_size_t>(memory.data()), 8, PTL_ACK_REQ, peer(pid), pt, 0, 0, nullptr, 0) ==
           PTL_OK;
  }
  bool get(ptl_pid_t pid) {
    return PtlGet(md, reinterpret_cast<ptl_size_t>(memory.data()), 8, peer(pid), pt, 0, 0, nullptr) == PTL_OK;
  }
  /// @return ni_fail_type of the next event of the kind, -1 if none comes for so long, of time that this process gets
  int wait_for(ptl_event_kind_t kind, double seconds) {
    constexpr double kPollS = 0.05;
    for (double waited_s = 0; waited_s < seconds;) {
      ptl_event_t event;
      unsigned which = 0;
      const double began = now_s();
      const int rc = PtlEQPoll(&eq, 1, static_cast<ptl_time_t>(kPollS * 1000), &event, &which);
      if (rc == PTL_OK && event.type == kind) return event.ni_fail_type;
      waited_s += std::min(now_s() - began, kPollS);
    }
    return -1;
  }

  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_nid_t peer_nid = 0;  ///< 0: peers are on this node.
  std::array<char, 64> memory{};
  bool good = false;
};

/// Where the processes of a test are.
struct Stage {
  std::atomic<int> ready{0};
  std::atomic<int> done{0};
};

void poll_until(Node& node, const std::atomic<int>& word, int least) {
  for (const double end = now_s() + 2 * kLongestWaitS; word.load() < least && now_s() < end;)
    node.wait_for(PTL_EVENT_PUT, 0.05);
}

constexpr ptl_pid_t kAsker = 101;
constexpr ptl_pid_t kTarget = 102;

/// Longer than nobody may wait, of time that this process gets.
constexpr double kLongestS = 3;

/// A get from a target that cannot open its way back. @return 0: it ends UNDELIVERABLE in time
/// @param target_lacks  called at the target, which the asker has not reached yet
/// @param asker_waits   called at the asker, before it asks and once the target is ready
/// @param nodes         where the two are; nullptr: on one node
int ask_who_cannot_answer(const std::function<void()>& target_lacks, const std::function<void(Node&)>& asker_waits,
                          const TestNodes* nodes = nullptr) {
  const SharedMemory<Stage> stage;
  ChildProcess target([&] {
    if (nodes != nullptr) nodes->enter(1);
    Node node(kTarget);
    if (!node.good) return 1;
    target_lacks();
    stage->ready = 1;
    poll_until(node, stage->done, 1);
    return 0;
  });
  if (nodes != nullptr) nodes->enter(0);
  Node asker(kAsker);
  if (nodes != nullptr) asker.peer_nid = nodes->nid(1);
  if (!asker.good) return 2;
  while (stage->ready.load() == 0) usleep(1000);
  asker_waits(asker);
  if (!asker.get(kTarget)) return 3;
  const int fail = asker.wait_for(PTL_EVENT_REPLY, kLongestS);
  stage->done = 1;
  target.wait_status();
  if (fail == -1) return 4;
  return fail == PTL_NI_UNDELIVERABLE ? 0 : 6;
}

TEST_F(Scarcity, Proc_that_is_missing) {
  const Outcome outcome =
      outcome_of([] { return enter_own_mounts() && umount2("/proc", MNT_DETACH) == 0 ? init_any() : kNoRights; });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  expect_init_fails(outcome, PTL_FAIL, "/proc/thread-self/fd/", "No such file or directory; mount /proc");
}

TEST_F(Scarcity, Limit_of_file_sizes) {
  const Outcome outcome = outcome_of([] {
    const rlimit small{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &small);
    return init_any();
  });
  expect_init_fails(outcome, PTL_NO_SPACE, "ftruncate", "File too large; raise the limit of file sizes (ulimit -f)");
}

TEST_F(Scarcity, Limit_of_descriptors__at_the_start) {
  setenv("PORTOFU_JOB_KEY", "7", 1);
  const Outcome outcome = outcome_of([] {
    use_up_descriptors();
    return init_any();
  });
  unsetenv("PORTOFU_JOB_KEY");
  expect_init_fails(outcome, PTL_FAIL, "/dev/shm", "Too many open files; raise the limit of open files (ulimit -n)");
}

TEST_F(Scarcity, Limit_of_descriptors__with_a_key_of_the_user) {
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("size=64m") || init_any() != PTL_OK) return kNoRights;
    use_up_descriptors();
    return init_any();
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  expect_init_fails(outcome, PTL_FAIL, "portofu-key-",
                    "Too many open files; raise the limit of open files (ulimit -n)");
}

TEST_F(Scarcity, Limit_of_threads) {
  const Outcome outcome = outcome_of(
      [] { return refuse_call(SYS_clone3, EAGAIN) && refuse_call(SYS_clone, EAGAIN) ? init_any() : kNoRights; });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, PTL_OK);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("pthread_create of the thread that handles messages failed: Resource temporarily "
                                      "unavailable"));
}

TEST_F(Scarcity, Random_numbers_that_a_sandbox_refuses) {
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("size=64m")) return kNoRights;  // Where the user has no key yet.
    return refuse_call(SYS_getrandom, ENOSYS) ? init_any() : kNoRights;
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, PTL_OK);
  EXPECT_EQ(outcome.said, "");
}

TEST_F(Scarcity, Hosts_file_that_cannot_be_read) {
  setenv("PORTOFU_HOSTS", "/no/such/file", 1);
  expect_init_fails(outcome_of(init_any), PTL_FAIL, "PORTOFU_HOSTS=/no/such/file", "No such file or directory");
}

TEST_F(Scarcity, Address_of_another_machine) {
  setenv("PORTOFU_FABRIC", "1", 1);
  setenv("PORTOFU_NID", "192.0.2.9", 1);
  expect_init_fails(outcome_of(init_any), PTL_FAIL, "bind of the UDP port 192.0.2.9:", "set PORTOFU_NID");
}

TEST_F(Scarcity, Provider_that_is_not_there) {
  setenv("PORTOFU_FABRIC", "1", 1);
  setenv("PORTOFU_NID", "127.0.0.1", 1);  // The port is taken first.
  setenv("PORTOFU_FABRIC_PROVIDER", "nonsense", 1);
  expect_init_fails(outcome_of(init_any), PTL_FAIL, "nonsense", "");
}

TEST_F(Scarcity, Control_queues_of_a_node) {
  setenv("PORTOFU_CQS", "1", 1);
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("size=64m")) return kNoRights;
    utofu_vcq_hdl_t first = 0;
    if (utofu_create_vcq(0, 0, &first) != UTOFU_SUCCESS) return 1;
    ChildProcess other([] {
      utofu_vcq_hdl_t vcq = 0;
      if (utofu_create_vcq(0, UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq) != UTOFU_ERR_NOT_AVAILABLE) return 1;
      return utofu_create_vcq(0, 0, &vcq) == UTOFU_ERR_FULL ? 0 : 2;
    });
    const int status = other.wait_status();
    utofu_free_vcq(first);
    return status == 0 ? 0 : 10 + status;
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("PORTOFU_CQS"), HasSubstr("PORTOFU_PER_NODE"), HasSubstr("TNI 0")));
}

TEST_F(Scarcity, Limit_of_memory) {
  const Outcome outcome = outcome_of([] {
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    if (init_interface(PTL_PID_ANY, &ni) != PTL_OK) return 1;
    const auto most = static_cast<rlim_t>(memory_number(getpid(), 0) + (1 << 20));
    const rlimit small{most, most};
    setrlimit(RLIMIT_AS, &small);
    ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
    const int codes[] = {PtlEQAlloc(ni, 100'000, &eq), PtlEQAlloc(ni, 100'000, &eq)};
    PtlFini();
    return codes[0] == codes[1] ? codes[0] : 2;
  });
  EXPECT_EQ(outcome.status, PTL_NO_SPACE);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("an event queue failed: Cannot allocate memory"), HasSubstr("ulimit -v")));
}

TEST_F(Scarcity, Sockets_that_a_sandbox_refuses) {
  const Outcome outcome = outcome_of([] {
    unsetenv("PORTOFU_NID");
    return refuse_call(SYS_socket, EPERM) ? init_any() : kNoRights;
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, PTL_OK);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("getifaddrs of the addresses of this node failed: Operation not permitted"),
                                  HasSubstr("PORTOFU_NID")));
}

TEST_F(Scarcity, Wrong_settings__are_told_once_however_many_lanes_there_are) {
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("size=64m")) return kNoRights;
    for (const char* bad : {"PORTOFU_RECORD", "PORTOFU_CHECK", "PORTOFU_PCAPNG"}) setenv(bad, "/no/such/place", 1);
    setenv("PORTOFU_SPIN", "-1", 1);
    setenv("PORTOFU_LANES", "4", 1);
    std::array<utofu_vcq_hdl_t, 4> vcqs{};
    for (utofu_tni_id_t tni = 0; tni < vcqs.size(); ++tni) {
      if (utofu_create_vcq(tni, 0, &vcqs[tni]) != UTOFU_SUCCESS) return 1;
    }
    for (const utofu_vcq_hdl_t vcq : vcqs) utofu_free_vcq(vcq);
    return 0;
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines(), 4) << outcome.said;
}

TEST_F(Scarcity, Target_without_descriptors) {
  const Outcome outcome = outcome_of([] { return ask_who_cannot_answer([] { use_up_descriptors(); }, [](Node&) {}); });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("warning: open of "), HasSubstr("(ulimit -n)")));
}

TEST_F(Scarcity, Target_without_descriptors_on_another_node) {
  const TestNodes nodes(Place::kNodeEach);
  const Outcome outcome =
      outcome_of([&] { return ask_who_cannot_answer([] { use_up_descriptors(); }, [](Node&) {}, &nodes); });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines(), 2) << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("accept of a connection from another node failed: Too many open files; "
                                            "raise the limit of open files (ulimit -n)"),
                                  HasSubstr("accepts no connection, because it lacks descriptors or memory")));
}

TEST_F(Scarcity, Target_without_shared_memory) {
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("size=64m")) return kNoRights;
    return ask_who_cannot_answer([] {},
                                 [](Node& asker) {
                                   asker.put(kTarget);
                                   if (asker.wait_for(PTL_EVENT_ACK, 20) == PTL_NI_OK) fill_shared_memory();
                                 });
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("bytes in /dev/shm"), HasSubstr("No space left on device")));
}

TEST_F(Scarcity, Target_without_a_channel) {
  setenv("PORTOFU_CHANNELS", "1", 1);
  const Outcome outcome = outcome_of([] {
    std::unique_ptr<ChildProcess> third;
    const SharedMemory<Stage> stage;
    const int status = ask_who_cannot_answer([] {},
                                             [&](Node& asker) {
                                               third = std::make_unique<ChildProcess>([&] {
                                                 Node late(kAsker + 2);
                                                 late.put(kAsker);
                                                 stage->ready = late.wait_for(PTL_EVENT_ACK, 20) == PTL_NI_OK ? 1 : 2;
                                                 poll_until(late, stage->done, 1);
                                                 return 0;
                                               });
                                               poll_until(asker, stage->ready, 1);
                                             });
    stage->done = 1;
    if (third != nullptr) third->wait_status();
    return status;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, AllOf(HasSubstr("no free channel"), HasSubstr("PORTOFU_CHANNELS")));
}

/// A put of one who has no descriptor for its target. @return its ni_fail_type, 100 if something else goes wrong
/// @param raises  whether there are some again after a while
/// @param nodes   where the two are; nullptr: on one node
int put_without_descriptors(bool raises, const TestNodes* nodes = nullptr) {
  const SharedMemory<Stage> stage;
  ChildProcess target([&] {
    if (nodes != nullptr) nodes->enter(1);
    Node node(kTarget);
    if (!node.good) return 1;
    stage->ready = 1;
    poll_until(node, stage->done, 1);
    return 0;
  });
  if (nodes != nullptr) nodes->enter(0);
  Node asker(kAsker);
  if (nodes != nullptr) asker.peer_nid = nodes->nid(1);
  while (stage->ready.load() == 0) usleep(1000);
  const rlimit before = use_up_descriptors();
  if (!asker.good || !asker.put(kTarget)) return 100;
  if (raises && asker.wait_for(PTL_EVENT_ACK, 0.2) != -1) return 100;
  if (raises) setrlimit(RLIMIT_NOFILE, &before);
  const int fail = asker.wait_for(PTL_EVENT_ACK, kLongestS);
  stage->done = 1;
  target.wait_status();
  return fail == -1 ? 100 : fail;
}

TEST_F(Scarcity, Initiator_without_descriptors) {
  const Outcome outcome = outcome_of([] { return put_without_descriptors(false); });
  EXPECT_EQ(outcome.status, PTL_NI_UNDELIVERABLE);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("Too many open files; raise the limit of open files (ulimit -n)"));
}

TEST_F(Scarcity, Initiator_without_descriptors_for_a_while) {
  const Outcome outcome = outcome_of([] { return put_without_descriptors(true); });
  EXPECT_EQ(outcome.status, PTL_NI_OK);
}

TEST_F(Scarcity, Initiator_without_descriptors_for_another_node) {
  const TestNodes nodes(Place::kNodeEach);
  const Outcome outcome = outcome_of([&] { return put_without_descriptors(false, &nodes); });
  EXPECT_EQ(outcome.status, PTL_NI_UNDELIVERABLE);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("to another node failed: Too many open files; raise the limit of open files"));
}

TEST_F(Scarcity, Initiator_without_descriptors_for_another_node_for_a_while) {
  const TestNodes nodes(Place::kNodeEach);
  const Outcome outcome = outcome_of([&] { return put_without_descriptors(true, &nodes); });
  EXPECT_EQ(outcome.status, PTL_NI_OK);
}

/// A put of uTofu to a queue whose node can neither be asked nor reached. @return code of its notice, 100: none in time
int put_to_queue_without_descriptors(const TestNodes& nodes) {
  const SharedMemory<Stage> stage;
  const SharedMemory<std::array<std::atomic<std::uint64_t>, 2>> place;
  const auto open = [](std::uint64_t* id, std::uint64_t* stadd) {
    static char memory[64];
    utofu_vcq_hdl_t vcq = 0;
    EXPECT_EQ(utofu_create_vcq(0, 0, &vcq), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_query_vcq_id(vcq, id), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_reg_mem(vcq, memory, sizeof memory, 0, stadd), UTOFU_SUCCESS);
    return vcq;
  };
  std::uint64_t id = 0, stadd = 0;
  ChildProcess target([&] {
    nodes.enter(1);
    open(&id, &stadd);
    (*place)[0] = id;
    (*place)[1] = stadd;
    stage->ready = 1;
    while (stage->done.load() == 0) usleep(1000);
    return 0;
  });
  nodes.enter(0);
  const utofu_vcq_hdl_t vcq = open(&id, &stadd);
  while (stage->ready.load() == 0) usleep(1000);
  use_up_descriptors();
  FairClock clock;
  int rc = utofu_put(vcq, (*place)[0], stadd, (*place)[1], 8, 0, UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, nullptr);
  utofu_mrq_notice notice;
  do rc = rc == UTOFU_SUCCESS || rc == UTOFU_ERR_NOT_FOUND ? utofu_poll_mrq(vcq, 0, &notice) : rc;
  while (rc == UTOFU_ERR_NOT_FOUND && clock.tick() < kLongestS);
  stage->done = 1;
  target.wait_status();
  return rc == UTOFU_ERR_MRQ_PEER ? 0 : 100;
}

TEST_F(Scarcity, Asker_without_descriptors_for_a_queue_of_another_node) {
  const TestNodes nodes(Place::kNodeEach);
  const Outcome outcome = outcome_of([&] { return put_to_queue_without_descriptors(nodes); });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines(), 1) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("to another node failed: Too many open files; raise the limit of open files"));
}

/// One of many processes that put to each other. @return 0: all puts are acknowledged
int put_to_all(Stage& stage, int count, int rank) {
  Node node(static_cast<ptl_pid_t>(1 + rank));
  if (!node.good) return 1;
  ++stage.ready;
  poll_until(node, stage.ready, count);
  for (int i = 0; i < count; ++i) {
    if (!node.put(static_cast<ptl_pid_t>(1 + i))) return 2;
  }
  bool all = true;
  for (int i = 0; i < count && all; ++i) all = node.wait_for(PTL_EVENT_ACK, 20) == PTL_NI_OK;
  ++stage.done;
  poll_until(node, stage.done, count);
  return all ? 0 : 3;
}

TEST_F(Scarcity, Forty_processes_in_64_mib) {
  constexpr int kCount = 40;
  const Outcome outcome = outcome_of([] {
    if (!mount_shared_memory("size=64m")) return kNoRights;
    const SharedMemory<Stage> stage;
    std::vector<std::unique_ptr<ChildProcess>> processes;
    for (int rank = 0; rank < kCount; ++rank)
      processes.push_back(std::make_unique<ChildProcess>([&, rank] { return put_to_all(*stage, kCount, rank); }));
    int worst = 0;
    for (const auto& process : processes) worst = std::max(worst, process->wait_status());
    return worst;
  });
  if (outcome.status == kNoRights) GTEST_SKIP() << kNoRightsWords;
  EXPECT_EQ(outcome.status, 0) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("small rings"));
}

}  // namespace
}  // namespace portofu
