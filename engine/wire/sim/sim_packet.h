#pragma once
// A packet that a simulated wire, or one that puts disorder or virtual time over another, keeps for a while.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "engine/wire/header.h"
#include "engine/wire/loans.h"

namespace portofu {

/// Payload of one packet in a heap block of its own, so that AddressSanitizer sees any step outside.
class SimPayload {
 public:
  /// @param payload_bytes  size; the bytes start as 0xee, so that what was never written is seen
  explicit SimPayload(std::uint32_t payload_bytes)
      : data_(static_cast<std::byte*>(::operator new(payload_bytes, kAlignment))) {
    std::memset(data_.get(), 0xee, payload_bytes);
  }

  std::byte* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct AlignedDelete {
    void operator()(std::byte* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<std::byte, AlignedDelete> data_;  ///< Never nullptr.
};

/// A published packet. Shuffled ones have neither loan nor number.
struct SimPacket {
  PacketHeader header;         ///< As published; `wire_word` is random, because engines must ignore it.
  SimPayload payload;          ///< Exactly header.payload_bytes.
  std::uint32_t delay_polls;   ///< Polls for which it still stays invisible, once it is the first of its link.
  std::optional<Loan> loan{};  ///< The payload stays there.
  std::uint64_t number = 0;    ///< Loans::next_packet when it was published.
  bool placed = false;         ///< Copies::help has written the payload to its destination.
};

}  // namespace portofu
