// What a pattern gets: its process with both APIs open on one engine, and the memory that both were given.
#pragma once

#include <atomic>

#include "player.h"
#include "portals_side.h"
#include "row.h"
#include "tofu_side.h"

namespace compare {

struct World {
  explicit World(Player& player) : self(player), portals(player), tofu(player) {}

  int rank() const { return self.rank(); }

  /// A word of anybody's memory, seen by the CPU of this process: the truth, without asking an API.
  std::uint64_t look(int rank, std::size_t offset) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(self.memory(rank) + offset)).load();
  }
  void write(std::size_t offset, std::uint64_t value) {
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(self.memory(rank()) + offset)).store(value);
  }

  /// Every process calls it: memory is zero and all queues are empty before the next pattern.
  void clear();

  Player& self;
  PortalsSide portals;
  TofuSide tofu;
};

inline std::string yes_or_no(bool value) { return value ? "yes" : "no"; }
inline std::string of(std::uint64_t count, std::uint64_t all) {
  return std::to_string(count) + " of " + std::to_string(all);
}

}  // namespace compare
