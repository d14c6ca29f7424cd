#pragma once
// What the provider keeps for a process: its engines, an interface for endpoints in each, and which endpoint has which
// number. Everything else lives in the engines. All functions: any thread.
//
// A domain is a lane: it and all that is opened from it are on one engine of the process, and domains on different ones
// have nothing in common, so threads with a domain each do not wait for each other. The first domain is on the first
// engine, with Portals; later ones go where the fewest are.

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "engine/door/libfabric.h"
#include "engine/door/process.h"

namespace portofu::fabric {

struct Receive;

inline constexpr std::uint32_t kMaxEndpoints = kPortalTableSize / kPortalsPerEndpoint;
static_assert(kMaxEndpoints <= 64, "a bit of a word shows each (SegmentControlShared::endpoints)");

constexpr std::uint16_t portal_of(std::uint32_t endpoint, PortalUse use) {
  return static_cast<std::uint16_t>(endpoint * kPortalsPerEndpoint + static_cast<std::uint32_t>(use));
}

/// What the provider has on one engine.
struct Lane {
  Engine* engine = nullptr;    ///< nullptr: it is not open. It stays open as long as there is any domain.
  std::uint32_t domains = 0;   ///< Changes while the library's mutex is held.
  std::uint32_t sleepers = 0;  ///< On duty: queues and counters at whose file descriptors somebody sleeps (credit.h).
  /// On duty: who receives under a number, and which numbers are taken.
  std::array<Receive*, kMaxEndpoints> receivers{};
  std::array<bool, kMaxEndpoints> taken{};
};

/// Finds a lane for a domain: opens its engine if need be, and with its first domain the interface for endpoints.
/// @param pid  wanted PID, which only the first engine can have; 0 for any
/// @return 0 | -FI_EADDRINUSE | -FI_ENOMEM | -FI_ENODEV
int hold_lane(std::uint32_t pid, Lane** lane);

/// The domain is closed; with the last one of the lane the interface is, with the last one of all the engines are.
void release_lane(Lane& lane);

/// In the child of a fork: no fabric and no domain is open (fabric.cpp), and no poll set (poll.cpp).
void forget_opened();
void forget_poll_sets();

/// On duty: the interface of the endpoints. @pre a reference is held
inline Interface& interface_of(const Core& core) { return *core.interfaces[kFabricInterface]; }

/// On duty: takes so many neighbouring numbers. @return the first; kMaxEndpoints if there are none
std::uint32_t take_numbers(Lane& lane, std::uint32_t count);
void give_numbers(Lane& lane, std::uint32_t first, std::uint32_t count);

/// On duty: who receives under a number; nullptr if nobody does.
inline Receive* receiver_of(const Lane& lane, std::uint32_t number) {
  return number < kMaxEndpoints ? lane.receivers[number] : nullptr;
}

/// Runs the body of a call: no exception leaves the library; memory that runs out becomes -FI_ENOMEM.
template <class Body>
[[gnu::always_inline]] inline auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    tell_of_memory("what a call needs");
    return -FI_ENOMEM;
  } catch (const std::length_error&) {
    return -FI_ENOMEM;
  }
}

/// Fills places of tables of functions: whatever is called says no more than an error.
template <int error>
struct Failing {
  template <class Result, class... Arguments>
  using Call = Result (*)(Arguments...);

  template <class Result, class... Arguments>
  constexpr operator Call<Result, Arguments...>() const {  // NOLINT: meant to be implicit.
    return [](Arguments...) -> Result {
      if constexpr (std::is_pointer_v<Result>) {
        return fi_strerror(error);
      } else {
        return std::is_signed_v<Result> ? static_cast<Result>(-error) : Result{};
      }
    };
  }
};
using NotThere = Failing<FI_ENOSYS>;  ///< What the provider has not.

/// A table of functions, each place of which is filled by the same.
template <class Table, class Filler = NotThere>
constexpr Table all_calls() {
  constexpr std::size_t kCalls = sizeof(Table) / sizeof(void (*)()) - 1;  // Before them is its size.
  return []<std::size_t... each>(std::index_sequence<each...>) {
    return Table{sizeof(Table), (static_cast<void>(each), Filler{})...};
  }
  (std::make_index_sequence<kCalls>());
}

}  // namespace portofu::fabric
