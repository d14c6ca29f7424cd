#pragma once
// What the reliable wire puts in front of everything that it sends: a packet of the engine travels in one frame, or in
// several of consecutive sequence numbers. Nothing in a frame is believed before its checksum is right, and lengths are
// checked all the same. Numbers are in the byte order of the machines, which is the same on all.
//
// When you add a kind: (1) add it to FrameKind, (2) say who sends it, (3) add its case to reliable_receive.cpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "engine/wire/traffic_class.h"

namespace portofu {

/// What a frame says. "Sender" and "receiver" are those of the link that it names; each end sends frames to the other.
enum class FrameKind : std::uint8_t {
  kInvalid = 0,     ///< Never sent.
  kOpen = 1,        ///< Sender: wants a link. Answered by kAccept. The only frame that makes state at its receiver.
  kAccept = 2,      ///< Receiver: names what it made, by a number that no other life or link of it has used.
  kData = 3,        ///< Sender: a piece of a packet. Answered by kAck, sooner or later.
  kAck = 4,         ///< Receiver: what has arrived; the body is an AckBody.
  kProbe = 5,       ///< Sender: wants to hear from the receiver. Answered by kAck at once.
  kClose = 6,       ///< Sender: everything was acknowledged, and nothing more comes. Answered by kNoReceiver.
  kCheck = 7,       ///< Receiver: wants to hear from the sender. Answered by kProbe or kNoSender.
  kNoReceiver = 8,  ///< Answer to a frame of a sender: this link is not received here, or no longer. Never answered.
  kNoSender = 9,    ///< Answer to a frame of a receiver: this link is not of here, or no longer. Never answered.
};

/// Frames of one class of one link that are sent and not acknowledged, at most: what a dead or slow peer can hold.
inline constexpr std::uint32_t kWindowFrames = 64;

/// FrameHeader::flags. The piece of the packet is not sent again (PTL_MD_UNRELIABLE): a gap in its place.
inline constexpr std::uint8_t kFrameGap = 1;

struct FrameHeader {
  std::uint32_t checksum;        ///< CRC32C of the rest of the header and the body.
  std::uint8_t format;           ///< kFrameFormat.
  FrameKind kind;                ///< What it says.
  TrafficClass traffic;          ///< kData: whose window; else 0.
  std::uint8_t flags;            ///< kData: kFrameGap or 0.
  std::uint64_t link;            ///< Names the link; chosen at random by its sender.
  std::uint64_t acceptance;      ///< Chosen by the receiver when it accepted; 0 in kOpen.
  std::uint64_t life;            ///< kOpen, kAccept: the life of the process that sends this frame; else 0.
  std::uint64_t sent_ns;         ///< When it left, by the clock of whoever sent it; comes back in AckBody.
  std::uint32_t sequence;        ///< kData: number in its class; the first is 0, and it wraps.
  std::uint32_t packet_bytes;    ///< kData: header and payload of the whole packet.
  std::uint32_t packet_offset;   ///< kData: where in the packet the body belongs.
  std::uint16_t fragment_index;  ///< kData: which frame of the packet; the first is 0.
  std::uint16_t fragment_count;  ///< kData: frames of the packet, 1 .. kWindowFrames.
  std::uint32_t body_bytes;      ///< Bytes behind this header.
  std::uint32_t ear;             ///< kOpen: port where the sender is told that the receiver's names have moved; else 0.
};
static_assert(sizeof(FrameHeader) == 64 && std::is_trivially_copyable_v<FrameHeader>);
static_assert(std::has_unique_object_representations_v<FrameHeader>);

/// State of a receiver; index is the class.
struct AckBody {
  std::array<std::uint32_t, kTrafficClassCount> next;      ///< All before these are taken by the engine.
  std::array<std::uint64_t, kTrafficClassCount> selected;  ///< Bit i: next + i has arrived.
  std::uint64_t echo_ns;                                   ///< Latest sent_ns that has arrived.
  std::uint64_t hold_ns;                                   ///< How long ago that was.
};
static_assert(sizeof(AckBody) == 40 && std::is_trivially_copyable_v<AckBody>);
static_assert(kWindowFrames == 64, "AckBody::selected has a bit for each");

inline constexpr std::uint8_t kFrameFormat = 5;

/// Fills in format, body_bytes and checksum.
void seal_frame(FrameHeader& header, std::span<const std::byte> body);

/// Looks whether a datagram is a frame that arrived as it left.
/// @param header  set on success only
/// @param body    set on success only; points into the datagram
bool open_frame(std::span<const std::byte> datagram, FrameHeader* header, std::span<const std::byte>* body);

}  // namespace portofu
