#pragma once
// The segment that this process owns: its claim on a (NID, PID), and the memory through which peers reach it.
// Before it: the engine opens and knows its NID. After it: wires connect to it by name alone.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/segment/layout.h"
#include "engine/segment/mapping.h"
#include "engine/segment/mark_page.h"
#include "engine/segment/segment_file.h"
#include "engine/segment/stag_counts.h"
#include "engine/topology/process_id.h"

namespace portofu {

/// What an engine asks of its segment.
struct SegmentOptions {
  std::uint32_t nid = 0;                ///< Node of this process; part of the segment's name.
  std::uint32_t pid = 0;                ///< Wanted PID, 1..kMaxPid; 0 takes any free one.
  std::uint32_t job_key = 0;            ///< Only processes with the same key are talked to.
  std::uint32_t uid = 0;                ///< Usage ID (Portals 4.3, 3.8); shown to peers, not checked here.
  std::uint32_t channel_count = 1024;   ///< Peers that can send to this process at a time.
  RingGeometry ring;                    ///< Sizes of each inbound ring; memory is taken for those that are used.
  std::uint32_t area_bytes = 2u << 20;  ///< Send area, a power of two; 0: none. Memory is taken when it is used.
  std::string directory = "/dev/shm";   ///< Where segments lie; the same for all processes of a node.
  bool membarrier = true;               ///< False behaves as if the kernel had no membarrier.
  std::int32_t rank = -1;               ///< As the launcher numbers this process; shown to tools.
  std::int32_t memory_node = -1;        ///< NUMA node where its memory shall be; -1: where it is touched first.
  bool keep_dead = false;               ///< The segment stays when this process is dead, so that it can be looked at.
};

/// Why there is no segment.
enum class SegmentError : std::uint8_t {
  kNone,
  kPidInUse,   ///< A living process of this user has this PID.
  kNoPidFree,  ///< Every PID is taken.
  kNoMemory,   ///< The directory's file system, or a limit of this process, is too small.
  kSystem,     ///< Anything else; the text says what.
};

/// What became of names that somebody has removed. On duty.
struct LostNames {
  std::vector<std::shared_ptr<SegmentFile>> signposts;  ///< Files that have such a name in place of the segment.
  std::vector<std::string> given_up;                    ///< Names that could not be put back; that was said.
};

/// Owns the file, the name and the mapping of the descriptor, control and directory pages. Made and destroyed by any
/// thread; what it hands out is used as the owners of those structures say. In a forked child it only lets go.
class ProcessSegment {
 public:
  /// Claims the PID and makes the segment; removes segments of this user that it finds dead meanwhile.
  /// @param error  set to kNone or to the reason; never nullptr
  /// @param why    set to a sentence for people on failure; may be nullptr
  /// @return nullptr on failure
  static std::unique_ptr<ProcessSegment> create(const SegmentOptions& options, SegmentError* error, std::string* why);

  /// Gives the name and the PID back.
  ~ProcessSegment() { end(); }

  /// Does so now; what is mapped stays. May be called again.
  void end();

  /// For a process that ends in the middle of something: removes the names, unless somebody who may never come back
  /// is at them until a time of monotonic_ns. Then whoever finds them later does. Takes and gives back no memory.
  void give_names_back_until(std::uint64_t deadline_ns);

  /// For a simulation: the process dies. Its names stay, and lead to the dead.
  void die();
  ProcessSegment(const ProcessSegment&) = delete;
  ProcessSegment& operator=(const ProcessSegment&) = delete;

  ProcessId id() const { return {descriptor_.nid, descriptor_.pid}; }
  std::uint64_t incarnation() const { return descriptor_.incarnation; }
  std::uint32_t job_key() const { return descriptor_.job_key; }
  const std::string& directory() const { return directory_; }
  const SegmentLayout& layout() const { return layout_; }
  NodeGuard node_guard() const { return guard_; }

  DoorbellShared& doorbell() { return control().doorbell; }
  CountersShared& counters() { return control().counters; }
  SegmentControlShared& control();
  RegionTableShared& regions();
  ChannelSlotShared& slot(std::uint32_t slot_index);

  /// Maps the ring of a channel, and makes sure that it has memory.
  /// @return an empty mapping if memory is short
  Mapping map_ring(std::uint32_t slot_index, RingSize size = RingSize::kUsual) const;

  /// Maps the send area, and makes sure that it has memory.
  /// @return an empty mapping if memory is short
  Mapping map_send_area() const;

  /// Zeroes the ring of a channel for its next user and gives its memory back.
  void clear_ring(std::uint32_t slot_index) const;

  /// Tells peers where the heap of this process is, which has no name until somebody needs it. On duty.
  /// @return false if peers cannot have it
  bool publish_heap();

  /// For segment_alias: names that this segment has besides its own. The caller holds an OwnSegmentsLock.
  const std::string& path() const { return path_; }
  const std::shared_ptr<SegmentFile>& file() const { return file_; }
  void add_alias(const std::string& path) { aliases_.push_back(path); }
  bool has_alias(const std::string& path) const {
    return std::find(aliases_.begin(), aliases_.end(), path) != aliases_.end();
  }
  void drop_alias(const std::string& path) { std::erase(aliases_, path); }

  /// Of the control queues that this segment has. On duty.
  StagCounts& stag_counts() { return stag_counts_; }

  /// For signpost.
  const std::vector<std::string>& aliases() const { return aliases_; }
  LostNames& lost_names() { return lost_names_; }

  /// @return false in a forked child, which must not use what it inherited; costs one load
  bool in_owner_process() const;

 private:
  ProcessSegment() = default;
  void remove_names();

  std::string directory_;
  std::string path_;                  ///< Name of the file, removed at the end.
  std::vector<std::string> aliases_;  ///< Further names, removed at the end.
  LostNames lost_names_;
  StagCounts stag_counts_;
  std::shared_ptr<SegmentFile> file_;     ///< Locked; the only descriptor of it in this process.
  SegmentDescriptorShared descriptor_{};  ///< Our own copy; also a forked child may look at it.
  MarkPage mark_;                         ///< The incarnation once more.
  SegmentLayout layout_;
  Mapping header_;  ///< Everything in front of the rings.
  NodeGuard guard_ = NodeGuard::kFence;
  std::uint64_t fork_generation_ = 0;  ///< fork_generation() of the owner.
  bool ended_ = false;                 ///< By end.

  friend class SegmentCreation;
};

}  // namespace portofu
