#pragma once
// One look at all processes of this user on the node: what their segments have counted, what the kernel says of them,
// and how full their queues are. Nobody who is looked at notices it.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// Packets that a process has sent to another one, which has not taken them.
struct Waiting {
  std::uint32_t from_pid = 0;
  std::uint32_t to_pid = 0;
  std::uint32_t packets = 0;
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// A queue that the application reads.
struct QueueLook {
  enum class Kind : std::uint8_t { kEventQueue, kMrq, kTcq };
  Kind kind = Kind::kEventQueue;
  std::uint64_t id = 0;  ///< Handle of an event queue, ID of the VCQ of the others.
  std::uint64_t unread = 0;
  std::uint64_t capacity = 0;

  double percent() const {
    return capacity != 0 ? 100.0 * static_cast<double>(unread) / static_cast<double>(capacity) : 0;
  }
};

/// One process, with all its lanes.
struct ProcessLook {
  static constexpr std::int64_t kNoRank = -1;

  std::uint32_t os_pid = 0;
  std::uint32_t nid = 0;
  std::uint32_t job_key = 0;
  std::int64_t rank = kNoRank;  ///< As the launcher numbers the processes of a job.
  SystemTask task;
  std::vector<std::uint32_t> pids;  ///< Of its lanes; the first one is that of its Portals interfaces.
  std::array<std::uint64_t, kCounterCount> counters{};  ///< Sums of all lanes.
  std::vector<Waiting> waiting;                         ///< For this process.
  std::uint32_t channels = 0;                           ///< Of others to this process.
  std::vector<QueueLook> queues;
  std::vector<PeerPicture> peers;  ///< Those that it has talked to, each once.
  Sight sight = Sight::kWhole;     ///< Why queues and peers are not there, if it is another.

  std::uint64_t count(Counter counter) const { return counters[static_cast<std::size_t>(counter)]; }
};

struct Look {
  std::uint64_t time_ns = 0;
  std::vector<ProcessLook> processes;  ///< By job, then rank, then number of the process.
};

/// @param directory  of the segments
/// @return false if it cannot be read
bool look_at_node(const std::string& directory, Look* look);

/// All lists, counters and queues of one process, as text for people.
std::string lists_of_process(const std::string& directory, std::uint32_t os_pid);

}  // namespace portofu::tools
