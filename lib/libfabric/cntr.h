#pragma once
// Counters: a counting event of the engine. @spec fi_cntr(3)

#include <rdma/fi_eq.h>

#include <atomic>

#include "lib/libfabric/wait.h"

namespace portofu::fabric {

struct CounterFid {
  fid_cntr fid{};
  Domain* domain = nullptr;
  Users users{0};
  Handle ct_handle = 0;  ///< In the engine.
  WaitObject wait;
  std::uint64_t seen = 0;  ///< The sum of both numbers when somebody last asked for news.
  std::size_t place = 0;   ///< On duty: where it is in Domain::counters.
  /// Some deferred work has named it as one that it changes: whether any still does takes a search.
  std::atomic<bool> is_named{false};

  bool has_news_or_arms();  ///< As in wait.h.
  CountingEvent& counter(const Core& core) const { return *interface_of(core).cts.find(ct_handle); }
};

}  // namespace portofu::fabric
