#include "lib/tools/ptl_info/explanation_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace portofu::tools {
namespace {

/// Lines of one list; the others are in the JSON.
constexpr std::size_t kMostLines = 32;

/// Text that grows by lines.
class Lines {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_ += line;
    text_ += '\n';
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Whether two entries are the same but for their memory, as the blocks of a pool are.
bool is_like(const EntryPicture& one, const EntryPicture& other) {
  return one.criteria.match_bits == other.criteria.match_bits &&
         one.criteria.ignore_bits == other.criteria.ignore_bits && one.criteria.match_id == other.criteria.match_id &&
         one.criteria.any_nid == other.criteria.any_nid && one.criteria.any_pid == other.criteria.any_pid &&
         one.length == other.length && one.options == other.options && one.ct_handle == other.ct_handle;
}

/// Shows the beginning of a list, and how much of it is not shown.
template <class Item, class Show>
void show_list(Lines& lines, const char* indent, const Listed<Item>& list, Show show) {
  std::size_t shown = 0;
  for (const Item& item : list.items) {
    if (shown++ == kMostLines) break;
    show(item);
  }
  if (list.moving) lines.add("%s(this list changes while it is read)", indent);
  if (list.size > kMostLines) lines.add("%s... %zu in all", indent, list.size);
}

std::string source_text(const InterfacePicture& ni, const MatchCriteria& criteria) {
  if (criteria.any_nid && criteria.any_pid) return "anybody";
  if (ni.is_logical()) return "rank " + std::to_string(criteria.match_id.nid);
  const std::string pid = criteria.any_pid ? "any PID" : "PID " + std::to_string(criteria.match_id.pid);
  return criteria.any_nid ? pid : pid + " of " + node_id_text(criteria.match_id.nid);
}

std::string source_text(const InterfacePicture& ni, ProcessId source) {
  return source_text(ni, MatchCriteria{.match_id = source});
}

std::string options_text(std::uint32_t options) {
  std::string text;
  if ((options & kEntryOpPut) != 0) text += ", put";
  if ((options & kEntryOpGet) != 0) text += ", get";
  if ((options & kEntryUseOnce) != 0) text += ", used once";
  if ((options & kEntryManageLocal) != 0) text += ", locally managed offset";
  if ((options & kEntryNoTruncate) != 0) text += ", no truncation";
  return text;
}

/// Where entries of a list are.
struct ListPlace {
  const InterfacePicture& ni;
  std::uint32_t pt_index;
  const char* list;  ///< "posted"
};

void show_entry(Lines& lines, const ListPlace& place, const EntryPicture& entry) {
  const InterfacePicture& ni = place.ni;
  std::string bits = match_bits_name(ni, place.pt_index, entry.criteria.match_bits);
  if (!bits.empty()) bits = " " + bits + ", ignore " + hex_text(entry.criteria.ignore_bits) + ",";
  const std::string counter = entry.ct_handle != 0 ? ", counter " + hex_text(entry.ct_handle) : "";
  lines.add("        %s:%s of %s, %llu bytes at %s%s%s", place.list, bits.c_str(),
            source_text(ni, entry.criteria).c_str(), static_cast<unsigned long long>(entry.length),
            hex_text(entry.start).c_str(), options_text(entry.options).c_str(), counter.c_str());
}

/// Entries that follow one like them are only counted.
void show_entries(Lines& lines, const ListPlace& place, const Listed<EntryPicture>& entries) {
  Listed<EntryPicture> different = entries;
  std::vector<std::size_t> more;
  different.items.clear();
  for (const EntryPicture& entry : entries.items) {
    if (!different.items.empty() && is_like(different.items.back(), entry)) {
      ++more.back();
      continue;
    }
    different.items.push_back(entry);
    more.push_back(0);
  }
  if (entries.items.size() == entries.size) different.size = different.items.size();
  std::size_t shown = 0;
  show_list(lines, "        ", different, [&](const EntryPicture& entry) {
    show_entry(lines, place, entry);
    if (more[shown] != 0) lines.add("          and %zu more like it", more[shown]);
    ++shown;
  });
}

void show_portal(Lines& lines, const InterfacePicture& ni, const PortalPicture& portal) {
  lines.add("      %s: %s%s, %zu posted, %zu overflow, %zu unexpected", portal_name(ni, portal.pt_index).c_str(),
            portal.enabled ? "enabled" : "DISABLED", portal.flow_control ? ", flow control" : "", portal.priority.size,
            portal.overflow.size, portal.unexpected.size);
  show_entries(lines, {ni, portal.pt_index, "posted"}, portal.priority);
  show_entries(lines, {ni, portal.pt_index, "overflow"}, portal.overflow);
  show_list(lines, "        ", portal.unexpected, [&](const HeaderPicture& header) {
    const std::string bits = match_bits_name(ni, portal.pt_index, header.key.match_bits);
    lines.add("        unexpected:%s of %s, %llu bytes%s", bits.empty() ? "" : (" " + bits).c_str(),
              source_text(ni, header.key.source).c_str(), static_cast<unsigned long long>(header.rlength),
              header.complete ? "" : ", still arriving");
  });
}

void show_interface(Lines& lines, const InterfacePicture& ni) {
  if (ni.is_fabric()) {
    lines.add("    endpoints of libfabric");
  } else {
    lines.add("    interface %u: %s, %s", ni.index, ni.is_matching() ? "matching" : "non-matching",
              ni.is_logical() ? "logical" : "physical");
  }
  for (const PortalPicture& portal : ni.portals) show_portal(lines, ni, portal);
  for (const CounterPicture& counter : ni.counters) {
    lines.add("      counter %s: %llu successes, %llu failures, %zu operations wait", hex_text(counter.handle).c_str(),
              static_cast<unsigned long long>(counter.success), static_cast<unsigned long long>(counter.failure),
              counter.waiting.size);
    show_list(lines, "        ", counter.waiting, [&](const TriggerPicture& trigger) {
      lines.add(
          "        from %llu on: %s", static_cast<unsigned long long>(trigger.threshold),
          trigger.ct_handle != 0 ? ("counter " + hex_text(trigger.ct_handle)).c_str() : packet_type_name(trigger.type));
    });
  }
  for (const QueuePicture& queue : ni.queues) {
    lines.add("      %s: %llu of %llu %s wait%s", event_queue_name(queue.handle).c_str(),
              static_cast<unsigned long long>(queue.size), static_cast<unsigned long long>(queue.capacity),
              ni.is_fabric() ? "completions" : "events", queue.lost ? ", some were LOST" : "");
  }
}

void show_sleep(Lines& lines, const SleepPicture& sleep) {
  std::string objects;
  for (const auto& [handle, test] : sleep.subject.objects()) {
    const bool is_queue = sleep.subject.kind == WaitKind::kEventQueue && objects.empty();
    objects += (objects.empty() ? "" : " or ") + (is_queue ? event_queue_name(handle) : hex_text(handle));
    if (sleep.subject.kind == WaitKind::kCounters) objects += " to reach " + std::to_string(test);
  }
  const char* const what = sleep.subject.kind == WaitKind::kCounters     ? "for counter "
                           : sleep.subject.kind == WaitKind::kEventQueue ? "at "
                                                                         : "in the library";
  lines.add("    thread %d waits %s%s", sleep.thread, what, objects.c_str());
}

/// A call that waits looks now and then, too, and is shown as one that waits.
bool looks_beside_waits(const ProcessPicture& process) {
  const auto is_waited_for = [&process](std::uint64_t object) {
    return std::ranges::any_of(process.core.sleeps, [object](const SleepPicture& sleep) {
      return std::ranges::find(sleep.subject.objects(), object, &WaitObject::handle) != sleep.subject.objects().end();
    });
  };
  const auto is_beside = [&](const PollPicture& poll) { return poll.goes_on && !is_waited_for(poll.seen.object); };
  return process.polls && (process.core.sleeps.empty() || std::ranges::any_of(process.core.polls, is_beside));
}

void show_tofu(Lines& lines, const CorePicture& core) {
  for (const VcqPicture& vcq : core.vcqs) {
    lines.add("    VCQ %s: TCQ %llu of %llu, MRQ %llu of %llu unread%s", hex_text(vcq.id).c_str(),
              static_cast<unsigned long long>(vcq.tcq_unread), static_cast<unsigned long long>(vcq.tcq_entries),
              static_cast<unsigned long long>(vcq.mrq_unread), static_cast<unsigned long long>(vcq.mrq_entries),
              vcq.delayed != 0 ? ", descriptors wait for a start (DELAY_START)" : "");
    if (vcq.session)
      lines.add("      session: %llu steps, %zu descriptors wait", static_cast<unsigned long long>(vcq.steps),
                vcq.waiting.size);
  }
  for (const GatePicture& gate : core.gates) {
    lines.add("    barrier gate %s: %llu rounds passed%s%s%s", hex_text(gate.id).c_str(),
              static_cast<unsigned long long>(gate.rounds_passed), gate.started ? ", a barrier runs" : "",
              gate.has_signal ? ", has its signal" : "", gate.has_packet ? ", has its packet" : "");
  }
}

void show_process(Lines& lines, const ProcessPicture& process) {
  const SegmentDescriptorShared& owner = process.descriptor;
  const std::string rank = process.rank >= 0 ? "rank " + std::to_string(process.rank) + ", " : "";
  const std::string program = process.program.empty() ? "" : " (" + process.program + ")";  // The dead have no name.
  lines.add("\n  %sPID %u on node %s: process %u%s%s%s", rank.c_str(), owner.pid, node_id_text(owner.nid).c_str(),
            owner.os_pid, program.c_str(), process.run_state == RunState::kStopped ? ", STOPPED" : "",
            sight_text(process.sight));
  for (const ChannelView& channel : process.waiting) {
    lines.add("    packets of PID %u that it has not taken: %u", SlotWord::unpack(channel.slot_word).claimer.pid,
              channel.waiting_packets);
  }
  for (const SleepPicture& sleep : process.core.sleeps) show_sleep(lines, sleep);
  if (looks_beside_waits(process)) lines.add("    polls: the program looks again and again");
  const bool is_here = process.sight == Sight::kWhole && process.run_state != RunState::kStopped;
  if (is_here && !process.is_waiting())
    lines.add("    in no call of the library: its first thread %s",
              process.run_state == RunState::kRuns ? "computes" : "sleeps elsewhere");
  for (const PeerPicture& peer : process.core.peers) {
    if (peer.outstanding == 0 && peer.waiting_requests == 0 && peer.waiting_answers == 0) continue;
    lines.add("    to PID %u of %s: %u operations not answered, %zu messages and %zu answers wait", peer.id.pid,
              node_id_text(peer.id.nid).c_str(), peer.outstanding, peer.waiting_requests, peer.waiting_answers);
  }
  for (const InterfacePicture& ni : process.core.interfaces) show_interface(lines, ni);
  show_tofu(lines, process.core);
}

/// What is said of a job in which nothing was found.
const char* nothing_found_text(const std::vector<ProcessPicture>& processes) {
  if (std::ranges::any_of(processes, &ProcessPicture::is_waiting))
    return "Nothing was found that would explain a hang.";
  return "Nothing was found that would explain a hang: no process waits in the library. What a program polls in its "
         "own\n"
         "  memory is not seen. With PORTOFU_RECORD=last in the job, ptl_trace --last tells the last calls of all.";
}

}  // namespace

const char* sight_text(Sight sight) {
  switch (sight) {
    case Sight::kWhole: return "";
    case Sight::kDead: return ", DEAD";
    case Sight::kForbidden: return ", whose memory the kernel lets nobody read (kernel.yama.ptrace_scope, containers)";
    case Sight::kOtherBuild: return ", of another build of Portofu than this tool, which cannot read it";
    case Sight::kNothing: return ", which begins or ends just now";
  }
  return "";
}

std::vector<std::string> foreign_segments(const std::string& directory) {
  std::vector<SegmentView> views;
  view_segments(directory, &views);
  std::vector<std::string> names;
  for (const SegmentView& view : views) {
    const bool is_there = access((directory + '/' + view.name).c_str(), F_OK) == 0;  // Else it has ended meanwhile.
    if (view.life == SegmentLife::kUnknown && is_there) names.push_back(view.name);
  }
  return names;
}

std::string foreign_text(const std::vector<std::string>& segments) {
  if (segments.empty()) return "";
  return "segments of another version of Portofu than this tool, which cannot read them: " +
         std::to_string(segments.size()) + ", the first is " + segments.front();
}

std::string process_text(const ProcessPicture& process) {
  Lines lines;
  show_process(lines, process);
  return lines.text();
}

std::string plain_text(const std::vector<Explanation>& jobs, const std::vector<std::string>& foreign) {
  Lines lines;
  for (const Explanation& job : jobs) {
    lines.add("Job %u", job.job_key);
    for (const ProcessPicture& process : job.processes) show_process(lines, process);
    lines.add("\n  %s", job.findings.empty() ? nothing_found_text(job.processes) : "What was found:");
    for (const Finding& finding : job.findings)
      lines.add("  - %s%s", finding.sentence.c_str(), finding.sentence.ends_with('?') ? "" : ".");
    lines.add("%s", "");
  }
  if (jobs.empty()) lines.add("No such process has an interface open");
  if (!foreign.empty()) lines.add("There are %s", foreign_text(foreign).c_str());
  return lines.text();
}

}  // namespace portofu::tools
