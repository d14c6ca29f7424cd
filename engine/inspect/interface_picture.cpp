// What an onlooker sees of an interface: lists, counters, queues.

#include <algorithm>
#include <bit>

#include "engine/inspect/core_picture.h"
#include "engine/inspect/inspected_fields.h"

namespace portofu {
namespace {

/// Copies what a list there holds. Its elements are numbered upwards; one that is not linked, or not behind the one
/// before it, was moved under the look.
/// @param far   the list
/// @param take  Item(far element, const its copy&)
template <class Item, class Object, class List, class Next, class Take>
Listed<Item> copy_list(FarMemory& memory, const List* far, Next next, Take take) {
  Listed<Item> listed;
  for (int tries = 0; tries < kTries; ++tries) {
    listed = {};
    const Copy<List> list = memory.copy(far);
    if (!list) break;
    listed.size = list->size();
    std::uint64_t order = 0;
    const auto* at = list->first();
    while (at != nullptr && listed.items.size() < kMostInspected) {
      const Copy<Object> object = memory.copy(static_cast<const Object*>(at));
      if (!object || !object->is_linked() || object->order <= order) break;
      order = object->order;
      listed.items.push_back(take(*object));
      at = next(*object);
    }
    const Copy<List> after = memory.copy(far);
    const bool same = after && after->size() == listed.size && after->first() == list->first();
    if (same && listed.items.size() == std::min(listed.size, kMostInspected)) return listed;
  }
  listed.moving = true;
  return listed;
}

Listed<EntryPicture> look_at_entries(FarMemory& memory, const MatchList* far) {
  return copy_list<EntryPicture, ListEntry>(memory, far, &MatchList::next, [](const ListEntry& entry) {
    EntryPicture seen;
    seen.criteria = entry.criteria;
    seen.start = std::bit_cast<std::uint64_t>(InspectedFields::start(entry.segment));
    seen.length = entry.segment.length();
    seen.used = entry.local_offset;
    seen.origin = entry.origin;
    seen.options = entry.options;
    seen.pending = entry.pending;
    seen.handle = entry.handle;
    seen.ct_handle = entry.ct_handle;
    return seen;
  });
}

Listed<HeaderPicture> look_at_headers(FarMemory& memory, const UnexpectedList* far) {
  return copy_list<HeaderPicture, UnexpectedHeader>(
      memory, far, &UnexpectedList::next, [](const UnexpectedHeader& header) {
        return HeaderPicture{header.key, header.rlength, header.complete, header.order, header.remote_offset};
      });
}

void look_at_portals(FarMemory& memory, const Interface& ni, InterfacePicture* picture) {
  std::vector<const PortalTableEntry*> seen_before;  // Several indices of libfabric may share one.
  for (std::uint32_t index = 0; index < kPortalTableSize; ++index) {
    const PortalTableEntry* const far = ni.portal_table[index].get();
    if (far == nullptr || std::ranges::find(seen_before, far) != seen_before.end()) continue;
    const Copy<PortalTableEntry> portal = memory.copy(far);
    if (!portal) continue;
    seen_before.push_back(far);
    PortalPicture seen;
    seen.pt_index = index;
    seen.enabled = portal->enabled;
    seen.flow_control = portal->flow_control;
    seen.disabled_by = portal->disabled_by;
    seen.disabled_since_ns = portal->disabled_since_ns;
    seen.missed_searches = portal->missed_searches;
    seen.missed = portal->missed;
    seen.eq_handle = portal->eq_handle;
    seen.priority = look_at_entries(memory, &far->priority);
    seen.overflow = look_at_entries(memory, &far->overflow);
    seen.unexpected = look_at_headers(memory, &far->unexpected);
    picture->portals.push_back(std::move(seen));
  }
}

/// Calls `visit(handle, object)` for the live objects of a table there.
/// @param table  a copy; of any bits, if its interface has ended meanwhile
template <class T, class Visit>
void each_object(FarMemory& memory, const HandleTable<T>& table, Visit visit) {
  const std::uint32_t used = std::min({InspectedFields::used_slots(table), InspectedFields::most_slots(table),
                                       static_cast<std::uint32_t>(kMostInspected)});
  const std::uint32_t slots = InspectedFields::chunk_slots(table);
  for (std::uint32_t first = 0; first < used; first += slots) {
    const std::uint32_t count = std::min(slots, used - first);
    const auto labels = memory.copy(InspectedFields::labels(table, first / slots), count);
    const auto objects = memory.copy(InspectedFields::objects(table, first / slots), count);
    for (std::size_t i = 0; i < std::min(labels.size(), objects.size()); ++i) {
      const Handle handle = InspectedFields::handle_of<T>(labels[i]);
      if (handle != 0) visit(handle, objects[i]);
    }
  }
}

void look_at_queues(FarMemory& memory, const Interface& ni, InterfacePicture* picture) {
  each_object(memory, ni.eqs, [&](Handle handle, const EventQueue& queue) {
    QueuePicture seen;
    seen.handle = handle;
    seen.size = InspectedFields::size(queue);
    seen.capacity = queue.capacity();
    seen.full = queue.is_full() && !InspectedFields::grows(queue);
    seen.lost = InspectedFields::has_lost(queue);
    seen.oldest_place = InspectedFields::oldest_place(queue);
    if (const Copy<Event> oldest = seen.size != 0 ? memory.copy(InspectedFields::oldest(queue)) : Copy<Event>()) {
      seen.oldest_type = oldest->type;
      seen.oldest_fail = oldest->ni_fail_type;
      seen.oldest_bits = oldest->match_bits;
      seen.oldest_from = oldest->initiator;
    }
    picture->queues.push_back(seen);
  });
}

void look_at_objects(FarMemory& memory, const Interface& ni, InterfacePicture* picture) {
  each_object(memory, ni.cts, [&](Handle handle, const CountingEvent& counter) {
    picture->counters.push_back(
        {handle, counter.success(), counter.failure(), look_at_triggers(memory, counter), counter.sets_on_duty()});
  });
  each_object(memory, ni.mds, [&](Handle handle, const MemoryDescriptor& md) {
    picture->descriptors.push_back({handle, md.eq_handle, md.ct_handle, md.options, md.pending});
  });
}

}  // namespace

bool look_at_interface(FarMemory& memory, const Interface* far, InterfacePicture* picture, Depth depth) {
  const Copy<Interface> ni = memory.copy(far);
  if (!ni) return false;
  picture->index = ni->index;
  picture->own_rank = ni->map.own_rank();
  look_at_queues(memory, *ni, picture);
  if (depth == Depth::kQueues) return true;
  const auto& processes = ni->map.processes();
  const Copy<ProcessId> ranks = memory.copy(processes.data(), std::min(processes.size(), kMostInspected));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) picture->ranks.push_back(ranks[rank]);
  picture->last_refused = ni->last_refused;
  picture->undelivered = ni->undelivered;
  const auto& dropped = ni->status_registers[static_cast<std::size_t>(StatusRegister::kDropCount)];
  picture->dropped = static_cast<std::uint64_t>(dropped.load(std::memory_order_relaxed));
  look_at_portals(memory, *ni, picture);
  look_at_objects(memory, *ni, picture);
  return true;
}

// The operations are a tree whose nodes lie in them; the copy has its root. Goes through it from the left, and keeps
// the way back, so that no recursion is needed.
Listed<TriggerPicture> look_at_triggers(FarMemory& memory, const CountingEvent& counter) {
  using Tree = InspectedFields::WaitingOperations;
  using Node = Tree::node_traits;
  const Tree& tree = InspectedFields::waiting(counter);
  Listed<TriggerPicture> listed;
  listed.size = tree.size();
  if (listed.size == 0) return listed;
  std::vector<Copy<TriggeredOperation>> way;
  const auto descend = [&](Node::const_node_ptr node) {
    while (node != nullptr && way.size() < kMostInspected) {
      Copy<TriggeredOperation> operation = memory.copy(&*Tree::value_traits::to_value_ptr(node));
      if (!operation) return;
      node = Node::get_left(Tree::value_traits::to_node_ptr(*operation));
      way.push_back(std::move(operation));
    }
  };
  descend(Node::get_parent(tree.end().pointed_node()));
  while (!way.empty() && listed.items.size() < kMostInspected) {
    const Copy<TriggeredOperation> operation = std::move(way.back());
    way.pop_back();
    const Descriptor& descriptor = operation->descriptor;
    const bool counts = descriptor.type == PacketType::kCountIncrement || descriptor.type == PacketType::kCountSet;
    const bool moves = descriptor.type <= PacketType::kSwap;
    TriggerPicture seen;
    seen.threshold = operation->threshold;
    seen.type = descriptor.type;
    if (counts) seen.ct_handle = descriptor.count.ct_handle;
    if (moves) {
      seen.md_handle = descriptor.portals.md_handle;
      seen.target = descriptor.portals.target;
      seen.pt_index = descriptor.pt_index;
      seen.match_bits = descriptor.match_bits;
    }
    listed.items.push_back(seen);
    descend(Node::get_right(Tree::value_traits::to_node_ptr(*operation)));
  }
  listed.moving = listed.items.size() != listed.size;
  return listed;
}

}  // namespace portofu
