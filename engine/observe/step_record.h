#pragma once
// What a recorder writes down, in memory that any process may read: one record a step, in a ring behind a head that
// says whose they are. A file of all steps has a log behind the ring, into which the ring goes each time that it is
// full.
//
// When you add a step: (1) add it to Step in front of kCount, (2) say here which fields it uses, (3) add its name to
// step_name and its probe to recorder.cpp. When you change a layout: raise kStepFileVersion.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace portofu {

/// What happened. `kind`, `amount`, `id` and `more` are those of StepRecord; all but the first and the last group are
/// of the lane, whichever thread has its duty.
enum class Step : std::uint8_t {
  kNone,  ///< Nothing: a record that was never written.

  // Of a thread, whose number is `nid`.
  kCall,     ///< A call of the API begins. `kind`: ApiCall; `amount`: bytes.
  kReturn,   ///< It ends.
  kWait,     ///< A call begins to wait. `kind`: WaitKind, or kWaitsByPolls.
  kWaitEnd,  ///< It waits no longer. kWaitsByPolls: `amount` is how many looks found nothing.
  kSleep,    ///< The thread goes to sleep in the kernel.
  kWake,     ///< It runs again.

  // Of a packet or message from or to the process `nid`, `pid`.
  kPacketOut,  ///< `kind`: PacketType; `amount`: bytes of the message; `id`: operation; `more`: fingerprint.
  kPacketIn,   ///< The same, equal in all fields.
  kMatch,      ///< `kind`: PacketType; `amount`: mlength; `id`: lower match bits; `more`: depth, kUnexpected.
  kDeliver,    ///< All data of the message is in place. `kind`: PacketType; `amount`: mlength; `id`: operation.
  kDirect,     ///< Done in memory of the process without a packet. `kind`: PacketType; `amount`: bytes.

  // Of an object of this process.
  kEvent,    ///< `kind`: EventKind; `amount`: mlength; `id`: handle of the event queue; `more`: ni_fail_type.
  kNotice,   ///< Of an MRQ. `kind`: NoticeKind; `id`: lower half of the VCQ ID; `more`: edata.
  kCount,    ///< `amount`: successes now; `id`: handle of the counter, or of the VCQ in session mode.
  kTrigger,  ///< An operation that waited starts. `kind`: PacketType; `amount`: threshold; `id`: as of the count.

  kCountOfSteps  ///< Not a step: how many there are.
};

inline constexpr std::size_t kStepCount = static_cast<std::size_t>(Step::kCountOfSteps);

/// StepRecord::kind of kWait beside values of WaitKind: the application looks again and again by itself. Such a wait
/// lasts from its first look that found nothing to the first that found something, or to another call.
inline constexpr std::uint8_t kWaitsByPolls = 255;

/// StepRecord::more of kMatch: the entry is of the overflow list. Below it: entries that were passed over, at most.
inline constexpr std::uint32_t kUnexpected = 1u << 31;

/// Calls that have no PacketType of their own; those that have one are named by it.
enum class ApiCall : std::uint8_t {
  kAppend = 128,
  kPostToq = 129,
  kFabric = 160,  ///< And above: of libfabric, this plus its WordKind (lib/libfabric/word.h).
};
/// StepRecord::more of kCall: the operation waits for a counter (PtlTriggeredPut and its kind).
inline constexpr std::uint32_t kCallArms = 1;

/// One step. Written whole before StepFileHead::count is raised.
struct StepRecord {
  std::uint64_t ticks;   ///< See StepFileHead.
  std::uint64_t amount;  ///< Bytes, or a count.
  std::uint32_t nid;     ///< Of the other process, or number of the thread in the kernel.
  std::uint32_t id;
  std::uint32_t more;
  std::uint16_t pid;  ///< Of the other process.
  Step step;
  std::uint8_t kind;
};
static_assert(sizeof(StepRecord) == 32 && std::is_trivially_copyable_v<StepRecord>);

inline constexpr std::uint64_t kStepFileMagic = 0x73706574736f500aull;  ///< "\nPosteps", little endian.
inline constexpr std::uint32_t kStepFileVersion = 3;

/// The first page of a file of steps; the ring follows, and the log. Writer: the owner, all but the atomics before the
/// file has its name. Readers: anybody, who copies and checks.
struct StepFileHead {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t record_bytes;  ///< sizeof(StepRecord).
  std::uint64_t capacity;      ///< Records of the ring, in which number n lies at n modulo this.
  std::uint64_t log_offset;    ///< Where in the file the log of records begins (step_log.h); 0: there is none.
  std::uint32_t nid;           ///< ProcessId of the owner.
  std::uint32_t pid;
  std::uint32_t os_pid;  ///< The owner in the kernel's numbering.
  std::int32_t rank;     ///< As the launcher says; -1: it says none.
  /// The same moment by the clock of records and by CLOCK_MONOTONIC; with a later pair this gives the rate. All
  /// processes of a machine have one clock, the ticks of its processors, or CLOCK_MONOTONIC itself where they are not
  /// steady.
  std::uint64_t first_ticks;
  std::uint64_t first_ns;
  std::uint64_t first_realtime_ns;  ///< The same moment by CLOCK_REALTIME.
  char machine[40];                 ///< Identity of the running kernel (boot_id): who shares it shares the clock.
  char host[64];                    ///< Its name, for people.
  char program[32];

  /// Records ever written. Release: the record is behind it.
  alignas(64) std::atomic<std::uint64_t> count;
  std::atomic<std::uint64_t> last_ticks;  ///< A later pair; 0: none yet. Relaxed.
  std::atomic<std::uint64_t> last_ns;
  std::atomic<std::uint64_t> lost;  ///< Steps that there was no memory for.
  /// The first so many records are in the log. Release: they are there, and their places in the ring may be used anew.
  std::atomic<std::uint64_t> logged;
};
inline constexpr std::size_t kStepHeadBytes = 4096;
static_assert(sizeof(StepFileHead) <= kStepHeadBytes && std::is_standard_layout_v<StepFileHead>);

/// Records that can be read of the ring of the last steps.
inline constexpr std::uint64_t kLastSteps = 4096;

/// Name for people, and of the probe; "unknown" for a value that is none.
constexpr const char* step_name(Step step) {
  switch (step) {
    case Step::kCall: return "call";
    case Step::kReturn: return "return";
    case Step::kWait: return "wait";
    case Step::kWaitEnd: return "wait_end";
    case Step::kSleep: return "sleep";
    case Step::kWake: return "wake";
    case Step::kPacketOut: return "packet_out";
    case Step::kPacketIn: return "packet_in";
    case Step::kMatch: return "match";
    case Step::kDeliver: return "deliver";
    case Step::kDirect: return "direct";
    case Step::kEvent: return "event";
    case Step::kNotice: return "notice";
    case Step::kCount: return "count";
    case Step::kTrigger: return "trigger";
    case Step::kNone:
    case Step::kCountOfSteps: break;
  }
  return "unknown";
}

}  // namespace portofu
