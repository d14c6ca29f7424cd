#include "engine/segment/segment_alias.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "engine/queue/cancellation.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_file.h"
#include "engine/segment/signpost.h"

namespace portofu {
namespace {

constexpr const char* kAliasMark = "at-";

/// Reads whose segment a file of ours is, and notes who learns it. @return false if it is not a living one of the job
bool read_owner(const SegmentFile& file, const std::string& path, std::uint32_t job_key, const Knower* knower,
                NameOwner* owner) {
  struct stat status {};
  if (fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return false;
  SegmentDescriptorShared descriptor{};
  if (pread(file.fd(), &descriptor, sizeof descriptor, 0) != static_cast<ssize_t>(sizeof descriptor)) return false;
  if (!is_sound(descriptor, static_cast<std::uint64_t>(status.st_size)) || descriptor.job_key != job_key) return false;
  *owner = {{descriptor.nid, descriptor.pid}, read_names(file.fd())};
  const bool noted = knower == nullptr || note_knower(file.fd(), *knower);
  if (!file.is_alive()) return false;
  // (N1) The word is that of a time at which this was its name, and whoever moves it now finds what was noted.
  const bool still = stands_for(path, file.fd());
  if (!noted || !still || read_names(file.fd()) != owner->names) owner->names = kNamesMoving;
  return true;
}

/// Throws bad_alloc without memory; then the name is gone again.
void note_alias(ProcessSegment& segment, const std::string& path) {
  try {
    segment.add_alias(path);
    add_own_segment(path, segment.file());
  } catch (...) {
    segment.drop_alias(path);
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace

std::string alias_path(const std::string& directory, std::uint32_t job_key, std::uint64_t key) {
  char text[40];
  std::snprintf(text, sizeof text, "%08x-%016llx", job_key, static_cast<unsigned long long>(key));
  return directory + "/" + segment_name_prefix() + kAliasMark + text;
}

bool is_alias_name(const std::string& name) { return name.starts_with(segment_name_prefix() + kAliasMark); }

AliasResult claim_alias(ProcessSegment& segment, std::uint64_t key, const Meanwhile& meanwhile) {
  const NoCancellation whole;
  const OwnSegmentsLock lock;
  const std::string path = alias_path(segment.directory(), segment.job_key(), key);
  constexpr int kTries = 2;  // The second after a dead owner's name was removed.
  for (int tries = 0; tries < kTries; ++tries) {
    if (::link(segment.path().c_str(), path.c_str()) == 0) {
      note_alias(segment, path);
      return AliasResult::kClaimed;
    }
    if (errno != EEXIST) return AliasResult::kFailed;
    if (!remove_if_dead(path, meanwhile)) return AliasResult::kTaken;
  }
  return AliasResult::kTaken;
}

bool release_alias(ProcessSegment& segment, std::uint64_t key, const Meanwhile& meanwhile) {
  const NoCancellation whole;
  std::optional<OwnSegmentsLock> lock(std::in_place);
  const std::string path = alias_path(segment.directory(), segment.job_key(), key);
  if (!segment.has_alias(path)) return true;
  const NamesChange change(segment.doorbell().names);
  // Others of this process need not wait for whom we tell. To them, too, the name is taken and about to move.
  lock.reset();
  const bool all_know = tell_knowers(segment.file()->fd(), NamesLost::kSome, kTellMs, meanwhile);
  lock.emplace();
  if (!all_know) return false;
  segment.drop_alias(path);
  remove_name(segment, path);
  // If the segment has ended meanwhile, it may be another one's.
  if (find_own_segment(path) == segment.file()) remove_own_name(path);
  return true;
}

bool find_alias(const ProcessSegment& own, std::uint64_t key, NameOwner* owner, const Knower* knower) {
  const NoCancellation whole;
  const OwnSegmentsLock lock;
  const std::string path = alias_path(own.directory(), own.job_key(), key);
  if (const auto file = find_own_segment(path)) return read_owner(*file, path, own.job_key(), knower, owner);
  const int fd = open_named_segment(path);
  if (fd < 0) {
    if (errno == ENOENT) tell_if_names_are_hidden(own.directory());
    return false;
  }
  const SegmentFile file(fd, FileOwner::kOtherProcess);
  return read_owner(file, path, own.job_key(), knower, owner);
}

}  // namespace portofu
