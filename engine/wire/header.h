#pragma once
// Every packet format of the engine, on every wire. Nothing in a header is trusted before `run/dispatch` has copied
// it once and checked the copy.
//
// A descriptor begins with the header that it will become (engine/descriptor/descriptor.h), so one enumeration says
// what either asks for, and each field is written once.
//
// When you add a packet type: (1) add it to PacketType and `packet_type_name`, (2) say below which fields it uses, (3)
// handle it in run/dispatch.cpp, (4) let peers send it in tests/fuzz/receive_world_peers.cpp, (5) in tests/wireshark.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/queue/fresh_line.h"

namespace portofu {

/// PacketHeader::rounds_left, which has two halves: below, how many rounds still come, and above, the number of the
/// setting of the other gate that has asked for this; 0: none has. Or it is kAllRounds: the sender waits for packets.
/// Or with kWhatIsLeft below it asks. With kNoEnd below the sender knows of no end; unasked that means that it has left
/// the circuit, and that whoever waits should ask.
inline constexpr std::uint64_t kAllRounds = UINT64_MAX;
inline constexpr std::uint32_t kWhatIsLeft = UINT32_MAX;
inline constexpr std::uint32_t kNoEnd = UINT32_MAX - 1;
constexpr std::uint64_t rounds_word(std::uint32_t setting, std::uint32_t left) {
  return std::uint64_t{setting} << 32 | left;
}

/// What a packet or a descriptor asks for. A message is one packet, or a first packet followed by kData packets of the
/// same stream.
enum class PacketType : std::uint8_t {
  kInvalid = 0,      ///< Never sent; a zeroed header is refused.
  kPut = 1,          ///< Request: store payload. Uses all request fields.
  kGet = 2,          ///< Request: read `rlength` bytes; no payload; always answered.
  kAtomic = 3,       ///< Request: combine payload with the target's memory.
  kFetchAtomic = 4,  ///< Request: the same, the old values come back in the answer.
  kSwap = 5,         ///< Request: payload is the operand (kOperandBytes) and then the data; always answered.
  kData = 6,         ///< More payload of the message in progress on stream `flags & kFlagAnswerStream`.
  kAnswer = 7,       ///< Acknowledgement or reply; payload and following kData are the data that was read.

  // uTofu, whose fields have names of their own.
  kTofuPut = 8,     ///< Request: store payload; answered on success only if wanted, on failure always.
  kTofuGet = 9,     ///< Request: read `length` bytes; always answered.
  kTofuArmw = 10,   ///< Request: payload is the value, or the operand (kOperandBytes) and the value; always answered.
  kTofuFault = 11,  ///< A put that wanted no answer failed (`ni_fail_type`); `remote_stadd` is the end of its range,
                    ///< `vcq_handle` is as in the put.
  kTofuGate = 12,   ///< One packet of a barrier; payload is the part of a GateValue that is used. Without payload: see
                    ///< `rounds_left`.

  // Of descriptors only; as a packet each is refused.
  kTofuPiggyback = 64,   ///< In a prepared descriptor: a kTofuPut that brings its data.
  kTofuNop = 65,         ///< Says that it is done.
  kCountIncrement = 66,  ///< Adds to a counter.
  kCountSet = 67,        ///< Sets a counter.
  kLocalCall = 68,       ///< Runs a LocalCall.
};

/// Whether old values come back, into memory of their own.
constexpr bool is_fetching(PacketType type) { return type == PacketType::kFetchAtomic || type == PacketType::kSwap; }

constexpr bool is_tofu(PacketType type) { return type >= PacketType::kTofuPut && type <= PacketType::kTofuGate; }

/// Text for logs and the packet printer; "unknown" for a value that no packet has.
constexpr const char* packet_type_name(PacketType type) {
  switch (type) {
    case PacketType::kInvalid: return "invalid";
    case PacketType::kPut: return "put";
    case PacketType::kGet: return "get";
    case PacketType::kAtomic: return "atomic";
    case PacketType::kFetchAtomic: return "fetch_atomic";
    case PacketType::kSwap: return "swap";
    case PacketType::kData: return "data";
    case PacketType::kAnswer: return "answer";
    case PacketType::kTofuPut: return "tofu_put";
    case PacketType::kTofuGet: return "tofu_get";
    case PacketType::kTofuArmw: return "tofu_armw";
    case PacketType::kTofuFault: return "tofu_fault";
    case PacketType::kTofuGate: return "tofu_gate";
    case PacketType::kTofuPiggyback:
    case PacketType::kTofuNop:
    case PacketType::kCountIncrement:
    case PacketType::kCountSet:
    case PacketType::kLocalCall: break;
  }
  return "unknown";
}

/// Bits of PacketHeader::flags.
inline constexpr std::uint8_t kFlagAnswerWanted = 1u << 0;  ///< Request: the target must answer with `operation_id`.
/// kAnswer, where requests have kFlagAnswerWanted: the entry that took the request is published
/// (engine/segment/region_table.h), for whom maps it.
inline constexpr std::uint8_t kFlagPublished = kFlagAnswerWanted;
inline constexpr std::uint8_t kFlagAnswerStream = 1u << 1;  ///< kData: belongs to an answer, not to a request.
inline constexpr std::uint8_t kFlagOverflowList = 1u << 2;  ///< kAnswer: delivered into the overflow list.
inline constexpr std::uint8_t kFlagSilent = 1u << 3;        ///< kAnswer: releases the buffer, raises no ACK (3.13.3).
/// Request of libfabric, where answers have kFlagSilent: `hdr_data` is for the target's event, which is raised whatever
/// succeeds quietly.
inline constexpr std::uint8_t kFlagTellsData = kFlagSilent;
inline constexpr std::uint8_t kFlagCut = 1u
                                         << 4;  ///< kData: the sender failed (`ni_fail_type`); the message ends here.
inline constexpr std::uint8_t kFlagUnordered =
    1u << 5;  ///< A wire may let it overtake: PTL_MD_UNORDERED, answers of Portals.
inline constexpr std::uint8_t kFlagPlaced = 1u << 6;  ///< kTofuPut without payload: the data is at its place already.
inline constexpr std::uint8_t kKnownFlags = 127;      ///< All of them.

/// Whether all that the packet asks for is done but its notice: it touches no memory, and nobody waits for an answer.
constexpr bool is_settled(std::uint8_t flags) { return (flags & (kFlagPlaced | kFlagAnswerWanted)) == kFlagPlaced; }

/// Whether the payload may lie in a file of its sender, who may take the file away: everybody who reads payloads of
/// these packets expects a fault. All else fits a ring.
constexpr bool may_be_lent(PacketType type) {
  return type == PacketType::kPut || type == PacketType::kTofuPut || type == PacketType::kData ||
         type == PacketType::kAnswer;
}

/// Bytes of the operand that a kSwap has in front of its data: one long double complex, or several smaller items.
inline constexpr std::uint32_t kOperandBytes = 32;

/// First line of every packet. Field names are the spec's where the spec has one. Where a field has several, `type`
/// says which is meant.
struct alignas(64) PacketHeader {
  PacketType type;               ///< What the packet asks for.
  std::uint8_t flags;            ///< kFlag* bits; unknown bits refuse the packet.
  std::uint8_t interface_index;  ///< Request: interface of the target; 0..3 of Portals (matching?, logical?).
  std::uint8_t ni_fail_type;     ///< kAnswer: outcome, values of engine/event/event.h; 0 is success.
  union {
    std::uint16_t pt_index;   ///< Request: index into the target's portal table. kFlagPublished: of the request.
    std::uint16_t tofu_meta;  ///< uTofu: EDATA in the lowest byte, and kTofu* bits. kTofuFault: EDATA alone.
  };
  std::uint8_t atomic_operation;  ///< kAtomic, kFetchAtomic, kSwap: AtomicOperation, else 0.
  std::uint8_t atomic_type;       ///< kAtomic, kFetchAtomic, kSwap: AtomicType, else 0.
  std::uint32_t payload_bytes;    ///< Payload in this packet; at most the wire's max_payload_bytes().
  std::uint32_t operation_id;     ///< Names the initiator's outstanding operation; echoed in the answer.
  union {
    std::uint64_t match_bits;    ///< Request: as the initiator gave them; 0 on a non-matching interface.
                                 ///< kFlagPublished: of the request.
    std::uint64_t local_stadd;   ///< kTofuGet: where the data shall go.
    std::uint64_t vcq_handle;    ///< Other requests of uTofu: handle of the sending VCQ, for kTofuFault.
    std::uint64_t gate_setting;  ///< kTofuGate: number of the setting of the sending gate.
  };
  union {
    std::uint64_t hdr_data;   ///< Request: 64 bits for the target's event.
    std::uint64_t sender_id;  ///< uTofu: id of the VCQ or gate that sends.
  };
  union {
    std::uint64_t remote_offset;  ///< Request: offset wanted. kAnswer: offset used. kData: offset of this payload.
    std::uint64_t remote_stadd;   ///< uTofu.
    std::uint64_t rounds_left;    ///< kTofuGate without payload: see kAllRounds.
  };
  std::uint64_t length;  ///< Request: rlength, bytes of the whole message. kAnswer: mlength.
  union {
    std::uint32_t initiator_rank;  ///< Request on a logical interface: the initiator's rank in its own map.
    std::uint32_t endpoint;        ///< libfabric: number of the sending endpoint.
    std::uint32_t tofu_queue;      ///< uTofu: queue number of the VCQ or gate that is meant.
  };
  std::uint32_t uid;        ///< Usage ID of the initiator, stamped by its engine (3.8).
  std::uint32_t job_key;    ///< Key of the job, stamped by the engine; a foreign one is refused and counted.
  std::uint32_t wire_word;  ///< When published, kMayBeLost or 0, or departure_word; on its way it belongs to the wire
                            ///< (a sequence word in shared memory), and engines ignore it.
};

static_assert(sizeof(PacketHeader) == 64 && std::is_trivially_copyable_v<PacketHeader>);

/// Bits of PacketHeader::tofu_meta above EDATA, which has the lowest byte.
inline constexpr std::uint16_t kTofuTcqNotice = 1u << 8;
inline constexpr std::uint16_t kTofuLocalNotice = 1u << 9;
inline constexpr std::uint16_t kTofuRemoteNotice = 1u << 10;
inline constexpr std::uint16_t kTofuStrongOrder = 1u << 11;
inline constexpr std::uint32_t kTofuStepsShift = 12;  ///< Session progress steps, 4 bits.

constexpr std::uint8_t edata_of(std::uint16_t tofu_meta) { return tofu_meta & 0xff; }

/// Writes a header but its last word into a line of a ring, in whole words. It was filled in field by field a moment
/// ago, and is loaded so: a wider load would wait for the stores (engine/queue/fresh_line.h).
[[gnu::always_inline]] inline void write_head(const PacketHeader& h, std::byte* line) {
  static_assert(std::endian::native == std::endian::little);
  const auto put = [line](std::size_t index, std::uint64_t low, std::uint64_t high) {
    const std::uint64_t word = low | high << 32;
    std::memcpy(line + index * sizeof word, &word, sizeof word);
  };
  const auto type = static_cast<std::uint64_t>(fresh(h.type));
  put(0,
      type | std::uint64_t{fresh(h.flags)} << 8 | std::uint64_t{fresh(h.interface_index)} << 16 |
          std::uint64_t{fresh(h.ni_fail_type)} << 24,
      fresh(h.pt_index) | std::uint64_t{fresh(h.atomic_operation)} << 16 | std::uint64_t{fresh(h.atomic_type)} << 24);
  put(1, fresh(h.payload_bytes), fresh(h.operation_id));
  put(2, fresh(h.match_bits), 0);
  put(3, fresh(h.hdr_data), 0);
  put(4, fresh(h.remote_offset), 0);
  put(5, fresh(h.length), 0);
  put(6, fresh(h.initiator_rank), fresh(h.uid));
  const std::uint32_t job_key = fresh(h.job_key);
  std::memcpy(line + offsetof(PacketHeader, job_key), &job_key, sizeof job_key);
}

/// PacketHeader::wire_word. The initiator allows that the message gets lost (PTL_MD_UNRELIABLE, 2.2).
inline constexpr std::uint32_t kMayBeLost = 1;

/// PacketHeader::wire_word of the first packet of a message on a link that tells departures (Link::tells_departures).
/// @param number      by it, it is told that the message has left the interface; 0: nobody asks
/// @param in_command  the payload came with the call, and is not read from memory
constexpr std::uint32_t departure_word(std::uint32_t number, bool in_command) {
  return number << 1 | (in_command ? 1u : 0u);
}
constexpr std::uint32_t departure_of(const PacketHeader& header) { return header.wire_word >> 1; }
constexpr bool is_in_command(const PacketHeader& header) { return (header.wire_word & 1) != 0; }
inline constexpr std::uint32_t kMostDeparture = UINT32_MAX >> 1;

/// Whether a wire may lose a packet that is published: a whole put that nobody answers. Of a longer message nothing may
/// be lost, because its rest would be taken for part of another.
inline bool may_be_lost(const PacketHeader& header) {
  return header.wire_word == kMayBeLost && header.type == PacketType::kPut && header.operation_id == 0 &&
         header.length == header.payload_bytes;
}

/// Whether a packet answers a request; all others are requests. No packet of either kind has to wait for the other. A
/// fault is the answer to a put of uTofu that wanted none, and told in order with the others (guide, 2.2.10).
inline bool is_of_answer(const PacketHeader& header) {
  if (header.type == PacketType::kAnswer || header.type == PacketType::kTofuFault) return true;
  return header.type == PacketType::kData && (header.flags & kFlagAnswerStream) != 0;
}

}  // namespace portofu
