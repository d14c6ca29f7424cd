// Lanes of a process whose job spans nodes: each has an endpoint of its own, and whatever goes between lanes of one
// node goes between those of several (tofu_lanes_test.cpp, which runs with a node for each process, too).

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <set>

#include "tests/process/test_nodes.h"
#include "tests/process/tofu_lanes.h"

namespace portofu {
namespace {

class TofuLanesOfNodes : public TofuLanes {
 protected:
  /// Runs the body in processes, each on a node of its own.
  void run(int count, const Body& body) {
    run_processes(count, [&](Process& self) {
      nodes_.enter(self.rank());
      body(self);
    });
  }

 private:
  const TestNodes nodes_{Place::kNodeEach};
};

/// TCP connections of this process, each with who is at the other end.
std::multiset<std::string> connections() {
  std::multiset<std::string> found;
  DIR* const directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    int type = 0;
    socklen_t type_length = sizeof type;
    const int fd = std::atoi(entry->d_name);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.sin_family != AF_INET) continue;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) != 0 || type != SOCK_STREAM) continue;
    found.insert(inet_ntoa(peer.sin_addr));
  }
  closedir(directory);
  return found;
}

/// A job of many ranks has many lanes, but a connection only for those that talk.
TEST_F(TofuLanesOfNodes, Connections__are_made_by_lanes_that_talk) {
  run(2, [](Process& self) {
    const Ends ends = make_ends(kLanes);
    const auto peers = share_names<kLanes>(self, ends);
    EXPECT_EQ(count_segments(), std::size_t{kLanes});
    EXPECT_EQ(connections().size(), 0u) << "nobody has talked";
    self.barrier();
    exchange(*ends[0], peers[0], self.rank() == 0, 10);
    EXPECT_EQ(connections().size(), 1u);
    self.barrier();
    const int own = self.rank() == 0 ? 2 : 1;
    exchange(*ends[static_cast<std::size_t>(own)], peers[static_cast<std::size_t>(3 - own)], self.rank() == 0, 10);
    EXPECT_EQ(connections().size(), 2u);
    self.barrier();
  });
}

/// Where a lane finds no endpoint there are fewer, which is said once, and other nodes reach all that there is.
TEST_F(TofuLanesOfNodes, Lane_without_an_endpoint__is_done_without) {
  run(2, [](Process& self) {
    const End first(0);
    setenv("PORTOFU_FABRIC_PROVIDER", "of_nobody", 1);
    testing::internal::CaptureStderr();
    const Ends ends = make_ends(kTnis);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(count_segments(), 1u);
    EXPECT_NE(said.find("utofu_create_vcq goes on with 1 lane:"), std::string::npos) << said;
    EXPECT_NE(said.find("no provider of libfabric named of_nobody"), std::string::npos) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    const auto peers = share_names<kTnis>(self, ends);
    for (std::size_t i = 0; i < kTnis; ++i) exchange(*ends[i], peers[i], self.rank() == 0, 10);
    self.barrier();
  });
}

/// The same where descriptors are short, in whatever step of opening that is found.
TEST_F(TofuLanesOfNodes, Lane_without_descriptors__is_done_without) {
  constexpr rlim_t kMostOfLane = 20;
  for (rlim_t spare = 0; spare < kMostOfLane && !HasFailure(); spare += 2) {
    run(2, [spare](Process& self) {
      const End first(0);
      const Name peer = self.share(first.name)[static_cast<std::size_t>(1 - self.rank())];
      exchange(first, peer, self.rank() == 0, 10);
      self.barrier();
      testing::internal::CaptureStderr();
      rlimit limit{};
      EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
      const rlim_t before = limit.rlim_cur;
      const int lowest = dup(0);
      close(lowest);
      limit.rlim_cur = static_cast<rlim_t>(lowest) + spare;
      EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
      const Ends ends = make_ends(2);
      limit.rlim_cur = before;
      EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
      const std::string said = testing::internal::GetCapturedStderr();
      // libfabric says of one of its own that it is an "Input/output error".
      EXPECT_EQ(said.find("other programs"), std::string::npos) << said;
      // Of each thing that is done without: who answers for control queues, where their STags are counted.
      EXPECT_LE(std::ranges::count(said, '\n'), 2) << said;
      const auto peers = share_names<2>(self, ends);
      for (std::size_t i = 0; i < 2; ++i) exchange(*ends[i], peers[i], self.rank() == 0, 10);
      self.barrier();
    });
  }
}

}  // namespace
}  // namespace portofu
