#pragma once
// How uTofu names a place: node coordinates, TNI, control queue and component, or barrier gate, in one 64-bit number.
// Every process computes the same number without asking.
//
//   63..60 what it names   59..36 X, Y, Z   35 A  34..33 B  32 C   31 A  30..29 B  28 C of the default path
//   27..20 TNI             19..8 CQ or BG   7..0 component id (0 for a gate)
//
// The lower 28 bits are the queue number: the part that the owner itself needs.

#include <array>
#include <cstdint>

namespace portofu {

/// X, Y, Z, A, B, C of a node. @spec uTofu guide, 2.4
using Coordinates = std::array<std::uint8_t, 6>;

/// A, B, C of a path.
using PathCoordinates = std::array<std::uint8_t, 3>;

/// What a number names; the topmost bits. All ones is never an id (UTOFU_VBG_ID_NULL).
enum class TofuIdKind : std::uint8_t { kVcq = 5, kVbg = 11 };

inline constexpr std::uint32_t kMaxTniCount = 256;

/// A node has 2 x 3 x 2 places in its group.
constexpr bool is_path(const PathCoordinates& path) { return path[0] < 2 && path[1] < 3 && path[2] < 2; }
constexpr bool is_coordinates(const Coordinates& at) { return is_path({at[3], at[4], at[5]}); }

constexpr std::uint32_t pack_path(const PathCoordinates& path) {
  return std::uint32_t{path[0]} << 3 | std::uint32_t{path[1]} << 1 | path[2];
}
constexpr PathCoordinates unpack_path(std::uint32_t packed) {
  return {static_cast<std::uint8_t>(packed >> 3 & 1), static_cast<std::uint8_t>(packed >> 1 & 3),
          static_cast<std::uint8_t>(packed & 1)};
}

/// Part of an id that names a queue or gate inside its node.
constexpr std::uint32_t make_queue_number(std::uint32_t tni, std::uint32_t queue, std::uint32_t component) {
  return tni << 20 | queue << 8 | component;
}
constexpr std::uint32_t queue_number(std::uint64_t id) { return static_cast<std::uint32_t>(id) & 0x0fffffff; }
constexpr std::uint32_t tni_of(std::uint64_t id) { return static_cast<std::uint32_t>(id) >> 20 & 0xff; }
constexpr std::uint32_t queue_of(std::uint64_t id) { return static_cast<std::uint32_t>(id) >> 8 & 0xfff; }
constexpr std::uint32_t component_of(std::uint64_t id) { return static_cast<std::uint32_t>(id) & 0xff; }

/// The id with the node's own A, B, C as its path.
constexpr std::uint64_t make_tofu_id(TofuIdKind kind, const Coordinates& at, std::uint32_t number) {
  const std::uint64_t group = pack_path({at[3], at[4], at[5]});
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << 60 | std::uint64_t{at[0]} << 52 |
         std::uint64_t{at[1]} << 44 | std::uint64_t{at[2]} << 36 | group << 32 | group << 28 | number;
}
constexpr Coordinates coordinates_of(std::uint64_t id) {
  const PathCoordinates group = unpack_path(static_cast<std::uint32_t>(id >> 32) & 15);
  return {static_cast<std::uint8_t>(id >> 52),
          static_cast<std::uint8_t>(id >> 44),
          static_cast<std::uint8_t>(id >> 36),
          group[0],
          group[1],
          group[2]};
}
/// Whether coordinates_of(id) is `at`.
constexpr bool is_of_node(std::uint64_t id, const Coordinates& at) {
  return ((id ^ make_tofu_id(TofuIdKind::kVcq, at, 0)) >> 32 & 0x0fffffff) == 0;
}
constexpr bool is_kind(std::uint64_t id, TofuIdKind kind) { return id >> 60 == static_cast<std::uint8_t>(kind); }

constexpr std::uint64_t with_path(std::uint64_t id, std::uint32_t packed) {
  return (id & ~(std::uint64_t{15} << 28)) | std::uint64_t{packed} << 28;
}
/// The id with the path that utofu_query_vcq_id gives it.
constexpr std::uint64_t with_own_path(std::uint64_t id) {
  return with_path(id, static_cast<std::uint32_t>(id >> 32) & 15);
}

/// What a control queue or gate is claimed and found under: its id without path and component.
constexpr std::uint64_t claim_key(std::uint64_t id) { return with_path(id, 0) & ~std::uint64_t{0xff}; }

/// Cache line of the CPU whose programs poll memory. @spec uTofu guide, table 6.4
inline constexpr std::uint64_t kTofuLineBytes = 256;

/// Of the last `bytes` bytes in front of the address `end`, those in the last line: a put writes them last (6.1.3.1).
/// @param bytes  at least 1
constexpr std::uint64_t tofu_tail_bytes(std::uint64_t end, std::uint64_t bytes) {
  const std::uint64_t tail = (end - 1) % kTofuLineBytes + 1;
  return tail < bytes ? tail : bytes;
}

}  // namespace portofu
