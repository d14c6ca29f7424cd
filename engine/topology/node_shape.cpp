#include "engine/topology/node_shape.h"

#include <charconv>

namespace portofu {
namespace {

/// Places of a side inside a group of twelve nodes: axes A, B and C.
constexpr std::array<std::uint32_t, 3> kInGroup = {2, 3, 2};

/// Groups along X, Y and Z.
constexpr std::uint32_t kMostGroups = 256;

}  // namespace

std::optional<NodeShape> NodeShape::parse(std::string_view text) {
  NodeShape shape;
  std::size_t side = 0;
  const char* next = text.data();
  const char* const end = next + text.size();
  for (;; ++next) {
    if (side == shape.sides.size()) return std::nullopt;
    const auto [rest, error] = std::from_chars(next, end, shape.sides[side]);
    if (error != std::errc{} || shape.sides[side] == 0) return std::nullopt;
    if (shape.sides[side] > kMostGroups * kInGroup[side]) return std::nullopt;
    ++side;
    next = rest;
    if (next == end) return shape;
    if (*next != 'x') return std::nullopt;
  }
}

Coordinates NodeShape::coordinates(std::uint32_t number) const {
  Coordinates at{};
  for (std::size_t axis = 0; axis < sides.size(); ++axis) {
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
