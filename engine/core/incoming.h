#pragma once
// A message on its way in, from its first packet to its completion: where its data goes, and how far it has come. The
// steps are those of mailbox/inbox; this is the state that they share.

#include <cstdint>
#include <type_traits>

#include "engine/memory/list_entry.h"
#include "engine/topology/process_id.h"
#include "engine/wire/header.h"

namespace portofu {

struct Arrival;
struct Core;
struct Peer;

/// What happens to the data of a message that is arriving.
enum class ArrivalMode : std::uint8_t {
  kIdle,     ///< No message is arriving on this stream.
  kDeliver,  ///< Data goes to memory of ours, up to mlength bytes; the rest is dropped (truncation).
  kDiscard,  ///< The message was refused, or its interface was closed; its data is dropped.
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

/// What whoever takes a message in has to do for it, and what its memory allows. One constant for each kind of message.
struct IncomingHooks {
  /// Finds the memory that its data goes to, from `offset` on. Asked for each packet, because memory may go meanwhile.
  /// Returns nullptr, with `fail` set, if it is not there any more.
  const MemorySegment* (*memory)(Core& core, Arrival& arrival) = nullptr;

  /// All data is at its place, or never will be (`fail`, `is_cut`). Called once, and last.
  void (*finish)(Core& core, Peer& peer, Arrival& arrival) = nullptr;

  /// Data of a whole message may be read with that of others (read_late_messages).
  bool may_be_late = false;

  /// The sender may write the data itself; whoever takes the memory away takes that back.
  bool may_be_offered = false;

  /// uTofu: the last cache line of the data is written last (guide, 6.1.3.1).
  bool ends_with_last_line = false;
};

/// A message between its first packet and its completion.
struct Arrival : Placement {
  ArrivalMode mode = ArrivalMode::kIdle;
  bool is_cut = false;                     ///< The rest never comes, and `mlength` is what has come.
  std::uint32_t promised_events = 0;       ///< Places promised in the event queue of the portal table entry.
  UnexpectedHeader* unexpected = nullptr;  ///< It matched in the overflow list and its header is kept.
  std::uint64_t received = 0;              ///< Bytes of payload seen so far.
  const IncomingHooks* hooks = nullptr;    ///< Not nullptr while kDeliver.
  PacketHeader header{};                   ///< Of the first packet. All else fits the line in front of it.
};
static_assert(sizeof(Arrival) == 2 * sizeof(PacketHeader) && std::is_trivially_copyable_v<Arrival>);

}  // namespace portofu
