// Step 8 and 9 of a message may end here: a count is raised, and what waited for it may start.

#include "engine/event/counting_event.h"

#include <unistd.h>

#include <utility>

#include "engine/queue/cancellation.h"

namespace portofu {

void CountingEvent::add_triggered_on_duty(TriggeredOperation* operation, FiredOperations& fired) {
  // Operations whose threshold is met never stay in waiting_, so going to `fired` directly keeps the order of posting.
  if (operation->threshold <= reached()) {
    fired.push_back(*operation);
  } else {
    waiting_.insert(waiting_.end(), *operation);  // Behind its equals; constant time when thresholds ascend.
    is_watched_ = true;
  }
}

void CountingEvent::changed(FiredOperations& fired) {
  const std::uint64_t now = reached();
  while (!waiting_.empty() && waiting_.begin()->threshold <= now) {
    TriggeredOperation& operation = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    fired.push_back(operation);
  }
  if (armed_fd_ >= 0) {
    const NoCancellation whole;
    const std::uint64_t one = 1;
    (void)!write(std::exchange(armed_fd_, -1), &one, sizeof one);
  }
  watch();
}

std::uint32_t CountingEvent::cancel_on_duty() {
  std::uint32_t count = 0;
  waiting_.clear_and_dispose([&count](TriggeredOperation* operation) {
    delete operation;
    ++count;
  });
  watch();
  return count;
}

}  // namespace portofu
