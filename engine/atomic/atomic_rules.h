#pragma once
// What the atomic unit knows about its datatypes and operations, as two tables. Everything else about them is
// generated from these: legality in atomic_unit.cpp, kernels in atomic_kernels.cpp.

#include <array>
#include <cstdint>

#include "engine/atomic/atomic_unit.h"

namespace portofu {

/// Column of table 3-4. Values are bits, for sets.
enum class AtomicClass : std::uint8_t {
  kIntegral = 1u << 0,
  kFloating = 1u << 1,
  kComplex = 1u << 2,
};

/// A datatype.
struct AtomicTypeRule {
  std::uint8_t bytes;            ///< Size of one item.
  std::uint8_t alignment_bytes;  ///< Least alignment that is served: the size, or of a complex type one component.
  AtomicClass type_class;
};

/// Indexed by atomic_index of an AtomicType.
inline constexpr std::array<AtomicTypeRule, kAtomicTypeCount> kAtomicTypeRules = {{
    {1, 1, AtomicClass::kIntegral},    // kInt8
    {1, 1, AtomicClass::kIntegral},    // kUint8
    {2, 2, AtomicClass::kIntegral},    // kInt16
    {2, 2, AtomicClass::kIntegral},    // kUint16
    {4, 4, AtomicClass::kIntegral},    // kInt32
    {4, 4, AtomicClass::kIntegral},    // kUint32
    {8, 8, AtomicClass::kIntegral},    // kInt64
    {8, 8, AtomicClass::kIntegral},    // kUint64
    {4, 4, AtomicClass::kFloating},    // kFloat
    {8, 4, AtomicClass::kComplex},     // kFloatComplex
    {8, 8, AtomicClass::kFloating},    // kDouble
    {16, 8, AtomicClass::kComplex},    // kDoubleComplex
    {16, 16, AtomicClass::kFloating},  // kLongDouble
    {32, 16, AtomicClass::kComplex},   // kLongDoubleComplex
}};
static_assert(sizeof(long double) == 16, "the table and the wire format know this long double only");

/// An operation. Sets of classes are ORed AtomicClass bits, `uses` are bits 1 << AtomicUse.
struct AtomicOperationRule {
  std::uint8_t portals_classes;  ///< Table 3-4.
  std::uint8_t unit_classes;     ///< What the unit executes: table 3-4 or fi_atomic.
  std::uint8_t uses;             ///< Portals functions that take it; 0 for an operation that Portals has not.
};

namespace atomic_rules {

inline constexpr std::uint8_t kNone = 0;
inline constexpr std::uint8_t kIntegral = static_cast<std::uint8_t>(AtomicClass::kIntegral);
inline constexpr std::uint8_t kOrdered = kIntegral | static_cast<std::uint8_t>(AtomicClass::kFloating);
inline constexpr std::uint8_t kAll = kOrdered | static_cast<std::uint8_t>(AtomicClass::kComplex);

constexpr std::uint8_t use_bit(AtomicUse use) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(use)); }

inline constexpr std::uint8_t kComputes = use_bit(AtomicUse::kAtomic) | use_bit(AtomicUse::kFetchAtomic);
inline constexpr std::uint8_t kSwaps = use_bit(AtomicUse::kSwap);

}  // namespace atomic_rules

/// Indexed by atomic_index of an AtomicOperation.
inline constexpr std::array<AtomicOperationRule, kAtomicOperationCount> kAtomicOperationRules = {{
    {atomic_rules::kOrdered, atomic_rules::kOrdered, atomic_rules::kComputes},    // kMin
    {atomic_rules::kOrdered, atomic_rules::kOrdered, atomic_rules::kComputes},    // kMax
    {atomic_rules::kAll, atomic_rules::kAll, atomic_rules::kComputes},            // kSum
    {atomic_rules::kAll, atomic_rules::kAll, atomic_rules::kComputes},            // kDiff
    {atomic_rules::kAll, atomic_rules::kAll, atomic_rules::kComputes},            // kProd
    {atomic_rules::kIntegral, atomic_rules::kAll, atomic_rules::kComputes},       // kLor
    {atomic_rules::kIntegral, atomic_rules::kAll, atomic_rules::kComputes},       // kLand
    {atomic_rules::kIntegral, atomic_rules::kIntegral, atomic_rules::kComputes},  // kBor
    {atomic_rules::kIntegral, atomic_rules::kIntegral, atomic_rules::kComputes},  // kBand
    {atomic_rules::kIntegral, atomic_rules::kAll, atomic_rules::kComputes},       // kLxor
    {atomic_rules::kIntegral, atomic_rules::kIntegral, atomic_rules::kComputes},  // kBxor
    {atomic_rules::kAll, atomic_rules::kAll, atomic_rules::kSwaps},               // kSwap
    {atomic_rules::kAll, atomic_rules::kAll, atomic_rules::kSwaps},               // kCswap
    {atomic_rules::kAll, atomic_rules::kAll, atomic_rules::kSwaps},               // kCswapNe
    {atomic_rules::kOrdered, atomic_rules::kOrdered, atomic_rules::kSwaps},       // kCswapLe
    {atomic_rules::kOrdered, atomic_rules::kOrdered, atomic_rules::kSwaps},       // kCswapLt
    {atomic_rules::kOrdered, atomic_rules::kOrdered, atomic_rules::kSwaps},       // kCswapGe
    {atomic_rules::kOrdered, atomic_rules::kOrdered, atomic_rules::kSwaps},       // kCswapGt
    {atomic_rules::kIntegral, atomic_rules::kIntegral, atomic_rules::kSwaps},     // kMswap
    {atomic_rules::kNone, atomic_rules::kAll, atomic_rules::kNone},               // kAtomicRead
    {atomic_rules::kNone, atomic_rules::kAll, atomic_rules::kNone},               // kAtomicWrite
}};

/// Whether the unit executes the combination; both must be valid.
constexpr bool unit_has(AtomicOperation operation, AtomicType type) {
  const AtomicOperationRule& rule = kAtomicOperationRules[atomic_index(operation)];
  return (rule.unit_classes & static_cast<std::uint8_t>(kAtomicTypeRules[atomic_index(type)].type_class)) != 0;
}

}  // namespace portofu
