#pragma once
// The registered memory of one control queue. A STADD is a STag and an offset, (stag << 40) + offset, so adding bytes
// to one gives another, and the STADD of a chosen STag is known without asking.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "engine/descriptor/status.h"
#include "engine/memory/list_entry.h"
#include "engine/queue/direct_mapped.h"
#include "engine/segment/node_directory.h"

namespace portofu {

inline constexpr std::uint32_t kStaddOffsetBits = 40;
inline constexpr std::uint64_t kMaxRegionBytes = std::uint64_t{1} << kStaddOffsetBits;
inline constexpr std::uint32_t kFirstDynamicStag = 4096;  ///< Reserved ones lie below.
/// Of a CQ, as many as lie below the reserved ones of large numbers (reserved_stag). After so many the first is given
/// out again, if it is free.
inline constexpr std::uint32_t kDynamicStags = (1u << 23) - kFirstDynamicStag;

/// No STADD has it, because a STADD has room for 24 bits of one. For a place that remembers none yet: nobody can ask
/// for it by mistake, as for 0.
inline constexpr std::uint32_t kNoStag = UINT32_MAX;

constexpr std::uint64_t make_stadd(std::uint32_t stag) { return std::uint64_t{stag} << kStaddOffsetBits; }
constexpr std::uint32_t stag_of(std::uint64_t stadd) { return static_cast<std::uint32_t>(stadd >> kStaddOffsetBits); }
constexpr std::uint64_t stadd_offset(std::uint64_t stadd) { return stadd & (kMaxRegionBytes - 1); }
/// A reserved STag, of a VCQ of 256 with up to 32768 each. Those that the real machine has are where programs expect
/// them.
constexpr std::uint32_t reserved_stag(std::uint32_t component, std::uint32_t stag) {
  return component < 8 && stag < 256 ? (8 + component) << 8 | stag : 1u << 23 | component << 15 | stag;
}

/// Registered memory is an entry that nothing has to match: judged, written and read like one.
struct RegisteredRegion : ListEntry {
  std::uint32_t component = 0;  ///< The VCQ that registered it.
  std::byte* start = nullptr;   ///< First byte.
  std::uint32_t stag = 0;
  std::uint32_t registrations = 1;
  bool is_locked = false;  ///< Its pages are not swapped out (UTOFU_SWAP_PROTECT).

  bool is_read_only() const { return (options & kEntryOpPut) == 0; }
};

/// What registration asks for. Arguments are checked.
struct RegionRequest {
  std::uint32_t component;
  std::byte* start;
  std::uint64_t bytes;
  bool read_only;
};

/// @spec uTofu guide, 2.2.2, 3.6
class StaddTable {
 public:
  /// @param directory      told of every region; nullptr: nobody is
  /// @param control_queue  whose table it is: a queue number without component
  explicit StaddTable(NodeDirectory* directory = nullptr, std::uint32_t control_queue = 0)
      : directory_(directory), control_queue_(control_queue) {}

  /// From now on STags are counted there, and not for this table alone. @param given  nullptr: as before
  void count_in(std::atomic<std::uint64_t>* given) {
    if (given != nullptr) given_ = given;
  }

  /// Registers memory, or counts another registration of the same memory by the same VCQ. What only overlaps is another
  /// region, so that each can be reached as long as it is registered itself, and no longer.
  /// @return kOk | kNoSpace
  Status add(const RegionRequest& request, std::uint64_t* stadd);

  /// Registers memory under a chosen STag. @return kOk | kInUse
  Status add_reserved(const RegionRequest& request, std::uint32_t stag, std::uint64_t* stadd);

  /// Takes one registration back. A region that is not registered any more is handed out for whoever uses it.
  /// @param stadd  of its first byte
  /// @return false if the VCQ has given out no such STADD
  bool remove(std::uint32_t component, std::uint64_t stadd, std::unique_ptr<RegisteredRegion>* gone);

  /// Any region of a VCQ, taken out of the table; nullptr if there is none.
  std::unique_ptr<RegisteredRegion> take_any_of(std::uint32_t component);

  /// Raised when a region goes: what was found before may not be there any more. Read by any thread.
  const std::atomic<std::uint64_t>& generation() const { return generation_; }

  /// The region of a STADD; nullptr if there is none.
  RegisteredRegion* find(std::uint64_t stadd) const {
    const std::uint32_t stag = stag_of(stadd);
    RegisteredRegion* const near = near_.place(stag);
    return near != nullptr && near->stag == stag ? near : look_up(stag);
  }

 private:
  /// First byte, size, component, whether it is read-only: what a registration asks for.
  using Key = std::tuple<std::uintptr_t, std::uint64_t, std::uint32_t, bool>;
  static Key key_of(const RegionRequest& request) {
    return {reinterpret_cast<std::uintptr_t>(request.start), request.bytes, request.component, request.read_only};
  }

  static constexpr std::size_t kNearRegions = 64;
  RegisteredRegion* look_up(std::uint32_t stag) const;
  std::uint32_t next_stag();
  RegisteredRegion& insert(const RegionRequest& request, std::uint32_t stag);

  NodeDirectory* directory_;
  std::uint32_t control_queue_;
  std::unordered_map<std::uint32_t, std::unique_ptr<RegisteredRegion>> regions_;  ///< By STag.
  mutable DirectMapped<RegisteredRegion*, kNearRegions> near_;                    ///< Those looked up last, by STag.
  std::map<Key, RegisteredRegion*> registered_;                                   ///< Dynamic ones.
  std::atomic<std::uint64_t> own_given_{0};
  std::atomic<std::uint64_t>* given_ = &own_given_;  ///< STags given out, dynamic ones.
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace portofu
