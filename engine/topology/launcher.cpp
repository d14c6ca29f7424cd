#include "engine/topology/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace portofu {
namespace {

/// FNV-1a, folded; never 0.
std::uint32_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const auto folded = static_cast<std::uint32_t>(hash ^ (hash >> 32));
  return folded != 0 ? folded : 1;
}

}  // namespace

bool launcher_spans_nodes(const std::function<const char*(const char* name)>& get_variable) {
  const auto number = [&get_variable](const char* name) {
    const char* text = get_variable(name);
    return text == nullptr ? 0 : std::atol(text);
  };
  const auto more_than_here = [&number](const char* all, const char* here) {
    return number(here) > 0 && number(all) > number(here);
  };
  return more_than_here("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE") ||
         more_than_here("PMI_SIZE", "MPI_LOCALNRANKS") || number("SLURM_STEP_NUM_NODES") > 1;
}

bool shows_same_nid(std::span<const ProcessId> processes, std::uint32_t own_nid,
                    const std::function<const char*(const char* name)>& get_variable) {
  const auto number = [&get_variable](const char* name) {
    const char* text = get_variable(name);
    return text == nullptr ? 0 : std::atol(text);
  };
  const auto is_shown_by = [&](const char* all, const char* here) {
    if (number(here) <= 0 || number(all) != static_cast<long>(processes.size())) return false;
    return std::ranges::count(processes, own_nid, &ProcessId::nid) > number(here);
  };
  return is_shown_by("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE") ||
         is_shown_by("PMI_SIZE", "MPI_LOCALNRANKS");
}

std::uint32_t job_key_of_launcher(const std::function<const char*(const char* name)>& get_variable) {
  const auto text = [&get_variable](const char* name) {
    const char* found = get_variable(name);
    return std::string(found != nullptr ? found : "");
  };
  const std::string open_mpi = text("OMPI_MCA_orte_precondition_transports");
  if (!open_mpi.empty()) return hash_of(open_mpi);
  const std::string slurm = text("SLURM_JOB_ID");
  return slurm.empty() ? 0 : hash_of(slurm + '.' + text("SLURM_STEP_ID"));
}

std::int64_t rank_of_launcher(const std::function<const char*(const char* name)>& get_variable) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* text = get_variable(name);
    if (text == nullptr) continue;
    std::uint32_t rank = 0;
    const char* end = text + std::string_view(text).size();
    if (const auto [stop, error] = std::from_chars(text, end, rank); error == std::errc() && stop == end) return rank;
  }
  return -1;
}

std::int64_t rank_of_launcher() {
  return rank_of_launcher([](const char* name) { return std::getenv(name); });
}

}  // namespace portofu
