// How an engine ends: closed by its process when nobody is inside, retired while other threads may be, or left behind
// by a process that ends.

#include <sched.h>

#include "engine/queue/clock.h"
#include "engine/run/death.h"
#include "engine/run/engine.h"
#include "engine/run/engine_node.h"
#include "engine/run/loop.h"
#include "engine/target/close_interface.h"

namespace portofu {

Engine::~Engine() {
  const bool owned = node_ == nullptr || node_->segment->in_owner_process();
  if (owned && node_ != nullptr) flush(linger_ns_);
  if (!owned) (void)node_->nic.release();  // Its thread is the parent's.
  if (node_ != nullptr) node_->nic.reset();
  progress_.reset();
  Core& core = core_;
  if (owned && core.checker() != nullptr) core.checker()->ends(core);
  if (owned && node_ != nullptr) {
    // Perhaps nobody else is left to remove what the dead have left.
    for (Wire* wire : core.wires) wire->check_peers();
  }
  if (!owned) core.directory = nullptr;  // What is published is the parent's,
  if (!owned) core.observers = nullptr;  // and so is what is recorded.
  for (std::uint32_t index = 0; index < kInterfaceCount; ++index) {
    if (core.interface(index) != nullptr) close_interface_on_duty(core, index);
  }
  for (auto& [key, peer] : core.peers) {
    for (Outbox* outbox : {&peer->requests, &peer->answers}) outbox->forget_if([](const auto&) { return true; });
    if (owned && peer->state == PeerState::kConnected) peer->wire->disconnect(peer->link);
  }
  core.fired.clear_and_dispose([](TriggeredOperation* operation) { delete operation; });
}

void Engine::share_linger(std::uint32_t engines) {
  linger_ns_ = kLingerNs / engines;
  if (node_->fabric != nullptr) node_->fabric->share_linger(engines);
}

void Engine::flush_until(std::uint64_t deadline_ns) {
  bool delivered = false;
  while (!delivered && monotonic_ns() < deadline_ns && duty_.take_until(deadline_ns)) {
    delivered = has_delivered_on_duty(core_);
    const int work = delivered ? 0 : cycle_on_duty();
    if (work == 0) look_after_timers_on_duty(core_.now_ns());
    give_duty();
    if (work == 0) sched_yield();
  }
}

void Engine::retire() {
  flush_until(monotonic_ns() + linger_ns_);
  node_->nic.reset();
  if (progress_ != nullptr) progress_->stop_until(monotonic_ns() + linger_ns_);
  {
    const Duty duty(*this);
    for (auto& [key, peer] : core_.peers) leave_peer(core_, *peer);
    leave_other_nodes_on_duty();
  }
  node_->segment->end();
  if (node_->step_file != nullptr) node_->step_file->end();
}

/// Gives ports and descriptors back: the next engine of this process may want the same ports at once. Whoever is still
/// inside finds that no other node can be reached.
void Engine::leave_other_nodes_on_duty() {
  core_.directory = nullptr;
  node_->directory.reset();
  core_.leave_other_nodes();
  sleepers_.expect_due_times(false);
  node_->captured_other_nodes.reset();
  node_->datagram_endpoint = nullptr;
  node_->datagrams.reset();
  node_->fabric.reset();
}

void Engine::end_with_process() {
  if (!node_->segment->in_owner_process()) return;
  if (!is_interrupted()) {
    flush_until(monotonic_ns() + linger_ns_);
    if (progress_ != nullptr) progress_->stop_until(monotonic_ns() + linger_ns_);
    if (core_.checker() != nullptr && duty_.take_until(monotonic_ns() + linger_ns_)) {
      core_.checker()->ends(core_);
      give_duty();
    }
  }
  node_->segment->give_names_back_until(monotonic_ns() + linger_ns_);
  if (node_->step_file != nullptr) node_->step_file->end();
  // libfabric ends, too, and no thread may be in it then: others that want the duty wait for the end of the process.
  if (node_->keeper() != nullptr && node_->keeper()->is_open()) duty_.take_until(monotonic_ns() + linger_ns_);
}

}  // namespace portofu
