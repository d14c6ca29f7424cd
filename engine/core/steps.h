#pragma once
// The steps of messages, as the engine tells them to the recorder of a lane (engine/observe/recorder.h). Each function
// is a comparison and a jump that is not taken while nobody is told of anything. All of them on duty.

#include <type_traits>

#include "engine/core/core.h"
#include "engine/core/incoming.h"
#include "engine/observe/recorder.h"

namespace portofu {

// What is done if somebody is told: apart, and with arguments that are at hand anyway, so that the way of a message
// stays short. Nothing, if nothing is recorded. A step that differs from call to call is a parameter of a template, so
// that its probe alone is passed (Recorder::add_at).
template <Step kStep>
[[gnu::cold, gnu::noinline]] void put_packet(const Core& core, const Peer& peer, const PacketHeader& header);
template <Step kStep>
[[gnu::cold, gnu::noinline]] void put_message(const Core& core, const Peer& peer, const PacketHeader& header,
                                              std::uint64_t bytes);
[[gnu::cold, gnu::noinline]] void put_arrival(const Core& core, const Peer& peer, const Arrival& arrival);
[[gnu::cold, gnu::noinline]] void put_match(const Core& core, const Peer& peer, const PacketHeader& header,
                                            const MatchList& list, const ListEntry& entry);
/// What an acknowledgement without a packet says to both ends.
struct AcknowledgedStep {
  ProcessId peer;
  std::uint32_t operation_id;
  std::uint64_t bytes;
};
template <Step kStep>
[[gnu::cold, gnu::noinline]] void put_acknowledgement(Recorder& to, std::uint64_t ticks, const AcknowledgedStep& told);
[[gnu::cold, gnu::noinline]] void put_notice(const Core& core, const Notice& notice);
[[gnu::cold, gnu::noinline]] void put_trigger(const Core& core, const TriggeredOperation& operation);

/// A packet goes out, or has come in.
template <Step kStep>
[[gnu::always_inline]] inline void record_packet(Core& core, const Peer& peer, const PacketHeader& header) {
  if (core.observers != nullptr) [[unlikely]]
    put_packet<kStep>(core, peer, header);
}

/// The entry takes the message; it is still in its list.
[[gnu::always_inline]] inline void record_match(Core& core, const Peer& peer, const PacketHeader& header,
                                                const MatchList& list, const ListEntry& entry) {
  if (core.observers != nullptr) [[unlikely]]
    put_match(core, peer, header, list, entry);
}

/// kDeliver.
[[gnu::always_inline]] inline void record_deliver(Core& core, const Peer& peer, const PacketHeader& header,
                                                  std::uint64_t mlength) {
  if (core.observers != nullptr) [[unlikely]]
    put_message<Step::kDeliver>(core, peer, header, mlength);
}

/// kDeliver of a message that an entry has taken.
[[gnu::always_inline]] inline void record_arrival(Core& core, const Peer& peer, const Arrival& arrival) {
  if (core.observers != nullptr) [[unlikely]]
    put_arrival(core, peer, arrival);
}

/// kDirect.
inline void record_direct(Core& core, const Peer& peer, const Descriptor& descriptor) {
  if (core.observers != nullptr) [[unlikely]]
    put_message<Step::kDirect>(core, peer, descriptor, descriptor.length);
}

/// When what a call asks for starts.
enum class CallStarts : std::uint8_t { kAtOnce, kByCounter };

/// A call of the application, as long as this lives: on duty, or around what takes it.
class RecordedCall {
 public:
  /// @param kind  PacketType or ApiCall
  template <class Kind>
  requires std::is_enum_v<Kind> RecordedCall(const Core& core, Kind kind, std::uint64_t bytes,
                                             CallStarts starts = CallStarts::kAtOnce)
      : core_(core) {
    if (core.observers != nullptr) [[unlikely]]
      begin(core, static_cast<std::uint8_t>(kind), bytes, starts);
  }
  /// The same of a request, of which nothing is read unless somebody is told.
  RecordedCall(const Core& core, const PacketHeader& request, CallStarts starts) : core_(core) {
    if (core.observers != nullptr) [[unlikely]]
      begin_request(core, request, starts);
  }
  ~RecordedCall() {
    if (core_.observers != nullptr) [[unlikely]]
      end(core_);
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

 private:
  // Static, so that the object is nothing but a register.
  [[gnu::cold, gnu::noinline]] static void begin(const Core& core, std::uint8_t kind, std::uint64_t bytes,
                                                 CallStarts starts);
  [[gnu::cold, gnu::noinline]] static void begin_request(const Core& core, const PacketHeader& request,
                                                         CallStarts starts);
  [[gnu::cold, gnu::noinline]] static void end(const Core& core);

  const Core& core_;
};

}  // namespace portofu
