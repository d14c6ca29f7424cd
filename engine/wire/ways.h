#pragma once
// The ways of a payload: from which size on each is taken, and who chooses. Before it: a message has a payload for
// another process. After it: the wire, or direct access, carries it that way.
//
// Whatever is chosen by size and by what the sender knows is chosen here, and every threshold stands here or, if it is
// a limit of a cell, in queue/ring_geometry.h. doc/ways_of_a_payload.md says the same in words, and the test of this
// file compares. What a way costs on this machine is measured by shm/way_choice.h and shm/store_choice.h.

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/queue/cell_layout.h"
#include "engine/queue/ring_geometry.h"

namespace portofu {

/// The way of a packet's payload inside a node. What carries no packet, direct access and the kernel's write, is tried
/// before one is made; who helps with what is lent, and who brings it, comes after it.
enum class Way : std::uint8_t {
  kCell,        ///< In the cell: in the header's line if it is short and the whole message, else in the second line.
  kRing,        ///< In the data area of the ring.
  kArea,        ///< In a chunk of the sender's area.
  kLentHeap,    ///< It stays in the sender's heap, from where the receiver copies it.
  kLentMemory,  ///< It stays in the sender's memory, from where the receiver's kernel copies it.
};

// ---- From how many bytes on ----

/// Shorter payloads stay in the ring. Where streaming stores are better, its lines are the dear ones already for less.
inline constexpr std::uint32_t kAreaFromBytes = 1536;
inline constexpr std::uint32_t kStreamedFromBytes = 512;

/// Shorter messages are copied even if the peer maps their memory, so that SEND need not wait for the peer.
inline constexpr std::uint32_t kLendFromBytes = 4096;

/// No last packet of a message that is lent is shorter, if that can be had: short ones are copied, and come back late.
inline constexpr std::uint32_t kShortTailBytes = 16'384;

/// Shorter packets are not worth a call of the receiver's kernel.
inline constexpr std::uint32_t kKernelCopyFromBytes = 16'384;

/// From here on one write by the kernel beats two copies through the ring, whoever polls it. Where nobody does, any.
inline constexpr std::uint32_t kKernelWriteFromBytes = 32'768;

/// Shorter messages are lent in one packet if they can.
inline constexpr std::uint32_t kShareFromBytes = 131'072;

/// The same for a message of a sender that has lent nothing else.
inline constexpr std::uint32_t kShareAloneFromBytes = 81'920;

/// A put of uTofu that tells its target pays for two looks at the line of the region table if its data goes directly;
/// shorter data travels in the packet that tells.
inline constexpr std::uint32_t kPlacedFromBytes = 512;

/// Between nodes: shorter payloads are copied into messages of the fabric.
inline constexpr std::uint32_t kFabricLendFromBytes = 65'536;

/// A line of the table, for whoever wants to see it whole.
struct WayThreshold {
  const char* name;
  std::uint32_t bytes;
};

inline constexpr std::array<WayThreshold, 15> kWayThresholds{{
    {"kShortBytes", kShortBytes},
    {"kInlineBytes", kInlineBytes},
    {"kStreamedFromBytes", kStreamedFromBytes},
    {"kAreaFromBytes", kAreaFromBytes},
    {"kAreaChunkBytes", kAreaChunkBytes},
    {"kLendFromBytes", kLendFromBytes},
    {"kShortTailBytes", kShortTailBytes},
    {"kKernelCopyFromBytes", kKernelCopyFromBytes},
    {"kKernelWriteFromBytes", kKernelWriteFromBytes},
    {"kShareAloneFromBytes", kShareAloneFromBytes},
    {"kShareFromBytes", kShareFromBytes},
    {"kMostTriedBytes", kMostTriedBytes},
    {"kMostLentBytes", kMostLentBytes},
    {"kPlacedFromBytes", kPlacedFromBytes},
    {"kFabricLendFromBytes", kFabricLendFromBytes},
}};

// ---- Who chooses ----

/// Chooses the way of a packet's payload.
/// @param sender  is asked as far as needed, in this order, because an answer may cost a look or a call of the kernel:
///                may_lend() the payload may stay where it is; is_in_heap(); shares_heap() with the receiver;
///                kernel_is_better() than a copy through the area; streams() rather than that it writes ordinarily
template <class Sender>
Way choose_way(std::uint32_t bytes, Sender&& sender) {
  if (sender.may_lend()) {
    const bool in_heap = sender.is_in_heap();
    if (in_heap && sender.shares_heap()) return Way::kLentHeap;
    if (!in_heap && bytes >= kKernelCopyFromBytes && sender.kernel_is_better()) return Way::kLentMemory;
  }
  if (bytes <= kInlineBytes) return Way::kCell;
  return bytes >= (sender.streams() ? kStreamedFromBytes : kAreaFromBytes) ? Way::kArea : Way::kRing;
}

/// From which length on the sender helps with a message that is lent.
/// @param is_alone       nothing else is lent to the receiver
/// @param goes_both_ways much comes back from there
constexpr std::uint64_t choose_share(bool is_alone, bool goes_both_ways) {
  // Where both sides send one message behind the other, neither has time to help.
  return is_alone ? kShareAloneFromBytes : goes_both_ways ? UINT64_MAX : kShareFromBytes;
}

/// Whether the kernel writes a put that tells its target nothing.
/// @param is_polled  somebody looks at the ring all the time, for whom a packet is quicker than a system call
constexpr bool kernel_writes(std::uint64_t bytes, bool is_polled) {
  return !is_polled || bytes >= kKernelWriteFromBytes;
}

/// Cuts a message that is lent into packets. @return bytes of the next one
/// @param length  of the message, of which `left` bytes are to be sent
/// @param run     of these lie in one piece
/// @param most    a packet can have
/// @param shared  the sender helps: as many packets for the receiver as for the sender
constexpr std::uint64_t cut_lent(std::uint64_t length, std::uint64_t left, std::uint64_t run, std::uint64_t most,
                                 bool shared) {
  if (shared) {
    const std::uint64_t pairs = (length + 2 * most - 1) / (2 * most);
    most = (length + 2 * pairs - 1) / (2 * pairs);
  }
  const std::uint64_t bytes = std::min(run, most);
  return bytes < left && left - bytes < kShortTailBytes ? std::min(bytes, (left + 1) / 2) : bytes;
}

}  // namespace portofu
