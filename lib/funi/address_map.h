#pragma once
// Addresses of 32 bits for memory of the process, as the I/O bus of the thesis' workstations has them (5.1).

#include <cstddef>
#include <cstdint>
#include <map>

namespace portofu::funi {

class AddressMap {
 public:
  /// @param bytes  at least 1
  /// @return an address that is equal to `start` modulo the page, or 0 if 32 bits have no room left
  std::uint32_t add(void* start, std::size_t bytes);

  /// @return false if `add` has not given this address
  bool remove(std::uint32_t address) { return regions_.erase(address) != 0; }

  /// The memory at an address.
  /// @return nullptr unless all of it is mapped, in one piece
  void* find(std::uint32_t address, std::size_t bytes) const;

  /// The address of memory that is mapped; 0 if it is not, or not all.
  std::uint32_t address_of(const void* start, std::size_t bytes) const;

 private:
  struct Region {
    std::byte* start;
    std::size_t bytes;
  };

  static constexpr std::uint64_t kPage = 4096;

  /// Where the next region may begin. A page stays free behind each, so that what runs over its end meets nothing.
  static std::uint64_t page_behind(std::uint64_t end) { return (end + 2 * kPage - 1) / kPage * kPage; }

  /// The first page with so much room behind it, which may reach beyond 32 bits.
  std::uint64_t find_gap(std::uint64_t bytes) const;

  std::map<std::uint32_t, Region> regions_;
  std::uint64_t next_ = kPage;  ///< Page 0 stays empty: address 0 has a meaning of its own (3.2.4).
};

}  // namespace portofu::funi
