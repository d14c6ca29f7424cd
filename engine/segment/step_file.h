#pragma once
// The file that a recorder writes to: a ring of the last steps beside the segments, or a ring with a log of all steps,
// which grows, in a directory of whoever traces. It outlives its process: a ring until the next process of this user
// that records comes, a growing file until somebody removes it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/observe/recorder.h"
#include "engine/observe/step_log.h"
#include "engine/segment/mapping.h"
#include "engine/segment/segment_file.h"
#include "engine/topology/process_id.h"

namespace portofu {

struct StepFileOptions {
  std::string directory = "/dev/shm";
  bool grows = false;       ///< All steps are kept, not only the last ones.
  bool keeps_dead = false;  ///< Rings of dead processes stay.
};

/// Made and ended by any thread; `next` on duty.
class StepFile final : public StepMemory {
 public:
  /// Makes the file of a process that has its PID. A ring is made after the rings of the dead are swept.
  /// @param why  set to a sentence for people on failure
  /// @return nullptr on failure
  static std::unique_ptr<StepFile> create(const StepFileOptions& options, ProcessId self, std::string* why);

  ~StepFile() override { end(); }

  /// The owner closes: a ring loses its name. What is mapped stays. May be called again; does nothing in a forked
  /// child.
  void end();

  StepFileHead& head() override { return *reinterpret_cast<StepFileHead*>(head_.at(0)); }
  std::span<StepRecord> next() override;

  const std::string& path() const { return path_; }

  /// Of the ring: more than kLastSteps, so that those are whole while the owner goes on writing.
  static constexpr std::uint64_t kRingRecords = 2 * kLastSteps;

 private:
  StepFile() = default;
  bool take_memory(std::uint64_t offset, std::uint64_t bytes, Mapping* mapping) const;
  void fill_head(ProcessId self);
  bool log_ring();

  std::string path_;
  std::unique_ptr<SegmentFile> file_;  ///< Locked.
  Mapping head_;
  Mapping ring_;
  bool grows_ = false;
  StepLogWriter log_;
  std::unique_ptr<std::byte[]> log_room_;  ///< For a ring as the log has it. nullptr: there is no log.
  std::uint64_t log_end_ = 0;              ///< Where in the file the log goes on.
  std::uint64_t fork_generation_ = 0;      ///< Of the owner.
  bool ended_ = false;
};

/// @return what the names of all rings of this effective user begin with; no segment's name does
std::string step_ring_prefix();

/// Removes the rings of dead processes. @return how many
int sweep_dead_step_rings(const std::string& directory);

}  // namespace portofu
