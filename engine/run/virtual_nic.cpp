#include "engine/run/virtual_nic.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "engine/mailbox/outbox.h"
#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/clock.h"
#include "engine/queue/no_signals.h"
#include "engine/run/loop.h"
#include "engine/run/process_threads.h"
#include "engine/run/wait_limits.h"

namespace portofu {
namespace {

/// Of this process; for the handler of the signal by which the coordinator freezes a thread.
std::atomic<VirtualNic*> of_process{nullptr};
/// Threads that may use it, for the clocks of the program.
std::atomic<std::uint32_t> visitors{0};
/// ProgramTime::era.
std::atomic<std::uint32_t> era_of_process{0};

struct Visit {
  Visit() { visitors.fetch_add(1); }
  ~Visit() { visitors.fetch_sub(1); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
};

/// Whoever sees first that time has become virtual, or real, begins an era.
/// @param is_virtual  asked after the era was read, so that nobody ends an era unseen
template <typename IsVirtual>
std::uint32_t current_era(IsVirtual is_virtual) {
  for (;;) {
    std::uint32_t era = era_of_process.load();
    if ((era % 2 != 0) == is_virtual()) return era;
    era_of_process.compare_exchange_strong(era, era + 1);
  }
}

/// A child has no part in virtual time, and none of the parent's threads.
void leave_in_child() {
  of_process.store(nullptr);
  visitors.store(0);
}

/// Lets the preloaded library, if it is there, ask us.
void tell_preloaded_library() {
  static constexpr ProgramClock kClock{program_time, sleep_in_virtual_time, start_up_in_virtual_time,
                                       retire_from_virtual_time};
  void* const take = dlsym(RTLD_DEFAULT, kTakeProgramClock);
  if (take != nullptr) reinterpret_cast<TakeProgramClock*>(take)(&kClock);
}

}  // namespace

std::unique_ptr<VirtualNic> VirtualNic::start(Engine& engine, VirtualClock& clock, VirtualWire& own,
                                              VirtualWire& others) {
  std::unique_ptr<VirtualNic> nic(new VirtualNic(engine, clock, own, others));
  int error = 0;
  try {
    const NoSignals inherited;
    nic->thread_ = std::thread([raw = nic.get()] { raw->run(); });
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  if (error != 0) {
    log_error("%s", system_failure("pthread_create", "the thread that stands for the NIC", error).c_str());
    return nullptr;
  }
  [[maybe_unused]] static const int kFollowsForks = pthread_atfork(nullptr, nullptr, leave_in_child);
  of_process.store(nic.get());
  tell_preloaded_library();
  struct sigaction action {};
  action.sa_handler = freeze;
  action.sa_flags = SA_RESTART;
  sigaction(kFreezeSignal, &action, nullptr);
  VirtualClock::admit_freezing();
  return nic;
}

VirtualNic::~VirtualNic() {
  of_process.store(nullptr);
  while (visitors.load() != 0) sched_yield();
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  clock_.end_nic();
  thread_.join();
}

/// A thread in the middle of a call does not poll its memory.
void VirtualNic::freeze(int) {
  const int error = errno;
  VirtualNic* const nic = of_process.load();
  if (nic != nullptr) nic->clock_.freeze(nic->engine_.is_interrupted());
  errno = error;
}

void VirtualNic::run() {
  pthread_setname_np(pthread_self(), "portofu-nic");
  const LibraryThread listed;
  bool has_unsent = false;
  while (!stopping_.load(std::memory_order_acquire)) {
    VirtualDelivery delivery{};
    if (clock_.wait_for_delivery(&delivery, has_unsent ? kTryAgainNs : kTimersNs)) take(delivery);
    const Engine::GuestDuty duty(engine_);
    has_unsent = send_waiting_on_duty();
    duty.look_after_timers();
  }
}

bool VirtualNic::send_waiting_on_duty() {
  own_.send_waiting();
  others_.send_waiting();
  return own_.has_unsent() || others_.has_unsent();
}

/// Waits, in real time, until all packets of the message are here.
/// @param duty  taken if they are
void VirtualNic::await(VirtualWire& wire, const VirtualDelivery& delivery, std::optional<Engine::GuestDuty>& duty) {
  const ProcessId source{delivery.source_nid, delivery.source_pid};
  for (;;) {
    const bool is_last_look = stopping_.load(std::memory_order_acquire) || clock_.has_sender_gone(delivery);
    duty.emplace(engine_);
    if (wire.has_arrived(source, delivery.number)) return;
    send_waiting_on_duty();
    duty.reset();
    if (is_last_look) return;
    const timespec pause{0, kTryAgainNs};
    nanosleep(&pause, nullptr);
  }
}

/// A message of our own has left its interface.
void VirtualNic::take_departure(const VirtualDelivery& delivery) {
  {
    const Engine::GuestDuty duty(engine_);
    clock_.enter_nic(delivery, static_cast<std::uint8_t>(delivery.type));
    finish_departed(duty.core(), delivery.departure);
    duty.run_all_cycles();
    clock_.leave_nic();
  }
  clock_.delivered();
}

/// A process has left virtual time, and perhaps ends just now: it is looked for until it is gone.
void VirtualNic::take_loss(const VirtualDelivery& delivery) {
  const ProcessId gone{delivery.source_nid, delivery.source_pid};
  const std::uint64_t began_ns = monotonic_ns();
  while (!stopping_.load(std::memory_order_acquire)) {
    if (lose(delivery, gone) || monotonic_ns() - began_ns > kMostOfLossNs) break;
    const timespec pause{0, kTryAgainNs};
    nanosleep(&pause, nullptr);
  }
  clock_.delivered();
}

/// @return whether the process is known to be gone
bool VirtualNic::lose(const VirtualDelivery& delivery, ProcessId gone) {
  const Engine::GuestDuty duty(engine_);
  clock_.enter_nic(delivery, 0);
  run_timers_on_duty(duty.core());
  duty.run_all_cycles();
  clock_.leave_nic();
  return duty.core().peer(gone).state != PeerState::kConnected;
}

void VirtualNic::take(const VirtualDelivery& delivery) {
  if (delivery.is_lost != 0) return take_loss(delivery);
  if (delivery.departure != 0) return take_departure(delivery);
  const ProcessId source{delivery.source_nid, delivery.source_pid};
  VirtualWire& wire = source == engine_.self() ? own_ : others_;
  std::optional<Engine::GuestDuty> duty;
  await(wire, delivery, duty);
  if (duty) {
    const PacketType type = wire.show(source, delivery.number);
    clock_.enter_nic(delivery, static_cast<std::uint8_t>(type));
    duty->run_all_cycles();
    wire.hide();
    clock_.leave_nic();
    duty.reset();
  }
  clock_.delivered();
}

void leave_virtual_time() {
  VirtualNic* const nic = of_process.load();
  if (nic == nullptr || nic->engine_.is_interrupted()) return;
  nic->engine_.flush(Engine::kLingerNs);
  nic->clock_.leave();
}

void retire_from_virtual_time() {
  const Visit visit;
  VirtualNic* const nic = of_process.load();
  if (nic == nullptr || !nic->clock_.has_begun() || nic->engine_.is_interrupted()) return;
  nic->engine_.flush(Engine::kLingerNs);
  nic->clock_.retire();
}

ProgramTime program_time() {
  const Visit visit;
  VirtualNic* const nic = of_process.load();
  if (nic != nullptr && !nic->clock_.has_begun()) nic->clock_.read_early(nic->engine_.is_interrupted());
  const std::uint32_t era = current_era([nic] { return nic != nullptr && nic->clock_.has_begun(); });
  if (era % 2 == 0) return {era, 0, nic != nullptr && nic->clock_.stands()};
  constexpr std::uint64_t kPsPerNs = 1000;
  return {era, nic->clock_.read(nic->engine_.is_interrupted()) / kPsPerNs, false};
}

void start_up_in_virtual_time(bool begins) {
  const Visit visit;
  VirtualNic* const nic = of_process.load();
  if (nic != nullptr) nic->clock_.start_up(begins);
}

bool sleep_in_virtual_time(std::uint64_t length_ns) {
  const Visit visit;
  VirtualNic* const nic = of_process.load();
  if (nic == nullptr || nic->engine_.is_interrupted()) return false;
  constexpr std::uint64_t kPsPerNs = 1000;
  return nic->clock_.sleep(std::min(length_ns, kLatestPs / kPsPerNs) * kPsPerNs);
}

}  // namespace portofu
