#pragma once
// What the reliable wire needs of a medium that promises nothing: datagrams that come whole or damaged, once, several
// times or never, in any order and at any time. The simulator has one (engine/wire/sim/lossy_network.h); an endpoint of
// a fabric with unreliable datagrams is another.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/topology/process_id.h"
#include "engine/wire/traffic_class.h"

namespace portofu {

/// One process at such a medium. Every function is called by the thread on duty only and returns at once.
class DatagramEndpoint {
 public:
  virtual ~DatagramEndpoint() = default;

  /// Most bytes of one datagram; constant, at least kMinDatagramBytes.
  virtual std::uint32_t max_bytes() const = 0;

  /// Sends one datagram made of two parts, which are free again when the call returns. Nobody tells what becomes of it.
  /// @param traffic  for a medium that has two levels
  /// @return false if there is no room now, and nothing was sent
  virtual bool send(ProcessId peer, TrafficClass traffic, std::span<const std::byte> head,
                    std::span<const std::byte> body) = 0;

  /// Takes the next datagram.
  /// @param buffer  max_bytes() long, 64-byte aligned
  /// @return its bytes; 0 if there is none
  virtual std::uint32_t receive(std::byte* buffer, ProcessId* source) = 0;

  /// True if receive or take_unreachable would find something.
  virtual bool has_datagrams() = 0;

  /// A peer of which the medium was told that nobody has its address, because we sent there (as a node answers for a
  /// port that nobody holds). Old news is possible. A medium that is never told relies on
  /// ReliableOptions::silence_limit_ns alone.
  /// @return false if there is none
  virtual bool take_unreachable(ProcessId* peer) = 0;

  /// When the datagram left that found nobody at the address which take_unreachable has named last, by now_ns. 0: not
  /// known.
  virtual std::uint64_t unreachable_since_ns() const { return 0; }

  /// Nanoseconds from any origin, never backwards.
  virtual std::uint64_t now_ns() const = 0;

  /// What a sleeping engine has to wait at: readable when has_datagrams would be true, provided that may_sleep was.
  /// @return -1 if there is none
  virtual int wait_fd() const { return -1; }

  /// For the thread that is about to sleep, after has_datagrams was false. @return false if it has to look once more
  virtual bool may_sleep() { return true; }

  /// Nothing is sent or received any more, because the process ends or this is a forked child.
  virtual bool is_over() const { return false; }
};

/// Room for a frame header and some more; a packet takes as many datagrams as it needs.
inline constexpr std::uint32_t kMinDatagramBytes = 512;

}  // namespace portofu
