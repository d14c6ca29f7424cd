#pragma once
// What one class of a link has sent and not heard of: packets cut into frames, each kept until the receiver has it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "engine/wire/reliable/frame.h"
#include "engine/wire/reliable/held_bytes.h"
#include "engine/wire/reliable/packet_buffer.h"
#include "engine/wire/reliable/round_trip.h"

namespace portofu {

/// True if sequence number a comes before b; numbers wrap.
inline bool sequence_before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

/// Whether the data of a packet is kept, and sent again, until it has arrived.
enum class Delivery : std::uint8_t {
  kReliable,
  kOnce,  ///< Sent once; what is sent again is only that there was something.
};

/// Used by the thread on duty.
class SendWindow {
 public:
  /// @param frame_bytes  most bytes of a packet in one frame
  /// @param held         outlives the window
  SendWindow(std::uint32_t frame_bytes, HeldBytes& held) : frame_bytes_(frame_bytes), held_(held) {}

  bool has_room(std::uint32_t packet_bytes) const { return frames_.size() + frames_of(packet_bytes) <= kWindowFrames; }
  bool empty() const { return frames_.empty(); }

  /// Takes a packet; there must be room.
  void add(PacketBuffer buffer, std::uint32_t packet_bytes, Delivery delivery);

  /// When the first of its frames is due; UINT64_MAX if none ever is.
  /// @param first_only  only the oldest frame counts: the peer is silent, and one question is enough
  std::uint64_t next_due_ns(bool first_only) const;

  /// Looks for a frame that is due.
  /// @param header  kData fields are set on success
  /// @param body    set on success; valid until the next call that changes the window
  /// @return false if there is none
  bool find_due(std::uint64_t now_ns, bool first_only, FrameHeader* header, std::span<const std::byte>* body) const;

  /// A frame that find_due named has left.
  /// @return how often it has left by now
  std::uint32_t sent(std::uint32_t sequence, std::uint64_t now_ns, const RoundTrip& round_trip);

  /// Frees what has arrived; what must have been lost, because others that left long after it have arrived, is due now.
  /// @param next      first sequence number that the receiver has not taken
  /// @param selected  bit i: next + i has arrived
  /// @param lost_before_ns  frames that left before this and are not acknowledged count as lost
  /// @return false if the receiver lies
  bool acknowledge(std::uint32_t next, std::uint64_t selected, std::uint64_t lost_before_ns);

  /// Forgets everything.
  void clear();

 private:
  struct Frame {
    std::shared_ptr<PacketBuffer> buffer;  ///< nullptr: it has arrived, or is a gap.
    std::uint32_t packet_bytes = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint16_t index = 0;
    std::uint16_t count = 0;
    std::uint32_t transmissions = 0;
    std::uint64_t sent_ns = 0;  ///< Last time.
    std::uint64_t due_ns = 0;   ///< 0: at once.
    Delivery delivery = Delivery::kReliable;
    bool arrived = false;
  };

  std::uint32_t frames_of(std::uint32_t packet_bytes) const { return (packet_bytes + frame_bytes_ - 1) / frame_bytes_; }
  void free(Frame& frame);

  std::uint32_t frame_bytes_;
  HeldBytes& held_;
  std::uint32_t first_ = 0;   ///< Sequence number of frames_.front().
  std::deque<Frame> frames_;  ///< In order; at most kWindowFrames.
};

}  // namespace portofu
