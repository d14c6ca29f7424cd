// Messages that found no place, or no target: unexpected headers, refusals, disabled portal table entries, full queues.

#include <algorithm>
#include <bit>

#include "engine/descriptor/portal_use.h"
#include "engine/inspect/job_view.h"
#include "engine/observe/hex_text.h"

namespace portofu {
namespace {

/// Headers of one portal table entry that are told of; further ones have the same cause more often than not.
constexpr std::size_t kMostHeaders = 8;

/// What a message asks for of an entry.
struct Extent {
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  ///< Where the initiator says where it goes.
};

/// The entry that a message came nearest to.
struct Nearest {
  const EntryPicture* entry = nullptr;  ///< nullptr: there is none.
  const PortalPicture* portal = nullptr;
  std::uint64_t differing = 0;  ///< Match bits.
  bool other_source = false;    ///< It wants another initiator.
  bool too_short = false;       ///< It has no room for the whole message, and does not truncate.
  Extent asked{};               ///< By the message.
  bool is_search = false;       ///< `entry` stands for what the program searches for.

  bool matches() const { return entry != nullptr && differing == 0 && !other_source && !too_short; }
  int distance() const {
    if (entry == nullptr) return INT32_MAX;
    return 2 * (std::popcount(differing) + (other_source ? 64 : 0)) + (too_short ? 1 : 0);
  }
};

std::uint64_t room_of(const EntryPicture& entry, const Extent& asked) {
  const std::uint64_t used = (entry.options & kEntryManageLocal) != 0 ? entry.used : asked.offset - entry.origin;
  return entry.length > used ? entry.length - used : 0;
}

Nearest judge_entry(const PortalPicture& portal, const EntryPicture& entry, const MatchKey& key, const Extent& asked) {
  const MatchCriteria& criteria = entry.criteria;
  Nearest judged{&entry, &portal, (key.match_bits ^ criteria.match_bits) & ~criteria.ignore_bits};
  judged.asked = asked;
  judged.other_source = !matches(criteria, {criteria.match_bits, key.source});
  judged.too_short = (entry.options & kEntryNoTruncate) != 0 && asked.bytes > room_of(entry, asked);
  return judged;
}

Nearest nearest_at(const PortalPicture& portal, const MatchKey& key, const Extent& asked) {
  Nearest best;
  for (const EntryPicture& entry : portal.priority.items) {
    const Nearest judged = judge_entry(portal, entry, key, asked);
    if (judged.distance() < best.distance()) best = judged;
  }
  return best;
}

/// Whether a message may have been meant for another place: one of libfabric is no operation on memory.
bool may_be_meant(const InterfacePicture& ni, std::uint32_t pt_index, std::uint32_t other) {
  const auto takes = [](std::uint32_t index) { return portal_use(index) <= PortalUse::kMessage; };
  return !ni.is_fabric() || portal_use(pt_index) == portal_use(other) || (takes(pt_index) && takes(other));
}

/// The nearest entry where the message came to; if there is none that matches, one that matches elsewhere.
Nearest nearest_of(const InterfacePicture& ni, std::uint32_t pt_index, const MatchKey& key, const Extent& asked) {
  Nearest best;
  for (const PortalPicture& portal : ni.portals) {
    if (!may_be_meant(ni, pt_index, portal.pt_index)) continue;
    const Nearest here = nearest_at(portal, key, asked);
    if (portal.pt_index == pt_index ? here.distance() <= best.distance() && !best.matches() : here.matches())
      best = here;
  }
  return best;
}

/// "rank 0 (bits 0x11)".
std::string message_text(const JobView& job, const InterfacePicture& ni, std::uint32_t pt_index, const MatchKey& key) {
  const std::string bits = match_bits_name(ni, pt_index, key.match_bits);
  return job.name(JobView::physical(ni, key.source)) + (bits.empty() ? "" : " (" + bits + ")");
}

/// "matching, physical interface".
std::string kind_text(const InterfacePicture& ni) {
  if (ni.is_fabric()) return "interface of libfabric";
  return std::string(ni.is_matching() ? "matching, " : "non-matching, ") +
         (ni.is_logical() ? "logical interface" : "physical interface");
}

/// Which interface it is, where a process has several.
std::string interface_text(const ProcessPicture& process, const InterfacePicture& ni) {
  if (process.core.interfaces.size() < 2 || ni.is_fabric()) return "";
  return " of the " + kind_text(ni);
}

/// "an entry", "a receive".
std::string a_posted(const InterfacePicture& ni, std::uint32_t pt_index) {
  return std::string(ni.is_fabric() ? "a " : "an ") + posted_name(ni, pt_index);
}

/// " has room for 4 bytes and does not truncate (PTL_ME_NO_TRUNCATE), and the message has 8".
std::string room_text(const InterfacePicture& ni, const Nearest& nearest) {
  const bool is_managed = (nearest.entry->options & kEntryManageLocal) != 0;
  const std::string offset =
      is_managed || nearest.asked.offset == 0 ? "" : " at offset " + std::to_string(nearest.asked.offset);
  return " has room for " + std::to_string(room_of(*nearest.entry, nearest.asked)) + " bytes" + offset +
         (ni.is_fabric() ? ", and the operation has "
                         : " and does not truncate (PTL_ME_NO_TRUNCATE), and the message has ") +
         std::to_string(nearest.asked.bytes);
}

/// "; the nearest entry differs in bit 0 (0x11 instead of 0x10)".
std::string nearest_text(const JobView& job, const InterfacePicture& ni, std::uint32_t pt_index, const Nearest& nearest,
                         std::uint64_t bits) {
  const std::string posted = posted_name(ni, pt_index);
  if (nearest.entry == nullptr) return "; no " + posted + " is posted there";
  if (nearest.portal->pt_index != pt_index)
    return "; " + a_posted(ni, pt_index) + " that it matches is posted at " + portal_name(ni, nearest.portal->pt_index);
  const MatchCriteria& criteria = nearest.entry->criteria;
  const std::string what = nearest.is_search ? "; the search there" : "; the nearest " + posted;
  std::string text;
  if (nearest.differing != 0)
    text += what + " differs in " + bits_text(nearest.differing) + " (" + hex_text(bits) + " instead of " +
            hex_text(criteria.match_bits) + ignore_text(criteria) + ")";
  if (nearest.other_source) {
    text += text.empty() ? what : " and";
    text += " wants a message of " + job.name(JobView::wanted_source(ni, criteria));
  }
  if (nearest.too_short) {
    text += text.empty() ? what : " and";
    text += room_text(ni, nearest);
  }
  return text.empty() ? "; " + a_posted(ni, pt_index) + " that it matches is posted there now" : text;
}

/// What came nearest to a header that waits: what the program searches for, if it searches there, else an entry.
Nearest nearest_to(const InterfacePicture& ni, const PortalPicture& portal, const EntryPicture& search,
                   const HeaderPicture& header) {
  if (!portal.searches) return nearest_of(ni, portal.pt_index, header.key, {header.rlength, header.offset});
  Nearest nearest = judge_entry(portal, search, header.key, {header.rlength, header.offset});
  nearest.is_search = true;
  return nearest;
}

/// Headers of one portal table entry.
class HeaderList {
 public:
  HeaderList(const JobView& job, const ProcessPicture& process, const InterfacePicture& ni, const PortalPicture& portal)
      : job_(job), process_(process), ni_(ni), portal_(portal) {}

  void judge(std::vector<Finding>* findings) const {
    EntryPicture search;
    search.criteria = portal_.missed;
    const HeaderPicture* first_alone = nullptr;
    std::size_t alone = 0;
    std::size_t told = 0;
    for (const HeaderPicture& header : portal_.unexpected.items) {
      const Nearest nearest = nearest_to(ni_, portal_, search, header);
      if (nearest.entry == nullptr) {
        if (alone++ == 0) first_alone = &header;
        continue;
      }
      // One that matches here was posted or came a moment ago.
      if (nearest.matches() && nearest.portal == &portal_) continue;
      if (++told > kMostHeaders) break;
      Finding finding = begin(header);
      finding.wanted = nearest.entry->criteria.match_bits;
      finding.differing = nearest.differing;
      finding.sentence += nearest_text(job_, ni_, portal_.pt_index, nearest, header.key.match_bits);
      findings->push_back(std::move(finding));
    }
    if (alone == 0) return;
    Finding finding = begin(*first_alone);
    finding.lacks = alone;
    finding.sentence += nearest_text(job_, ni_, portal_.pt_index, {}, 0);
    if (alone > 1) finding.sentence += ", and " + std::to_string(alone - 1) + " more wait with it";
    findings->push_back(std::move(finding));
  }

 private:
  Finding begin(const HeaderPicture& header) const {
    Finding finding;
    finding.kind = FindingKind::kHeaderWaits;
    finding.where = process_.id();
    finding.object = portal_name(ni_, portal_.pt_index);
    finding.other = JobView::physical(ni_, header.key.source);
    finding.got = header.key.match_bits;
    finding.progress = header.order;
    finding.sentence = (ni_.is_fabric() ? "a message of " : "a header of ") +
                       message_text(job_, ni_, portal_.pt_index, header.key) + " waits unexpected at " +
                       job_.name(process_.id()) + ", " + finding.object;
    return finding;
  }

  const JobView& job_;
  const ProcessPicture& process_;
  const InterfacePicture& ni_;
  const PortalPicture& portal_;
};

/// A search that finds nothing again and again, where no header waits that could be told of.
void find_search(const JobView& job, const ProcessPicture& process, const InterfacePicture& ni,
                 const PortalPicture& portal, std::vector<Finding>* findings) {
  const auto is_told = [&](const Finding& finding) {
    return finding.kind == FindingKind::kHeaderWaits && finding.where == process.id() &&
           finding.object == portal_name(ni, portal.pt_index);
  };
  if (!portal.searches || std::ranges::any_of(*findings, is_told)) return;
  Finding finding;
  finding.kind = FindingKind::kSearchLacks;
  finding.where = process.id();
  finding.object = portal_name(ni, portal.pt_index);
  finding.other = JobView::wanted_source(ni, portal.missed);
  finding.sentence = job.name(process.id()) + " searches again and again at " + finding.object + " for a header";
  const std::string bits = match_bits_name(ni, portal.pt_index, portal.missed.match_bits);
  if (!bits.empty()) finding.sentence += " with " + bits;
  if (finding.other != ProcessId{}) finding.sentence += " of " + job.name(finding.other);
  finding.sentence += ", where none waits";
  const auto takes_such = [&portal](const EntryPicture& entry) {
    const std::uint64_t ignored = entry.criteria.ignore_bits | portal.missed.ignore_bits;
    return ((entry.criteria.match_bits ^ portal.missed.match_bits) & ~ignored) == 0;
  };
  const auto taker = std::ranges::find_if(portal.priority.items, takes_such);
  if (taker != portal.priority.items.end())
    finding.sentence += "; " + a_posted(ni, portal.pt_index) + " is posted there that takes such messages (bits " +
                        hex_text(taker->criteria.match_bits) + ", ignore " + hex_text(taker->criteria.ignore_bits) +
                        ")";
  findings->push_back(std::move(finding));
}

std::string reason_text(const InterfacePicture& ni, const RefusedMessage& refused) {
  const std::string posted = posted_name(ni, refused.pt_index);
  switch (refused.reason) {
    case RefusedFor::kNoPortal: return ni.is_fabric() ? ", which is not open" : ", which is not allocated";
    case RefusedFor::kDisabled: return ", which was disabled";
    case RefusedFor::kNoMatch: return ", where it matched nothing";
    case RefusedFor::kPermission: return ", whose " + posted + " is for another user ID";
    case RefusedFor::kOperation: return ", whose " + posted + " does not allow the operation";
    case RefusedFor::kNotAligned: return ", where the memory is not aligned for the datatype of the atomic operation";
    case RefusedFor::kNothing: break;
  }
  return "";
}

/// Of libfabric: its program may have ended its wait with it, and does not know the cause before it reads it.
bool has_unread_error(const ProcessPicture& process) {
  return std::ranges::any_of(process.core.interfaces, [](const InterfacePicture& ni) {
    return ni.is_fabric() && std::ranges::any_of(ni.queues, [](const QueuePicture& queue) {
             return queue.size != 0 && queue.oldest_fail != NiFail::kOk;
           });
  });
}

void find_refusal(const JobView& job, const ProcessPicture& process, const InterfacePicture& ni,
                  std::vector<Finding>* findings) {
  const RefusedMessage& refused = ni.last_refused;
  if (refused.reason == RefusedFor::kNothing || refused.reason == RefusedFor::kDisabled) return;
  const MatchKey key{refused.match_bits, {refused.nid, refused.pid}};
  const ProcessId from = JobView::physical(ni, key.source);
  // It may be a third process that wants what should have come of it.
  if (!job.anybody_waits() && std::ranges::none_of(job.processes(), has_unread_error)) return;
  const Nearest nearest = nearest_of(ni, refused.pt_index, key, {refused.length, refused.offset});
  Finding finding{FindingKind::kMessageRefused,
                  process.id(),
                  portal_name(ni, refused.pt_index),
                  from,
                  key.match_bits,
                  0,
                  nearest.differing,
                  0,
                  ""};
  if (nearest.entry != nullptr) finding.wanted = nearest.entry->criteria.match_bits;
  const bool is_of_memory = ni.is_fabric() && portal_use(refused.pt_index) == PortalUse::kMemory;
  finding.sentence = (is_of_memory ? "an operation of " : "a message of ") +
                     message_text(job, ni, refused.pt_index, key) + " was refused " + ago_text(refused.at_ns) + " at " +
                     job.name(process.id()) + ", " + finding.object + interface_text(process, ni) +
                     reason_text(ni, refused);
  const bool is_lost = refused.reason == RefusedFor::kNoPortal || refused.reason == RefusedFor::kNoMatch;
  if (is_lost && (nearest.entry != nullptr || refused.reason == RefusedFor::kNoMatch))
    finding.sentence += nearest_text(job, ni, refused.pt_index, nearest, key.match_bits);
  findings->push_back(std::move(finding));
}

/// A message to an interface that is not open, of another kind perhaps than those that are.
void find_astray(const JobView& job, const ProcessPicture& process, std::vector<Finding>* findings) {
  const RefusedMessage& astray = process.core.last_astray;
  const auto is_wanted = [&](const InterfacePicture& ni) { return ni.index == astray.interface_index; };
  if (astray.reason == RefusedFor::kNothing || !job.anybody_waits()) return;
  if (std::ranges::any_of(process.core.interfaces, is_wanted)) return;  // It has been opened since.
  InterfacePicture wanted;
  wanted.index = astray.interface_index;
  Finding finding;
  finding.kind = FindingKind::kMessageRefused;
  finding.where = process.id();
  finding.object = kind_text(wanted);
  finding.other = {astray.nid, astray.pid};
  finding.sentence = "a message of " + job.name(finding.other) + " to " + portal_name(wanted, astray.pt_index) +
                     " was refused " + ago_text(astray.at_ns) + " at " + job.name(process.id()) + ", which has no " +
                     finding.object + " open";
  for (std::size_t i = 0; i < process.core.interfaces.size(); ++i)
    finding.sentence += (i == 0 ? ", but a " : " and a ") + kind_text(process.core.interfaces[i]);
  findings->push_back(std::move(finding));
}

/// What an interface has sent to a process that is not there. Only an ACK, or a counter, tells its program.
void find_undelivered(const JobView& job, const ProcessPicture& process, const InterfacePicture& ni,
                      std::vector<Finding>* findings) {
  const UndeliveredMessages& undelivered = ni.undelivered;
  if (undelivered.count == 0 || !job.anybody_waits()) return;
  Finding finding;
  finding.kind = FindingKind::kNotDelivered;
  finding.where = process.id();
  finding.object = kind_text(ni);
  finding.other = undelivered.target;
  const std::string target = job.name(undelivered.target);
  finding.sentence = "operations of " + job.name(process.id()) + interface_text(process, ni) +
                     " that did not come to their target: " + std::to_string(undelivered.count) + "; the last, " +
                     ago_text(undelivered.at_ns) + ", was for " + target;
  if (job.is_gone(undelivered.target)) finding.sentence += std::string(", and ") + kIsGone;
  findings->push_back(std::move(finding));
}

const char* cause_text(DisabledBy by) {
  switch (by) {
    case DisabledBy::kProgram: return "by the program";
    case DisabledBy::kNoEntry: return "by flow control, because a message matched nothing";
    case DisabledBy::kNoResources:
      return "by flow control, because there was no room for an event or an unexpected header";
  }
  return "";
}

void find_disabled(const JobView& job, const ProcessPicture& process, const InterfacePicture& ni,
                   std::vector<Finding>* findings) {
  const RefusedMessage& refused = ni.last_refused;
  for (const PortalPicture& portal : ni.portals) {
    const bool refuses = refused.reason == RefusedFor::kDisabled && refused.pt_index == portal.pt_index &&
                         refused.at_ns >= portal.disabled_since_ns;
    if (portal.enabled || (portal.disabled_by == DisabledBy::kProgram && !refuses)) continue;
    Finding finding;
    finding.kind = FindingKind::kEntryDisabled;
    finding.where = process.id();
    finding.object = portal_name(ni, portal.pt_index);
    const std::uint64_t since_ns = portal.disabled_since_ns;
    finding.sentence = finding.object + " of " + job.name(process.id()) +
                       (since_ns != 0 ? " has been disabled " + since_text(since_ns) + " " : " is disabled ") +
                       cause_text(portal.disabled_by) + "; messages are refused until PtlPTEnable";
    if (refuses) {
      finding.other = JobView::physical(ni, {refused.nid, refused.pid});
      finding.sentence += ", the last was one of " + job.name(finding.other);
    }
    findings->push_back(std::move(finding));
  }
}

}  // namespace

void find_unmatched(const JobView& job, std::vector<Finding>* findings) {
  for (const ProcessPicture& process : job.processes()) {
    find_astray(job, process, findings);
    for (const InterfacePicture& ni : process.core.interfaces) {
      for (const PortalPicture& portal : ni.portals) {
        if (!process.is_waiting()) continue;
        HeaderList(job, process, ni, portal).judge(findings);
        find_search(job, process, ni, portal, findings);
      }
      find_refusal(job, process, ni, findings);
      find_undelivered(job, process, ni, findings);
      find_disabled(job, process, ni, findings);
    }
  }
}

namespace {

/// Events that were lost, of which a call has told the program (PTL_EQ_DROPPED).
void find_lost_events(const JobView& job, const ProcessPicture& process, std::vector<Finding>* findings) {
  const auto is_told = [&process](const Finding& finding) {
    return finding.kind == FindingKind::kEventsLost && finding.where == process.id();
  };
  if (process.events_lost == 0 || !process.is_waiting() || std::ranges::any_of(*findings, is_told)) return;
  Finding finding;
  finding.kind = FindingKind::kEventsLost;
  finding.where = process.id();
  finding.object = "event queues";
  finding.lacks = process.events_lost;
  finding.sentence = "event queues of " + job.name(process.id()) +
                     " were full and have lost events: " + std::to_string(process.events_lost) +
                     "; a call has said so (PTL_EQ_DROPPED), and the program waits";
  findings->push_back(std::move(finding));
}

}  // namespace

void find_full_queues(const JobView& job, std::vector<Finding>* findings) {
  for (const ProcessPicture& process : job.processes()) {
    for (const InterfacePicture& ni : process.core.interfaces) {
      for (const QueuePicture& queue : ni.queues) {
        if (!queue.full && !queue.lost) continue;
        Finding finding;
        finding.kind = queue.lost ? FindingKind::kEventsLost : FindingKind::kQueueFull;
        finding.where = process.id();
        finding.object = event_queue_name(queue.handle);
        finding.progress = queue.oldest_place;
        finding.sentence = finding.object + " of " + job.name(process.id()) +
                           (queue.lost ? " has lost events" : " is full") + ": " + std::to_string(queue.size) +
                           " events wait, and it has room for " + std::to_string(queue.capacity);
        findings->push_back(std::move(finding));
      }
    }
    find_lost_events(job, process, findings);
  }
}

}  // namespace portofu
