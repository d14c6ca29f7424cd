#pragma once
// Facet of a wire: memory of a peer that this process writes, or uses by its own loads and stores, without the peer.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace portofu {

struct Link;

/// Bytes for registered memory of a peer, see engine/segment/region_table.h.
struct DirectPut {
  std::uint32_t control_queue = 0;  ///< Of the peer.
  std::uint32_t component = 0;
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;  ///< Into the region.
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// Memory of a peer that this process maps, and may use itself (engine/segment/region_table.h). Usable until the link
/// is given back, and only while `sequence` has the value `seen` (G1).
struct MappedRegion {
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  bool writable = false;
  bool readable = true;
  std::uint32_t user = 0;  ///< PublishedRegion::user.
  const std::atomic<std::uint64_t>* sequence = nullptr;
  std::uint64_t seen = 0;
  std::uint64_t match_bits = 0;  ///< PublishedRegion::match_bits.
  /// Where to say that it is in use (V1); nullptr: that cannot be said.
  std::atomic<std::uint64_t>* visited = nullptr;
};

/// Called on duty; returns at once.
class PeerMemory {
 public:
  /// Writes into registered memory of the peer without its help, behind everything that was published to it.
  /// @return false if that cannot be done now, or is no gain, or went wrong: then a packet has to do it, or to find out
  ///         why not
  virtual bool put_directly(Link& link, const DirectPut& put) = 0;

  /// Finds memory of the peer that this process reaches by its own loads and stores.
  /// @param key  region_key or entry_key
  /// @return false if it does not
  virtual bool find_mapped(Link& link, std::uint64_t key, MappedRegion* region) = 0;

  /// Finds memory of the peer that it has published, be it mapped here or not: what a packet may do there.
  /// @param region  without `memory` and `visited`
  virtual bool find_published(Link& link, std::uint64_t key, MappedRegion* region) = 0;

  /// Whether the peer has taken all that was published to it but settled packets (is_settled of header.h).
  virtual bool has_settled(Link& link) = 0;

 protected:
  ~PeerMemory() = default;
};

}  // namespace portofu
