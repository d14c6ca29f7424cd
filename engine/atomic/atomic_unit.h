#pragma once
// The one place that reads, computes and writes user memory atomically, for both APIs: the union of Portals table 3-4,
// uTofu table 2.2 and fi_atomic(3). `deliver` comes before it, `complete` after it.
//
// What is atomic against what. An item is one value of the datatype; items of one request are independent.
//   - Up to 8 bytes, and 16 bytes at a 16-byte boundary: one CPU atomic, which may cover more items of the request.
//     Atomic against every engine on the node and against the application's own atomics on the same memory
//     (PTL_COHERENT_ATOMICS; uTofu guide 2.2.5).
//   - SPEC: long double complex (32 bytes), and a complex item that is aligned only as C aligns it (to one component,
//     half of the item): no CPU has an atomic for these. They are handled under one lock of this process, so they are
//     atomic against every engine of this process, and each half is read and written whole. Against another
//     process or the application's own code only the halves are safe. 3.15.4 asks for atomicity within one interface
//     only, and demands no support below natural alignment. To keep that, such a request is executed by the process
//     that owns the memory, never by an initiator that maps it.
//   - SPEC: on a CPU without a 16-byte compare-and-swap every item above 8 bytes is handled under that lock, and 8
//   bytes
//     at a time are read and written whole.
//
// Values. Integers wrap. Comparisons are of values: -0.0 equals 0.0, NaN equals nothing and is not ordered; so min and
// max leave the target alone if either side is NaN, or if both are equal. Truth is "not equal to zero" (NaN is true),
// and logical results are 1 or 0. A value that is moved (swaps, min, max, fetched) moves with all its bits, a long
// double with its padding; a long double that is computed has zeros in its padding. Floating point is rounded to
// nearest, with no traps, whatever the calling thread has set; its exception flags stay as they were.

#include <cstddef>
#include <cstdint>

namespace portofu {

/// What an atomic does with target, source and operand. Values of ptl_op_t, then those that only fi_atomic has. 0 is
/// none, and no value is an AtomicType, too (portals4.h says why).
enum class AtomicOperation : std::uint8_t {
  kMin = 32,         ///< The source, if it is less than the target.
  kMax = 33,         ///< The source, if it is greater than the target.
  kSum = 34,         ///< target + source.
  kDiff = 35,        ///< target - source.
  kProd = 36,        ///< target * source.
  kLor = 37,         ///< target || source.
  kLand = 38,        ///< target && source.
  kBor = 39,         ///< target | source.
  kBand = 40,        ///< target & source.
  kLxor = 41,        ///< !target != !source.
  kBxor = 42,        ///< target ^ source.
  kSwap = 43,        ///< The source.
  kCswap = 44,       ///< The source, if operand == target.
  kCswapNe = 45,     ///< The source, if operand != target.
  kCswapLe = 46,     ///< The source, if operand <= target.
  kCswapLt = 47,     ///< The source, if operand < target.
  kCswapGe = 48,     ///< The source, if operand >= target.
  kCswapGt = 49,     ///< The source, if operand > target.
  kMswap = 50,       ///< The source in the bits that are set in the operand, the target in the others.
  kAtomicRead = 51,  ///< Nothing; the target is only fetched. There is no source.
  kAtomicWrite = 52  ///< The source.
};
inline constexpr std::size_t kAtomicOperationCount = 21;

/// Datatype of an item. Values of ptl_datatype_t.
enum class AtomicType : std::uint8_t {
  kInt8 = 64,
  kUint8 = 65,
  kInt16 = 66,
  kUint16 = 67,
  kInt32 = 68,
  kUint32 = 69,
  kInt64 = 70,
  kUint64 = 71,
  kFloat = 72,
  kFloatComplex = 73,
  kDouble = 74,
  kDoubleComplex = 75,
  kLongDouble = 76,
  kLongDoubleComplex = 77
};
inline constexpr std::size_t kAtomicTypeCount = 14;

/// Places in tables that have a row for each operation or datatype; of a value that is none, past their ends.
constexpr std::size_t atomic_index(AtomicOperation operation) {
  return static_cast<std::size_t>(operation) - static_cast<std::size_t>(AtomicOperation::kMin);
}
constexpr std::size_t atomic_index(AtomicType type) {
  return static_cast<std::size_t>(type) - static_cast<std::size_t>(AtomicType::kInt8);
}

/// The operation or datatype of a place, for loops over all of them.
constexpr AtomicOperation atomic_operation_at(std::size_t index) {
  return static_cast<AtomicOperation>(static_cast<std::size_t>(AtomicOperation::kMin) + index);
}
constexpr AtomicType atomic_type_at(std::size_t index) {
  return static_cast<AtomicType>(static_cast<std::size_t>(AtomicType::kInt8) + index);
}

/// The Portals function that asks. uTofu and fi_atomic requests are judged by execute_atomic alone.
enum class AtomicUse : std::uint8_t {
  kAtomic,       ///< PtlAtomic.
  kFetchAtomic,  ///< PtlFetchAtomic.
  kSwap          ///< PtlSwap.
};

/// Size of one item; 0 for a value that is no datatype, so a byte from a peer may be cast and asked.
std::uint32_t atomic_type_bytes(AtomicType type);

/// What an ARMW may do (table 2.2), compare and swap included.
constexpr bool is_armw_operation(AtomicOperation operation) {
  return operation == AtomicOperation::kCswap || operation == AtomicOperation::kSwap ||
         operation == AtomicOperation::kSum || operation == AtomicOperation::kBxor ||
         operation == AtomicOperation::kBand || operation == AtomicOperation::kBor;
}

/// Whether Portals allows the combination; false for values that are no operation or no datatype.
/// @spec  Portals 4.3, table 3-4
bool atomic_is_legal(AtomicOperation operation, AtomicType type, AtomicUse use);

/// The same for libfabric: a fetch may only read, and every operation that both know takes every type that the unit
/// has.
/// @spec  fi_atomic(3)
bool fabric_atomic_is_legal(AtomicOperation operation, AtomicType type, AtomicUse use);

/// One atomic on `item_count` neighbouring items. Buffers hold `item_count` items each, and all but the target are
/// private to the caller and may have any alignment.
struct AtomicRequest {
  AtomicOperation operation;           ///< May be an unchecked byte from a peer.
  AtomicType type;                     ///< May be an unchecked byte from a peer.
  std::byte* target = nullptr;         ///< User memory; readable and writable, also for kAtomicRead.
  const std::byte* source = nullptr;   ///< The initiator's items; ignored by kAtomicRead.
  std::byte* fetched = nullptr;        ///< Takes the old items; may be `source`; nullptr if they are not wanted.
  const std::byte* operand = nullptr;  ///< kCswap*, kMswap: what is compared, or the mask; else ignored.
  std::size_t item_count =
      0;  ///< 0 does nothing. Portals allows 1 only for kCswap* and kMswap; the unit does not mind.
};

/// Outcome of execute_atomic. kUnaligned and kIllegal have touched nothing.
enum class AtomicResult : std::uint8_t {
  kDone,       ///< All items were handled, in ascending order.
  kUnaligned,  ///< The target is not aligned to its size, nor, for a complex type, to one component.
  kIllegal,    ///< The unit has no such combination: table 3-4, and logical operations on every type as in fi_atomic.
  kFault       ///< The target is not mapped, or not writable; items before the bad address may have been handled.
};

/// Whether items of the type at this address are updated by CPU atomics, so that whoever maps the memory may do it.
bool is_atomic_for_all(AtomicType type, const std::byte* target);

/// Executes an atomic on memory of this process, each item atomically as said at the head of this file. Any thread may
/// call it. Whether the memory may be touched is for `permission` to say; a fault ends as kFault where
/// install_fault_guard was called. No other guard is needed around it.
AtomicResult execute_atomic(const AtomicRequest& request);

}  // namespace portofu
