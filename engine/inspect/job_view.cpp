#include "engine/inspect/job_view.h"

#include <algorithm>

#include "engine/queue/clock.h"
#include "engine/topology/node_id.h"

namespace portofu {
namespace {

bool names(const EntryPicture& entry, Handle counter) { return counter != 0 && entry.ct_handle == counter; }

/// Whether messages that an entry takes count.
bool counts(const EntryPicture& entry) { return (entry.options & (kEntryEventCtComm | kEntryEventCtOverflow)) != 0; }

/// Whether messages that an entry takes are told by events.
bool logs(const EntryPicture& entry) {
  return (entry.options & (kEntryEventCommDisable | kEntryEventSuccessDisable)) == 0;
}

/// Whether something of an operation counts at the counter of its memory descriptor.
bool counts(const DescriptorPicture& md) {
  return (md.options & (kMdEventCtSend | kMdEventCtReply | kMdEventCtAck)) != 0;
}

/// Whether an operation under way may still tell of itself by one of the descriptors.
bool is_answer_due(const ProcessPicture& process, const std::vector<const DescriptorPicture*>& descriptors) {
  const auto is_of = [&](Handle handle) {
    return std::ranges::any_of(descriptors, [handle](const auto* md) { return md->handle == handle; });
  };
  const bool waits_to_go =
      std::ranges::any_of(process.core.peers, [](const PeerPicture& peer) { return peer.waiting_requests != 0; });
  if (waits_to_go || std::ranges::any_of(descriptors, [](const auto* md) { return md->pending != 0; })) return true;
  return std::ranges::any_of(process.core.operations, [&](const OperationPicture& operation) {
    if (operation.interface_index == kTofuInterface) return false;
    return is_of(operation.reply_md_handle) || (operation.ack_req != AckRequest::kNone && is_of(operation.md_handle));
  });
}

std::string seconds_since(std::uint64_t since_ns) {
  const std::uint64_t now = monotonic_ns();
  return std::to_string((now > since_ns ? now - since_ns : 0) / 1'000'000'000);
}

}  // namespace

std::string since_text(std::uint64_t since_ns) { return "for " + seconds_since(since_ns) + " s"; }
std::string ago_text(std::uint64_t at_ns) { return seconds_since(at_ns) + " s ago"; }

JobView::JobView(const std::vector<ProcessPicture>& processes) : processes_(processes) {
  for (const ProcessPicture& process : processes) {
    by_id_[process_key(process.id())] = &process;
    own_nid_ = process.descriptor.nid;
  }
}

const ProcessPicture* JobView::find(ProcessId id) const {
  const auto found = by_id_.find(process_key(id));
  return found != by_id_.end() ? found->second : nullptr;
}

std::string JobView::name(ProcessId id) const {
  const ProcessPicture* const process = find(id);
  if (process != nullptr && process->rank >= 0) return "rank " + std::to_string(process->rank);
  const std::string pid = "PID " + std::to_string(id.pid);
  return id.nid == own_nid_ ? pid : pid + " of " + node_id_text(id.nid);
}

ProcessId JobView::physical(const InterfacePicture& ni, ProcessId shown) {
  if (ni.is_logical()) return shown.nid < ni.ranks.size() ? ni.ranks[shown.nid] : ProcessId{};
  return ni.is_fabric() ? ProcessId{shown.nid, shown.pid & 0xffff} : shown;
}

ProcessId JobView::wanted_source(const InterfacePicture& ni, const MatchCriteria& criteria) {
  if (criteria.any_nid || (criteria.any_pid && !ni.is_logical())) return {};
  return physical(ni, criteria.match_id);
}

ProcessId JobView::owner_of_gate(std::uint64_t gate_id) const {
  const auto has_it = [gate_id](const ProcessPicture& process) { return process.find_gate(gate_id) != nullptr; };
  const auto owner = std::ranges::find_if(processes_, has_it);
  return owner != processes_.end() ? owner->id() : ProcessId{};
}

bool JobView::anybody_waits() const { return std::ranges::any_of(processes_, &ProcessPicture::is_waiting); }

bool JobView::is_gone(ProcessId id) const { return id.nid == own_nid_ && find(id) == nullptr; }

namespace {

/// @param tells  whether a message in the entry is told there, as its options say
void add_entry(Feeders& feeders, const PortalPicture& portal, const EntryPicture& entry, bool tells) {
  if (tells) {
    feeders.entries.push_back(&entry);
    feeders.portals.push_back(&portal);
  } else {
    feeders.mute_entry = &entry;
    feeders.mute_portal = &portal;
  }
}

Feeders feeders_of_counter(const ProcessPicture& process, const InterfacePicture& ni, Handle counter) {
  Feeders feeders;
  const bool is_fabric = ni.is_fabric();  // Whose entries tell in ways of their own.
  for (const PortalPicture& portal : ni.portals) {
    for (const EntryPicture& entry : portal.priority.items) {
      if (names(entry, counter)) add_entry(feeders, portal, entry, is_fabric || counts(entry));
    }
    feeders.overflow = feeders.overflow || std::ranges::any_of(portal.overflow.items, [&](const EntryPicture& entry) {
                         return names(entry, counter) && (is_fabric || counts(entry));
                       });
  }
  for (const DescriptorPicture& md : ni.descriptors) {
    if (md.ct_handle != counter) continue;
    if (counts(md)) feeders.descriptors.push_back(&md);
    if (!counts(md)) feeders.mute_descriptor = &md;
  }
  const auto tells_of = [&feeders](Handle md) {
    return md != 0 &&
           std::ranges::find(feeders.descriptors, md, &DescriptorPicture::handle) != feeders.descriptors.end();
  };
  for (const CounterPicture& other : ni.counters) {
    const auto raises = [&](const TriggerPicture& trigger) {
      return trigger.ct_handle == counter || tells_of(trigger.md_handle);
    };
    if (std::ranges::any_of(other.waiting.items, raises)) feeders.triggered_by.push_back(&other);
  }
  feeders.answers_due = is_answer_due(process, feeders.descriptors);
  return feeders;
}

Feeders feeders_of_queue(const ProcessPicture& process, const InterfacePicture& ni, Handle queue) {
  Feeders feeders;
  const bool is_fabric = ni.is_fabric();  // Whose entries tell in ways of their own.
  for (const PortalPicture& portal : ni.portals) {
    if (portal.eq_handle != queue) continue;
    if (portal.priority.items.empty() && feeders.bare_portal == nullptr) feeders.bare_portal = &portal;
    for (const EntryPicture& entry : portal.priority.items) add_entry(feeders, portal, entry, is_fabric || logs(entry));
    feeders.overflow = feeders.overflow || portal.overflow.size != 0;
  }
  for (const DescriptorPicture& md : ni.descriptors) {
    if (md.eq_handle == queue) feeders.descriptors.push_back(&md);
  }
  feeders.answers_due = is_answer_due(process, feeders.descriptors);
  return feeders;
}

}  // namespace

Feeders feeders_of(const ProcessPicture& process, const InterfacePicture& ni, WaitKind kind, Handle handle) {
  Feeders feeders =
      kind == WaitKind::kCounters ? feeders_of_counter(process, ni, handle) : feeders_of_queue(process, ni, handle);
  if (ni.is_fabric()) feeders.keep_used_once();  // Others are memory that peers reach, or not.
  return feeders;
}

void Feeders::keep_used_once() {
  if (std::ranges::none_of(entries, is_used_once)) return;
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (is_used_once(entries[i])) continue;
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
    portals.erase(portals.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::uint64_t progress_of(const InterfacePicture& ni, WaitKind kind, Handle handle) {
  const auto of = [handle](const auto& objects, auto its_handle) {
    const auto found = std::ranges::find(objects, handle, its_handle);
    return found != objects.end() ? found->progress() : 0;
  };
  return kind == WaitKind::kCounters ? of(ni.counters, &CounterPicture::handle) : of(ni.queues, &QueuePicture::handle);
}

std::uint64_t progress_of(const ProcessPicture& process) {
  std::uint64_t sum = 0;
  for (const InterfacePicture& ni : process.core.interfaces) {
    for (const CounterPicture& counter : ni.counters) sum += counter.progress();
    for (const QueuePicture& queue : ni.queues) sum += queue.progress();
  }
  for (const VcqPicture& vcq : process.core.vcqs) sum += vcq.tcq_progress + vcq.mrq_progress;
  for (const GatePicture& gate : process.core.gates) sum += gate.rounds_passed;
  return sum;
}

bool is_only_read(const EntryPicture& entry) { return (entry.options & (kEntryOpPut | kEntryOpGet)) == kEntryOpGet; }

const char* expected_at(const EntryPicture& entry) { return is_only_read(entry) ? "a get" : "a message"; }

const InterfacePicture* interface_of(const ProcessPicture& process, Handle handle) {
  const auto found = std::ranges::find(process.core.interfaces, handle_interface(handle), &InterfacePicture::index);
  return found != process.core.interfaces.end() ? &*found : nullptr;
}

}  // namespace portofu
