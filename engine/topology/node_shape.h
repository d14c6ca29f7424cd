#pragma once
// Nodes of a job as a scheduler of Fugaku arranges them: a line, a rectangle or a box of nodes, numbered along its
// first side, then along the second, then along the third. Each side is laid into two axes of the torus, the first into
// X and A, the second into Y and B, the third into Z and C, as a snake, so that neighbours of the box are neighbours
// there:
//
//   first side   0    1    2    3    4    5
//   X, A        0,0  0,1  1,1  1,0  2,0  2,1
//
// Or six lengths of the torus itself, X, Y, Z, A, B and C: numbers run along X first, and C last.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/topology/tofu_id.h"

namespace portofu {

struct NodeShape {
  std::array<std::uint32_t, 6> sides{1, 1, 1, 1, 1, 1};  ///< The last three of a torus only.
  bool is_torus = false;                                 ///< Six lengths: a side is an axis.

  /// Of a box: the torus has 256 groups of nodes in each of X, Y and Z, of two, three and two nodes.
  static constexpr std::array<std::uint32_t, 3> kMostSides{512, 768, 512};
  static std::string most_sides_text();  ///< "512, 768 and 512".

  /// "12", "4x3", "2x3x2" or "2x3x2x2x3x2". @return nothing if the text is something else, or the torus has no room for
  /// a side
  static std::optional<NodeShape> parse(std::string_view text);

  std::uint32_t count() const {
    std::uint32_t product = 1;
    for (const std::uint32_t side : sides) product *= side;
    return product;
  }

  /// @param number  less than count()
  Coordinates coordinates(std::uint32_t number) const;
};

}  // namespace portofu
