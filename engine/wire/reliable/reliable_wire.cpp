// The interface of wire.h on links that are opened, filled, read, closed and lost.

#include "engine/wire/reliable/reliable_wire.h"

#include <algorithm>
#include <cstring>

#include "engine/queue/assert.h"

namespace portofu {
namespace {

/// A multiple of 64, at least what wire.h asks for; if a datagram holds more, a packet fills one.
std::uint32_t payload_for(std::uint32_t datagram_bytes) {
  constexpr std::uint32_t kLeastPayload = 4096;
  const std::uint32_t in_one = datagram_bytes - static_cast<std::uint32_t>(sizeof(FrameHeader) + sizeof(PacketHeader));
  return std::max(kLeastPayload, in_one / 64 * 64);
}

}  // namespace

ReliableWire::ReliableWire(std::unique_ptr<DatagramEndpoint> endpoint, const ReliableOptions& options,
                           Counters counters)
    : Wire({payload_for(endpoint->max_bytes()), options.connect_timeout_ns},
           {.loans = nullptr, .copies = nullptr, .peer_memory = nullptr, .completions = nullptr, .other_nodes = this}),
      endpoint_(std::move(endpoint)),
      options_(options),
      frame_bytes_(endpoint_->max_bytes() - static_cast<std::uint32_t>(sizeof(FrameHeader))),
      datagram_(endpoint_->max_bytes()),
      now_ns_(endpoint_->now_ns()),
      counters_(counters) {
  PORTOFU_ASSERT(endpoint_->max_bytes() >= kMinDatagramBytes && options.life != 0);
  closed_sources_ = 0;
}

ReliableWire::~ReliableWire() {
  for (const auto& [key, link] : outgoing_) send_plain(link->peer, FrameKind::kNoSender, link->id, link->acceptance);
  for (const auto& [key, link] : incoming_)
    send_plain(link->source, FrameKind::kNoReceiver, link->id, link->acceptance);
}

/// Never 0, and never the same again.
std::uint64_t ReliableWire::new_number() {
  std::uint64_t mixed = options_.life + ++numbers_given_ * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  mixed ^= mixed >> 31;
  return mixed != 0 ? mixed : 1;
}

// ---- Links to peers ------------------------------------------------------------------------------------------------

ConnectResult ReliableWire::connect(ProcessId peer, Link** link) {
  progress();
  bool busy = false;
  for (auto at = outgoing_.lower_bound({process_key(peer), 0});
       at != outgoing_.end() && at->first.first == process_key(peer);) {
    OutgoingLink& known = *at->second;
    known.for_source = false;
    // It may have been made as the way back to one who is gone.
    if (!known.held) leads_to_name(known);
    if (known.state == SendingState::kOpen) {
      known.held = true;
      known.news = false;
      *link = &known;
      return ConnectResult::kConnected;
    }
    if (known.state == SendingState::kOver && known.unreachable) {
      at = outgoing_.erase(at);
      return ConnectResult::kNoSuchPeer;
    }
    if (known.state == SendingState::kOpening) known.wanted_ns = now_ns_;
    busy = busy || known.state != SendingState::kOver;
    ++at;
  }
  if (!busy) wake_at(serve(open_link(peer)));
  return ConnectResult::kInProgress;
}

OutgoingLink& ReliableWire::open_link(ProcessId peer) {
  const std::uint64_t id = new_number();
  auto& made = outgoing_[{process_key(peer), id}];
  made = std::make_unique<OutgoingLink>(peer, id, frame_bytes_, send_held_);
  made->ordinal = numbers_given_;
  made->liveness.heard(now_ns_);
  made->wanted_ns = now_ns_;
  return *made;
}

void ReliableWire::disconnect(Link* link) {
  auto& own = static_cast<OutgoingLink&>(*link);
  PORTOFU_ASSERT(own.held && own.claimed.data() == nullptr);
  own.held = false;
  own.close_lane();
  if (own.state == SendingState::kOpen) own.state = SendingState::kClosing;
  own.next_question_ns = 0;
  wake_at(now_ns_);
}

void ReliableWire::lose(OutgoingLink& link) {
  const bool was_opening = link.state == SendingState::kOpening;
  link.lost = true;
  link.news = was_opening && !link.for_source;
  link.state = SendingState::kOver;
  for (SendWindow& window : link.windows) window.clear();
  if (link.held) ++newly_lost_;
  if (link.life != 0 && !link.replaced) refuse_source(link.peer);
  if (was_opening) end_of_opening(link.peer);
}

/// What the process waits for from us may be among what was lost, so it must not believe that its link to us is sound.
/// Whatever its life: a late kAccept of a former life may have misled us.
void ReliableWire::refuse_source(ProcessId source) {
  const std::uint64_t key = process_key(source);
  for (auto at = incoming_.lower_bound({key, 0}); at != incoming_.end() && at->first.first == key; ++at) {
    IncomingLink& link = *at->second;
    if (link.state != ReceivingState::kOpen) continue;
    end_incoming(link);
    send_plain(source, FrameKind::kNoReceiver, link.id, link.acceptance);
  }
}

void ReliableWire::give_up(ProcessId peer) {
  const std::uint64_t key = process_key(peer);
  for (auto at = outgoing_.lower_bound({key, 0}); at != outgoing_.end() && at->first.first == key; ++at) {
    if (at->second->state == SendingState::kOpening) lose(*at->second);
  }
  refuse_source(peer);
  wake_at(now_ns_);
}

std::byte* ReliableWire::claim(Link& link, std::uint32_t payload_bytes) {
  return claim_of_class(link, payload_bytes, TrafficClass::kRequest);
}

std::byte* ReliableWire::claim_answer(Link& link, std::uint32_t payload_bytes) {
  return claim_of_class(link, payload_bytes, TrafficClass::kAnswer);
}

std::byte* ReliableWire::claim_of_class(Link& link, std::uint32_t payload_bytes, TrafficClass traffic) {
  auto& own = static_cast<OutgoingLink&>(link);
  const auto index = static_cast<std::size_t>(traffic);
  PORTOFU_ASSERT(own.claimed.data() == nullptr && payload_bytes <= max_payload_bytes());
  if (own.lost) return nullptr;
  const auto packet_bytes = static_cast<std::uint32_t>(sizeof(PacketHeader)) + payload_bytes;
  if (!own.windows[index].has_room(packet_bytes)) {
    own.room_wanted[index] = packet_bytes;
    return nullptr;
  }
  own.claimed = PacketBuffer(packet_bytes);
  own.claimed_bytes = payload_bytes;
  own.claimed_class = traffic;
  return own.claimed.data() + sizeof(PacketHeader);
}

void ReliableWire::publish(Link& link, const PacketHeader& header) {
  auto& own = static_cast<OutgoingLink&>(link);
  PORTOFU_ASSERT(own.claimed.data() != nullptr && header.payload_bytes <= own.claimed_bytes);
  PORTOFU_ASSERT(own.claimed_class == traffic_class_of(header));
  PacketBuffer packet = std::move(own.claimed);
  if (own.lost) return;
  own.close_lane();
  std::memcpy(packet.data(), &header, sizeof header);
  SendWindow& window = own.windows[static_cast<std::size_t>(own.claimed_class)];
  const auto packet_bytes = static_cast<std::uint32_t>(sizeof header) + header.payload_bytes;
  window.add(std::move(packet), packet_bytes, may_be_lost(header) ? Delivery::kOnce : Delivery::kReliable);
  read_clock();
  wake_at(send_due_data(own));
}

void ReliableWire::discard(Link& link) {
  auto& own = static_cast<OutgoingLink&>(link);
  PORTOFU_ASSERT(own.claimed.data() != nullptr);
  own.claimed = {};
}

bool ReliableWire::has_room_again() {
  progress();
  bool any = false;
  for (const auto& [key, link] : outgoing_) {
    any = std::exchange(link->news, false) || any;
    for (std::size_t i = 0; i < kTrafficClassCount; ++i) {
      if (link->room_wanted[i] == 0) continue;
      const bool has_room = !link->lost && link->windows[i].has_room(link->room_wanted[i]);
      if (has_room || link->lost) link->room_wanted[i] = 0;
      any = any || has_room;
    }
  }
  return any;
}

// ---- Links from sources --------------------------------------------------------------------------------------------

/// An earlier link of the same process, perhaps of an earlier life, is not over for the engine.
bool ReliableWire::waits_for_older(const IncomingLink& link) const {
  return sources_.at(process_key(link.source)).front() != &link;
}

void ReliableWire::list_if_ready(IncomingLink& link) {
  if (link.listed || &link == held_link_ || link.held_back) return;
  if (link.state == ReceivingState::kOffered || waits_for_older(link)) return;
  if (!link.windows[0].has_packet() && !link.windows[1].has_packet()) return;
  link.listed = true;
  ready_.push_back(&link);
}

/// What a source sends may be seen by a program that ends this process at once, and its answer cannot leave before
/// there is a link. So that is made first.
/// @return whether it is still being made
bool ReliableWire::open_way_back(ProcessId source) {
  bool opening = false;
  bool known = false;
  for_each_link_to(source, [&](const OutgoingLink& link) {
    opening = opening || link.state == SendingState::kOpening;
    known = known || link.state == SendingState::kOpen || (link.state == SendingState::kClosing && !link.for_source);
  });
  if (opening || known) return opening;
  OutgoingLink& made = open_link(source);
  made.for_source = true;
  wake_at(serve(made));
  return made.state == SendingState::kOpening;
}

/// The last link of the source is over, and nobody has used the way back.
void ReliableWire::close_way_back(ProcessId source) {
  for_each_link_to(source, [&](OutgoingLink& link) {
    if (!link.for_source) return;
    if (link.state == SendingState::kOpen) link.state = SendingState::kClosing;
    if (link.state == SendingState::kOpening) lose(link);
    link.next_question_ns = 0;
  });
  wake_at(now_ns_);
}

/// A link to the peer is made, or there will be none: what the peer has sent need not wait for it any more.
void ReliableWire::end_of_opening(ProcessId peer) {
  for_each_link_from(peer, [&](IncomingLink& link) {
    if (std::exchange(link.held_back, false)) list_if_ready(link);
  });
}

void ReliableWire::end_incoming(IncomingLink& link) {
  if (link.state == ReceivingState::kEnded) return;
  link.state = ReceivingState::kEnded;
  ++closed_sources_;
  if (std::exchange(link.held_back, false)) list_if_ready(link);
}

/// The next packet of the link, answers before requests. One that says other lengths than it has is dropped.
bool ReliableWire::take_front(IncomingLink& link, Packet& packet) {
  for (const TrafficClass traffic : {TrafficClass::kAnswer, TrafficClass::kRequest}) {
    ReceiveWindow& window = link.windows[static_cast<std::size_t>(traffic)];
    for (std::uint32_t left = kWindowFrames; left > 0 && window.has_packet(); --left) {
      const std::span<const std::byte> whole = window.front();
      std::memcpy(&packet.header, whole.data(), sizeof(PacketHeader));
      held_link_ = &link;
      held_window_ = &window;
      if (packet.header.payload_bytes == whole.size() - sizeof(PacketHeader)) {
        packet.payload = whole.data() + sizeof(PacketHeader);
        packet.source = link.source;
        packet.source_context = &link;
        return true;
      }
      counters_.add(Counter::kFramesRefused);
      release();
    }
  }
  return false;
}

bool ReliableWire::peek(Packet& packet) {
  PORTOFU_ASSERT(held_link_ == nullptr);
  progress();
  while (!ready_.empty()) {
    IncomingLink& link = *ready_.front();
    ready_.pop_front();
    link.listed = false;
    if (take_front(link, packet)) return true;
  }
  return false;
}

/// Frames with a gap before them do not count: nobody sends what is missing.
bool ReliableWire::has_unheard(ProcessId peer, std::uint64_t life) {
  progress();
  const std::uint64_t key = process_key(peer);
  for (auto at = incoming_.lower_bound({key, 0}); at != incoming_.end() && at->first.first == key; ++at) {
    IncomingLink& link = *at->second;
    if (link.life != life || link.state == ReceivingState::kOffered) continue;
    if (&link == held_link_ || link.windows[0].has_packet() || link.windows[1].has_packet()) return true;
  }
  return false;
}

void ReliableWire::release() {
  PORTOFU_ASSERT(held_link_ != nullptr);
  IncomingLink& link = *held_link_;
  held_window_->release();
  held_link_ = nullptr;
  held_window_ = nullptr;
  ++link.released;
  if (link.state == ReceivingState::kOpen) want_ack(link, false);
  list_if_ready(link);
}

bool ReliableWire::has_packets() {
  progress();
  return !ready_.empty() || !endpoint_->may_sleep();
}

bool ReliableWire::take_closed_source(ProcessId* source, void** engines) {
  if (closed_sources_ == 0) return false;
  for (const auto& [key, links] : sources_) {
    IncomingLink& oldest = *links.front();
    if (oldest.state != ReceivingState::kEnded || oldest.listed || &oldest == held_link_) continue;
    *source = oldest.source;
    *engines = oldest.engines;
    forget_incoming(oldest);
    return true;
  }
  return false;
}

void ReliableWire::forget_incoming(IncomingLink& link) {
  const LinkKey key{process_key(link.source), link.id};
  for (ReceiveWindow& window : link.windows) window.clear();
  if (link.state == ReceivingState::kEnded) --closed_sources_;
  if (link.ack_wanted) std::erase(acks_, &link);
  if (const auto found = sources_.find(key.first); found != sources_.end()) {
    std::erase(found->second, &link);
    if (found->second.empty()) {
      sources_.erase(found);
      close_way_back(link.source);
    } else {
      list_if_ready(*found->second.front());
    }
  }
  incoming_.erase(key);
}

// ---- Looking at it -------------------------------------------------------------------------------------------------

int ReliableWire::check_peers() {
  constexpr std::uint64_t kWatchNs = 250'000'000;
  progress();
  for (const auto& [key, link] : outgoing_) link->watched_until_ns = now_ns_ + kWatchNs;
  for (const auto& [key, link] : incoming_) link->watched_until_ns = now_ns_ + kWatchNs;
  serve_timers();
  return std::exchange(newly_lost_, 0);
}

bool ReliableWire::is_settled() const {
  const bool receives = !ready_.empty() || held_link_ != nullptr || !acks_.empty();
  return !receives && std::all_of(outgoing_.begin(), outgoing_.end(), [](const auto& entry) {
    const OutgoingLink& link = *entry.second;
    return link.state == SendingState::kOver || (link.state == SendingState::kOpen && link.all_acknowledged());
  });
}

}  // namespace portofu
