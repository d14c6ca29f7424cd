#pragma once
// An event queue: a ring of full events between the thread on duty, which posts, and whoever asks for them.
// Lives in the process's own memory; every function is called on duty.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "engine/event/event.h"

namespace portofu {

/// @spec Portals 4.3, 3.13.5-3.13.9 and implementation note 13
class EventQueue {
 public:
  /// Makes room for `count` events.
  /// @param count  0 is taken as 1; from kGenerousFrom on the queue has room for kGenerosity more
  /// (lib/portals4/README.md, event queues)
  /// @return false if there is no memory; the queue is unusable then
  bool open(std::uint64_t count);

  /// From now on the queue gets more room instead of losing events, as long as there is memory.
  void let_grow() { grows_ = true; }

  /// Somebody sleeps at a file descriptor: the next event writes to it.
  /// @param event_fd  an eventfd; stays open until the queue is closed
  void arm_on_duty(int event_fd) {
    armed_fd_ = event_fd;
    limit_ = 0;
  }
  bool is_armed() const { return armed_fd_ >= 0; }

  /// Gives the memory back.
  void close();

  /// Whether make_way_on_duty is due before the next event, because the queue is full, or armed.
  bool is_blocked() const { return size_ >= limit_; }

  /// Tells whoever sleeps, and makes room: the queue grows, or the oldest event is lost, and the next removal says so.
  /// Whoever is woken finds the event, because it needs the duty to look.
  /// @return true if an event was lost
  [[gnu::noinline]] bool make_way_on_duty();

  /// Adds an event, to be filled by the caller at once. Filled in place, because a copy of what was just written field
  /// by field waits for the store buffer. @pre not blocked
  Event& append_on_duty() { return events_[(head_ + size_++) & (slots_ - 1)]; }

  /// Adds the event that tells of flow control (PT_DISABLED), into the place kept for it. If the last one of its portal
  /// table entry still lies there, because that was enabled again or freed meanwhile, the queue gets one more.
  void post_reserved_on_duty(const Event& event);

  /// The oldest event, in place; valid until the queue is used again. @pre not empty
  const Event& oldest_on_duty() const { return events_[head_ & (slots_ - 1)]; }

  /// Removes the oldest event. @pre not empty
  /// @return true if events were lost since the last removal
  bool remove_oldest_on_duty() {
    forget_oldest();
    if (size_ == 0) head_ = (head_ | (slots_ - 1)) + 1;
    if (!dropped_) [[likely]]
      return false;
    dropped_ = false;
    return true;
  }

  /// Whether `wanted` more events fit beside those that messages under way will still post.
  bool has_room_on_duty(std::uint32_t wanted) const { return size_ + promised_ + wanted <= capacity_ + in_reserved_; }

  /// Keeps room for events of a message that has been matched and is still arriving; withdrawn when it completes.
  /// Events of appends, which trigger no flow control (2.8), may take it up meanwhile (hold_on_duty).
  void promise_on_duty(std::uint32_t count) { promised_ += count; }
  void withdraw_promise_on_duty(std::uint32_t count) { promised_ -= count; }

  /// Until let_go_on_duty so many events push none out: events of a message that has passed flow control cause no
  /// overflow (3.13.5). If there is no room for them the queue holds that many more.
  /// @return false: there is room, and nothing to let go
  bool hold_on_duty(std::uint32_t count) { return size_ + count > limit_ && make_room(count); }
  void let_go_on_duty() {
    held_ = 0;
    set_limit();
  }

  /// One more or one less portal table entry with flow control logs here; each needs one reserved place.
  /// @return false if there is no memory for the place
  bool reserve_on_duty();
  void unreserve_on_duty() { --reserved_; }

  bool empty() const { return size_ == 0; }
  std::uint64_t size() const { return size_; }
  /// An event that is not read yet. @param index  0 is the oldest; below size()
  const Event& at_on_duty(std::uint64_t index) const { return events_[(head_ + index) & (slots_ - 1)]; }
  Event& at_on_duty(std::uint64_t index) { return events_[(head_ + index) & (slots_ - 1)]; }

  /// Whether the next event pushes out the oldest, if the queue cannot grow.
  bool is_full() const { return size_ >= room(); }
  std::uint64_t capacity() const { return capacity_; }

  static constexpr std::uint64_t kGenerousFrom = 512;
  static constexpr std::uint64_t kGenerosity = 65'536;
  static constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 26;

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  bool grow(std::uint64_t slots);
  [[gnu::noinline]] bool make_room(std::uint32_t count);
  void set_limit() { limit_ = is_armed() ? 0 : room(); }
  std::uint64_t room() const { return std::max(capacity_ + in_reserved_, held_); }
  void lose_oldest() {
    forget_oldest();
    dropped_ = true;
  }
  void forget_oldest() {
    if (in_reserved_ != 0 && oldest_on_duty().type == EventKind::kPtDisabled) [[unlikely]]
      leave_reserved();
    ++head_;
    --size_;
  }

  void leave_reserved() {
    --in_reserved_;
    set_limit();
  }

  struct FreeMemory {
    void operator()(Event* events) const { std::free(events); }
  };

  std::unique_ptr<Event[], FreeMemory> events_;  ///< `slots_` entries; slot of the oldest event is `head_`.
  std::uint64_t slots_ = 0;                      ///< Power of two, at least capacity_ + reserved_, and at least size_.
  /// Counts up; goes on at a multiple of `slots_`, the first slot, whenever the queue runs empty, so that a short queue
  /// stays in cache. An onlooker sees by it whether an event has been read.
  std::uint64_t head_ = 0;
  std::uint64_t size_ = 0;         ///< Events in the queue, those in reserved places included.
  std::uint64_t limit_ = 0;        ///< From so many on the queue is blocked: 0 if it is armed, else room().
  std::uint64_t capacity_ = 0;     ///< Events that may wait before the oldest is lost.
  std::uint64_t held_ = 0;         ///< hold_on_duty: so many events fit now, whatever the capacity; 0: nobody holds.
  std::uint64_t promised_ = 0;     ///< Events that messages under way will post.
  std::uint64_t reserved_ = 0;     ///< Places kept for PT_DISABLED.
  std::uint64_t in_reserved_ = 0;  ///< PT_DISABLED that wait, on top of `capacity_`; the sum is at most `slots_`.
  bool dropped_ = false;           ///< An event was lost since the last removal.
  bool grows_ = false;             ///< let_grow was called.
  int armed_fd_ = -1;              ///< Where the next event is told, too; -1: nowhere.
};

}  // namespace portofu
