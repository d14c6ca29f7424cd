#pragma once
// What the provider can do, and what of it an application gets. @spec fi_getinfo(3)

#include <rdma/fabric.h>

#include <string_view>

#include "lib/libfabric/address.h"

namespace portofu::fabric {

inline constexpr std::string_view kProviderName = "portofu";
inline constexpr std::string_view kFabricName = "portofu";
inline constexpr std::string_view kDomainName = "portofu";

inline constexpr std::size_t kInjectBytes = 4096;
inline constexpr std::size_t kMostPieces = 32;       ///< Local iovecs of one operation.
inline constexpr std::size_t kMostRemotePieces = 8;  ///< Remote ones.
inline constexpr std::size_t kTransmitSize = 4096;   ///< Operations that may wait for room towards one peer.

/// The direction bits that the others imply if none is named. @spec fi_getinfo(3), "capabilities"
std::uint64_t with_directions(std::uint64_t caps);

/// What the context of an endpoint has, for what was asked. @param caps  of the endpoint
void give_attributes(fi_tx_attr* attr, std::uint64_t caps);
void give_attributes(fi_rx_attr* attr, std::uint64_t caps);

/// fi_provider::getinfo.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** info);

}  // namespace portofu::fabric
