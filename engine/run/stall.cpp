// Waits that last say why (PORTOFU_STALL_S): calls that sleep, and loops of calls that find nothing.

#include <unistd.h>

#include <memory>
#include <utility>

#include "engine/inspect/explanation.h"
#include "engine/inspect/process_picture.h"
#include "engine/run/engine.h"
#include "engine/run/engine_node.h"

namespace portofu {

static_assert(kBetweenLooksWhyNs >= kBetweenLooksNs);

/// What is said of a wait that lasts is said while the call is still written down.
void Engine::tell_if_stalled(Sleeper& sleeper) {
  const std::uint64_t stall_ns = stall_ns_of(core_.settings);
  if (stall_ns == StallWatch::kNever || !sleeper.shown || sleeper.told || node_ == nullptr) [[likely]]
    return;
  const std::uint64_t waited_ns = core_.now_ns() - sleeper.shown->since_ns;
  if (waited_ns < stall_ns) return;
  sleeper.told = true;
  const NoCancellation whole;
  const ProcessSegment& segment = *node_->segment;
  Looks looks;
  look_twice(segment.directory(), &looks);
  tell_stall(std::move(looks), {segment.job_key(), segment.id(), waited_ns, gettid()});
}

/// A loop looks why it finds nothing: at first, and once more a little later, when it tells.
void Engine::look_why() {
  const NoCancellation whole;
  const ProcessSegment& segment = *node_->segment;
  Looks looks;
  std::uint64_t since_ns = 0;
  bool tells = false;
  {
    const Duty duty(*this);
    since_ns = policy_.stall_watch().since_ns();
    tells = policy_.stall_watch().is_second();
    if (tells && node_->first_look == nullptr) return;  // Another call tells.
    if (tells) looks = std::move(*std::exchange(node_->first_look, nullptr));
  }
  look_at_processes(segment.directory(), tells ? &looks.now : &looks.before);
  const std::uint64_t now_ns = core_.now_ns();
  if (tells) {
    tell_stall(std::move(looks), {segment.job_key(), segment.id(), now_ns - since_ns, 0});
    return;
  }
  auto first = std::make_unique<Looks>(std::move(looks));
  const Duty duty(*this);
  if (policy_.stall_watch().note_first_look(since_ns, now_ns)) node_->first_look = std::move(first);
}

}  // namespace portofu
