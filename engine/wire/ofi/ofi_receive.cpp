// The receiving half: who may send, which link a packet belongs to, and when a link is over.

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/observe/log.h"
#include "engine/queue/assert.h"
#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"
#include "engine/topology/node_id.h"
#include "engine/topology/process_id.h"
#include "engine/wire/ofi/empty_looks.h"
#include "engine/wire/ofi/ofi_wire.h"
#include "engine/wire/traffic_class.h"

namespace portofu {
namespace {

/// Refusals to one peer beyond this number are dropped while the fabric takes none.
constexpr std::size_t kMostWaitingRefusals = 64;

/// Rounds of events that one call takes at most.
constexpr int kMostRounds = 4;

/// Events that are taken at once at most, and rounds of them before the end of a life is acted upon.
constexpr std::size_t kEventsPerRound = 16;
constexpr int kMostLastRounds = 256;

/// Whether a sender is waiting for something to come back.
constexpr bool awaits_answer(OfiKind kind) {
  return kind == OfiKind::kHello || kind == OfiKind::kPacket || kind == OfiKind::kLoan || kind == OfiKind::kProbe ||
         kind == OfiKind::kGoodbye;
}

/// The one that is known is over, then.
bool tells_of_another_life(const OfiPeer& peer, const OfiEnvelope& head) {
  const OfiLink* const link = peer.link.get();
  if (link != nullptr && link->state == OfiLinkState::kOpen && link->life != head.life) return true;
  return std::ranges::any_of(peer.sources,
                             [&](const auto& source) { return source->life != head.life && !source->closing; });
}

}  // namespace

void OfiWire::progress() {
  const NoCancellation whole;
  for (int round = 0; round < kMostRounds; ++round) {
    if (take_events() < kEventsPerRound) break;
  }
  std::erase_if(stuck_, [this](OfiPeer* peer) { return advance_unsent(*peer); });
  if (!failed_.empty() || !new_lives_.empty()) [[unlikely]]
    end_lives();
  if (!fetching_.empty()) begin_fetches();
}

/// @return how many there were; fewer than kEventsPerRound may be all
std::size_t OfiWire::take_events() {
  std::array<FabricEvent, kEventsPerRound> events;
  const std::size_t count = endpoint_->poll(events);
  for (std::size_t i = 0; i < count; ++i) {
    const FabricEvent& event = events[i];
    if (event.kind == FabricEvent::Kind::kArrived) {
      take_message(event);
      continue;
    }
    if (event.fetch != nullptr) {
      take_fetched(event);
      continue;
    }
    OfiPeer& peer = *static_cast<OfiPeer*>(event.buffer->owner);
    --peer.under_way;
    endpoint_->give_buffer(event.buffer);
    if (event.kind == FabricEvent::Kind::kFailed) note_failed(peer, monotonic_ns());
  }
  return count;
}

/// Acts upon the end of lives: what they sent before lies in the fabric, and is taken first. Who was heard or greeted
/// after it was found absent may have come since, so it is asked for once more.
void OfiWire::end_lives() {
  for (int round = 0; round < kMostLastRounds && take_events() != 0; ++round) {
  }
  for (const auto& [peer, since_ns] : std::exchange(failed_, {})) {
    if (since_ns >= peer->since_ns) {
      fail_peer(*peer);
    } else {
      peer->probed_ns = 0;
    }
  }
  for (const auto& [peer, word] : std::exchange(new_lives_, {})) take_word(*peer, word);
}

bool OfiWire::has_unheard(ProcessId id, std::uint64_t life) {
  if (endpoint_ == nullptr) return false;
  progress();
  const OfiPeer* const peer = find_peer(id);
  if (peer == nullptr) return false;
  return std::ranges::any_of(peer->sources, [&](const auto& source) {
    const bool has_packet = source.get() == held_ || !source->arrivals.empty() || !source->behind.empty();
    return has_packet && source->life == life;
  });
}

void OfiWire::take_word(OfiPeer& peer, const OfiEnvelope& head) {
  head.kind == OfiKind::kHello ? take_hello(peer, head) : take_answer(peer, head);
}

void OfiWire::take_message(const FabricEvent& event) {
  OfiEnvelope head;
  bool kept = false;
  if (event.bytes < sizeof head) {
    counters_.add(Counter::kPacketsRefusedMalformed);
  } else {
    std::memcpy(&head, event.data, sizeof head);
    OfiPeer* const peer = authenticate(event, head);
    if (peer != nullptr) {
      switch (head.kind) {
        case OfiKind::kHello:
        case OfiKind::kRefusal:
          if (tells_of_another_life(*peer, head)) {
            new_lives_.emplace_back(peer, head);
          } else {
            take_word(*peer, head);
          }
          break;
        case OfiKind::kPacket:
        case OfiKind::kLoan: kept = take_packet(*peer, head, event); break;
        case OfiKind::kWelcome:
        case OfiKind::kCredit: take_answer(*peer, head); break;
        case OfiKind::kProbe: take_probe(*peer, head); break;
        case OfiKind::kGoodbye: take_goodbye(*peer, head); break;
        default: counters_.add(Counter::kPacketsRefusedMalformed); break;
      }
    }
  }
  if (!kept) endpoint_->release(event.holder);
}

/// @return who sent it; nullptr, counted, if it is nobody who may
OfiPeer* OfiWire::authenticate(const FabricEvent& event, const OfiEnvelope& head) {
  const auto refused = [this](Counter counter) {
    counters_.add(counter);
    return nullptr;
  };
  if (head.magic != kOfiMagic) return refused(Counter::kPacketsRefusedMalformed);
  if (head.job_key != options_.job_key || head.uid != options_.uid) return refused(Counter::kPacketsRefusedKey);
  const ProcessId id{head.nid, head.pid};
  const bool expected = options_.nodes.empty() || std::ranges::count(options_.nodes, id.nid) != 0;
  if (id.nid == options_.self.nid) tell_of_same_nid(id.nid);  // Processes of this node send nothing here.
  if (!expected || id.nid == options_.self.nid || id.pid == 0 || id.pid > kMaxPid || head.life == 0) {
    return refused(Counter::kPacketsRefusedSource);
  }
  OfiPeer* peer = find_peer(id);
  // The fabric names senders whose address it was told. A new one begins with a hello, unless it knows a former life of
  // ours, for which it would wait for ever.
  if (peer != nullptr) return event.source == peer->address ? peer : refused(Counter::kPacketsRefusedSource);
  if (event.source != FI_ADDR_NOTAVAIL || !awaits_answer(head.kind)) return refused(Counter::kPacketsRefusedSource);
  peer = make_peer(id);
  if (peer == nullptr) return refused(Counter::kPacketsRefusedSource);
  if (head.kind == OfiKind::kHello) return peer;
  refuse(*peer, head);
  return refused(Counter::kPacketsRefusedSource);
}

/// Whether nobody who is heard now has this peer's NID on another node.
bool OfiWire::is_of_one_node(const OfiPeer& peer, std::uint64_t node) {
  return node == 0 || std::none_of(peers_.begin(), peers_.end(), [&](const auto& entry) {
           const OfiPeer& other = *entry.second;
           const bool differs = other.id.nid == peer.id.nid && other.node != 0 && other.node != node;
           return differs && &other != &peer && !other.sources.empty();
         });
}

void OfiWire::tell_of_same_nid(std::uint32_t nid) {
  if (std::exchange(told_same_nid_, true)) return;
  log_error(
      "two nodes have the NID %s; messages would reach a stranger, so those of one are refused: give each its own "
      "by PORTOFU_NID or PORTOFU_INTERFACE",
      node_id_text(nid).c_str());
}

void OfiWire::take_hello(OfiPeer& peer, const OfiEnvelope& head) {
  if (ending_) return refuse(peer, head);
  const HelloCount hello = HelloCount::of(head.count);
  if (!is_of_one_node(peer, hello.node)) {
    tell_of_same_nid(peer.id.nid);
    return refuse(peer, head);
  }
  if (note_ && hello.ear != 0) note_(peer.id.nid, hello.ear);
  peer.ends = false;
  peer.node = hello.node;
  OfiSource* known = find_source(peer, head);
  if (known == nullptr) {
    for (const auto& source : peer.sources) source->life == head.life ? close_source(*source) : fail_source(*source);
    peer.sources.push_back(std::make_unique<OfiSource>());
    known = peer.sources.back().get();
    known->owner = &peer;
    known->life = head.life;
    known->number = head.link;
    peer.since_ns = monotonic_ns();
  }
  if (known->closing) return refuse(peer, head);
  if (peer.link != nullptr && peer.link->state == OfiLinkState::kOpen && peer.link->life != head.life) {
    end_link(peer, false);  // It leads to an earlier life.
  }
  if (peer.link != nullptr && peer.link->state == OfiLinkState::kEnded) {
    if (peer.link->given) peer.former = std::move(peer.link);
    peer.link.reset();
  }
  // What it sends may have been seen here, and this process be gone, before a link back could be made. So that comes
  // first: it sends nothing before our welcome, and welcomes us before that, because our hello is in front of it.
  if (peer.link == nullptr) {
    make_link(peer);
    send_hello(peer);
  }
  send_control(peer, OfiKind::kWelcome, head.life, head.link, kOfiWindowPackets);
}

/// The source that a message of a sender belongs to.
OfiSource* OfiWire::find_source(OfiPeer& peer, const OfiEnvelope& head) {
  if (peer.sources.empty()) return nullptr;
  OfiSource& latest = *peer.sources.back();
  return latest.life == head.life && latest.number == head.link ? &latest : nullptr;
}

void OfiWire::refuse(OfiPeer& peer, const OfiEnvelope& head) {
  if (peer.unsent.size() >= kMostWaitingRefusals) return;  // Who waits for one asks again.
  send_control(peer, OfiKind::kRefusal, head.life, head.link, 0);
}

/// Its packets cannot be had: the sender has to know.
void OfiWire::lose_source(OfiSource& source) {
  send_control(*source.owner, OfiKind::kRefusal, source.life, source.number, 0);
  fail_source(source);
}

/// A part of what the source has sent is lost, and answers may be among it. Whoever waits for them hears of it as of
/// the end of our own link.
void OfiWire::lose_packets(OfiSource& source, const OfiEnvelope& head) {
  OfiPeer& peer = *source.owner;
  close_source(source);
  refuse(peer, head);
  const OfiLink* const link = peer.link.get();
  if (link != nullptr && link->state == OfiLinkState::kOpen && link->life == source.life) end_link(peer, false);
}

/// @return true if the packet is kept until the engine has used it
bool OfiWire::take_packet(OfiPeer& peer, const OfiEnvelope& head, const FabricEvent& event) {
  OfiSource* const source = head.peer_life == options_.life ? find_source(peer, head) : nullptr;
  if (source == nullptr || source->closing) {
    refuse(peer, head);
    return false;
  }
  const bool lent = head.kind == OfiKind::kLoan;
  PacketHeader header;
  bool sane = event.bytes >= kOfiHeadBytes + (lent ? sizeof(OfiLoan) : 0) && event.bytes <= kFabricMessageBytes;
  if (sane) {
    std::memcpy(&header, event.data + sizeof head, sizeof header);
    const std::size_t most = lent ? longest_fetch() : event.bytes - kOfiHeadBytes;
    sane = header.payload_bytes <= most && header.uid == head.uid && (!lent || may_be_lent(header.type));
  }
  if (!sane || source->received - source->released >= kOfiWindowPackets) counters_.add(Counter::kSourcesEvicted);
  // A gap: the fabric has lost packets with a connection.
  if (!sane || source->received - source->released >= kOfiWindowPackets || head.count != source->received) {
    lose_packets(*source, head);
    return false;
  }
  ++source->received;
  const OfiArrival arrival{event.data + sizeof head, event.holder,
                           lent ? OfiPayload::kAtSender : OfiPayload::kInMessage, nullptr};
  if (!lent && source->behind.empty()) {
    deliver(*source, arrival);
  } else {
    if (source->behind.empty()) fetching_.push_back(source);
    source->behind.push_back(arrival);
  }
  return true;
}

/// From now on the engine may peek it.
void OfiWire::deliver(OfiSource& source, const OfiArrival& arrival) {
  source.arrivals.push_back(arrival);
  if (source.owner->sources.front().get() == &source) arrived_.push_back(&source);
}

void OfiWire::take_answer(OfiPeer& peer, const OfiEnvelope& head) {
  if (head.peer_life != options_.life) return;
  if (head.kind == OfiKind::kRefusal && !peer.sources.empty() && peer.sources.back()->life != head.life) {
    fail_source(*peer.sources.back());
  }
  if (head.link == peer.ending_link && head.kind != OfiKind::kWelcome) peer.ending_link = 0;
  if (peer.link == nullptr || peer.link->number != head.link || head.link == 0) return;
  OfiLink& link = *peer.link;
  if (head.kind == OfiKind::kRefusal) return end_link(peer, link.state == OfiLinkState::kGreeting);
  const bool has_ended = std::ranges::count(link.ended_lives, head.life) != 0;
  if (head.kind == OfiKind::kWelcome && link.state == OfiLinkState::kGreeting && !has_ended) {
    link.ended_lives.clear();
    link.state = OfiLinkState::kOpen;
    link.life = head.life;
    link.window = std::min(head.count, kOfiWindowPackets);
    room_again_ = true;
  }
  const bool fits = head.count >= link.released && head.count <= link.sent;
  if (head.kind != OfiKind::kCredit || link.state != OfiLinkState::kOpen || head.life != link.life || !fits) return;
  link.released = head.count;
  room_again_ = hide_until(link, link.released) || room_again_ || link.blocked;
  link.blocked = false;
}

void OfiWire::take_probe(OfiPeer& peer, const OfiEnvelope& head) {
  if (head.peer_life != options_.life) return refuse(peer, head);
  if (head.link == 0) return;
  OfiSource* const source = find_source(peer, head);
  if (source != nullptr && !source->closing && source->received == head.count) return;
  source != nullptr && !source->closing ? lose_packets(*source, head) : refuse(peer, head);
}

void OfiWire::take_goodbye(OfiPeer& peer, const OfiEnvelope& head) {
  OfiSource* const source = head.peer_life == options_.life ? find_source(peer, head) : nullptr;
  if (source != nullptr && head.ends == 1) peer.ends = true;
  if (source == nullptr || source->closing || ending_) return refuse(peer, head);
  source->said_goodbye = true;
  close_source(*source);
}

/// No more packets come; those that are here are taken, and what they have lent is fetched.
void OfiWire::close_source(OfiSource& source) {
  if (source.closing) return;
  source.closing = true;
  note_end(source);
}

/// The sender is gone: what it has lent is lost, and with it what is behind that in its class. The other class is
/// whole: an answer is one though a long put that came before it is none.
void OfiWire::fail_source(OfiSource& source) {
  if (source.closing && source.behind.empty()) return;
  source.closing = true;
  std::array<bool, kTrafficClassCount> broken{};
  for (const OfiArrival& arrival : std::exchange(source.behind, {})) {
    PacketHeader header;
    std::memcpy(&header, arrival.data, sizeof header);
    bool& is_broken = broken[static_cast<std::size_t>(traffic_class_of(header))];
    const bool is_here = arrival.payload == OfiPayload::kInMessage || arrival.payload == OfiPayload::kFetched;
    is_broken = is_broken || !is_here;
    if (!is_broken) {
      deliver(source, arrival);
      continue;
    }
    endpoint_->release(arrival.holder);
    if (arrival.payload == OfiPayload::kOnItsWay) endpoint_->forsake(arrival.fetch);
    if (arrival.payload == OfiPayload::kFetched) endpoint_->give_fetch_buffer(arrival.fetch);
  }
  std::erase(fetching_, &source);
  note_end(source);
}

/// Reports a source whose packets are all taken, once it is the first of its peer.
void OfiWire::note_end(OfiSource& source) {
  const bool first = source.owner->sources.front().get() == &source;
  if (!source.closing || !first || !source.arrivals.empty() || !source.behind.empty() || held_ == &source) return;
  ended_.push_back(&source);
  closed_sources_ = 1;
}

bool OfiWire::take_closed_source(ProcessId* id, void** engines) {
  if (ended_.empty()) return false;
  OfiSource& source = *ended_.back();
  ended_.pop_back();
  closed_sources_ = ended_.empty() ? 0 : 1;
  OfiPeer& peer = *source.owner;
  *id = peer.id;
  *engines = source.engines;
  if (source.said_goodbye) tell_released(source);
  peer.sources.pop_front();
  if (!peer.sources.empty()) {
    OfiSource& next = *peer.sources.front();
    for (std::size_t i = 0; i < next.arrivals.size(); ++i) arrived_.push_back(&next);
    note_end(next);
  }
  return true;
}

bool OfiWire::peek(Packet& packet) {
  PORTOFU_ASSERT(held_ == nullptr);
  if (arrived_.empty()) {
    if (endpoint_ == nullptr) return false;
    const std::uint32_t looks = empty_looks_++;
    if (is_left_out(looks)) return false;
    progress();
    if (arrived_.empty()) {
      if (handle_ && looks % kHandleLook == 0) handle_();
      return false;
    }
  }
  empty_looks_ = 0;
  held_ = arrived_.front();
  arrived_.pop_front();
  held_arrival_ = held_->arrivals.front();
  held_->arrivals.pop_front();
  packet.source = held_->owner->id;
  std::memcpy(&packet.header, held_arrival_.data, sizeof packet.header);
  packet.payload =
      held_arrival_.fetch != nullptr ? held_arrival_.fetch->memory.get() : held_arrival_.data + sizeof packet.header;
  packet.source_context = held_;
  return true;
}

void OfiWire::release() {
  PORTOFU_ASSERT(held_ != nullptr);
  endpoint_->release(held_arrival_.holder);
  if (held_arrival_.fetch != nullptr) endpoint_->give_fetch_buffer(held_arrival_.fetch);
  OfiSource& source = *held_;
  held_ = nullptr;
  ++source.released;
  if (source.closing) {
    note_end(source);
  } else if (held_arrival_.fetch != nullptr || source.released - source.told >= kOfiWindowPackets / 2) {
    tell_released(source);
  }
}

void OfiWire::tell_released(OfiSource& source) {
  source.told = source.released;
  send_control(*source.owner, OfiKind::kCredit, source.life, source.number, source.released);
}

bool OfiWire::has_packets() {
  if (endpoint_ == nullptr) return false;
  if (arrived_.empty()) progress();
  if (handle_) handle_();
  return !arrived_.empty() || fetch_refused_ || !endpoint_->may_sleep();
}

}  // namespace portofu
