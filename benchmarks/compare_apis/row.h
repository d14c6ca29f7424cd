// A row of the comparison: one pattern of communication, written once for each API, and what its processes observed.
#pragma once

#include <string>
#include <vector>

namespace compare {

struct World;

/// One thing that a process has observed.
struct Fact {
  std::string what;       ///< Words that both APIs share; a line of the table.
  std::string value;      ///< What was seen; for a measured fact its unit.
  bool measured = false;  ///< A number that differs from run to run, and is repeated.
  double number = 0;      ///< Of a measured fact.
};
using Facts = std::vector<Fact>;

inline Fact measured(std::string what, double number, std::string unit) {
  return {std::move(what), std::move(unit), true, number};
}

/// What the sentence of a row takes for granted. If the run shows something else, the sentence must not be printed.
struct Presumption {
  std::string what;               ///< As in Fact.
  const char* portals = nullptr;  ///< The value in the column of Portals; nullptr for any, or none.
  const char* utofu = nullptr;    ///< The same for uTofu.
};

/// Runs in every process of the row; each returns what it saw itself, the table shows them in the order of ranks.
using Pattern = Facts (*)(World&);

/// What the sentence of a timed row takes for granted: in both columns the median of `what` is at least `times` that of
/// `than`; with an empty `than`, the APIs differ by a factor of `times` at most.
struct TimePresumption {
  std::string what;
  std::string than;
  double times;
};

struct Row {
  std::string title;
  std::string pattern;  ///< What the processes do, for the reader.
  Pattern portals = nullptr;
  Pattern utofu = nullptr;  ///< nullptr: `portals` uses both APIs together, and there is one column.
  std::vector<Presumption> presumptions;
  std::string meaning;  ///< For somebody who ports code; one sentence.
  int processes = 2;
  const char* setting = nullptr;  ///< NAME=VALUE in the environment of the processes.
  int mortal_rank = -1;           ///< The process whose end, by its own hand, `utofu` is about.
  bool timed = false;             ///< Repeated in turns, each process on a core of its own; not in quick runs.
  std::vector<TimePresumption> times = {};
};

struct Theme {
  std::string title;
  std::vector<Row> rows;
};

Theme completion_theme();
Theme order_theme();
Theme overload_theme();
Theme error_theme();
Theme atomic_theme();
Theme relay_theme();
Theme barrier_theme();
Theme traffic_theme();
Theme time_theme();

}  // namespace compare
