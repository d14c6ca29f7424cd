#include "lib/tools/ptl_top/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace portofu::tools {
namespace {

double per_second(std::uint64_t before, std::uint64_t now, double seconds) {
  return seconds > 0 && now > before ? static_cast<double>(now - before) / seconds : 0;
}

std::uint64_t sent_of(const ProcessLook& process) {
  return process.count(Counter::kPutsSent) + process.count(Counter::kGetsSent) + process.count(Counter::kAtomicsSent) +
         process.count(Counter::kPutsDirect);
}

Row row_between(const ProcessLook* before, const ProcessLook& now, double seconds) {
  Row row;
  row.process = now;
  for (const Waiting& waiting : now.waiting) row.waiting += waiting.packets;
  if (before == nullptr) return row;
  const auto rate = [&](Counter counter) { return per_second(before->count(counter), now.count(counter), seconds); };
  row.sent = per_second(sent_of(*before), sent_of(now), seconds);
  row.answered = rate(Counter::kAnswersSent);
  row.packets_in = rate(Counter::kPacketsReceived);
  row.bytes_out = rate(Counter::kBytesSent);
  row.bytes_in = rate(Counter::kBytesReceived);
  row.events = rate(Counter::kEventsPosted);
  row.sleeps = rate(Counter::kSleeps);
  row.cpu_percent = per_second(before->task.cpu_ns, now.task.cpu_ns, seconds) / 1e7;
  return row;
}

/// The same process: a number may be another one's by now, whose lanes have other PIDs.
const ProcessLook* find_before(const Look& before, const ProcessLook& process) {
  const auto found = std::ranges::find_if(before.processes, [&process](const ProcessLook& other) {
    return other.os_pid == process.os_pid && other.pids.front() == process.pids.front();
  });
  return found != before.processes.end() ? &*found : nullptr;
}

const char* state_words(char state) {
  switch (state) {
    case 'T':
    case 't': return "STOPPED";
    case 'Z':
    case 'X': return "ended";
    case 'D': return "in the kernel";
    default: return "";
  }
}

std::string rank_text(const ProcessLook& process) {
  return process.rank == ProcessLook::kNoRank ? "-" : std::to_string(process.rank);
}

/// Whose PID it is: its rank, or the PID if it has none.
std::string owner_text(std::uint32_t pid, const std::vector<Row>& all) {
  for (const Row& row : all) {
    const auto& pids = row.process.pids;
    if (std::ranges::find(pids, pid) == pids.end()) continue;
    if (row.process.rank != ProcessLook::kNoRank) return fmt::format("rank {}", row.process.rank);
  }
  return fmt::format("PID {}", pid);
}

}  // namespace

const char* order_name(Order order) {
  constexpr std::array<const char*, 4> kNames{"job and rank", "messages sent", "packets that wait", "CPU"};
  return kNames[static_cast<std::size_t>(order)];
}

Order order_after(Order order) {
  return order == Order::kCpu ? Order::kRank : Order{static_cast<std::uint8_t>(static_cast<std::uint8_t>(order) + 1)};
}

std::vector<Row> rows_between(const Look& before, const Look& now, std::uint32_t job_key, Order order) {
  const double seconds = static_cast<double>(now.time_ns - before.time_ns) / 1e9;
  std::vector<Row> rows;
  for (const ProcessLook& process : now.processes) {
    if (job_key != 0 && process.job_key != job_key) continue;
    rows.push_back(row_between(find_before(before, process), process, seconds));
  }
  const auto sort_by = [&rows](auto&& value) { std::ranges::stable_sort(rows, std::ranges::greater(), value); };
  if (order == Order::kSent) sort_by(&Row::sent);
  if (order == Order::kWaiting) sort_by(&Row::waiting);
  if (order == Order::kCpu) sort_by(&Row::cpu_percent);
  return rows;
}

std::string in_short(double value) {
  constexpr std::array<const char*, 5> kLetters{"", " k", " M", " G", " T"};
  std::size_t letter = 0;
  for (; value >= 999.5 && letter + 1 < kLetters.size(); ++letter) value /= 1000;
  const int digits = letter == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, kLetters[letter]);
}

std::vector<std::string> table_of(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{:>5} {:>8} {:>6} {:>5} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  {}", "RANK",
                              "PROCESS", "PID", "LANES", "CPU%", "SENT/s", "OUT B/s", "IN B/s", "EVENTS/s", "SLEEPS/s",
                              "WAITING", "PROGRAM"));
  for (const Row& row : rows) {
    const ProcessLook& process = row.process;
    const std::string state = state_words(process.task.state);
    lines.push_back(fmt::format("{:>5} {:>8} {:>6} {:>5} {:>6.0f} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  {}{}{}",
                                rank_text(process), process.os_pid, process.pids.front(), process.pids.size(),
                                row.cpu_percent, in_short(row.sent), in_short(row.bytes_out), in_short(row.bytes_in),
                                in_short(row.events), in_short(row.sleeps), row.waiting, process.task.name,
                                state.empty() ? "" : "  ", state));
  }
  return lines;
}

std::vector<std::string> details_of(const Row& row, const std::vector<Row>& all) {
  const ProcessLook& process = row.process;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("process {} ({}), rank {}, job key {}, {} channels from others", process.os_pid,
                              process.task.name, rank_text(process), process.job_key, process.channels));
  for (const Waiting& waiting : process.waiting) {
    lines.push_back(fmt::format("  {} waits: {} packets for PID {} are not taken", owner_text(waiting.from_pid, all),
                                waiting.packets, waiting.to_pid));
  }
  for (const Row& other : all) {
    for (const Waiting& waiting : other.process.waiting) {
      if (std::ranges::find(process.pids, waiting.from_pid) == process.pids.end()) continue;
      lines.push_back(fmt::format("  it waits for {}, which has not taken {} packets", owner_text(waiting.to_pid, all),
                                  waiting.packets));
    }
  }
  for (const CounterRow& counter : counter_table()) {
    const std::uint64_t value = process.count(counter.counter);
    if (value != 0) lines.push_back(fmt::format("  {:<26} {:>14} {}", counter.label, value, counter.unit));
  }
  return lines;
}

std::string json_of(const std::vector<Row>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const Row& row : rows) {
    const ProcessLook& process = row.process;
    nlohmann::json one;
    one["process"] = process.os_pid;
    one["program"] = process.task.name;
    one["rank"] = process.rank == ProcessLook::kNoRank ? nlohmann::json() : nlohmann::json(process.rank);
    one["job_key"] = process.job_key;
    one["nid"] = process.nid;
    one["pids"] = process.pids;
    one["state"] = std::string(1, process.task.state);
    one["cpu_percent"] = row.cpu_percent;
    one["per_second"] = {{"sent", row.sent},           {"answered", row.answered}, {"packets_in", row.packets_in},
                         {"bytes_out", row.bytes_out}, {"bytes_in", row.bytes_in}, {"events", row.events},
                         {"sleeps", row.sleeps}};
    one["waiting"] = nlohmann::json::array();
    for (const Waiting& waiting : process.waiting) {
      one["waiting"].push_back(
          {{"from_pid", waiting.from_pid}, {"to_pid", waiting.to_pid}, {"packets", waiting.packets}});
    }
    for (const CounterRow& counter : counter_table()) one["counters"][counter.label] = process.count(counter.counter);
    all.push_back(std::move(one));
  }
  // A program may be called anything.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace portofu::tools
