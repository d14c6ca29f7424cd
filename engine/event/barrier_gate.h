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
  /// Of a packet: which its source had. On the wire: its round in that, from 1 on.
  std::uint32_t setting = 0;
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

  bool takes_packets_of(std::uint64_t gate_id) const { return gate_id != kNoGate && gate_id == remote_source; }
};

/// What has come to a gate for the round that it waits for and for later ones, and how many rounds there are.
struct GateRounds {
  CountingEvent inputs;              ///< Of all rounds together.
  std::uint64_t awaited_inputs = 0;  ///< What `inputs` has once the last round is complete that the gate was armed for.
  GrowingRing<GateValue> signals;    ///< Arrived; the first may be counted already.
  GrowingRing<GateValue> packets;
  bool signal_counted = false;
  bool packet_counted = false;
  bool armed = false;                ///< What goes out waits in `inputs`, or has fired.
  std::uint64_t started = 0;         ///< Start/end gates: whose signal and packet have gone out.
  std::uint64_t passed = 0;          ///< Whose inputs have been taken.
  std::uint64_t whole = kAllRounds;  ///< How many it takes part in; later ones fail, because a process is gone.

  /// Another circuit begins.
  void reset_on_duty() {
    inputs.reset_on_duty();
    signals.clear();
    packets.clear();
    signal_counted = packet_counted = armed = false;
    awaited_inputs = started = passed = 0;
    whole = kAllRounds;
  }

  /// Rounds whose signals, or packets, have come.
  std::uint64_t signals_in() const { return passed + signals.size(); }
  std::uint64_t packets_in() const { return passed + packets.size(); }
};

/// Whether a setting was made before that one of the same process. Their numbers go up, and begin anew some day.
inline bool is_earlier(std::uint32_t setting, std::uint32_t than) {
  return static_cast<std::int32_t>(setting - than) < 0;
}

/// What a gate knows of the one whose packets it takes: which of them are of this circuit. The source names its
/// settings by numbers; 0: none.
struct GateSource {
  ProcessId process;  ///< Who had the gate when that was asked for first; {0, 0}: it has no answer yet.
  /// Another circuit of this process is over: what the source sends, or says unasked, may be of an earlier circuit.
  bool asks = false;
  bool doubts = false;              ///< The gate may have missed what it has said, and asks once a barrier waits.
  std::uint32_t first_setting = 0;  ///< If the gate asks: the first that counts; 0: not known yet.
  std::uint32_t heard_setting = 0;  ///< By what came last.
  std::uint32_t value_setting = 0;  ///< By the value that came last; 0: none has come.
  std::uint32_t value_round = 0;    ///< Of that one, in its setting.

  bool is_trusted() const { return !asks || first_setting != 0; }
  /// Whether what it says of that setting is certainly nothing of an earlier circuit.
  bool is_of_this_circuit(std::uint32_t setting) const {
    return !asks || (first_setting != 0 && !is_earlier(setting, first_setting));
  }
  /// Whether a value may be the one after the last. Else one between them is lost, as with a link. A gate that is
  /// connected again may have a source that is not, and is in any round.
  bool is_next(std::uint32_t setting, std::uint32_t round) const {
    if (!is_trusted() || (asks && value_setting == 0)) return true;
    return round == (setting == value_setting ? value_round + 1 : 1);
  }
  /// The last one that is certainly of this circuit; 0: not known.
  std::uint32_t certain_setting() const {
    if (!asks) return value_setting != 0 ? value_setting : heard_setting;
    const bool came = first_setting != 0 && value_setting != 0 && is_earlier(first_setting, value_setting);
    return came ? value_setting : first_setting;
  }
};

/// Who gets the packets of a gate.
struct GateTarget {
  ProcessId process;     ///< As GateSource::process.
  bool is_dead = false;  ///< There is no link to that process: another one may have the number, in another circuit.
};

/// What a gate has to say, and says as soon as it can.
struct GateNotices {
  bool end = false;          ///< GateRounds::whole has changed, and nobody else knows yet.
  bool question = false;     ///< Which packets its source sends.
  std::uint32_t answer = 0;  ///< Setting of its target, which waits for one; 0: none.

  bool any() const { return end || question || answer != 0; }
};

/// @spec uTofu guide, 2.3.1
struct BarrierGate : GateEnds {
  std::uint64_t id = 0;
  std::uint64_t set_id = 0;  ///< Id of the start/end gate that was allocated with it.
  std::uint32_t set_size = 0;
  std::uint32_t setting = 0;  ///< How its circuit is named to its source; no other one has the number. 0: it has left.
  bool configured = false;
  bool is_left_out = false;  ///< By the last setting of its set: what happens to it is nothing to that.
  bool was_asked = false;    ///< A barrier of another process waits for it.

  GateRounds rounds;
  GateSource source;
  GateTarget target;
  GateNotices owed;
  std::uint64_t ended_source = kNoGate;  ///< Who has said that no more comes, and is not its source in this circuit.
  BarrierState state = BarrierState::kIdle;  ///< Start/end gates.
  GateValue result;

  bool is_start() const { return id == set_id; }
  /// Rounds whose signal and packet have gone out.
  std::uint64_t rounds_sent() const { return is_start() ? rounds.started : rounds.passed; }
  std::uint32_t input_count() const { return (local_source != kNoGate) + (remote_source != kNoGate); }
};

}  // namespace portofu
