// Runs a row: forks its processes, lets each run both patterns on one engine, and collects what they saw.
#pragma once

#include "row.h"

namespace compare {

struct Outcome {
  Facts portals;
  Facts utofu;
  std::string trouble;  ///< Empty if every process ended as the row says.
};

/// @param repetitions  how often both patterns are run, in turns
Outcome play(const Row& row, bool quick, int repetitions);

}  // namespace compare
