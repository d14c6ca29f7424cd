#pragma once
// The way back to a segment whose name somebody has removed, as those do who sweep /dev/shm. The kernel gives a file
// that has no name left no new one, so in place of the segment a small file takes the name: it says which descriptor of
// which process is the segment. It is locked like the segment, so the PID stays claimed, and whoever finds the owner
// dead removes it like the segment. Peers that have the segment open need none.

#include <cstdint>
#include <string>
#include <type_traits>

#include "engine/segment/process_segment.h"

namespace portofu {

/// All that is in the file. Written before it has a name.
struct SignpostShared {
  static constexpr std::uint64_t kMagic = 0x70726f6675776179;  ///< No segment begins so.

  std::uint64_t magic = kMagic;
  std::uint64_t incarnation = 0;  ///< Of the segment: another file may have got its descriptor.
  std::uint32_t os_pid = 0;       ///< Of the owner.
  std::uint32_t descriptor = 0;   ///< The owner's, of the segment.
};
static_assert(sizeof(SignpostShared) == 24 && std::is_standard_layout_v<SignpostShared>);

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
