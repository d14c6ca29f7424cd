#pragma once
// From pictures of processes to what is wrong with them, in words.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/inspect/picture.h"

namespace portofu {

enum class FindingKind : std::uint8_t {
  kHeaderWaits,     ///< An unexpected header, and an entry that it nearly matches.
  kMessageRefused,  ///< A message that was dropped, or refused.
  kEntryDisabled,   ///< A portal table entry.
  kQueueFull,       ///< An event queue, MRQ or TCQ.
  kEventsLost,      ///< An event queue had no room.
  kCounterLacks,    ///< Somebody, or something, waits for a counter.
  kNoAnswerDue,     ///< Somebody waits for an answer that nobody owes.
  kNothingCounts,   ///< Somebody waits for a counter that nothing raises, or at a queue that gets no such event.
  kNotAnswered,     ///< Operations wait for their answers.
  kNotSent,         ///< Messages wait for room at their peer.
  kPeerStopped,
  kPeerDead,
  kCircle,
  kSessionLacks,         ///< uTofu: descriptors of a session mode VCQ wait.
  kGateLacks,            ///< uTofu: a barrier gate lacks an input.
  kOwnerUnknown,         ///< uTofu: requests for a queue or gate that nobody has.
  kEventLacks,           ///< Somebody waits for an event.
  kCommunicationFailed,  ///< uTofu: one that was told to its initiator only.
  kNoticesUnread,        ///< uTofu: notices wait in an MRQ while the program looks for others.
  kStartDelayed,         ///< uTofu: descriptors that DELAY_START holds back.
  kCounterFailed,        ///< A counter has counted failures.
  kEventsUnread,         ///< Events wait in a queue while the program looks for others.
  kOutside,              ///< A process that others wait for is in no call of the library.
  kSearchLacks,          ///< Searches of an unexpected list find nothing.
  kNotDelivered,         ///< Operations did not come to their target.
  kWordHeld,             ///< Compare-and-swaps of a word are tried in vain: a lock, perhaps.
};

/// Name for JSON and tests, "header_waits".
const char* finding_name(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kNotAnswered;
  ProcessId where;              ///< The process that it is about.
  std::string object;           ///< What of it: "portal table entry 4", "counter 0x14000000"; empty: nothing special.
  ProcessId other;              ///< Another process that it is about; {0, 0}: none.
  std::uint64_t got = 0;        ///< kHeaderWaits, kMessageRefused: match bits of the message.
  std::uint64_t wanted = 0;     ///< Match bits of the nearest entry.
  std::uint64_t differing = 0;  ///< Bits in which they differ and which that entry does not ignore.
  std::uint64_t lacks = 0;      ///< Counts, steps or inputs that are lacking.
  std::string sentence;         ///< Without its full stop. Times in it differ from look to look.
  /// Another one when something has come, or was read, where the finding says that nothing does. What goes on does not
  /// hang, though it waits at each look.
  std::uint64_t progress = 0;
};

/// Compares pictures with earlier ones of the same processes: what lasts, and who looks for something.
void note_changes(const std::vector<ProcessPicture>& before, std::vector<ProcessPicture>* now);

/// @param processes  of one job; note_changes was called
std::vector<Finding> find_causes(const std::vector<ProcessPicture>& processes);

/// Those of `now` that were there before, too: what passes by itself explains nothing.
std::vector<Finding> keep_lasting(const std::vector<Finding>& before, const std::vector<Finding>& now);

/// "bit 3", "bits 0-2, 8-11".
std::string bits_text(std::uint64_t bits);

// "counter 0x14000000": what objects are called, in the words of their API.
std::string counter_name(Handle handle);
/// Of libfabric: "completion queue 0x90100000".
std::string event_queue_name(Handle handle);
/// "portal table entry 4"; of libfabric "fi_trecv of endpoint 1".
std::string portal_name(const InterfacePicture& ni, std::uint32_t pt_index);
/// "bits 0x10", "tag 0x10", "key 0x10"; empty: they say nothing there.
std::string match_bits_name(const InterfacePicture& ni, std::uint32_t pt_index, std::uint64_t bits);
/// ", ignore 0xf"; empty: all bits have to match.
std::string ignore_text(const MatchCriteria& criteria);
/// "entry"; of libfabric "receive", "region": what is posted there.
const char* posted_name(const InterfacePicture& ni, std::uint32_t pt_index);
std::string vcq_name(std::uint64_t id);
std::string gate_name(std::uint64_t id);

}  // namespace portofu
