#pragma once
// What the program is shown in virtual time when it reads clocks itself, or sleeps. libportofu_clock.so (lib/clock),
// which is preloaded, has the functions of the C library that do so, and asks these. The engine looks for it when it
// opens, and not the other way, because a program may load the engine late, and for a part of itself only.

#include <cstdint>

namespace portofu {

struct ProgramTime {
  /// Odd: time is virtual. Grows by one when time becomes virtual, and when it becomes real again.
  std::uint32_t era;
  std::uint64_t ns;  ///< Of virtual time, since the era began; 0 if time is real.
  bool stands;       ///< Time is real, but stands still for this thread: it waits for virtual time.
};

/// The engine's functions. Any thread; async-signal-safe.
struct ProgramClock {
  ProgramTime (*now)();
  /// The thread that calls the engine sleeps. @return false if it has to sleep in real time
  bool (*sleep)(std::uint64_t length_ns);
  /// The program starts up: time does not begin until it has. Not async-signal-safe.
  void (*start_up)(bool begins);
  /// The program is about to end: for it, time is real from now on. Not async-signal-safe.
  void (*retire)();
};

/// The function of the preloaded library that takes them. Its number changes with what is above.
inline constexpr const char* kTakeProgramClock = "portofu_take_program_clock_4";
using TakeProgramClock = void(const ProgramClock*);

}  // namespace portofu
