#pragma once
// Every message that one OfiWire sends to another: an envelope, and behind it, in a kPacket, a packet of the engine.
//
// RDM endpoints hide connections: a provider that loses one may make another one unseen, and what was under way is
// lost. Therefore packets are numbered for each link, and every message names the life that it is meant for. A gap or
// a wrong life ends the link at both ends, so that a link delivers in order and exactly once, or is lost.

#include <cstdint>
#include <type_traits>

#include "engine/wire/header.h"

namespace portofu {

/// What a message is for. A link is named by its sender's life and number.
enum class OfiKind : std::uint32_t {
  kHello = 1,    ///< Sender: opens the link `link`; `peer_life` is 0. Sent again until it is answered. `count` is a
                 ///< HelloCount.
  kWelcome = 2,  ///< Receiver: the link is open, behind a kHello of its own if it has no link to the sender; `count` is
                 ///< the number of packets that may be under way.
  kRefusal = 3,  ///< Receiver: the link does not exist here, not any more, or not in this life.
  kPacket = 4,   ///< Sender: a packet; `count` packets went before it.
  kCredit = 5,   ///< Receiver: `count` packets are released.
  kProbe = 6,    ///< Either: is the life that I know still there? `link` is not 0: `count` packets were sent on it.
  kGoodbye = 7,  ///< Sender: the link ends after `count` packets; a credit for all of them answers it.
  kLoan = 8,     ///< Sender: a kPacket whose payload has to be fetched: an OfiLoan is in its place.
};

/// Names a payload that stays in the sender's memory until the packet is released.
struct OfiLoan {
  std::uint64_t address;  ///< As ExposedMemory.
  std::uint64_t key;      ///< The same.
};

/// In front of everything. Checked in this order: magic, job key and user, then where it comes from, then the rest.
struct alignas(64) OfiEnvelope {
  std::uint32_t magic;      ///< kOfiMagic.
  std::uint32_t job_key;    ///< Of the sending process; another one is refused.
  std::uint32_t uid;        ///< Usage ID of the sending process; another one is refused.
  OfiKind kind;             ///< What it is for.
  std::uint32_t nid;        ///< Of the sending process; agrees with the address that the fabric tells.
  std::uint32_t pid;        ///< Of the sending process; the same.
  std::uint64_t life;       ///< Of the sending process: its segment's incarnation.
  std::uint64_t peer_life;  ///< Of the process that is meant; 0: not known yet.
  std::uint32_t link;       ///< Number of the link, from 1; 0: none.
  std::uint32_t ends;       ///< kGoodbye: 1 if the sending process ends; else 0.
  std::uint64_t count;      ///< See OfiKind.
};

static_assert(sizeof(OfiEnvelope) == 64 && std::is_trivially_copyable_v<OfiEnvelope>);

/// What a hello says of its sender in `count`.
struct HelloCount {
  std::uint64_t node = 0;  ///< Its node_identity; 0: not known.
  std::uint16_t ear = 0;   ///< Where it is told that the receiver's names have moved (segment/known_by.h); 0: nowhere.

  static constexpr HelloCount of(std::uint64_t count) { return {count >> 16, static_cast<std::uint16_t>(count)}; }
  constexpr std::uint64_t packed() const { return node << 16 | ear; }
};

/// "Pof" and the version of the format.
inline constexpr std::uint32_t kOfiMagic = 0x08666f50;

/// In front of the payload of a packet.
inline constexpr std::uint32_t kOfiHeadBytes = sizeof(OfiEnvelope) + sizeof(PacketHeader);

}  // namespace portofu
