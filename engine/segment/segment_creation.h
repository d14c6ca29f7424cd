#pragma once
// How a segment comes into the world: made without a name, filled, locked, and only then linked to its name, which is
// the claim of the PID. Whoever sees the name sees a finished and locked segment; a creator killed on the way leaves
// nothing.

#include <memory>
#include <string>

#include "engine/segment/process_segment.h"

namespace portofu {

/// One attempt to make a segment. Used once, by one thread.
class SegmentCreation {
 public:
  explicit SegmentCreation(const SegmentOptions& options) : options_(options) {}

  /// @return the segment, or nullptr with error() and why() set
  std::unique_ptr<ProcessSegment> run();

  SegmentError error() const { return error_; }
  const std::string& why() const { return why_; }

 private:
  // The steps, in order. Each returns false after it has set error and why.
  bool check_options();
  bool open_nameless_file();
  bool take_memory();
  void prefer_own_node();
  bool fill_descriptor();
  bool claim_name();

  bool claim_wanted_pid();
  bool claim_any_pid();

  /// Outcome of one attempt to link the file to the name of a PID.
  enum class LinkResult : std::uint8_t { kLinked, kInUse, kFailed };
  LinkResult link_as(std::uint32_t pid);

  bool fail(SegmentError error, const std::string& why);
  bool fail_to_take(const char* call, std::uint64_t bytes, int error);

  const SegmentOptions& options_;
  std::unique_ptr<ProcessSegment> segment_;  ///< Grows step by step; handed out at the end.
  SegmentError error_ = SegmentError::kNone;
  std::string why_;
};

/// Which segments of the dead a sweep removes.
enum class Sweep : std::uint8_t {
  kShare,       ///< As the next one, but it ends at kMostLeftNames that stay, and begins elsewhere each time.
  kNotTheKept,  ///< But for those that shall be kept.
  kAll,
};

/// Removes segments of this effective user whose owners are dead; looks at kMaxSweptNames names at most.
/// The caller holds an OwnSegmentsLock.
/// @return number of segments removed
int sweep_dead_segments(const std::string& directory, Sweep which = Sweep::kNotTheKept);

/// Removes all of them, for a user who has seen what there was to see.
/// @return number of segments removed
int remove_dead_segments(const std::string& directory);

/// Bound of the work of one sweep.
inline constexpr int kMaxSweptNames = 4096;

/// Without it a thousand processes that start together would look at a million names of the living.
inline constexpr int kMostLeftNames = 64;

}  // namespace portofu
