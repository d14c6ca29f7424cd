#pragma once
// Step 5, of a request of either API: whether it is taken in. Before it: run/dispatch. After it: request.h and
// tofu_request.h.

#include "engine/mailbox/inbox.h"
#include "engine/mailbox/judge.h"

namespace portofu {

/// An honest peer never has more operations open than its window allows, whose largest setting is half of this, and
/// marks of libfabric, eight for an address.
inline constexpr std::uint32_t kMostWaitingAnswers = 131'072;

/// Looks at the header of a request, and ends what is still arriving of the one before: its sender has lost count.
/// @return false if it is refused; the refusal is counted
[[gnu::always_inline]] inline bool is_taken_in(Core& core, Peer& peer, const PacketHeader& header) {
  if (peer.request_stream.mode != ArrivalMode::kIdle) {
    core.counters.add(Counter::kPacketsRefusedMalformed);
    cut_message(core, peer, peer.request_stream, NiFail::kUndeliverable);
  }
  if (is_sane(header, rule_of_request(header)) && peer.answers.waiting.size() < kMostWaitingAnswers) return true;
  core.counters.add(Counter::kPacketsRefusedMalformed);
  return false;
}

}  // namespace portofu
