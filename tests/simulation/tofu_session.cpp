// Session mode and free mode, carried out.

#include "tests/simulation/tofu_session.h"

#include <algorithm>
#include <cstring>

namespace portofu::simulation {
namespace {

constexpr int kMostRounds = 400'000;  ///< Plans of 4000 messages have needed more than 20 000.

SimOptions draw_network(std::uint64_t seed, const SessionTaste& taste) {
  SimRandom random(seed ^ 0x70f0);
  SimOptions options = draw_links(random, 4);
  if (random.below(2) == 0) options.max_lent_bytes = 20000;
  options.shows_memory = taste.shows_memory;
  return options;
}

bool has_packets(const Core& core) {
  const auto holds = [](Wire* wire) { return wire->has_packets(); };
  return !core.waiting_peers.empty() || std::any_of(core.wires.begin(), core.wires.end(), holds);
}

void* to_callback(std::size_t message) { return reinterpret_cast<void*>(message + 1); }

bool same(const Notice& a, const Notice& b) {
  return a.kind == b.kind && a.fail == b.fail && (a.fail == NiFail::kOk || a.remote_fault == b.remote_fault) &&
         a.vcq_id == b.vcq_id && a.edata == b.edata && a.remote_value == b.remote_value &&
         a.local_stadd == b.local_stadd && a.remote_stadd == b.remote_stadd;
}

/// Virtual time of one step, and of a round of the end at most, on a lossy network.
constexpr std::uint64_t kStepNs = 2'000;
constexpr std::uint64_t kRoundNs = 1'000'000'000;

std::string text_of(const Notice& notice) {
  char text[200];
  std::snprintf(text, sizeof text, "kind %d fail %d%s vcq %llx edata %d value %llx local %llx remote %llx",
                static_cast<int>(notice.kind), static_cast<int>(notice.fail), notice.remote_fault ? "" : " (own)",
                static_cast<unsigned long long>(notice.vcq_id), static_cast<int>(notice.edata),
                static_cast<unsigned long long>(notice.remote_value),
                static_cast<unsigned long long>(notice.local_stadd),
                static_cast<unsigned long long>(notice.remote_stadd));
  return text;
}

}  // namespace

TofuSession::TofuSession(std::uint64_t seed, const SessionTaste& taste)
    : random_(seed),
      plan_(random_, taste),
      network_(seed + 1, draw_network(seed, taste), taste.lossy ? std::optional(bad_network()) : std::nullopt,
               static_cast<std::uint32_t>(plan_.coordinates.size())),
      places_(plan_.vcqs.size()) {
  start_processes(seed);
}

void TofuSession::complain(const std::string& text) {
  if (complaint_.empty()) complaint_ = text;
}

std::string TofuSession::name_of(std::size_t message) const {
  const PlannedMessage& m = plan_.messages[message];
  return "message " + std::to_string(message) + " (kind " + std::to_string(static_cast<int>(m.kind)) + ", VCQ " +
         std::to_string(m.from) + " to " + std::to_string(m.to) + ", SPS " + std::to_string(m.sps) + ", " +
         std::to_string(m.length) + " bytes, fault " + std::to_string(static_cast<int>(m.fault)) + ")";
}

void TofuSession::start_processes(std::uint64_t seed) {
  SimRandom random(seed ^ 0x5e55);
  for (std::size_t process = 0; process < plan_.coordinates.size(); ++process) {
    NodeOptions options;
    options.id = {0x0a000001, 100 + static_cast<std::uint32_t>(process)};
    options.index = process;
    options.memory_bytes = plan_.before[process].size();
    options.own_loopback = random.below(2) == 0;
    options.ring = {16, 16384, 8192};
    options.settings.window_operations = random.below(2) == 0 ? 4 : 1024;
    // Who takes packets early has not settled what its peers then find settled.
    if (random.below(3) == 0 && !network_.is_shown()) options.shuffle_seed = random.next();
    options.clock_ns = network_.clock_ns();
    auto carrier = network_.attach(options.id, static_cast<std::uint32_t>(process));
    nodes_.push_back(
        std::make_unique<TofuNode>(std::move(carrier), options, claims_, plan_.coordinates[process], network_.shown()));
    std::memcpy(nodes_.back()->memory(), plan_.before[process].data(), plan_.before[process].size());
  }
  for (std::size_t v = 0; v < plan_.vcqs.size(); ++v) {
    const PlannedVcq& planned = plan_.vcqs[v];
    TofuNode& node = node_of(v);
    const std::uint32_t toq_entries = random.below(2) == 0 ? 16 : 2048;
    places_[v].vcq = &node.make_vcq(planned.number, planned.session ? CqMode::kSession : CqMode::kShared, toq_entries);
    const std::uint64_t bytes = plan_.before[planned.process].size();
    plan_.stadds.push_back(node.register_memory(*places_[v].vcq, 0, bytes, false));
    plan_.read_only_stadds.push_back(node.register_memory(*places_[v].vcq, 0, TofuPlan::kReadOnlyBytes, true));
  }
  const auto expected = plan_.expected_notices();
  for (std::size_t v = 0; v < places_.size(); ++v) {
    places_[v].expected = expected[v];
    for (const std::size_t message : plan_.vcqs[v].messages) {
      const PlannedMessage& m = plan_.messages[message];
      if (m.starts && (m.tcq || TofuPlan::tcq_fail(m) != NiFail::kOk)) places_[v].told.push_back(message);
    }
  }
}

Descriptor TofuSession::descriptor_of(std::size_t index) const {
  const PlannedMessage& m = plan_.messages[index];
  Descriptor d;
  d.type = m.is_put() ? PacketType::kTofuPut : m.kind;
  d.tofu = {};
  d.tofu.brings_data = m.kind == PacketType::kTofuPiggyback;
  d.tofu_meta = static_cast<std::uint16_t>(m.edata | m.sps << kTofuStepsShift);
  if (m.tcq) d.tofu_meta |= kTofuTcqNotice;
  if (m.local) d.tofu_meta |= kTofuLocalNotice;
  if (m.remote) d.tofu_meta |= kTofuRemoteNotice;
  // Several ARMWs compute with one word. What a peer does by itself is in order with what it has posted only so.
  const bool shares_word = m.kind == PacketType::kTofuArmw && network_.is_shown();
  if (m.strong || shares_word) d.tofu_meta |= kTofuStrongOrder;
  if (m.kind == PacketType::kTofuNop) return d;
  d.tofu.remote_vcq_id = plan_.named_id(m);
  d.remote_stadd = plan_.remote_stadd(m);
  d.tofu.local_stadd = plan_.local_stadd(m);
  d.length = m.length;
  if (m.kind == PacketType::kTofuArmw) {
    d.atomic_operation = static_cast<std::uint8_t>(m.operation);
    d.atomic_type = static_cast<std::uint8_t>(m.length == 8 ? AtomicType::kUint64 : AtomicType::kUint32);
    d.operand = {};
    std::memcpy(d.operand.data(), &m.compared, 8);
    std::memcpy(d.operand.data() + 8, &m.value, 8);
  } else if (d.tofu.brings_data && !m.data.empty()) {
    std::memcpy(d.operand.data(), m.data.data(), m.data.size());
  }
  return d;
}

bool TofuSession::can_post(std::size_t v) const {
  const Place& place = places_[v];
  return place.posted < plan_.vcqs[v].messages.size() && place.vcq->tcq.has_room(1);
}

void TofuSession::post(std::size_t v) {
  const std::size_t message = plan_.vcqs[v].messages[places_[v].posted++];
  node_of(v).post(*places_[v].vcq, descriptor_of(message), to_callback(message), plan_.messages[message].tcq);
}

void TofuSession::act() {
  const std::size_t v = random_.below(places_.size());
  const std::uint64_t dice = random_.below(100);
  if (dice < 60) {
    network_.pass_to_next(kStepNs);
    nodes_[random_.below(nodes_.size())]->step();
  } else if (dice < 85) {
    if (plan_.vcqs[v].late) return;
    for (std::uint64_t left = 1 + random_.below(4); left > 0 && can_post(v); --left) post(v);
  } else {
    poll(v);
  }
}

/// Everybody polls and posts what is not late, until nothing happens any more.
bool TofuSession::come_to_rest() {
  for (int round = 0; round < kMostRounds && complaint_.empty(); ++round) {
    bool busy = false;
    for (auto& node : nodes_) busy = node->step() > 0 || busy || has_packets(node->node().core());
    for (std::size_t v = 0; v < places_.size(); ++v) {
      poll(v);
      if (plan_.vcqs[v].late || !can_post(v)) continue;
      post(v);
      busy = true;
    }
    if (!busy && network_.is_quiet()) return true;
    network_.pass_to_next(kRoundNs);
  }
  complain("the network never comes to rest");
  return false;
}

/// Lets a VCQ that has waited write its descriptors now. @return false if there is none
bool TofuSession::wake_late() {
  for (PlannedVcq& vcq : plan_.vcqs) {
    if (!vcq.late) continue;
    vcq.late = false;
    return true;
  }
  return false;
}

void TofuSession::poll(std::size_t v) {
  void* callback_data = nullptr;
  NiFail fail = NiFail::kOk;
  Notice notice;
  while (node_of(v).read_tcq(*places_[v].vcq, &callback_data, &fail)) check_tcq(v, callback_data, fail);
  while (node_of(v).read_mrq(*places_[v].vcq, &notice)) check_notice(v, notice);
}

/// 2.2.10: TCQ notices are in the order of the TOQ.
void TofuSession::check_tcq(std::size_t v, void* callback_data, NiFail fail) {
  Place& place = places_[v];
  const std::string what = "TCQ of VCQ " + std::to_string(v) + ": ";
  if (place.told.empty()) return complain(what + "a notice too many");
  const std::size_t index = place.told.front();
  place.told.pop_front();
  const PlannedMessage& message = plan_.messages[index];
  if (callback_data != to_callback(index)) return complain(what + "another message than " + name_of(index));
  if (fail != TofuPlan::tcq_fail(message)) return complain(what + name_of(index) + " failed otherwise");
  // The source may be used again.
  if (message.scribbles) std::memset(node_of(v).memory() + message.source_at, 0x55, message.length);
}

void TofuSession::check_notice(std::size_t v, const Notice& notice) {
  Place& place = places_[v];
  const bool remote = notice.kind == NoticeKind::kRemotePut || notice.kind == NoticeKind::kRemoteGet ||
                      notice.kind == NoticeKind::kRemoteArmw;
  const NoticeStream stream{remote, notice.vcq_id};
  const auto& expected = place.expected[stream];
  const std::size_t at = place.seen[stream]++;
  const std::string what = "MRQ of VCQ " + std::to_string(v) + ": " + text_of(notice) + "; ";
  if (at >= expected.size()) return complain(what + "nothing more of this VCQ is expected");
  if (!same(notice, expected[at].notice))
    return complain(what + "expected " + text_of(expected[at].notice) + " of " + name_of(expected[at].message));
  // A remote notice of a get tells that the data was read, and nothing of where it goes.
  if (notice.fail == NiFail::kOk && notice.kind != NoticeKind::kRemoteGet) check_data(expected[at].message);
}

/// 2.2.3, 2.2.4: whoever is told finds the data.
void TofuSession::check_data(std::size_t index) {
  const PlannedMessage& message = plan_.messages[index];
  if (!message.is_good() || message.data.empty()) return;
  const bool gets = message.kind == PacketType::kTofuGet;
  const std::byte* memory = node_of(gets ? message.from : message.to).memory() + message.target_at;
  if (std::memcmp(memory, message.data.data(), message.data.size()) != 0)
    complain(name_of(index) + " was told before its data was there");
}

void TofuSession::check_end() {
  for (std::size_t v = 0; v < places_.size(); ++v) {
    Place& place = places_[v];
    const std::string what = "VCQ " + std::to_string(v) + ": ";
    if (!place.told.empty()) complain(what + "no TCQ notice of " + name_of(place.told.front()));
    for (const auto& [stream, notices] : place.expected) {
      const std::size_t seen = place.seen[stream];
      if (seen < notices.size()) complain(what + "no MRQ notice of " + name_of(notices[seen].message));
    }
    if (place.posted < plan_.vcqs[v].messages.size() && place.vcq->tcq.has_room(1))
      complain(what + "not all is posted");
  }
  for (std::size_t process = 0; process < nodes_.size(); ++process) {
    const auto& expected = plan_.after[process];
    const std::byte* memory = nodes_[process]->memory();
    const auto differs = std::mismatch(expected.begin(), expected.end(), memory).first;
    if (differs != expected.end()) {
      complain("memory of process " + std::to_string(process) + " differs at " +
               std::to_string(differs - expected.begin()));
    }
    const Core& core = nodes_[process]->node().core();
    if (core.outstanding.open_count() != 0) complain("an operation is left");
    if (core.counters.get(Counter::kPacketsRefusedMalformed) != 0) complain("a packet was refused");
  }
}

std::string TofuSession::run() {
  const std::size_t actions = 4 * plan_.messages.size();
  for (std::size_t i = 0; i < actions && complaint_.empty(); ++i) act();
  do {
    if (!come_to_rest()) return complaint_;
  } while (wake_late());
  check_end();
  return complaint_;
}

}  // namespace portofu::simulation
