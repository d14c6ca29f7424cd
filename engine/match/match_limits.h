#pragma once
// Every limit of the match structures. Tests lower them to reach the paths behind them.

#include <cstdint>

namespace portofu {

/// Most classes that a match list indexes; a message costs at most one probe in each. Open MPI uses 4 at a time.
inline constexpr std::uint32_t kMaxMatchClasses = 16;

/// Most classes in which an unexpected list indexes its headers; each has its links in UnexpectedEntry.
inline constexpr std::uint32_t kMaxUnexpectedClasses = 8;

/// How one list uses its index. The defaults are measured (benchmarks/micro/match_bench.cpp).
struct MatchLimits {
  std::uint32_t walk_entries = 16;                           ///< Walking this many entries is cheaper than an index.
  std::uint32_t match_classes = kMaxMatchClasses;            ///< At most kMaxMatchClasses.
  std::uint32_t unexpected_classes = kMaxUnexpectedClasses;  ///< At most kMaxUnexpectedClasses.
  std::uint64_t slots_per_class = 1ull << 32;                ///< Largest hash table; beyond it as if memory were out.
};

}  // namespace portofu
