#pragma once
// What a capture of a process says of each packet, in front of it. The dissector for Wireshark reads it
// (lib/tools/wireshark), as the link type LINKTYPE_USER0 of a pcapng file.

#include <cstdint>
#include <type_traits>

#include "engine/topology/process_id.h"

namespace portofu {

enum class CaptureKind : std::uint8_t {
  kPacket = 1,           ///< A PacketHeader and the payload follow.
  kAcknowledgement = 2,  ///< A word that says "as asked" instead of an answer (completions.h). Nothing follows.
};

enum class CaptureDirection : std::uint8_t { kReceived = 0, kSent = 1 };

/// The wire that has carried it.
enum class CaptureMedium : std::uint8_t { kLoopback = 0, kSharedMemory = 1, kOtherNodes = 2 };

/// Where the payload is.
enum class CapturePayload : std::uint8_t {
  kHere = 0,      ///< Behind the header, as much of it as a capture takes.
  kAtSender = 1,  ///< In the memory of its sender, who has captured it.
  kPlaced = 2,    ///< The sender has written it to where it goes.
};

struct CaptureRecord {
  std::uint32_t magic;         ///< kCaptureMagic.
  CaptureKind kind;            ///< What follows.
  CaptureDirection direction;  ///< For the process that has written the capture.
  CaptureMedium medium;        ///< The wire.
  CapturePayload payload;      ///< kPacket: where it is; else 0.
  ProcessId source;            ///< Who has sent it.
  ProcessId target;            ///< Whom it is for.
  std::uint32_t operation_id;  ///< kAcknowledgement: PacketHeader::operation_id of the request; else 0.
  std::uint32_t reserved;      ///< 0.
};
static_assert(sizeof(CaptureRecord) == 32 && std::is_trivially_copyable_v<CaptureRecord>);

/// "Poc" and the version of the format.
inline constexpr std::uint32_t kCaptureMagic = 0x01636f50;

}  // namespace portofu
