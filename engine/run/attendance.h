#pragma once
// Who runs the loop now: threads of the application that look for something, or the progress thread because none does.

#include <atomic>
#include <cstdint>

namespace portofu {

class Attendance {
 public:
  /// @param shown  SegmentControlShared::unattended, outlives it; nullptr: there is none
  explicit Attendance(std::atomic<std::uint32_t>* shown) : shown_(shown) {}

  /// Looks of application threads. Any thread; onlookers read the word itself.
  std::uint64_t looks() const { return looks_.load(std::memory_order_relaxed); }
  const std::atomic<std::uint64_t>& looks_word() const { return looks_; }

  /// An application thread looks.
  void note_look_on_duty() { looks_.store(looks() + 1, std::memory_order_relaxed); }

  /// Something was done, by an application thread or by the progress thread.
  void note_work_on_duty(bool by_application) {
    if (unattended_ == by_application) [[unlikely]]
      show_on_duty(!by_application);
  }

 private:
  void show_on_duty(bool unattended) {
    unattended_ = unattended;
    if (shown_ != nullptr) shown_->store(unattended ? 1 : 0, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t>* shown_;
  std::atomic<std::uint64_t> looks_{0};  ///< Writer: duty.
  bool unattended_ = false;              ///< On duty: the progress thread was the last to do something.
};

}  // namespace portofu
