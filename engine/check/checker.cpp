#include "engine/check/checker.h"

namespace portofu {

void keep_arrival(Checker& checker, const Interface& ni, const EventQueue& queue) {
  checker.portals.posts_event(ni, queue);
}

}  // namespace portofu
