#pragma once
// Random criteria and keys for the tests of engine/match, and the naive lists that the real ones are compared with.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "engine/match/match_criteria.h"
#include "engine/match/match_limits.h"

namespace portofu::match_model {

/// Seed of a random test: PORTOFU_TEST_SEED, or a new one. Printed, so that a failure can be repeated.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("PORTOFU_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::cout << "PORTOFU_TEST_SEED=" << seed << "\n";
  return seed;
}

/// One way to choose what entries ask for and what messages show. Few values, so that much matches.
struct Universe {
  std::string name;                ///< For messages.
  std::uint32_t mask_count;        ///< Different ignore masks in use.
  std::uint32_t value_count;       ///< Values of each of the three fields of the match bits.
  std::uint32_t wildcard_percent;  ///< Chance of any_nid, and of any_pid.
  MatchLimits limits;              ///< Of the list under test.
};

/// The universes of the random tests: short of classes, short of slots, without index, with everything.
inline std::vector<Universe> universes() {
  return {
      {"exact", 1, 12, 0, {}},
      {"identical", 1, 1, 100, {}},
      {"mpi", 4, 6, 20, {}},
      {"many_masks", 40, 4, 30, {}},
      {"index_at_once", 4, 4, 10, {.walk_entries = 0}},
      {"index_at_once_many_masks", 30, 3, 30, {.walk_entries = 0}},
      {"two_classes", 5, 4, 20, {.walk_entries = 2, .match_classes = 2, .unexpected_classes = 2}},
      {"no_classes", 3, 4, 20, {.walk_entries = 3, .match_classes = 0, .unexpected_classes = 0}},
      {"small_tables", 3, 8, 10, {.walk_entries = 1, .slots_per_class = 60}},
      {"no_memory", 3, 8, 10, {.walk_entries = 1, .slots_per_class = 0}},
  };
}

/// Draws from a universe.
class Dice {
 public:
  Dice(std::uint64_t seed, const Universe& universe) : random_(seed), universe_(universe) {
    for (std::uint32_t i = 0; i < universe.mask_count; ++i) masks_.push_back(random_ignore_bits());
    masks_[0] = 0;
  }

  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool percent(std::uint32_t chance) { return below(100) < chance; }

  MatchKey key() { return {field() << 60 | field() << 24 | field(), {below(3), below(2)}}; }

  MatchCriteria criteria() {
    const MatchKey wanted = key();
    return {wanted.match_bits, masks_[below(masks_.size())], wanted.source, percent(universe_.wildcard_percent),
            percent(universe_.wildcard_percent)};
  }

 private:
  std::uint64_t field() { return below(universe_.value_count); }

  /// Some of the bits that field() uses, and some that it does not.
  std::uint64_t random_ignore_bits() {
    return (random_() & 0xf000000f0000000fu) | (random_() % 4 == 0 ? 0x0000000f00000000u : 0);
  }

  std::mt19937_64 random_;
  Universe universe_;
  std::vector<std::uint64_t> masks_;
};

/// A list as the spec tells it: a vector in order, walked from the front.
template <class Entry>
class NaiveList {
 public:
  void append(Entry& entry) { entries_.push_back(&entry); }
  void remove(Entry& entry) { std::erase(entries_, &entry); }

  /// First entry at or behind `position` for which `wanted` is true, or null.
  template <class Wanted>
  Entry* find(Wanted&& wanted, std::size_t position = 0) const {
    const auto found = std::find_if(entries_.begin() + static_cast<std::ptrdiff_t>(position), entries_.end(),
                                    [&](Entry* entry) { return wanted(*entry); });
    return found != entries_.end() ? *found : nullptr;
  }
  std::size_t position_of(const Entry& entry) const {
    return static_cast<std::size_t>(std::find(entries_.begin(), entries_.end(), &entry) - entries_.begin());
  }

  const std::vector<Entry*>& entries() const { return entries_; }

 private:
  std::vector<Entry*> entries_;
};

/// What the list under test says when it is walked from first() by next().
template <class List>
auto walked(const List& list) {
  std::vector<decltype(list.first())> entries;
  for (auto* entry = list.first(); entry != nullptr; entry = List::next(*entry)) entries.push_back(entry);
  return entries;
}

}  // namespace portofu::match_model
