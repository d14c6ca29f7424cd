#pragma once
// The steps of messages, as the engine tells them to the recorder of a lane (engine/observe/recorder.h). Each function
// is a load and a jump that is not taken while nothing is recorded. All of them on duty.

#include "engine/core/core.h"
#include "engine/observe/recorder.h"

namespace portofu {

// What is done if something is recorded: apart, so that the way of a message stays short.
[[gnu::cold, gnu::noinline]] void put_packet(Recorder& to, Step step, ProcessId peer, const PacketHeader& header);
[[gnu::cold, gnu::noinline]] void put_message(Recorder& to, Step step, ProcessId peer, const PacketHeader& header,
                                              std::uint64_t bytes);
[[gnu::cold, gnu::noinline]] void put_match(Recorder& to, ProcessId peer, const PacketHeader& header,
                                            const MatchList& list, const ListEntry& entry);
/// What an acknowledgement without a packet says to both ends.
struct AcknowledgedStep {
  ProcessId peer;
  std::uint32_t operation_id;
  std::uint64_t bytes;
};
[[gnu::cold, gnu::noinline]] void put_acknowledgement(Recorder& to, std::uint64_t ticks, Step step,
                                                      const AcknowledgedStep& told);
[[gnu::cold, gnu::noinline]] void put_notice(Recorder& to, const Notice& notice);
[[gnu::cold, gnu::noinline]] void put_trigger(Recorder& to, const TriggeredOperation& operation);

/// A packet goes out, or has come in.
[[gnu::always_inline]] inline void record_packet(Core& core, Step step, const Peer& peer, const PacketHeader& header) {
  if (core.recorder != nullptr) [[unlikely]]
    put_packet(*core.recorder, step, peer.id, header);
}

/// The entry takes the message; it is still in its list.
[[gnu::always_inline]] inline void record_match(Core& core, const Peer& peer, const PacketHeader& header,
                                                const MatchList& list, const ListEntry& entry) {
  if (core.recorder != nullptr) [[unlikely]]
    put_match(*core.recorder, peer.id, header, list, entry);
}

/// kDeliver.
[[gnu::always_inline]] inline void record_deliver(Core& core, const Peer& peer, const PacketHeader& header,
                                                  std::uint64_t mlength) {
  if (core.recorder != nullptr) [[unlikely]]
    put_message(*core.recorder, Step::kDeliver, peer.id, header, mlength);
}

/// kDirect.
inline void record_direct(Core& core, const Peer& peer, const Descriptor& descriptor) {
  if (core.recorder != nullptr) [[unlikely]]
    put_message(*core.recorder, Step::kDirect, peer.id, descriptor, descriptor.length);
}

/// A call of the application, as long as this lives: on duty, or around what takes it.
class RecordedCall {
 public:
  /// @param kind  PacketType or ApiCall
  /// @param arms  the operation waits for a counter
  template <class Kind>
  RecordedCall(Core& core, Kind kind, std::uint64_t bytes, bool arms = false) : recorder_(core.recorder) {
    if (recorder_ != nullptr) [[unlikely]]
      begin(static_cast<std::uint8_t>(kind), bytes, arms ? kCallArms : 0);
  }
  ~RecordedCall() {
    if (recorder_ != nullptr) [[unlikely]]
      end();
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

 private:
  [[gnu::cold, gnu::noinline]] void begin(std::uint8_t kind, std::uint64_t bytes, std::uint32_t more);
  [[gnu::cold, gnu::noinline]] void end();

  Recorder* const recorder_;
};

}  // namespace portofu
