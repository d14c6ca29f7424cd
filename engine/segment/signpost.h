#pragma once
// The way back to a segment whose name somebody has removed, as those do who sweep /dev/shm. The kernel gives a file
// that has no name left no new one, so a pointer to the segment (file_pointer.h) takes the name. It is locked like the
// segment, so the PID stays claimed. Peers that have the segment open need none.

#include <string>

#include "engine/segment/process_segment.h"

namespace portofu {

/// Opens the segment that a name stands for, or that a signpost at that name leads to. The caller holds an
/// OwnSegmentsLock, and owns no segment of this name.
/// @return the descriptor; less than 0, with errno, if there is none
int open_named_segment(const std::string& path);

/// Whether a name stands for the segment that is open here, by itself or by a signpost.
bool stands_for(const std::string& path, int segment_fd);

/// Makes sure that all names of a segment are there, by itself or by signposts, and says once what it has found. One
/// system call while nothing is wrong. On duty.
void look_after_names(ProcessSegment& segment);

/// Takes a name of a segment away, unless it is somebody else's by now. The caller holds an OwnSegmentsLock.
void remove_name(ProcessSegment& segment, const std::string& path);

}  // namespace portofu
