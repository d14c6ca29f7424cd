#pragma once
// The rows of a machine: what was measured on it, and what is measured here.

#include <string>

namespace portofu::machines {

/// One number of a machine.
struct Row {
  std::string what;
  std::string unit;
  double least = 0;  ///< What was measured on the machine: one number, or from least to most.
  double most = 0;
  double allowed_percent = 0;
  double ours = 0;
  std::string made_with;  ///< "model": lib/sim alone, with calls of this program's own.
  /// What the model is known to miss, in percent beyond the numbers of the machine; 0: nothing.
  double known_percent = 0;
};

class Table {
 public:
  /// Prints the head.
  explicit Table(std::string machine);

  /// Prints a row.
  void add(const Row& row);

  /// Prints the sums. @return the status of the program: 0 if every row is within what is allowed, or misses it as
  /// known
  int finish() const;

 private:
  std::string machine_;
  int within_ = 0;
  int known_ = 0;
  int failed_ = 0;
};

}  // namespace portofu::machines
