#pragma once
// What an endpoint has in the engine while it is enabled.

#include "engine/door/libfabric.h"
#include "lib/libfabric/endpoint.h"

namespace portofu::fabric {

/// Upper bits of MemoryDescriptor::options, of which the engine knows nothing: Transmit::context.
inline constexpr unsigned kMdContextShift = 26;
static_assert(kMaxEndpoints <= 1u << (32 - kMdContextShift));
static_assert(kMdOneShot < 1u << kMdContextShift);

/// On duty: the memory descriptors. Throws bad_alloc without memory, and then leaves none.
void open_transmit_half(Core& core, Transmit& tx);

/// On duty: the portal table entries, and in them what is registered already. Throws bad_alloc without memory, and then
/// leaves none.
void open_receive_half(Core& core, Receive& rx);

/// On duty: closes what has just been opened, on the same duty, so that nothing has arrived.
void withdraw_receive(Core& core, Receive& rx);

/// On duty: gives a memory descriptor back; what is under way keeps it until it ends, and nobody is told.
void close_memory(Interface& ni, MemoryDescriptor* md);

/// On duty. What is under way keeps its memory descriptor until it ends, and nobody is told.
void close_transmit(Core& core, Transmit& tx);

/// Waits for messages that are arriving, for a second at most.
/// @return whether nothing is left of it; else its number must not be used again
bool close_receive(Engine& engine, Receive& rx);

}  // namespace portofu::fabric
