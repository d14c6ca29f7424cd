// Rows of BXI. With --programs they are measured by a program, too.

#include "benchmarks/machines/driver.h"
#include "benchmarks/machines/simulated.h"
#include "benchmarks/machines/table.h"

int main(int count, char** arguments) {
  using namespace portofu;
  using namespace portofu::machines;
  const sim::Machine machine = get_machine("bxi2");
  const auto program = [](const std::string& words) { return Run{"bxi2", "2", "machines_program_portals", words}; };
  Table table("bxi2", count, arguments);
  for (const std::uint32_t bytes : {8u, 64u}) {
    sim::Network network = make_network(machine, "2");
    table.add({"put of " + std::to_string(bytes) + " B over one switch", "us", 1.2, 1.2, 10,
               put_us(network, 1, bytes, sim::PacketKind::kInlinePut), "model"},
              program("put " + std::to_string(bytes) + " 20"),
              [](const auto& messages) { return mean_interval_us(messages, "put"); });
  }
  sim::Network network = make_network(machine, "2");
  table.add({"payload bandwidth, puts of 1 MiB", "GB/s", 11.1, 11.1, 5, stream_gb_s(network, {1}, 1 << 20), "model"},
            program("stream 1048576 8"), put_rate_gb_s);
  return table.finish();
}
