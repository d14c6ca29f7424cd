#pragma once
// What the engine has done, counted always. The numbers lie in the process's shared segment, so that a tool can read
// them from outside while the process runs, or hangs.
//
// When you add a counter: (1) add it to Counter in front of kCount, never in between (a reader may be older than the
// segment), (2) add its row to counter_table.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace portofu {

/// Index into CountersShared::values.
enum class Counter : std::uint16_t {
  kPutsSent,
  kGetsSent,
  kAtomicsSent,
  kAnswersSent,
  kPacketsSent,
  kPacketsReceived,
  kBytesSent,
  kBytesReceived,
  kPutsMatched,
  kGetsMatched,
  kAtomicsMatched,
  kHeadersUnexpected,
  kHeadersDropped,
  kPermissionViolations,
  kOperationViolations,
  kFlowControlEvents,
  kEventsPosted,
  kEventsDropped,
  kTriggersFired,
  kPacketsRefusedKey,
  kPacketsRefusedMalformed,
  kPeersLost,
  kSendsBlocked,
  kDutyByApplication,
  kDutyByProgress,
  kSleeps,
  kDoorbellsRung,
  kSourcesEvicted,
  kChannelsRepaired,
  kSegmentsRemoved,
  kPutsDirect,
  kPacketsByArea,
  kPacketsStreamed,
  kPacketsLent,
  kPacketsPlaced,
  kPacketsRefusedSource,
  kFramesSent,
  kFramesSentAgain,
  kFramesDamaged,
  kFramesDuplicate,
  kFramesRefused,
  kCount  ///< Not a counter: how many there are.
};

inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);

/// Places for counters in a segment. More than there are, so that the layout outlives new ones.
inline constexpr std::size_t kCounterPlaces = 128;

/// The counters as they lie in the segment.
struct alignas(64) CountersShared {
  /// Writer: the thread on duty. Readers: anybody. Relaxed on both sides: a counter guards no data.
  std::atomic<std::uint64_t> values[kCounterPlaces];
};

static_assert(sizeof(CountersShared) == kCounterPlaces * 8 && std::is_standard_layout_v<CountersShared>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(kCounterCount <= kCounterPlaces);

/// How a counter is shown to people.
struct CounterRow {
  Counter counter;
  const char* label;     ///< snake_case; stays what it is once released.
  const char* unit;      ///< "bytes", "packets", ...
  const char* sentence;  ///< When it is raised.
};

/// One row a counter, in the order of Counter.
std::span<const CounterRow> counter_table();

/// The engine's hand on its counters. One thread at a time adds (the one on duty), so an addition is a load and a store
/// and needs no atomic read-modify-write; any thread or process reads.
class Counters {
 public:
  /// @param shared  must outlive this object
  explicit Counters(CountersShared& shared) : shared_(&shared) {}

  [[gnu::always_inline]] void add(Counter counter, std::uint64_t n = 1) {
    auto& value = shared_->values[static_cast<std::size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::uint64_t get(Counter counter) const {
    return shared_->values[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }

 private:
  CountersShared* shared_;  ///< In the process's own segment.
};

}  // namespace portofu
