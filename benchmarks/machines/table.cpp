#include "benchmarks/machines/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

namespace portofu::machines {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.1f" : value >= 10 ? "%.2f" : "%.3f", value);
  return text;
}

/// How far it is outside of what was measured; negative below it, 0 inside.
double distance_percent(const Row& row) {
  if (row.ours > row.most) return (row.ours / row.most - 1) * 100;
  if (row.ours < row.least) return (row.ours / row.least - 1) * 100;
  return 0;
}

}  // namespace

Table::Table(std::string machine, int count, char** arguments)
    : Table(std::move(machine), count > 1 && std::strcmp(arguments[1], "--programs") == 0) {}

Table::Table(std::string machine, bool with_programs) : machine_(std::move(machine)), with_programs_(with_programs) {
  std::printf("%-7s  %-52s %-16s %8s %10s  %-8s %s\n", "machine", "what", "value", "allowed", "ours", "made by",
              "within?");
}

void Table::add(const Row& row) {
  const double distance = distance_percent(row);
  const double size = std::max(distance, -distance);
  // What was not measured is no number, and within nothing.
  const bool is_number = std::isnormal(row.ours) && std::isnormal(row.least) && std::isnormal(row.most);
  const bool is_within = is_number && size <= row.allowed_percent;
  ++(is_within ? within_ : failed_);
  const std::string value = row.least == row.most ? number(row.least) : number(row.least) + "-" + number(row.most);
  char verdict[64];
  std::snprintf(verdict, sizeof verdict, is_within ? "yes, %+.1f %%" : "NO, %+.1f %%", distance);
  std::printf("%-7s  %-52s %-16s %6.0f %% %10s  %-8s %s\n", machine_.c_str(), row.what.c_str(),
              (value + " " + row.unit).c_str(), row.allowed_percent, number(row.ours).c_str(), row.made_with.c_str(),
              verdict);
}

void Table::add(Row row, const Run& program, const std::function<double(const std::vector<Sent>&)>& measure) {
  add(row);
  if (!with_programs_) return;
  row.ours = measure(run_program(program));
  row.made_with = "program";
  add(row);
}

void Table::note(const std::string& text) { std::printf("%-7s  %s\n", machine_.c_str(), text.c_str()); }

int Table::finish() const {
  std::printf("%s: %d rows within, %d failed\n", machine_.c_str(), within_, failed_);
  return failed_ == 0 && within_ > 0 ? 0 : 1;
}

}  // namespace portofu::machines
