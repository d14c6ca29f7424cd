// Collective operations from 2 ranks to 4096, by algorithm, engines in one process: time on the machine, and here.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "benchmarks/machines/collectives.h"
#include "benchmarks/machines/driver.h"

namespace portofu::machines {
namespace {

constexpr unsigned kMostLog2 = 12;
constexpr std::uint32_t kPutBytes = 8;  ///< Of the barrier of calls.

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double checked_us(const CollectiveTime& time, std::uint32_t log2_ranks, const char* name) {
  if (time.complaint.empty()) return time.us;
  std::fprintf(stderr, "%s, %u ranks: %s\n", name, 1u << log2_ranks, time.complaint.c_str());
  std::exit(1);
}

void print_names(const char* title, const std::vector<std::string>& names) {
  std::printf("%s\n%6s", title, "ranks");
  for (const std::string& name : names) std::printf("  %24s", name.c_str());
  std::printf("  %8s\n", "real s");
}

void print_row(unsigned log2_ranks, const std::vector<double>& times_us, double real_s) {
  std::printf("%6u", 1u << log2_ranks);
  for (const double time_us : times_us) std::printf("  %24.3f", time_us);
  std::printf("  %8.2f\n", real_s);
  std::fflush(stdout);
}

/// One operation by all of its algorithms.
/// @param measure  log2 of the ranks -> times in the order of `names`
/// @return for plots: its times by name and number of ranks
template <typename Measure>
nlohmann::json run_operation(const char* title, const std::vector<std::string>& names, unsigned most_log2,
                             Measure measure) {
  nlohmann::json series = nlohmann::json::array();
  for (const std::string& name : names) series.push_back({{"name", name}, {"points", nlohmann::json::array()}});
  print_names(title, names);
  for (unsigned log2_ranks = 1; log2_ranks <= most_log2; ++log2_ranks) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<double> times_us = measure(log2_ranks);
    print_row(log2_ranks, times_us, seconds_since(begin));
    for (std::size_t i = 0; i < names.size(); ++i) series[i]["points"].push_back({1u << log2_ranks, times_us[i]});
  }
  return series;
}

nlohmann::json run_all(unsigned most_log2) {
  const sim::Machine tofud = get_machine("tofud");
  const sim::Machine bxi2 = get_machine("bxi2");
  std::vector<std::string> barriers, sums;
  for (const auto& [algorithm, name] : kAlgorithms) {
    barriers.push_back(std::string("gates, ") + name);
    sums.emplace_back(name);
  }
  barriers.emplace_back("calls, recursive doubling");
  nlohmann::json figures;
  std::puts("engines in one process, in virtual time; a rank on each node; us");
  figures["barrier"] = run_operation("uTofu barrier on tofud", barriers, most_log2, [&](unsigned log2_ranks) {
    std::vector<double> times_us;
    for (const auto& [algorithm, name] : kAlgorithms)
      times_us.push_back(checked_us(barrier(tofud, log2_ranks, algorithm), log2_ranks, name));
    sim::Network network = make_network(tofud, box_of(log2_ranks).c_str());
    times_us.push_back(barrier_of_calls_us(network, kPutBytes));
    return times_us;
  });
  figures["sum"] = run_operation("Portals triggered sum on bxi2", sums, most_log2, [&](unsigned log2_ranks) {
    std::vector<double> times_us;
    for (const auto& [algorithm, name] : kAlgorithms)
      times_us.push_back(checked_us(allreduce(bxi2, log2_ranks, algorithm), log2_ranks, name));
    return times_us;
  });
  return figures;
}

/// FUNet's barrier of software beside those that interfaces do alone, on machines of today and on its own.
/// @return whether the latter are clearly faster
bool compare_with_funet() {
  constexpr std::uint32_t kLog2Ranks = 5;
  constexpr double kThesisUs = 95.6;    // Table 6.1, cmam_barrier.
  constexpr std::uint32_t kBytes = 20;  // Of a cmam_4, without header.
  constexpr double kClearly = 2;        // Times as fast.
  const sim::Machine funet = get_machine("funet");
  sim::Network network = make_network(funet, "32");
  const double software_us = barrier_of_calls_us(network, kBytes);
  const auto sum_us = [&](const sim::Machine& machine) {
    return checked_us(allreduce(machine, kLog2Ranks, Algorithm::kRecursiveDoubling), kLog2Ranks, machine.name.c_str());
  };
  const double gates_us =
      checked_us(barrier(get_machine("tofud"), kLog2Ranks, Algorithm::kRecursiveDoubling), kLog2Ranks, "gates");
  std::puts("barrier of 32 nodes, us");
  std::printf("%10.2f  FUNet, active messages, in the thesis\n", kThesisUs);
  std::printf("%10.2f  funet, the same by the model\n", software_us);
  const double triggered_funet_us = sum_us(funet);
  const double triggered_us = sum_us(get_machine("bxi2"));
  std::printf("%10.2f  funet, if its interfaces had triggered operations of Portals\n", triggered_funet_us);
  std::printf("%10.2f  bxi2, triggered operations of Portals\n", triggered_us);
  std::printf("%10.2f  tofud, gates of uTofu\n", gates_us);
  const double slowest_us = std::max({triggered_funet_us, triggered_us, gates_us});
  if (slowest_us * kClearly < std::min(kThesisUs, software_us)) return true;
  std::fprintf(stderr, "barriers of interfaces are not %.0f times as fast\n", kClearly);
  return false;
}

}  // namespace
}  // namespace portofu::machines

/// @param arguments  the highest power of two of ranks, 12 without one; a file for scale_plot.py
int main(int count, char** arguments) {
  const int most = count > 1 ? std::atoi(arguments[1]) : static_cast<int>(portofu::machines::kMostLog2);
  if (most < 1 || most > static_cast<int>(portofu::machines::kMostLog2) || count > 3) {
    std::fprintf(stderr, "usage: machines_scale [POWER [FILE.json]]   ranks from 2 to 2^POWER, 12 at most\n");
    return 2;
  }
  const nlohmann::json figures = portofu::machines::run_all(static_cast<unsigned>(most));
  if (!portofu::machines::compare_with_funet()) return 1;
  if (count < 3) return 0;
  std::ofstream file(arguments[2]);
  file << figures.dump(1) << '\n';
  if (file.flush()) return 0;
  std::fprintf(stderr, "%s cannot be written\n", arguments[2]);
  return 1;
}
