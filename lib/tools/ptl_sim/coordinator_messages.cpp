// Messages of a job in virtual time: what ranks have sent, through the network, to the NIC of its target.

#include <algorithm>
#include <utility>

#include "engine/door/inspection.h"
#include "lib/tools/ptl_sim/coordinator.h"

namespace portofu::tools {
namespace {

/// A NIC that has slept for so long with something to take may need what the frozen thread of its rank has.
constexpr std::uint64_t kThawNs = 2'000'000'000;

sim::PacketKind kind_of(const VirtualReport& report, std::uint32_t inline_bytes) {
  const auto type = static_cast<PacketType>(report.type);
  const auto cause = static_cast<PacketType>(report.cause);
  switch (type) {
    case PacketType::kGet:
    case PacketType::kTofuGet: return sim::PacketKind::kGetRequest;
    case PacketType::kAtomic:
    case PacketType::kFetchAtomic:
    case PacketType::kSwap:
    case PacketType::kTofuArmw: return sim::PacketKind::kAtomicRequest;
    case PacketType::kTofuGate: return sim::PacketKind::kGate;
    case PacketType::kAnswer:
      if (cause == PacketType::kGet || cause == PacketType::kTofuGet) return sim::PacketKind::kGetReply;
      if (cause == PacketType::kPut || cause == PacketType::kTofuPut) return sim::PacketKind::kAck;
      return sim::PacketKind::kAtomicReply;
    case PacketType::kTofuFault: return sim::PacketKind::kAck;
    default: break;
  }
  if (report.cause != 0) return sim::PacketKind::kTriggeredPut;
  // Of Portals' puts the NIC takes those that are short enough. Programs of uTofu say it (piggyback).
  const bool is_short = report.in_command != 0 || (type == PacketType::kPut && report.bytes <= inline_bytes);
  return is_short ? sim::PacketKind::kInlinePut : sim::PacketKind::kPut;
}

bool is_own_word(const VirtualReport& report) {
  return portofu::is_own_word(static_cast<PacketType>(report.type), report.bytes);
}

/// Whether the notice of a message is written behind its data, and is not all that is written.
bool is_behind_data(const VirtualReport& report) {
  switch (kind_of(report, 0)) {
    case sim::PacketKind::kPut:
    case sim::PacketKind::kInlinePut:
    case sim::PacketKind::kTriggeredPut:
    case sim::PacketKind::kGetReply: return true;
    default: return false;
  }
}

}  // namespace

bool Coordinator::find_rank(std::uint32_t nid, std::uint32_t pid, std::uint32_t* rank) {
  const auto is_it = [&](std::uint32_t one) {
    const VirtualPage& page = time_.page(one);
    return page.process.load() != 0 && page.nid.load() == nid && page.pid.load() == pid;
  };
  const auto known = ranks_by_id_.find({nid, pid});
  if (known != ranks_by_id_.end() && is_it(known->second)) {
    *rank = known->second;
    return true;
  }
  for (*rank = 0; *rank < seats_.size(); ++*rank) {
    if (!is_it(*rank)) continue;
    ranks_by_id_[{nid, pid}] = *rank;
    return true;
  }
  return false;
}

/// Takes what a rank has told of its time since the last look. @return whether there was something
bool Coordinator::drain_spans(std::uint32_t rank) {
  VirtualPage& page = time_.page(rank);
  const std::uint32_t given = page.spans_given.load(std::memory_order_acquire);
  std::uint32_t taken = page.spans_taken.load(std::memory_order_relaxed);
  if (given == taken) return false;
  if (given - taken > kSpanCount) {
    fail("rank " + std::to_string(rank) + " has spoilt the memory that it shares with ptl_sim");
    return false;
  }
  auto& spans = history_.ranks[rank].spans;
  for (; taken != given; ++taken) {
    VirtualSpan span = page.spans[taken % kSpanCount];
    // One that closes the library and opens it again begins a little earlier.
    if (!spans.empty()) span.from_ps = std::max(span.from_ps, spans.back().to_ps);
    const bool is_one = span.from_ps < span.to_ps && span.to_ps <= kLatestPs && span.what < kVirtualSpentCount;
    if (is_one && history_.has_room()) spans.push_back(span);
  }
  page.spans_taken.store(taken, std::memory_order_release);
  return true;
}

/// Takes what a rank has sent since the last look.
/// @param answered  the message that has just arrived there; what the NIC sends is because of it
/// @return whether there was something
bool Coordinator::drain(std::uint32_t rank, std::uint32_t answered) {
  VirtualPage& page = time_.page(rank);
  const bool has_spans = drain_spans(rank);
  const std::uint32_t given = page.reports_given.load(std::memory_order_acquire);
  std::uint32_t taken = page.reports_taken.load(std::memory_order_relaxed);
  if (given == taken) return has_spans;
  if (given - taken > kReportCount) {
    fail("rank " + std::to_string(rank) + " has spoilt the memory that it shares with ptl_sim");
    return false;
  }
  for (; taken != given; ++taken) {
    Happening departure{0, What::kDeparture, rank, page.reports[taken % kReportCount], 0, 0, kNoMessage};
    if (departure.report.cause != 0) departure.message = answered;
    departure.time_ps = std::min(departure.report.time_ps, kLatestPs);
    if (!find_rank(departure.report.nid, departure.report.pid, &departure.target)) {
      fail("rank " + std::to_string(rank) + " sends to process " + std::to_string(departure.report.pid) +
           ", which is not of this job");
      return false;
    }
    departure.target_life = time_.page(departure.target).life.load();
    const bool is_late = departure.time_ps < now_ps_;
    departure.time_ps = std::max(departure.time_ps, now_ps_);
    ++seats_[rank].under_way;
    happenings_.push(departure);
    if (is_own_word(departure.report)) continue;
    if (is_late) ++times_[rank].late_calls;
    ++times_[rank].messages;
    times_[rank].bytes += departure.report.bytes;
    ++message_count_;
  }
  page.reports_taken.store(taken, std::memory_order_release);
  return true;
}

void Coordinator::depart(const Happening& departure) {
  Happening arrival = departure;
  arrival.what = What::kArrival;
  std::uint64_t& reaches_ps = seats_[departure.rank].reaches_ps;
  if (is_own_word(departure.report)) {
    arrival.message = kNoMessage;
    arrival.time_ps = std::max(departure.time_ps, reaches_ps);  // It overtakes nothing.
    return happenings_.push(arrival);
  }
  sim::Packet packet;
  packet.from_node = departure.rank / options_.per_node;
  packet.to_node = departure.target / options_.per_node;
  packet.interface = departure.report.interface % network_.machine().interfaces.count;
  packet.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(departure.report.bytes, UINT32_MAX));
  packet.to_interface = departure.report.to_interface % network_.machine().interfaces.count;
  packet.kind = kind_of(departure.report, network_.machine().limits.inline_bytes);
  const sim::Passage passage = network_.send(departure.time_ps, packet);
  arrival.time_ps = std::clamp(passage.arrived_ps, departure.time_ps, kLatestPs);
  reaches_ps = std::max(reaches_ps, arrival.time_ps);
  const bool is_kept = options_.keeps_history && history_.has_room();
  arrival.message = is_kept ? static_cast<std::uint32_t>(history_.messages.size()) : kNoMessage;
  happenings_.push(arrival);
  if (departure.report.departure != 0) {
    Happening left = arrival;
    left.what = What::kLeft;
    left.time_ps = std::clamp(passage.left_ps, departure.time_ps, arrival.time_ps);
    happenings_.push(left);
  }
  if (!is_kept) return;
  history_.messages.push_back({.from = departure.rank,
                               .to = departure.target,
                               .interface = packet.interface,
                               .kind = packet.kind,
                               .type = departure.report.type,
                               .bytes = departure.report.bytes,
                               .sent_ps = departure.time_ps,
                               .left_ps = passage.left_ps,
                               .arrived_ps = arrival.time_ps,
                               .before_ps = network_.before_ps(packet.kind),
                               .after_ps = network_.after_ps(packet.kind),
                               .waited_ps = passage.waited_ps,
                               .waited_for = passage.waited_for,
                               .answers = departure.message,
                               .is_told = departure.report.departure != 0});
}

/// Lets the NIC of a rank take something, and waits until it has.
/// @param life  of the process that it is for
/// @return false if it is not there any more, or another life of it is
bool Coordinator::hand_to_nic(std::uint32_t rank, std::uint32_t life, const VirtualDelivery& delivery) {
  VirtualPage& page = time_.page(rank);
  look_for_end_of(rank);  // It may have come just now.
  const auto is_there = [&] {
    return !seats_[rank].ended.load() && state(rank) != VirtualState::kGone && page.life.load() == life;
  };
  if (!is_there()) return false;  // What it would answer is too late.
  page.delivery = delivery;
  const std::uint32_t count = page.delivery_count.fetch_add(1, std::memory_order_release) + 1;
  page.nic_bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(page.nic_bell);
  const std::uint64_t began_ns = monotonic_ns();
  Lasting sleep(kMostOfLookNs);
  while (page.deliveries_taken.load(std::memory_order_acquire) != count) {
    if (stopping_.load() || failed_) break;
    if (!is_there()) return false;
    if (wait_for_news(kPauseNs)) continue;
    const bool sleeps = frozen_.contains(rank) && is_family_asleep(static_cast<pid_t>(page.process.load()));
    if (sleep.look(sleeps, monotonic_ns()) > kThawNs) let_go_on(rank, VirtualState::kAway);
    if (monotonic_ns() - began_ns > options_.hang_ns)
      fail("rank " + std::to_string(rank) + " does not take what arrives");
  }
  return true;
}

/// Something has come about at a rank: whoever waits in a call goes on.
/// @param notice_ps  until a notice of it can be found
void Coordinator::tell(std::uint32_t rank, std::uint64_t notice_ps, std::uint32_t message) {
  const VirtualState now = state(rank);
  const std::uint64_t clock_ps = std::min(time_.page(rank).clock_ps.load(), kLatestPs);
  // Looks before the notice is there would find nothing, but those of a call that gives up.
  const std::uint64_t told_ps = std::max(now_ps_ + notice_ps, clock_ps);
  Seat& seat = seats_[rank];
  const bool is_first = now == VirtualState::kPolling && !std::exchange(seat.told, true);
  const bool waits = now == VirtualState::kPolling || now == VirtualState::kWaiting;
  if (waits && (is_first || told_ps < seat.place_ps)) set_place(rank, told_ps, message);
}

/// A message has left the interface: whoever has sent it may use its memory again.
void Coordinator::leave(const Happening& left) {
  const std::uint32_t rank = left.rank;
  last_event_ps_ = now_ps_;
  VirtualDelivery delivery{};
  delivery.number = left.report.number;
  delivery.time_ps = now_ps_;
  delivery.departure = left.report.departure;
  delivery.type = left.report.type;
  if (!hand_to_nic(rank, left.report.source_life, delivery)) return;
  drain(rank, left.message);
  tell(rank, 0, left.message);
}

/// Nobody is there to take a message. Its sender learns that when an answer would have come.
void Coordinator::come_back(const Happening& arrival) {
  sim::Packet packet;
  packet.from_node = arrival.target / options_.per_node;
  packet.to_node = arrival.rank / options_.per_node;
  packet.interface = arrival.report.to_interface % network_.machine().interfaces.count;
  packet.to_interface = arrival.report.interface % network_.machine().interfaces.count;
  packet.kind = sim::PacketKind::kAck;
  Happening lost = arrival;
  lost.what = What::kLost;
  const bool takes_time = !is_own_word(arrival.report);
  lost.time_ps = takes_time ? std::clamp(network_.send(now_ps_, packet).arrived_ps, now_ps_, kLatestPs) : now_ps_;
  happenings_.push(lost);
}

void Coordinator::lose(const Happening& lost) {
  const std::uint32_t rank = lost.rank;
  last_event_ps_ = now_ps_;
  VirtualDelivery delivery{};
  delivery.time_ps = now_ps_;
  delivery.source_nid = lost.report.nid;
  delivery.source_pid = lost.report.pid;
  delivery.is_lost = 1;
  if (!hand_to_nic(rank, lost.report.source_life, delivery)) return;
  drain(rank, lost.message);
  tell(rank, 0, lost.message);
}

void Coordinator::arrive(const Happening& arrival) {
  const std::uint32_t target = arrival.target;
  const VirtualReport& report = arrival.report;
  last_event_ps_ = now_ps_;
  const VirtualDelivery delivery{.number = report.number,
                                 .time_ps = now_ps_,
                                 .source_nid = report.source_nid,
                                 .source_pid = report.source_pid,
                                 .interface = report.interface,
                                 .source_rank = arrival.rank,
                                 .to_interface = report.to_interface,
                                 .source_life = report.source_life};
  const bool is_taken = hand_to_nic(target, arrival.target_life, delivery);
  if (!is_taken) come_back(arrival);
  drain(target, arrival.message);
  Seat& sender = seats_[arrival.rank];
  if (!is_own_word(report)) sender.arrived_ps = now_ps_;  // Whoever leaves does so whenever it has met others.
  if (--sender.under_way == 0 && state(arrival.rank) == VirtualState::kLeaving) {
    look_at(arrival.rank);
    sender.waker = arrival.message;
  }
  tell(target, is_behind_data(report) ? options_.notice_ps : 0, arrival.message);
  const bool is_frozen = state(target) == VirtualState::kFrozen && seats_[target].place_ps == kNeverPs;
  if (!is_frozen || is_own_word(report)) return;
  const std::uint64_t clock_ps = std::min(time_.page(target).clock_ps.load(), kLatestPs);
  set_place(target, std::max(now_ps_, clock_ps) + options_.look_ps, arrival.message);
}

}  // namespace portofu::tools
