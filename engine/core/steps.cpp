#include "engine/core/steps.h"

#include <algorithm>

namespace portofu {
namespace {

/// Of two packets between the same two processes in one direction that differ in anything but their data, as a rule a
/// different number; of what is sent again the same one.
std::uint32_t fingerprint(const PacketHeader& header) {
  // The sum of products with odd numbers, which need not wait for each other.
  const std::uint64_t rest =
      std::uint64_t{header.payload_bytes} << 32 | std::uint64_t{header.pt_index} << 8 | header.flags;
  const std::uint64_t mixed = header.match_bits * 0x9e3779b97f4a7c15u + header.hdr_data * 0xbf58476d1ce4e5b9u +
                              header.remote_offset * 0x94d049bb133111ebu + rest * 0xd6e8feb86659fd93u;
  return static_cast<std::uint32_t>(mixed >> 32);
}

/// An acknowledgement has no header.
constexpr std::uint32_t kOfAcknowledgement = 0xac;

std::uint16_t pid_of(ProcessId id) { return static_cast<std::uint16_t>(id.pid); }

/// Entries that a search for the entry has passed over, at most: some of them may have left the list.
std::uint32_t depth_in(const MatchList& list, const MatchEntry& entry) {
  if (list.empty()) return 0;
  const std::uint64_t since_first = entry.order - list.first()->order;
  const std::uint64_t most = std::min<std::uint64_t>(list.size() - 1, kUnexpected - 1);
  return static_cast<std::uint32_t>(std::min(since_first, most));
}

}  // namespace

template <Step kStep>
void put_packet(const Core& core, const Peer& peer, const PacketHeader& header) {
  Recorder* const to = core.recorder();
  if (to == nullptr) return;
  const std::uint64_t bytes = header.type == PacketType::kData ? header.payload_bytes : header.length;
  to->add(kStep, static_cast<std::uint8_t>(header.type),
          {bytes, peer.id.nid, pid_of(peer.id), header.operation_id, fingerprint(header)});
}
template void put_packet<Step::kPacketOut>(const Core&, const Peer&, const PacketHeader&);
template void put_packet<Step::kPacketIn>(const Core&, const Peer&, const PacketHeader&);

template <Step kStep>
void put_message(const Core& core, const Peer& peer, const PacketHeader& header, std::uint64_t bytes) {
  if (Recorder* const to = core.recorder())
    to->add(kStep, static_cast<std::uint8_t>(header.type), {bytes, peer.id.nid, pid_of(peer.id), header.operation_id});
}
template void put_message<Step::kDeliver>(const Core&, const Peer&, const PacketHeader&, std::uint64_t);
template void put_message<Step::kDirect>(const Core&, const Peer&, const PacketHeader&, std::uint64_t);

void put_arrival(const Core& core, const Peer& peer, const Arrival& arrival) {
  put_message<Step::kDeliver>(core, peer, arrival.header, arrival.mlength);
  Checker* const checker = core.checker();
  if (checker != nullptr && arrival.header.type != PacketType::kGet) note_arrival(*checker, arrival);
}

void put_match(const Core& core, const Peer& peer, const PacketHeader& header, const MatchList& list,
               const ListEntry& entry) {
  Recorder* const to = core.recorder();
  if (to == nullptr) return;
  const std::uint32_t unexpected = entry.list == ListKind::kOverflow ? kUnexpected : 0;
  to->add(Step::kMatch, static_cast<std::uint8_t>(header.type),
          {header.length, peer.id.nid, pid_of(peer.id), static_cast<std::uint32_t>(header.match_bits),
           depth_in(list, entry) | unexpected});
}

template <Step kStep>
void put_acknowledgement(Recorder& to, std::uint64_t ticks, const AcknowledgedStep& told) {
  to.add_at(ticks, kStep, static_cast<std::uint8_t>(PacketType::kAnswer),
            {told.bytes, told.peer.nid, pid_of(told.peer), told.operation_id, kOfAcknowledgement});
}
template void put_acknowledgement<Step::kPacketOut>(Recorder&, std::uint64_t, const AcknowledgedStep&);
template void put_acknowledgement<Step::kPacketIn>(Recorder&, std::uint64_t, const AcknowledgedStep&);

void put_event(const Core& core, const Interface& ni, Handle eq_handle, const EventQueue& queue, const Event& event) {
  if (Checker* const checker = core.checker()) keep_arrival(*checker, ni, queue);
  if (Recorder* const to = core.recorder())
    to->add(Step::kEvent, static_cast<std::uint8_t>(event.type),
            {.amount = event.mlength, .id = eq_handle, .more = static_cast<std::uint32_t>(event.ni_fail_type)});
}

void put_notice(const Core& core, const Notice& notice) {
  if (Recorder* const to = core.recorder())
    to->add(Step::kNotice, static_cast<std::uint8_t>(notice.kind),
            {.id = static_cast<std::uint32_t>(notice.vcq_id), .more = static_cast<std::uint32_t>(notice.edata)});
}

void put_count(const Core& core, Handle ct_handle, std::uint64_t successes) {
  if (Recorder* const to = core.recorder()) to->add(Step::kCount, 0, {.amount = successes, .id = ct_handle});
}

void put_trigger(const Core& core, const TriggeredOperation& operation) {
  if (Checker* const checker = core.checker()) note_start(*checker, core, operation);
  if (Recorder* const to = core.recorder())
    to->add(Step::kTrigger, static_cast<std::uint8_t>(operation.descriptor.type),
            {.amount = operation.threshold, .id = operation.counter});
}

void RecordedCall::begin(const Core& core, std::uint8_t kind, std::uint64_t bytes, CallStarts starts) {
  Recorder* const to = core.recorder();
  if (to == nullptr) return;
  to->end_looks();
  to->add_of_thread(Step::kCall, kind, bytes, starts == CallStarts::kByCounter ? kCallArms : 0);
}

void RecordedCall::begin_request(const Core& core, const PacketHeader& request, CallStarts starts) {
  begin(core, static_cast<std::uint8_t>(request.type), request.length, starts);
}

void RecordedCall::end(const Core& core) {
  if (Recorder* const to = core.recorder()) to->add_of_thread(Step::kReturn, 0);
}

}  // namespace portofu
