#include "lib/funi/undelivered_cache.h"

#include <bit>

namespace portofu::funi {

unsigned UndeliveredCache::free_line() const { return static_cast<unsigned>(std::countr_zero(ticket_)); }

void UndeliveredCache::keep(unsigned line) {
  ticket_ &= ~(1u << line);
  lines_[context_][line].number = kept_++;
}

unsigned UndeliveredCache::line_to_dispatch() const {
  const std::uint32_t waiting = ~ticket_ & out_ & 0xffu;
  unsigned oldest = kLines;
  for (unsigned line = 0; line < kLines; ++line) {
    if ((waiting >> line & 1u) == 0) continue;
    if (oldest == kLines || lines_[context_][line].number < lines_[context_][oldest].number) oldest = line;
  }
  return oldest;
}

unsigned UndeliveredCache::number_of(const Line& line) const {
  unsigned number = 0;
  while (number < kLines && &lines_[context_][number] != &line) ++number;
  return number;
}

void UndeliveredCache::acknowledge(unsigned line, bool accepted) {
  out_ |= 1u << line;
  if (accepted) ticket_ |= 1u << line;
}

}  // namespace portofu::funi
