#pragma once
// A queue that keeps its memory: what comes and goes again and again needs none. In private memory, used by one thread
// at a time.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace portofu {

/// First in, first out. Grows by doubling, which moves all that waits, and never shrinks; references are valid until
/// the next add.
template <class T>
class GrowingRing {
 public:
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  bool empty() const { return begin_ == end_; }

  /// Makes a place at the end. @return what was there last, or a new T; throws bad_alloc without memory
  T& add() {
    if (size() == places_.size()) [[unlikely]]
      grow();
    return at(end_++);
  }
  /// @param value  not in this ring
  void push_back(const T& value) { add() = value; }

  /// @pre !empty()
  T& front() { return at(begin_); }
  void pop_front() { ++begin_; }
  void clear() { begin_ = end_; }

 private:
  static constexpr std::size_t kFirstPlaces = 2;

  T& at(std::uint64_t number) { return places_[number & (places_.size() - 1)]; }

  void grow() {
    std::vector<T> larger(places_.empty() ? kFirstPlaces : 2 * places_.size());
    for (std::uint64_t number = begin_; number != end_; ++number) {
      larger[number & (larger.size() - 1)] = std::move(at(number));
    }
    places_ = std::move(larger);
  }

  std::vector<T> places_;    ///< By number; a power of two of them, or none.
  std::uint64_t begin_ = 0;  ///< Number of the oldest.
  std::uint64_t end_ = 0;    ///< Number of the next.
};

}  // namespace portofu
