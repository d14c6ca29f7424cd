#pragma once
// A message on its way in, from its first packet to its completion: where its data goes, and how far it has come. The
// steps are those of mailbox/inbox; this is the state that they share.

#include <cstdint>
#include <type_traits>

#include "engine/memory/list_entry.h"
#include "engine/topology/process_id.h"
#include "engine/wire/header.h"

namespace portofu {

/// What happens to the data of a message that is arriving.
enum class ArrivalMode : std::uint8_t {
  kIdle,     ///< No message is arriving on this stream.
  kDeliver,  ///< Data goes to `entry`, up to mlength bytes; the rest is dropped (truncation).
  kDiscard,  ///< The message was refused, or its interface was closed; its data is dropped.
  kReply,    ///< Answer stream: data goes to the memory of the outstanding operation.
};

/// Where a message goes, and how that went.
struct Placement {
  ListEntry* entry = nullptr;           ///< Where it matched. Stays allocated while `pending` counts this message.
  std::uint64_t offset = 0;             ///< Bytes into the entry where it starts.
  std::uint64_t mlength = 0;            ///< Bytes that are moved.
  ProcessId initiator;                  ///< As events and matching show it: physical, or the rank in `nid`.
  NiFail fail = NiFail::kOk;            ///< First thing that went wrong.
  ListKind list = ListKind::kPriority;  ///< Where it matched.
};

/// A message between its first packet and its completion.
struct Arrival : Placement {
  UnexpectedHeader* unexpected = nullptr;  ///< It matched in the overflow list and its header is kept.
  std::uint64_t received = 0;              ///< Bytes of payload seen so far.
  std::uint32_t promised_events = 0;       ///< Places promised in the event queue of the portal table entry.
  ArrivalMode mode = ArrivalMode::kIdle;
  PacketHeader header{};  ///< Of the first packet. Last, so that all else fits the line in front of it.
};
static_assert(sizeof(Arrival) == 2 * sizeof(PacketHeader) && std::is_trivially_copyable_v<Arrival>);

}  // namespace portofu
