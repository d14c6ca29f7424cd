// Rows of FUNet: table 6.1 and figure 6.2 of J. C. Hoe's thesis, which come from its simulator. Times are cycles of a
// processor of 40 MHz. Overheads are those of compiled code. Some are taken from the table (Overheads below); others
// follow from these, and are rows. What interface, bus and network add is ours.

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "benchmarks/machines/driver.h"
#include "benchmarks/machines/simulated.h"
#include "benchmarks/machines/table.h"

namespace portofu::machines {
namespace {

constexpr double kCycleNs = 25;
constexpr double kCyclesPerBusCycle = 40.0 / 25;

/// What the processor spends on a packet, in cycles.
struct Overheads {
  double send;
  double receive;
};

// Inputs, from table 6.1. Block transfers are of four words in the table, and here of a packet: cmam_mfer_n has
// sixteen.
constexpr Overheads kOfCmam4{113.2, 221.3};
constexpr Overheads kOfReply4{98.2, 201.3};
constexpr Overheads kOfCmam1{134.2, 251.3};
constexpr Overheads kOfXfer{126.6, 235.6};
constexpr Overheads kOfMfer{4 * 24.9, 4 * 44.3};

/// A reply is cheaper than a request by the same code, whatever it carries: as that of four words is.
constexpr Overheads reply_of(const Overheads& request) {
  return {request.send - (kOfCmam4.send - kOfReply4.send), request.receive - (kOfCmam4.receive - kOfReply4.receive)};
}

/// So many doublewords more. Each takes a turn of a copying loop that is not optimized, and a store to the send queue
/// or a load from the receive queue, which is not in the cache (6.1.1: two cycles, and 28).
constexpr Overheads longer(const Overheads& shorter, double doublewords) {
  constexpr double kTurnCycles = 10;  // Instructions, by our count.
  return {shorter.send + doublewords * (kTurnCycles + 2), shorter.receive + doublewords * (kTurnCycles + 28)};
}

/// One primitive of CMAM (appendix A), a packet of it.
struct Primitive {
  const char* name;
  std::uint32_t stores;        ///< Into the send queue, doublewords.
  std::uint32_t queue_words;   ///< Of the packet, with its header.
  std::uint32_t memory_words;  ///< XFER: that the interface fetches and writes by itself.
  Overheads overheads;
  Overheads table;        ///< Overheads of the table.
  double send_cycles;     ///< Throughput time of the table.
  double receive_cycles;  ///< The same.
};

constexpr double kDoublewordsMore = 9;  // Of 22 words beyond 3, in doublewords: 11 and 2.
constexpr Primitive kCmam4{"cmam_4", 3, 6, 0, kOfCmam4, kOfCmam4, 219.4, 348.2};
constexpr Primitive kReply4{"cmam_reply_4", 3, 6, 0, kOfReply4, kOfReply4, 215.8, 336.1};
constexpr Primitive kCmam1{"cmam_n, 1 word", 3, 3, 0, kOfCmam1, kOfCmam1, 218.0, 377.8};
constexpr Primitive kReply1{"cmam_reply_n, 1 word", 3, 3, 0, reply_of(kOfCmam1), {119.2, 231.3}, 215.0, 363.8};
constexpr Primitive kCmam20{"cmam_n, 20 words", 11,    22,   0, longer(kOfCmam1, kDoublewordsMore),
                            {244.2, 587.3},     645.2, 969.7};
constexpr Primitive kReply20{"cmam_reply_n, 20 words", 11,    22,   0, reply_of(longer(kOfCmam1, kDoublewordsMore)),
                             {229.2, 567.3},           646.8, 955.6};
constexpr Primitive kXfer{"cmam_xfer_4", 3, 6, 0, kOfXfer, kOfXfer, 218.5, 365.0};
constexpr Primitive kReplyXfer{"cmam_reply_xfer_4", 3, 6, 0, reply_of(kOfXfer), {111.7, 215.6}, 215.8, 345.2};
constexpr Primitive kMfer{"cmam_mfer_n, 16 words", 2, 4, 16, kOfMfer, kOfMfer, 4 * 63.6, 4 * 85.5};
constexpr Primitive kReplyMfer{"cmam_reply_mfer_n, 16 words", 2,        4,       16, reply_of(kOfMfer),
                               {4 * 22.5, 4 * 40.3},          4 * 64.4, 4 * 90.9};
constexpr std::uint32_t kCmam4Bytes = 20;

/// Bus time of the interface: 15 bus cycles a transaction and 2 a word, in bursts of 1, 4 or 8 words (6.1.5).
double dvma_cycles(std::uint32_t words) {
  double bus_cycles = 0;
  while (words > 0) {
    const std::uint32_t burst = words > 4 ? 8 : words > 1 ? 4 : 1;
    bus_cycles += 15 + 2 * burst;
    words -= std::min(words, burst);
  }
  return bus_cycles * kCyclesPerBusCycle;
}

/// 5.2.2: four words of the queue, the rest of them, and what lies elsewhere.
double fetch_cycles(const Primitive& primitive) {
  return dvma_cycles(4) + dvma_cycles(primitive.queue_words - std::min(4u, primitive.queue_words)) +
         dvma_cycles(primitive.memory_words);
}

/// 5.2.3: the packet, what belongs elsewhere, and a word that makes the processor see it.
double deliver_cycles(const Primitive& primitive) {
  return dvma_cycles(primitive.queue_words) + dvma_cycles(primitive.memory_words) + dvma_cycles(1);
}

/// The bus is the bottleneck: stores into the queue and to its register, and what the interface fetches.
double send_cycles(const sim::Machine& machine, const Primitive& primitive) {
  const double store_cycles = static_cast<double>(machine.interfaces.command_ps) / 1000 / kCycleNs;
  return (primitive.stores + 1) * store_cycles + fetch_cycles(primitive);
}

/// The processor does not get on while the interface has the bus.
double receive_cycles(const Primitive& primitive) { return primitive.overheads.receive + deliver_cycles(primitive); }

/// The machine with the bus times of a primitive.
sim::Machine machine_for(sim::Machine machine, const Primitive& primitive) {
  machine.interfaces.dma_read_ps = static_cast<std::uint64_t>(fetch_cycles(primitive) * kCycleNs * 1000);
  machine.interfaces.dma_write_ps = static_cast<std::uint64_t>(deliver_cycles(primitive) * kCycleNs * 1000);
  return machine;
}

std::uint64_t ps_of(double cycles) { return static_cast<std::uint64_t>(cycles * kCycleNs * 1000); }

/// Everybody in turn with somebody at each distance, and a request there and a reply back, each with its calls.
double round_trip_cycles(const sim::Machine& machine, const Primitive& request, const Primitive& reply) {
  double sum = 0;
  constexpr std::uint32_t kOthers = 31;
  for (std::uint32_t to = 1; to <= kOthers; ++to) {
    sim::Network network = make_network(machine_for(machine, request), "32");
    const auto bytes = [](const Primitive& primitive) { return (primitive.queue_words - 1) * 4; };
    std::uint64_t now_ps = ps_of(request.overheads.send);
    now_ps = network.send(now_ps, {.from_node = 0, .to_node = to, .bytes = bytes(request)}).arrived_ps;
    now_ps += ps_of(request.overheads.receive + reply.overheads.send);
    now_ps = network.send(now_ps, {.from_node = to, .to_node = 0, .bytes = bytes(reply)}).arrived_ps;
    sum += static_cast<double>(now_ps + ps_of(reply.overheads.receive)) / 1000 / kCycleNs;
  }
  return sum / kOthers;
}

/// Share of the time in which processors multiply (6.2.2): for each column of A there is a request, and its 128
/// doublewords are sent and received by the processors on both sides.
double utilization_percent(const sim::Machine& machine, const Primitive& transfer, std::uint32_t columns) {
  constexpr double kRows = 128;
  // Of one turn of the loop of appendix C, not optimized, three integer products by calls. Fitted to the first of both
  // rows.
  constexpr double kMultiplyCycles = 73;
  const double words = transfer.memory_words > 0 ? transfer.memory_words : 4;
  const double packets = kRows * 2 / words;
  const double transfer_cycles = packets * (send_cycles(machine, transfer) + receive_cycles(transfer));
  const double request_cycles = send_cycles(machine, kCmam4) + receive_cycles(kCmam4);
  const double work_cycles = kRows * columns * kMultiplyCycles;
  return 100 * work_cycles / (work_cycles + transfer_cycles + request_cycles);
}

void add_rows(Table& table, const sim::Machine& machine) {
  const auto add = [&](const std::string& what, double value, double allowed, double ours, const char* unit = "cyc") {
    table.add({what, unit, value, value, allowed, ours, "model"});
  };
  add("round trip of cmam_4, mean of 31 partners", 1160.8, 15, round_trip_cycles(machine, kCmam4, kReply4));
  add("round trip of cmam_n, 1 word", 1147.9, 15, round_trip_cycles(machine, kCmam1, kReply1));
  for (const Primitive& primitive :
       {kCmam4, kReply4, kCmam1, kReply1, kCmam20, kReply20, kXfer, kReplyXfer, kMfer, kReplyMfer}) {
    const std::string name = primitive.name;
    add("send time of " + name, primitive.send_cycles, 25, send_cycles(machine, primitive));
    add("receive time of " + name, primitive.receive_cycles, 25, receive_cycles(primitive));
    if (primitive.overheads.send == primitive.table.send) {
      table.note("overheads of " + name + ": taken from the table, no row");
    } else {
      add("send overhead of " + name, primitive.table.send, 25, primitive.overheads.send);
      add("receive overhead of " + name, primitive.table.receive, 25, primitive.overheads.receive);
    }
  }
  const double xfer_cycles_for_16_words = 4 * send_cycles(machine, kXfer);
  add("block transfer, bandwidth of mfer : xfer", 3.4, 15, xfer_cycles_for_16_words / send_cycles(machine, kMfer), "");
  sim::Network network = make_network(machine, "32");
  add("barrier of 32 nodes, recursive doubling", 3825, 25, barrier_of_calls_us(network, kCmam4Bytes) * 1000 / kCycleNs);
  // Of percent, so many points are as many percent of 80.
  constexpr double kFivePoints = 5 / 80.0 * 100;
  add("matrix product, utilization, 16 columns, xfer", 80, kFivePoints, utilization_percent(machine, kXfer, 16), "%");
  add("matrix product, utilization, 4 columns, mfer", 80, kFivePoints, utilization_percent(machine, kMfer, 4), "%");
}

// ---- Latency hiding, with lib/funi in virtual time ------------------------------------------------------------------

/// A file with the machine, but links of another latency, whose buffers hold what is under way until room is told. With
/// those of the machine a link would carry three packets in two latencies, and that would decide. It is removed again.
class SlowMachine {
 public:
  explicit SlowMachine(double latency_ns)
      : path_(std::filesystem::temp_directory_path() / ("funet-" + std::to_string(getpid()) + ".json")) {
    nlohmann::json machine = nlohmann::json::parse(std::ifstream(sim::machine_directory() / "funet.json"));
    nlohmann::json& links = machine["links"];
    links["latency_ns"] = latency_ns;
    const double under_way = 2 * latency_ns * links["lanes"].get<double>() * links["lane_gb_s"].get<double>();
    links["buffer_bytes"] = links["buffer_bytes"].get<std::uint64_t>() + static_cast<std::uint64_t>(under_way);
    std::ofstream(path_) << machine;
  }
  ~SlowMachine() { std::filesystem::remove(path_); }
  SlowMachine(const SlowMachine&) = delete;
  SlowMachine& operator=(const SlowMachine&) = delete;

  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

/// From one request of rank 0 for a column to the next.
double column_ms(double latency_ns, int compute_ms) {
  constexpr std::uint64_t kRequestBytes = 24;  // Those of cmam_4; nothing else is so long here.
  constexpr const char* kColumns = "16 ";
  const SlowMachine machine(latency_ns);
  std::vector<Sent> messages =
      run_program({machine.path(), "4", "machines_program_funet", kColumns + std::to_string(compute_ms)});
  std::erase_if(messages, [](const Sent& one) { return one.from != 0 || one.bytes != kRequestBytes; });
  return mean_interval_us(messages, "put") / 1000;
}

/// "The overlapping of communication delay with useful computation hides the effect of FUNi's relatively high
/// communication latency" (6.2.2): until a fetch takes as long as the computing per column. Then fetches decide.
void add_latency_hiding(Table& table) {
  constexpr int kComputeMs = 4;
  const double without = 100 * kComputeMs / column_ms(0, kComputeMs);
  const auto text = [](double milliseconds) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.1f", milliseconds);
    return std::string(digits);
  };
  for (const double latency_ns : {1e5, 2e5, 1e6}) {
    const double fetch_ms = column_ms(latency_ns, 0);
    const double ours = 100 * kComputeMs / column_ms(latency_ns, kComputeMs);
    const bool is_hidden = fetch_ms < kComputeMs;
    const double value = is_hidden ? without : 100 * kComputeMs / fetch_ms;
    table.add(
        {"utilization, 4 ms a column, fetch of " + text(fetch_ms) + " ms: " + (is_hidden ? "hidden" : "it decides"),
         "%", value, value, is_hidden ? 5.0 : 15.0, ours, "program"});
  }
}

}  // namespace
}  // namespace portofu::machines

int main(int count, char** arguments) {
  portofu::machines::Table table("funet", count, arguments);
  portofu::machines::add_rows(table, portofu::machines::get_machine("funet"));
  if (table.has_programs()) portofu::machines::add_latency_hiding(table);
  return table.finish();
}
