#pragma once
// The processes of a job by their ids, with names for people, and the small texts of all findings.

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/inspect/findings.h"

namespace portofu {

std::string since_text(std::uint64_t since_ns);  ///< "for 12 s", by the clock of this machine.
std::string ago_text(std::uint64_t at_ns);       ///< "12 s ago".

/// What is so if JobView::is_gone.
inline constexpr const char* kIsGone =
    "no process of this job has that PID now: it has ended, has closed its interface, has not begun, or has another "
    "PORTOFU_JOB_KEY";

class JobView {
 public:
  /// @param processes  outlives the view
  explicit JobView(const std::vector<ProcessPicture>& processes);

  const std::vector<ProcessPicture>& processes() const { return processes_; }

  /// @return nullptr if it was not seen
  const ProcessPicture* find(ProcessId id) const;

  /// "rank 3", else "PID 3", or "PID 3 of 10.0.0.1" if it is on another node.
  std::string name(ProcessId id) const;

  /// The process of a message, or that an entry wants. @param shown  as matching shows it
  static ProcessId physical(const InterfacePicture& ni, ProcessId shown);

  /// What an entry wants messages of: {0, 0} if of several processes.
  static ProcessId wanted_source(const InterfacePicture& ni, const MatchCriteria& criteria);

  /// @return {0, 0} if no process that has the gate was seen
  ProcessId owner_of_gate(std::uint64_t gate_id) const;

  /// Whether some process of the job waits for something that the library has to bring.
  bool anybody_waits() const;

  /// Whether it is a process of this node that has no interface open now.
  bool is_gone(ProcessId id) const;

 private:
  const std::vector<ProcessPicture>& processes_;
  std::unordered_map<std::uint64_t, const ProcessPicture*> by_id_;
  std::uint32_t own_nid_ = 0;
};

/// What counts at a counter, or raises events in a queue, of one process.
struct Feeders {
  std::vector<const EntryPicture*> entries;   ///< Of the priority lists.
  std::vector<const PortalPicture*> portals;  ///< Of `entries`, each.
  std::vector<const DescriptorPicture*> descriptors;
  std::vector<const CounterPicture*> triggered_by;     ///< Counters whose operations raise this one.
  bool overflow = false;                               ///< An entry of an overflow list counts there.
  const PortalPicture* bare_portal = nullptr;          ///< Logs to the queue, and has no entry.
  const EntryPicture* mute_entry = nullptr;            ///< Names the counter or queue, and never tells it of a message.
  const PortalPicture* mute_portal = nullptr;          ///< Of `mute_entry`.
  const DescriptorPicture* mute_descriptor = nullptr;  ///< Names the counter, and never raises it.
  bool answers_due = false;                            ///< Some operation of `descriptors` is under way.

  bool has_used_once() const { return std::ranges::any_of(entries, is_used_once); }
  /// Only entries that are used once, and receives of libfabric, if there are any: who posts one waits for it.
  void keep_used_once();

 private:
  static bool is_used_once(const EntryPicture* entry) {
    return (entry->options & (kEntryUseOnce | kEntryTakesData)) != 0;
  }
};
/// @param kind  kCounters or kEventQueue
Feeders feeders_of(const ProcessPicture& process, const InterfacePicture& ni, WaitKind kind, Handle handle);

/// What has come to a counter or an event queue so far (Finding::progress).
std::uint64_t progress_of(const InterfacePicture& ni, WaitKind kind, Handle handle);
/// The same, to all that a process has.
std::uint64_t progress_of(const ProcessPicture& process);

/// Whether an entry is there to be read by others only.
bool is_only_read(const EntryPicture& entry);
/// "a message", "a get": what it is posted for.
const char* expected_at(const EntryPicture& entry);

/// The interface of a handle. @return nullptr if it was not seen
const InterfacePicture* interface_of(const ProcessPicture& process, Handle handle);

/// Compare-and-swaps of a word that one process tries again and again, in vain.
struct HeldWord {
  const WordUse* use;     ///< By whoever tries.
  ProcessId who;          ///< The same one.
  ProcessId holder;       ///< Who has changed the word last; {0, 0}: nobody that is known.
  std::uint64_t changed;  ///< WordUse::changed of `holder`.
};
/// @param owner  in whose memory the words are
std::vector<HeldWord> held_words_of(const ProcessPicture& owner);

// Each adds what it finds.
void find_unmatched(const JobView& job, std::vector<Finding>* findings);  ///< Headers, refusals, disabled entries.
void find_full_queues(const JobView& job, std::vector<Finding>* findings);
void find_lacking(const JobView& job, std::vector<Finding>* findings);  ///< Counters and who waits for them.
void find_silent_peers(const JobView& job, std::vector<Finding>* findings);
void find_circles(const JobView& job, std::vector<Finding>* findings);
void find_outside(const JobView& job, std::vector<Finding>* findings);  ///< Who is in no call while others wait.
void find_tofu(const JobView& job, std::vector<Finding>* findings);
void find_held_words(const JobView& job, std::vector<Finding>* findings);  ///< Swaps that are tried in vain.

}  // namespace portofu
