#pragma once
// The segment of another process, seen from here: attach by name, check, map, and ask whether its owner lives.
// Before it: a wire wants to connect to a peer, or to wake one. After it: the wire claims a channel in the directory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/segment/heap_file.h"
#include "engine/segment/layout.h"
#include "engine/segment/lender.h"
#include "engine/segment/mapping.h"
#include "engine/segment/process_memory.h"
#include "engine/segment/segment_file.h"
#include "engine/topology/process_id.h"

namespace portofu {

/// Outcome of PeerSegment::attach.
enum class AttachResult : std::uint8_t {
  kAttached,
  kNoSuchSegment,  ///< No living process has this address; a dead one's segment has been removed.
  kRefused,        ///< It is there and must not be used: other owner, open to others, other layout, wrong contents.
  kSystem,         ///< The kernel is short of something now; nothing is known about the peer.
};

/// One life (incarnation) of a peer. Used by the thread on duty.
class PeerSegment final : public Lender {
 public:
  /// @param peer  set on kAttached
  static AttachResult attach(const std::string& directory, ProcessId id, std::shared_ptr<PeerSegment>* peer);

  ProcessId id() const { return {descriptor_.nid, descriptor_.pid}; }
  std::uint64_t incarnation() const { return descriptor_.incarnation; }
  std::uint32_t job_key() const { return descriptor_.job_key; }
  const SegmentLayout& layout() const { return layout_; }

  SegmentControlShared& control();
  ChannelSlotShared& slot(std::uint32_t slot_index);
  const RegionTableShared& regions();

  /// The owner's memory, by the kernel.
  ProcessMemory& memory() const { return memory_; }

  /// Where memory of the owner is mapped here. The heap is mapped when this is asked for the first time.
  /// @return nullptr if the range does not lie in the owner's heap, or that cannot be mapped
  std::byte* find_mapped(std::uint64_t address, std::uint64_t bytes);

  /// Whether the owner has a heap that peers may map.
  bool has_heap() { return control().heap_id.load(std::memory_order_relaxed) != 0; }

  /// The owner's heap, mapped when this or find_mapped is called for the first time that it has a name.
  /// @return empty if it cannot be had
  std::span<std::byte> heap();

  /// Takes memory for the ring of a channel and maps it. @return an empty mapping if memory is short
  Mapping allocate_ring(std::uint32_t slot_index, RingSize size = RingSize::kUsual) const;

  /// Maps the owner's send area, to be read only. @return an empty mapping if it has none, or the kernel refuses
  Mapping map_send_area() const;

  /// Looks whether the owner lives; once it was found dead no call is made any more. Removes what a dead one left,
  /// unless that wanted to be kept.
  bool check_alive();

  bool read_lent(std::uint64_t address, std::byte* target, std::uint64_t bytes) const override {
    return memory_.read(address, target, bytes);
  }
  bool is_gone() const override { return !is_there() || !memory_.may_be_its(); }

  /// Whether the owner lives, by the kernel and not by what is remembered.
  bool is_there() const { return !dead_ && file_->is_alive(); }

  /// Outcome of the last check_alive.
  bool is_dead() const { return dead_; }

  /// Whether the name of the PID leads to another segment now. That it leads nowhere says nothing of a living owner:
  /// somebody may have cleared the directory.
  bool is_replaced() const;

 private:
  explicit PeerSegment(const SegmentDescriptorShared& descriptor);

  std::string directory_;
  std::string path_;
  std::shared_ptr<SegmentFile> file_;   ///< Shared with the owner if that is an engine of this process.
  SegmentDescriptorShared descriptor_;  ///< The checked copy.
  SegmentLayout layout_;
  Mapping header_;                ///< Everything in front of the rings.
  Mapping heap_;                  ///< Of the owner; empty unless it was asked for and could be had.
  HeapPlace heap_place_;          ///< What was mapped, or could not be: it is tried once.
  mutable ProcessMemory memory_;  ///< Whoever may look into the segment may use it.
  bool dead_ = false;             ///< Stays true.
};

/// @param incarnation  which life is meant; 0 means any
/// @return true if it is certain that this life of the process is over
bool process_is_gone(const std::string& directory, ProcessId id, std::uint64_t incarnation);

}  // namespace portofu
