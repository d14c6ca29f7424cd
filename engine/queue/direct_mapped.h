#pragma once
// A direct-mapped cache: what was looked up last, each in the one place that its key has, so that one comparison finds
// it again. Two keys that share a place take turns. What makes an entry the right one differs from use to use, so
// whoever looks compares.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace portofu {

/// @tparam Entry    of an empty place a default-constructed one
/// @tparam kPlaces  a power of 2, at least 2
template <class Entry, std::size_t kPlaces>
class DirectMapped {
  static_assert(std::has_single_bit(kPlaces) && kPlaces >= 2);

 public:
  /// The place of a key: holds what was kept there last, whatever its key was.
  Entry& place(std::uint64_t key) { return places_[index_of(key)]; }
  const Entry& place(std::uint64_t key) const { return places_[index_of(key)]; }

  void clear() { places_.fill(Entry{}); }

  /// All of them, empty or not.
  const std::array<Entry, kPlaces>& places() const { return places_; }

  /// The one hash (Fibonacci's): one multiplication, and every bit of a key counts. Keys in a row, as tables give them
  /// out, never share a place as long as they are fewer than a third of the places.
  static constexpr std::size_t index_of(std::uint64_t key) {
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> (64 - std::bit_width(kPlaces - 1)));
  }

 private:
  std::array<Entry, kPlaces> places_{};
};

}  // namespace portofu
