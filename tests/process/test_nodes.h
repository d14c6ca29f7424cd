#pragma once
// Where the processes of a test live: all on one node, so that they talk through shared memory, or each on a node of
// its own, so that they talk over the fabric. No other test uses these nodes at the same time.

#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/process/test_network.h"

namespace portofu {

enum class Place : int { kOneNode, kNodeEach };

/// Made before anything is forked; its children agree.
class TestNodes {
 public:
  explicit TestNodes(Place place) : place_(place) {
    static std::uint32_t count = 0;
    base_ = test_network() + count++ % 4 * 64;
  }

  Place place() const { return place_; }
  std::uint32_t nid(int rank) const {
    return base_ + 1 + (place_ == Place::kNodeEach ? static_cast<std::uint32_t>(rank) : 0);
  }

  /// Of the test's own, so that its control queues are nobody else's.
  std::uint32_t job_key() const { return base_; }

  /// uTofu's X, Y and Z of a rank's node; the other coordinates are 0 (lib/nodes.md).
  void coordinates(int rank, std::uint8_t* six) const {
    const std::uint32_t id = place_ == Place::kNodeEach ? nid(rank) : 0;
    six[0] = static_cast<std::uint8_t>(id);
    six[1] = static_cast<std::uint8_t>(id >> 8);
    six[2] = static_cast<std::uint8_t>(id >> 16);
    six[3] = six[4] = six[5] = 0;
  }

  /// To be called by a process before it calls either API.
  void enter(int rank) const {
    const in_addr address{htonl(nid(rank))};
    setenv("PORTOFU_NID", inet_ntoa(address), 1);
    setenv("PORTOFU_FABRIC", place_ == Place::kNodeEach ? "1" : "0", 1);
    setenv("PORTOFU_JOB_KEY", std::to_string(job_key()).c_str(), 1);
  }

  /// What has a name in /dev/shm and belongs to the first `ranks` processes.
  int names_left(int ranks) const {
    DIR* directory = opendir("/dev/shm");
    if (directory == nullptr) return -1;
    int count = 0;
    char queues[64], counts[64];
    std::snprintf(queues, sizeof queues, "portofu-%u-at-%08x", geteuid(), job_key());
    std::snprintf(counts, sizeof counts, "portofu-%u-stags-%08x", geteuid(), job_key());
    while (const dirent* entry = readdir(directory)) {
      const std::string name = entry->d_name;
      count += name.starts_with(queues) || name == counts ? 1 : 0;
      for (int rank = 0; rank < ranks; ++rank) {
        if (place_ == Place::kOneNode && rank > 0) continue;
        char prefix[64];
        std::snprintf(prefix, sizeof prefix, "portofu-%u-%08x-", geteuid(), nid(rank));
        count += std::string(entry->d_name).starts_with(prefix) ? 1 : 0;
      }
    }
    closedir(directory);
    return count;
  }

 private:
  Place place_;
  std::uint32_t base_;
};

}  // namespace portofu
