#include "lib/sim/calendar.h"

namespace portofu::sim {

std::uint64_t Calendar::find(std::uint64_t from, std::uint64_t duration) const {
  for (std::size_t i = first_; i < uses_.size(); ++i) {
    if (uses_[i].to <= from) continue;
    if (uses_[i].from >= from + duration) break;
    from = uses_[i].to;
  }
  return from;
}

void Calendar::reserve(std::uint64_t from, std::uint64_t duration) {
  const std::uint64_t to = from + duration;
  std::size_t at = uses_.size();
  while (at > first_ && uses_[at - 1].from > from) --at;  // Most are the last.
  const bool joins_last = at > first_ && uses_[at - 1].to == from;
  const bool joins_next = at < uses_.size() && uses_[at].from == to;
  if (joins_last && joins_next) {
    uses_[at - 1].to = uses_[at].to;
    uses_.erase(uses_.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (joins_last) {
    uses_[at - 1].to = to;
  } else if (joins_next) {
    uses_[at].from = from;
  } else {
    uses_.insert(uses_.begin() + static_cast<std::ptrdiff_t>(at), {from, to});
  }
}

void Calendar::forget(std::uint64_t now) {
  while (first_ < uses_.size() && uses_[first_].to <= now) ++first_;
  if (first_ < 32 || first_ * 2 < uses_.size()) return;
  uses_.erase(uses_.begin(), uses_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
}

}  // namespace portofu::sim
