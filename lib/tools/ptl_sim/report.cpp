#include "lib/tools/ptl_sim/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

namespace portofu::tools {
namespace {

constexpr std::array<const char*, kVirtualSpentCount> kSpentNames{"put",  "get",  "atomic", "barrier",
                                                                  "look", "wait", "memory", "compute"};
/// Ranks and links of the table; all are in the JSON.
constexpr std::size_t kMostRows = 16;
constexpr std::size_t kMostLinks = 5;

const char* kind_name(sim::PacketKind kind) {
  switch (kind) {
    case sim::PacketKind::kPut: return "put";
    case sim::PacketKind::kInlinePut: return "inline put";
    case sim::PacketKind::kNextPut: return "next put";
    case sim::PacketKind::kTriggeredPut: return "triggered put";
    case sim::PacketKind::kGetRequest: return "get request";
    case sim::PacketKind::kGetReply: return "get reply";
    case sim::PacketKind::kAtomicRequest: return "atomic request";
    case sim::PacketKind::kAtomicReply: return "atomic reply";
    case sim::PacketKind::kAck: return "ack";
    case sim::PacketKind::kGate: return "gate";
  }
  return "unknown";
}

double us(std::uint64_t ps) { return static_cast<double>(ps) / 1e6; }

template <class... Arguments>
void add_line(std::string* text, const char* format, Arguments... arguments) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), format, arguments...);
  *text += line.data();
}

std::vector<sim::Network::NamedUse> busiest(const sim::Network& network) {
  std::vector<sim::Network::NamedUse> uses = network.uses();
  std::erase_if(uses, [](const auto& one) { return one.use->packets == 0; });
  std::stable_sort(uses.begin(), uses.end(),
                   [](const auto& a, const auto& b) { return a.use->busy_ps > b.use->busy_ps; });
  return uses;
}

}  // namespace

std::string report_text(const Coordinator& coordinator, const sim::Network& network) {
  std::string text;
  const auto& times = coordinator.times();
  add_line(&text, "%s, %u nodes, %zu ranks: %.6f us, %llu messages\n", network.machine().name.c_str(),
           network.node_count(), times.size(), us(coordinator.end_ps()),
           static_cast<unsigned long long>(coordinator.message_count()));
  text += "  rank      time us";
  for (const char* name : kSpentNames) add_line(&text, "%12s", name);
  text += "  messages       bytes\n";
  for (std::size_t rank = 0; rank < std::min(times.size(), kMostRows); ++rank) {
    const RankTimes& one = times[rank];
    add_line(&text, "%6zu %12.3f", rank, us(one.clock_ps));
    for (const std::uint64_t spent : one.spent_ps) add_line(&text, "%12.3f", us(spent));
    add_line(&text, "%10llu %11llu\n", static_cast<unsigned long long>(one.messages),
             static_cast<unsigned long long>(one.bytes));
  }
  if (times.size() > kMostRows) add_line(&text, "   and %zu more\n", times.size() - kMostRows);
  const auto uses = busiest(network);
  for (std::size_t i = 0; i < std::min(uses.size(), kMostLinks); ++i) {
    const sim::Use& use = *uses[i].use;
    add_line(&text, "  %-30s busy %.3f us, %llu packets, which waited %.3f us for it\n", uses[i].name.c_str(),
             us(use.busy_ps), static_cast<unsigned long long>(use.packets), us(use.waited_ps));
  }
  std::uint64_t late = 0;
  for (const RankTimes& one : times) late += one.late_calls;
  if (late != 0) {
    add_line(&text,
             "  %llu calls came later than others had let time go on: times differ from run to run. --patience\n",
             static_cast<unsigned long long>(late));
  }
  return text;
}

std::string report_json(const Coordinator& coordinator, const sim::Network& network, std::uint32_t per_node) {
  nlohmann::ordered_json all;
  all["machine"] = network.machine().name;
  all["nodes"] = network.node_count();
  all["time_ps"] = coordinator.end_ps();
  all["message_count"] = coordinator.message_count();
  all["ranks"] = nlohmann::ordered_json::array();
  std::uint32_t rank = 0;
  for (const RankTimes& one : coordinator.times()) {
    nlohmann::ordered_json row;
    row["rank"] = rank;
    row["node"] = rank++ / per_node;
    row["time_ps"] = one.clock_ps;
    for (std::size_t i = 0; i < kVirtualSpentCount; ++i)
      row[kSpentNames[i]] = {{"time_ps", one.spent_ps[i]}, {"count", one.count[i]}};
    row["messages"] = one.messages;
    row["bytes"] = one.bytes;
    row["late_calls"] = one.late_calls;
    all["ranks"].push_back(row);
  }
  all["uses"] = nlohmann::ordered_json::array();
  for (const auto& one : busiest(network)) {
    all["uses"].push_back({{"name", one.name},
                           {"packets", one.use->packets},
                           {"bytes", one.use->bytes},
                           {"busy_ps", one.use->busy_ps},
                           {"waited_ps", one.use->waited_ps},
                           {"longest_wait_ps", one.use->longest_wait_ps}});
  }
  all["messages"] = nlohmann::ordered_json::array();
  for (const MessageTimes& one : coordinator.messages()) {
    all["messages"].push_back({{"from", one.from},
                               {"to", one.to},
                               {"kind", kind_name(one.kind)},
                               {"interface", one.interface},
                               {"bytes", one.bytes},
                               {"sent_ps", one.sent_ps},
                               {"left_ps", one.left_ps},
                               {"arrived_ps", one.arrived_ps}});
  }
  return all.dump(1) + '\n';
}

}  // namespace portofu::tools
