#pragma once
// Facet of a wire to other nodes: it waits at a socket, sends by the clock, and knows names that move without a word in
// memory that says so.

#include <cstdint>
#include <functional>

#include "engine/topology/process_id.h"

namespace portofu {

/// Called on duty; returns at once.
class OtherNodes {
 public:
  /// Says to peers, when a link to them is made, at which port of this node they are told that their names are another
  /// process's by now, and calls `note` with what others have said so.
  virtual void introduce(std::uint16_t ear, std::function<void(std::uint32_t nid, std::uint16_t port)> note) = 0;

  /// This life of a process is over, whether the wire has noticed or not: a link to it may have moved, and does not
  /// lead to who has the PID. What the process has sent may still be on its way.
  virtual void end_life(ProcessId process, std::uint64_t life) = 0;

  /// Somebody begins to wait for a link to the peer, and calls connect. That nobody was there when it
  /// was asked earlier is no answer then: somebody may have begun since.
  virtual void ask_anew(ProcessId peer) = 0;

  /// What a sleeping engine has to wait at beside its doorbell: readable when has_packets would find something. To be
  /// asked for after has_packets was false.
  /// @return -1 if nothing is open yet
  virtual int wait_fd() const = 0;

  /// When somebody has to look at the latest (peek, has_packets) though nothing arrives, by the clock of the engine.
  /// @return UINT64_MAX: there is no need to
  virtual std::uint64_t next_due_ns() const = 0;

  /// Whether all that was published has arrived, or will without this process.
  virtual bool has_delivered() const = 0;

 protected:
  ~OtherNodes() = default;
};

}  // namespace portofu
