#pragma once
// Which segments this process owns. Process-wide on purpose, although engines are not: a POSIX file lock belongs to the
// process, so an engine that opened and closed the segment of another engine of the same process would drop that one's
// lock. Everything that opens or closes a segment file by name holds OwnSegmentsLock meanwhile. Never on the short
// path.

#include <cstdint>
#include <memory>
#include <string>

#include "engine/segment/segment_file.h"

namespace portofu {

/// Excludes the other threads of this process from opening, closing and naming segments. A fork waits for it, so a
/// child never inherits it locked.
class OwnSegmentsLock {
 public:
  OwnSegmentsLock();
  ~OwnSegmentsLock();
  OwnSegmentsLock(const OwnSegmentsLock&) = delete;
  OwnSegmentsLock& operator=(const OwnSegmentsLock&) = delete;
};

/// The caller of these four holds an OwnSegmentsLock.
/// @return the open file of a segment that this process owns, nullptr if it owns none of this path
std::shared_ptr<SegmentFile> find_own_segment(const std::string& path);
void add_own_segment(const std::string& path, std::shared_ptr<SegmentFile> file);
void remove_own_segment(const SegmentFile* file);
void remove_own_name(const std::string& path);

/// @return a number that is another one in a forked child than in its parent
std::uint64_t fork_generation();

}  // namespace portofu
