#include "engine/target/published_entry.h"

#include <time.h>

#include "engine/queue/cancellation.h"
#include "engine/segment/region_table.h"
#include "engine/segment/shared_heap.h"

namespace portofu {
namespace {

/// Longest wait for peers that are using entries.
constexpr std::uint64_t kLongestVisitNs = 1'000'000'000;

/// Entries before one that is to be published, at most.
constexpr int kMostBefore = 64;

/// If an entry cannot be published, so many answers pass until it is tried again.
constexpr std::uint32_t kAnswersToRefusal = 64;

/// What makes an entry one of whose messages we must know.
constexpr std::uint32_t kNeedsUs = kEntryUseOnce | kEntryManageLocal | kEntryAckDisable;

std::uint64_t bits_of(const Interface& ni, const ListEntry& entry) {
  return ni.is_matching() ? entry.criteria.match_bits : 0;
}

std::uint64_t key_of(const Interface& ni, const ListEntry& entry) {
  return entry_key(ni.index, entry.pt_index, bits_of(ni, entry));
}

/// 2.5: whether all messages with the bits of the entry go to it, whoever sends them.
bool comes_first(const Interface& ni, const MatchList& list, const ListEntry& entry) {
  int left = kMostBefore;
  for (const MatchEntry* before = list.first(); before != &entry; before = MatchList::next(*before)) {
    if (before == nullptr || --left < 0) return false;
    const std::uint64_t differing = before->criteria.match_bits ^ bits_of(ni, entry);
    if ((differing & ~before->criteria.ignore_bits) == 0) return false;
  }
  return true;
}

void withdraw(Core& core, const Interface& ni, ListEntry& entry) {
  if (entry.publication != Publication::kPublished || core.directory == nullptr) return;
  core.directory->withdraw(key_of(ni, entry));
  entry.publication = Publication::kWithdrawn;
}

/// A look at the peers is expensive, and a visit short.
void rest() {
  const NoCancellation whole;
  const timespec some{0, 50'000};
  nanosleep(&some, nullptr);
}

/// Calls `use(entry)` for every entry that was published.
template <class Use>
void for_each_publication(PortalTableEntry& portal, Use&& use) {
  if (portal.publications == 0) return;
  for (MatchEntry* entry = portal.priority.first(); entry != nullptr; entry = MatchList::next(*entry)) {
    auto& listed = static_cast<ListEntry&>(*entry);
    if (listed.publication > Publication::kPossible) use(listed);
  }
}

}  // namespace

bool may_be_published(const Interface& ni, const ListEntry& entry) {
  if (entry.list != ListKind::kPriority || (entry.options & kNeedsUs) != 0) return false;
  if ((entry.options & kEntryEventCtComm) != 0 && (entry.ct_handle != 0 || entry.read_ct_handle != 0)) return false;
  const bool raises_events = (entry.options & (kEntryEventCommDisable | kEntryEventSuccessDisable)) == 0;
  if (raises_events && ni.portal(entry.pt_index)->eq_handle != 0) return false;
  const MatchCriteria& criteria = entry.criteria;
  if (entry.origin != 0) return false;
  if (ni.is_matching() && (criteria.ignore_bits != 0 || !criteria.any_nid || !criteria.any_pid)) return false;
  const std::uint64_t length = entry.segment.length();
  const MemorySegment::Run run = entry.segment.run_at(0, length);
  return length != 0 && run.bytes == length && process_heap().holds(run.start, length);
}

bool publish_entry(Core& core, const Interface& ni, ListEntry& entry) {
  if (entry.publication == Publication::kPublished) return true;
  PortalTableEntry& portal = *ni.portal(entry.pt_index);
  // A wire that plays with the order of packets takes them out of the ring early, and peers cannot tell.
  if (core.directory == nullptr || core.settings.shuffle_seed != 0 || !portal.enabled) return false;
  if (portal.answers_to_refusal > 0) {
    --portal.answers_to_refusal;
    return false;
  }
  portal.answers_to_refusal = kAnswersToRefusal;
  if (!comes_first(ni, portal.priority, entry)) return false;
  PublishedRegion region;
  region.key = key_of(ni, entry);
  region.start = reinterpret_cast<std::uintptr_t>(entry.segment.address(0));
  region.bytes = entry.segment.length();
  region.user = entry.uid;
  region.writable = (entry.options & kEntryOpPut) != 0;
  region.readable = (entry.options & kEntryOpGet) != 0;
  region.match_bits = bits_of(ni, entry);
  if (!core.directory->publish(region)) return false;
  portal.answers_to_refusal = 0;
  if (entry.publication == Publication::kPossible) ++portal.publications;
  entry.publication = Publication::kPublished;
  return true;
}

void withdraw_entries(Core& core, const Interface& ni, PortalTableEntry& portal) {
  for_each_publication(portal, [&](ListEntry& entry) { withdraw(core, ni, entry); });
}

void end_visits(Core& core, const Interface& ni, PortalTableEntry& portal) {
  if (portal.publications == 0 || core.directory == nullptr) return;
  const std::uint64_t deadline_ns = core.now_ns() + kLongestVisitNs;
  for_each_publication(portal, [&](const ListEntry& entry) {
    if (entry.publication == Publication::kPublished) return;
    while (core.directory->is_visited(key_of(ni, entry)) && core.now_ns() < deadline_ns) rest();
  });
}

bool take_back(Core& core, const Interface& ni, PortalTableEntry& portal, ListEntry& entry) {
  if (entry.publication <= Publication::kPossible) return true;
  withdraw(core, ni, entry);
  if (core.directory->is_visited(key_of(ni, entry))) return false;
  --portal.publications;
  entry.publication = Publication::kPossible;
  return true;
}

}  // namespace portofu
