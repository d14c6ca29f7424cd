#pragma once
// Further names of a process's segment: hard links that claim something on the node besides the PID. Whoever opens an
// alias finds its owner in the segment's descriptor, and whether the owner lives by the segment's lock; names of the
// dead are swept like those of their segments.

#include <cstdint>
#include <string>

#include "engine/segment/known_by.h"
#include "engine/segment/names_word.h"
#include "engine/segment/process_segment.h"

namespace portofu {

/// Outcome of claim_alias.
enum class AliasResult : std::uint8_t { kClaimed, kTaken, kFailed };

/// @param key  what is claimed; unique among the processes of one job key and user
std::string alias_path(const std::string& directory, std::uint32_t job_key, std::uint64_t key);

/// Whether a file name is an alias, which tools that list segments leave out.
bool is_alias_name(const std::string& name);

/// @param meanwhile  for tell_knowers: a name of a dead process is taken when everybody has heard who knows it
AliasResult claim_alias(ProcessSegment& segment, std::uint64_t key, const Meanwhile& meanwhile = {});

/// Gives the key up when everybody has heard who knows it. Other segments of the process change their names meanwhile;
/// this one does not, because the caller is on duty.
/// @return false if somebody may not have, and the segment still has it
bool release_alias(ProcessSegment& segment, std::uint64_t key, const Meanwhile& meanwhile = {});

/// @param owner   set, with the names word that its segment had while it had this name
/// @param knower  who is going to remember it, if that is a process of another node
/// @return false if no living process has claimed the key
bool find_alias(const ProcessSegment& own, std::uint64_t key, NameOwner* owner, const Knower* knower = nullptr);

}  // namespace portofu
