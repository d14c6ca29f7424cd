// What leaves: data that is due, acknowledgements, and questions to those that are silent.

#include <algorithm>

#include "engine/wire/reliable/reliable_wire.h"

namespace portofu {
namespace {

/// Packets of one source that are released without telling it.
constexpr std::uint32_t kReleasedPerAck = 16;

/// A peer that was heard so shortly ago is not asked whether it lives.
constexpr std::uint64_t kHeardLatelyNs = 50'000'000;

/// Between two questions: doubled each time, but not for those of which the medium says that they are gone. Somebody
/// waits for a link that is being opened, perhaps before it leaves: there are many tries in a second
/// (Engine::kLingerNs).
constexpr std::uint64_t kFirstQuestionNs = 10'000'000;
constexpr std::uint64_t kSuspectedQuestionNs = 20'000'000;
constexpr std::uint32_t kMaxQuestionDoublings = 4;
constexpr std::uint32_t kMaxOpeningDoublings = 1;

/// A link that is being opened is forgotten when nobody has asked for it for so long.
constexpr std::uint64_t kForgetNs = 3'000'000'000;

/// An offer that nobody has taken for so long is forgotten; its sender may be stopped.
constexpr std::uint64_t kOfferNs = 30'000'000'000;

/// A source that says nothing and that nobody waits for is asked so rarely; only a clear answer ends it.
constexpr std::uint64_t kIdleNs = 30'000'000'000;

/// A peer is silent if it owes an answer for longer than this, and than twice the time that it usually takes.
constexpr std::uint64_t kSilentNs = 5'000'000;

/// A peer that owes an answer for longer than this, and than twice the time that it usually takes, is only asked.
constexpr std::uint64_t kOnlyAskedNs = 100'000'000;

/// The medium had no room: soon again.
constexpr std::uint64_t kNoRoomNs = 5'000;

std::uint64_t question_pause_ns(const Liveness& liveness, std::uint32_t questions, std::uint64_t now_ns,
                                std::uint32_t most_doublings = kMaxQuestionDoublings) {
  return liveness.is_suspected(now_ns) ? kSuspectedQuestionNs : kFirstQuestionNs << std::min(questions, most_doublings);
}

}  // namespace

bool ReliableWire::send_frame(ProcessId peer, FrameHeader& header, std::span<const std::byte> body) {
  header.sent_ns = now_ns_;
  seal_frame(header, body);
  const TrafficClass traffic = header.kind == FrameKind::kData ? header.traffic : TrafficClass::kAnswer;
  const bool sent = endpoint_->send(peer, traffic, std::as_bytes(std::span(&header, 1)), body);
  if (sent) counters_.add(Counter::kFramesSent);
  return sent;
}

bool ReliableWire::send_plain(ProcessId peer, FrameKind kind, std::uint64_t link, std::uint64_t acceptance) {
  FrameHeader header{};
  header.kind = kind;
  header.link = link;
  header.acceptance = acceptance;
  if (kind == FrameKind::kOpen) header.life = options_.life;
  if (kind == FrameKind::kOpen) header.ear = ear_;
  return send_frame(peer, header, {});
}

// ---- Acknowledgements ----------------------------------------------------------------------------------------------

void ReliableWire::want_ack(IncomingLink& link, bool urgent) {
  link.ack_urgent = link.ack_urgent || urgent;
  if (link.ack_wanted) return;
  link.ack_wanted = true;
  acks_due_ns_ = 0;
  acks_.push_back(&link);
}

bool ReliableWire::send_ack(IncomingLink& link) {
  AckBody body{};
  for (std::size_t i = 0; i < kTrafficClassCount; ++i) {
    body.next[i] = link.windows[i].next();
    body.selected[i] = link.windows[i].selected();
  }
  body.echo_ns = link.echo_ns;
  body.hold_ns = now_ns_ - link.echo_arrived_ns;
  FrameHeader header{};
  header.kind = FrameKind::kAck;
  header.link = link.id;
  header.acceptance = link.acceptance;
  return send_frame(link.source, header, std::as_bytes(std::span(&body, 1)));
}

/// One acknowledgement tells of all that the engine has taken in a row; who waits for news is told at once.
void ReliableWire::send_acks() {
  std::erase_if(acks_, [this](IncomingLink* link) {
    if (!link->ack_urgent && link->released < kReleasedPerAck && !ready_.empty()) return false;
    if (!send_ack(*link)) {
      acks_due_ns_ = now_ns_ + kNoRoomNs;
      return false;
    }
    link->ack_wanted = false;
    link->ack_urgent = false;
    link->released = 0;
    return true;
  });
}

// ---- Timers --------------------------------------------------------------------------------------------------------

void ReliableWire::serve_timers() {
  next_due_ns_ = UINT64_MAX;
  sweep_outgoing();
  sweep_incoming();
}

void ReliableWire::sweep_outgoing() {
  for (auto at = outgoing_.begin(); at != outgoing_.end();) {
    OutgoingLink& link = *at->second;
    wake_at(serve(link));
    const bool forgotten = !link.unreachable || now_ns_ - link.wanted_ns > kForgetNs;  // connect tells of it.
    at = link.state == SendingState::kOver && !link.held && forgotten ? outgoing_.erase(at) : std::next(at);
  }
}

void ReliableWire::sweep_incoming() {
  for (auto at = incoming_.begin(); at != incoming_.end();) {
    IncomingLink& link = *at->second;
    ++at;  // The link may be forgotten.
    wake_at(serve(link));
    const bool forgotten = link.state == ReceivingState::kOffered && now_ns_ - link.liveness.heard_ns() > kOfferNs;
    if (forgotten) forget_incoming(link);
  }
}

bool ReliableWire::is_silent(const OutgoingLink& link) const {
  return link.liveness.silence_ns(now_ns_) > std::max(kSilentNs, 2 * link.round_trip.timeout_ns(1));
}

bool ReliableWire::is_only_asked(const OutgoingLink& link) const {
  return link.liveness.silence_ns(now_ns_) > std::max(kOnlyAskedNs, 2 * link.round_trip.timeout_ns(1));
}

/// @return when more is due; UINT64_MAX if that depends on what arrives
std::uint64_t ReliableWire::send_due_data(OutgoingLink& link) {
  if (link.state != SendingState::kOpen && link.state != SendingState::kClosing) return UINT64_MAX;
  if (is_only_asked(link)) return UINT64_MAX;
  const bool one_is_enough = is_silent(link);
  std::uint64_t due_ns = UINT64_MAX;
  for (const TrafficClass traffic : {TrafficClass::kAnswer, TrafficClass::kRequest}) {
    SendWindow& window = link.windows[static_cast<std::size_t>(traffic)];
    FrameHeader header{};
    std::span<const std::byte> body;
    while (window.find_due(now_ns_, one_is_enough, &header, &body)) {
      header.traffic = traffic;
      header.link = link.id;
      header.acceptance = link.acceptance;
      if (!send_frame(link.peer, header, body)) return now_ns_ + kNoRoomNs;
      if (window.sent(header.sequence, now_ns_, link.round_trip) > 1) counters_.add(Counter::kFramesSentAgain);
      link.liveness.asked(now_ns_);
    }
    due_ns = std::min(due_ns, window.next_due_ns(one_is_enough));
  }
  return due_ns;
}

/// @return when the link has something to do again
std::uint64_t ReliableWire::serve(OutgoingLink& link) {
  if (link.state == SendingState::kOver) return link.unreachable ? link.wanted_ns + kForgetNs + 1 : UINT64_MAX;
  const bool unwanted = link.state == SendingState::kOpening && now_ns_ - link.wanted_ns > kForgetNs;
  if (unwanted || link.liveness.silence_ns(now_ns_) > options_.silence_limit_ns) {
    lose(link);
    return now_ns_;
  }
  if (link.state == SendingState::kOpening && link.liveness.is_nobody_there(now_ns_)) {
    link.unreachable = !link.for_source;
    lose(link);
    return now_ns_;
  }
  const std::uint64_t data_due_ns = send_due_data(link);
  FrameKind question = FrameKind::kProbe;
  std::uint64_t from_ns = UINT64_MAX;
  if (link.state == SendingState::kOpening) {
    question = FrameKind::kOpen;
    from_ns = 0;
  } else if (link.state == SendingState::kClosing && link.all_acknowledged()) {
    question = FrameKind::kClose;
    from_ns = 0;
  } else if (link.questions > 0 || link.liveness.is_suspected(now_ns_)) {
    from_ns = 0;
  } else if (!link.all_acknowledged() && data_due_ns == UINT64_MAX) {
    // All has arrived; that it was taken is still to be told, and may have been told in vain.
    from_ns = link.liveness.heard_ns() + link.round_trip.timeout_ns(1);
  } else if (now_ns_ < link.watched_until_ns) {
    from_ns = link.liveness.heard_ns() + kHeardLatelyNs;
  }
  if (from_ns == UINT64_MAX) return data_due_ns;
  const std::uint64_t due_ns = std::max(from_ns, link.next_question_ns);
  if (due_ns > now_ns_) return std::min(due_ns, data_due_ns);
  send_plain(link.peer, question, link.id, link.acceptance);
  link.liveness.asked(now_ns_);
  const std::uint32_t doublings = question == FrameKind::kOpen ? kMaxOpeningDoublings : kMaxQuestionDoublings;
  link.next_question_ns = now_ns_ + question_pause_ns(link.liveness, link.questions++, now_ns_, doublings);
  return std::min(link.next_question_ns, data_due_ns);
}

std::uint64_t ReliableWire::serve(IncomingLink& link) {
  if (link.state == ReceivingState::kEnded) return UINT64_MAX;
  if (link.state == ReceivingState::kOffered) return link.liveness.heard_ns() + kOfferNs + 1;
  const bool watched = now_ns_ < link.watched_until_ns;
  if (watched && link.liveness.silence_ns(now_ns_) > options_.silence_limit_ns) {
    end_incoming(link);
    return UINT64_MAX;
  }
  const bool asks = link.questions > 0 && (watched || link.liveness.is_suspected(now_ns_));
  const std::uint64_t from_ns = asks ? 0 : link.liveness.heard_ns() + (watched ? kHeardLatelyNs : kIdleNs);
  const std::uint64_t due_ns = std::max(from_ns, link.next_question_ns);
  if (due_ns > now_ns_) return due_ns;
  send_plain(link.source, FrameKind::kCheck, link.id, link.acceptance);
  link.liveness.asked(now_ns_);
  link.next_question_ns = now_ns_ + (watched || link.liveness.is_suspected(now_ns_)
                                         ? question_pause_ns(link.liveness, link.questions, now_ns_)
                                         : kIdleNs);
  ++link.questions;
  return link.next_question_ns;
}

}  // namespace portofu
