// The model: appends, unlinks and searches. Portals 4.3, 3.11.2-3.11.4, 3.12.2-3.12.4.

#include <algorithm>

#include "tests/simulation/model.h"

namespace portofu::simulation {
namespace {

Event entry_event(const EntryPlan& plan, EventKind kind) {
  Event event;
  event.type = kind;
  event.pt_index = plan.pt_index;
  event.user_ptr = reinterpret_cast<void*>(plan.name);
  return event;
}

}  // namespace

bool Model::header_matches(const EntryPlan& plan, const ModelHeader& header) {
  if (!matching()) return true;
  const ProcessId source = processes[header.message->initiator].initiator_id;
  const MatchCriteria& wanted = plan.criteria;
  return ((header.message->descriptor.match_bits ^ wanted.match_bits) & ~wanted.ignore_bits) == 0 &&
         (wanted.any_nid || source.nid == wanted.match_id.nid) && (wanted.any_pid || source.pid == wanted.match_id.pid);
}

Status Model::append(std::size_t process, const EntryPlan& plan, Handle handle) {
  ModelProcess& own = processes[process];
  ModelPortal& portal = own.portals.at(plan.pt_index);
  const bool once = (plan.options & kEntryUseOnce) != 0;
  const bool moves = !once && (plan.options & kEntryManageLocal) != 0 && (plan.options & kEntryLocalIncUhRlength) != 0;
  std::vector<ModelHeader*> found;
  std::uint64_t local_offset = 0;
  bool used_up = false;
  for (ModelHeader* header : portal.unexpected) {
    if (plan.list != ListKind::kPriority || used_up || !header_matches(plan, *header)) continue;
    found.push_back(header);
    if (moves) local_offset = std::min(local_offset + header->message->descriptor.length, plan.region.length());
    used_up = once || (moves && plan.region.length() - local_offset < plan.min_free);
  }
  const auto live = std::count_if(own.entries.begin(), own.entries.end(),
                                  [](const auto& entry) { return entry->state != EntryState::kGone; });
  if (live >= own.limits.max_entries) return Status::kNoSpace;
  auto& list = plan.list == ListKind::kPriority ? portal.priority : portal.overflow;
  if (!used_up && list.size() >= own.limits.max_list_size) return Status::kListTooLong;
  own.entries.push_back(std::make_unique<ModelEntry>());
  ModelEntry& entry = *own.entries.back();
  entry.plan = plan;
  entry.handle = handle;
  entry.local_offset = local_offset;
  entry.pending = static_cast<int>(found.size());
  if (used_up) entry.state = EntryState::kUnlinking;
  for (ModelHeader* header : found) {
    header->appended = &entry;
    claim(own, portal, *header, plan);
  }
  if (used_up) return Status::kOk;
  list.push_back(&entry);
  if ((plan.options & kEntryEventLinkDisable) == 0) post(own, portal.eq, entry_event(plan, EventKind::kLink));
  return Status::kOk;
}

ModelEntry* Model::find_handle(ModelProcess& process, Handle handle) {
  for (auto entry = process.entries.rbegin(); entry != process.entries.rend(); ++entry) {
    if ((*entry)->handle == handle) return entry->get();
  }
  return nullptr;
}

Status Model::unlink(std::size_t process, Handle handle) {
  ModelProcess& own = processes[process];
  ModelEntry* entry = find_handle(own, handle);
  if (entry == nullptr) return Status::kArgInvalid;  // The application has unlinked it already.
  if (!entry->is_linked() || entry->pending != 0 || entry->headers != 0) return Status::kInUse;
  ModelPortal& portal = own.portals.at(entry->plan.pt_index);
  auto& list = entry->plan.list == ListKind::kPriority ? portal.priority : portal.overflow;
  list.erase(std::find(list.begin(), list.end(), entry));
  entry->state = EntryState::kGone;
  entry->handle = 0;
  return Status::kOk;
}

void Model::search(std::size_t process, const EntryPlan& plan, SearchOperation operation) {
  ModelProcess& own = processes[process];
  ModelPortal& portal = own.portals.at(plan.pt_index);
  const bool told_success = (plan.options & (kEntryEventCommDisable | kEntryEventSuccessDisable)) == 0;
  const bool once = (plan.options & kEntryUseOnce) != 0;
  const auto unended = std::make_shared<int>(0);
  bool found = false;
  const auto waiting = portal.unexpected;  // A copy: claims take headers out.
  for (ModelHeader* header : waiting) {
    if (!header_matches(plan, *header) || (once && found)) continue;
    found = true;
    if (operation == SearchOperation::kDelete) {
      if (!once && !header->complete) {
        header->unended = unended;
        ++*unended;
      }
      claim(own, portal, *header, plan);
      continue;
    }
    if (told_success) {
      Event event = event_of(own, *header->message);
      event.type = EventKind::kSearch;
      event.user_ptr = reinterpret_cast<void*>(plan.name);
      post(own, portal.eq, event);
    }
    count(own, plan.ct, true, 1);
  }
  if (*unended == 0 && !(once && found)) end_search(own, plan);
}

void Model::end_search(ModelProcess& process, const EntryPlan& plan) {
  Event end = entry_event(plan, EventKind::kSearch);
  end.ni_fail_type = NiFail::kNoMatch;
  if ((plan.options & kEntryEventCommDisable) == 0) post(process, process.portals.at(plan.pt_index).eq, end);
  count(process, plan.ct, false, 1);
}

}  // namespace portofu::simulation
