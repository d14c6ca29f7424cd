#pragma once
// Memory that the processes of a job in virtual time share with the one that orders their time (lib/tools/ptl_sim): a
// header, and a page for each rank. Neither side believes the other: counts are compared, and places are bounded.
//
// Who runs when. At most one rank has the turn. It gives the turn back when it looks for something and finds nothing,
// and when its clock has gone past what it was told (`horizon_ps`). What arrives at a rank is handed to its NIC, a
// thread of the library, at the time of its arrival, whatever the rank does; both are futex words of the rank's page.
// The coordinator sleeps at `VirtualHeader::bell`, which whoever has news for it raises.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/wire/header.h"

namespace portofu {

inline constexpr std::uint64_t kVirtualMagic = 0x314d49534f545250;  // "PRTOSIM1"
inline constexpr std::uint32_t kVirtualVersion = 7;
inline constexpr std::uint32_t kMostVirtualRanks = 4096;
inline constexpr std::uint32_t kReportCount = 256;  ///< A power of two.
inline constexpr std::uint32_t kSpanCount = 256;    ///< A power of two.
inline constexpr std::uint64_t kNeverPs = UINT64_MAX;
/// No time is later, 213 days: sums of a few of them do not overflow.
inline constexpr std::uint64_t kLatestPs = UINT64_MAX / 4;

/// With this signal the coordinator freezes a thread that polls its memory. Whoever does not take part ignores it.
inline constexpr int kFreezeSignal = 23;  // SIGURG.

/// What the time between calls costs.
enum class VirtualCompute : std::uint32_t {
  kNone,   ///< Nothing.
  kFixed,  ///< The same for every call that costs time.
  kCpu,    ///< The CPU time that the thread has used, times a factor.
};

/// What a call sends.
enum class VirtualCall : std::uint8_t { kPut, kGet, kAtomic, kBarrier };
inline constexpr std::size_t kVirtualCallCount = 4;

/// What a rank's time has gone into.
enum class VirtualSpent : std::uint8_t {
  kPut,  ///< In calls that send, as VirtualCall.
  kGet,
  kAtomic,
  kBarrier,
  kLook,     ///< In calls that look for something, but for waiting.
  kWait,     ///< Waiting in a call.
  kMemory,   ///< Polling memory.
  kCompute,  ///< Between calls.
};
inline constexpr std::size_t kVirtualSpentCount = 8;

/// What a rank does.
enum class VirtualState : std::uint32_t {
  kAway,     ///< It is somewhere else: not in virtual time yet, or asleep in the kernel. It holds nobody up.
  kRunning,  ///< It has the turn.
  kReady,    ///< It wants to go on at its `clock_ps`.
  kWaiting,  ///< It goes on when something arrives, or at `until_ps`.
  kPolling,  ///< The same of one that would look again and again until then.
  kLeaving,  ///< It goes on when all that it has sent has arrived.
  kAsked,    ///< It has not called for long: whether it polls its memory. Written by the coordinator.
  kFrozen,   ///< It does: it goes on when something arrives. Written by its handler of kFreezeSignal.
  kGone,     ///< It has left virtual time.
  kRetired,  ///< The same, but its NIC goes on.
};

/// A message that a rank has sent.
struct VirtualReport {
  std::uint64_t number;       ///< Of the message, counted by its sender.
  std::uint64_t time_ps;      ///< When it left.
  std::uint64_t bytes;        ///< Payload of the whole message.
  std::uint32_t nid;          ///< Of its target,
  std::uint32_t pid;          ///< and PID.
  std::uint32_t interface;    ///< TNI of the sender, or 0.
  std::uint8_t type;          ///< PacketType.
  std::uint8_t cause;         ///< PacketType of what it answers or was triggered by; 0: a call.
  std::uint8_t to_interface;  ///< TNI of the target, or 0.
  std::uint8_t in_command;    ///< 1: the payload came with the call, and is not read from memory.
  std::uint32_t departure;    ///< departure_of: its sender wants to know when it has left the interface.
  std::uint32_t source_nid;   ///< Of its sender,
  std::uint32_t source_pid;   ///< and PID: another process may be the rank by now.
  std::uint32_t source_life;  ///< VirtualPage::life of its sender.
};

/// A word of Portofu's own, by which gates tell each other how a circuit stands. No machine sends it, so it takes no
/// time. What passes a gate has bytes.
constexpr bool is_own_word(PacketType type, std::uint64_t bytes) { return type == PacketType::kTofuGate && bytes == 0; }

/// A stretch of a rank's time. Each begins where the one before it has ended.
struct VirtualSpan {
  std::uint64_t from_ps;
  std::uint64_t to_ps;
  std::uint8_t what;      ///< VirtualSpent.
  std::uint8_t is_empty;  ///< 1: kLook that has found nothing.
  std::uint16_t reserved;
  std::uint32_t reserved_too;
};

/// What the NIC of a rank is to take.
struct VirtualDelivery {
  std::uint64_t number;  ///< VirtualReport::number of its sender.
  std::uint64_t time_ps;
  std::uint32_t source_nid;
  std::uint32_t source_pid;
  std::uint32_t interface;  ///< VirtualReport::interface.
  std::uint32_t source_rank;
  std::uint32_t to_interface;
  std::uint32_t departure = 0;    ///< Not 0: a message of the rank's own has left, VirtualReport::departure.
  std::uint32_t type = 0;         ///< Its PacketType.
  std::uint32_t is_lost = 0;      ///< 1: the process named as source has left, and has not taken what it was sent.
  std::uint32_t source_life = 0;  ///< VirtualReport::source_life.
};

/// Of one rank. Writers: the rank, but where the coordinator is named.
struct VirtualPage {
  // ---- Writer: the coordinator
  alignas(128) std::atomic<std::uint32_t> turn;  ///< Futex word: number of turns given.
  std::atomic<std::uint32_t> delivery_count;     ///< Number of deliveries.
  std::atomic<std::uint32_t> nic_bell;           ///< Futex word, behind `delivery_count`; the rank raises it, too.
  std::atomic<std::uint32_t> is_quiet;           ///< With a turn: nothing is under way, and nobody waits for a time.
  std::atomic<std::uint64_t> granted_ps;         ///< The clock with which the turn begins.
  std::atomic<std::uint64_t> horizon_ps;         ///< Something else happens then: the turn ends.
  VirtualDelivery delivery;                      ///< The last of `delivery_count`.
  std::atomic<std::uint32_t> reports_taken;      ///< Number of reports, mod 2^32.
  std::atomic<std::uint32_t> spans_taken;        ///< Number of spans, mod 2^32.

  // ---- Writer: the rank; `state` also the coordinator
  alignas(128) std::atomic<std::uint32_t> state;  ///< VirtualState. Futex word of who is kFrozen.
  std::atomic<std::uint32_t> deliveries_taken;
  std::atomic<std::uint64_t> clock_ps;
  std::atomic<std::uint64_t> until_ps;
  std::atomic<std::uint64_t> polled_cpu_ns;  ///< CPU time of the thread when it answered that it is in no call.
  std::atomic<std::uint32_t> process;        ///< 0: no process has opened it yet.
  std::atomic<std::uint32_t> thread;         ///< The thread that calls.
  std::atomic<std::uint32_t> is_mpi;         ///< 1: MPI calls, and the program mostly does not.
  std::atomic<std::uint32_t> life;           ///< How often it was opened: programs may be a rank one after the other.
  std::atomic<std::uint32_t> nid;
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint64_t> spent_ps[kVirtualSpentCount];  ///< By VirtualSpent.
  std::atomic<std::uint64_t> count[kVirtualSpentCount];     ///< How often.
  std::atomic<std::uint64_t> next_number;                   ///< Messages sent, over all engines of the rank.
  std::atomic<std::uint32_t> reports_given;                 ///< Number of reports, mod 2^32.
  VirtualReport reports[kReportCount];
  std::atomic<std::uint32_t> spans_given;  ///< Number of spans, mod 2^32; none if VirtualHeader::keeps_spans is 0.
  VirtualSpan spans[kSpanCount];
};

struct VirtualHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t page_bytes;  ///< sizeof(VirtualPage).
  std::uint32_t rank_count;
  std::uint32_t coordinator;                     ///< Its process.
  std::uint32_t compute;                         ///< VirtualCompute.
  std::uint32_t keeps_spans;                     ///< 1: ranks tell what each stretch of their time has gone into.
  std::uint64_t compute_word;                    ///< kFixed: picoseconds. kCpu: the factor in thousandths.
  std::uint64_t call_ps[kVirtualCallCount];      ///< What a call costs that sends, by VirtualCall.
  std::uint64_t poll_ps;                         ///< What a call costs that looks for something and finds it.
  std::uint64_t empty_poll_ps;                   ///< The same if it finds nothing.
  alignas(128) std::atomic<std::uint32_t> bell;  ///< Futex word.
};

static_assert(std::is_standard_layout_v<VirtualHeader> && std::is_standard_layout_v<VirtualPage>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// Bytes of the file for so many ranks.
constexpr std::size_t virtual_file_bytes(std::uint32_t ranks) {
  return sizeof(VirtualHeader) + std::size_t{ranks} * sizeof(VirtualPage);
}

inline VirtualPage* virtual_page(VirtualHeader* header, std::uint32_t rank) {
  return reinterpret_cast<VirtualPage*>(reinterpret_cast<std::byte*>(header) + sizeof(VirtualHeader)) + rank;
}

/// Sleeps while the word is as seen; ends for no reason, too. @param timeout_ns  negative: ever
/// @return false if the time is over
bool virtual_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t timeout_ns);
void virtual_wake(std::atomic<std::uint32_t>& word);

/// For whoever has news for the coordinator.
void ring_coordinator(VirtualHeader& header);

}  // namespace portofu
