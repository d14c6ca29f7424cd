#include "lib/tools/ptl_sim/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/tools/ptl_sim/spent_names.h"
#include "lib/tools/ptl_sim/uses.h"

namespace portofu::tools {
namespace {

/// Ranks, links and parts of the critical path in the table; all are in the JSON,
constexpr std::size_t kMostRows = 16;
constexpr std::size_t kMostLinks = 5;
constexpr std::size_t kMostParts = 20;
/// and so many segments of the path at most, the last ones,
constexpr std::size_t kMostSegments = 10'000;
/// and so many slices of time.
constexpr std::size_t kMostSlices = 128;

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
  if (coordinator.message_count() == 0 && times.size() > 1) {
    text +=
        "  no message has gone through the library: what ranks told each other by other ways took no virtual time. "
        "Open MPI takes it with --mca pml cm --mca mtl portals4\n";
  }
  std::uint64_t late = 0;
  std::uint64_t waits = 0;
  for (const RankTimes& one : times) {
    late += one.late_calls;
    waits += one.count[static_cast<std::size_t>(VirtualSpent::kMemory)];
  }
  if (waits != 0) {
    add_line(
        &text,
        "  ranks were taken to poll their memory %llu times; if they did not, but computed, times differ from run to "
        "run: --patience\n",
        static_cast<unsigned long long>(waits));
  }
  if (late != 0) {
    add_line(&text,
             "  %llu calls came later than others had let time go on: times differ from run to run. --patience\n",
             static_cast<unsigned long long>(late));
  }
  return text;
}

std::string path_text(const CriticalPath& path, const History& history, const sim::Network& network) {
  if (history.is_cut) return "  no critical path: the job has more steps than are kept\n";
  if (path.segments.empty()) return "";
  std::string text;
  const auto share = [&](std::uint64_t ps) {
    return 100 * static_cast<double>(ps) / static_cast<double>(path.time_ps());
  };
  add_line(&text, "  critical path, %.3f us, to the end of rank %u:", us(path.time_ps()), path.last_rank);
  for (std::size_t i = 0; i < kPathKindCount; ++i)
    add_line(&text, "%s %s %.1f %%", i == 0 ? "" : ",", kPathKindNames[i], share(path.sums_ps[i]));
  text += "\n      time us   share    times\n";
  const auto parts = parts_of(path, history, [&](std::uint32_t stage) { return network.stage_name(stage); });
  for (std::size_t i = 0; i < std::min(parts.size(), kMostParts); ++i) {
    add_line(&text, "%13.3f %5.1f %% %8llu  %s\n", us(parts[i].time_ps), share(parts[i].time_ps),
             static_cast<unsigned long long>(parts[i].segments), parts[i].name.c_str());
  }
  if (parts.size() > kMostParts) add_line(&text, "   and %zu more\n", parts.size() - kMostParts);
  return text;
}

namespace {

using nlohmann::ordered_json;

ordered_json ranks_json(const std::vector<RankTimes>& times, std::uint32_t per_node) {
  ordered_json rows = ordered_json::array();
  std::uint32_t rank = 0;
  for (const RankTimes& one : times) {
    ordered_json row;
    row["rank"] = rank;
    row["node"] = rank++ / per_node;
    row["time_ps"] = one.clock_ps;
    for (std::size_t i = 0; i < kVirtualSpentCount; ++i)
      row[kSpentNames[i]] = {{"time_ps", one.spent_ps[i]}, {"count", one.count[i]}};
    row["messages"] = one.messages;
    row["bytes"] = one.bytes;
    row["late_calls"] = one.late_calls;
    rows.push_back(row);
  }
  return rows;
}

ordered_json uses_json(const sim::Network& network, std::uint64_t slices_in_one) {
  ordered_json rows = ordered_json::array();
  for (const auto& one : busiest(network)) {
    rows.push_back({{"name", one.name},
                    {"packets", one.use->packets},
                    {"bytes", one.use->bytes},
                    {"busy_ps", one.use->busy_ps},
                    {"waited_ps", one.use->waited_ps},
                    {"longest_wait_ps", one.use->longest_wait_ps},
                    {"busy_by_slice_ps", merge_slices(one.use->busy_by_slice, slices_in_one)},
                    {"waited_by_slice_ps", merge_slices(one.use->waited_by_slice, slices_in_one)}});
  }
  return rows;
}

ordered_json path_json(const CriticalPath& path, const History& history, const sim::Network& network) {
  ordered_json all;
  all["time_ps"] = path.time_ps();
  all["last_rank"] = path.last_rank;
  for (std::size_t i = 0; i < kPathKindCount; ++i) all[std::string(kPathKindNames[i]) + "_ps"] = path.sums_ps[i];
  const auto stage_name = [&](std::uint32_t stage) { return network.stage_name(stage); };
  all["parts"] = ordered_json::array();
  for (const PathPart& part : parts_of(path, history, stage_name)) {
    all["parts"].push_back({{"name", part.name},
                            {"kind", kPathKindNames[static_cast<std::size_t>(part.kind)]},
                            {"time_ps", part.time_ps},
                            {"count", part.segments}});
  }
  const std::size_t left_out = path.segments.size() - std::min(path.segments.size(), kMostSegments);
  all["segments_left_out"] = left_out;
  all["segments"] = ordered_json::array();
  for (std::size_t i = left_out; i < path.segments.size(); ++i) {
    const PathSegment& segment = path.segments[i];
    ordered_json row{{"kind", kPathKindNames[static_cast<std::size_t>(segment.kind)]},
                     {"from_ps", segment.from_ps},
                     {"to_ps", segment.to_ps},
                     {"rank", segment.rank}};
    if (segment.message != kNoMessage) {
      const MessageTimes& message = history.messages[segment.message];
      row["to"] = message.to;
      row["message"] = kind_name(message.kind);
      if (segment.kind == PathKind::kBusy && message.waited_for != sim::kNoStage)
        row["waited_for"] = stage_name(message.waited_for);
    } else if (segment.kind != PathKind::kTimer) {
      row["in"] = kSpentNames[static_cast<std::size_t>(segment.spent)];
    }
    all["segments"].push_back(std::move(row));
  }
  return all;
}

ordered_json messages_json(const std::vector<MessageTimes>& messages) {
  ordered_json rows = ordered_json::array();
  for (const MessageTimes& one : messages) {
    rows.push_back({{"from", one.from},
                    {"to", one.to},
                    {"kind", kind_name(one.kind)},
                    {"interface", one.interface},
                    {"bytes", one.bytes},
                    {"sent_ps", one.sent_ps},
                    {"left_ps", one.left_ps},
                    {"arrived_ps", one.arrived_ps},
                    {"waited_ps", one.waited_ps}});
  }
  return rows;
}

}  // namespace

std::string report_json(const Coordinator& coordinator, const sim::Network& network, const CriticalPath& path,
                        const JsonOptions& options) {
  ordered_json all;
  all["machine"] = network.machine().name;
  all["nodes"] = network.node_count();
  all["status"] = options.status;
  all["complaint"] = options.complaint;
  all["time_ps"] = coordinator.end_ps();
  all["message_count"] = coordinator.message_count();
  all["ranks"] = ranks_json(coordinator.times(), options.per_node);
  const std::uint64_t slices_in_one = slices_to_merge(network, kMostSlices);
  all["slice_ps"] = network.slice_ps() * slices_in_one;
  all["uses"] = uses_json(network, slices_in_one);
  all["critical_path"] = path_json(path, coordinator.history(), network);
  all["messages"] = options.has_messages ? messages_json(coordinator.history().messages) : ordered_json::array();
  return all.dump(1) + '\n';
}

}  // namespace portofu::tools
