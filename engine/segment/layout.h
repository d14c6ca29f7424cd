#pragma once
// The layout of a process segment: the one file in shared memory through which a process is found and reached. It is
// owned by the receiver, so that what an exited sender has published is still delivered.
//
//   page 0       SegmentDescriptorShared, read-only once the segment has its name
//   page 1       SegmentControlShared: doorbell, directory epoch, counters
//   page 2 ...   RegionTableShared: registered memory
//   then         KnownByShared: who of other nodes knows names of the segment
//   then         channel directory: one ChannelSlotShared a channel
//   then         one ring a channel, each on its own pages, allocated when its channel is claimed
//   then         the send area (wire/shm/send_area.h), allocated when it is used for the first time
//
// When you change anything here, in queue/cell_layout.h or in wire/header.h: raise kLayoutVersion. What has_head needs
// stays where it is in all versions.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/observe/counters.h"
#include "engine/queue/ring_geometry.h"
#include "engine/segment/doorbell.h"
#include "engine/segment/known_by.h"
#include "engine/segment/region_table.h"

namespace portofu {

inline constexpr std::uint64_t kSegmentMagic = 0x75666f74726f500aull;  ///< "\nPortofu", little endian.
inline constexpr std::uint32_t kLayoutVersion = 21;
inline constexpr std::uint32_t kPageBytes = 4096;         ///< Unit of the layout, whatever the machine's page is.
inline constexpr std::uint32_t kMaxChannelCount = 65536;  ///< Bound for what a descriptor may claim.

/// Who owns the segment and how it is laid out. Writer: the owner, before the segment has a name. Readers: anybody, who
/// copies it, checks the copy and uses the copy.
struct SegmentDescriptorShared {
  std::uint64_t magic;             ///< kSegmentMagic.
  std::uint32_t layout_version;    ///< kLayoutVersion; another one is not understood at all.
  std::uint32_t descriptor_bytes;  ///< sizeof(SegmentDescriptorShared).
  std::uint64_t incarnation;       ///< Random, not 0: tells two lives of one (NID, PID) apart.
  std::uint32_t nid;               ///< ProcessId of the owner.
  std::uint32_t pid;               ///< ProcessId of the owner.
  std::uint32_t os_pid;            ///< The owner in the kernel's numbering, as the owner sees it; for people and tools.
  std::uint32_t uid;               ///< Usage ID of the owner (Portals 4.3, 3.8).
  std::uint32_t job_key;           ///< Key of the owner's job; a process of another job is refused.
  std::uint32_t channel_count;     ///< Slots in the directory, and rings.
  RingGeometry ring;               ///< Sizes of every ring.
  std::uint32_t area_bytes;        ///< Of the send area; 0: there is none.
  std::uint64_t segment_bytes;     ///< Length of the file; follows from the counts, and is checked against both.
  std::uint64_t probe_address;     ///< In the owner's memory, where `incarnation` lies once more (MarkPage).
  std::int32_t rank;               ///< As the owner's launcher numbers it; -1: it does not. For people and tools.
  std::uint32_t keep_dead;         ///< 1: peers leave the segment when the owner is dead, so that it can be looked at.
  std::uint64_t network;           ///< network_identity of the owner: whom its NID, and those of others, mean.
};

static_assert(sizeof(SegmentDescriptorShared) == 96 && std::is_trivially_copyable_v<SegmentDescriptorShared>);

/// What changes in a segment besides directory and rings.
struct SegmentControlShared {
  DoorbellShared doorbell;  ///< Of the owner.
  /// Raised after every change that a claimer made to the directory. Writers: claimers (release, S1). Reader: the owner
  /// at every poll (acquire, S1).
  alignas(128) std::atomic<std::uint64_t> directory_epoch;
  /// 1 + highest slot index that was ever claimed. Writers: claimers, before they publish. Reader: the owner (acquire).
  std::atomic<std::uint32_t> slots_used;
  /// 1: packets were last found by the library's own thread, because the application looks for none: for peers who can
  /// do without it. Writer: the owner, on duty (relaxed). Readers: peers (relaxed).
  std::atomic<std::uint32_t> unattended;
  /// Channels ever published. Writers: claimers (relaxed: it guards no data), who take their `publish_order` from it.
  std::atomic<std::uint64_t> publish_count;
  /// The heap of the owner (HeapPlace): id, 0 while peers need none, address and length. Writer: the owner, on duty,
  /// before it publishes the first region in it, or lends memory of it (release, G2). Readers: peers (acquire, G2).
  std::atomic<std::uint64_t> heap_id;
  std::atomic<std::uint64_t> heap_start;
  std::atomic<std::uint64_t> heap_bytes;
  /// Bit N: the endpoint of libfabric with the number N takes messages. Writer: the owner, on duty (relaxed: it guards
  /// no data). Readers: tools.
  std::atomic<std::uint64_t> endpoints;
  /// Address of the InspectionRoot in the owner's memory; 0: there is none yet. Writer: the owner, once (relaxed:
  /// whoever reads there checks what it finds). Readers: tools.
  std::atomic<std::uint64_t> inspection_root;
  /// Of the owner; see engine/observe/counters.h.
  alignas(128) CountersShared counters;
};

static_assert(sizeof(SegmentControlShared) <= kPageBytes && std::is_standard_layout_v<SegmentControlShared>);
static_assert(offsetof(SegmentControlShared, counters) == 384);

/// One channel of the directory. See wire/shm/channel_directory.h for its states.
struct alignas(64) ChannelSlotShared {
  /// State, generation and claimer in one word (SlotWord), so that a claim names its claimer in the same instant.
  std::atomic<std::uint64_t> word;
  /// Incarnation of the claimer, 0 while unknown. Writer: claimer, after its claim and before it publishes.
  std::atomic<std::uint64_t> claimer_incarnation;
  /// Of two channels of one process the smaller was published first. Writer: claimer, before it publishes.
  std::atomic<std::uint64_t> publish_order;
  /// entry_key of the published entry whose memory the claimer is using, 0: none. Writer: the claimer (relaxed, then a
  /// look at the entry's sequence number; release afterwards). Reader: the owner, who takes entries back (V1, acquire).
  std::atomic<std::uint64_t> visited;
  /// Not 0: the ring is the smallest one (RingGeometry::smallest). Writer: claimer, before it publishes. Reader: the
  /// owner, when it opens the ring; whatever it finds, it takes memory for the ring that it then looks at.
  std::atomic<std::uint32_t> is_small;
};

static_assert(sizeof(ChannelSlotShared) == 64 && std::is_standard_layout_v<ChannelSlotShared>);

/// Step between the places at which rings begin in their pages; the alignment of a ring.
inline constexpr std::uint64_t kRingPlaceBytes = 128;

static_assert(sizeof(RegionTableShared) % kPageBytes == 0 && sizeof(KnownByShared) % kPageBytes == 0);

/// Bounds for the send area, a power of two.
inline constexpr std::uint32_t kLeastAreaBytes = 65536;
inline constexpr std::uint32_t kMostAreaBytes = 64u << 20;

/// What a claimer has chosen for its ring.
enum class RingSize : std::uint8_t {
  kUsual,     ///< As the descriptor says.
  kSmallest,  ///< Shared memory is short.
};

/// Where everything lies, in bytes from the start of the segment.
struct SegmentLayout {
  std::uint32_t channel_count = 0;
  RingGeometry ring;
  std::uint32_t area_bytes = 0;

  constexpr std::uint64_t control_offset() const { return kPageBytes; }
  constexpr std::uint64_t regions_offset() const { return 2 * kPageBytes; }
  constexpr std::uint64_t known_by_offset() const { return regions_offset() + sizeof(RegionTableShared); }
  constexpr std::uint64_t slots_offset() const { return known_by_offset() + sizeof(KnownByShared); }
  constexpr std::uint64_t rings_offset() const {
    return slots_offset() + round_up_to_page(std::uint64_t{channel_count} * sizeof(ChannelSlotShared));
  }
  constexpr std::uint64_t ring_stride_bytes() const { return round_up_to_page(ring.bytes()); }
  constexpr std::uint64_t ring_offset(std::uint32_t slot_index) const {
    return rings_offset() + slot_index * ring_stride_bytes();
  }
  constexpr RingGeometry ring_of(RingSize size) const { return size == RingSize::kSmallest ? ring.smallest() : ring; }
  /// Whole pages of a ring; one of the usual size has all of its stride.
  constexpr std::uint64_t ring_pages_bytes(RingSize size) const { return round_up_to_page(ring_of(size).bytes()); }
  /// Where a ring begins in its pages: rings of neighbouring channels begin at different places, so that the words that
  /// the owner polls do not all fall into one set of the first-level cache when all peers have sent equally much.
  constexpr std::uint64_t ring_start(std::uint32_t slot_index, RingSize size = RingSize::kUsual) const {
    const std::uint64_t places = (ring_pages_bytes(size) - ring_of(size).bytes()) / kRingPlaceBytes + 1;
    return slot_index % places * kRingPlaceBytes;
  }
  constexpr std::uint64_t area_offset() const { return ring_offset(channel_count); }
  constexpr std::uint64_t segment_bytes() const { return area_offset() + area_bytes; }
  constexpr bool valid() const {
    const bool area_valid = area_bytes == 0 || (std::has_single_bit(area_bytes) && area_bytes >= kLeastAreaBytes &&
                                                area_bytes <= kMostAreaBytes);
    return channel_count > 0 && channel_count <= kMaxChannelCount && ring.valid() && area_valid;
  }

  static constexpr std::uint64_t round_up_to_page(std::uint64_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
};

// ---- The head
//
// A dead segment is removed by whoever finds it, also by a process of another version. Before its names are another
// process's, those who remember them must see, or hear, that they have moved. So what that takes is the same in all
// versions since kFirstHead: some fields of the descriptor, the names word, and the tables behind the control page.

inline constexpr std::uint32_t kFirstHead = 18;

/// Where the names word lies in the file (names_word.h).
inline constexpr std::uint64_t kNamesOffset = kPageBytes + 136;

/// Whether the file is a segment of any version that has the head, dead or alive.
/// @param descriptor  only `keep_dead` and what says whose it is may be used of it
constexpr bool has_head(const SegmentDescriptorShared& descriptor, std::uint64_t file_bytes) {
  return descriptor.magic == kSegmentMagic && descriptor.layout_version >= kFirstHead && descriptor.incarnation != 0 &&
         file_bytes >= SegmentLayout().slots_offset();
}

static_assert(kNamesOffset == kPageBytes + offsetof(SegmentControlShared, doorbell) + offsetof(DoorbellShared, names));
static_assert(offsetof(SegmentDescriptorShared, layout_version) == 8 &&
              offsetof(SegmentDescriptorShared, incarnation) == 16 && offsetof(SegmentDescriptorShared, nid) == 24 &&
              offsetof(SegmentDescriptorShared, pid) == 28 && offsetof(SegmentDescriptorShared, uid) == 36 &&
              offsetof(SegmentDescriptorShared, job_key) == 40 && offsetof(SegmentDescriptorShared, keep_dead) == 84 &&
              offsetof(SegmentDescriptorShared, network) == 88);
static_assert(sizeof(RegionTableShared) == 65536 && sizeof(RegionSlotShared) == 64 && sizeof(KnownByShared) == 4096);
static_assert(SegmentLayout().regions_offset() == 8192 && SegmentLayout().known_by_offset() == 73728);

/// @param file_bytes  length of the file that the descriptor was read from
/// @return true if the descriptor is one of ours and agrees with its file; whose it is, is another question
constexpr bool is_sound(const SegmentDescriptorShared& descriptor, std::uint64_t file_bytes) {
  if (descriptor.magic != kSegmentMagic || descriptor.layout_version != kLayoutVersion) return false;
  if (descriptor.descriptor_bytes != sizeof descriptor || descriptor.incarnation == 0) return false;
  const SegmentLayout layout{descriptor.channel_count, descriptor.ring, descriptor.area_bytes};
  return layout.valid() && layout.segment_bytes() == descriptor.segment_bytes && file_bytes == descriptor.segment_bytes;
}

}  // namespace portofu
