// What arrives: one case per kind of frame.

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/segment/names_word.h"
#include "engine/wire/reliable/reliable_wire.h"

namespace portofu {
namespace {

/// Datagrams that one look takes at most, so that the engine gets to what they brought.
constexpr int kReceiveBudget = 64;

/// So many looks in a row may leave datagrams behind before news of the unreachable is taken all the same.
constexpr std::uint32_t kMostWithheld = 64;

/// Openings of one process that wait for a sign that they are of today.
constexpr std::size_t kMostOffers = 4;

/// Looks that are this much further apart than the limit allows silence say nothing about peers: we were away.
constexpr std::uint64_t kAwayShare = 4;

bool is_for_receiver(FrameKind kind) {
  return kind == FrameKind::kData || kind == FrameKind::kProbe || kind == FrameKind::kClose ||
         kind == FrameKind::kNoSender;
}

bool is_for_sender(FrameKind kind) {
  return kind == FrameKind::kAck || kind == FrameKind::kCheck || kind == FrameKind::kNoReceiver;
}

}  // namespace

void ReliableWire::read_clock() {
  const std::uint64_t now_ns = endpoint_->now_ns();
  const bool was_away = now_ns > now_ns_ && now_ns - now_ns_ > options_.silence_limit_ns / kAwayShare;
  now_ns_ = std::max(now_ns_, now_ns);
  if (!was_away) [[likely]]
    return;
  for (const auto& [key, link] : outgoing_) link->liveness.pardon(now_ns_);
  for (const auto& [key, link] : incoming_) {
    link->liveness.pardon(now_ns_);
    if (link->state == ReceivingState::kOffered) link->liveness.heard(now_ns_);
  }
}

void ReliableWire::progress() {
  read_clock();
  if (endpoint_->has_datagrams()) {
    // What a peer sent before it was gone lies in front of that news; others who send much do not keep it back for
    // ever.
    const bool is_empty = receive_frames();
    if (is_empty || ++news_withheld_ > kMostWithheld) {
      news_withheld_ = 0;
      take_unreachable();
    }
  }
  if (now_ns_ >= next_due_ns_) serve_timers();
  if (!acks_.empty()) send_acks();
}

/// @return whether all is taken that was there
bool ReliableWire::receive_frames() {
  ProcessId source;
  for (int left = kReceiveBudget; left > 0; --left) {
    const std::uint32_t bytes = endpoint_->receive(datagram_.data(), &source);
    if (bytes == 0) return true;
    FrameHeader frame;
    std::span<const std::byte> body;
    if (!open_frame({datagram_.data(), bytes}, &frame, &body)) {
      counters_.add(Counter::kFramesDamaged);
      continue;
    }
    receive_frame(source, frame, body);
  }
  return false;
}

void ReliableWire::receive_frame(ProcessId source, const FrameHeader& frame, std::span<const std::byte> body) {
  if (frame.kind == FrameKind::kOpen) return receive_open(source, frame);
  if (frame.kind == FrameKind::kAccept) return receive_accept(source, frame);
  if (is_for_receiver(frame.kind)) return receive_for_receiver(source, frame, body);
  if (is_for_sender(frame.kind)) return receive_for_sender(source, frame, body);
  counters_.add(Counter::kFramesRefused);
}

// ---- Opening -------------------------------------------------------------------------------------------------------

void ReliableWire::introduce(std::uint16_t ear, std::function<void(std::uint32_t nid, std::uint16_t port)> note) {
  ear_ = ear;
  note_ = std::move(note);
}

void ReliableWire::end_life(ProcessId process, std::uint64_t life) {
  for_each_link_to(process, [&](OutgoingLink& link) {
    if (link.state == SendingState::kOpening) link.ended_lives.push_back(life);
    if (link.state != SendingState::kOpen || link.life != life) return;
    link.life_over = true;
    link.seen_names = kNamesMoving;
  });
}

void ReliableWire::ask_anew(ProcessId peer) {
  read_clock();
  for_each_link_to(peer, [&](OutgoingLink& link) {
    link.unreachable = false;
    if (link.state != SendingState::kOpening) return;
    link.liveness.heard(now_ns_);
    link.questions = 0;
    link.next_question_ns = 0;
  });
  wake_at(now_ns_);
}

bool ReliableWire::leads_to_name(Link& given) {
  auto& link = static_cast<OutgoingLink&>(given);
  if (link.life_over && !link.lost) {
    link.life = 0;  // The dead wait for nothing.
    lose(link);
  }
  return !link.lost;
}

void ReliableWire::receive_open(ProcessId source, const FrameHeader& frame) {
  if (note_ && frame.ear != 0 && frame.ear <= UINT16_MAX) note_(source.nid, static_cast<std::uint16_t>(frame.ear));
  const auto found = incoming_.find({process_key(source), frame.link});
  IncomingLink* link = found != incoming_.end() ? found->second.get() : nullptr;
  if (link == nullptr) {
    IncomingLink* oldest = nullptr;
    std::size_t offers = 0;
    for_each_link_from(source, [&](IncomingLink& other) {
      if (other.state != ReceivingState::kOffered) return;
      ++offers;
      if (oldest == nullptr || other.ordinal < oldest->ordinal) oldest = &other;
    });
    if (offers >= kMostOffers) forget_incoming(*oldest);
    auto& made = incoming_[{process_key(source), frame.link}];
    const auto max_packet_bytes = max_payload_bytes() + static_cast<std::uint32_t>(sizeof(PacketHeader));
    made = std::make_unique<IncomingLink>(source, frame.link, max_packet_bytes, receive_held_);
    link = made.get();
    link->liveness.heard(now_ns_);
    link->acceptance = new_number();
    link->ordinal = numbers_given_;
    link->life = frame.life;
    wake_at(serve(*link));
  }
  if (link->state == ReceivingState::kEnded || link->life != frame.life) return;
  FrameHeader accept{};
  accept.kind = FrameKind::kAccept;
  accept.link = link->id;
  accept.acceptance = link->acceptance;
  accept.life = options_.life;
  send_frame(source, accept, {});
}

void ReliableWire::receive_accept(ProcessId source, const FrameHeader& frame) {
  const auto found = outgoing_.find({process_key(source), frame.link});
  if (found == outgoing_.end() || found->second->state == SendingState::kOver) {
    send_plain(source, FrameKind::kNoSender, frame.link, frame.acceptance);
    return;
  }
  OutgoingLink& link = *found->second;
  if (link.state != SendingState::kOpening || std::ranges::count(link.ended_lives, frame.life) != 0) return;
  link.ended_lives.clear();
  link.acceptance = frame.acceptance;
  link.life = frame.life;
  link.state = SendingState::kOpen;
  link.news = !link.for_source;
  link.liveness.heard(now_ns_);
  link.liveness.met(now_ns_);
  link.questions = 0;
  // Who has offered itself before this link was opened, and is another life, is over: the receiver has begun since, or
  // it would not have answered. Words of it that come late do not end the link to the next one.
  for_each_link_from(source, [&](IncomingLink& other) {
    const bool is_over = other.life != link.life && other.ordinal < link.ordinal;
    if (is_over && other.state == ReceivingState::kOffered) forget_incoming(other);
  });
  // The receiver gives nothing to its engine before it has heard us use the acceptance.
  send_plain(source, FrameKind::kProbe, link.id, link.acceptance);
  link.liveness.asked(now_ns_);
  link.questions = 1;
  link.next_question_ns = now_ns_ + link.round_trip.timeout_ns(1);
  wake_at(link.next_question_ns);
  end_of_opening(source);
}

/// The sender lives, and this is its link: earlier ones are over, and so is what we send to an earlier life.
void ReliableWire::confirm(IncomingLink& link) {
  for_each_link_from(link.source, [&](IncomingLink& other) {
    if (other.ordinal >= link.ordinal) return;
    if (other.state == ReceivingState::kOffered) return forget_incoming(other);
    end_incoming(other);
  });
  link.state = ReceivingState::kOpen;
  link.liveness.met(now_ns_);
  sources_[process_key(link.source)].push_back(&link);
  for_each_link_to(link.source, [&](OutgoingLink& other) {
    // That nobody was there was true of the time before. Whoever is told so now would refuse the new process.
    other.unreachable = false;
    if (other.state == SendingState::kOpening) other.liveness.heard(now_ns_);
    const bool is_open = other.state == SendingState::kOpen || other.state == SendingState::kClosing;
    if (!is_open || other.life == link.life) return;
    other.replaced = true;  // A dead process waits for nothing, and the new one is not to be refused.
    lose(other);
  });
  link.held_back = open_way_back(link.source);
}

// ---- Open links ----------------------------------------------------------------------------------------------------

void ReliableWire::receive_for_receiver(ProcessId source, const FrameHeader& frame, std::span<const std::byte> body) {
  const auto found = incoming_.find({process_key(source), frame.link});
  if (found == incoming_.end() || found->second->acceptance != frame.acceptance ||
      found->second->state == ReceivingState::kEnded) {
    counters_.add(Counter::kFramesRefused);
    if (frame.kind != FrameKind::kNoSender) send_plain(source, FrameKind::kNoReceiver, frame.link, frame.acceptance);
    return;
  }
  IncomingLink& link = *found->second;
  if (frame.kind == FrameKind::kNoSender) {
    return link.state == ReceivingState::kOffered ? forget_incoming(link) : end_incoming(link);
  }
  if (link.state == ReceivingState::kOffered) confirm(link);
  link.liveness.heard(now_ns_);
  link.questions = 0;
  if (frame.sent_ns > link.echo_ns) {
    link.echo_ns = frame.sent_ns;
    link.echo_arrived_ns = now_ns_;
  }
  if (frame.kind == FrameKind::kProbe) return want_ack(link, true);
  if (frame.kind == FrameKind::kClose) {
    end_incoming(link);
    send_plain(source, FrameKind::kNoReceiver, frame.link, frame.acceptance);
    return;
  }
  ReceiveWindow& window = link.windows[static_cast<std::size_t>(frame.traffic)];
  const bool in_order =
      frame.sequence == window.next() + static_cast<std::uint32_t>(std::countr_one(window.selected()));
  const Admission admission = window.admit(frame, body);
  if (admission == Admission::kRefused) counters_.add(Counter::kFramesRefused);
  if (admission == Admission::kDuplicate) counters_.add(Counter::kFramesDuplicate);
  if (admission == Admission::kNew) list_if_ready(link);
  want_ack(link, admission != Admission::kNew || !in_order);
}

void ReliableWire::receive_for_sender(ProcessId source, const FrameHeader& frame, std::span<const std::byte> body) {
  const auto found = outgoing_.find({process_key(source), frame.link});
  if (found == outgoing_.end() || found->second->state == SendingState::kOver) {
    counters_.add(Counter::kFramesRefused);
    if (frame.kind != FrameKind::kNoReceiver) send_plain(source, FrameKind::kNoSender, frame.link, frame.acceptance);
    return;
  }
  OutgoingLink& link = *found->second;
  if (link.acceptance != frame.acceptance || link.state == SendingState::kOpening) {
    counters_.add(Counter::kFramesRefused);
    return;
  }
  if (frame.kind == FrameKind::kNoReceiver) {
    if (link.state == SendingState::kClosing && link.all_acknowledged()) {
      link.state = SendingState::kOver;
    } else {
      lose(link);
    }
    return wake_at(now_ns_);
  }
  link.liveness.heard(now_ns_);
  link.questions = 0;
  if (frame.kind == FrameKind::kAck) return receive_ack(link, body);
  send_plain(source, FrameKind::kProbe, link.id, link.acceptance);
}

void ReliableWire::receive_ack(OutgoingLink& link, std::span<const std::byte> body) {
  AckBody ack;
  if (body.size() != sizeof ack) {
    counters_.add(Counter::kFramesRefused);
    return;
  }
  std::memcpy(&ack, body.data(), sizeof ack);
  // Only by what is new: an old acknowledgement that comes late or twice says nothing about the round trip.
  if (ack.echo_ns > link.echoed_ns && ack.echo_ns <= now_ns_ && now_ns_ - ack.echo_ns >= ack.hold_ns) {
    link.echoed_ns = ack.echo_ns;
    link.round_trip.measured(now_ns_ - ack.echo_ns - ack.hold_ns);
  }
  const std::uint64_t disorder_ns = link.round_trip.disorder_ns();
  const std::uint64_t lost_before_ns = ack.echo_ns > disorder_ns ? ack.echo_ns - disorder_ns : 0;
  for (std::size_t i = 0; i < kTrafficClassCount; ++i) {
    SendWindow& window = link.windows[i];
    if (window.acknowledge(ack.next[i], ack.selected[i], lost_before_ns)) continue;
    counters_.add(Counter::kFramesRefused);
    return lose(link);
  }
  wake_at(serve(link));
}

void ReliableWire::take_unreachable() {
  ProcessId peer;
  for (int left = kReceiveBudget; left > 0 && endpoint_->take_unreachable(&peer); --left) {
    const std::uint64_t since_ns = endpoint_->unreachable_since_ns();
    for_each_link_to(peer, [&](OutgoingLink& link) {
      if (link.state == SendingState::kOver || !link.liveness.told_unreachable(now_ns_, since_ns)) return;
      link.unreachable = link.state == SendingState::kOpening && !link.for_source;
      lose(link);
    });
    for_each_link_from(peer, [&](IncomingLink& link) {
      if (link.state == ReceivingState::kOpen && link.liveness.told_unreachable(now_ns_, since_ns)) end_incoming(link);
    });
    wake_at(now_ns_);
  }
}

}  // namespace portofu
