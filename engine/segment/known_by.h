#pragma once
// Who of other nodes remembers names of a segment. There they cannot look at its names word (names_word.h), so they are
// told: a name is not given out anew before everybody has heard who knows the one before. Whoever asks a node for a
// name, or makes a link to a process, says where it can be told; who answers writes that into the segment of the owner
// first, so that it is known also when the owner is dead. Told are all names of the segment at once, and who has heard
// has forgotten them. It may have a link to the process still, whose PID is a name, too: it is told once more when that
// life is over.

#include <atomic>
#include <cstdint>

#include "engine/segment/kernel.h"
#include "engine/topology/process_id.h"

namespace portofu {

inline constexpr std::uint32_t kKnownByPlaces = 512;

/// In a segment. Writers: who answers for the owner, a place that is free; who has told; both by compare-and-swap
/// (N1). 0: free; else bits 32..63 NID, 16..31 port, 1: it has not answered the last time, 2..15: since which second,
/// by CLOCK_MONOTONIC; 2 without 1: it has heard, and knows no more than the PID, by a link; 0: set.
struct KnownByShared {
  std::atomic<std::uint64_t> places[kKnownByPlaces];
};

/// Where a process can be told; port 0: nowhere.
using Knower = PortAddress;

enum class NewsKind : std::uint32_t {
  kMoved = 1,  ///< The process has lost names: nothing that is known of them is good any more.
  kHeard = 2,  ///< The answer.
};

/// What is told, and its answer.
struct NamesNews {
  std::uint32_t magic;    ///< kNewsMagic.
  std::uint32_t job_key;  ///< Of the process; another one is not believed.
  std::uint32_t uid;      ///< The same.
  NewsKind kind;
  std::uint32_t nid;    ///< The process whose names are meant; who tells is of its node.
  std::uint32_t pid;    ///< The same.
  std::uint64_t nonce;  ///< An answer repeats it.
  std::uint64_t life;   ///< kMoved: this life (incarnation) of the process is over; 0: none is.
};
static_assert(sizeof(NamesNews) == 40);

inline constexpr std::uint32_t kNewsMagic = 0x014e6f50;  ///< "PoN" and the version of the format.

/// What a process has lost.
enum class NamesLost : std::uint8_t { kSome, kAllWithItsLife };

/// Writes down who is about to learn a name of a segment. To be called before the name is looked at a last time (N1).
/// @return false if that cannot be, and the name must not be remembered
bool note_knower(int segment_fd, Knower knower);

/// Tells everybody who knows names of the segment, and waits for all of them, `timeout_ms` at most. Who is gone need
/// not hear; nor need, if the process is dead, who has not answered for half a minute, or cannot be told so long
/// because the node's address is gone, or because the process was in another network of this machine
/// (network_identity): it has lost the dead process by then, and finds that out when it turns to it.
/// @return false if somebody may not have heard
bool tell_knowers(int segment_fd, NamesLost lost, int timeout_ms, const Meanwhile& meanwhile = {});

/// How long who gives a name up, or wants that of a dead process, waits for others to hear, and who ends, or sweeps.
/// The first is long enough for a kernel that says only once a second that nobody is there.
inline constexpr int kTellMs = 1300;
inline constexpr int kTellShortlyMs = 200;

}  // namespace portofu
