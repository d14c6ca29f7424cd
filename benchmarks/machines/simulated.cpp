#include "benchmarks/machines/simulated.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace portofu::machines {
namespace {

/// Ranks start one after the other: the first messages are no measure.
constexpr std::size_t kSkipped = 4;

[[noreturn]] void fail(const Run& run, const std::string& why) {
  std::fprintf(stderr, "%s %s on %s: %s\n", run.program.c_str(), run.arguments.c_str(), run.machine.c_str(),
               why.c_str());
  std::exit(2);
}

}  // namespace

std::vector<Sent> run_program(const Run& run) {
  const std::filesystem::path place = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path report =
      std::filesystem::temp_directory_path() / ("machines-" + std::to_string(getpid()) + ".json");
  const std::string command = "'" + (place / "ptl_sim").string() + "' --quiet --machine " + run.machine + " --nodes " +
                              run.nodes + " --messages --json '" + report.string() + "' '" +
                              (place / run.program).string() + "' " + run.arguments;
  const int status = std::system(command.c_str());
  std::ifstream file(report);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  std::filesystem::remove(report);
  if (status != 0) fail(run, "it has failed");
  if (!json.is_object() || !json.contains("messages")) fail(run, "there is no report");
  std::vector<Sent> messages;
  for (const auto& one : json["messages"])
    messages.push_back({one["from"], one["to"], one["kind"], one["bytes"], one["sent_ps"].get<double>() / 1e6,
                        one["arrived_ps"].get<double>() / 1e6});
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Sent& a, const Sent& b) { return a.sent_us < b.sent_us; });
  return messages;
}

double mean_interval_us(const std::vector<Sent>& messages, const std::string& kind) {
  std::vector<double> times_us;
  for (const Sent& one : messages) {
    if (one.kind == kind || one.kind == "inline " + kind) times_us.push_back(one.sent_us);
  }
  if (times_us.size() < kSkipped + 2) return 0;
  return (times_us.back() - times_us[kSkipped]) / static_cast<double>(times_us.size() - 1 - kSkipped);
}

double put_rate_gb_s(const std::vector<Sent>& messages) {
  double bytes = 0;
  double begin_us = 0;
  double end_us = 0;
  for (const Sent& one : messages) {
    if (one.from != 0 || one.kind.find("put") == std::string::npos) continue;
    if (bytes == 0) begin_us = one.sent_us;
    bytes += static_cast<double>(one.bytes);
    end_us = std::max(end_us, one.arrived_us);
  }
  return end_us > begin_us ? bytes / 1000 / (end_us - begin_us) : 0;
}

}  // namespace portofu::machines
