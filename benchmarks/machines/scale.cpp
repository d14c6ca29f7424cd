// Collective operations from 2 ranks to 4096, engines in one process: time on the machine, and here.

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "benchmarks/machines/collectives.h"
#include "benchmarks/machines/driver.h"

namespace portofu::machines {
namespace {

constexpr unsigned kMostLog2 = 12;

struct Measured {
  CollectiveTime time;
  double real_s;
};

template <typename Run>
Measured measure(Run run, const sim::Machine& machine, std::uint32_t log2_ranks) {
  const auto begin = std::chrono::steady_clock::now();
  const CollectiveTime time = run(machine, log2_ranks);
  const std::chrono::duration<double> real = std::chrono::steady_clock::now() - begin;
  if (!time.complaint.empty()) {
    std::fprintf(stderr, "%u ranks: %s\n", 1u << log2_ranks, time.complaint.c_str());
    std::exit(1);
  }
  return {time, real.count()};
}

int run_all(unsigned most_log2) {
  const sim::Machine tofud = get_machine("tofud");
  const sim::Machine bxi2 = get_machine("bxi2");
  std::puts("engines in one process, in virtual time; a rank on each node");
  std::printf("%6s  %18s %10s %8s  %28s %10s %8s\n", "ranks", "uTofu barrier, us", "packets", "real s",
              "Portals triggered sum, us", "packets", "real s");
  std::printf("%6s  %18s %10s %8s  %28s %10s %8s\n", "", "tofud", "", "", "bxi2", "", "");
  for (unsigned log2_ranks = 1; log2_ranks <= most_log2; ++log2_ranks) {
    const Measured gates = measure(barrier, tofud, log2_ranks);
    const Measured sums = measure(allreduce, bxi2, log2_ranks);
    std::printf("%6u  %18.3f %10lu %8.2f  %28.3f %10lu %8.2f\n", 1u << log2_ranks, gates.time.us,
                static_cast<unsigned long>(gates.time.packets), gates.real_s, sums.time.us,
                static_cast<unsigned long>(sums.time.packets), sums.real_s);
  }
  return 0;
}

}  // namespace
}  // namespace portofu::machines

/// @param arguments  the highest power of two of ranks; 12 without one
int main(int count, char** arguments) {
  const int most = count > 1 ? std::atoi(arguments[1]) : static_cast<int>(portofu::machines::kMostLog2);
  if (most < 1 || most > static_cast<int>(portofu::machines::kMostLog2)) {
    std::fprintf(stderr, "usage: machines_scale [POWER]   ranks from 2 to 2^POWER, 12 at most\n");
    return 2;
  }
  return portofu::machines::run_all(static_cast<unsigned>(most));
}
