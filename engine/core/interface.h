#pragma once
// One network interface of a process, of Portals or of libfabric: a portal table, the objects behind its handles, its
// map and its status registers. Changed on duty only.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "engine/core/handle_table.h"
#include "engine/core/rank_map.h"
#include "engine/descriptor/descriptor.h"
#include "engine/event/counting_event.h"
#include "engine/event/event_queue.h"
#include "engine/match/match_list.h"
#include "engine/match/unexpected_list.h"
#include "engine/memory/list_entry.h"
#include "engine/memory/memory_descriptor.h"
#include "engine/memory/message_memory.h"

namespace portofu {

/// Limits of an interface; field names of ptl_ni_limits_t. @spec Portals 4.3, 3.6.1
struct Limits {
  std::uint32_t max_entries;
  std::uint32_t max_unexpected_headers;
  std::uint32_t max_mds;
  std::uint32_t max_cts;
  std::uint32_t max_eqs;
  std::uint32_t max_pt_index;
  std::uint32_t max_iovecs;
  std::uint32_t max_list_size;
  std::uint32_t max_triggered_ops;
  std::uint64_t max_msg_size;
  std::uint64_t max_atomic_size;
  std::uint64_t max_fetch_atomic_size;
  std::uint64_t max_waw_ordered_size;
  std::uint64_t max_war_ordered_size;
  std::uint64_t max_volatile_size;
};

/// Logical interfaces of Portals.
inline constexpr std::uint32_t kPortalsInterfaceCount = 4;

/// All interfaces: those of Portals, and that of the endpoints of libfabric.
inline constexpr std::uint32_t kInterfaceCount = 5;
static_assert(kFabricInterface == kPortalsInterfaceCount);

/// Most portal table entries of an interface, and so the largest index plus one.
inline constexpr std::uint32_t kPortalTableSize = 256;

/// Most bytes of an atomic: it always travels in one packet, on every wire.
inline constexpr std::uint64_t kMaxAtomicBytes = 4096;

/// Up to here a get's data is read when the get is matched, even if the reply cannot leave yet (2.7.1).
inline constexpr std::uint64_t kMaxWarOrderedBytes = 4096;

/// What an interface gives when nothing is asked for, and the most that it gives.
inline constexpr Limits kDefaultLimits = {
    .max_entries = 1'000'000,
    .max_unexpected_headers = 1'000'000,
    .max_mds = 1'000'000,
    .max_cts = 1'000'000,
    .max_eqs = 65'536,
    .max_pt_index = kPortalTableSize - 1,
    .max_iovecs = 1'048'576,
    .max_list_size = 1'000'000,
    .max_triggered_ops = 1'000'000,
    .max_msg_size = std::uint64_t{1} << 47,
    .max_atomic_size = kMaxAtomicBytes,
    .max_fetch_atomic_size = kMaxAtomicBytes,
    .max_waw_ordered_size = std::uint64_t{1} << 47,
    .max_war_ordered_size = kMaxWarOrderedBytes,
    .max_volatile_size = 4096,
};

/// Why a portal table entry is disabled.
enum class DisabledBy : std::uint8_t {
  kProgram,      ///< It was told so, or allocated so.
  kNoEntry,      ///< Flow control: a message matched nothing.
  kNoResources,  ///< Flow control: the event queue was full, or there was no room for an unexpected header.
};

/// @spec Portals 4.3, 3.7
struct PortalTableEntry {
  MatchList priority;
  MatchList overflow;
  UnexpectedList unexpected;
  UnexpectedList held;            ///< Headers that somebody has claimed, and nobody taken yet (hold_header).
  Handle eq_handle = 0;           ///< For the target's full events; 0 for none.
  std::uint32_t in_progress = 0;  ///< Messages matched and not complete.
  bool flow_control = false;      ///< PTL_PT_FLOWCTRL.
  bool enabled = true;            ///< False: messages are refused.
  std::uint32_t drains = 0;       ///< Calls that wait for those messages: nobody enables it before they go on.
  DisabledBy disabled_by = DisabledBy::kProgram;  ///< Unless enabled.
  std::uint32_t publications = 0;                 ///< Linked entries that are published or withdrawn.
  std::uint32_t answers_to_refusal = 0;  ///< Answers before an entry is tried again that could not be published.
  std::uint64_t disabled_since_ns = 0;   ///< For onlookers; 0: since it was allocated.
  std::uint64_t missed_searches = 0;     ///< For onlookers: searches that found nothing.
  MatchCriteria missed;                  ///< Of the last one of them.

  MatchList& list(ListKind kind) { return kind == ListKind::kPriority ? priority : overflow; }
  bool has_entries() const { return !priority.empty() || !overflow.empty(); }

  /// A search has found nothing.
  void miss(const MatchCriteria& criteria) {
    ++missed_searches;
    missed = criteria;
  }

  void disable(DisabledBy by, std::uint64_t now_ns) {
    if (!enabled) return;
    enabled = false;
    disabled_by = by;
    disabled_since_ns = now_ns;
  }
};

/// Where what is told of a message at a shared portal table entry goes: that depends on the index it came by.
struct Inlet {
  Handle eq_handle = 0;
  Handle ct_handle = 0;
  bool tells_all = false;  ///< Of each success, whatever its entry says (kEntryInletDecides).
};
using Inlets = std::array<Inlet, kPortalTableSize>;

/// An answer that is due when there is memory again (kEntryAnswersLate).
struct LateAnswer {
  ProcessId peer;
  std::uint32_t operation_id = 0;
};

/// Why a message was refused at a portal table entry, for onlookers.
enum class RefusedFor : std::uint8_t {
  kNothing,
  kNoPortal,
  kDisabled,
  kNoMatch,
  kPermission,
  kOperation,
  kNotAligned,  ///< The memory of an atomic is not aligned for its datatype.
};

/// The message that was refused last.
struct RefusedMessage {
  RefusedFor reason = RefusedFor::kNothing;  ///< kNothing: there was none.
  std::uint16_t pt_index = 0;                ///< Where it wanted to go, with `interface_index`.
  std::uint32_t pid = 0;                     ///< With `nid`: the initiator, as matching shows it.
  std::uint32_t nid = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t at_ns = 0;
  std::uint64_t length = 0;  ///< Bytes that the initiator asked for.
  std::uint8_t interface_index = 0;
  std::uint64_t offset = 0;  ///< Into an entry that leaves it to the initiator.
};

/// What did not reach its target, for onlookers: of a put that asks for no ACK nobody else is told.
struct UndeliveredMessages {
  ProcessId target{};       ///< Of the last one.
  std::uint64_t at_ns = 0;  ///< When that became known.
  std::uint64_t count = 0;  ///< 0: there was none.
};

/// Status registers; the values of ptl_sr_index_t. @spec Portals 4.3, 3.3.7
enum class StatusRegister : std::uint8_t { kDropCount = 0, kPermissionViolations = 1, kOperationViolations = 2 };
inline constexpr std::size_t kStatusRegisterCount = 3;

struct Interface {
  explicit Interface(std::uint32_t interface_index, const Limits& granted);

  std::uint32_t index;  ///< 0..3, Portals: bit 0 is matching, bit 1 is logical. kFabricInterface: matching, physical.
  Limits limits;        ///< What was granted; constant.
  HandleTable<MemoryDescriptor> mds;
  HandleTable<ListEntry> entries;
  HandleTable<EventQueue> eqs;
  HandleTable<CountingEvent> cts;
  SpareHeaders spare_headers;    ///< Outlives the lists.
  MessageMemory message_memory;  ///< What messages lie in that nobody has taken (kEntryOwnMemory). Outlives the lists.
  /// nullptr: not allocated. Several indices of libfabric may share one, whose entries name the first.
  std::array<std::shared_ptr<PortalTableEntry>, kPortalTableSize> portal_table;
  std::unique_ptr<Inlets> inlets;       ///< By index, for shared portal table entries; nullptr: there are none.
  std::deque<LateAnswer> late_answers;  ///< In the order of the messages.
  RankMap map;                          ///< Logical interfaces only.
  std::uint32_t unexpected_count = 0;   ///< Headers in all unexpected lists, claimed ones included.
  std::uint32_t triggered_count = 0;    ///< Triggered operations that wait.
  std::uint32_t outstanding = 0;        ///< Operations started and not complete.
  std::array<std::atomic<std::int64_t>, kStatusRegisterCount>
      status_registers{};       ///< Writer: duty. Readers: any thread.
  RefusedMessage last_refused;  ///< For onlookers.
  UndeliveredMessages undelivered;
  /// Somebody waits for a message, which may come behind late answers: these are given whatever unexpected messages
  /// take, until they take less.
  bool is_awaited = false;
  bool is_slept_at = false;  ///< The same while it sleeps, and only events wake it.

  bool is_matching() const { return (index & (1u | kFabricInterface)) != 0; }
  bool is_logical() const { return (index & 2u) != 0; }
  bool is_fabric() const { return index == kFabricInterface; }
  PortalTableEntry* portal(std::uint32_t pt_index) const {
    return pt_index < kPortalTableSize ? portal_table[pt_index].get() : nullptr;
  }
  /// Where to tell of a message that came by some index. @param eq_handle  of the portal table entry
  Handle eq_for(Handle eq_handle, std::uint16_t pt_index) const {
    if (eq_handle != 0) [[likely]]
      return eq_handle;
    return inlets != nullptr ? (*inlets)[pt_index].eq_handle : 0;
  }
  Handle ct_for(Handle ct_handle, std::uint16_t pt_index) const {
    if (ct_handle != 0) [[likely]]
      return ct_handle;
    return inlets != nullptr ? (*inlets)[pt_index].ct_handle : 0;
  }
  /// Whether a success at an entry is told to nobody.
  /// @param pt_index  by which the message came
  bool is_quiet(std::uint32_t entry_options, std::uint16_t pt_index) const {
    if ((entry_options & kEntryEventSuccessDisable) == 0) return false;
    return (entry_options & kEntryInletDecides) == 0 || inlets == nullptr || !(*inlets)[pt_index].tells_all;
  }
  /// Memory that unexpected messages take.
  std::uint64_t unexpected_bytes() const {
    return message_memory.bytes() + std::uint64_t{unexpected_count} * sizeof(UnexpectedHeader);
  }
  void count_status(StatusRegister which) {
    auto& value = status_registers[static_cast<std::size_t>(which)];
    value.store(value.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

inline Interface::Interface(std::uint32_t interface_index, const Limits& granted)
    : index(interface_index),
      limits(granted),
      mds(HandleKind::kMemoryDescriptor, interface_index),
      entries(HandleKind::kListEntry, interface_index),
      eqs(HandleKind::kEventQueue, interface_index),
      cts(HandleKind::kCountingEvent, interface_index) {
  mds.set_limit(granted.max_mds);
  entries.set_limit(granted.max_entries);
  eqs.set_limit(granted.max_eqs);
  cts.set_limit(granted.max_cts);
}

}  // namespace portofu
