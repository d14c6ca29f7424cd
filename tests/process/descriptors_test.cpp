// Programs that close descriptors which they have not opened, or have none for their standard streams, and two copies
// of the library in one process.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <portals4.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/portals_entry.h"
#include "tests/process/test_nodes.h"

namespace portofu {
namespace {

constexpr unsigned int kMatching = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
constexpr std::size_t kBytes = 1 << 18;
constexpr ptl_pt_index_t kPt = 5;

struct Node {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_process_t self{};
};
std::uint8_t memory[kBytes];

bool open_node(Node* node, ptl_pid_t pid) {
  if (PtlInit() != PTL_OK) return false;
  if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, pid, nullptr, nullptr, &node->ni) != PTL_OK) return false;
  if (PtlGetPhysId(node->ni, &node->self) != PTL_OK || PtlEQAlloc(node->ni, 4096, &node->eq) != PTL_OK) return false;
  ptl_pt_index_t pt = 0;
  if (PtlPTAlloc(node->ni, 0, PTL_EQ_NONE, kPt, &pt) != PTL_OK) return false;
  const ptl_md_t md{memory, sizeof memory, PTL_MD_EVENT_SEND_DISABLE, node->eq, PTL_CT_NONE};
  if (PtlMDBind(node->ni, &md, &node->md) != PTL_OK) return false;
  const ptl_me_t me = entry_for_all(memory, sizeof memory, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  return PtlMEAppend(node->ni, kPt, &me, PTL_PRIORITY_LIST, nullptr, &handle) == PTL_OK;
}

/// Puts and gets so many bytes, and waits for the answers.
bool talk(const Node& node, ptl_process_t peer, ptl_size_t bytes) {
  if (PtlPut(node.md, 0, bytes, PTL_ACK_REQ, peer, kPt, 0, 0, nullptr, 0) != PTL_OK) return false;
  if (PtlGet(node.md, 0, bytes, peer, kPt, 0, 0, nullptr) != PTL_OK) return false;
  ptl_event_t event{};
  unsigned int which = 0;
  for (int answers = 0; answers < 2; ++answers) {
    if (PtlEQPoll(&node.eq, 1, 10000, &event, &which) != PTL_OK || event.ni_fail_type != PTL_NI_OK) return false;
  }
  return true;
}

struct Meeting {
  std::atomic<int> victim_pid{0};  ///< Once it is open.
  std::atomic<int> met{0};         ///< Peers that have talked to it once.
  std::atomic<int> closed{0};      ///< It has closed what is not its own.
  std::atomic<int> done{0};        ///< Peers that have ended.
};

/// Files of a program, full of a pattern.
class Files {
 public:
  Files() {
    for (std::size_t i = 0; i < fds_.size(); ++i) {
      fds_[i] = open("/tmp", O_TMPFILE | O_RDWR, 0600);
      const std::vector<char> pattern(kFileBytes, static_cast<char>('A' + i));
      good_ = good_ && pwrite(fds_[i], pattern.data(), kFileBytes, 0) == static_cast<ssize_t>(kFileBytes);
    }
  }
  bool are_whole() const {
    bool whole = good_;
    for (std::size_t i = 0; i < fds_.size(); ++i) {
      std::vector<char> found(kFileBytes);
      struct stat status {};
      whole = whole && fstat(fds_[i], &status) == 0 && status.st_size == static_cast<off_t>(kFileBytes);
      whole = whole && pread(fds_[i], found.data(), kFileBytes, 0) == static_cast<ssize_t>(kFileBytes);
      for (const char byte : found) whole = whole && byte == static_cast<char>('A' + i);
    }
    return whole;
  }

 private:
  static constexpr std::size_t kFileBytes = 1 << 20;
  std::array<int, 24> fds_{};
  bool good_ = true;
};

int run_peer(Meeting& meeting) {
  Node node;
  if (!open_node(&node, PTL_PID_ANY)) return 1;
  if (!eventually([&] { return meeting.victim_pid != 0; })) return 2;
  ptl_process_t victim = node.self;
  victim.phys.pid = static_cast<ptl_pid_t>(meeting.victim_pid);
  for (const ptl_size_t bytes : {8, 4000, 1 << 18}) {
    if (!talk(node, victim, bytes)) return 3;
  }
  ++meeting.met;
  if (!eventually([&] { return meeting.closed != 0; })) return 4;
  for (const ptl_size_t bytes : {8, 4000, 1 << 18}) {
    if (!talk(node, victim, bytes)) return 5;
  }
  PtlFini();
  ++meeting.done;
  return 0;
}

int run_late_peer(Meeting& meeting) {
  if (!eventually([&] { return meeting.closed != 0; })) return 1;
  Node node;
  if (!open_node(&node, PTL_PID_ANY)) return 2;
  ptl_process_t victim = node.self;
  victim.phys.pid = static_cast<ptl_pid_t>(meeting.victim_pid);
  if (!talk(node, victim, 1 << 18)) return 3;
  PtlFini();
  ++meeting.done;
  return 0;
}

int run_victim(Meeting& meeting) {
  Node node;
  if (!open_node(&node, PTL_PID_ANY)) return 1;
  meeting.victim_pid = static_cast<int>(node.self.phys.pid);
  ptl_event_t event{};
  unsigned int which = 0;
  while (meeting.met < 1) PtlEQPoll(&node.eq, 1, 10, &event, &which);
  syscall(SYS_close_range, 3, ~0u, 0);
  const Files files;
  meeting.closed = 1;
  while (meeting.done < 2) PtlEQPoll(&node.eq, 1, 10, &event, &which);
  // And some time for what is done behind those that have left.
  for (int i = 0; i < 50; ++i) PtlEQPoll(&node.eq, 1, 10, &event, &which);
  if (!files.are_whole()) return 2;
  PtlFini();
  return files.are_whole() ? 0 : 3;
}

TEST(Descriptors, Program_that_closes_ours__keeps_its_files_and_its_peers) {
  const OwnNode node;
  const SharedMemory<Meeting> meeting;
  ChildProcess victim([&] { return run_victim(*meeting); });
  ChildProcess peer([&] { return run_peer(*meeting); });
  ChildProcess late([&] { return run_late_peer(*meeting); });
  EXPECT_EQ(peer.wait_status(), 0);
  EXPECT_EQ(late.wait_status(), 0);
  EXPECT_EQ(victim.wait_status(), 0);
}

// The lock by which others see that it lives must not have ended with a descriptor.
TEST(Descriptors, Program_that_closes_ours__is_alive_for_others_and_dead_when_it_dies) {
  const OwnNode node;
  const SharedMemory<Meeting> meeting;
  ChildProcess victim([&] {
    Node own;
    if (!open_node(&own, PTL_PID_ANY)) return 1;
    syscall(SYS_close_range, 3, ~0u, 0);
    if (syscall(SYS_fork) == 0) {  // A child that nobody tells of the library must not keep it alive.
      while (meeting->done == 0) sched_yield();
      _exit(0);
    }
    meeting->victim_pid = static_cast<int>(own.self.phys.pid);
    for (;;) pause();
  });
  ChildProcess other([&] {
    if (!eventually([&] { return meeting->victim_pid != 0; })) return 1;
    Node own;
    if (open_node(&own, static_cast<ptl_pid_t>(meeting->victim_pid))) return 2;  // Its PID is in use.
    PtlFini();
    if (!open_node(&own, PTL_PID_ANY)) return 3;
    ptl_process_t victim_id = own.self;
    victim_id.phys.pid = static_cast<ptl_pid_t>(meeting->victim_pid);
    if (!talk(own, victim_id, 8)) return 4;
    victim.send_signal(SIGKILL);
    const bool noticed = eventually([&] { return !talk(own, victim_id, 8); });
    PtlFini();
    return noticed ? 0 : 5;
  });
  EXPECT_EQ(other.wait_status(), 0);
  meeting->done = 1;
}

/// @return whether all descriptors that are open now and were not before are above 2 and end with exec
bool are_decent(const std::vector<int>& before) {
  DIR* const listing = opendir("/proc/self/fd");
  if (listing == nullptr) return false;
  bool decent = true;
  while (const dirent* entry = readdir(listing)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(listing)) continue;
    bool known = false;
    for (const int old : before) known = known || old == fd;
    decent = decent && (known || (fd > 2 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0));
  }
  closedir(listing);
  return decent;
}

TEST(Descriptors, Program_without_standard_streams__gets_none_of_ours) {
  const OwnNode node;
  const SharedMemory<Meeting> meeting;
  const auto run = [&](bool first) {
    for (int number = 0; number <= 2; ++number) close(number);
    std::vector<int> before;
    for (int fd = 3; fd < 1024; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) before.push_back(fd);
    }
    Node own;
    if (!open_node(&own, PTL_PID_ANY)) return 1;
    if (first) meeting->victim_pid = static_cast<int>(own.self.phys.pid);
    if (!first) {
      if (!eventually([&] { return meeting->victim_pid != 0; })) return 2;
      ptl_process_t peer = own.self;
      peer.phys.pid = static_cast<ptl_pid_t>(meeting->victim_pid);
      for (const ptl_size_t bytes : {8, 1 << 18}) {
        if (!talk(own, peer, bytes)) return 3;
      }
      meeting->done = 1;
    }
    if (!eventually([&] { return meeting->done != 0; })) return 4;
    if (!are_decent(before)) return 5;
    PtlFini();
    return 0;
  };
  ChildProcess one([&] { return run(true); });
  ChildProcess two([&] { return run(false); });
  EXPECT_EQ(two.wait_status(), 0);
  EXPECT_EQ(one.wait_status(), 0);
}

/// The library as it is built, beside the tests.
std::string built_library(const char* name) {
  char here[4096] = {};
  if (readlink("/proc/self/exe", here, sizeof here - 1) < 0) return name;
  std::string path(here);
  path.resize(path.rfind('/'));
  path.resize(path.rfind('/'));
  return path + "/lib/" + name;
}

/// Descriptors of this process.
int open_descriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (directory != nullptr && readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

/// Opens an interface and closes it, again and again.
/// @return 0, 1: it failed, 2: each time keeps more than its memory, which is a file, and the bell of its sleepers
int open_and_close(int times) {
  constexpr int kFirst = 3;  // What libfabric makes once, it keeps.
  int after_first = 0;
  for (int i = 0; i < times; ++i) {
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    if (PtlInit() != PTL_OK) return 1;
    if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &ni) != PTL_OK) return 1;
    if (PtlNIFini(ni) != PTL_OK) return 1;
    PtlFini();
    if (i + 1 == kFirst) after_first = open_descriptors();
  }
  return open_descriptors() <= after_first + 2 * (times - kFirst) ? 0 : 2;
}

// A thread that lives on may have been in a call, so memory stays for a while. Ports do not, nor what libfabric opens:
// the 33rd interface would find the ports of those before it taken.
TEST(Descriptors, Process_with_another_thread__keeps_no_port_of_what_it_has_closed) {
  for (const Place place : {Place::kOneNode, Place::kNodeEach}) {
    const TestNodes nodes(place);
    ChildProcess process([&] {
      nodes.enter(0);
      std::atomic<bool> end{false};
      std::thread other([&end] { end.wait(false); });
      const int wrong = open_and_close(50);
      end = true;
      end.notify_one();
      other.join();
      return wrong;
    });
    EXPECT_EQ(process.wait_status(), 0) << (place == Place::kOneNode ? "on one node" : "between nodes");
    EXPECT_EQ(nodes.names_left(1), 0);
  }
}

TEST(Copies, Two_in_one_process__do_not_take_each_others_names) {
  const OwnNode node;
  ChildProcess child([&node] {
    void* const copy = dlmopen(LM_ID_NEWLM, built_library("libportals.so.4").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (copy == nullptr) return 77;
    const auto other_init = reinterpret_cast<decltype(&PtlInit)>(dlsym(copy, "PtlInit"));
    const auto other_ni_init = reinterpret_cast<decltype(&PtlNIInit)>(dlsym(copy, "PtlNIInit"));
    const auto other_fini = reinterpret_cast<decltype(&PtlFini)>(dlsym(copy, "PtlFini"));
    Node own;
    if (!open_node(&own, PTL_PID_ANY)) return 1;
    ptl_handle_ni_t other = PTL_INVALID_HANDLE;
    if (other_init() != PTL_OK) return 2;
    if (other_ni_init(PTL_IFACE_DEFAULT, kMatching, own.self.phys.pid, nullptr, nullptr, &other) != PTL_PID_IN_USE)
      return 3;
    if (node.segment_count() != 1) return 4;
    if (other_ni_init(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &other) != PTL_OK) return 5;
    if (node.segment_count() != 2 || !talk(own, own.self, 8)) return 6;
    other_fini();
    if (node.segment_count() != 1 || !talk(own, own.self, 8)) return 7;
    PtlFini();
    return 0;
  });
  const int status = child.wait_status();
  if (status == 77) GTEST_SKIP() << "there is no libportals.so.4 here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace portofu
