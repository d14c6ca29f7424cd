#pragma once
// Threads of a process that sleep at its doorbell, and what wakes them when another thread of the process gives the
// duty back. Peers ring for packets; for what is done here, this does. engine/doc/waiting.md has the rules in words.

#include <atomic>
#include <cstdint>

#include "engine/core/core.h"
#include "engine/segment/doorbell.h"

namespace portofu {

class Sleepers {
 public:
  /// All outlive it.
  Sleepers(Core& core, DoorbellShared& shared, NodeGuard guard) : core_(core), doorbell_(shared, guard) {}

  Doorbell& doorbell() { return doorbell_; }

  /// A thread of the application is about to sleep. @return what to hand to Doorbell::wait
  std::uint32_t join() {
    application_.fetch_add(1, std::memory_order_seq_cst);
    return doorbell_.announce();
  }
  void leave() {
    doorbell_.withdraw();
    application_.fetch_sub(1, std::memory_order_seq_cst);
  }
  /// Threads of the application that sleep, or are about to. Any thread.
  std::uint32_t application_threads(std::memory_order order) const { return application_.load(order); }

  /// Who is to be woken when the duty has been given.
  struct Wake {
    bool all;          ///< Whoever listens.
    bool application;  ///< If threads of it sleep.
  };

  /// Right before the duty is given.
  /// @param activity  Core::activity
  /// @param news      whoever listens has to hear of what was done
  Wake judge_on_duty(std::uint64_t activity, bool news) {
    const bool tell = activity != told_activity_;
    told_activity_ = activity;
    if (has_due_times_) [[unlikely]]
      news = is_due_sooner_on_duty() || news;
    return {news, tell};
  }
  /// Right behind it.
  void wake(Wake whom) {
    // Partner: join. A thread that announced itself before the duty was given is seen here; one that announces later
    // takes the duty once more before it sleeps, and sees what was done.
    if (whom.all || (whom.application && application_threads(std::memory_order_seq_cst) != 0)) [[unlikely]]
      doorbell_.ring();
  }

  /// @return how long the caller, who has announced it, may sleep so that the wires get what they need in time
  std::uint64_t bound_sleep_on_duty(std::uint64_t longest_ns);

  /// Some wire has OtherNodes::next_due_ns, or none has any more.
  void expect_due_times(bool has) { has_due_times_ = has; }

 private:
  /// Whether some wire has to be looked at before those who sleep wake, so that they have to be rung. Then they sleep
  /// anew, until that time.
  bool is_due_sooner_on_duty();

  Core& core_;
  Doorbell doorbell_;
  std::atomic<std::uint32_t> application_{0};  ///< Threads of the application that sleep, or are about to.
  std::uint64_t told_activity_ = 0;            ///< On duty: Core::activity that sleeping threads know of.
  std::uint64_t heard_due_ns_ = 0;  ///< On duty: whoever sleeps does so no longer than until then; UINT64_MAX: ever.
  bool has_due_times_ = false;      ///< Constant until the engine leaves other nodes.
};

}  // namespace portofu
