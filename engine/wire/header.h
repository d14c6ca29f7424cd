#pragma once
// Every packet format of the engine, on every wire. Nothing in a header is trusted before `run/dispatch` has copied
// it once and checked the copy.
//
// When you add a packet type: (1) add it to PacketType and to `packet_type_name`, (2) say below which fields it uses,
// (3) add its case to `run/dispatch.cpp`, (4) let peers send it in `tests/fuzz/receive_world_peers.cpp`.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace portofu {

/// What a packet asks for. A message is one packet, or a first packet followed by kData packets of the same stream.
enum class PacketType : std::uint8_t {
  kInvalid = 0,      ///< Never sent; a zeroed header is refused.
  kPut = 1,          ///< Request: store payload. Uses all request fields.
  kGet = 2,          ///< Request: read `rlength` bytes; no payload; always answered.
  kAtomic = 3,       ///< Request: combine payload with the target's memory.
  kFetchAtomic = 4,  ///< Request: the same, the old values come back in the answer.
  kSwap = 5,         ///< Request: payload is the operand (kOperandBytes) and then the data; always answered.
  kData = 6,         ///< More payload of the message in progress on stream `flags & kFlagAnswerStream`.
  kAnswer = 7,       ///< Acknowledgement or reply; payload and following kData are the data that was read.

  // uTofu. `initiator_rank` is the queue number of the VCQ or gate that is meant, `hdr_data` the id of the sending one,
  // `pt_index` the lower 16 bits of Descriptor::hdr_data, `remote_offset` a STADD.
  kTofuPut = 8,     ///< Request: store payload; answered on success only if wanted, on failure always. `match_bits` is
                    ///< the handle of the sending VCQ, for the answer.
  kTofuGet = 9,     ///< Request: read `length` bytes; `match_bits` is the initiator's STADD; always answered.
  kTofuArmw = 10,   ///< Request: payload is the value, or the operand (kOperandBytes) and the value; always answered.
  kTofuFault = 11,  ///< A put that wanted no answer failed (`ni_fail_type`); `remote_offset` is the end of its range,
                    ///< `match_bits` is as in the put.
  kTofuGate = 12,   ///< One packet of a barrier; payload is the part of a GateValue that is used.
};

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

/// Bytes of the operand that a kSwap carries in front of its data: the widest datatype, long double complex.
inline constexpr std::uint32_t kOperandBytes = 32;

/// First line of every packet. Field names are the spec's where the spec has one.
struct alignas(64) PacketHeader {
  PacketType type;                ///< What the packet asks for.
  std::uint8_t flags;             ///< kFlag* bits; unknown bits refuse the packet.
  std::uint8_t interface_index;   ///< Request: interface of the target; 0..3 of Portals (matching?, logical?).
  std::uint8_t ni_fail_type;      ///< kAnswer: outcome, values of engine/event/event.h; 0 is success.
  std::uint16_t pt_index;         ///< Request: index into the target's portal table. kFlagPublished: of the request.
  std::uint8_t atomic_operation;  ///< kAtomic, kFetchAtomic, kSwap: AtomicOperation, else 0.
  std::uint8_t atomic_type;       ///< kAtomic, kFetchAtomic, kSwap: AtomicType, else 0.
  std::uint32_t payload_bytes;    ///< Payload in this packet; at most the wire's max_payload_bytes().
  std::uint32_t operation_id;     ///< Names the initiator's outstanding operation; echoed in the answer.
  std::uint64_t match_bits;       ///< Request: as the initiator gave them; 0 on a non-matching interface.
                                  ///< kFlagPublished: of the request.
  std::uint64_t hdr_data;         ///< Request: 64 bits for the target's event.
  std::uint64_t remote_offset;    ///< Request: offset wanted. kAnswer: offset used. kData: offset of this payload.
  std::uint64_t length;           ///< Request: rlength, bytes of the whole message. kAnswer: mlength.
  std::uint32_t initiator_rank;   ///< Request on a logical interface: the initiator's rank in its own map. Of
                                  ///< libfabric: number of the sending endpoint.
  std::uint32_t uid;              ///< Usage ID of the initiator, stamped by its engine (3.8).
  std::uint32_t job_key;          ///< Key of the job, stamped by the engine; a foreign one is refused and counted.
  std::uint32_t wire_word;        ///< When published, kMayBeLost or 0; on its way it belongs to the wire (a sequence
                                  ///< word in shared memory), and engines ignore it.
};

static_assert(sizeof(PacketHeader) == 64 && std::is_trivially_copyable_v<PacketHeader>);

/// The same header, written in whole words: whoever has filled one in registers stores it by half as many stores, and a
/// wire may copy it by words (engine/queue/fresh_line.h).
[[gnu::always_inline]] inline PacketHeader in_words(const PacketHeader& h) {
  static_assert(std::endian::native == std::endian::little);
  PacketHeader words;
  const auto put = [&words](std::size_t index, std::uint64_t low, std::uint64_t high) {
    const std::uint64_t word = low | high << 32;
    std::memcpy(reinterpret_cast<std::byte*>(&words) + index * sizeof word, &word, sizeof word);
  };
  // What every packet carries is known first, and is stored first: kept for later it would leave the registers, and a
  // half that was stored alone cannot be loaded in a word without waiting.
  put(6, h.initiator_rank, h.uid);
  put(7, h.job_key, h.wire_word);
  const auto type = static_cast<std::uint64_t>(h.type);
  put(0,
      type | std::uint64_t{h.flags} << 8 | std::uint64_t{h.interface_index} << 16 | std::uint64_t{h.ni_fail_type} << 24,
      h.pt_index | std::uint64_t{h.atomic_operation} << 16 | std::uint64_t{h.atomic_type} << 24);
  put(1, h.payload_bytes, h.operation_id);
  put(2, h.match_bits, 0);
  put(3, h.hdr_data, 0);
  put(4, h.remote_offset, 0);
  put(5, h.length, 0);
  return words;
}

/// PacketHeader::wire_word. The initiator allows that the message gets lost (PTL_MD_UNRELIABLE, 2.2).
inline constexpr std::uint32_t kMayBeLost = 1;

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
