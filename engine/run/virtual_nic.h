#pragma once
// The NIC of a rank in virtual time: a thread that hands the engine what arrives, when the coordinator says so, and
// lets the engine do all that follows from it, at that time. The application, whose calls only look at what has been
// done, stands still meanwhile, or does not call.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "engine/run/engine.h"
#include "engine/run/program_time.h"
#include "engine/wire/sim/virtual_clock.h"
#include "engine/wire/sim/virtual_wire.h"

namespace portofu {

class VirtualNic {
 public:
  /// Starts the thread. @param own, others  wires to oneself and to the rest of the node; outlive it, as all do
  /// @return nullptr if the system gives no thread
  static std::unique_ptr<VirtualNic> start(Engine& engine, VirtualClock& clock, VirtualWire& own, VirtualWire& others);

  /// Stops and joins the thread.
  ~VirtualNic();
  VirtualNic(const VirtualNic&) = delete;
  VirtualNic& operator=(const VirtualNic&) = delete;

 private:
  VirtualNic(Engine& engine, VirtualClock& clock, VirtualWire& own, VirtualWire& others)
      : engine_(engine), clock_(clock), own_(own), others_(others) {}
  static void freeze(int number);
  void run();
  void take(const VirtualDelivery& delivery);
  void take_departure(const VirtualDelivery& delivery);
  void take_loss(const VirtualDelivery& delivery);
  bool lose(const VirtualDelivery& delivery, ProcessId gone);
  void await(VirtualWire& wire, const VirtualDelivery& delivery, std::optional<Engine::GuestDuty>& duty);
  bool send_waiting_on_duty();

  Engine& engine_;
  VirtualClock& clock_;
  VirtualWire& own_;
  VirtualWire& others_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;

  friend ProgramTime program_time();
  friend bool sleep_in_virtual_time(std::uint64_t length_ns);
  friend void start_up_in_virtual_time(bool begins);
  friend void leave_virtual_time();
  friend void retire_from_virtual_time();
};

/// What a thread of the program sees that reads the clock: who does so again and again waits. Any thread.
ProgramTime program_time();

/// The program starts up, or has, as it says itself: time does not begin meanwhile.
void start_up_in_virtual_time(bool begins);

/// A thread of the program sleeps, which takes no real time. @return false if time is real for it. Any thread
bool sleep_in_virtual_time(std::uint64_t length_ns);

/// The program is about to end, as it says itself: from here on time is real for it. What arrives is taken on.
void retire_from_virtual_time();

/// The process is done with its engine: what it has sent arrives, and from here on time is real. Nothing, if it is.
void leave_virtual_time();

}  // namespace portofu
