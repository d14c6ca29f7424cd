#pragma once
// A barrier gate: a counter that its signal and its packet raise, with what goes out waiting at the number of inputs
// that the gate has. Signals and packets of a later round wait in order until the round before has passed.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/event/counting_event.h"
#include "engine/event/exact_sum.h"
#include "engine/event/growing_ring.h"

namespace portofu {

inline constexpr std::size_t kMaxReduceItems = 6;
inline constexpr std::size_t kMaxReduceSums = 3;

/// Reduction operations; values of utofu_reduce_op.
enum class ReduceOperation : std::uint8_t {
  kBarrier = 1,
  kBand = 2,
  kBor = 3,
  kBxor = 4,
  kMax = 5,
  kMaxloc = 6,
  kSum = 7,
  kBfpsum = 8
};

/// What a signal or packet carries; its beginning is the payload on the wire (gate_value_bytes).
struct GateValue {
  ReduceOperation operation = ReduceOperation::kBarrier;
  std::uint8_t item_count = 0;
  std::uint8_t mismatch = 0;  ///< 1: somebody on the way had another operation or item count.
  std::uint8_t failed = 0;    ///< 1: somebody on the way could not be reached.
  std::uint32_t reserved = 0;
  std::array<std::uint64_t, kMaxReduceItems> items{};  ///< Integers.
  std::array<ExactSum, kMaxReduceSums> sums{};         ///< kBfpsum.
};
static_assert(std::is_trivially_copyable_v<GateValue>);

/// What every packet of a gate carries.
inline constexpr std::size_t kLeastGateBytes = offsetof(GateValue, items);

/// How much of a value its operation uses, counted from its beginning: a packet carries no more, so that a barrier, and
/// a reduction of integers, fit the lines in which a packet begins.
/// @pre item_count is within the bounds of the operation
constexpr std::size_t gate_value_bytes(const GateValue& value) {
  switch (value.operation) {
    case ReduceOperation::kBarrier: return kLeastGateBytes;
    case ReduceOperation::kBfpsum: return offsetof(GateValue, sums) + value.item_count * sizeof(ExactSum);
    default: return kLeastGateBytes + value.item_count * sizeof(std::uint64_t);
  }
}

/// Where the start/end gate of a circuit stands.
enum class BarrierState : std::uint8_t {
  kIdle,       ///< Nothing was started, or its result was taken.
  kRunning,    ///< Started; signal and packet are awaited.
  kCompleted,  ///< `result` is there.
};

/// What other engines of the process are to know of a gate (ProcessBarriers).
struct ShownGate {
  bool relay = false;    ///< It passes packets on, and waits for no signal.
  bool orphan = false;   ///< The same, and the process that its packets come from has died.
  bool running = false;  ///< A barrier that has started here.
};

/// @spec uTofu guide, 2.3.1, 2.3.2, 3.4.4.1
struct BarrierGate {
  static constexpr std::uint64_t kNoGate = UINT64_MAX;

  std::uint64_t id = 0;
  std::uint64_t set_id = 0;  ///< Id of the start/end gate that was allocated with it.
  std::uint32_t set_size = 0;
  bool configured = false;
  std::uint64_t local_source = kNoGate;
  std::uint64_t remote_source = kNoGate;
  std::uint64_t local_target = kNoGate;
  std::uint64_t remote_target = kNoGate;

  CountingEvent inputs;            ///< Inputs of all rounds together.
  std::uint64_t round_inputs = 0;  ///< Of the rounds that have passed.
  GrowingRing<GateValue> signals;  ///< Arrived; the first may be counted already.
  GrowingRing<GateValue> packets;
  bool signal_counted = false;
  bool packet_counted = false;
  bool armed = false;  ///< What goes out waits in `inputs`, or has fired.

  std::uint64_t rounds_started = 0;  ///< Start/end gates.
  std::uint64_t rounds_passed = 0;
  bool peer_lost = false;    ///< A process at the other end of a packet has died; every barrier of the set fails.
  bool source_lost = false;  ///< The one that packets come from has; a failed one stands in for what never comes.
  BarrierState state = BarrierState::kIdle;  ///< Start/end gates.
  GateValue result;
  ShownGate shown;  ///< Writer: Tofu::show.

  bool is_start() const { return id == set_id; }
  /// Its set tells nothing about the circuits that it belongs to, and which round it is in.
  bool is_lone_relay() const { return !is_start() && local_source == kNoGate && remote_source != kNoGate; }
  std::uint32_t input_count() const { return (local_source != kNoGate) + (remote_source != kNoGate); }
};

}  // namespace portofu
