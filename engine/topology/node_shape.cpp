#include "engine/topology/node_shape.h"

#include <charconv>

namespace portofu {
namespace {

/// Places of a side inside a group of twelve nodes: axes A, B and C.
constexpr std::array<std::uint32_t, 3> kInGroup = {2, 3, 2};

/// Groups along X, Y and Z.
constexpr std::uint32_t kMostGroups = 256;

}  // namespace

static_assert(NodeShape::kMostSides[0] == kMostGroups * kInGroup[0]);
static_assert(NodeShape::kMostSides[1] == kMostGroups * kInGroup[1]);
static_assert(NodeShape::kMostSides[2] == kMostGroups * kInGroup[2]);

std::string NodeShape::most_sides_text() {
  const auto& [x, y, z] = kMostSides;
  return std::to_string(x) + ", " + std::to_string(y) + " and " + std::to_string(z);
}

std::optional<NodeShape> NodeShape::parse(std::string_view text) {
  NodeShape shape;
  std::size_t side = 0;
  const char* next = text.data();
  const char* const end = next + text.size();
  for (;; ++next) {
    if (side == shape.sides.size()) return std::nullopt;
    const auto [rest, error] = std::from_chars(next, end, shape.sides[side]);
    if (error != std::errc{} || shape.sides[side] == 0) return std::nullopt;
    ++side;
    next = rest;
    if (next == end) break;
    if (*next != 'x') return std::nullopt;
  }
  shape.is_torus = side == shape.sides.size();
  if (side > kInGroup.size() && !shape.is_torus) return std::nullopt;
  for (std::size_t axis = 0; axis < kInGroup.size(); ++axis) {
    const std::uint32_t most = shape.is_torus ? kMostGroups : kMostSides[axis];
    if (shape.sides[axis] > most || shape.sides[axis + 3] > kInGroup[axis]) return std::nullopt;
  }
  return shape;
}

Coordinates NodeShape::coordinates(std::uint32_t number) const {
  Coordinates at{};
  if (is_torus) {
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      at[axis] = static_cast<std::uint8_t>(number % sides[axis]);
      number /= sides[axis];
    }
    return at;
  }
  for (std::size_t axis = 0; axis < kInGroup.size(); ++axis) {
    const std::uint32_t along = number % sides[axis];
    const std::uint32_t group = along / kInGroup[axis];
    const std::uint32_t inside = along % kInGroup[axis];
    at[axis] = static_cast<std::uint8_t>(group);
    at[axis + 3] = static_cast<std::uint8_t>(group % 2 == 0 ? inside : kInGroup[axis] - 1 - inside);
    number /= sides[axis];
  }
  return at;
}

}  // namespace portofu
