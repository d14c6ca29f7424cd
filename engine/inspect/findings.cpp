#include "engine/inspect/findings.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "engine/descriptor/portal_use.h"
#include "engine/inspect/job_view.h"
#include "engine/observe/hex_text.h"

namespace portofu {
namespace {

auto key_of(const Finding& finding) {
  // One look may see a thread asleep, which wants so much of a counter, and the other one the same thread awake.
  const bool is_wait = finding.kind == FindingKind::kCounterLacks || finding.kind == FindingKind::kNothingCounts ||
                       finding.kind == FindingKind::kNoAnswerDue;
  return std::tuple(finding.kind, process_key(finding.where), finding.object, process_key(finding.other), finding.got,
                    finding.wanted, is_wait ? 0 : finding.lacks, finding.progress);
}

/// Portal table entries in which searches find nothing, again and again.
void note_searches(const ProcessPicture& before, ProcessPicture* now) {
  for (std::size_t i = 0; i < std::min(before.core.interfaces.size(), now->core.interfaces.size()); ++i) {
    const std::vector<PortalPicture>& earlier = before.core.interfaces[i].portals;
    for (PortalPicture& portal : now->core.interfaces[i].portals) {
      const auto same = std::ranges::find(earlier, portal.pt_index, &PortalPicture::pt_index);
      portal.searches = same != earlier.end() && same->missed_searches != portal.missed_searches;
    }
  }
}

}  // namespace

const char* finding_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kHeaderWaits: return "header_waits";
    case FindingKind::kMessageRefused: return "message_refused";
    case FindingKind::kEntryDisabled: return "entry_disabled";
    case FindingKind::kQueueFull: return "queue_full";
    case FindingKind::kEventsLost: return "events_lost";
    case FindingKind::kCounterLacks: return "counter_lacks";
    case FindingKind::kNoAnswerDue: return "no_answer_due";
    case FindingKind::kNothingCounts: return "nothing_counts";
    case FindingKind::kNotAnswered: return "not_answered";
    case FindingKind::kNotSent: return "not_sent";
    case FindingKind::kPeerStopped: return "peer_stopped";
    case FindingKind::kPeerDead: return "peer_dead";
    case FindingKind::kCircle: return "circle";
    case FindingKind::kSessionLacks: return "session_lacks";
    case FindingKind::kGateLacks: return "gate_lacks";
    case FindingKind::kOwnerUnknown: return "owner_unknown";
    case FindingKind::kEventLacks: return "event_lacks";
    case FindingKind::kCommunicationFailed: return "communication_failed";
    case FindingKind::kNoticesUnread: return "notices_unread";
    case FindingKind::kStartDelayed: return "start_delayed";
    case FindingKind::kCounterFailed: return "counter_failed";
    case FindingKind::kEventsUnread: return "events_unread";
    case FindingKind::kOutside: return "outside";
    case FindingKind::kSearchLacks: return "search_lacks";
    case FindingKind::kNotDelivered: return "not_delivered";
    case FindingKind::kWordHeld: return "word_held";
  }
  return "unknown";
}

void note_changes(const std::vector<ProcessPicture>& before, std::vector<ProcessPicture>* now) {
  for (ProcessPicture& process : *now) {
    const auto same = std::ranges::find(before, process.descriptor.incarnation,
                                        [](const ProcessPicture& one) { return one.descriptor.incarnation; });
    if (same == before.end()) continue;
    process.polls = process.application_looks != same->application_looks;
    for (PollPicture& poll : process.core.polls) {
      poll.goes_on = std::ranges::any_of(same->core.polls, [&poll](const PollPicture& other) {
        return other.seen.kind == poll.seen.kind && other.seen.object == poll.seen.object &&
               other.seen.looks != poll.seen.looks;
      });
    }
    for (WordPicture& word : process.core.words) {
      word.goes_on = std::ranges::any_of(same->core.words, [&word](const WordPicture& other) {
        return other.use.word == word.use.word && other.use.initiator == word.use.initiator &&
               other.use.vain != word.use.vain && other.use.since_ns == word.use.since_ns;
      });
    }
    note_searches(*same, &process);
    std::set<std::uint32_t> ids;
    for (const OperationPicture& operation : same->core.operations) ids.insert(operation.id);
    for (OperationPicture& operation : process.core.operations) operation.lasts = ids.contains(operation.id);
  }
}

std::vector<Finding> find_causes(const std::vector<ProcessPicture>& processes) {
  const JobView job(processes);
  std::vector<Finding> findings;
  find_circles(job, &findings);
  find_silent_peers(job, &findings);
  find_unmatched(job, &findings);
  find_full_queues(job, &findings);
  find_lacking(job, &findings);
  find_tofu(job, &findings);
  find_held_words(job, &findings);
  find_outside(job, &findings);
  return findings;
}

std::vector<Finding> keep_lasting(const std::vector<Finding>& before, const std::vector<Finding>& now) {
  std::set<decltype(key_of(now.front()))> keys;
  for (const Finding& finding : before) keys.insert(key_of(finding));
  std::vector<Finding> both;
  std::ranges::copy_if(now, std::back_inserter(both), [&](const Finding& one) { return keys.contains(key_of(one)); });
  return both;
}

std::string counter_name(Handle handle) { return "counter " + hex_text(handle); }
std::string event_queue_name(Handle handle) {
  return (handle_interface(handle) == kFabricInterface ? "completion queue " : "event queue ") + hex_text(handle);
}
std::string vcq_name(std::uint64_t id) { return "VCQ " + hex_text(id); }
std::string gate_name(std::uint64_t id) { return "barrier gate " + hex_text(id); }

std::string portal_name(const InterfacePicture& ni, std::uint32_t pt_index) {
  if (!ni.is_fabric()) return "portal table entry " + std::to_string(pt_index);
  const std::string endpoint = " of endpoint " + std::to_string(pt_index / kPortalsPerEndpoint);
  switch (portal_use(pt_index)) {
    case PortalUse::kTagged: return "fi_trecv" + endpoint;
    case PortalUse::kMessage: return "fi_recv" + endpoint;
    case PortalUse::kMemory: return "memory" + endpoint;
    case PortalUse::kCredit: break;
  }
  return "marks" + endpoint;
}

std::string match_bits_name(const InterfacePicture& ni, std::uint32_t pt_index, std::uint64_t bits) {
  if (!ni.is_matching()) return "";
  if (!ni.is_fabric()) return "bits " + hex_text(bits);
  if (portal_use(pt_index) == PortalUse::kTagged) return "tag " + hex_text(bits);
  return portal_use(pt_index) == PortalUse::kMemory ? "key " + hex_text(bits) : "";
}

std::string ignore_text(const MatchCriteria& criteria) {
  return criteria.ignore_bits != 0 ? ", ignore " + hex_text(criteria.ignore_bits) : "";
}

const char* posted_name(const InterfacePicture& ni, std::uint32_t pt_index) {
  if (!ni.is_fabric()) return "entry";
  return portal_use(pt_index) == PortalUse::kMemory ? "region" : "receive";
}

std::string bits_text(std::uint64_t bits) {
  std::string text;
  int count = 0;
  for (int first = 0; first < 64; ++first) {
    if ((bits >> first & 1) == 0) continue;
    int last = first;
    while (last < 63 && (bits >> (last + 1) & 1) != 0) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
    count += last - first + 1;
    first = last;
  }
  return (count == 1 ? "bit " : "bits ") + text;
}

}  // namespace portofu
