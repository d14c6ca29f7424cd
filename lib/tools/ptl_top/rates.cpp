#include "lib/tools/ptl_top/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lib/tools/ptl_info/explanation_text.h"

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

/// Whom it waits for: peers that owe an answer or for whom something waits here, and those that have not taken packets.
void find_waits(std::vector<Row>* rows) {
  for (Row& row : *rows) {
    const auto add = [&row](std::uint32_t pid) {
      const auto& own = row.process.pids;
      if (std::ranges::find(own, pid) == own.end() && std::ranges::find(row.waits_for, pid) == row.waits_for.end())
        row.waits_for.push_back(pid);
    };
    for (const PeerPicture& peer : row.process.peers) {
      if (peer.outstanding != 0 || peer.waiting_requests != 0) add(peer.id.pid);
    }
    for (const Row& other : *rows) {
      for (const Waiting& waiting : other.process.waiting) {
        if (std::ranges::find(row.process.pids, waiting.from_pid) != row.process.pids.end()) add(waiting.to_pid);
      }
    }
    std::ranges::sort(row.waits_for);
  }
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
  const Row* const row = owner_of(pid, all);
  if (row != nullptr && row->process.rank != ProcessLook::kNoRank) return fmt::format("rank {}", row->process.rank);
  return fmt::format("PID {}", pid);
}

/// "rank 3", or "rank 3 +2" if there are more.
std::string waits_text(const Row& row, const std::vector<Row>& all) {
  if (row.waits_for.empty()) return "-";
  const std::string first = owner_text(row.waits_for.front(), all);
  return row.waits_for.size() == 1 ? first : fmt::format("{} +{}", first, row.waits_for.size() - 1);
}

constexpr double kNoQueue = -1;

/// How full the fullest queue of a kind is, in percent. @return kNoQueue if there is none
double fullest(const ProcessLook& process, QueueLook::Kind kind) {
  double percent = kNoQueue;
  for (const QueueLook& queue : process.queues) {
    if (queue.kind == kind) percent = std::max(percent, queue.percent());
  }
  return percent;
}

std::string fill_text(double percent) { return percent == kNoQueue ? "-" : fmt::format("{:.0f}", percent); }

const char* kind_name(QueueLook::Kind kind) {
  constexpr std::array<const char*, 3> kNames{"event queue", "MRQ of VCQ", "TCQ of VCQ"};
  return kNames[static_cast<std::size_t>(kind)];
}

nlohmann::json fill_json(double percent) { return percent == kNoQueue ? nlohmann::json() : nlohmann::json(percent); }

nlohmann::json queues_json(const ProcessLook& process) {
  constexpr std::array<const char*, 3> kNames{"event_queue", "mrq", "tcq"};
  nlohmann::json all = nlohmann::json::array();
  for (const QueueLook& queue : process.queues) {
    all.push_back({{"kind", kNames[static_cast<std::size_t>(queue.kind)]},
                   {"id", hex_text(queue.id)},
                   {"unread", queue.unread},
                   {"capacity", queue.capacity}});
  }
  return all;
}

nlohmann::json peers_json(const ProcessLook& process) {
  nlohmann::json all = nlohmann::json::array();
  for (const PeerPicture& peer : process.peers) {
    all.push_back({{"nid", peer.id.nid},
                   {"pid", peer.id.pid},
                   {"not_answered", peer.outstanding},
                   {"waiting_requests", peer.waiting_requests},
                   {"waiting_answers", peer.waiting_answers}});
  }
  return all;
}

}  // namespace

const Row* owner_of(std::uint32_t pid, const std::vector<Row>& all) {
  const auto found = std::ranges::find_if(
      all, [pid](const Row& row) { return std::ranges::find(row.process.pids, pid) != row.process.pids.end(); });
  return found != all.end() ? &*found : nullptr;
}

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
  find_waits(&rows);
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
  constexpr const char* kLine =
      "{:>5} {:>8} {:>6} {:>5} {:>4} {:>8} {:>8} {:>8} {:>8} {:>8} {:>3} {:>4} {:>7} {:<10}  {}{}{}";
  lines.push_back(fmt::format(kLine, "RANK", "PROCESS", "PID", "LANES", "CPU%", "SENT/s", "OUT B/s", "IN B/s",
                              "EVENTS/s", "SLEEPS/s", "EQ%", "MRQ%", "WAITING", "WAITS FOR", "PROGRAM", "", ""));
  for (const Row& row : rows) {
    const ProcessLook& process = row.process;
    const std::string state = state_words(process.task.state);
    lines.push_back(fmt::format(kLine, rank_text(process), process.os_pid, process.pids.front(), process.pids.size(),
                                fmt::format("{:.0f}", row.cpu_percent), in_short(row.sent), in_short(row.bytes_out),
                                in_short(row.bytes_in), in_short(row.events), in_short(row.sleeps),
                                fill_text(fullest(process, QueueLook::Kind::kEventQueue)),
                                fill_text(fullest(process, QueueLook::Kind::kMrq)), row.waiting, waits_text(row, rows),
                                process.task.name, state.empty() ? "" : "  ", state));
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
  if (process.sight != Sight::kWhole)
    lines.push_back(fmt::format("  its queues and peers are not seen{}", sight_text(process.sight)));
  for (const QueueLook& queue : process.queues) {
    lines.push_back(fmt::format("  {} {}: {} of {} unread, {:.0f} %", kind_name(queue.kind), hex_text(queue.id),
                                queue.unread, queue.capacity, queue.percent()));
  }
  for (const CounterRow& counter : counter_table()) {
    const std::uint64_t value = process.count(counter.counter);
    if (value != 0) lines.push_back(fmt::format("  {:<26} {:>14} {}", counter.label, value, counter.unit));
  }
  return lines;
}

std::vector<std::string> peers_of(const Row& row, const std::vector<Row>& all) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("peers of process {} ({}), rank {}", row.process.os_pid, row.process.task.name,
                              rank_text(row.process)));
  if (row.process.peers.empty()) lines.push_back("  none that is seen");
  for (const PeerPicture& peer : row.process.peers) {
    std::uint64_t there = 0;
    const Row* const owner = owner_of(peer.id.pid, all);
    for (const Waiting& waiting : owner != nullptr ? owner->process.waiting : std::vector<Waiting>{}) {
      const auto& pids = row.process.pids;
      if (std::ranges::find(pids, waiting.from_pid) != pids.end()) there += waiting.packets;
    }
    lines.push_back(
        fmt::format("  {:<10} {:>8} not answered {:>8} messages and {:>6} answers wait here {:>6} packets "
                    "wait there{}",
                    owner_text(peer.id.pid, all), peer.outstanding, peer.waiting_requests, peer.waiting_answers, there,
                    peer.state == PeerState::kConnected ? "" : "  NOT CONNECTED"));
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
    one["lanes"] = process.pids.size();
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
    one["waits_for_pids"] = row.waits_for;
    one["eq_percent"] = fill_json(fullest(process, QueueLook::Kind::kEventQueue));
    one["mrq_percent"] = fill_json(fullest(process, QueueLook::Kind::kMrq));
    one["queues"] = queues_json(process);
    one["peers"] = peers_json(process);
    for (const CounterRow& counter : counter_table()) one["counters"][counter.label] = process.count(counter.counter);
    all.push_back(std::move(one));
  }
  // A program may be called anything.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace portofu::tools
