// Plans: who writes what where, and what follows.

#include "tests/simulation/tofu_plan.h"

#include <algorithm>
#include <cstring>

#include "engine/memory/stadd_table.h"

namespace portofu::simulation {
namespace {

constexpr std::uint32_t kStrangerStag = 77;     ///< A reserved STag that no component has.
constexpr std::uint32_t kMissingComponent = 7;  ///< No VCQ of a plan has it.
constexpr std::uint32_t kMissingQueue = 0xfff;  ///< No CQ of a plan has it.
constexpr std::uint64_t kMostLacking = 2000;  ///< Steps of a VCQ, so that never more descriptors are lacking (2.2.8.1).
constexpr std::byte kScribble{0x55};

std::uint32_t random_path(SimRandom& random) {
  const PathCoordinates path{static_cast<std::uint8_t>(random.below(2)), static_cast<std::uint8_t>(random.below(3)),
                             static_cast<std::uint8_t>(random.below(2))};
  return pack_path(path);
}

std::uint64_t masked(std::uint64_t value, std::uint64_t bytes) { return bytes == 4 ? value & 0xffffffff : value; }

}  // namespace

TofuPlan::TofuPlan(SimRandom& random, const SessionTaste& taste) : random_(random), taste_(taste) {
  make_vcqs();
  make_messages();
  fill_memory();
  std::vector<std::uint64_t> places(vcqs.size());
  for (PlannedMessage& message : messages) {
    const std::uint64_t place = ++places[message.from];
    choose_source(message, place);
    apply(message);
  }
  for (const PlannedMessage& message : messages) {
    if (!message.scribbles || !message.starts) continue;
    auto& memory = after[vcqs[message.from].process];
    std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(message.source_at), message.length, kScribble);
  }
}

void TofuPlan::make_vcqs() {
  const std::size_t process_count = 1 + below(taste_.most_processes);
  used_.assign(process_count, kConstantBytes);
  for (std::size_t process = 0; process < process_count; ++process) {
    Coordinates at{};
    if (percent(50)) at = {static_cast<std::uint8_t>(process), 1, 2, 1, 2, 1};
    coordinates.push_back(at);
    const std::size_t vcq_count = 1 + below(3);
    for (std::size_t i = 0; i < vcq_count; ++i) {
      PlannedVcq vcq;
      vcq.process = process;
      vcq.session = percent(taste_.session_percent);
      vcq.late = percent(taste_.late_percent);
      // A CQ for each mode; CQs belong to the node, so processes take different ones.
      const auto queue = static_cast<std::uint32_t>(2 * process + (vcq.session ? 1 : 0));
      vcq.number = make_queue_number(1, queue, static_cast<std::uint32_t>(i));
      vcq.id = make_tofu_id(TofuIdKind::kVcq, at, vcq.number);
      vcqs.push_back(vcq);
    }
  }
  for (std::size_t pair = 0; pair < vcqs.size() * vcqs.size(); ++pair) paths_.push_back(random_path(random_));
}

/// Messages come in an order in which they could happen: a session mode VCQ gets a descriptor when it has a step for
/// it. Steps are only ever added, so everything that starts in this order starts in every other one.
void TofuPlan::make_messages() {
  std::vector<std::size_t> can_start;
  for (std::size_t i = 0; i < taste_.message_count; ++i) {
    can_start.clear();
    for (std::size_t v = 0; v < vcqs.size(); ++v) {
      const bool relay = vcqs[v].session && vcqs[v].steps > vcqs[v].messages.size();
      if (!vcqs[v].session || relay) can_start.push_back(v);
      if (relay) can_start.insert(can_start.end(), 3, v);
    }
    if (can_start.empty()) break;
    make_message(can_start[below(can_start.size())], true);
  }
  for (std::size_t v = 0; v < vcqs.size(); ++v) {
    if (!vcqs[v].session || vcqs[v].steps > vcqs[v].messages.size()) continue;
    for (std::uint64_t left = below(4); left > 0; --left) make_message(v, false);
  }
}

void TofuPlan::make_message(std::size_t from, bool starts) {
  PlannedMessage message;
  message.from = from;
  message.to = below(vcqs.size());
  message.starts = starts;
  const std::uint64_t dice = below(100);
  if (vcqs[from].session) {
    message.kind = dice < taste_.nop_percent ? PacketType::kTofuNop : PacketType::kTofuPut;
  } else {
    message.kind = dice < 60   ? PacketType::kTofuPut
                   : dice < 68 ? PacketType::kTofuPiggyback
                   : dice < 82 ? PacketType::kTofuGet
                   : dice < 95 ? PacketType::kTofuArmw
                               : PacketType::kTofuNop;
  }
  draw_flags(message);
  draw_fault(message);
  const std::size_t target = vcqs[message.kind == PacketType::kTofuGet ? from : message.to].process;
  if (message.kind == PacketType::kTofuArmw) {
    message.length = percent(50) ? 4 : 8;
    message.target_at = take_word(message) + (message.length == 4 && percent(50) ? 4 : 0);
  } else if (message.kind != PacketType::kTofuNop) {
    message.length = message.kind == PacketType::kTofuPiggyback ? below(kMaxOperandBytes + 1) : draw_length();
    if (message.fault != PlannedFault::kNone) message.length = std::max<std::uint64_t>(message.length, 2);
    message.target_at = take_room(target, message.length, 1);
  }
  if (message.scribbles) message.source_at = take_room(vcqs[from].process, message.length, 1);
  if (message.is_good() && vcqs[message.to].session) {
    message.sps = std::min(message.sps, static_cast<std::uint32_t>(kMostLacking - vcqs[message.to].steps));
    vcqs[message.to].steps += message.sps;
  }
  vcqs[from].messages.push_back(messages.size());
  messages.push_back(message);
}

void TofuPlan::draw_flags(PlannedMessage& message) {
  message.tcq = percent(50);
  if (message.kind == PacketType::kTofuNop) return;
  message.local = percent(50);
  message.remote = percent(60);
  message.strong = message.kind == PacketType::kTofuArmw || percent(20);
  message.edata = static_cast<std::uint8_t>(below(256));
  if (message.kind != PacketType::kTofuPut) return;
  // Also where the target is in free mode, which ignores it.
  message.sps = static_cast<std::uint32_t>(below(percent(10) ? 16 : taste_.most_steps + 1));
  message.scribbles = message.tcq && !vcqs[message.from].session && percent(30);
}

void TofuPlan::draw_fault(PlannedMessage& message) {
  if (message.kind == PacketType::kTofuNop || !percent(taste_.fault_percent)) return;
  constexpr std::uint64_t kRemoteFaults = 6, kFaults = 8;
  const bool has_local = message.kind == PacketType::kTofuPut || message.kind == PacketType::kTofuGet;
  message.fault = static_cast<PlannedFault>(1 + below(has_local ? kFaults : kRemoteFaults));
  const bool gets = message.kind == PacketType::kTofuGet;
  if (gets && message.fault == PlannedFault::kReadOnly) message.fault = PlannedFault::kRemoteStadd;
  if (message.kind == PacketType::kTofuArmw && message.fault == PlannedFault::kRemoteLength)
    message.fault = PlannedFault::kRemoteBehind;
  message.scribbles = false;
}

std::uint64_t TofuPlan::draw_length() {
  const std::uint64_t dice = below(100);
  if (dice < 3) return 0;
  if (dice < 75) return 1 + below(64);
  if (dice < 94) return 1 + below(700);
  return 3000 + below(9000);
}

std::uint64_t TofuPlan::take_room(std::size_t process, std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t at = (used_[process] + alignment - 1) / alignment * alignment;
  used_[process] = at + bytes + below(3);
  return at;
}

/// Words are shared only by ARMWs of one VCQ to one other, which are in order.
std::uint64_t TofuPlan::take_word(const PlannedMessage& message) {
  auto& words = words_[{message.from, message.to}];
  if (words.empty() || percent(30)) words.push_back(take_room(vcqs[message.to].process, 8, 8));
  return words[below(words.size())];
}

void TofuPlan::fill_memory() {
  for (const std::uint64_t bytes : used_) {
    std::vector<std::byte> memory(bytes);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random_.next());
    before.push_back(memory);
  }
  after = before;
}

/// Messages to the VCQ without which it does not come to `place`: all other VCQs' steps and those that their own sender
/// has sent before are too few.
std::vector<const PlannedMessage*> TofuPlan::certain_sources(const PlannedMessage& message, std::uint64_t place) const {
  std::vector<const PlannedMessage*> certain;
  const PlannedVcq& vcq = vcqs[message.from];
  std::vector<std::uint64_t> later(vcqs.size());  // Steps from a message on, by sender.
  for (auto other = messages.rbegin(); other != messages.rend(); ++other) {
    if (!other->is_put() || !other->is_good() || other->to != message.from) continue;
    later[other->from] += other->sps;
    if (vcq.steps - later[other->from] < place && other->length > 0) certain.push_back(&*other);
  }
  return certain;
}

void TofuPlan::choose_source(PlannedMessage& message, std::uint64_t place) {
  if (message.kind == PacketType::kTofuNop || message.kind == PacketType::kTofuArmw || message.scribbles) return;
  message.source_at = below(kConstantBytes - std::min(message.length, kConstantBytes) + 1);
  if (!message.starts || !vcqs[message.from].session || message.length == 0 || percent(25)) return;
  const auto certain = certain_sources(message, place);
  if (certain.empty()) return;
  const PlannedMessage& received = *certain[below(certain.size())];
  message.length = std::min(message.length, received.length);
  if (message.fault != PlannedFault::kNone && message.length < 2) message.fault = PlannedFault::kRemoteStadd;
  message.forwards = true;
  message.source_at = received.target_at + below(received.length - message.length + 1);
}

/// What the message does when it happens. Its source is in its final state by then.
void TofuPlan::apply(PlannedMessage& message) {
  if (!message.is_good()) return;
  if (message.kind == PacketType::kTofuArmw) return apply_armw(message);
  if (message.kind == PacketType::kTofuNop) return;
  const bool gets = message.kind == PacketType::kTofuGet;
  const auto& source = after[vcqs[gets ? message.to : message.from].process];
  auto& target = after[vcqs[gets ? message.from : message.to].process];
  const auto first = source.begin() + static_cast<std::ptrdiff_t>(message.source_at);
  message.data.assign(first, first + static_cast<std::ptrdiff_t>(message.length));
  std::copy(message.data.begin(), message.data.end(), target.begin() + static_cast<std::ptrdiff_t>(message.target_at));
}

void TofuPlan::apply_armw(PlannedMessage& message) {
  constexpr AtomicOperation kOperations[] = {AtomicOperation::kCswap, AtomicOperation::kSwap, AtomicOperation::kSum,
                                             AtomicOperation::kBxor,  AtomicOperation::kBand, AtomicOperation::kBor};
  std::byte* const at = after[vcqs[message.to].process].data() + message.target_at;
  std::memcpy(&message.old_value, at, message.length);
  const std::uint64_t old = message.old_value;
  message.operation = kOperations[below(std::size(kOperations))];
  message.value = random_.next();
  message.compared = percent(60) ? old : random_.next();
  std::uint64_t result = message.value;
  switch (message.operation) {
    case AtomicOperation::kCswap: result = masked(message.compared, message.length) == old ? message.value : old; break;
    case AtomicOperation::kSum: result = old + message.value; break;
    case AtomicOperation::kBxor: result = old ^ message.value; break;
    case AtomicOperation::kBand: result = old & message.value; break;
    case AtomicOperation::kBor: result = old | message.value; break;
    default: break;
  }
  std::memcpy(at, &result, message.length);
}

// ---- What must be told ---------------------------------------------------------------------------------------------

std::uint64_t TofuPlan::named_id(const PlannedMessage& message) const {
  std::uint64_t id = vcqs[message.to].id;
  if (message.fault == PlannedFault::kNoVcq) id = (id & ~std::uint64_t{0xff}) | kMissingComponent;
  if (message.fault == PlannedFault::kNoQueue) id |= kMissingQueue << 8;
  return with_path(id, paths_[message.from * vcqs.size() + message.to]);
}

std::uint64_t TofuPlan::remote_stadd(const PlannedMessage& message) const {
  const std::uint64_t base = stadds[message.to];
  const std::uint64_t end = base + before[vcqs[message.to].process].size();
  const std::uint64_t align = message.kind == PacketType::kTofuArmw ? 8 : 1;
  switch (message.fault) {
    case PlannedFault::kRemoteStadd: return make_stadd(kStrangerStag) + 64;
    case PlannedFault::kRemoteBehind: return (end + 16) / align * align;
    case PlannedFault::kRemoteLength: return end - 1;
    case PlannedFault::kReadOnly: return read_only_stadds[message.to];
    default: break;
  }
  return base + (message.kind == PacketType::kTofuGet ? message.source_at : message.target_at);
}

std::uint64_t TofuPlan::local_stadd(const PlannedMessage& message) const {
  if (message.kind != PacketType::kTofuPut && message.kind != PacketType::kTofuGet) return 0;
  const std::uint64_t base = stadds[message.from];
  if (message.fault == PlannedFault::kLocalStadd) return make_stadd(kStrangerStag);
  if (message.fault == PlannedFault::kLocalLength) return base + before[vcqs[message.from].process].size() - 1;
  return base + (message.kind == PacketType::kTofuGet ? message.target_at : message.source_at);
}

NiFail TofuPlan::tcq_fail(const PlannedMessage& message) {
  if (message.kind != PacketType::kTofuPut) return NiFail::kOk;
  if (message.fault == PlannedFault::kLocalStadd) return NiFail::kBadStadd;
  if (message.fault == PlannedFault::kLocalLength) return NiFail::kBadLength;
  return NiFail::kOk;
}

namespace {

NiFail mrq_fail(PlannedFault fault) {
  switch (fault) {
    case PlannedFault::kNone: return NiFail::kOk;
    case PlannedFault::kRemoteStadd:
    case PlannedFault::kRemoteBehind:
    case PlannedFault::kLocalStadd: return NiFail::kBadStadd;
    case PlannedFault::kRemoteLength:
    case PlannedFault::kLocalLength: return NiFail::kBadLength;
    case PlannedFault::kReadOnly: return NiFail::kSegv;
    case PlannedFault::kNoVcq:
    case PlannedFault::kNoQueue: return NiFail::kUndeliverable;
  }
  return NiFail::kOk;
}

}  // namespace

std::vector<std::map<NoticeStream, std::vector<PlannedNotice>>> TofuPlan::expected_notices() const {
  std::vector<std::map<NoticeStream, std::vector<PlannedNotice>>> expected(vcqs.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const PlannedMessage& m = messages[i];
    if (!m.starts || m.kind == PacketType::kTofuNop || tcq_fail(m) != NiFail::kOk) continue;
    const bool gets = m.kind == PacketType::kTofuGet, modifies = m.kind == PacketType::kTofuArmw;
    const std::uint64_t moved = modifies ? 0 : m.length;
    Notice notice;
    notice.kind = gets ? NoticeKind::kLocalGet : modifies ? NoticeKind::kLocalArmw : NoticeKind::kLocalPut;
    notice.fail = mrq_fail(m.fault);
    notice.remote_fault = m.fault != PlannedFault::kLocalStadd && m.fault != PlannedFault::kLocalLength;
    notice.vcq_id = with_own_path(named_id(m));
    notice.edata = m.edata;
    if (gets) notice.local_stadd = local_stadd(m) + moved;
    if (!gets) notice.remote_stadd = remote_stadd(m) + moved;
    if (modifies && m.is_good()) notice.remote_value = m.old_value;
    if (m.local || notice.fail != NiFail::kOk) expected[m.from][{false, notice.vcq_id}].push_back({notice, i});
    const bool fine_there = m.is_good() || !notice.remote_fault;
    if (!m.remote || !fine_there) continue;
    notice.kind = gets ? NoticeKind::kRemoteGet : modifies ? NoticeKind::kRemoteArmw : NoticeKind::kRemotePut;
    notice.fail = NiFail::kOk;
    notice.remote_fault = true;
    notice.vcq_id = vcqs[m.from].id;
    notice.remote_value = 0;
    notice.remote_stadd = remote_stadd(m) + moved;
    expected[m.to][{true, notice.vcq_id}].push_back({notice, i});
  }
  return expected;
}

}  // namespace portofu::simulation
