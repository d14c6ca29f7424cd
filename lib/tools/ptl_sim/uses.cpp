#include "lib/tools/ptl_sim/uses.h"

#include <algorithm>

namespace portofu::tools {

std::vector<sim::Network::NamedUse> busiest(const sim::Network& network) {
  std::vector<sim::Network::NamedUse> uses = network.uses();
  std::stable_sort(uses.begin(), uses.end(),
                   [](const auto& a, const auto& b) { return a.use->busy_ps > b.use->busy_ps; });
  return uses;
}

std::uint64_t slices_to_merge(const sim::Network& network, std::size_t most) {
  std::size_t slices = 1;
  for (const auto& one : network.uses()) slices = std::max(slices, one.use->busy_by_slice.size());
  std::uint64_t merged = 1;
  while (slices > most * merged) merged *= 2;
  return merged;
}

std::vector<std::uint64_t> merge_slices(const std::vector<std::uint64_t>& slices, std::uint64_t merged) {
  std::vector<std::uint64_t> sums((slices.size() + merged - 1) / merged);
  for (std::size_t i = 0; i < slices.size(); ++i) sums[i / merged] += slices[i];
  return sums;
}

}  // namespace portofu::tools
