#pragma once
// Counters: a counting event of the engine. @spec fi_cntr(3)

#include <rdma/fi_eq.h>

#include <atomic>

#include "lib/libfabric/wait.h"

namespace portofu::fabric {

/// Differs after each change of a counter: one that was set back may come to the same numbers again.
struct CounterState {
  std::uint64_t sets = 0;
  std::uint64_t sum = 0;  ///< Of both numbers.

  bool operator==(const CounterState&) const = default;
};

struct CounterFid {
  fid_cntr fid{};
  Domain* domain = nullptr;
  Users users{0};
  Handle ct_handle = 0;  ///< In the engine.
  WaitObject wait;
  CounterState seen;      ///< When somebody last asked for news.
  std::size_t place = 0;  ///< On duty: where it is in Domain::counters.
  /// Some deferred work has named it as one that it changes: whether any still does takes a search.
  std::atomic<bool> is_named{false};

  bool has_news_or_arms();  ///< As in wait.h.
  CountingEvent& counter(const Core& core) const { return *interface_of(core).cts.find(ct_handle); }
  /// On duty.
  CounterState state(const Core& core) const { return {counter(core).sets_on_duty(), counter(core).reached()}; }
};

}  // namespace portofu::fabric
