// Step 2 of a Put: how an engine opens, and starts what it is told to. What it does while a call looks or waits is in
// engine_wait.cpp.

#include "engine/run/engine.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

#include "engine/initiator/send.h"
#include "engine/mailbox/outbox.h"
#include "engine/memory/guarded_copy.h"
#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/clock.h"
#include "engine/run/death.h"
#include "engine/run/engine_node.h"
#include "engine/run/loop.h"
#include "engine/run/progress_thread.h"
#include "engine/run/unwinding.h"
#include "engine/segment/user_key.h"
#include "engine/topology/launcher.h"
#include "engine/topology/local_place.h"
#include "engine/wire/other_nodes.h"

namespace portofu {
namespace {

std::uint64_t node_clock(void*) { return monotonic_ns(); }

}  // namespace

std::unique_ptr<Engine> Engine::open(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why,
                                     NodeReach reach) {
  set_log_level(static_cast<LogLevel>(settings.log_level));
  Settings known = settings;
  const auto get_variable = [](const char* name) -> const char* { return std::getenv(name); };
  if (known.job_key == 0) known.job_key = job_key_of_launcher(get_variable);
  const bool is_users = known.job_key == 0;
  if (is_users) known.job_key = find_user_key(SegmentOptions().directory, why);
  if (is_check_wanted(known.check)) known.direct = 0;  // What packets bring is seen.
  *error = OpenError::kSystem;
  if (known.job_key == 0) return nullptr;
  std::unique_ptr<EngineNode> node = open_node(known, pid, error, why, reach);
  if (node == nullptr) return nullptr;
  if (is_users && node->fabric != nullptr && node->fabric->is_open())
    log_warning("no launcher and no PORTOFU_JOB_KEY says the key of the job: processes of other machines are refused");
  install_fault_guard();
  prepare_unwinding();
  std::unique_ptr<Engine> engine(new Engine(known, std::move(node)));
  if (engine->node_->clock != nullptr) {
    EngineNode& own = *engine->node_;
    own.nic = VirtualNic::start(*engine, *own.clock, *own.virtual_loopback, *own.virtual_shm);
    if (own.nic != nullptr) return engine;
    *why = "there is no thread for the NIC of virtual time";
    return nullptr;
  }
  if (settings.progress_thread == 0) return engine;
  engine->progress_ = ProgressThread::start(*engine, find_local_place(settings, get_variable).size);
  return engine;
}

Engine::Engine(const Settings& settings, std::unique_ptr<EngineNode> node)
    : node_(std::move(node)),
      core_(settings, node_->segment->id(), geteuid(), Counters(node_->segment->counters())),
      sleepers_(core_, node_->segment->doorbell(), node_->segment->node_guard()),
      attendance_(&node_->segment->control().unattended),
      timers_(settings.peer_check_ms),
      policy_(settings.spin_count, settings.sleep_after_us, stall_ns_of(settings)) {
  core_.wires = node_->wires();
  if (core_.wires.front() == node_->loopback.get()) own_wire_ = node_->loopback.get();
  core_.fabric = node_->to_other_nodes();
  if (node_->keeper() != nullptr && node_->keeper()->is_open()) core_.wires.push_back(core_.fabric);
  sleepers_.expect_due_times(node_->datagrams != nullptr);
  core_.directory = node_->directory.get();
  core_.directory->when_ended = [this](ProcessId process, std::uint64_t life) {
    if (core_.fabric != nullptr) core_.fabric->other_nodes()->end_life(process, life);
  };
  core_.clock = node_clock;
  core_.receive_arrived = receive_arrived_on_duty;
  core_.lose_peer = lose_peer;
  core_.outstanding.tell_apart(node_->segment->incarnation());
  if (is_check_wanted(settings.check)) {
    node_->checker = std::make_unique<Checker>(settings.check, rank_of_launcher());
  }
  node_->observers = {node_->recorder.get(), node_->checker.get()};
  // In virtual time, because what is found takes some: see record_found.
  if (node_->recorder != nullptr || node_->checker != nullptr || node_->clock != nullptr)
    core_.observers = &node_->observers;
  node_->root = {layout_stamp(), &core_, &attendance_.looks_word()};
  node_->segment->control().inspection_root.store(std::bit_cast<std::uint64_t>(&node_->root),
                                                  std::memory_order_relaxed);
}

Engine::Engine(const Settings& settings, ProcessId self, std::uint32_t uid, World world)
    : in_place_(new InPlaceOfSegment),
      core_(settings, self, uid, Counters(in_place_->counters)),
      sleepers_(core_, in_place_->doorbell, NodeGuard::kFence),
      attendance_(nullptr),
      timers_(settings.peer_check_ms),
      policy_(settings.spin_count, settings.sleep_after_us) {
  core_.wires = std::move(world.wires);
  core_.clock = world.clock;
  core_.clock_context = world.clock_context;
  core_.receive_arrived = receive_arrived_on_duty;
  core_.lose_peer = lose_peer;
  core_.outstanding.tell_apart(core_.now_ns());
}

NodeReach Engine::reach_of_further() {
  const Duty duty(*this);
  const SocketKeeper* const keeper = node_->keeper();
  if (keeper == nullptr) return NodeReach::kNone;
  return keeper->is_open() ? NodeReach::kRequired : NodeReach::kAsSet;
}

void Engine::leave_to_progress_thread() {
  const Duty duty(*this);
  if (progress_ != nullptr && policy_.is_sleeper(core_.now_ns())) progress_->stand_in();
}

void Engine::show_endpoint_on_duty(std::uint32_t number, bool takes_messages) {
  if (node_ == nullptr) return;
  std::atomic<std::uint64_t>& shown = node_->segment->control().endpoints;
  const std::uint64_t bit = std::uint64_t{1} << number;
  const std::uint64_t others = shown.load(std::memory_order_relaxed) & ~bit;
  shown.store(takes_messages ? others | bit : others, std::memory_order_relaxed);
}

/// Whoever uses memory of peers itself finds each time what it waits for, and so never looks.
void Engine::look_after_direct_on_duty() {
  core_.direct_uses = 0;
  pause_due_ = true;
  cycle_on_duty();
}

/// What is only lent goes its way without us, but what has come back is told.
void Engine::settle_waiting_on_duty() {
  const auto waits_for_room = [](const Peer* peer) {
    return !peer->requests.waiting.empty() || !peer->answers.waiting.empty();
  };
  const auto& waiting = core_.waiting_peers;
  if (!core_.fired.empty() || std::any_of(waiting.begin(), waiting.end(), waits_for_room)) {
    // In virtual time there is room at once, and what is sent later would leave at another time.
    while (cycle_on_duty() > 0 && virtual_clock() != nullptr) {
    }
    return;
  }
  endure([&] {
    for (Peer* peer : waiting) finish_taken(core_, *peer);
  });
  if (!core_.fired.empty()) cycle_on_duty();  // By SEND of what came back; see run_cycle_on_duty.
}

/// Whoever sends to itself receives, too, and nobody rings for it: a caller that calls no more would wait for the
/// progress thread's next look. What takes longer, as messages that fire messages without end, is left to that.
void Engine::settle_own_on_duty() {
  for (int rounds = 0; rounds < kMostOwnRounds && !own_wire_->is_silent(); ++rounds) {
    endure([&] {
      if (receive_own_packets_on_duty(core_, *own_wire_) > 0) policy_.note_work();
    });
    if (!core_.fired.empty()) cycle_on_duty();
  }
}

void Engine::post_on_duty(Descriptor& descriptor) {
  start_descriptor(core_, descriptor);
  settle_on_duty();
}

Armed Engine::arm_on_duty(const Descriptor& descriptor, const Trigger& trigger, const Claim& claim) {
  Interface& ni = *core_.interface(descriptor.interface_index);
  CountingEvent* const counter = ni.cts.find(trigger.counter);
  if (counter == nullptr) return Armed::kNoCounter;
  // What has reached its threshold does not wait, whether it is new or has not been started yet. What is started
  // meanwhile may raise the counter.
  const auto has_no_room = [&] {
    return counter->reached() < trigger.threshold && ni.triggered_count >= ni.limits.max_triggered_ops;
  };
  while (has_no_room() && !core_.fired.empty()) settle_on_duty();
  if (has_no_room()) return Armed::kNoRoom;
  arm_operation(core_, *counter, descriptor, trigger, claim);
  settle_on_duty();
  return Armed::kYes;
}

}  // namespace portofu
