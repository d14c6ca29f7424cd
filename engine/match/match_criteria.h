#pragma once
// What a list entry asks of a message, what a message shows, and the test between the two. Everything in engine/match
// is built on these; `target/` fills them from a packet header or from an ME.

#include <bit>
#include <cstdint>

#include "engine/topology/process_id.h"

namespace portofu {

/// What a list entry, or a search of the unexpected list, asks of a message. @spec Portals 4.3, 3.12.1
struct MatchCriteria {
  std::uint64_t match_bits = 0;   ///< Wanted bits; those under `ignore_bits` mean nothing.
  std::uint64_t ignore_bits = 0;  ///< "Do not care" bits.
  ProcessId match_id{};           ///< Wanted initiator; on a logical interface the rank stands in `nid` and `pid` is 0.
  bool any_nid = false;           ///< PTL_NID_ANY or PTL_RANK_ANY: `match_id.nid` means nothing.
  bool any_pid = false;           ///< PTL_PID_ANY, and always on a logical interface: `match_id.pid` means nothing.
};

/// What an LE asks: any message of anybody will do.
inline constexpr MatchCriteria kAnyMessage{.ignore_bits = ~std::uint64_t{0}, .any_nid = true, .any_pid = true};

/// What a message shows to the lists.
struct MatchKey {
  std::uint64_t match_bits = 0;  ///< As the initiator gave them; 0 on a non-matching interface.
  ProcessId source;              ///< The initiator; on a logical interface the rank stands in `nid` and `pid` is 0.
};

/// The matching function of the spec, with the test of the initiator.
constexpr bool matches(const MatchCriteria& criteria, const MatchKey& key) {
  return ((key.match_bits ^ criteria.match_bits) & ~criteria.ignore_bits) == 0 &&
         (criteria.any_nid || key.source.nid == criteria.match_id.nid) &&
         (criteria.any_pid || key.source.pid == criteria.match_id.pid);
}

/// The compilers' own 128-bit integer, which the standard does not know.
__extension__ typedef unsigned __int128 Uint128;

/// A key after a mask: two messages, or an entry and a message, are the same to a mask when these are equal.
struct MaskedKey {
  std::uint64_t bits = 0;  ///< Match bits under the mask.
  std::uint64_t id = 0;    ///< NID and PID as one number, under the mask.

  friend constexpr bool operator==(const MaskedKey&, const MaskedKey&) = default;

  /// All 64 bits are usable. Fields of MPI match bits, strides and swapped fields do not collide: the id is spread over
  /// the whole word before it is added, and the folded product lets every input bit reach every output bit.
  constexpr std::uint64_t hash() const {
    const std::uint64_t word = bits + id * 0x9fb21c651e98df25u;
    const Uint128 product = static_cast<Uint128>(word ^ 0x2d358dccaa6c78a5u) * 0x8bb84b93962eacc9u;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
};

/// The part of criteria that says which bits count. Entries and searches with equal masks form one class: inside a
/// class matching is equality of MaskedKeys, so a hash table answers it.
struct MatchMask {
  std::uint64_t care_bits = 0;  ///< The complement of `ignore_bits`.
  std::uint64_t care_id = 0;    ///< Ones where NID and PID count.

  friend constexpr bool operator==(const MatchMask&, const MatchMask&) = default;

  static constexpr MatchMask of(const MatchCriteria& criteria) {
    const ProcessId care{criteria.any_nid ? 0 : ~0u, criteria.any_pid ? 0 : ~0u};
    return {~criteria.ignore_bits, std::bit_cast<std::uint64_t>(care)};
  }
  constexpr MaskedKey apply(const MatchKey& key) const {
    return {key.match_bits & care_bits, std::bit_cast<std::uint64_t>(key.source) & care_id};
  }
  constexpr MaskedKey apply(const MatchCriteria& criteria) const {
    return {criteria.match_bits & care_bits, std::bit_cast<std::uint64_t>(criteria.match_id) & care_id};
  }
};

}  // namespace portofu
