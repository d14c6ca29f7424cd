#pragma once
// Copies of what lies in the memory of another process, laid out as here. Nobody is asked but the kernel, so that
// process may stand still, and may change what is read meanwhile. A pointer that is found there is never followed but
// by `FarMemory`, where a wrong one is a copy that fails.

#include <sys/types.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>

#include "engine/segment/process_memory.h"

namespace portofu {

/// The bytes of some objects of one type. Never constructed and never destroyed, since what they own is not here: only
/// functions that follow no pointer may be called.
template <class T>
class Copy {
 public:
  /// Of one of them.
  static constexpr std::size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer

  Copy() = default;  ///< It failed.
  explicit Copy(std::size_t count) : places_(new Place[count]), count_(count) {}

  explicit operator bool() const { return count_ != 0; }
  std::size_t size() const { return count_; }
  const T& operator[](std::size_t index) const {
    return *std::launder(reinterpret_cast<const T*>(places_[index].bytes));
  }
  const T* operator->() const { return &(*this)[0]; }
  const T& operator*() const { return (*this)[0]; }
  std::byte* bytes() { return places_[0].bytes; }

 private:
  struct Place {
    alignas(T) std::byte bytes[kSize];
  };

  std::unique_ptr<Place[]> places_;
  std::size_t count_ = 0;
};

/// Most objects of a list, map or table that are looked at.
inline constexpr std::size_t kMostInspected = 65'536;

/// How often something is looked at that changes under the look.
inline constexpr int kTries = 4;

class FarMemory {
 public:
  /// @param mark_address  where the process has `mark`, by which it is told from strangers (ProcessMemory)
  FarMemory(pid_t os_pid, std::uint64_t mark_address, std::uint64_t mark) : memory_(os_pid, mark_address, mark) {}

  /// @param far  an address there
  /// @return nothing if it cannot be read
  template <class T>
  Copy<T> copy(const T* far, std::size_t count = 1) {
    if (far == nullptr || count == 0 || count > kMostBytes / Copy<T>::kSize) return {};
    Copy<T> copied(count);
    errno = 0;
    if (memory_.read(std::bit_cast<std::uint64_t>(far), copied.bytes(), count * Copy<T>::kSize)) return copied;
    forbidden_ = forbidden_ || errno == EPERM;
    return {};
  }

  /// The kernel has refused something.
  bool is_forbidden() const { return forbidden_; }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  ProcessMemory memory_;
  bool forbidden_ = false;
};

/// Calls `visit(pair)` for what a map there holds. The node of a map begins with the address of the next one, and an
/// iterator is the address of a node; the test of this file would find a library in which it is not so.
/// @param map  a copy
/// @return false if not all could be read
template <class Key, class Value, class Visit>
bool each_in_map(FarMemory& memory, const std::unordered_map<Key, Value>& map, Visit&& visit) {
  using Map = std::unordered_map<Key, Value>;
  using Iterator = typename Map::const_iterator;
  static_assert(sizeof(Iterator) == sizeof(std::uint64_t));
  Iterator at = map.begin();
  for (std::size_t left = std::min(map.size(), kMostInspected); left > 0; --left) {
    const auto* const node = std::bit_cast<const std::uint64_t*>(at);
    const Copy<std::uint64_t> next = memory.copy(node);
    if (!next) return false;
    const auto pair = memory.copy(std::addressof(*at));
    if (!pair) return false;
    visit(*pair);
    at = std::bit_cast<Iterator>(*next);
  }
  return map.size() <= kMostInspected;
}

}  // namespace portofu
