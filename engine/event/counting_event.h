#pragma once
// A counting event and the operations that wait for it: the one mechanism by which an arrival starts something else.
// Counted on duty; the two numbers may be read by any thread at any time.

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstdint>

#include "engine/descriptor/descriptor.h"
#include "engine/descriptor/handle.h"
#include "engine/queue/line_aligned.h"

namespace portofu {

/// When an operation starts.
struct Trigger {
  Handle counter =
      0;  ///< Of the counting event that it waits for, or of the VCQ in session mode; 0: none that has one.
  std::uint64_t threshold = 0;  ///< Successes that let it start.
};

/// Who may end an operation that waits for a counter.
struct Claim {
  const void* owner = nullptr;  ///< What asked for it; nullptr: nobody who may take it back.
  const void* home = nullptr;   ///< What it ends with, if it has not started; nullptr: nothing.
};

/// An operation that starts when a counter has `threshold` successes. Owned by whoever holds it in a list.
struct TriggeredOperation : LineAligned, Trigger, Claim {
  Descriptor descriptor;
  std::uint64_t uses = 0;                            ///< uses_of the descriptor when the operation was armed.
  boost::intrusive::set_member_hook<> waiting_hook;  ///< In the trigger list of its counter.
  boost::intrusive::list_member_hook<> fired_hook;   ///< In FiredOperations.

  friend bool operator<(const TriggeredOperation& a, const TriggeredOperation& b) { return a.threshold < b.threshold; }
};

/// Operations whose threshold is reached, in the order in which it was reached; the loop starts them one by one, so
/// that a chain of triggers needs no recursion.
using FiredOperations =
    boost::intrusive::list<TriggeredOperation,
                           boost::intrusive::member_hook<TriggeredOperation, boost::intrusive::list_member_hook<>,
                                                         &TriggeredOperation::fired_hook>>;

/// Somebody waits until a counter has so many successes, or a failure. What it is set back from counts, too, although
/// nobody looked meanwhile. On duty. @spec Portals 4.3, 3.14.6
struct CountWatch : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
  std::uint64_t test = 0;
  bool reached = false;
  std::uint64_t success = 0;  ///< When it was reached.
  std::uint64_t failure = 0;

  /// @return `reached`
  bool look(std::uint64_t success_now, std::uint64_t failure_now) {
    if (reached || (success_now < test && failure_now == 0)) return reached;
    success = success_now;
    failure = failure_now;
    return reached = true;
  }
};

/// @spec Portals 4.3, 3.14 and 3.16
class CountingEvent {
 public:
  ~CountingEvent() { cancel_on_duty(); }

  /// Both numbers 0, nothing waits.
  void reset_on_duty() {
    cancel_on_duty();
    watches_.clear();
    success_.store(0, std::memory_order_relaxed);
    failure_.store(0, std::memory_order_relaxed);
    failures_start_ = false;
    armed_fd_ = -1;
  }

  /// From now on failures start what waits, as successes do: the threshold is one of their sum (fi_trigger(3)).
  void let_failures_start() { failures_start_ = true; }

  /// @param watch  hears of what is set back, until it is unlinked
  void keep_watch_on_duty(CountWatch& watch) { watches_.push_back(watch); }

  /// Somebody sleeps at a file descriptor: the next change of the numbers writes to it.
  /// @param event_fd  an eventfd; stays open until the counter is reset
  void arm_on_duty(int event_fd) {
    armed_fd_ = event_fd;
    is_watched_ = true;
  }

  /// Adds successes (modulo 2^64) and moves what may start now to `fired`: by threshold, equal ones in order of
  /// posting.
  void add_success_on_duty(std::uint64_t count, FiredOperations& fired) {
    const std::uint64_t before = success();
    if (before + count < before) [[unlikely]]
      tell_watches();
    set_success(before + count, fired);
  }

  /// Adds failures; they start nothing, unless let_failures_start was called.
  void add_failure_on_duty(std::uint64_t count, FiredOperations& fired) {
    failure_.store(failure() + count, std::memory_order_release);
    if (is_watched_) changed(fired);
  }

  /// Sets both numbers.
  void set_on_duty(std::uint64_t success, std::uint64_t failure, FiredOperations& fired) {
    ++sets_;
    tell_watches();
    failure_.store(failure, std::memory_order_release);
    set_success(success, fired);
  }

  /// Lets the operation wait, or moves it to `fired` at once if its threshold is reached. Takes ownership.
  void add_triggered_on_duty(TriggeredOperation* operation, FiredOperations& fired);

  /// Deletes what waits.
  /// @return number of operations deleted
  std::uint32_t cancel_on_duty();

  /// Takes some of what waits out, in order.
  /// @param which  bool(const TriggeredOperation&)
  /// @param take   void(TriggeredOperation*), takes ownership
  /// @return number of operations
  template <class Which, class Take>
  std::uint32_t cancel_some_on_duty(Which&& which, Take&& take) {
    std::uint32_t count = 0;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      TriggeredOperation& operation = *next++;
      if (!which(operation)) continue;
      waiting_.erase(waiting_.iterator_to(operation));
      take(&operation);
      ++count;
    }
    watch();
    return count;
  }

  /// Any thread. Released after the data that was counted is in memory.
  std::uint64_t success() const { return success_.load(std::memory_order_acquire); }
  std::uint64_t failure() const { return failure_.load(std::memory_order_acquire); }

  bool has_waiting() const { return !waiting_.empty(); }
  std::size_t waiting_count() const { return waiting_.size(); }

  /// What a threshold is compared with.
  std::uint64_t reached() const { return success() + (failures_start_ ? failure() : 0); }

  /// How often the numbers were set. Between two times they only grow.
  std::uint64_t sets_on_duty() const { return sets_; }

  /// For a call that looks at the numbers: whether they are others than when it last looked, so that it need not look
  /// for packets, too. After so many times in a row it says so at the second question only, for the sake of everything
  /// else that may have arrived.
  bool is_news_on_duty() {
    if (success() == looked_success_ && failure() == looked_failure_) return false;
    if (++news_in_a_row_ > kMostNews) {
      news_in_a_row_ = 0;
      return false;
    }
    looked_success_ = success();
    looked_failure_ = failure();
    return true;
  }
  static constexpr std::uint32_t kMostNews = 16;

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  using WaitingOperations =
      boost::intrusive::multiset<TriggeredOperation,
                                 boost::intrusive::member_hook<TriggeredOperation, boost::intrusive::set_member_hook<>,
                                                               &TriggeredOperation::waiting_hook>>;

  void set_success(std::uint64_t value, FiredOperations& fired) {
    success_.store(value, std::memory_order_release);
    if (is_watched_) changed(fired);
  }
  /// The numbers are set back.
  void tell_watches() {
    for (CountWatch& watch : watches_) watch.look(success(), failure());
  }
  void changed(FiredOperations& fired);
  void watch() { is_watched_ = armed_fd_ >= 0 || !waiting_.empty(); }

  std::atomic<std::uint64_t> success_{0};  ///< Events or bytes. Writer: duty. Readers: any thread.
  std::atomic<std::uint64_t> failure_{0};  ///< Events. Writer: duty. Readers: any thread.
  WaitingOperations waiting_;              ///< Sorted by threshold; equal ones in order of posting.
  boost::intrusive::list<CountWatch, boost::intrusive::constant_time_size<false>> watches_;
  std::uint64_t looked_success_ = 0;  ///< Numbers at the last look.
  std::uint64_t looked_failure_ = 0;
  std::uint64_t sets_ = 0;           ///< Calls of set_on_duty.
  std::uint32_t news_in_a_row_ = 0;  ///< Looks that were told of news.
  int armed_fd_ = -1;                ///< Where the next change is told, too; -1: nowhere.
  bool is_watched_ = false;          ///< Something waits, or armed_fd_ is set: `changed` is due after a change.
  bool failures_start_ = false;      ///< let_failures_start was called.
};

}  // namespace portofu
