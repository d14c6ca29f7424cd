// Takes packets in from the inner wire, and hands them on in another order.

#include "engine/wire/sim/shuffle_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/queue/assert.h"

namespace portofu {
namespace {

/// Packets that wait here at most; the rest stays in the inner wire, whose senders then find no room.
constexpr std::size_t kMostWaiting = 32;

/// Most polls for which the first packet of a lane stays invisible.
constexpr std::uint32_t kMostDelayPolls = 6;

/// A fault is the answer to a put of uTofu that wanted none, and told in order with the others (guide, 2.2.10).
bool is_of_answer(const PacketHeader& header) {
  if (header.type == PacketType::kAnswer || header.type == PacketType::kTofuFault) return true;
  return header.type == PacketType::kData && (header.flags & kFlagAnswerStream) != 0;
}

/// True for a message without order that needs no second packet.
bool may_overtake(const PacketHeader& header) {
  return (header.flags & kFlagUnordered) != 0 &&
         (header.type != PacketType::kPut || header.payload_bytes == header.length);
}

/// @return where in the lane the packet goes: at the end if it has an order, else anywhere between two messages
std::size_t place_in(const std::deque<SimPacket>& lane, const PacketHeader& header, SimRandom& random) {
  if (!may_overtake(header)) return lane.size();
  std::size_t place = random.below(lane.size() + 1);
  while (place < lane.size() && lane[place].header.type == PacketType::kData) ++place;  // Not into a longer message.
  return place;
}

}  // namespace

ShuffleWire::Source& ShuffleWire::source_of(const Packet& packet) {
  if (*packet.source_context == nullptr) {
    sources_.push_back(std::make_unique<Source>());
    sources_.back()->id = packet.source;
    *packet.source_context = sources_.back().get();
  }
  return *static_cast<Source*>(*packet.source_context);
}

void ShuffleWire::take_in() {
  Packet packet;
  while (waiting_packets_ < kMostWaiting && closing_ == nullptr && inner_.peek(packet)) {
    SimPayload payload(packet.header.payload_bytes);
    std::memcpy(payload.data(), packet.payload, packet.header.payload_bytes);
    const auto delay_polls = static_cast<std::uint32_t>(random_.below(kMostDelayPolls + 1));
    Lane& lane = source_of(packet).lanes[is_of_answer(packet.header) ? kAnswers : kRequests];
    const auto place = static_cast<std::ptrdiff_t>(place_in(lane, packet.header, random_));
    lane.insert(lane.begin() + place, {packet.header, std::move(payload), delay_polls});
    ++waiting_packets_;
    inner_.release();
  }
}

/// Every call brings the invisible ones nearer.
std::vector<ShuffleWire::Choice> ShuffleWire::poll_lanes() {
  std::vector<Choice> visible;
  for (const auto& source : sources_) {
    for (Lane& lane : source->lanes) {
      if (lane.empty()) continue;
      if (lane.front().delay_polls > 0) {
        --lane.front().delay_polls;
      } else {
        visible.push_back({source.get(), &lane});
      }
    }
  }
  return visible;
}

bool ShuffleWire::peek(Packet& packet) {
  PORTOFU_ASSERT(!held_);
  take_in();
  const std::vector<Choice> choices = poll_lanes();
  if (choices.empty()) return false;
  const Choice& chosen = choices[random_.below(choices.size())];
  held_.emplace(std::move(chosen.lane->front()));
  chosen.lane->pop_front();
  --waiting_packets_;
  packet.source = chosen.source->id;
  packet.header = held_->header;
  packet.payload = held_->payload.data();
  packet.source_context = &chosen.source->context;
  return true;
}

void ShuffleWire::release() {
  PORTOFU_ASSERT(held_);
  held_.reset();
}

bool ShuffleWire::take_closed_source(ProcessId* source, void** source_context) {
  if (closing_ == nullptr) {
    void* context = nullptr;
    if (!inner_.take_closed_source(source, &context)) return false;
    *source_context = nullptr;
    if (context == nullptr) return true;  // It has never sent anything.
    closing_ = static_cast<Source*>(context);
  }
  if (!closing_->empty() || held_) return false;
  *source = closing_->id;
  *source_context = closing_->context;
  std::erase_if(sources_, [this](const auto& one) { return one.get() == closing_; });
  closing_ = nullptr;
  return true;
}

}  // namespace portofu
