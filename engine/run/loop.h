#pragma once
// One duty cycle.

#include "engine/core/core.h"

namespace portofu {

/// Does what is to be done now: packets in, triggered operations, what waited for room. Never blocks.
/// @return number of things done; 0 if there was nothing
int run_cycle_on_duty(Core& core);

/// Takes packets that this process has sent to itself, not more than a cycle takes from one wire.
/// @param wire  the one that reaches this process
/// @return number of packets taken
int receive_own_packets_on_duty(Core& core, Wire& wire);

/// Goes on with what waits at a peer: its answers first, then its requests.
/// @return number of packets published, and of messages ended
int advance_peer(Core& core, Peer& peer);

/// Looks after the dead and the late. To be called about every PORTOFU_PEER_CHECK_MS while `needs_timers_on_duty`.
void run_timers_on_duty(Core& core);

/// Core::receive_arrived of an engine: takes all packets that have arrived, and does nothing else.
void receive_arrived_on_duty(Core& core);

/// Whether somebody's death or silence would have to be noticed.
bool needs_timers_on_duty(const Core& core);

/// Whether a cycle would find something: for the thread that is about to sleep.
bool has_work_on_duty(Core& core);

/// Whether what was done leaves something behind that nobody rings for: packets to oneself, or operations that have
/// fired.
inline bool has_left_work_on_duty(const Core& core) { return !core.fired.empty() || core.wires.front()->has_packets(); }

/// When a wire has to be looked at the latest, by the core's clock; UINT64_MAX: there is no need to.
std::uint64_t next_due_on_duty(const Core& core);

/// Whether all that was to go out has gone, and has arrived where a wire can tell.
bool has_delivered_on_duty(const Core& core);

/// What to sleep at beside the doorbell, after has_work_on_duty was false; -1: nothing.
int wait_fd_on_duty(const Core& core);

}  // namespace portofu
