#pragma once
// Completion queues: an event queue of the engine, whose events are translated when they are read. @spec fi_cq(3)

#include <rdma/fi_eq.h>

#include <cstdint>

#include "lib/libfabric/wait.h"

namespace portofu::fabric {

struct CompletionQueue {
  fid_cq fid{};
  Inheritable inherited{fid.fid};
  Domain* domain = nullptr;
  Users users{0};
  Handle eq_handle = 0;  ///< In the engine.
  fi_cq_format format = FI_CQ_FORMAT_CONTEXT;
  WaitObject wait;
  std::uint64_t signals = 0;   ///< On duty: calls of fi_cq_signal.
  std::uint64_t answered = 0;  ///< On duty: how many there were when one last ended a blocking read.
  bool overrun = false;        ///< Completions were lost, because there was no memory for them. On duty.

  bool is_slept_at = false;  ///< On duty: as in credit.h.

  bool has_news_or_arms();  ///< As in wait.h.
  /// On duty: whether a read finds something. One that was overrun has an error for ever, behind what it still holds.
  bool has_news(Core& core) const { return overrun || !events(core).empty(); }
  EventQueue& events(Core& core) const { return *interface_of(core).eqs.find(eq_handle); }
};

/// Whether something would be read now.
bool is_ready(CompletionQueue& cq);

}  // namespace portofu::fabric
