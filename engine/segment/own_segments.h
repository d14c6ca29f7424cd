#pragma once
// Which segments this process owns. Process-wide on purpose, although engines are not: whether a segment of this
// process lives is told by its own SegmentFile alone, so an engine that reaches another one of the same process must
// find that. Everything that opens or names a segment file by name holds OwnSegmentsLock meanwhile. Never on the short
// path.

#include <cstdint>
#include <memory>
#include <string>

#include "engine/segment/segment_file.h"

namespace portofu {

/// For a simulation with several processes in one: the own segments of one of them.
struct OwnSegments;
struct OwnSegmentsDelete {
  void operator()(OwnSegments* own) const;
};
std::unique_ptr<OwnSegments, OwnSegmentsDelete> make_own_segments();

/// From now on these are ours; nullptr: those of the real process. @return what it was
OwnSegments* use_own_segments(OwnSegments* own);

/// Excludes the other threads of this process from opening, closing and naming segments. A fork waits for it, so a
/// child never inherits it locked.
class OwnSegmentsLock {
 public:
  OwnSegmentsLock();
  /// For the end of the process: gives up at a time of monotonic_ns, because who has it may never come back.
  explicit OwnSegmentsLock(std::uint64_t deadline_ns);
  ~OwnSegmentsLock();
  bool is_held() const { return held_; }
  OwnSegmentsLock(const OwnSegmentsLock&) = delete;
  OwnSegmentsLock& operator=(const OwnSegmentsLock&) = delete;

 private:
  bool held_ = true;
};

/// The caller of these four holds an OwnSegmentsLock.
/// @return the open file of a segment that this process owns, nullptr if it owns none of this path
std::shared_ptr<SegmentFile> find_own_segment(const std::string& path);
void add_own_segment(const std::string& path, std::shared_ptr<SegmentFile> file);
void remove_own_segment(const SegmentFile* file);
void remove_own_name(const std::string& path);

/// A file that others have made in a directory is not there. Says once, if it is so, that this process does not see its
/// own ones there either: then that says nothing about the others. The caller holds an OwnSegmentsLock.
void tell_if_names_are_hidden(const std::string& directory);

/// @return false in a child that was made past the handlers of fork (_Fork(3), clone(2)): names are its parent's. Costs
/// a
///         system call
bool is_known_process();

/// @return a number that is another one in a forked child than in its parent
std::uint64_t fork_generation();

}  // namespace portofu
