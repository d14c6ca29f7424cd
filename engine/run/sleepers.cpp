#include "engine/run/sleepers.h"

#include <algorithm>

#include "engine/initiator/tofu_owner.h"
#include "engine/run/loop.h"
#include "engine/run/wait_limits.h"

namespace portofu {

std::uint64_t Sleepers::bound_sleep_on_duty(std::uint64_t longest_ns) {
  if (is_asking_on_duty(core_)) longest_ns = std::min(longest_ns, kAskPauseNs);
  if (!has_due_times_) return longest_ns;
  const std::uint64_t due_ns = next_due_on_duty(core_);
  heard_due_ns_ = std::max(heard_due_ns_, due_ns);
  if (due_ns == UINT64_MAX) return longest_ns;
  const std::uint64_t now = core_.now_ns();
  return std::min(longest_ns, due_ns > now ? due_ns - now : 0);
}

bool Sleepers::is_due_sooner_on_duty() {
  const std::uint64_t due_ns = next_due_on_duty(core_);
  if (due_ns >= heard_due_ns_) return false;
  heard_due_ns_ = due_ns;
  return true;
}

}  // namespace portofu
