#pragma once
// What the provider keeps for a process: its reference to the engine, the engine's interface for endpoints, and which
// endpoint has which number. Everything else lives in the engine. All functions: any thread.

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <new>
#include <stdexcept>

#include "engine/door/process.h"

namespace portofu::fabric {

struct Receive;

/// Portal table entries of one endpoint, from kPortalsPerEndpoint * number on.
enum class PortalUse : std::uint8_t { kTagged = 0, kMessage = 1, kMemory = 2, kCredit = 3 };
inline constexpr std::uint32_t kPortalsPerEndpoint = 4;
inline constexpr std::uint32_t kMaxEndpoints = kPortalTableSize / kPortalsPerEndpoint;
static_assert(kMaxEndpoints <= 64, "a bit of a word shows each (SegmentControlShared::endpoints)");

constexpr std::uint16_t portal_of(std::uint32_t endpoint, PortalUse use) {
  return static_cast<std::uint16_t>(endpoint * kPortalsPerEndpoint + static_cast<std::uint32_t>(use));
}

/// Takes a reference to the engine, and opens its interface for endpoints with the first one.
/// @param pid  wanted PID, 0 for any
/// @return 0 | -FI_EADDRINUSE | -FI_ENOMEM | -FI_ENODEV
int hold_engine(std::uint32_t pid, Engine** engine);

/// Gives one reference back; with the last one the interface is closed.
void release_engine();

/// On duty: the interface of the endpoints. @pre a reference is held
inline Interface& interface_of(const Core& core) { return *core.interfaces[kFabricInterface]; }

/// On duty: takes so many neighbouring numbers. @return the first; kMaxEndpoints if there are none
std::uint32_t take_numbers(std::uint32_t count);
void give_numbers(std::uint32_t first, std::uint32_t count);

/// On duty: who receives under a number; nullptr if nobody does.
Receive* receiver_of(std::uint32_t number);
void set_receiver(std::uint32_t number, Receive* receive);

/// Runs the body of a call: no exception leaves the library; memory that runs out becomes -FI_ENOMEM.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (const std::length_error&) {
    return -FI_ENOMEM;
  }
}

/// Fills places of tables of functions that the provider has not: they return -FI_ENOSYS.
struct NotThere {
  template <class Result, class... Arguments>
  using Call = Result (*)(Arguments...);

  template <class Result, class... Arguments>
  constexpr operator Call<Result, Arguments...>() const {  // NOLINT: meant to be implicit.
    return [](Arguments...) -> Result { return -FI_ENOSYS; };
  }
};

}  // namespace portofu::fabric
