#include "page.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace compare {
namespace {

constexpr const char* kNothing = "—";

std::string digits(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, value < 10 ? "%.2f" : value < 1000 ? "%.1f" : "%.0f", value);
  return buffer;
}

std::vector<double> numbers_of(const Facts& facts, const std::string& what) {
  std::vector<double> numbers;
  for (const Fact& fact : facts) {
    if (fact.what == what && fact.measured) numbers.push_back(fact.number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// The value of a fact; of a measured one the median, and the least and the most.
std::string cell(const Facts& facts, const std::string& what) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const Fact& fact) { return fact.what == what; });
  if (found == facts.end()) return kNothing;
  if (!found->measured) return found->value;
  const std::vector<double> numbers = numbers_of(facts, what);
  const std::string median = digits(numbers[numbers.size() / 2]) + " " + found->value;
  if (numbers.size() == 1) return median;
  return median + " (" + digits(numbers.front()) + " to " + digits(numbers.back()) + ")";
}

double median_of(const Facts& facts, const std::string& what) {
  const std::vector<double> numbers = numbers_of(facts, what);
  return numbers.empty() ? 0 : numbers[numbers.size() / 2];
}

/// The median of uTofu over that of Portals.
std::string ratio_cell(const Outcome& outcome, const std::string& what) {
  const double portals = median_of(outcome.portals, what), utofu = median_of(outcome.utofu, what);
  return portals == 0 || utofu == 0 ? kNothing : digits(utofu / portals);
}

bool holds(const TimePresumption& presumption, const Outcome& outcome) {
  const double portals = median_of(outcome.portals, presumption.what),
               utofu = median_of(outcome.utofu, presumption.what);
  if (portals == 0 || utofu == 0) return false;
  if (presumption.than.empty()) return utofu <= portals * presumption.times && portals <= utofu * presumption.times;
  return portals >= presumption.times * median_of(outcome.portals, presumption.than) &&
         utofu >= presumption.times * median_of(outcome.utofu, presumption.than);
}

/// Every line of the table once, in the order in which the columns name them.
std::vector<std::string> lines_of(const Outcome& outcome) {
  std::vector<std::string> lines;
  for (const Facts* facts : {&outcome.portals, &outcome.utofu}) {
    for (const Fact& fact : *facts) {
      if (std::find(lines.begin(), lines.end(), fact.what) == lines.end()) lines.push_back(fact.what);
    }
  }
  return lines;
}

std::string contradiction(const Row& row, const std::string& what, const char* presumed, const std::string& seen) {
  if (presumed == nullptr || seen == presumed) return "";
  return "row \"" + row.title + "\", \"" + what + "\": its sentence presumes \"" + presumed + "\", seen was \"" + seen +
         "\"\n";
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

std::string contradictions(const Row& row, const Outcome& outcome) {
  std::string all;
  if (!outcome.trouble.empty()) all += "row \"" + row.title + "\": " + outcome.trouble + "\n";
  for (const Presumption& presumption : row.presumptions) {
    const std::string& what = presumption.what;
    all += contradiction(row, what + " (Portals)", presumption.portals, cell(outcome.portals, what));
    all += contradiction(row, what + " (uTofu)", presumption.utofu, cell(outcome.utofu, what));
  }
  for (const TimePresumption& time : row.times) {
    const std::string than = time.than.empty() ? "between the APIs" : "over \"" + time.than + "\"";
    if (!holds(time, outcome))
      all +=
          "row \"" + row.title + "\", \"" + time.what + "\": not the factor " + digits(time.times) + " " + than + "\n";
  }
  return all;
}

std::string page_head(int repetitions) {
  std::string page = "# Portals and uTofu side by side\n\n";
  page +=
      "This page is written by `compare_apis --markdown FILE`; do not edit it. Each pattern below is written once "
      "for\n";
  page +=
      "each API, and was run by the same processes, in which both APIs share one engine. The cells are what these\n";
  page +=
      "processes observed in that run: events, notices, return codes, and what the CPU sees in memory that all of\n";
  page += "them map. The sentence under a table was written by hand, and the program ends with an error if a run\n";
  page += "contradicts what it takes for granted. " + std::string(kNothing) +
          ": the pattern of that API has no such thing.\n\n";
#ifdef NDEBUG
  const char* build = "release build";
#else
  const char* build = "debug build, so times mean nothing";
#endif
  page += "Machine: " + processor_model() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores, " + build +
          ". Times are medians of " + std::to_string(repetitions) +
          " repetitions, in which the\nAPIs take turns; the least and the most stand in brackets.\n";
  return page;
}

std::string theme_head(const Theme& theme) { return "\n## " + theme.title + "\n"; }

std::string section(const Row& row, const Outcome& outcome) {
  const bool together = row.utofu == nullptr;
  const std::vector<std::string> lines = lines_of(outcome);
  const bool ratios =
      std::any_of(lines.begin(), lines.end(), [&](auto& what) { return ratio_cell(outcome, what) != kNothing; });
  std::string text = "\n### " + row.title + "\n\n" + row.pattern + "\n\n";
  text += together ? "| observed | both APIs |\n|---|---|\n"
                   : std::string("| observed | Portals | uTofu |") + (ratios ? " uTofu / Portals |" : "") +
                         "\n|---|---|---|" + (ratios ? "---|" : "") + "\n";
  for (const std::string& what : lines) {
    text += "| " + what + " | " + cell(outcome.portals, what) + " |";
    if (!together) text += " " + cell(outcome.utofu, what) + " |";
    if (ratios) text += " " + ratio_cell(outcome, what) + " |";
    text += "\n";
  }
  return text + "\n**For a port:** " + row.meaning + "\n";
}

}  // namespace compare
