#pragma once
// The rows of a machine: what was measured on it, and what is measured here.

#include <functional>
#include <string>

#include "benchmarks/machines/simulated.h"

namespace portofu::machines {

/// One number of a machine.
struct Row {
  std::string what;
  std::string unit;
  double least = 0;  ///< What was measured on the machine: one number, or from least to most.
  double most = 0;
  double allowed_percent = 0;
  double ours = 0;
  std::string made_with;  ///< "model": lib/sim alone, with calls of this program's own. "program": run by ptl_sim.
};

class Table {
 public:
  /// Prints the head.
  /// @param with_programs  programs are run, too
  Table(std::string machine, bool with_programs);
  /// By the arguments of the program: the only one that there may be is --programs.
  Table(std::string machine, int count, char** arguments);

  bool has_programs() const { return with_programs_; }

  /// Prints a row.
  void add(const Row& row);

  /// Prints a row, and then the same one by a program that ptl_sim runs, if that is wanted.
  /// @param measure  messages -> the number of the row
  void add(Row row, const Run& program, const std::function<double(const std::vector<Sent>&)>& measure);

  /// Prints a line that is no row.
  void note(const std::string& text);

  /// Prints the sums. @return the status of the program: 0 if every row is within what is allowed
  int finish() const;

 private:
  const std::string machine_;
  const bool with_programs_;
  int within_ = 0;
  int failed_ = 0;
};

}  // namespace portofu::machines
