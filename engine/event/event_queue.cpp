// Step 8 and 9 of a message end here: the event is posted, and the application takes it.

#include "engine/event/event_queue.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "engine/queue/cancellation.h"

namespace portofu {

bool EventQueue::open(std::uint64_t count) {
  if (count > kMaxCount) return false;
  capacity_ = count == 0 ? 1 : count;
  if (capacity_ >= kGenerousFrom) capacity_ += kGenerosity;
  set_limit();
  return grow(std::bit_ceil(capacity_ + 1));
}

void EventQueue::close() { *this = EventQueue(); }

bool EventQueue::grow(std::uint64_t slots) {
  // Not constructed on purpose: `new` would write every event, and pages of a generous queue shall cost nothing until
  // they are used.
  static_assert(std::is_trivially_copyable_v<Event> && std::is_aggregate_v<Event>);
  std::unique_ptr<Event[], FreeMemory> bigger(static_cast<Event*>(std::malloc(slots * sizeof(Event))));
  if (bigger == nullptr) return false;
  for (std::uint64_t i = 0; i < size_; ++i) bigger[i] = events_[(head_ + i) & (slots_ - 1)];
  events_ = std::move(bigger);
  slots_ = slots;
  head_ = 0;
  return true;
}

bool EventQueue::make_way_on_duty() {
  const int told_fd = std::exchange(armed_fd_, -1);
  const std::uint64_t one = 1;
  if (told_fd >= 0) {
    const NoCancellation whole;
    (void)!write(told_fd, &one, sizeof one);
  }
  const bool grown = is_full() && grows_ && (size_ < slots_ || grow(slots_ * 2));
  if (grown) capacity_ = slots_;
  set_limit();
  const bool full = is_full();
  if (full) lose_oldest();
  return full;
}

bool EventQueue::make_room(std::uint32_t count) {
  const std::uint64_t wanted = size_ + count;
  if (wanted <= room() || (wanted > slots_ && !grow(std::bit_ceil(wanted)))) return false;
  held_ = wanted;
  set_limit();
  return true;
}

bool EventQueue::reserve_on_duty() {
  if (capacity_ + reserved_ + 1 > slots_ && !grow(slots_ * 2)) return false;
  ++reserved_;
  return true;
}

void EventQueue::post_reserved_on_duty(const Event& event) {
  const bool has_place = std::max(capacity_ + in_reserved_, size_) < slots_ || grow(slots_ * 2);
  if (size_ == slots_) lose_oldest();
  append_on_duty() = event;
  if (has_place) ++in_reserved_;
  set_limit();
}

}  // namespace portofu
