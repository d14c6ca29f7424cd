// Rows of BXI.

#include "benchmarks/machines/driver.h"
#include "benchmarks/machines/table.h"

int main() {
  using namespace portofu;
  using namespace portofu::machines;
  const sim::Machine machine = get_machine("bxi2");
  Table table("bxi2");
  for (const std::uint32_t bytes : {8u, 64u}) {
    sim::Network network = make_network(machine, "2");
    table.add({"put of " + std::to_string(bytes) + " B over one switch", "us", 1.2, 1.2, 10,
               put_us(network, 1, bytes, sim::PacketKind::kInlinePut), "model"});
  }
  sim::Network network = make_network(machine, "2");
  table.add({"payload bandwidth, puts of 1 MiB", "GB/s", 11.1, 11.1, 5, stream_gb_s(network, {1}, 1 << 20), "model"});
  return table.finish();
}
