// Rows of Tofu-D: what programs with uTofu measured on Fugaku. With --programs some are measured by such a program,
// too.

#include "benchmarks/machines/driver.h"
#include "benchmarks/machines/simulated.h"
#include "benchmarks/machines/table.h"

namespace portofu::machines {
namespace {

/// Nodes of one group of twelve at one, two and three hops from the first: along A, B and C.
constexpr const char* kGroup = "1x1x1x2x3x2";
struct Hops {
  std::uint32_t to;   ///< In the group.
  const char* nodes;  ///< The smallest box with such a node, the last one.
  std::uint32_t last;
};
constexpr Hops kAtHops[] = {{1, "2", 1}, {3, "2x2", 3}, {9, "2x2x2", 7}};

/// A fresh network for every row.
sim::Network fresh(const char* nodes = kGroup) {
  static const sim::Machine machine = get_machine("tofud");
  return make_network(machine, nodes);
}

Run program(const char* nodes, const std::string& arguments) {
  return {"tofud", nodes, "machines_program_tofu", arguments};
}

void add_latencies(Table& table) {
  constexpr double kPut[][2] = {{0.97, 0.99}, {1.04, 1.08}, {1.13, 1.13}};
  constexpr double kGet[][2] = {{1.48, 1.51}, {1.64, 1.66}, {1.80, 1.80}};
  constexpr double kAtomic[][2] = {{1.32, 1.35}, {1.48, 1.50}, {1.63, 1.63}};
  struct Kind {
    const char* what;
    const double (&rows)[3][2];
    double (*measure)(sim::Network& network, std::uint32_t to);
    const char* word;     ///< Of the program.
    const char* message;  ///< That begins an operation.
  };
  const auto put = [](sim::Network& network, std::uint32_t to) { return put_us(network, to, 8); };
  const auto get = [](sim::Network& network, std::uint32_t to) { return get_us(network, to, 8); };
  for (const Kind& kind : {Kind{"put of 8 B, one way, memory polled", kPut, put, "put", "put"},
                           {"get of 8 B, whole", kGet, get, "get", "get request"},
                           {"armw8, whole", kAtomic, atomic_us, "armw", "atomic request"}}) {
    for (std::size_t i = 0; i < 3; ++i) {
      const Hops& hops = kAtHops[i];
      sim::Network network = fresh();
      table.add({std::string(kind.what) + ", hops: " + std::to_string(i + 1), "us", kind.rows[i][0], kind.rows[i][1], 5,
                 kind.measure(network, hops.to), "model"},
                program(hops.nodes, std::string(kind.word) + ' ' + std::to_string(hops.last) + " 8 20"),
                [&](const auto& messages) { return mean_interval_us(messages, kind.message); });
    }
  }
}

/// Puts one after the other.
struct Stream {
  const char* name;
  std::uint32_t bytes;
  std::uint32_t count;  ///< Of the program's messages.
  double gb_s;
};

void add_bandwidths(Table& table) {
  for (const auto& [name, bytes, count, gb_s] : {Stream{"1 KiB", 1 << 10, 500, 3.49},
                                                 {"4 KiB", 1 << 12, 500, 6.18},
                                                 {"16 KiB", 1 << 14, 256, 6.34},
                                                 {"1 MiB", 1 << 20, 8, 6.34}}) {
    sim::Network network = fresh();
    table.add(
        {std::string("put of ") + name + ", one TNI", "GB/s", gb_s, gb_s, 5, stream_gb_s(network, {1}, bytes), "model"},
        program("2", "stream 1 " + std::to_string(bytes) + ' ' + std::to_string(count)), put_rate_gb_s);
  }
  const auto add = [&](const char* what, double value, std::uint32_t bytes, const std::vector<std::uint32_t>& to,
                       const char* nodes) {
    sim::Network network = fresh(nodes);
    table.add({what, "GB/s", value, value, 5, stream_gb_s(network, to, bytes), "model"});
  };
  sim::Network network = fresh();
  const double one = stream_gb_s(network, {1}, 1 << 18);
  add("put of 256 KiB to one neighbour, 2 TNIs: as with one", one, 1 << 18, {1, 1}, kGroup);
  add("put of 256 KiB to one neighbour, 3 TNIs: as with one", one, 1 << 18, {1, 1, 1}, kGroup);
  // Neighbours along X, Y and Z, both ways, of a torus of three groups in each.
  constexpr std::uint32_t kNeighbours[] = {1, 2, 3, 6, 9, 18};
  add("injection of a node, 6 TNIs to 6 neighbours", 38.1, 1 << 18, {std::begin(kNeighbours), std::end(kNeighbours)},
      "3x3x3x2x3x2");
}

void add_ring(Table& table) {
  constexpr std::uint32_t kLongestOfProgram = 1 << 14;
  for (const std::uint32_t bytes : {8u, 1u << 10, 1u << 14, 1u << 20}) {
    sim::Network network = fresh("12");
    const double value = 1.23 + bytes / 6.36 / 1000;
    const Row row{"hop of a ring, 1.23 us + n / 6.36 GB/s, n: " + std::to_string(bytes),
                  "us",
                  value,
                  value,
                  5,
                  ring_hop_us(network, bytes),
                  "model"};
    // Long ones take a core for many seconds, and say no more.
    if (bytes > kLongestOfProgram) {
      table.add(row);
    } else {
      table.add(row, program("12", "ring 0 " + std::to_string(bytes) + " 4"),
                [](const auto& messages) { return mean_interval_us(messages, "put"); });
    }
  }
}

void add_all_to_all(Table& table) {
  // What is not known of the measurement, its order and its message size, is as it fits best.
  constexpr std::uint32_t kBytes = 8 << 10;
  constexpr std::uint32_t kTimes = 64;
  constexpr std::pair<std::uint32_t, double> kKnown[] = {{1, 28.9}, {2, 41.0}, {3, 64.2}, {4, 81.2}, {6, 86.3}};
  for (const auto& [tnis, gb_s] : kKnown) {
    sim::Network network = fresh();
    table.add({"all-to-all of 12 nodes, 8 KiB, TNIs: " + std::to_string(tnis), "GB/s", gb_s, gb_s, 10,
               all_to_all_gb_s(network, tnis, kBytes, kTimes), "model"});
  }
}

}  // namespace
}  // namespace portofu::machines

int main(int count, char** arguments) {
  portofu::machines::Table table("tofud", count, arguments);
  portofu::machines::add_latencies(table);
  portofu::machines::add_bandwidths(table);
  portofu::machines::add_ring(table);
  portofu::machines::add_all_to_all(table);
  return table.finish();
}
