#pragma once
// What both ends of a ring (cell_ring.h) see of it: control lines, cells, and what a sequence word says. They lie in
// memory that two processes map. When you change anything here, raise kLayoutVersion (engine/segment/layout.h).

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/queue/assert.h"
#include "engine/queue/ring_geometry.h"

namespace portofu {

/// The lines in front of the cells.
struct RingControlShared {
  /// Number of cells that the receiver has given back since the ring began. Writer: receiver (release, R2). Reader:
  /// sender (acquire, R2), only when its copy says that too few have come back.
  alignas(128) std::atomic<std::uint64_t> released;
  /// 1 once the receiver reads the sender's area. Writer: receiver (relaxed: it guards no data). Reader: sender.
  std::atomic<std::uint32_t> area_mapped;
  /// The same for the sender's heap, and for all of its memory, which the receiver's kernel reads.
  std::atomic<std::uint32_t> heap_mapped;
  std::atomic<std::uint32_t> memory_read;
  /// What it costs the receiver to copy 64 KiB out of the area, or out of the sender's memory by the kernel, in ns; 0:
  /// not known. Writer: receiver (relaxed). Reader: sender.
  std::atomic<std::uint32_t> area_cost;
  std::atomic<std::uint32_t> read_cost;
  /// Where the message that begins with packet `offered` - 1 goes in the receiver's memory, and how many of its bytes
  /// the sender may write there. 0: none. Writer: receiver (release, R3; taken back by seq_cst, R4). Reader: sender
  /// (seq_cst).
  std::atomic<std::uint64_t> offered;
  std::atomic<std::uint64_t> offered_address;
  std::atomic<std::uint64_t> offered_bytes;
  /// 1 while the sender waits for room, or for what it has lent. Writer: sender (relaxed). Reader: receiver (relaxed),
  /// after it wrote `released`; the race of the two is closed by the doorbell's barrier (engine/segment/doorbell.h).
  alignas(128) std::atomic<std::uint32_t> wants_room;
  /// 1 while the sender may be writing where it was offered to. Writer: sender (seq_cst, R4). Reader: receiver (R4).
  std::atomic<std::uint32_t> placing;
  /// Number of acknowledgements that the sender has taken since the ring began. Writer: sender (release, R5). Reader:
  /// receiver (acquire, R5), only when its copy says that there is no room.
  std::atomic<std::uint32_t> acks_taken;
  /// Operations of the sender that are complete as they were asked for (ack_word). Writer: receiver (release, R6).
  /// Reader: sender (acquire, R6).
  alignas(128) std::atomic<std::uint64_t> acks[kAckSlots];
};

/// One cell. Writer: sender. Reader: receiver.
struct alignas(kCellBytes) CellShared {
  std::byte head[60];                      ///< The header without its last word.
  std::atomic<std::uint32_t> wire_word;    ///< Sequence word: released by publish (R1), acquired by ready (R1).
  std::byte inline_payload[kInlineBytes];  ///< Payload when the high half of `wire_word` is 0; else untouched.
};

static_assert(sizeof(RingControlShared) == kRingControlBytes && std::is_standard_layout_v<RingControlShared>);
static_assert(sizeof(CellShared) == kCellBytes && std::is_standard_layout_v<CellShared>);
static_assert(offsetof(CellShared, wire_word) == 60 && offsetof(CellShared, inline_payload) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// High half of the sequence word when the payload stands in place of the header's `length`.
inline constexpr std::uint32_t kInHeader = 0xffff;

/// What a header must look like: one line, the length of the packet's payload at `payload_bytes`, that of the message
/// at `length`, its last word free for the ring.
template <typename Header>
concept CellHeader = sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>&& requires(Header header) {
  { header.payload_bytes } -> std::same_as<std::uint32_t&>;
  { header.length } -> std::same_as<std::uint64_t&>;
  { header.wire_word } -> std::same_as<std::uint32_t&>;
};

/// @return what the low half of the sequence word of the packet at `position` (counted from 0) is
constexpr std::uint32_t lap_of(std::uint64_t position) { return static_cast<std::uint16_t>(position + 1); }

/// What stands at `acks[number % kAckSlots]`: its lap, which the last one never left there, and the operation.
constexpr std::uint64_t ack_word(std::uint32_t number, std::uint32_t operation_id) {
  return std::uint64_t{number / kAckSlots + 1} << 32 | operation_id;
}

/// In the high half of a sequence word: the payload is chunk number (rest of the half) of the sender's area.
inline constexpr std::uint32_t kAreaBit = 0x8000;

/// High half of the sequence word: the payload lies in the sender's memory.
inline constexpr std::uint32_t kLent = 0xfffe;

/// Who has got a payload that either end can copy.
enum class Taker : std::uint32_t {
  kNobody,    ///< Nobody yet.
  kReceiver,  ///< The receiver.
  kSender,    ///< The sender, who is copying; the receiver has to wait.
  kPlaced,    ///< The sender, who has copied.
};

/// Inline payload of a cell whose payload is lent; a Taker follows it.
struct LentPlace {
  std::uint64_t place = 0;      ///< Into the heap, or an address.
  std::uint32_t awaited = 0;    ///< 1: the cell is to be given back at once, because somebody waits for its memory.
  std::uint32_t in_memory = 0;  ///< 1: `place` is an address in the sender's memory. 0: an offset into its heap.
};

static_assert(sizeof(LentPlace) == 16 && std::atomic_ref<Taker>::is_always_lock_free);

/// Where a message goes in its receiver's memory.
struct Offer {
  std::uint64_t message = 0;  ///< Position of its first packet.
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// The Taker of a cell whose payload is lent. It means something if the payload is `in_memory`.
inline std::atomic_ref<Taker> taker_in(CellShared& cell) {
  return std::atomic_ref(*reinterpret_cast<Taker*>(cell.inline_payload + sizeof(LentPlace)));
}

/// One payload of the area at most.
inline constexpr std::uint32_t kAreaChunkBytes = 8192;

/// Where the parts of a ring lie in this process. Plain addresses, valid while the ring is mapped.
struct RingView {
  RingControlShared* control = nullptr;
  CellShared* cells = nullptr;
  std::byte* data = nullptr;
  RingGeometry geometry;

  RingView() = default;
  /// @param memory  geometry.bytes() bytes, aligned to 128, zeroed before the ring's first use
  RingView(std::byte* memory, const RingGeometry& sizes)
      : control(reinterpret_cast<RingControlShared*>(memory)),
        cells(reinterpret_cast<CellShared*>(memory + kRingControlBytes)),
        data(memory + kRingControlBytes + std::size_t{sizes.cell_count} * kCellBytes),
        geometry(sizes) {
    PORTOFU_ASSERT(sizes.valid() && reinterpret_cast<std::uintptr_t>(memory) % 128 == 0);
  }
};

}  // namespace portofu
