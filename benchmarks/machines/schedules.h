#pragma once
// Who tells whom in a collective operation, by algorithm: circuits of barrier gates, and sums whose stages fire the
// next.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace portofu::machines {

enum class Algorithm : std::uint8_t {
  kRecursiveDoubling,  ///< log2 n stages; everybody is active in each.
  kBinomialTree,       ///< Up to rank 0 and down again; a parent has up to log2 n children.
  kBinaryTree,         ///< The same; a parent has up to two.
  kRing,               ///< From rank to rank, once to collect and once to tell.
};

struct NamedAlgorithm {
  Algorithm algorithm;
  const char* name;  ///< In tables and plots.
};

inline constexpr std::array kAlgorithms{NamedAlgorithm{Algorithm::kRecursiveDoubling, "recursive doubling"},
                                        NamedAlgorithm{Algorithm::kBinomialTree, "binomial tree"},
                                        NamedAlgorithm{Algorithm::kBinaryTree, "binary tree"},
                                        NamedAlgorithm{Algorithm::kRing, "ring"}};

/// A gate or a number of a rank.
struct Place {
  std::uint32_t rank;
  std::uint32_t index;
};

/// Where signals and packets of a gate come from and go to; signals are of gates of the same rank.
struct GatePlan {
  std::optional<std::uint32_t> local_source;
  std::optional<Place> remote_source;
  std::optional<std::uint32_t> local_target;
  std::optional<Place> remote_target;
};

/// The gates of each rank. Gate 0 starts and ends.
using Circuit = std::vector<std::vector<GatePlan>>;

/// @param log2_ranks  at least 1
Circuit plan_barrier(Algorithm algorithm, std::uint32_t log2_ranks);

/// A number of a rank. It is complete when so many have come, and then goes on.
struct NumberPlan {
  std::uint32_t awaited = 0;   ///< 0: it is the rank's own, or nothing.
  bool is_sum = true;          ///< What comes is added; false: it takes its place.
  std::vector<Place> targets;  ///< In this order.
};

/// The numbers of a rank. Number 0 is its own, and goes on when the program calls.
struct RankPlan {
  std::vector<NumberPlan> numbers;
  std::uint32_t result = 0;
};

/// @param log2_ranks  at least 1
std::vector<RankPlan> plan_sum(Algorithm algorithm, std::uint32_t log2_ranks);

}  // namespace portofu::machines
