// Who waits for what, asleep or by looks: counters that lack events, queues without them, answers that nobody owes.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/inspect/explanation.h"
#include "engine/inspect/wait_graph.h"
#include "engine/observe/hex_text.h"
#include "engine/queue/clock.h"

namespace portofu {
namespace {

constexpr const char* kWasAckAskedFor =
    "was an ACK asked for? A message that is dropped gives none, nor does an entry with PTL_ME_ACK_DISABLE";

const CounterPicture* find_counter(const InterfacePicture& ni, Handle handle) {
  const auto found = std::ranges::find(ni.counters, handle, &CounterPicture::handle);
  return found != ni.counters.end() ? &*found : nullptr;
}

/// The one process whose messages all entries want. @return {0, 0} if there are several, or it may be anybody
ProcessId only_source(const InterfacePicture& ni, const Feeders& feeders) {
  if (feeders.entries.empty()) return {};
  const ProcessId first = JobView::wanted_source(ni, feeders.entries.front()->criteria);
  const auto is_first = [&](const EntryPicture* entry) { return JobView::wanted_source(ni, entry->criteria) == first; };
  return std::ranges::all_of(feeders.entries, is_first) ? first : ProcessId{};
}

/// A process but the one that waits where such a message as it waits for lies unexpected. @return {0, 0}: none
ProcessId taken_astray(const JobView& job, const InterfacePicture& ni, std::uint32_t pt_index,
                       const EntryPicture& entry) {
  const ProcessId source = JobView::wanted_source(ni, entry.criteria);
  if (source == ProcessId{} || !ni.is_matching()) return {};
  for (const ProcessPicture& process : job.processes()) {
    for (const InterfacePicture& other : process.core.interfaces) {
      const auto is_like = [&](const HeaderPicture& header) {
        const std::uint64_t differing = header.key.match_bits ^ entry.criteria.match_bits;
        return (differing & ~entry.criteria.ignore_bits) == 0 && JobView::physical(other, header.key.source) == source;
      };
      for (const PortalPicture& portal : other.portals) {
        const bool is_there = &other != &ni && other.index == ni.index && portal.pt_index == pt_index;
        if (is_there && std::ranges::any_of(portal.unexpected.items, is_like)) return process.id();
      }
    }
  }
  return {};
}

/// Whether an entry of libfabric is memory that peers reach, and no receive.
bool is_memory(const InterfacePicture& ni, const EntryPicture& entry) {
  return ni.is_fabric() && (entry.options & kEntryTakesData) == 0;
}

/// " with bits 0x10, ignore 0xf"; empty: bits say nothing there.
std::string with_bits_text(const InterfacePicture& ni, std::uint32_t pt_index, const MatchCriteria& criteria) {
  const std::string bits = match_bits_name(ni, pt_index, criteria.match_bits);
  return bits.empty() ? "" : " with " + bits + ignore_text(criteria);
}

/// " messages at portal table entry 4 with bits 0x10 of rank 2"
std::string entries_text(const JobView& job, const InterfacePicture& ni, const Feeders& feeders) {
  if (feeders.entries.empty()) return "";
  const EntryPicture& entry = *feeders.entries.front();
  if (is_memory(ni, entry)) return " operations on memory of key " + hex_text(entry.criteria.match_bits);
  const std::uint32_t pt_index = feeders.portals.front()->pt_index;
  std::string text = is_only_read(entry) ? " gets" : " messages";
  text += " at " + portal_name(ni, pt_index) + with_bits_text(ni, pt_index, entry.criteria);
  const ProcessId source = JobView::wanted_source(ni, entry.criteria);
  if (source != ProcessId{}) text += " of " + job.name(source);
  if (feeders.entries.size() == 2)
    text += std::string(", and of one ") + (ni.is_fabric() ? "receive" : "entry") + " more";
  if (feeders.entries.size() > 2)
    text += ", and of " + std::to_string(feeders.entries.size() - 1) + (ni.is_fabric() ? " receives" : " entries") +
            " more";
  if (source != ProcessId{} && job.is_gone(source)) text += std::string("; ") + kIsGone;
  const ProcessId astray = taken_astray(job, ni, pt_index, entry);
  if (astray != ProcessId{}) text += "; one with such bits of it waits unexpected at " + job.name(astray);
  return text;
}

/// " bytes of messages at ...", if that is what the entries count.
std::string counted_text(const JobView& job, const InterfacePicture& ni, const Feeders& feeders) {
  const EntryPicture& entry = *feeders.entries.front();
  if ((entry.options & kEntryEventCtBytes) == 0) return entries_text(job, ni, feeders);
  std::string text = " bytes of" + entries_text(job, ni, feeders);
  if ((entry.options & kEntryNoTruncate) == 0)
    text += "; the entry has room for " + std::to_string(entry.length) + " bytes, and cuts longer messages";
  return text;
}

/// "the entry at portal table entry 4 with bits 0x10"
std::string mute_text(const InterfacePicture& ni, const Feeders& feeders) {
  const std::uint32_t pt_index = feeders.mute_portal->pt_index;
  return "the entry at " + portal_name(ni, pt_index) + with_bits_text(ni, pt_index, feeders.mute_entry->criteria);
}

/// Counters of which each would be raised by what waits for the next one.
struct TriggerChain {
  std::vector<const CounterPicture*> counters;  ///< Behind the one that is waited for, which is not here.
  bool is_closed = false;                       ///< The last would be raised by what waits for one before it.
};

/// @param last  what waits for it would raise the counter that is waited for
TriggerChain chain_from(const ProcessPicture& process, const InterfacePicture& ni, Handle waited,
                        const CounterPicture* last) {
  TriggerChain chain;
  while (last != nullptr) {
    const bool is_known = std::ranges::find(chain.counters, last) != chain.counters.end();
    chain.is_closed = is_known || last->handle == waited;
    if (chain.is_closed) break;
    chain.counters.push_back(last);
    const Feeders feeders = feeders_of(process, ni, WaitKind::kCounters, last->handle);
    const bool comes_from_outside = !feeders.entries.empty() || feeders.overflow || feeders.answers_due;
    last = comes_from_outside || feeders.triggered_by.empty() ? nullptr : feeders.triggered_by.front();
  }
  return chain;
}

/// An operation that would tell of itself waits for another counter, and so on.
std::string trigger_text(const TriggerChain& chain, Handle waited) {
  if (chain.counters.empty()) return "; only an operation would raise it that waits for itself";
  std::string text = "; an operation would raise it that waits for ";
  for (const CounterPicture* const other : chain.counters) {
    text += (other != chain.counters.front() ? ", and that one that waits for " : "") + counter_name(other->handle) +
            ", which has " + std::to_string(other->success) + " of " +
            std::to_string(other->waiting.items.front().threshold);
  }
  if (chain.is_closed) text += ", and that one that waits for " + counter_name(waited) + ": a circle of counters";
  return text;
}

/// " has been waiting for 12 s", of a call that sleeps. A call that lasts is there at both looks: one that has begun
/// between them is one of a loop of short waits, which has lasted longer than this one.
std::string slept_text(const SleepPicture& sleep) {
  if (monotonic_ns() - sleep.since_ns < kBetweenLooksNs) return " waits again and again";
  return " has been waiting " + since_text(sleep.since_ns);
}

/// A counter that has not what a thread wants of it.
class CounterWait {
 public:
  CounterWait(const JobView& job, const ProcessPicture& process, const InterfacePicture& ni,
              const CounterPicture& counter)
      : job_(job),
        process_(process),
        ni_(ni),
        counter_(counter),
        feeders_(feeders_of(process, ni, WaitKind::kCounters, counter.handle)),
        chain_(chain_from(process, ni, counter.handle,
                          feeders_.triggered_by.empty() ? nullptr : feeders_.triggered_by.front())) {}

  /// Of a thread that sleeps until the counter has its test.
  void judge(const SleepPicture& sleep, std::uint64_t test, std::vector<Finding>* findings) const {
    if (counter_.success >= test) return;
    Finding finding = begin();
    finding.lacks = test - counter_.success;
    finding.sentence += slept_text(sleep) + " until " + finding.object + " reaches " + std::to_string(test) +
                        "; it has " + std::to_string(counter_.success) + " and lacks " + std::to_string(finding.lacks) +
                        cause_text();
    findings->push_back(std::move(finding));
  }

  /// Of a loop of looks, which have told it the value. Failures are told of all counters.
  void judge_loop(std::vector<Finding>* findings) const {
    if (counter_.failure != 0) return;
    Finding finding = begin();
    finding.sentence += " looks again and again at " + finding.object + ", which has " +
                        std::to_string(counter_.success) + cause_text();
    findings->push_back(std::move(finding));
  }

 private:
  Finding begin() const {
    Finding finding;
    finding.kind = kind();
    finding.where = process_.id();
    finding.object = counter_name(counter_.handle);
    finding.other = only_source(ni_, feeders_);
    finding.progress = counter_.progress();
    finding.sentence = job_.name(process_.id());
    return finding;
  }

  FindingKind kind() const {
    const bool is_triggered = !feeders_.triggered_by.empty() && !chain_.is_closed;
    if (!feeders_.entries.empty() || is_triggered || feeders_.overflow || feeders_.answers_due)
      return FindingKind::kCounterLacks;
    const bool nothing = feeders_.descriptors.empty() || feeders_.mute_entry != nullptr;
    return nothing ? FindingKind::kNothingCounts : FindingKind::kNoAnswerDue;
  }

  std::string cause_text() const {
    if (!feeders_.entries.empty()) return "; it counts" + counted_text(job_, ni_, feeders_);
    if (!feeders_.triggered_by.empty()) return trigger_text(chain_, counter_.handle);
    if (feeders_.overflow) return "; it counts messages of an overflow list";
    if (feeders_.mute_entry != nullptr && !feeders_.answers_due)
      return "; " + mute_text(ni_, feeders_) +
             " names it, but without PTL_ME_EVENT_CT_COMM: messages there do not count";
    if (feeders_.descriptors.empty() && feeders_.mute_descriptor != nullptr)
      return "; memory descriptor " + hex_text(feeders_.mute_descriptor->handle) +
             " names it, but with none of PTL_MD_EVENT_CT_SEND, _ACK and _REPLY: its operations do not count";
    if (ni_.is_fabric()) return "; no receive, region, operation or deferred work raises it now";
    if (feeders_.descriptors.empty()) return "; no entry, memory descriptor or triggered operation raises it now";
    const std::string md = "memory descriptor " + hex_text(feeders_.descriptors.front()->handle);
    if (feeders_.answers_due) return "; it counts for operations of " + md + ", some of which are not answered";
    const bool hears_acks = (feeders_.descriptors.front()->options & kMdEventCtAck) != 0;
    return "; it counts for operations of " + md +
           (hears_acks ? std::string(", and none of them waits for an answer: ") + kWasAckAskedFor
                       : ", and none of them is under way");
  }

  const JobView& job_;
  const ProcessPicture& process_;
  const InterfacePicture& ni_;
  const CounterPicture& counter_;
  const Feeders feeders_;
  const TriggerChain chain_;
};

/// A thread that waits until one of several event queues has an event.
class QueueWait {
 public:
  /// @param several  the thread may wait at several
  QueueWait(const JobView& job, const ProcessPicture& process, bool several)
      : job_(job), process_(process), several_(several) {}

  void add(Handle handle) {
    const InterfacePicture* const ni = interface_of(process_, handle);
    if (ni == nullptr) return;
    const Feeders feeders = feeders_of(process_, *ni, WaitKind::kEventQueue, handle);
    answers_due_ = answers_due_ || feeders.answers_due;
    object_ += object_.empty() ? event_queue_name(handle) : ", " + hex_text(handle);
    ++count_;
    Cause cause = cause_of(*ni, feeders);
    cause.queue = handle;
    cause.progress = progress_of(*ni, WaitKind::kEventQueue, handle);
    progress_ += cause.progress;
    if (cause.weight > best_.weight) best_ = std::move(cause);
  }

  /// @param how  " has been waiting for 12 s", say
  void judge(const std::string& how, std::vector<Finding>* findings) const {
    if (object_.empty() || answers_due_) return;
    const auto says_more = [this](const Finding& finding) {
      // A library behind the program looks at all of its queues, whatever it waits for.
      const bool counts = finding.kind == FindingKind::kEventsUnread || (count_ > 1 && best_.weight < kUsedOnce);
      return finding.where == process_.id() && counts;
    };
    if (best_.weight < kUsedOnce && std::ranges::any_of(*findings, says_more)) return;
    Finding finding;
    finding.kind = best_.kind;
    finding.where = process_.id();
    const bool is_one = count_ > 1 && best_.weight == kUsedOnce;
    finding.object = is_one ? event_queue_name(best_.queue) : object_;
    finding.progress = is_one ? best_.progress : progress_;
    finding.other = best_.source;
    finding.sentence = job_.name(process_.id()) + how + " for an event of " + finding.object + "; " + best_.text;
    findings->push_back(std::move(finding));
  }

 private:
  static constexpr int kUsedOnce = 6;

  struct Cause {
    int weight = -1;  ///< Of several queues the cause is told that says most.
    FindingKind kind = FindingKind::kNoAnswerDue;
    std::string text;
    ProcessId source;
    Handle queue = 0;
    std::uint64_t progress = 0;
  };

  /// Of libfabric, where no receive is posted.
  static Cause cause_without_receive(const InterfacePicture& ni, const Feeders& feeders) {
    const auto waits = [](const CounterPicture& counter) { return !counter.waiting.items.empty(); };
    const auto deferred = std::ranges::find_if(ni.counters, waits);
    if (deferred != ni.counters.end())
      return {
          0,
          FindingKind::kEventLacks,
          "no receive is posted, and deferred work that may complete there waits for " + counter_name(deferred->handle),
          {}};
    std::string text = std::string("no receive is posted, and no operation is under way, that completes there") +
                       "; was FI_COMPLETION asked for, if its endpoint has FI_SELECTIVE_COMPLETION?";
    if (feeders.entries.empty()) return {0, FindingKind::kNoAnswerDue, std::move(text), {}};
    text += " A write of another process would with FI_REMOTE_CQ_DATA, to memory of key " +
            hex_text(feeders.entries.front()->criteria.match_bits);
    return {0, FindingKind::kEventLacks, std::move(text), {}};
  }

  Cause cause_of(const InterfacePicture& ni, const Feeders& feeders) const {
    if (ni.is_fabric() && (feeders.entries.empty() || is_memory(ni, *feeders.entries.front())))
      return cause_without_receive(ni, feeders);
    if (!feeders.entries.empty()) {
      Feeders used_once = feeders;
      if (several_) used_once.keep_used_once();
      return {used_once.has_used_once() ? kUsedOnce : kUsedOnce - 1, FindingKind::kEventLacks,
              "it logs" + entries_text(job_, ni, used_once), only_source(ni, used_once)};
    }
    if (feeders.overflow) return {2, FindingKind::kEventLacks, "it logs messages of an overflow list", {}};
    if (feeders.mute_entry != nullptr)
      return {4,
              FindingKind::kNothingCounts,
              mute_text(ni, feeders) +
                  " makes no event of a message that succeeds: PTL_ME_EVENT_COMM_DISABLE or "
                  "PTL_ME_EVENT_SUCCESS_DISABLE",
              {}};
    const auto is_mute = [](const DescriptorPicture* md) { return (md->options & kMdEventSuccessDisable) != 0; };
    if (!feeders.descriptors.empty() && std::ranges::all_of(feeders.descriptors, is_mute))
      return {3,
              FindingKind::kNothingCounts,
              "memory descriptor " + hex_text(feeders.descriptors.front()->handle) +
                  " makes no event of an operation that succeeds: PTL_MD_EVENT_SUCCESS_DISABLE",
              {}};
    const std::string ack = std::string("no operation waits for an answer: ") + kWasAckAskedFor +
                            "; PTL_CT_ACK_REQ and PTL_OC_ACK_REQ make no event";
    if (feeders.bare_portal == nullptr)
      return {0, FindingKind::kNoAnswerDue, "no portal table entry logs there, and " + ack, {}};
    return {1,
            FindingKind::kNoAnswerDue,
            "portal table entry " + std::to_string(feeders.bare_portal->pt_index) +
                " logs there, where no entry is posted" + (feeders.descriptors.empty() ? "" : ", and " + ack),
            {}};
  }

  const JobView& job_;
  const ProcessPicture& process_;
  const bool several_;
  std::string object_;
  int count_ = 0;
  std::uint64_t progress_ = 0;  ///< Of all queues.
  bool answers_due_ = false;
  Cause best_;
};

void find_lacking_asleep(const JobView& job, const ProcessPicture& process, const SleepPicture& sleep,
                         std::vector<Finding>* findings) {
  QueueWait queues(job, process, sleep.subject.objects().size() > 1);
  for (const auto& [handle, test] : sleep.subject.objects()) {
    if (sleep.subject.kind == WaitKind::kEventQueue) queues.add(handle);
    if (sleep.subject.kind != WaitKind::kCounters) continue;
    const InterfacePicture* const ni = interface_of(process, handle);
    const CounterPicture* const counter = ni != nullptr ? find_counter(*ni, handle) : nullptr;
    if (counter != nullptr) CounterWait(job, process, *ni, *counter).judge(sleep, test, findings);
  }
  queues.judge(slept_text(sleep), findings);
}

bool is_slept_at(const ProcessPicture& process, std::uint64_t object) {
  return std::ranges::any_of(process.core.sleeps, [object](const SleepPicture& sleep) {
    return std::ranges::find(sleep.subject.objects(), object, &WaitObject::handle) != sleep.subject.objects().end();
  });
}

/// What a program looks at again and again. A loop that looks at several queues waits for any of them.
void find_lacking_in_loops(const JobView& job, const ProcessPicture& process, std::vector<Finding>* findings) {
  const auto is_queue = [](const PollPicture& poll) { return poll.goes_on && poll.seen.kind == WaitKind::kEventQueue; };
  QueueWait queues(job, process, std::ranges::count_if(process.core.polls, is_queue) > 1);
  for (const PollPicture& poll : process.core.polls) {
    const auto handle = static_cast<Handle>(poll.seen.object);
    if (!poll.goes_on || is_slept_at(process, handle)) continue;
    if (poll.seen.kind == WaitKind::kEventQueue) queues.add(handle);
    if (poll.seen.kind != WaitKind::kCounters) continue;
    const InterfacePicture* const ni = interface_of(process, handle);
    const CounterPicture* const counter = ni != nullptr ? find_counter(*ni, handle) : nullptr;
    if (counter != nullptr) CounterWait(job, process, *ni, *counter).judge_loop(findings);
  }
  queues.judge(" looks again and again", findings);
}

/// Operations that wait for a counter that has begun to count, or that others wait for.
void find_lacking_triggers(const JobView& job, const WaitGraph& graph, const ProcessPicture& process,
                           std::vector<Finding>* findings) {
  for (const InterfacePicture& ni : process.core.interfaces) {
    const auto is_awaited = [&](const TriggerPicture& trigger) {
      const std::size_t* const target = graph.place_of(JobView::physical(ni, trigger.target));
      return trigger.md_handle != 0 && target != nullptr && graph.awaits(*target, ni, trigger);
    };
    for (const CounterPicture& counter : ni.counters) {
      if (counter.waiting.items.empty()) continue;
      if (counter.success == 0 && std::ranges::none_of(counter.waiting.items, is_awaited)) continue;
      const std::uint64_t threshold = counter.waiting.items.front().threshold;
      if (threshold <= counter.success) continue;
      const Feeders feeders = feeders_of(process, ni, WaitKind::kCounters, counter.handle);
      Finding finding;
      finding.kind = FindingKind::kCounterLacks;
      finding.where = process.id();
      finding.object = counter_name(counter.handle);
      finding.other = only_source(ni, feeders);
      finding.progress = counter.progress();
      finding.lacks = threshold - counter.success;
      finding.sentence = (ni.is_fabric() ? "deferred work of " : "triggered operations of ") + job.name(process.id()) +
                         (ni.is_fabric() ? " that waits for " : " that wait for ") + finding.object + ": " +
                         std::to_string(counter.waiting.size) + "; the next needs " + std::to_string(threshold) +
                         ", it has " + std::to_string(counter.success) + " and lacks " + std::to_string(finding.lacks);
      if (!feeders.entries.empty()) finding.sentence += "; it counts" + counted_text(job, ni, feeders);
      findings->push_back(std::move(finding));
    }
  }
}

/// Failures raise no counter to its threshold (3.15), and a program that only compares successes does not see them.
void find_failed_counters(const JobView& job, const ProcessPicture& process, std::vector<Finding>* findings) {
  if (!job.anybody_waits()) return;
  for (const InterfacePicture& ni : process.core.interfaces) {
    for (const CounterPicture& counter : ni.counters) {
      if (counter.failure == 0) continue;
      Finding finding;
      finding.kind = FindingKind::kCounterFailed;
      finding.where = process.id();
      finding.object = counter_name(counter.handle);
      finding.lacks = counter.failure;
      finding.sentence = finding.object + " of " + job.name(process.id()) +
                         " has counted failures: " + std::to_string(counter.failure) +
                         ", and successes: " + std::to_string(counter.success);
      if (!counter.waiting.items.empty())
        finding.sentence += "; triggered operations wait for it, and failures do not start them";
      findings->push_back(std::move(finding));
    }
  }
}

const char* event_text(EventKind type) {
  switch (type) {
    case EventKind::kGet: return "PTL_EVENT_GET";
    case EventKind::kGetOverflow: return "PTL_EVENT_GET_OVERFLOW";
    case EventKind::kPut: return "PTL_EVENT_PUT";
    case EventKind::kPutOverflow: return "PTL_EVENT_PUT_OVERFLOW";
    case EventKind::kAtomic: return "PTL_EVENT_ATOMIC";
    case EventKind::kAtomicOverflow: return "PTL_EVENT_ATOMIC_OVERFLOW";
    case EventKind::kFetchAtomic: return "PTL_EVENT_FETCH_ATOMIC";
    case EventKind::kFetchAtomicOverflow: return "PTL_EVENT_FETCH_ATOMIC_OVERFLOW";
    case EventKind::kReply: return "PTL_EVENT_REPLY";
    case EventKind::kSend: return "PTL_EVENT_SEND";
    case EventKind::kAck: return "PTL_EVENT_ACK";
    case EventKind::kPtDisabled: return "PTL_EVENT_PT_DISABLED";
    case EventKind::kLink: return "PTL_EVENT_LINK";
    case EventKind::kAutoUnlink: return "PTL_EVENT_AUTO_UNLINK";
    case EventKind::kAutoFree: return "PTL_EVENT_AUTO_FREE";
    case EventKind::kSearch: return "PTL_EVENT_SEARCH";
    case EventKind::kError: break;
  }
  return "PTL_EVENT_ERROR";
}

/// What a program reads, or looks at in vain, is not left alone.
bool is_looked_at(const ProcessPicture& process, Handle queue) {
  return is_slept_at(process, queue) || std::ranges::any_of(process.core.polls, [queue](const PollPicture& poll) {
           return poll.goes_on && poll.seen.object == queue;
         });
}

/// The program waits, and does not read what has come.
void find_unread(const JobView& job, const ProcessPicture& process, std::vector<Finding>* findings) {
  for (const InterfacePicture& ni : process.core.interfaces) {
    for (const QueuePicture& queue : ni.queues) {
      const bool is_fabric = ni.is_fabric();
      const bool is_error = is_fabric && queue.oldest_fail != NiFail::kOk;
      if (queue.size == 0 || is_looked_at(process, queue.handle)) continue;
      if (!is_error && !process.is_waiting()) continue;
      Finding finding;
      finding.kind = FindingKind::kEventsUnread;
      finding.where = process.id();
      finding.object = event_queue_name(queue.handle);
      finding.lacks = queue.size;
      finding.progress = queue.oldest_place;
      finding.sentence = job.name(process.id());
      if (is_error) {
        finding.sentence += " does not read an error that waits in " + finding.object + " (fi_cq_readerr)";
        findings->push_back(std::move(finding));
        continue;
      }
      finding.sentence += " waits, and does not read " + finding.object + ", where " +
                          (is_fabric ? "completions" : "events") + " wait: " + std::to_string(queue.size);
      if (!is_fabric) finding.sentence += std::string("; the oldest is ") + event_text(queue.oldest_type);
      if (!is_fabric && queue.oldest_type <= EventKind::kFetchAtomicOverflow) {
        finding.other = JobView::physical(ni, queue.oldest_from);
        finding.sentence +=
            " of " + job.name(finding.other) + (ni.is_matching() ? " (bits " + hex_text(queue.oldest_bits) + ")" : "");
      }
      findings->push_back(std::move(finding));
    }
  }
}

}  // namespace

void find_lacking(const JobView& job, std::vector<Finding>* findings) {
  const WaitGraph graph(job);
  for (const ProcessPicture& process : job.processes()) {
    find_unread(job, process, findings);
    find_failed_counters(job, process, findings);
    for (const SleepPicture& sleep : process.core.sleeps) find_lacking_asleep(job, process, sleep, findings);
    find_lacking_triggers(job, graph, process, findings);
    find_lacking_in_loops(job, process, findings);
  }
}

}  // namespace portofu
