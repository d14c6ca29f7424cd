#pragma once
// A barrier gate: a counter that its signal and its packet raise, with what goes out waiting at the number of inputs
// that the gate has. Signals and packets of a later round wait in order until the round before has passed.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/event/counting_event.h"
#include "engine/event/exact_sum.h"
#include "engine/event/growing_ring.h"
#include "engine/topology/process_id.h"

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
  std::uint8_t reserved = 0;
  std::uint32_t setting = 0;  ///< Of a packet: which its source had. On the wire it is nothing.
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
  kFailed,     ///< There is none, because a process of the circuit cannot be reached.
};

/// Where signals (local) and packets (remote) of a gate come from and go to; members as in utofu_vbg_setting.
/// @spec uTofu guide, 2.3.2, 3.4.4.1
struct GateEnds {
  static constexpr std::uint64_t kNoGate = UINT64_MAX;

  std::uint64_t local_source = kNoGate;
  std::uint64_t remote_source = kNoGate;
  std::uint64_t local_target = kNoGate;
  std::uint64_t remote_target = kNoGate;
};

/// @spec uTofu guide, 2.3.1
struct BarrierGate : GateEnds {
  std::uint64_t id = 0;
  std::uint64_t set_id = 0;  ///< Id of the start/end gate that was allocated with it.
  std::uint32_t set_size = 0;
  bool configured = false;
  bool is_left_out = false;  ///< By the last setting of its set: what happens to it is nothing to that.
  ProcessId source_process;  ///< Who had `remote_source` when that was asked for first; {0, 0}: it has no answer yet.
  ProcessId target_process;  ///< The same of `remote_target`.
  bool target_dead = false;  ///< That process is dead: another one may have the number, in another circuit.

  CountingEvent inputs;            ///< Inputs of all rounds together.
  std::uint64_t round_inputs = 0;  ///< Of the rounds that have passed.
  GrowingRing<GateValue> signals;  ///< Arrived; the first may be counted already.
  GrowingRing<GateValue> packets;
  bool signal_counted = false;
  bool packet_counted = false;
  bool armed = false;  ///< What goes out waits in `inputs`, or has fired.

  std::uint64_t rounds_started = 0;         ///< Start/end gates: whose signal and packet have gone out.
  std::uint64_t rounds_passed = 0;          ///< Whose inputs have been taken.
  std::uint64_t whole_rounds = kAllRounds;  ///< How many it takes part in; later ones fail, because a process is gone.
  bool owes_end = false;                    ///< `whole_rounds` has changed, and nobody else knows yet.
  std::uint32_t setting = 0;                ///< How its circuit is named to its source; no other one has the number.
  /// Another circuit of this process is over: what its source sends, or says unasked, may be of an earlier circuit.
  bool asks = false;
  std::uint32_t source_setting = 0;  ///< If it asks: the first setting of its source that counts; 0: not known yet.
  std::uint32_t heard_setting = 0;   ///< Of its source, by what came last.
  std::uint32_t told_setting = 0;    ///< The one that it has begun, as it has said last; 0: it has left one.
  std::uint32_t value_setting = 0;   ///< Of its source, by the value that came last.
  std::uint32_t former_setting = 0;  ///< The same when this circuit was made; 0: none had come from that source.
  bool doubts = false;               ///< It may have missed what its source has said, and asks once a barrier waits.
  bool owes_question = false;        ///< It asks as soon as it can.
  bool was_asked = false;            ///< A barrier of another process waits for it.
  std::uint32_t owes_answer = 0;     ///< Setting of its target, which waits for an answer; 0: none.
  std::uint64_t ended_source = kNoGate;  ///< Who has said that no more comes, and is not its source in this circuit.
  BarrierState state = BarrierState::kIdle;  ///< Start/end gates.
  GateValue result;

  bool is_start() const { return id == set_id; }
  /// Rounds whose signal and packet have gone out.
  std::uint64_t rounds_sent() const { return is_start() ? rounds_started : rounds_passed; }
  /// Whose packets have come.
  std::uint64_t packets_in() const { return rounds_passed + packets.size(); }
  bool trusts_source() const { return !asks || source_setting != 0; }
  bool owes_notice() const { return owes_end || owes_question || owes_answer != 0; }
  std::uint32_t input_count() const { return (local_source != kNoGate) + (remote_source != kNoGate); }
};

}  // namespace portofu
