#pragma once
// Seeds of random tests: PORTOFU_TEST_SEED repeats one run.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace portofu::simulation {

/// PORTOFU_TEST_SEED, or another one, which is printed.
inline std::uint64_t test_seed(std::uint64_t otherwise = std::random_device{}()) {
  const char* given = std::getenv("PORTOFU_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : otherwise;
  std::cout << "PORTOFU_TEST_SEED=" << seed << std::endl;
  return seed;
}

/// PORTOFU_TEST_ROUNDS, or what a CI run has time for: more for a night's run.
inline int test_rounds(int usual) {
  const char* given = std::getenv("PORTOFU_TEST_ROUNDS");
  return given != nullptr ? std::atoi(given) : usual;
}

/// Runs rounds with consecutive seeds until one complains; the complaint says how to repeat it.
/// @param round_count  in CI; a tenth of it under sanitizers, where a round takes ten times as long
/// @param run          std::string(seed): what went wrong, or nothing
/// @param first        the first seed
template <class Run>
void run_seeds(int round_count, Run&& run, std::uint64_t first = test_seed()) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  round_count /= 10;
#endif
  for (int i = 0; i < test_rounds(round_count); ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    const std::string complaint = run(seed);
    ASSERT_EQ(complaint, "") << "repeat with PORTOFU_TEST_SEED=" << seed << " PORTOFU_TEST_ROUNDS=1";
  }
}

}  // namespace portofu::simulation
