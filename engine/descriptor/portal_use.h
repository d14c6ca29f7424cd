#pragma once
// What portal table entries of the interface of libfabric (kFabricInterface) are for. The provider gives each endpoint
// its own; onlookers tell by the index what waits there.

#include <cstdint>

namespace portofu {

/// Those of one endpoint, from kPortalsPerEndpoint * its number on: tagged messages, others, memory that peers reach,
/// and marks behind messages.
enum class PortalUse : std::uint8_t { kTagged = 0, kMessage = 1, kMemory = 2, kCredit = 3 };
inline constexpr std::uint32_t kPortalsPerEndpoint = 4;

constexpr PortalUse portal_use(std::uint32_t pt_index) {
  return static_cast<PortalUse>(pt_index % kPortalsPerEndpoint);
}

}  // namespace portofu
