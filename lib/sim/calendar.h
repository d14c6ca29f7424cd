#pragma once
// When one thing, such as a link, is in use: times that do not overlap. What comes takes the first gap that is long
// enough, so that a packet which another one will use the link before only later does not wait for it.

#include <cstdint>
#include <vector>

namespace portofu::sim {

class Calendar {
 public:
  /// The earliest time from `from` at which nobody uses it for so long.
  std::uint64_t find(std::uint64_t from, std::uint64_t duration) const;

  /// Somebody uses it. @pre nobody else does meanwhile (find)
  void reserve(std::uint64_t from, std::uint64_t duration);

  /// Nobody will ask for times before `now` any more.
  void forget(std::uint64_t now);

  /// Uses that it still knows, those without a gap between them as one.
  std::size_t size() const { return uses_.size() - first_; }

 private:
  struct Span {
    std::uint64_t from;
    std::uint64_t to;
  };

  std::vector<Span> uses_;  ///< Ascending; those before first_ are forgotten.
  std::size_t first_ = 0;
};

}  // namespace portofu::sim
