#pragma once
// What one class of a link has brought and the engine has not taken: frames in any order, given out as packets in the
// order in which they were published.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/wire/reliable/frame.h"
#include "engine/wire/reliable/held_bytes.h"
#include "engine/wire/reliable/packet_buffer.h"

namespace portofu {

/// What became of a frame.
enum class Admission : std::uint8_t {
  kNew,        ///< It is kept.
  kDuplicate,  ///< It was here already.
  kRefused,    ///< No honest sender sends it.
};

/// Used by the thread on duty.
class ReceiveWindow {
 public:
  /// @param max_packet_bytes  no packet is longer, header included
  /// @param held              outlives the window
  ReceiveWindow(std::uint32_t max_packet_bytes, HeldBytes& held) : max_packet_bytes_(max_packet_bytes), held_(held) {}

  Admission admit(const FrameHeader& header, std::span<const std::byte> body);

  /// Whether the next packet is complete. Steps over packets with gaps.
  bool has_packet();

  /// The next packet, header and payload in one piece, 64-byte aligned; it stays until release.
  std::span<const std::byte> front();
  void release();

  std::uint32_t next() const { return next_; }

  /// Bit i: next() + i is here.
  std::uint64_t selected() const { return selected_; }

  /// Forgets everything.
  void clear();

 private:
  struct Slot {
    PacketBuffer data;  ///< None for a gap.
    std::uint32_t bytes = 0;
    std::uint32_t packet_bytes = 0;
    std::uint32_t offset = 0;
    std::uint16_t index = 0;
    std::uint16_t count = 0;
    bool gap = false;
  };

  Slot& slot(std::uint32_t sequence) { return *slots_[sequence % kWindowFrames]; }
  std::uint32_t complete_frames() const;
  bool is_consistent(std::uint32_t frame_count);
  void pass(std::uint32_t frame_count);

  std::uint32_t max_packet_bytes_;
  HeldBytes& held_;
  std::uint32_t next_ = 0;                                    ///< First frame that was not taken.
  std::uint64_t selected_ = 0;                                ///< Bit i: the slot of next_ + i is filled.
  std::array<std::unique_ptr<Slot>, kWindowFrames> slots_{};  ///< By sequence number; nullptr: nothing is here.
  PacketBuffer whole_;                                        ///< Packet of several frames, between front and release.
};

}  // namespace portofu
