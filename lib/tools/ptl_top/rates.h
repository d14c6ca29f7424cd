#pragma once
// What has happened between two looks, as rows for people and programs. Nothing here knows a screen.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/ptl_top/look.h"

namespace portofu::tools {

/// One process. Rates are per second of the time between the looks; 0 for a process that the first look did not see.
struct Row {
  ProcessLook process;
  double sent = 0;      ///< Puts, gets and atomics.
  double answered = 0;  ///< Acknowledgements and replies.
  double packets_in = 0;
  double bytes_out = 0;
  double bytes_in = 0;
  double events = 0;
  double sleeps = 0;
  double cpu_percent = 0;                ///< Of one core.
  std::uint64_t waiting = 0;             ///< Packets that others have sent to it and it has not taken.
  std::vector<std::uint32_t> waits_for;  ///< PIDs that owe it an answer or have to take something of it, as now.
};

/// By which the rows are sorted.
enum class Order : std::uint8_t { kRank, kSent, kWaiting, kCpu };
const char* order_name(Order order);
/// The next one, round and round.
Order order_after(Order order);

/// @param job_key  0: all jobs
std::vector<Row> rows_between(const Look& before, const Look& now, std::uint32_t job_key, Order order);

/// A table with a line for each row, and a line of headings before them.
std::vector<std::string> table_of(const std::vector<Row>& rows);

/// All of one process: who waits for it, its queues, and its counters.
std::vector<std::string> details_of(const Row& row, const std::vector<Row>& all);

/// What it has to do with each of its peers.
std::vector<std::string> peers_of(const Row& row, const std::vector<Row>& all);

/// The process that has a PID. @return nullptr if there is none among them
const Row* owner_of(std::uint32_t pid, const std::vector<Row>& all);

/// The rows as JSON, an object per process.
std::string json_of(const std::vector<Row>& rows);

/// "1.25 M": three or four digits, and a letter for thousands, millions ...
std::string in_short(double value);

}  // namespace portofu::tools
