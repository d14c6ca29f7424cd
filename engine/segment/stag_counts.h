#pragma once
// How many STags each control queue of the node has given out, whoever had it. A queue may become another process's,
// and a peer may know its STADDs from the program alone and never hear of that. So each owner goes on counting where
// the one before has ended, however that was, and a STADD of an earlier owner is none of a later one.
//
// The counts lie in a file of all processes of a user and job that have had a queue. Each holds a lock for reading on
// it until it ends, through a mapping (segment_file.h). Whoever finds no lock removes the file, as that of a dead
// segment: then no such process is left that might know a STADD, and queues count from the first STag again.

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

#include "engine/segment/mapping.h"

namespace portofu {

/// The count of one queue.
struct StagCountShared {
  std::atomic<std::uint64_t> key;  ///< claim_key of the queue; 0: free. Writers: owners of queues, by compare-and-swap.
  std::atomic<std::uint64_t> given;  ///< STags given out. Writer: the owner, on duty (relaxed: it guards no data).
};
static_assert(sizeof(StagCountShared) == 16 && std::is_standard_layout_v<StagCountShared>);

inline constexpr std::uint32_t kStagCounts = 4096;  ///< Queues of a job on a machine.

std::string stag_counts_path(const std::string& directory, std::uint32_t job_key);

/// Whether a file name is that of counts, which tools that list segments leave out.
bool is_stag_counts_name(const std::string& name);

/// One process's view of them. Not thread-safe.
class StagCounts {
 public:
  /// Makes the file, or joins who has it. Does nothing if it is open. The caller holds an OwnSegmentsLock.
  /// @return false, with errno, if that cannot be
  bool open(const std::string& directory, std::uint32_t job_key);

  /// Of a queue that this process has claimed. Where there is no room for it, or nothing is open, it is not known where
  /// the owner before has ended: then it counts from a drawn place, for this process alone.
  std::atomic<std::uint64_t>& of(std::uint64_t key);

  /// This process ends: removes the file if it was the last. What `of` has given may be used still, and counts for
  /// nobody. The caller holds an OwnSegmentsLock. Takes and gives back no memory of the heap.
  void close();

 private:
  std::string path_;
  Mapping counts_;                           ///< Holds the lock.
  std::atomic<std::uint64_t> uncounted_{0};  ///< For all queues without a place; 0: not drawn yet.
};

}  // namespace portofu
