#include "tests/simulation/lossy_group.h"

#include <algorithm>
#include <cstring>

#include "engine/atomic/atomic_unit.h"

namespace portofu::simulation {
namespace {

constexpr std::uint16_t kPt = 2;
constexpr std::size_t kAreaBytes = 65536;  ///< Of what is sent, and of what is received.
constexpr std::uint32_t kFirstPid = 100;
constexpr std::uint64_t kCheckEveryNs = 100'000'000;  ///< As PORTOFU_PEER_CHECK_MS.
constexpr std::uint64_t kOne = 1;

}  // namespace

LossyGroup::LossyGroup(std::uint64_t seed, Topology topology, const LossyOptions& options, std::size_t process_count)
    : network_(seed, std::move(topology), options), members_(process_count) {
  for (std::size_t i = 0; i < process_count; ++i) set_up(i);
}

LossyGroup::~LossyGroup() {
  for (Member& member : members_) member.node->close_interface();
}

void LossyGroup::set_up(std::size_t process) {
  NodeOptions options;
  options.id = {1 + static_cast<std::uint32_t>(process), kFirstPid};
  options.index = process;
  options.memory_bytes = 2 * kAreaBytes;
  options.clock_ns = network_.clock_ns();
  options.ring = {16, 16384, 8192};
  Member& member = members_[process];
  member.node = std::make_unique<Node>(network_.attach(options.id, static_cast<std::uint32_t>(process)), options);
  Node& node = *member.node;
  for (std::size_t at = 0; at < kAreaBytes; at += sizeof kOne) std::memcpy(node.memory() + at, &kOne, sizeof kOne);
  member.target_eq = node.make_queue(EventQueue::kGenerousFrom);
  member.own_eq = node.make_queue(EventQueue::kGenerousFrom);
  member.md = node.make_md({{{0, kAreaBytes}}}, kMdEventSendDisable, member.own_eq, 0);
  node.make_portal(kPt, member.target_eq, false);
  EntryPlan plan;
  plan.region = {{{kAreaBytes, kAreaBytes}}};
  plan.criteria = kAnyMessage;
  plan.options = kEntryOpPut | kEntryOpGet | kEntryEventLinkDisable;
  plan.pt_index = kPt;
  Handle handle = 0;
  append_entry(node.core(), node.interface(), node.request_of(plan), &handle);
}

std::uint64_t LossyGroup::put(std::size_t from, std::size_t to, std::uint64_t bytes) {
  return post(from, to, bytes, PacketType::kPut);
}

std::uint64_t LossyGroup::add(std::size_t from, std::size_t to, std::uint64_t bytes) {
  return post(from, to, bytes, PacketType::kAtomic);
}

std::uint64_t LossyGroup::post(std::size_t from, std::size_t to, std::uint64_t bytes, PacketType kind) {
  const std::uint64_t number = operations_.size();
  operations_.push_back({.from = from, .to = to, .posted_ns = now_ns()});
  Descriptor d;
  d.type = kind;
  d.interface_index = 1;
  d.portals.ack_req = AckRequest::kFull;
  d.portals.target = members_[to].node->id();
  d.pt_index = kPt;
  d.portals.md_handle = members_[from].md;
  d.length = bytes;
  d.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
  d.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  d.hdr_data = number;
  d.portals.user_ptr = reinterpret_cast<void*>(number);
  ++members_[from].open;
  members_[from].node->post(d);
  wake(from);
  return number;
}

void LossyGroup::kill(std::size_t process) {
  network_.kill(members_[process].node->id());
  members_[process].alive = false;
  ended_count_ += std::exchange(members_[process].open, 0);
}

void LossyGroup::set_stopped(std::size_t process, bool stopped) {
  members_[process].stopped = stopped;
  if (!stopped) wake(process);
}

std::uint64_t LossyGroup::added(std::size_t process) const {
  std::uint64_t value = 0;
  std::memcpy(&value, members_[process].node->memory() + kAreaBytes, sizeof value);
  return value;
}

// ---- Time ----------------------------------------------------------------------------------------------------------

void LossyGroup::wake(std::size_t process) {
  Member& member = members_[process];
  if (member.busy || !member.alive || member.stopped) return;
  member.busy = true;
  busy_.push_back(process);
}

void LossyGroup::step(std::size_t process) {
  Member& member = members_[process];
  member.busy = false;
  if (!member.alive || member.stopped) return;
  if (member.node->engine().step() > 0) wake(process);
  take_events(process);
  const std::uint64_t due_ns = network_.reliable(process)->next_due_ns();
  if (due_ns <= now_ns()) return wake(process);
  if (due_ns != UINT64_MAX) due_.emplace(due_ns, process);
}

void LossyGroup::take_events(std::size_t process) {
  Member& member = members_[process];
  Interface& ni = member.node->interface();
  EventQueue& own = *ni.eqs.find(member.own_eq);
  for (; !own.empty(); own.remove_oldest_on_duty()) {
    const Event& event = own.oldest_on_duty();
    if (event.type != EventKind::kAck) continue;
    GroupOperation& operation = operations_[reinterpret_cast<std::uintptr_t>(event.user_ptr)];
    ++operation.acks;
    operation.fail = event.ni_fail_type;
    operation.ended_ns = now_ns();
    ++ended_count_;
    --member.open;
  }
  EventQueue& target = *ni.eqs.find(member.target_eq);
  for (; !target.empty(); target.remove_oldest_on_duty()) {
    const Event& event = target.oldest_on_duty();
    if (event.ni_fail_type == NiFail::kOk) ++operations_[event.hdr_data].executed;
  }
}

void LossyGroup::wake_those_with_work() {
  for (const ProcessId id : network_.lossy()->take_receivers()) wake(id.nid - 1);
  for (; !due_.empty() && due_.top().first <= now_ns(); due_.pop()) wake(due_.top().second);
}

void LossyGroup::check_all_peers() {
  next_check_ns_ = now_ns() + kCheckEveryNs;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].alive || members_[i].stopped) continue;
    members_[i].node->run_timers();
    wake(i);
  }
}

void LossyGroup::run(std::uint64_t for_ns, const std::function<bool()>& each) {
  constexpr int kMostCycles = 1000;  // At one moment: an engine that always has work must not stop the time.
  const std::uint64_t end_ns = now_ns() + for_ns;
  while (now_ns() < end_ns) {
    if (now_ns() >= next_check_ns_) check_all_peers();
    wake_those_with_work();
    for (int cycles = 0; !busy_.empty() && cycles < kMostCycles; ++cycles) {
      for (const std::size_t process : std::exchange(busy_, {})) step(process);
    }
    if (!each()) return;
    std::uint64_t next_ns = std::min({end_ns, next_check_ns_, network_.lossy()->next_event_ns()});
    if (!due_.empty()) next_ns = std::min(next_ns, due_.top().first);
    if (!busy_.empty()) next_ns = 0;
    network_.lossy()->advance(std::max(next_ns, now_ns() + 1));
  }
}

bool LossyGroup::settle(std::uint64_t limit_ns) {
  bool settled = false;
  run(limit_ns, [&] {
    settled = ended_count_ == operations_.size() && busy_.empty() && network_.is_quiet();
    return !settled;
  });
  return settled;
}

// ---- What has happened ---------------------------------------------------------------------------------------------

std::string LossyGroup::check() const {
  for (std::size_t number = 0; number < operations_.size(); ++number) {
    const GroupOperation& one = operations_[number];
    const std::string name = "operation " + std::to_string(number) + " of " + std::to_string(one.from) + " to " +
                             std::to_string(one.to) + ": ";
    if (!members_[one.from].alive) continue;
    if (one.acks != 1) return name + std::to_string(one.acks) + " ACK";
    if (one.executed > 1) return name + "executed " + std::to_string(one.executed) + " times";
    if (one.fail == NiFail::kOk && one.executed != 1) return name + "said to be executed, and was not";
    if (one.fail != NiFail::kOk && one.fail != NiFail::kUndeliverable)
      return name + "failure " + std::to_string(static_cast<int>(one.fail));
  }
  return {};
}

std::string LossyGroup::check_nothing_left() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].alive) continue;
    const std::string name = "process " + std::to_string(i) + ": ";
    Core& core = members_[i].node->core();
    if (core.outstanding.open_count() != 0) return name + "operations stay open";
    if (!core.waiting_peers.empty()) return name + "a peer waits";
    for (const auto& [key, peer] : core.peers) {
      if (peer->outstanding != 0 || !peer->answers.waiting.empty() || !peer->requests.waiting.empty())
        return name + "a peer is in use";
      if (peer->request_stream.mode != ArrivalMode::kIdle || peer->answer_stream.mode != ArrivalMode::kIdle)
        return name + "a message stays under way";
    }
    if (network_.reliable(i)->send_held().now != 0) return name + "the wire keeps packets";
    if (network_.reliable(i)->receive_held().now != 0) return name + "the wire keeps packets for the engine";
  }
  return {};
}

}  // namespace portofu::simulation
