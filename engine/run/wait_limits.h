#pragma once
// All constants of waiting of whoever runs the engine, in one table: how long a thread spins, yields and sleeps, and
// how often it looks at what. engine/doc/waiting.md says how they act together. All are compromises, found by
// measurement (benchmarks/NOTEBOOK.md).
//
// Not here: what a user can set (config/settings.h); when a wait ends whose end cannot come, which stands where that is
// decided (the last table of waiting.md); what is below the engine: the longest sleep at the doorbell
// (segment/doorbell.h), how often a fabric is asked (wire/ofi/empty_looks.h), news of a counter in a row
// (event/counting_event.h).

#include <cstdint>

namespace portofu {

// ---- The duty (duty.h)

/// Takes in a row, by one thread, that make it the favourite: at first, ...
inline constexpr std::uint32_t kTakesToFavour = 256;
/// ... and at most, where threads share the duty.
inline constexpr std::uint32_t kMostTakesToFavour = 65'536;
/// A favour that another thread ends earlier costs more than it saves.
inline constexpr std::uint64_t kShortFavourNs = 1'000'000;
/// Takes in a row after which nobody else seems to want it.
inline constexpr std::uint8_t kTakesAlone = 64;
/// Pauses of who waits until the favourite is outside, before it sleeps.
inline constexpr int kPausesForFavourite = 200;
/// Pauses of who waits for the word: before its second look, ...
inline constexpr int kFirstPauses = 8;
/// ... between two looks at most, ...
inline constexpr int kMostPauses = 128;
/// ... and all together, before it sleeps.
inline constexpr int kPausesToSleep = 800;
/// Pauses of who stays away because others have something to do (DutyLock::stay_away).
inline constexpr int kPausesAway = 32;
/// Such a thread could have looked so often meanwhile, ...
inline constexpr std::uint32_t kLooksAway = 8;
/// ... and that takes about so long.
inline constexpr std::uint64_t kStayAwayNs = 1'000;
/// Between two looks at the clock of a thread that waits for the duty, and not for ever.
inline constexpr long kDutyLookNs = 1'000'000;

// ---- A streak of empty looks (idle.h)

/// A yield that takes longer let somebody else run. One to nobody is one system call, 0.2 us; one to somebody who looks
/// once and yields back is two switches more, 1.3 us (Intel).
inline constexpr std::uint64_t kSharedYieldNs = 800;
/// Where the core is shared, a thread still looks so often before it yields.
inline constexpr std::uint32_t kFewestSpins = 1;
/// Short yields in a row after which a thread spins twice as long: the kernel goes on with a caller to which it owes
/// time.
inline constexpr std::uint32_t kShortYields = 16;

// ---- The look behind one that found something (idle.h)

/// Barren second looks in a row after which they are left out.
inline constexpr std::uint32_t kBarren = 8;
/// So many are left out in a row at most.
inline constexpr std::uint32_t kLeftOut = 15;

// ---- Loops of non-blocking calls (poll_policy.h)

/// Who is back so soon from a file descriptor, and nothing has happened, has not slept there.
inline constexpr std::uint64_t kShortestAwayNs = 50'000;
/// Empty calls between two looks at the clock while a loop spins.
inline constexpr std::uint32_t kPollsPerMark = 64;
/// A loop whose kPollsPerMark empty calls take longer does something else, too.
inline constexpr std::uint64_t kTightLoopNs = 64'000;
/// Once a loop yields each call is looked at: it was away if it came later than this, or than an eighth of its last
/// rest.
inline constexpr std::uint64_t kTightCallNs = 20'000;
/// Away before more of kPollsPerMark calls than this: it does something else.
inline constexpr std::uint32_t kMostAways = kPollsPerMark / 8;
/// Away for so long once: it does something else.
inline constexpr std::uint64_t kAwayNs = 1'000'000;
/// A loop sleeps when it has yielded this many times longer than a blocking call would, ...
inline constexpr std::uint64_t kPollPatience = 20;
/// ... and has made this many empty calls: a program that asks a thousand times gets its answers at once.
inline constexpr std::uint64_t kFewestPolls = 4096;
/// A sleep is an eighth of the time waited so far, and at least this.
inline constexpr std::uint64_t kShortestPollSleepNs = 200'000;
/// A sleep is at most this.
inline constexpr std::uint64_t kLongestPollSleepNs = 16'000'000;
/// A loop younger than this sleeps no longer than it was awake: it may be one that works and asks now and then.
inline constexpr std::uint64_t kYoungLoopNs = 100'000'000;
/// Looks behind a LINK that run no cycle, in a row: the caller is posting entries.
inline constexpr std::uint32_t kMostLinks = 256;
/// Entries looked at in each list, the oldest, for one that waits for a single message.
inline constexpr int kEntriesLookedAt = 8;

// ---- Waits that last (stall_watch.h)

/// Between the two looks of a loop at why it finds nothing.
inline constexpr std::uint64_t kBetweenLooksWhyNs = 300'000'000;

// ---- The engine (engine.h)

/// Uses of memory of peers after which a call runs a cycle, and pauses.
inline constexpr std::uint32_t kMostDirectUses = 1024;
/// Cycles between two looks at the clock while there is always something to do.
inline constexpr std::uint32_t kCyclesPerClock = 4096;
/// Rounds in which a call takes what it has sent to itself, and starts what that has fired.
inline constexpr int kMostOwnRounds = 8;
/// Cycles of a wait whose time is over.
inline constexpr int kMostLastCycles = 64;
/// Between two looks whether the segment has its names: as often as a sleeper wakes (Doorbell::wait).
inline constexpr std::uint64_t kNamesPauseNs = 500'000'000;

// ---- The progress thread (progress_thread.h)

/// Longest time between two looks of one that watches, if the guard period is not longer.
inline constexpr std::int64_t kLongestWatchNs = 8'000'000;
/// One that is parked looks so often whether those that sleep do still come back: several of their longest sleeps.
inline constexpr std::int64_t kLongestParkNs = 4'000'000'000;
/// Between two looks at the clock of who waits for its end.
inline constexpr long kEndLookNs = 10'000'000;

// ---- The NIC in virtual time (virtual_nic.h)

/// How often what finds no room is tried again, and how often it is looked whether a message is here.
inline constexpr std::int64_t kTryAgainNs = 50'000;
/// How often the dead are looked for.
inline constexpr std::int64_t kTimersNs = 500'000'000;
/// A process that has left virtual time, and is still there then, is taken for one that goes on.
inline constexpr std::uint64_t kMostOfLossNs = 1'000'000'000;

}  // namespace portofu
