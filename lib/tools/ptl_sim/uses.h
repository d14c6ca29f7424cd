#pragma once
// How links and interfaces were in use, for reports.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/sim/network.h"

namespace portofu::tools {

/// All that has been in use, the busiest first.
std::vector<sim::Network::NamedUse> busiest(const sim::Network& network);

/// Of so many slices one, so that there are not more than wanted.
std::uint64_t slices_to_merge(const sim::Network& network, std::size_t most);
std::vector<std::uint64_t> merge_slices(const std::vector<std::uint64_t>& slices, std::uint64_t merged);

}  // namespace portofu::tools
