#pragma once
// What a frontend posts: one operation, complete in itself. The same descriptor waits in a trigger list, waits for room
// on its way out, or goes straight to the wire. It names objects by handle, so it may outlive them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/topology/process_id.h"
#include "engine/wire/header.h"

namespace portofu {

/// In place of the index of a logical interface: the operation belongs to uTofu.
inline constexpr std::uint8_t kTofuInterface = 6;

/// The interface whose portal table entries are those of the endpoints of libfabric.
inline constexpr std::uint8_t kFabricInterface = 4;

/// Which acknowledgement the initiator wants. @spec Portals 4.3, 3.15.1
enum class AckRequest : std::uint8_t { kNone = 0, kFull = 1, kCount = 2, kOperation = 3 };

/// Widest operand of a conditional swap: long double complex, or those of several smaller items.
inline constexpr std::size_t kMaxOperandBytes = 32;

struct Core;

/// What a frontend does itself when a counter says so (kLocalCall). It stays where it is until it has run, or has been
/// taken out of its counter.
struct LocalCall {
  void (*run)(Core& core, LocalCall& call) = nullptr;  ///< On duty; may end the call's life.
};

/// A transfer of Portals or libfabric: what the initiator needs of it beside the packet.
struct PortalsTransfer {
  std::uint32_t md_handle = 0;             ///< Memory to send from; kGet: memory to read into.
  std::uint32_t get_md_handle = 0;         ///< kFetchAtomic, kSwap: memory for the old values.
  ProcessId target;                        ///< Physical id; on a logical interface the rank stands in `nid`.
  std::uint64_t local_offset = 0;          ///< Bytes into md_handle.
  void* user_ptr = nullptr;                ///< For the initiator's events.
  std::uint64_t local_get_offset = 0;      ///< Bytes into get_md_handle.
  AckRequest ack_req = AckRequest::kNone;  ///< kPut and kAtomic only.
  std::uint8_t operand_bytes = 0;          ///< kSwap: bytes used in `operand`; 0 if the operation has none.
  bool fenced = false;                     ///< It leaves when all that its target was asked before is over.
  /// Its memory descriptor, which is for it alone, has a counter that has to reach this before it leaves; with a
  /// failure there it does not.
  std::uint16_t parts_before = 0;
};

/// The same of uTofu (interface_index is kTofuInterface).
struct TofuTransfer {
  std::uint32_t vcq_handle;     ///< Who asks; kTofuGate: the setting of the gate.
  bool brings_data;             ///< kTofuPut: the data is in `operand`, and not in memory.
  std::uint64_t remote_vcq_id;  ///< Who is asked, or the id of the gate.
  std::uint64_t local_stadd;    ///< kTofuPut, kTofuGet.
  std::uint64_t tcq_place;      ///< Place in the TCQ.
};

/// kCountIncrement adds to the successes and failures of a counter, kCountSet sets them.
struct CountChange {
  std::uint32_t ct_handle;
  bool keeps_failures;  ///< kCountSet: the failures stay as they are.
  std::uint64_t success;
  std::uint64_t failure;
};

/// It begins with the packet header that it will become. Whoever posts it fills in what is known by then: `type`,
/// `interface_index`, what is asked for, and where. The initiator completes it when it leaves; `match_bits`,
/// `sender_id` and `tofu_queue` of uTofu, too.
struct Descriptor : PacketHeader {
  union {
    PortalsTransfer portals;    ///< kPut to kSwap.
    TofuTransfer tofu;          ///< kTofu*.
    CountChange count;          ///< kCount*.
    std::uint32_t gate_number;  ///< kTofuGate that waits for its inputs: queue number of the sending gate.
    LocalCall* call;            ///< kLocalCall.
  };
  std::array<std::byte, kMaxOperandBytes> operand;  ///< Copied when the call is made. Not written where there is none:
                                                    ///< most have none, and are made for every message.

  Descriptor() : PacketHeader{}, portals{} { type = PacketType::kPut; }  // NOLINT: `operand` stays as it is.
};
static_assert(std::is_trivially_copyable_v<Descriptor>);

}  // namespace portofu
