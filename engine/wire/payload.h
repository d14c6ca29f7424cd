#pragma once
// Where the bytes of a packet are: here, or in the memory of a sender on this node, to be read when it is known where
// they go, or already there. Before it: a wire fills Packet::payload. After it: MemorySegment::write.

#include <cstddef>
#include <cstdint>

#include "engine/queue/assert.h"
#include "engine/segment/lender.h"

namespace portofu {

/// Valid as long as the packet. Two words, to be passed by value.
class Payload {
 public:
  Payload() = default;
  /// Bytes that are here, though their sender may still change them.
  Payload(const std::byte* here) : at_(here) {}  // NOLINT(google-explicit-constructor): what nearly all are

  /// Bytes at an address of the sender's.
  static Payload in_memory_of(const Lender& sender, const std::byte* address) { return {address, &sender}; }

  /// Bytes that the sender has written to where they go.
  static Payload placed_by(const Lender& sender) { return {nullptr, &sender}; }

  bool is_here() const { return sender_ == nullptr; }
  bool is_placed() const { return sender_ != nullptr && at_ == nullptr; }

  bool is_in_memory() const { return sender_ != nullptr && at_ != nullptr; }

  /// Where they are. @pre is_here
  const std::byte* here() const {
    PORTOFU_ASSERT(is_here());
    return at_;
  }

  /// The rest behind the first `bytes`.
  Payload behind(std::uint64_t bytes) const { return is_placed() ? *this : Payload{at_ + bytes, sender_}; }

  /// Copies bytes that are in the sender's memory. @return false if either memory is not mapped, or may not be accessed
  bool read_to(std::byte* target, std::uint64_t bytes) const {
    return sender_->read_lent(reinterpret_cast<std::uintptr_t>(at_), target, bytes);
  }

  /// After read_to has failed: whether it is because the sender is not there any more. One that only does not let
  /// itself be read is.
  bool is_lost() const { return !is_here() && sender_->is_gone(); }

 private:
  Payload(const std::byte* at, const Lender* sender) : at_(at), sender_(sender) {}

  const std::byte* at_ = nullptr;   ///< An address here, or of the sender's; nullptr: placed, or no bytes at all.
  const Lender* sender_ = nullptr;  ///< nullptr: the bytes are here.
};

}  // namespace portofu
