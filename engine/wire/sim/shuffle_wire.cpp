// Takes packets in from the inner wire, and hands them on in another order.

#include "engine/wire/sim/shuffle_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/queue/assert.h"
#include "engine/wire/sim/held_back.h"

namespace portofu {
namespace {

/// Packets that wait here at most; the rest stays in the inner wire, whose senders then find no room.
constexpr std::size_t kMostWaiting = 32;

/// Most polls for which the first packet of a lane stays invisible.
constexpr std::uint32_t kMostDelayPolls = 6;

bool is_ordered(const PacketHeader& header) { return (header.flags & kFlagUnordered) == 0; }

}  // namespace

/// Where a packet of the lane goes: to the message that it continues, or to a new one. A new message may come before
/// all that have not begun; an ordered one only behind the last ordered one.
ShuffleWire::Message& ShuffleWire::place(Lane& lane, const PacketHeader& header) {
  const auto open = std::find_if(lane.begin(), lane.end(), [](const Message& one) { return one.missing_bytes > 0; });
  if (header.type == PacketType::kData && open != lane.end()) {
    const bool last = (header.flags & kFlagCut) != 0 || header.payload_bytes >= open->missing_bytes;
    open->missing_bytes = last ? 0 : open->missing_bytes - header.payload_bytes;
    return *open;
  }
  if (open != lane.end()) open->missing_bytes = 0;  // The peer lies; let the engine judge.
  std::size_t first = !lane.empty() && lane.front().begun ? 1 : 0;
  if (is_ordered(header)) {
    for (std::size_t i = first; i < lane.size(); ++i) {
      if (lane[i].ordered) first = i + 1;
    }
  }
  const std::size_t index = first + random_.below(lane.size() - first + 1);
  Message message;
  message.missing_bytes = bytes_to_come(header);
  message.ordered = is_ordered(header);
  return *lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(index), std::move(message));
}

/// There is a bound, but not for a message whose beginning was handed on already: nothing can come before its rest.
bool ShuffleWire::may_take_in() const {
  if (closing_ != nullptr || in_hand_) return false;
  if (waiting_packets_ < kMostWaiting) return true;
  return std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return std::any_of(source->lanes.begin(), source->lanes.end(),
                       [](const Lane& lane) { return !lane.empty() && lane.front().starves(); });
  });
}

void ShuffleWire::take_in() {
  Packet packet;
  while (may_take_in() && inner_.peek(packet)) {
    in_hand_ = !packet.payload.is_here();
    SimPayload payload(in_hand_ ? 0 : packet.header.payload_bytes);
    if (!in_hand_) std::memcpy(payload.data(), packet.payload.here(), packet.header.payload_bytes);
    const auto lent = in_hand_ ? std::optional(packet.payload) : std::nullopt;
    const auto delay_polls = static_cast<std::uint32_t>(random_.below(kMostDelayPolls + 1));
    Lane& lane = held_source(sources_, packet).lanes[is_of_answer(packet.header) ? kAnswers : kRequests];
    place(lane, packet.header).packets.push_back({{packet.header, std::move(payload), delay_polls}, lent});
    ++waiting_packets_;
    if (!in_hand_) inner_.release();
  }
}

/// Every call brings the invisible ones nearer.
std::vector<ShuffleWire::Choice> ShuffleWire::poll_lanes() {
  std::vector<Choice> visible;
  for (const auto& source : sources_) {
    for (Lane& lane : source->lanes) {
      if (lane.empty() || lane.front().packets.empty()) continue;
      HeldBack& next = lane.front().packets.front();
      if (next.delay_polls > 0) {
        --next.delay_polls;
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
  Message& message = chosen.lane->front();
  held_.emplace(std::move(message.packets.front()));
  message.packets.pop_front();
  message.begun = true;
  --waiting_packets_;
  if (message.over()) chosen.lane->pop_front();
  held_source_ = chosen.source;
  packet.source = chosen.source->id;
  packet.header = held_->header;
  packet.payload = held_->lent.value_or(Payload(held_->payload.data()));
  packet.source_context = chosen.source;
  return true;
}

void ShuffleWire::release() {
  PORTOFU_ASSERT(held_);
  if (held_->lent) {
    inner_.release();
    in_hand_ = false;
  }
  held_.reset();
  held_source_ = nullptr;
}

/// What was read late is of the wire below, as is a packet that it has in hand.
bool ShuffleWire::acknowledge(ProcessId sender, std::uint32_t operation_id) {
  const bool is_here = held_source_ != nullptr && held_source_->id == sender && !held_->lent;
  return is_here ? acknowledge_released(sender, held_source_->life, operation_id)
                 : inner_.completions()->acknowledge(sender, operation_id);
}

bool ShuffleWire::has_unheard(ProcessId peer, std::uint64_t life) {
  if (held_source_ != nullptr && held_source_->life == life) return true;
  const auto waits = [](const Lane& lane) {
    return std::any_of(lane.begin(), lane.end(), [](const Message& message) { return !message.packets.empty(); });
  };
  const bool waits_here = std::any_of(sources_.begin(), sources_.end(), [&](const auto& source) {
    return source->life == life && std::any_of(source->lanes.begin(), source->lanes.end(), waits);
  });
  return waits_here || inner_.has_unheard(peer, life);
}

bool ShuffleWire::take_closed_source(ProcessId* source, void** engines) {
  if (closing_ == nullptr) {
    void* context = nullptr;
    if (!inner_.take_closed_source(source, &context)) return false;
    *engines = nullptr;
    if (context == nullptr) return true;  // It has never sent anything.
    closing_ = static_cast<Source*>(context);
    for (Lane& lane : closing_->lanes) {
      for (Message& message : lane) message.missing_bytes = 0;  // Nothing more comes.
      if (!lane.empty() && lane.front().over()) lane.pop_front();
    }
  }
  if (!closing_->empty() || held_) return false;
  *source = closing_->id;
  *engines = closing_->engines;
  std::erase_if(sources_, [this](const auto& one) { return one.get() == closing_; });
  closing_ = nullptr;
  return true;
}

}  // namespace portofu
