#include "lib/funi/port.h"

#include <cstring>

namespace portofu::funi {
namespace {

/// Of a packet in the buffer: that it came, that its entry left the list, that a slot took it, that its entry is free.
constexpr ptl_size_t kEventsOfHeld = 4;

/// Every line of every context may have an answer, and a failure before it.
constexpr ptl_size_t kAnswers = ptl_size_t{2} * kContexts * kLines - 1;

}  // namespace

bool Inlet::open(ptl_handle_ni_t ni, std::uint32_t slots) {
  ni_ = ni;
  if (PtlEQAlloc(ni, slots + kEventsOfHeld * kHeldPackets, &events_) != PTL_OK) return false;
  if (PtlPTAlloc(ni, 0, events_, PTL_PT_ANY, &entry_) != PTL_OK) return false;
  for (std::size_t i = 0; i < kHeldPackets; ++i) buffer_[i].entry.memory = buffer_memory_[i].data();
  return true;
}

void Inlet::close() {
  if (events_ == PTL_INVALID_HANDLE) return;
  reject_all(true);
  disarm();
  // Packets that wait in the buffer keep their entries. A search without any would take time, in virtual time.
  bool has_packets = !held_.empty();
  for (const Place& place : buffer_) {
    if (place.state != Place::kFree && PtlMEUnlink(place.entry.handle) != PTL_OK) has_packets = true;
  }
  if (has_packets) drop_packets();
  if (refusal_ != PTL_INVALID_HANDLE) PtlMEUnlink(refusal_);
}

void Inlet::drop_packets() {
  ptl_me_t all{};
  all.length = kSlotBytes;
  all.ct_handle = PTL_CT_NONE;
  all.uid = PTL_UID_ANY;
  all.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
  all.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  all.ignore_bits = ~ptl_match_bits_t{0};
  for (unsigned i = 0; i < kHeldPackets; ++i) PtlMESearch(ni_, entry_, &all, PTL_SEARCH_DELETE, nullptr);
}

bool Inlet::append(std::uint32_t* memory, std::uint32_t group, ptl_list_t list, Entry* entry) {
  ptl_me_t me{};
  me.start = memory;
  me.length = kSlotBytes;
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_LINK_DISABLE;
  if (list == PTL_PRIORITY_LIST) me.options |= PTL_ME_EVENT_UNLINK_DISABLE;
  me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  me.match_bits = group;
  entry->memory = memory;
  return PtlMEAppend(ni_, entry_, &me, list, memory, &entry->handle) == PTL_OK;
}

bool Inlet::set_group(std::uint32_t group) {
  group_ = group;
  for (Place& place : buffer_) {
    // One that has a packet follows when the packet has gone.
    if (place.state == Place::kArmed && PtlMEUnlink(place.entry.handle) == PTL_OK) place.state = Place::kFree;
  }
  return refill_buffer();
}

bool Inlet::put_refusal_last() {
  ptl_me_t me{};
  me.start = buffer_memory_.data();
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = PTL_ME_OP_PUT | PTL_ME_UNEXPECTED_HDR_DISABLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
               PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
  me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  me.ignore_bits = ~ptl_match_bits_t{0};
  const ptl_handle_me_t before = refusal_;
  // The new one first: at no time may a packet find nothing, for that is not acknowledged.
  if (PtlMEAppend(ni_, entry_, &me, PTL_OVERFLOW_LIST, nullptr, &refusal_) != PTL_OK) return false;
  if (before != PTL_INVALID_HANDLE) {
    while (PtlMEUnlink(before) == PTL_IN_USE) {
    }
  }
  return true;
}

bool Inlet::refill_buffer() {
  bool any = refusal_ == PTL_INVALID_HANDLE;
  for (Place& place : buffer_) {
    if (place.state != Place::kFree) continue;
    if (!append(place.entry.memory, group_, PTL_OVERFLOW_LIST, &place.entry)) return false;
    place.state = Place::kArmed;
    any = true;
  }
  return !any || put_refusal_last();
}

void Inlet::reject_all(bool reject) {
  if (reject == rejects_) return;
  rejects_ = reject;
  if (reject) {
    PtlPTDisable(ni_, entry_);
  } else {
    PtlPTEnable(ni_, entry_);
  }
}

bool Inlet::arm(std::uint32_t* slot) {
  // Those in the buffer may be of another group, of which the system has restored them.
  const std::size_t ahead = armed_.size();
  const std::uint32_t group = ahead < held_.size() ? held_[ahead] : group_;
  return append(slot, group, PTL_PRIORITY_LIST, &armed_.emplace_back());
}

void Inlet::disarm() {
  // From the last to the first: meanwhile packets go on filling the first.
  while (!armed_.empty() && PtlMEUnlink(armed_.back().handle) == PTL_OK) armed_.pop_back();
}

Inlet::Place* Inlet::place_of(const ptl_event_t& event) {
  const auto* memory = static_cast<const Slot*>(event.user_ptr);
  return &buffer_[static_cast<std::size_t>(memory - buffer_memory_.data())];
}

bool Inlet::take(const ptl_event_t& event, std::uint32_t* bytes, bool* was_held) {
  if (event.type == PTL_EVENT_AUTO_FREE) {
    place_of(event)->state = Place::kFree;
    return false;
  }
  if (event.type == PTL_EVENT_PUT && event.ptl_list == PTL_OVERFLOW_LIST) {
    held_.push_back(static_cast<std::uint32_t>(event.match_bits));
    place_of(event)->state = Place::kHolds;
    return false;
  }
  if (event.type != PTL_EVENT_PUT && event.type != PTL_EVENT_PUT_OVERFLOW) return false;
  if (armed_.empty() || event.user_ptr != armed_.front().memory) return false;
  *bytes = static_cast<std::uint32_t>(event.mlength);
  *was_held = event.type == PTL_EVENT_PUT_OVERFLOW;
  if (*was_held) {
    std::memcpy(armed_.front().memory, event.start, event.mlength);
    held_.pop_front();
  }
  armed_.pop_front();
  return true;
}

bool Port::open(void* memory, std::size_t bytes, std::uint32_t largest_queue) {
  if (PtlInit() != PTL_OK) return false;
  is_open_ = true;
  constexpr unsigned kOptions = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
  if (PtlNIInit(PTL_IFACE_DEFAULT, kOptions, PTL_PID_ANY, nullptr, nullptr, &ni_) != PTL_OK) return false;
  if (PtlGetPhysId(ni_, &self_) != PTL_OK || PtlEQAlloc(ni_, kAnswers, &answers_) != PTL_OK) return false;
  const ptl_md_t md{memory, bytes, PTL_MD_EVENT_SEND_DISABLE, answers_, PTL_CT_NONE};
  if (PtlMDBind(ni_, &md, &memory_) != PTL_OK) return false;
  for (Inlet& inlet : inlets_) {
    if (!inlet.open(ni_, largest_queue)) return false;
  }
  return true;
}

Port::~Port() {
  if (!is_open_) return;
  for (Inlet& inlet : inlets_) inlet.close();
  if (memory_ != PTL_INVALID_HANDLE) PtlMDRelease(memory_);
  for (Inlet& inlet : inlets_) {
    if (inlet.events() == PTL_INVALID_HANDLE) continue;
    PtlPTFree(ni_, inlet.entry());
    PtlEQFree(inlet.events());
  }
  if (answers_ != PTL_INVALID_HANDLE) PtlEQFree(answers_);
  if (ni_ != PTL_INVALID_HANDLE) PtlNIFini(ni_);
  PtlFini();
}

funi_address_t Port::address() const {
  return {self_.phys.nid, self_.phys.pid, inlets_[kReply].entry(), inlets_[kRequest].entry()};
}

bool Port::send(const Packet& packet, const funi_address_t& to) {
  ptl_process_t target{};
  target.phys = {to.nid, to.pid};
  const ptl_pt_index_t entry = packet.traffic == kReply ? to.reply_entry : to.request_entry;
  return PtlPut(memory_, packet.offset, packet.bytes, PTL_ACK_REQ, target, entry, packet.group, 0, packet.of, 0) ==
         PTL_OK;
}

bool Port::next(std::uint32_t timeout_ms, Event* event) {
  // Answers first: they free lines. Then replies.
  const std::array<ptl_handle_eq_t, 3> queues{answers_, inlets_[kReply].events(), inlets_[kRequest].events()};
  unsigned which = 0;
  if (PtlEQPoll(queues.data(), queues.size(), timeout_ms, &event->arrival, &which) != PTL_OK) return false;
  event->is_answer = which == 0;
  event->traffic = which == 2 ? kRequest : kReply;
  event->of = event->arrival.user_ptr;
  switch (event->arrival.ni_fail_type) {
    // No packet is empty: one of which nothing was taken has met the entry that refuses.
    case PTL_NI_OK: event->answer = event->arrival.mlength != 0 ? Answer::kAccepted : Answer::kRejected; break;
    case PTL_NI_PT_DISABLED: event->answer = Answer::kRejected; break;
    default: event->answer = Answer::kLost;
  }
  return true;
}

}  // namespace portofu::funi
