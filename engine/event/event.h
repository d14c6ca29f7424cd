#pragma once
// The full event: what the engine tells an application about one operation. Values and field names are the spec's, and
// it begins as the event of portals4.h does; lib/portals4 asserts both, and hands it over.

#include <cstddef>
#include <cstdint>

#include "engine/topology/process_id.h"

namespace portofu {

/// Kinds of full events, as wide as in portals4.h. @spec Portals 4.3, 3.13.1
enum class EventKind : std::uint32_t {
  kGet = 0,
  kGetOverflow = 1,
  kPut = 2,
  kPutOverflow = 3,
  kAtomic = 4,
  kAtomicOverflow = 5,
  kFetchAtomic = 6,
  kFetchAtomicOverflow = 7,
  kReply = 8,
  kSend = 9,
  kAck = 10,
  kPtDisabled = 11,
  kLink = 12,
  kAutoUnlink = 13,
  kAutoFree = 14,
  kSearch = 15,
  kError = 16,
};

/// The overflow event that belongs to a communication event of the target.
constexpr EventKind overflow_kind(EventKind kind) {
  return static_cast<EventKind>(static_cast<std::uint32_t>(kind) + 1);
}

/// The communication event that belongs to an overflow event.
constexpr EventKind told_as_new(EventKind overflow) {
  return static_cast<EventKind>(static_cast<std::uint32_t>(overflow) - 1);
}

/// Outcome of an operation. @spec Portals 4.3, 3.13.3
enum class NiFail : std::uint8_t {
  kOk = 0,
  kUndeliverable = 1,
  kPtDisabled = 2,
  kDropped = 3,
  kPermViolation = 4,
  kOpViolation = 5,
  kSegv = 6,
  kNoMatch = 7,
  kBadStadd = 8,    ///< uTofu only: the STADD names no registered memory.
  kBadLength = 9,   ///< uTofu only: the range leaves its registered memory.
  kTruncated = 10,  ///< libfabric only, at the target: the message was longer than the buffer.
  kCanceled = 11,   ///< libfabric only, at the target: the application wants no message any more.
};
inline constexpr std::uint8_t kNiFailCount = 8;       ///< Of Portals.
inline constexpr std::uint8_t kTofuNiFailCount = 10;  ///< Of uTofu.

/// Which list of a portal table entry. @spec Portals 4.3, 3.11.2
enum class ListKind : std::uint8_t { kPriority = 0, kOverflow = 1 };

/// One full event. Fields that a kind does not define (table 3-3) are zero.
///
/// The first kEventHeadBytes are laid out as in ptl_event_t. The numbers behind them are small ones that have 4 bytes
/// each there: an entry of a queue would be a fifth longer with them.
struct Event {
  std::byte* start = nullptr;          ///< First byte written or read at the target; in the overflow entry on overflow.
  void* user_ptr = nullptr;            ///< From the local call that the event belongs to.
  std::uint64_t hdr_data = 0;          ///< From the initiator of a put or atomic.
  std::uint64_t match_bits = 0;        ///< From the initiator; 0 on a non-matching interface.
  std::uint64_t rlength = 0;           ///< Bytes asked for.
  std::uint64_t mlength = 0;           ///< Bytes moved.
  std::uint64_t remote_offset = 0;     ///< Bytes. Target: asked for. Initiator: used by the target.
  std::uint32_t uid = 0;               ///< Of the initiator.
  ProcessId initiator;                 ///< Physical id; on a logical interface the rank stands in `nid`.
  EventKind type = EventKind::kError;  ///< Which fields are defined. The last that is as in ptl_event_t.
  ListKind ptl_list = ListKind::kPriority;
  NiFail ni_fail_type = NiFail::kOk;
  std::uint8_t atomic_operation = 0;  ///< AtomicOperation of an atomic.
  std::uint8_t atomic_type = 0;       ///< AtomicType of an atomic.
  std::uint16_t pt_index = 0;         ///< Where the message arrived.
  bool has_data = false;              ///< libfabric: `hdr_data` is news for the application.
};
static_assert(sizeof(Event) == 80);

/// What an event shares with ptl_event_t.
inline constexpr std::size_t kEventHeadBytes = offsetof(Event, ptl_list);

}  // namespace portofu
