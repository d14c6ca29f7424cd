#pragma once
// Facet of a wire: an operation that is complete as it was asked for is acknowledged by a word instead of a packet.

#include <cstdint>

#include "engine/topology/process_id.h"

namespace portofu {

struct Link;

/// Called on duty; returns at once.
class Completions {
 public:
  /// Tells the sender of the packet that peek returned, or of what Copies::read_now has read, that an operation of its
  /// is complete as it was asked for: what a packet of an answer would say, with less.
  /// @return false if a packet has to say it
  virtual bool acknowledge(ProcessId sender, std::uint32_t operation_id) = 0;

  /// The same for a life of a process whose packet has been released, because a wire over this one holds it back.
  virtual bool acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) = 0;

  /// The next operation of which the peer has said so. @return 0 if there is none
  virtual std::uint32_t take_acknowledgement(Link& link) = 0;
  virtual bool has_acknowledgement(Link& link) = 0;

 protected:
  ~Completions() = default;
};

}  // namespace portofu
