#pragma once
// Counters: a counting event of the engine. @spec fi_cntr(3)

#include <rdma/fi_eq.h>

#include <array>
#include <atomic>
#include <thread>

#include "lib/libfabric/wait.h"

namespace portofu::fabric {

/// Differs after each change of a counter: one that was set back may come to the same numbers again.
struct CounterState {
  std::uint64_t sets = 0;
  std::uint64_t sum = 0;  ///< Of both numbers.

  bool operator==(const CounterState&) const = default;
};

/// Threads that sleep at the file descriptor of a counter by turns. A change that one of them has seen is still news to
/// another, and the descriptor says so until all that sleep have seen it. All functions: on duty.
class Watchers {
 public:
  /// The calling thread is awake. @return whether it finds another state than when it last asked
  bool find_news(const CounterState& now);
  /// It is about to sleep. @return whether all others that sleep have seen the state, so that nobody has to be woken
  bool go_to_sleep(const CounterState& now);

 private:
  struct Watcher {
    std::thread::id thread;
    CounterState seen;
    std::uint32_t patience = 0;  ///< Times that others still let the descriptor wake it; 0: it does not sleep.
  };

  Watcher& caller();

  std::array<Watcher, 8> watchers_;  ///< Whoever is forgotten finds news.
  std::size_t oldest_ = 0;           ///< Is forgotten next.
};

struct CounterFid {
  fid_cntr fid{};
  Inheritable inherited{fid.fid};
  Domain* domain = nullptr;
  Users users{0};
  Handle ct_handle = 0;  ///< In the engine.
  WaitObject wait;
  Watchers watchers;
  bool is_slept_at = false;  ///< On duty: as in credit.h.
  std::size_t place = 0;     ///< On duty: where it is in Domain::counters.
  /// Some deferred work has named it as one that it changes: whether any still does takes a search.
  std::atomic<bool> is_named{false};

  bool has_news_or_arms();  ///< As in wait.h.
  CountingEvent& counter(const Core& core) const { return *interface_of(core).cts.find(ct_handle); }
  /// On duty.
  CounterState state(const Core& core) const { return {counter(core).sets_on_duty(), counter(core).reached()}; }
};

}  // namespace portofu::fabric
