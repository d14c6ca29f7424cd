#pragma once
// A list entry (LE or ME) and an unexpected header: the target's side of a transfer.

#include <array>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "engine/descriptor/handle.h"
#include "engine/event/event.h"
#include "engine/match/match_entry.h"
#include "engine/match/unexpected_entry.h"
#include "engine/memory/memory_segment.h"

namespace portofu {

/// Option bits of an LE or ME; the values of portals4.h.
inline constexpr std::uint32_t kEntryOpPut = 1u << 10;
inline constexpr std::uint32_t kEntryOpGet = 1u << 11;
inline constexpr std::uint32_t kEntryUseOnce = 1u << 12;
inline constexpr std::uint32_t kEntryAckDisable = 1u << 13;
inline constexpr std::uint32_t kEntryUnexpectedHdrDisable = 1u << 14;
inline constexpr std::uint32_t kEntryEventLinkDisable = 1u << 16;
inline constexpr std::uint32_t kEntryEventCommDisable = 1u << 17;
inline constexpr std::uint32_t kEntryEventFlowctrlDisable = 1u << 18;
inline constexpr std::uint32_t kEntryEventSuccessDisable = 1u << 19;
inline constexpr std::uint32_t kEntryEventOverDisable = 1u << 20;
inline constexpr std::uint32_t kEntryEventUnlinkDisable = 1u << 21;
inline constexpr std::uint32_t kEntryEventCtComm = 1u << 22;
inline constexpr std::uint32_t kEntryEventCtOverflow = 1u << 23;
inline constexpr std::uint32_t kEntryEventCtBytes = 1u << 24;
inline constexpr std::uint32_t kEntryManageLocal = 1u << 25;
inline constexpr std::uint32_t kEntryNoTruncate = 1u << 26;
inline constexpr std::uint32_t kEntryMayAlign = 1u << 27;
inline constexpr std::uint32_t kEntryLocalIncUhRlength = 1u << 28;

/// Option bits beside those of portals4.h, for libfabric.
/// Beside kEntryEventSuccessDisable: a success is told after all where all are told (Inlet::tells_all).
inline constexpr std::uint32_t kEntryInletDecides = 1u << 1;
/// Each message gets memory of its own, as much as it needs; the entry's segment is the whole address space.
inline constexpr std::uint32_t kEntryOwnMemory = 1u << 29;
/// Unexpected messages are copied into the entry, and told as if they had arrived now. A message that does not fit
/// counts, and is told, as a failure.
inline constexpr std::uint32_t kEntryTakesData = 1u << 30;
/// Messages are answered when the unexpected messages of the interface take less memory than they may.
inline constexpr std::uint32_t kEntryAnswersLate = 1u << 31;

/// Any usage ID may access the entry.
inline constexpr std::uint32_t kUidAny = UINT32_MAX;

/// Where a list entry stands in its life.
enum class EntryState : std::uint8_t {
  kLinked,     ///< In its list; messages may match.
  kUnlinking,  ///< Left its list by itself; messages that matched it are still under way.
  kUnlinked,   ///< AUTO_UNLINK was told; unexpected headers still refer to it.
  kGone,       ///< Left its list by itself and nothing refers to it; only its stale handle is known (3.11.3).
};

/// Whether peers may use an entry themselves. @see target/published_entry.h
enum class Publication : std::uint8_t {
  kNever,
  kPossible,   ///< They may be told.
  kPublished,  ///< They have been told.
  kWithdrawn,  ///< Nobody begins any more; who has begun may still be inside.
};

/// @spec Portals 4.3, 3.11 and 3.12
struct ListEntry : MatchEntry {
  MemorySegment segment;                ///< The memory.
  std::uint64_t local_offset = 0;       ///< MANAGE_LOCAL: bytes used so far.
  std::uint64_t origin = 0;             ///< Remote offset that means the first byte; 0 but for regions of libfabric.
  std::uint64_t min_free = 0;           ///< MANAGE_LOCAL: unlinks itself when fewer bytes are left; 0 for never.
  void* user_ptr = nullptr;             ///< For its events.
  std::uint32_t options = 0;            ///< kEntry* bits.
  std::uint32_t uid = kUidAny;          ///< Who may access it.
  Handle handle = 0;                    ///< Its own.
  Handle ct_handle = 0;                 ///< For counts; 0 for none.
  Handle read_ct_handle = 0;            ///< For counts of what reads or fetches; the same but for libfabric.
  std::uint32_t pending = 0;            ///< Messages matched, or whose headers it claimed, and not complete.
  std::uint32_t unexpected_count = 0;   ///< Overflow list: headers that refer to it.
  std::uint16_t pt_index = 0;           ///< Portal table entry.
  ListKind list = ListKind::kPriority;  ///< Which list.
  EntryState state = EntryState::kGone;
  Publication publication = Publication::kNever;  ///< Whether peers use it themselves.
  bool canceled = false;                          ///< cancel_entry: its end is told as a failure.
  bool is_unlink_promised = false;  ///< Its event queue has promised a place to AUTO_UNLINK, under flow control.
  bool counts_changes = false;  ///< Whatever changes its memory counts at `ct_handle`; what fetches, too, counts twice.
};

/// Who takes an unexpected header.
enum class ClaimedBy : std::uint8_t {
  kEntry,             ///< An entry that was appended, whose `pending` counts the claim.
  kUseOnce,           ///< The same, but nothing of it is kept: it is used up with a message that is complete.
  kSearch,            ///< A use-once search.
  kPersistentSearch,  ///< Its end is told behind the last of its claims.
  kNobody,            ///< Yet (hold_header).
};

/// An append or a search takes an unexpected header that it matched. What is due then is told when the message is
/// complete (2.5).
struct OverflowClaim {
  ClaimedBy by = ClaimedBy::kNobody;
  std::uint32_t options = 0;  ///< Of the appended or searching entry, like the two below.
  void* user_ptr = nullptr;
  Handle ct_handle = 0;        ///< 0 for none.
  ListEntry* entry = nullptr;  ///< kEntry.
  std::uint64_t offset = 0;    ///< kEntryTakesData: where in the entry the data goes.
  std::uint64_t room = 0;      ///< Bytes there.
};

/// What an overflow event tells of a message, beside its key: one line. Names as in Event.
struct alignas(64) UnexpectedMessage {
  ListEntry* entry = nullptr;  ///< Where it was delivered.
  std::byte* start = nullptr;
  std::uint64_t hdr_data = 0;
  std::uint64_t rlength = 0;
  std::uint64_t mlength = 0;
  std::uint64_t remote_offset = 0;
  std::uint32_t uid = 0;
  EventKind type = EventKind::kError;  ///< Of the overflow event.
  NiFail ni_fail_type = NiFail::kOk;
  std::uint8_t atomic_operation = 0;
  std::uint8_t atomic_type = 0;
  bool complete = false;  ///< All data is in place.
  bool claimed = false;   ///< Taken while incomplete, or held; no longer in the list.
  bool has_data = false;
  std::uint16_t pt_index = 0;  ///< Where it arrived.
};
static_assert(sizeof(UnexpectedMessage) == 64);

/// A message that went into the overflow list and that nobody has taken yet, or is still to be told of. While a
/// persistent search has claimed it, `arrival_links` are a ring of such headers of that search. @spec Portals 4.3, 2.5
struct alignas(128) UnexpectedHeader : UnexpectedMessage, UnexpectedEntry {
  UnexpectedHeader() {}  // NOLINT: `claim` stays as it is.

  /// A persistent search claims this one, which is in no list, too.
  /// @param other  that it has claimed, and that is not complete; nullptr: there is none
  void join_search(UnexpectedHeader* other) {
    arrival_links = {this, this};
    if (other == nullptr) return;
    arrival_links = {other, other->arrival_links.prev};
    arrival_links.prev->arrival_links.next = other->arrival_links.prev = this;
  }
  /// @return whether the search has no more of them
  bool leave_search() {
    arrival_links.next->arrival_links.prev = arrival_links.prev;
    arrival_links.prev->arrival_links.next = arrival_links.next;
    return arrival_links.next == this;
  }

  union {
    OverflowClaim claim;  ///< Meaningful while `claimed`.
  };
};

/// Where headers come from: blocks in which they lie close together, kept to the end. Giving one back touches no line
/// but its own.
class SpareHeaders {
 public:
  SpareHeaders() = default;
  SpareHeaders(const SpareHeaders&) = delete;
  SpareHeaders& operator=(const SpareHeaders&) = delete;
  ~SpareHeaders() {
    while (blocks_ != nullptr) delete std::exchange(blocks_, blocks_->next);
  }

  /// @return a header as new; nullptr if there is no memory
  UnexpectedHeader* take() {
    if (first_ == nullptr && !add_block()) return nullptr;
    UnexpectedHeader* header = first_;
    first_ = static_cast<UnexpectedHeader*>(header->arrival_links.next);
    return new (header) UnexpectedHeader;
  }
  /// @param header  from take; in no list
  void give(UnexpectedHeader* header) {
    header->arrival_links.next = first_;
    first_ = header;
  }

 private:
  struct Block {
    std::array<UnexpectedHeader, 64> headers;
    Block* next = nullptr;
  };

  bool add_block() {
    Block* block = new (std::nothrow) Block;
    if (block == nullptr) return false;
    block->next = std::exchange(blocks_, block);
    for (auto header = block->headers.rbegin(); header != block->headers.rend(); ++header) give(&*header);
    return true;
  }

  UnexpectedHeader* first_ = nullptr;  ///< Linked by arrival_links.next.
  Block* blocks_ = nullptr;
};
static_assert(std::is_trivially_destructible_v<UnexpectedHeader>);

}  // namespace portofu
