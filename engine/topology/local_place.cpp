#include "engine/topology/local_place.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "engine/config/settings.h"

namespace portofu {
namespace {

/// Most programs that compute CQs run four processes on a node: one for each group of cores of the real machine.
constexpr std::uint32_t kUsualRanks = 4;

constexpr std::uint32_t kMaxLocalRanks = 65536;

/// The number that a text begins with. @param rest  what is behind it
std::optional<std::uint32_t> leading_number(std::string_view text, std::string_view* rest) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > kMaxLocalRanks) return std::nullopt;
  *rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// What a launcher calls local rank and size.
struct Names {
  const char* rank;
  const char* size;
};

constexpr Names kLaunchers[] = {
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {"PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"},
    {"PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
    {"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},  // "4", or "4(x2)" for two such nodes.
};

}  // namespace

LocalPlace find_local_place(const Settings& settings,
                            const std::function<const char*(const char* name)>& get_variable) {
  LocalPlace place{settings.local_rank, settings.local_size};
  for (const Names& names : kLaunchers) {
    if (place.rank != LocalPlace::kNoRank) break;
    const char* rank_text = get_variable(names.rank);
    std::string_view rest;
    const auto rank = leading_number(rank_text != nullptr ? rank_text : "", &rest);
    if (!rank || !rest.empty()) continue;
    place.rank = *rank;
    const char* size_text = get_variable(names.size);
    const auto size = leading_number(size_text != nullptr ? size_text : "", &rest);
    // "4,3": nodes with different numbers, and which one this is nobody says here.
    const bool is_clear = size && rest.find(',') == std::string_view::npos;
    if (place.size == 0 && is_clear) place.size = *size;
  }
  return place;
}

VirtualNode virtual_node(const LocalPlace& place, std::uint32_t per_node) {
  if (per_node == 0 || place.rank == LocalPlace::kNoRank) return {0, place};
  const std::uint32_t number = place.rank / per_node;
  const std::uint32_t before = number * per_node;
  const std::uint32_t size = place.size > before ? std::min(place.size - before, per_node) : per_node;
  return {number, {place.rank - before, size}};
}

CqRange own_cqs(const LocalPlace& place, const std::vector<std::uint32_t>& table) {
  if (place.rank == LocalPlace::kNoRank) return {};
  if (!table.empty()) return place.rank < table.size() ? CqRange{table[place.rank], 1} : CqRange{};
  const std::uint32_t width = std::max(kTofuCqs / (place.size != 0 ? place.size : kUsualRanks), 1u);
  const std::uint32_t most_ranks = kTofuCqs / width;
  return place.rank < most_ranks ? CqRange{place.rank * width, width} : CqRange{};
}

bool parse_cq_table(const std::string& text, std::uint32_t limit, std::vector<std::uint32_t>* table) {
  table->clear();
  std::string_view left = text;
  while (!left.empty()) {
    std::string_view rest;
    const auto cq = leading_number(left, &rest);
    const bool ended = rest.empty() || (rest.front() == ',' && rest.size() > 1);
    if (!cq || *cq >= limit || !ended) return false;
    table->push_back(*cq);
    left = rest.empty() ? rest : rest.substr(1);
  }
  return true;
}

}  // namespace portofu
