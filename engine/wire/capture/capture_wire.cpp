#include "engine/wire/capture/capture_wire.h"

#include <time.h>

namespace portofu {
namespace {

/// Captures of several machines are put together by the time of the day.
std::uint64_t time_of_day_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

CapturePayload place_of(const Payload& payload) {
  if (payload.is_placed()) return CapturePayload::kPlaced;
  return payload.is_in_memory() ? CapturePayload::kAtSender : CapturePayload::kHere;
}

}  // namespace

CaptureRecord CaptureWire::record_of(CaptureDirection direction, ProcessId peer) const {
  const bool is_sent = direction == CaptureDirection::kSent;
  CaptureRecord record{};
  record.magic = kCaptureMagic;
  record.kind = CaptureKind::kPacket;
  record.direction = direction;
  record.medium = medium_;
  record.source = is_sent ? self_ : peer;
  record.target = is_sent ? peer : self_;
  return record;
}

// ---- Packets out ---------------------------------------------------------------------------------------------------

void CaptureWire::disconnect(Link* link) {
  claimed_.erase(link);
  inner_.disconnect(link);
}

std::byte* CaptureWire::claim(Link& link, std::uint32_t payload_bytes) {
  std::byte* const room = inner_.claim(link, payload_bytes);
  if (room != nullptr) claimed_[&link] = room;
  return room;
}

std::byte* CaptureWire::claim_answer(Link& link, std::uint32_t payload_bytes) {
  std::byte* const room = inner_.claim_answer(link, payload_bytes);
  if (room != nullptr) claimed_[&link] = room;
  return room;
}

bool CaptureWire::lend(Link& link, const Loan& loan) {
  if (!inner_.loans()->lend(link, loan)) return false;
  claimed_[&link] = loan.payload;
  return true;
}

/// Before it is published, because the receiver may give the room away at once.
void CaptureWire::publish(Link& link, const PacketHeader& header) {
  const auto claimed = claimed_.find(&link);
  if (claimed != claimed_.end()) {
    const CaptureRecord record = record_of(CaptureDirection::kSent, link.peer);
    if (!link.lost) file_.write(time_of_day_ns(), record, &header, claimed->second);
    claimed_.erase(claimed);
  }
  inner_.publish(link, header);
}

void CaptureWire::discard(Link& link) {
  claimed_.erase(&link);
  inner_.discard(link);
}

// ---- Packets in ----------------------------------------------------------------------------------------------------

bool CaptureWire::peek(Packet& packet) {
  if (!inner_.peek(packet)) return false;
  CaptureRecord record = record_of(CaptureDirection::kReceived, packet.source);
  record.payload = place_of(packet.payload);
  const std::byte* const here = packet.payload.is_here() ? packet.payload.here() : nullptr;
  file_.write(time_of_day_ns(), record, &packet.header, here);
  return true;
}

// ---- Acknowledgements without packets ------------------------------------------------------------------------------

void CaptureWire::note_acknowledgement(std::uint64_t time_ns, CaptureDirection direction, ProcessId peer,
                                       std::uint32_t operation_id) {
  CaptureRecord record = record_of(direction, peer);
  record.kind = CaptureKind::kAcknowledgement;
  record.operation_id = operation_id;
  file_.write(time_ns, record, nullptr, nullptr);
}

/// The peer may have taken it before this returns, so it is as old as the attempt.
bool CaptureWire::acknowledge(ProcessId sender, std::uint32_t operation_id) {
  const std::uint64_t now_ns = time_of_day_ns();
  if (!inner_.completions()->acknowledge(sender, operation_id)) return false;
  note_acknowledgement(now_ns, CaptureDirection::kSent, sender, operation_id);
  return true;
}

bool CaptureWire::acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) {
  const std::uint64_t now_ns = time_of_day_ns();
  if (!inner_.completions()->acknowledge_released(sender, life, operation_id)) return false;
  note_acknowledgement(now_ns, CaptureDirection::kSent, sender, operation_id);
  return true;
}

std::uint32_t CaptureWire::take_acknowledgement(Link& link) {
  const std::uint32_t operation_id = inner_.completions()->take_acknowledgement(link);
  if (operation_id == 0) return 0;
  note_acknowledgement(time_of_day_ns(), CaptureDirection::kReceived, link.peer, operation_id);
  return operation_id;
}

}  // namespace portofu
