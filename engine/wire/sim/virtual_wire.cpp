#include "engine/wire/sim/virtual_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/queue/assert.h"
#include "engine/topology/tofu_id.h"
#include "engine/wire/sim/held_back.h"

namespace portofu {
namespace {

/// In front of each payload: the number of its message. As long as the alignment of payloads.
constexpr std::uint32_t kFrontBytes = 64;

WireLimits limits_over(const WireLimits& inner) {
  WireLimits limits = inner;
  limits.max_payload_bytes -= kFrontBytes;
  return limits;
}

VirtualCall call_of(PacketType type) {
  switch (type) {
    case PacketType::kGet:
    case PacketType::kTofuGet: return VirtualCall::kGet;
    case PacketType::kAtomic:
    case PacketType::kFetchAtomic:
    case PacketType::kSwap:
    case PacketType::kTofuArmw: return VirtualCall::kAtomic;
    case PacketType::kTofuGate: return VirtualCall::kBarrier;
    default: return VirtualCall::kPut;
  }
}

/// Through which interface a call sends: the TNI of a VCQ or gate.
std::uint32_t interface_of(const PacketHeader& header) { return is_tofu(header.type) ? tni_of(header.sender_id) : 0; }
std::uint32_t to_interface_of(const PacketHeader& header) {
  return is_tofu(header.type) ? tni_of(header.tofu_queue) : 0;
}

}  // namespace

VirtualWire::VirtualWire(Wire& inner, VirtualClock& clock)
    : Wire(limits_over(inner.limits()), {.loans = nullptr,
                                         .copies = nullptr,
                                         .peer_memory = nullptr,
                                         .completions = nullptr,
                                         .other_nodes = nullptr}),
      inner_(inner),
      clock_(clock) {
  silent_ = true;
}

// ---- Packets out ----------------------------------------------------------------------------------------------------

ConnectResult VirtualWire::connect(ProcessId peer, Link** link) {
  const ConnectResult result = inner_.connect(peer, link);
  clock_.end_own_work();
  if (result != ConnectResult::kConnected) return result;
  (*link)->at_once_below_bytes = 0;
  auto& way = ways_[*link];
  if (way == nullptr) {
    way = std::make_unique<Way>();
    way->link = *link;
    way->peer = peer;
  }
  return result;
}

/// What waits below still goes.
void VirtualWire::disconnect(Link* link) {
  const auto way = ways_.find(link);
  if (way != ways_.end() && !way->second->waiting.empty() && !link->lost) {
    way->second->is_closed = true;
    return;
  }
  if (way != ways_.end()) unsent_ -= way->second->waiting.size();
  if (way != ways_.end()) ways_.erase(way);
  inner_.disconnect(link);
}

std::byte* VirtualWire::claim(Link& link, std::uint32_t payload_bytes) {
  if (link.lost) return nullptr;
  Way& way = *ways_.at(&link);
  PORTOFU_ASSERT(way.claimed == nullptr);
  way.claimed = std::make_unique<SimPayload>(payload_bytes + kFrontBytes);
  return way.claimed->data() + kFrontBytes;
}

void VirtualWire::discard(Link& link) { ways_.at(&link)->claimed.reset(); }

void VirtualWire::publish(Link& link, const PacketHeader& header) {
  Way& way = *ways_.at(&link);
  const bool is_data = header.type == PacketType::kData;
  std::uint64_t& open = way.open_number[is_of_answer(header) ? 1 : 0];
  if (!is_data) {
    open = clock_.next_number();
    report(way, header, open);
  }
  std::memcpy(way.claimed->data(), &open, sizeof open);
  way.waiting.push_back({header, std::move(*way.claimed), header.payload_bytes + kFrontBytes});
  way.claimed.reset();
  ++unsent_;
  while (!way.waiting.empty() && send_first(way)) {
  }
  clock_.end_own_work();
}

void VirtualWire::report(const Way& way, const PacketHeader& header, std::uint64_t number) {
  VirtualReport report{};
  report.number = number;
  report.bytes = header.payload_bytes + bytes_to_come(header);
  report.time_ps =
      is_own_word(header.type, report.bytes) ? clock_.stamp_own_word() : clock_.stamp(call_of(header.type));
  report.nid = way.peer.nid;
  report.pid = way.peer.pid;
  report.interface = is_of_answer(header) ? clock_.interface() : interface_of(header);
  report.to_interface =
      static_cast<std::uint8_t>(is_of_answer(header) ? clock_.to_interface() : to_interface_of(header));
  report.type = static_cast<std::uint8_t>(header.type);
  report.cause = clock_.cause();
  report.departure = departure_of(header);
  report.in_command = is_in_command(header) ? 1 : 0;
  clock_.report(report);
}

bool VirtualWire::send_first(Way& way) {
  Outgoing& first = way.waiting.front();
  if (!way.link->lost) {
    std::byte* const room =
        is_of_answer(first.header) ? inner_.claim_answer(*way.link, first.bytes) : inner_.claim(*way.link, first.bytes);
    if (room == nullptr && !way.link->lost) return false;
    if (room != nullptr) {
      std::memcpy(room, first.payload.data(), first.bytes);
      PacketHeader header = first.header;
      header.payload_bytes = first.bytes;
      inner_.publish(*way.link, header);
    }
  }
  way.waiting.pop_front();
  --unsent_;
  return true;
}

void VirtualWire::send_waiting() {
  for (auto at = ways_.begin(); at != ways_.end();) {
    Way& way = *at->second;
    while (!way.waiting.empty() && send_first(way)) {
    }
    if (!way.is_closed || !way.waiting.empty()) {
      ++at;
      continue;
    }
    inner_.disconnect(way.link);
    at = ways_.erase(at);
  }
}

// ---- Packets in -----------------------------------------------------------------------------------------------------

/// Which life of a process has sent the message.
VirtualWire::Source* VirtualWire::find_source(ProcessId id, std::uint64_t number) {
  const auto has = [&](const auto& one) { return one->id == id && one->messages.contains(number); };
  const auto found = std::find_if(sources_.begin(), sources_.end(), has);
  return found != sources_.end() ? found->get() : nullptr;
}

/// What is too short for a number, or continues nothing, is a lie, and left out.
void VirtualWire::take_in() {
  Packet packet;
  while (inner_.peek(packet)) {
    PacketHeader header = packet.header;
    if (header.payload_bytes >= kFrontBytes && packet.payload.is_here()) {
      const std::byte* const bytes = packet.payload.here();
      std::uint64_t number = 0;
      std::memcpy(&number, bytes, sizeof number);
      header.payload_bytes -= kFrontBytes;
      Source& source = held_source(sources_, packet);
      const bool is_data = header.type == PacketType::kData;
      const auto begun = source.messages.find(number);
      if (is_data == (begun != source.messages.end())) {
        Message& message = source.messages[number];
        SimPayload payload(header.payload_bytes);
        std::memcpy(payload.data(), bytes + kFrontBytes, header.payload_bytes);
        if (!is_data) message.missing_bytes = bytes_to_come(header);
        const bool last = (header.flags & kFlagCut) != 0 || header.payload_bytes >= message.missing_bytes;
        if (is_data) message.missing_bytes = last ? 0 : message.missing_bytes - header.payload_bytes;
        message.is_whole = message.missing_bytes == 0;
        message.packets.push_back({header, std::move(payload), 0});
      }
    }
    inner_.release();
  }
}

bool VirtualWire::has_arrived(ProcessId id, std::uint64_t number) {
  take_in();
  const Source* const source = find_source(id, number);
  return source != nullptr && source->messages.at(number).is_whole;
}

PacketType VirtualWire::show(ProcessId id, std::uint64_t number) {
  shown_source_ = find_source(id, number);
  auto message = shown_source_->messages.extract(number);
  shown_ = std::move(message.mapped());
  silent_ = false;
  return shown_.packets.front().header.type;
}

void VirtualWire::hide() {
  silent_ = true;
  shown_.packets.clear();
}

bool VirtualWire::peek(Packet& packet) {
  PORTOFU_ASSERT(!in_hand_);
  if (shown_.packets.empty()) return false;
  in_hand_ = true;
  const SimPacket& first = shown_.packets.front();
  packet.source = shown_source_->id;
  packet.header = first.header;
  packet.payload = Payload(first.payload.data());
  packet.source_context = shown_source_;
  return true;
}

void VirtualWire::release() {
  PORTOFU_ASSERT(in_hand_);
  in_hand_ = false;
  shown_.packets.pop_front();
}

bool VirtualWire::has_unheard(ProcessId peer, std::uint64_t life) {
  const auto has = [&](const auto& one) { return one->life == life && !one->messages.empty(); };
  return std::any_of(sources_.begin(), sources_.end(), has) || inner_.has_unheard(peer, life);
}

/// What has come of a source still arrives before it is closed.
bool VirtualWire::take_closed_source(ProcessId* source, void** engines) {
  if (closing_ == nullptr) {
    void* context = nullptr;
    if (!inner_.may_have_closed_source() || !inner_.take_closed_source(source, &context)) return false;
    *engines = nullptr;
    if (context == nullptr) return true;  // It has never sent anything.
    closing_ = static_cast<Source*>(context);
    std::erase_if(closing_->messages, [](const auto& one) { return !one.second.is_whole; });
  }
  if (!closing_->messages.empty() || (in_hand_ && shown_source_ == closing_)) return false;
  *source = closing_->id;
  *engines = closing_->engines;
  std::erase_if(sources_, [this](const auto& one) { return one.get() == closing_; });
  closing_ = nullptr;
  return true;
}

}  // namespace portofu
