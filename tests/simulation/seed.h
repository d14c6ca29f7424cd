#pragma once
// Seeds of random tests: PORTOFU_TEST_SEED repeats one run.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace portofu::simulation {

/// PORTOFU_TEST_SEED, or a new one, which is printed.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("PORTOFU_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::cout << "PORTOFU_TEST_SEED=" << seed << std::endl;
  return seed;
}

/// PORTOFU_TEST_ROUNDS, or what a CI run has time for: more for a night's run.
inline int test_rounds(int usual) {
  const char* given = std::getenv("PORTOFU_TEST_ROUNDS");
  return given != nullptr ? std::atoi(given) : usual;
}

}  // namespace portofu::simulation
