#include "engine/check/portals_checker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/observe/hex_text.h"

namespace portofu {
namespace {

constexpr const char* kEvents = "Portals 4.3, 3.13.2";

const char* call_of(PacketType type) {
  switch (type) {
    case PacketType::kPut: return "PtlPut";
    case PacketType::kGet: return "PtlGet";
    case PacketType::kAtomic: return "PtlAtomic";
    case PacketType::kFetchAtomic: return "PtlFetchAtomic";
    default: return "PtlSwap";
  }
}

const char* name_of(EventKind kind) {
  static constexpr std::array<const char*, 17> kNames{
      "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW",
      "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",    "PT_DISABLED",
      "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH",       "ERROR"};
  return kNames[std::min<std::size_t>(static_cast<std::size_t>(kind), kNames.size() - 1)];
}

std::string byte_range(std::uint64_t first, std::uint64_t bytes) {
  return bytes <= 1 ? "byte " + std::to_string(first)
                    : "bytes " + std::to_string(first) + " to " + std::to_string(first + bytes - 1);
}

std::string md_text(Handle handle, std::uint64_t offset, std::uint64_t bytes) {
  return "MD " + hex_text(handle) + ", " + byte_range(offset, bytes);
}

bool brings_data(PacketType type) {
  return type == PacketType::kGet || type == PacketType::kFetchAtomic || type == PacketType::kSwap;
}

/// What a program has asked for when it made the queue (EventQueue::open).
std::uint64_t asked_room(const EventQueue& queue) {
  const bool is_generous = queue.capacity() >= EventQueue::kGenerousFrom + EventQueue::kGenerosity;
  return queue.capacity() - (is_generous ? EventQueue::kGenerosity : 0);
}

/// A queue that is as short as this is filled on purpose.
constexpr std::uint64_t kShortQueue = 16;

std::string change_text(const Fingerprint::Change& change, std::uint64_t offset) {
  const std::string where = byte_range(offset + change.first, change.bytes);
  return change.bit < 0 ? where : where + " (bit " + std::to_string(change.bit) + " first)";
}

}  // namespace

void PortalsChecker::starts(const Interface& ni, const MemoryDescriptor& md, const Descriptor& d) {
  const PortalsTransfer& transfer = d.portals;
  check_ack(md, d);
  const bool is_get = d.type == PacketType::kGet;
  if (!is_get) check_early_use(md, d);
  if (started_.size() >= kMostStarted) return;
  const MemoryDescriptor* reply_md = nullptr;  // Where data comes back to.
  if (brings_data(d.type)) reply_md = is_get ? &md : ni.mds.find(transfer.get_md_handle);
  if (!is_get && reply_md != nullptr) check_overlap(md, *reply_md, d);
  const bool succeeds_silently = (md.options & kMdEventSuccessDisable) != 0;
  Started started{};
  started.call = call_of(d.type);
  started.type = d.type;
  started.md = &md;
  started.md_handle = transfer.md_handle;
  started.queue = md.eq_handle != 0 ? ni.eqs.find(md.eq_handle) : nullptr;
  started.user_ptr = transfer.user_ptr;
  started.local_offset = transfer.local_offset;
  started.remote_offset = d.remote_offset;
  started.length = d.length;
  started.tells_end =
      started.queue != nullptr && !succeeds_silently && !is_get && (md.options & kMdEventSendDisable) == 0;
  started.tells_ack = started.queue != nullptr && !succeeds_silently && transfer.ack_req == AckRequest::kFull;
  if (reply_md != nullptr && (reply_md->options & kMdEventSuccessDisable) == 0)
    started.reply_queue = reply_md->eq_handle != 0 ? ni.eqs.find(reply_md->eq_handle) : nullptr;
  const bool counts_send = !is_get && (md.options & kMdEventCtSend) != 0;
  const bool counts_ack = transfer.ack_req != AckRequest::kNone && (md.options & kMdEventCtAck) != 0;
  if (counts_send || counts_ack) started.counts[0] = count_at(ni, md);
  if (reply_md != nullptr && (reply_md->options & kMdEventCtReply) != 0) started.counts[1] = count_at(ni, *reply_md);
  const bool is_told = started.tells_end || started.tells_ack || started.reply_queue != nullptr;
  if (!is_told && !started.is_counted()) return;  // Nobody can say when the program knows.
  // A volatile source is free when the call returns, if it is short (3.10.1).
  const bool is_volatile = (md.options & kMdVolatile) != 0 && d.length <= ni.limits.max_volatile_size;
  if (!is_get && !is_volatile) started.source = Fingerprint(md.segment, transfer.local_offset, d.length);
  const std::uint64_t reply_offset = is_get ? transfer.local_offset : transfer.local_get_offset;
  if (reply_md != nullptr) started.destination = Fingerprint(reply_md->segment, reply_offset, d.length);
  started_.push_back(std::move(started));
}

/// One more end that the counter of an MD is to count.
PortalsChecker::Counted PortalsChecker::count_at(const Interface& ni, const MemoryDescriptor& md) {
  const CountingEvent* const counter = md.ct_handle != 0 ? ni.cts.find(md.ct_handle) : nullptr;
  if (counter == nullptr) return {};
  const auto counts_there = [counter](const Started& other) { return other.is_counted_at(counter); };
  std::uint64_t& counted = counted_[counter];
  if (std::ranges::none_of(started_, counts_there)) counted = counter->success();
  ++counted;
  // A target that cuts a message says so by fewer bytes, so one byte may be all of it.
  return {counter, (md.options & kMdEventCtBytes) != 0 ? counter->success() + 1 : counted};
}

/// An acknowledgment that no event queue and no counter of the MD hears of costs a packet and tells nobody.
void PortalsChecker::check_ack(const MemoryDescriptor& md, const Descriptor& d) {
  const AckRequest ack = d.portals.ack_req;
  if (ack == AckRequest::kNone) return;
  const bool is_counted = md.ct_handle != 0 && (md.options & kMdEventCtAck) != 0;
  if (is_counted || (ack == AckRequest::kFull && md.eq_handle != 0)) return;
  log_.tell({"ack_unheard", call_of(d.type), "MD " + hex_text(d.portals.md_handle), "Portals 4.3, 3.15.1",
             "an acknowledgment is asked for, and the MD has neither an event queue nor a counter that hear of it",
             "ask for none, or bind the MD with PTL_MD_EVENT_CT_ACK or an event queue"});
}

/// Data that is still to come is sent on, by whatever operation.
void PortalsChecker::check_early_use(const MemoryDescriptor& md, const Descriptor& d) {
  const std::uint64_t first = d.portals.local_offset;
  if (!md.segment.fits(first, d.length)) return;
  MemorySegment::Run run{};
  const auto comes_there = [&run](const Started& other) { return other.destination.overlaps(run.start, run.bytes); };
  for (std::uint64_t done = 0; done < d.length; done += run.bytes) {
    run = md.segment.run_at(first + done, d.length - done);
    const auto earlier = std::ranges::find_if(started_, comes_there);
    if (earlier == started_.end()) continue;
    log_.tell({"buffer_used_early", call_of(d.type), md_text(d.portals.md_handle, first, d.length), kEvents,
               std::string("it sends memory that an earlier ") + earlier->call +
                   " still reads into: its REPLY has not been read",
               "wait for PTL_EVENT_REPLY, or its count, first"});
    return;
  }
}

/// What comes back goes where the operands still are.
void PortalsChecker::check_overlap(const MemoryDescriptor& md, const MemoryDescriptor& reply_md, const Descriptor& d) {
  const PortalsTransfer& transfer = d.portals;
  const MemorySegment::Run source = md.segment.run_at(transfer.local_offset, d.length);
  const MemorySegment::Run destination = reply_md.segment.run_at(transfer.local_get_offset, d.length);
  if (source.start >= destination.start + destination.bytes || destination.start >= source.start + source.bytes) return;
  log_.tell({"buffers_overlap", call_of(d.type), md_text(transfer.md_handle, transfer.local_offset, d.length),
             "Portals 4.3, 3.15.6, 3.15.7", "the memory that it sends overlaps the memory that it fetches into",
             "give each its own memory"});
}

/// The program knows from now on that the source of a transfer is free, or cannot learn it any more.
void PortalsChecker::learns(std::list<Started>::iterator started) {
  if (const auto change = started->source.find_change()) {
    log_.tell({"source_changed", started->call,
               md_text(started->md_handle, started->local_offset, started->source.bytes()), "Portals 4.3, 2.6, 3.13.2",
               change_text(*change, started->local_offset) + " changed before the program had read SEND or ACK",
               "leave the source alone until PTL_EVENT_SEND or PTL_EVENT_ACK, or their count; short sources of an MD "
               "with PTL_MD_VOLATILE are free at once",
               static_cast<std::int64_t>(started->local_offset + change->first), change->bit});
  }
  started_.erase(started);
}

/// The transfer that an event tells of. Of several with one user pointer a program, too, can only know it by the
/// numbers of the event.
std::list<PortalsChecker::Started>::iterator PortalsChecker::ended_by(const EventQueue& queue, const Event& event) {
  const auto may_be = [&](const Started& started) {
    if (started.user_ptr != event.user_ptr) return false;
    if (event.type == EventKind::kReply) return started.reply_queue == &queue;
    if (started.queue != &queue) return false;
    return event.type == EventKind::kSend ? started.tells_end : event.type == EventKind::kAck && started.tells_ack;
  };
  const auto is_it = [&](const Started& started) {
    const bool is_there = event.type == EventKind::kSend || started.remote_offset == event.remote_offset;
    return may_be(started) && is_there && started.length == event.mlength;
  };
  const auto found = std::ranges::find_if(started_, is_it);
  return found != started_.end() ? found : std::ranges::find_if(started_, may_be);
}

void PortalsChecker::reads_event(Core& core, const EventQueue& queue) {
  look(core);
  check_room(queue);
  const Event& event = queue.oldest_on_duty();
  const auto ended = ended_by(queue, event);
  if (ended != started_.end()) learns(ended);
  Unread& unread = unread_[&queue];
  if (unread.events.empty()) return;
  Arrived arrived = std::move(unread.events.front());
  unread.events.pop_front();
  if (!unread.lossy) learns(arrived, "PtlEQGet");
}

/// The program knows from now on that the data of a message is there.
void PortalsChecker::learns(Arrived& arrived, const char* call) {
  if (!std::exchange(arrived.watched, false)) return;
  const auto change = arrived.memory.find_change();
  if (!change) return;
  log_.tell({"target_changed", call,
             std::string(name_of(arrived.type)) + " at portal table entry " +
                 std::to_string(arrived.place & UINT32_MAX) + ", match bits " + hex_text(arrived.match_bits),
             "Portals 4.3, 2.6, 3.13.2",
             change_text(*change, 0) + " of its data changed before the program had read its event or count",
             "touch the memory of an entry only when its event or count has been read",
             static_cast<std::int64_t>(change->first), change->bit});
}

void PortalsChecker::check_room(const EventQueue& queue) {
  const std::uint64_t asked = asked_room(queue);
  const bool is_over = queue.size() > asked;
  if (!is_over && (asked < kShortQueue || queue.size() * 8 < asked * 7)) return;
  log_.tell({is_over ? "event_queue_overfull" : "event_queue_nearly_full", "PtlEQAlloc",
             "event queue for " + std::to_string(asked) + " events", "Portals 4.3, 3.13.5",
             std::to_string(queue.size()) + " events waited in it" +
                 (is_over ? ": on a machine that gives what was asked for, the oldest would be lost" : ""),
             "ask for more room, or read events more often"});
}

template <class IsIt>
void PortalsChecker::learns_of_all(IsIt is_it) {
  for (auto started = started_.begin(); started != started_.end();) {
    const auto next = std::next(started);
    if (is_it(*started)) learns(started);
    started = next;
  }
}

void PortalsChecker::reads_count(const CountingEvent* counter, std::uint64_t success, std::uint64_t failure) {
  learns_of_all([&](const Started& started) {
    return std::ranges::any_of(started.counts, [&](const Counted& count) {
      return count.counter == counter && (failure != 0 || success >= count.reached);
    });
  });
  const auto places = counted_places_.find(counter);
  if (places == counted_places_.end() || (success == 0 && failure == 0)) return;
  for (auto& [queue, unread] : unread_) {
    for (Arrived& arrived : unread.events) {
      if (places->second.contains(arrived.place)) learns(arrived, "PtlCTGet");
    }
  }
}

void PortalsChecker::appends(const Interface& ni, std::uint32_t pt_index, bool is_scattered, Handle ct_handle) {
  scattered_[ni.index] |= is_scattered;
  if (const CountingEvent* const counter = ct_handle != 0 ? ni.cts.find(ct_handle) : nullptr)
    counted_places_[counter].insert(place_of(ni, pt_index));
}

void PortalsChecker::changes_count(const CountingEvent* counter) { reads_count(counter, UINT64_MAX, 0); }

void PortalsChecker::releases(const MemoryDescriptor& md) {
  const auto is_open = [&](const Started& started) {
    return started.md_handle == md.handle && (started.tells_end || started.reply_queue != nullptr);
  };
  const auto open = std::ranges::find_if(started_, is_open);
  const char* const call = open != started_.end() ? open->call : "a transfer";
  const bool is_used = md.pending != 0 || open != started_.end();
  if (is_used)
    log_.tell({"md_released_in_use", "PtlMDRelease", "MD " + hex_text(md.handle), "Portals 4.3, 3.10.4",
               std::string(call) + " uses it, and the program has not read its SEND or REPLY",
               "release it when SEND or REPLY of all its operations has been read"});
  learns_of_all([&](const Started& started) { return started.md_handle == md.handle; });
}

void PortalsChecker::tell_unread(const EventQueue& queue, Handle eq_handle, const char* call) {
  if (queue.empty()) return;
  std::array<std::uint64_t, 17> counts{};
  for (std::uint64_t i = 0; i < queue.size(); ++i)
    ++counts[std::min<std::size_t>(static_cast<std::size_t>(queue.at_on_duty(i).type), counts.size() - 1)];
  std::string words;
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] == 0) continue;
    words += (words.empty() ? "" : ", ") + std::to_string(counts[kind]) + ' ' + name_of(static_cast<EventKind>(kind));
  }
  log_.tell({"events_unread", call, "event queue " + hex_text(eq_handle), "Portals 4.3, 3.13",
             "it ends with events that nobody has read: " + words, "read them, or disable those that nobody wants"});
}

void PortalsChecker::frees(const Interface& ni, Handle eq_handle, EventQueue& queue) {
  tell_unread(queue, eq_handle, "PtlEQFree");
  std::string users;
  for (std::uint32_t index = 0; index < kPortalTableSize; ++index) {
    const PortalTableEntry* portal = ni.portal(index);
    if (portal != nullptr && portal->eq_handle == eq_handle)
      users += (users.empty() ? "portal table entry " : ", ") + std::to_string(index);
  }
  if (!users.empty()) {
    log_.tell({"event_queue_freed_in_use", "PtlEQFree", "event queue " + hex_text(eq_handle), "Portals 4.3, 3.13.6",
               users + " still logs there: further events go nowhere", "free the portal table entry first"});
  }
  unread_.erase(&queue);
  learns_of_all([&](const Started& started) { return started.queue == &queue || started.reply_queue == &queue; });
}

void PortalsChecker::frees(Interface& ni, Handle ct_handle, const CountingEvent& counter) {
  std::string user;
  ni.mds.for_each([&](Handle handle, const MemoryDescriptor& md) {
    if (md.ct_handle == ct_handle && !md.released) user = "MD " + hex_text(handle);
  });
  ni.entries.for_each([&](Handle handle, const ListEntry& entry) {
    if (entry.ct_handle == ct_handle) user = "list entry " + hex_text(handle);
  });
  if (!user.empty()) {
    log_.tell({"counter_freed_in_use", "PtlCTFree", "counter " + hex_text(ct_handle), "Portals 4.3, 3.14.3",
               user + " still counts there", "release the MD and unlink the entry first"});
  }
  counted_.erase(&counter);
  counted_places_.erase(&counter);
  learns_of_all([&](const Started& started) { return started.is_counted_at(&counter); });
}

void PortalsChecker::allocates_portal(std::uint32_t pt_index) {
  constexpr std::uint32_t kGuaranteed = 249;
  if (pt_index <= kGuaranteed) return;
  log_.tell({"limit_exceeded", "PtlPTAlloc", "portal table entry " + std::to_string(pt_index), "Portals 4.3, 3.6.1",
             "an interface need not have an index above 249", "ask for PTL_PT_ANY, or a smaller index"});
}

void PortalsChecker::closes(Interface& ni, const char* call) {
  if (ni.is_fabric()) return;
  const auto tell_left = [&](const char* what, std::uint64_t count, const std::string& first, const char* section) {
    if (count == 0) return;
    log_.tell({"left_at_end", call, std::string(what) + " of interface " + std::to_string(ni.index), section,
               std::to_string(count) + " are left, the first is " + first, "give back what was allocated"});
  };
  std::string first;
  std::uint64_t count = 0;
  const auto note = [&](const std::string& text) {
    if (count++ == 0) first = text;
  };
  ni.mds.for_each([&](Handle handle, const MemoryDescriptor& md) {
    if (!md.released) note(hex_text(handle));
  });
  tell_left("memory descriptors", std::exchange(count, 0), first, "Portals 4.3, 3.10.4");
  ni.entries.for_each([&](Handle handle, const ListEntry& entry) {
    note(hex_text(handle) + " at portal table entry " + std::to_string(entry.pt_index));
  });
  tell_left("list entries", std::exchange(count, 0), first, "Portals 4.3, 3.11.3, 3.12.3");
  ni.cts.for_each([&](Handle handle, const CountingEvent&) { note(hex_text(handle)); });
  tell_left("counters", std::exchange(count, 0), first, "Portals 4.3, 3.14.3");
  ni.eqs.for_each([&](Handle handle, const EventQueue& queue) {
    tell_unread(queue, handle, call);
    note(hex_text(handle));
  });
  tell_left("event queues", std::exchange(count, 0), first, "Portals 4.3, 3.13.6");
  for (std::uint32_t index = 0; index < kPortalTableSize; ++index) {
    const PortalTableEntry* portal = ni.portal(index);
    if (portal == nullptr) continue;
    note(std::to_string(index));
    if (portal->unexpected.empty()) continue;
    log_.tell({"message_untaken", call, "portal table entry " + std::to_string(index), "Portals 4.3, 2.5",
               "a message waits in its overflow list that no entry has matched",
               "receive every message that is sent, or search and delete it"});
  }
  tell_left("portal table entries", count, first, "Portals 4.3, 3.7.2");
  learns_of_all([&](const Started& started) { return ni.mds.find(started.md_handle) == started.md; });
  counted_.clear();
  counted_places_.clear();
  unread_.clear();
}

void PortalsChecker::takes(const Arrival& arrival) {
  constexpr std::uint32_t kSilent = kEntryEventCommDisable | kEntryEventSuccessDisable;
  const std::uint32_t options = arrival.entry->options;
  is_acknowledged_ = (arrival.header.flags & kFlagAnswerWanted) != 0 && (options & kEntryAckDisable) == 0;
  if ((options & kSilent) != 0) overwrites(arrival);
}

void PortalsChecker::overwrites(const Arrival& arrival) {
  MemorySegment::Run run{};
  for (std::uint64_t done = 0; done < arrival.mlength; done += run.bytes) {
    run = arrival.entry->segment.run_at(arrival.offset + done, arrival.mlength - done);
    for (auto& [queue, unread] : unread_) {
      for (Arrived& earlier : unread.events)
        if (earlier.memory.overlaps(run.start, run.bytes)) earlier.watched = false;
    }
  }
}

void PortalsChecker::look(Core& core) {
  for (std::uint32_t index = 0; index < kPortalsInterfaceCount; ++index) {
    Interface* ni = core.interface(index);
    if (ni == nullptr) continue;
    ni->eqs.for_each([&](Handle, const EventQueue& queue) { look_at(*ni, queue); });
  }
}

void PortalsChecker::look_at(const Interface& ni, const EventQueue& queue) {
  if (queue.empty()) return;
  Unread& unread = unread_[&queue];
  if (queue.is_full()) unread.lossy = true;
  if (unread.lossy) return unread.events.clear();
  for (std::uint64_t i = unread.events.size(); i < queue.size(); ++i) arrives(unread, ni, queue.at_on_duty(i));
}

void PortalsChecker::arrives(Unread& unread, const Interface& ni, const Event& event) {
  Arrived arrived;
  const bool writes = event.type == EventKind::kPut || event.type == EventKind::kAtomic;
  if (writes && !scattered_[ni.index] && event.ni_fail_type == NiFail::kOk && event.mlength != 0) {
    MemorySegment memory;
    memory.describe(event.start, event.mlength);
    arrived.memory = Fingerprint(std::move(memory), 0, event.mlength);
    arrived.initiator = event.initiator;
    arrived.type = event.type;
    arrived.place = place_of(ni, event.pt_index);
    arrived.match_bits = event.match_bits;
    arrived.watched = event.type == EventKind::kPut;
    arrived.acknowledged = std::exchange(is_acknowledged_, false);
    for (Arrived& earlier : unread.events) {
      if (!earlier.watched || !earlier.memory.overlaps(event.start, event.mlength)) continue;
      earlier.watched = false;
      // Messages of one initiator are in order (2.7); of two they are not, unless the second has heard from the first
      // that it has its ACK. Of equal data the order means nothing.
      if (earlier.initiator == event.initiator || earlier.acknowledged || !earlier.memory.find_change()) continue;
      log_.tell({"data_overwritten", name_of(event.type) == std::string("PUT") ? "PtlPut" : "PtlAtomic",
                 "portal table entry " + std::to_string(event.pt_index) + ", match bits " + hex_text(event.match_bits),
                 "Portals 4.3, 2.7",
                 "two initiators wrote to the same bytes, and the event of the first had not been read",
                 "let one wait for the other, or give each its own memory"});
    }
  }
  unread.events.push_back(std::move(arrived));
}

}  // namespace portofu
