#pragma once
// What a frontend posts: one operation, complete in itself, in two 64-byte cells. The same descriptor waits in a
// trigger list, waits for room on its way out, or goes straight to the wire. It names objects by handle, so it may
// outlive them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/topology/process_id.h"

namespace portofu {

/// What to do.
enum class DescriptorKind : std::uint8_t {
  kPut = 0,
  kGet = 1,
  kAtomic = 2,
  kFetchAtomic = 3,
  kSwap = 4,
  kCountIncrement =
      5,          ///< Adds `length` to the successes and `remote_offset` to the failures of the counter `md_handle`.
  kCountSet = 6,  ///< Sets them.

  // uTofu (interface_index is kTofuInterface): `match_bits` is the remote VCQ ID, `md_handle` the local VCQ,
  // `local_offset` and `remote_offset` are STADDs, `hdr_data` holds flags and EDATA (TofuFlags), `user_ptr` the
  // callback data, `local_get_offset` the place in the TCQ.
  kTofuPut = 7,        ///< From memory.
  kTofuPiggyback = 8,  ///< From `operand`.
  kTofuGet = 9,
  kTofuArmw = 10,  ///< `operand` is what is compared, and 8 bytes on the value.
  kTofuNop = 11,
  kTofuGate = 12,  ///< A packet from one barrier gate to another; `md_handle` is the index of the sending gate.

  kLocalCall = 13,  ///< Runs the LocalCall at `user_ptr`.
};

/// Whether old values come back, into memory of their own.
constexpr bool is_fetching(DescriptorKind kind) {
  return kind == DescriptorKind::kFetchAtomic || kind == DescriptorKind::kSwap;
}

/// In place of the index of a logical interface: the operation belongs to uTofu.
inline constexpr std::uint8_t kTofuInterface = 6;

/// The interface whose portal table entries are those of the endpoints of libfabric.
inline constexpr std::uint8_t kFabricInterface = 4;

/// Bits of Descriptor::hdr_data above EDATA, which has the lowest byte.
inline constexpr std::uint64_t kTofuTcqNotice = 1u << 8;
inline constexpr std::uint64_t kTofuLocalNotice = 1u << 9;
inline constexpr std::uint64_t kTofuRemoteNotice = 1u << 10;
inline constexpr std::uint64_t kTofuStrongOrder = 1u << 11;
inline constexpr std::uint32_t kTofuStepsShift = 12;  ///< Session progress steps, 4 bits.

/// Which acknowledgement the initiator wants. @spec Portals 4.3, 3.15.1
enum class AckRequest : std::uint8_t { kNone = 0, kFull = 1, kCount = 2, kOperation = 3 };

/// Widest operand of a conditional swap: long double complex.
inline constexpr std::size_t kMaxOperandBytes = 32;

struct Core;

/// What a frontend does itself when a counter says so (kLocalCall). It stays where it is until it has run, or has been
/// taken out of its counter.
struct LocalCall {
  void (*run)(Core& core, LocalCall& call) = nullptr;  ///< On duty; may end the call's life.
};

struct Descriptor {
  DescriptorKind kind = DescriptorKind::kPut;
  std::uint8_t interface_index = 0;        ///< Interface of initiator and target, 0..4.
  AckRequest ack_req = AckRequest::kNone;  ///< kPut and kAtomic only.
  std::uint8_t atomic_operation = 0;       ///< AtomicOperation, for the three atomics.
  std::uint8_t atomic_type = 0;            ///< AtomicType, for the three atomics.
  std::uint8_t operand_bytes = 0;          ///< kSwap: bytes used in `operand`; 0 if the operation has none.
  std::uint16_t pt_index = 0;              ///< At the target.
  std::uint32_t md_handle = 0;             ///< Memory to send from; kGet: memory to read into; counts: the counter.
  std::uint32_t get_md_handle = 0;         ///< kFetchAtomic, kSwap: memory for the old values.
  ProcessId target;                        ///< Physical id; on a logical interface the rank stands in `nid`.
  std::uint64_t local_offset = 0;          ///< Bytes into md_handle.
  std::uint64_t length = 0;                ///< Bytes.
  std::uint64_t match_bits = 0;            ///< 0 on a non-matching interface.
  std::uint64_t remote_offset = 0;         ///< Bytes into the target's entry.
  void* user_ptr = nullptr;                ///< For the initiator's events.
  std::uint64_t hdr_data = 0;              ///< For the target's event.
  std::uint64_t local_get_offset = 0;      ///< Bytes into get_md_handle.
  std::uint16_t endpoint = 0;              ///< kFabricInterface: number of the endpoint that sends.
  bool tells_data = false;                 ///< kFabricInterface: the target is to be told `hdr_data`.
  bool keeps_failures = false;             ///< kCountSet: the failures stay as they are.
  bool fenced = false;                     ///< It leaves when all that its target was asked before is over.
  std::array<std::byte, kMaxOperandBytes> operand;  ///< Copied when the call is made. Not written where there is none:
                                                    ///< most have none, and are made for every message.
};
static_assert(std::is_trivially_copyable_v<Descriptor>);

}  // namespace portofu
