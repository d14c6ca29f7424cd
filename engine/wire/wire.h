#pragma once
// The one interface between the engine and whatever carries packets: memory of this node, a fabric, a simulator.
//
// A wire delivers the packets of one link in order, exactly once, or reports the link lost; a medium that cannot do so
// is wrapped by `wire/reliable`. Before anything of a later link of a process is delivered, be it a later life of it,
// the earlier one is drained and its source taken (take_closed_source). Every function is called by the thread on duty
// only and returns at once.
//
// What every wire does stands here; what only some can do are its facets (facets.h).

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/queue/ring_geometry.h"
#include "engine/topology/process_id.h"
#include "engine/wire/facets.h"
#include "engine/wire/header.h"
#include "engine/wire/payload.h"
#include "engine/wire/ways.h"

namespace portofu {

/// Whether threads of the process may write into a peer's memory without the duty. Written on duty, read by any thread.
struct LaneState {
  std::atomic<std::uint64_t> open{0};      ///< Names the present stretch in which they may; 0: they may not.
  std::atomic<std::uint64_t> in_order{0};  ///< The same while nothing is under way on the link that may touch memory.
};

/// One direction of traffic towards one peer. Created by Wire::connect and owned by the wire that made it; a wire
/// derives its own state from it.
struct Link {
  ProcessId peer;     ///< Who is at the other end.
  bool lost = false;  ///< Set by the wire once the peer is known to be dead or gone; a lost link stays lost.
  /// Set by claim: the payload is best written by stores that pass the caches by. A hint for who copies much.
  bool streaming = false;
  /// Shorter payloads leave at once, as copies. 0, set by a wire in virtual time: none does, and the wire tells when a
  /// message has left (departure_of).
  std::uint64_t at_once_below_bytes = kLendFromBytes;
  /// Set by the engine while its threads may write into the peer's memory without the duty.
  LaneState* lane = nullptr;
  /// Names word of the peer (engine/segment/names_word.h); nullptr: it has none that can be seen from here.
  const std::atomic<std::uint64_t>* names = nullptr;
  std::uint64_t seen_names = 0;  ///< What it was when the link was found to lead to who has the peer's PID.
  std::uint64_t life = 0;        ///< Of the peer. No other process, and no other life of it, has this number.

  std::uint64_t names_now() const {
    return names != nullptr ? names->load(std::memory_order_acquire) : 0;  // (N1)
  }

  bool tells_departures() const { return at_once_below_bytes == 0; }

  /// Whether the PID may be another process's by now. @see Wire::leads_to_name
  bool may_have_moved() const { return lost || names_now() != seen_names; }

  /// Nobody may use it any more.
  void close_lane() {
    if (lane == nullptr) [[likely]]
      return;
    lane->open.store(0, std::memory_order_relaxed);
    lane->in_order.store(0, std::memory_order_relaxed);
    lane = nullptr;
  }

  /// Something is under way that calls with an order must not overtake. A wire with find_mapped says so before it
  /// publishes a packet that is not settled.
  void leave_order() {
    if (lane != nullptr) [[unlikely]]
      lane->in_order.store(0, std::memory_order_relaxed);
  }
};

/// Outcome of Wire::connect.
enum class ConnectResult : std::uint8_t {
  kConnected,   ///< The link carries packets.
  kInProgress,  ///< The peer exists but is not ready; call again later. Bounded by the caller.
  kNoSuchPeer,  ///< No living process has this address on this wire.
  kRefused,     ///< The peer exists and must not be talked to: other user, other layout version.
  kShort,       ///< Something is lacking now: a descriptor, memory, a channel of the peer's. Nothing is known about
                ///< the peer; call again, not at once. Bounded by the caller.
};

/// A place per source: it begins as it is made, and outlives the packets of the source.
struct SourceContext {
  void* engines = nullptr;  ///< For the engine's use.
  std::uint64_t life = 0;   ///< Which life of the sender, as Link::life. Set by the wire.
};

/// A packet that has arrived. Valid until Wire::release.
struct Packet {
  ProcessId source;     ///< Who sent it, as the wire knows it; not taken from the header.
  PacketHeader header;  ///< The only copy that anybody may read; made once from the shared line.
  Payload payload;      ///< `payload_bytes` bytes (already bounded by the wire); here, unless may_be_lent.
  SourceContext* source_context = nullptr;
};

/// What WireLimits::connect_timeout_ns is inside a node.
inline constexpr std::uint64_t kConnectTimeoutNs = 1'000'000'000;

/// Constant for the life of a wire.
struct WireLimits {
  std::uint32_t max_payload_bytes = 0;  ///< Most that one packet can carry; a multiple of 64, at least 4096.
  std::uint64_t connect_timeout_ns = kConnectTimeoutNs;  ///< For so long connect may stay kInProgress.
};

class Wire {
 public:
  /// @param facets  what this wire can do beside; those who are named outlive the wire
  Wire(const WireLimits& limits, const Facets& facets) : limits_(limits), facets_(facets) {}
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  const WireLimits& limits() const { return limits_; }
  std::uint32_t max_payload_bytes() const { return limits_.max_payload_bytes; }

  /// Each is nullptr if the wire cannot do that.
  Loans* loans() const { return facets_.loans; }
  Copies* copies() const { return facets_.copies; }
  PeerMemory* peer_memory() const { return facets_.peer_memory; }
  Completions* completions() const { return facets_.completions; }
  OtherNodes* other_nodes() const { return facets_.other_nodes; }

  // ---- Links ----

  /// Finds the link to a peer, or makes it. Never blocks.
  /// @param link  set on kConnected only; valid until disconnect
  virtual ConnectResult connect(ProcessId peer, Link** link) = 0;

  /// Gives the link back. Packets already published are still delivered if the peer lives.
  virtual void disconnect(Link* link) = 0;

  /// Looks whether the link, which may have moved, leads to who has the PID of the peer now; if not, it is lost.
  virtual bool leads_to_name(Link& link) = 0;

  // ---- Packets out ----

  /// Claims room for one packet. After a claim the only ways out are publish and discard.
  /// @return where to write the payload (64-byte aligned, `payload_bytes` long; non-null also for 0 bytes),
  ///         nullptr if there is no room now or the link is lost
  virtual std::byte* claim(Link& link, std::uint32_t payload_bytes) = 0;

  /// The same for a packet of an answer (is_of_answer). A wire on which packets wait for those before them keeps room
  /// for answers, so that they do not wait for requests; there, this room takes nothing else.
  virtual std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) = 0;

  /// Sends the claimed packet. `header.payload_bytes` must be what was claimed, or less.
  virtual void publish(Link& link, const PacketHeader& header) = 0;

  /// Gives the claimed room back; nothing is sent.
  virtual void discard(Link& link) = 0;

  /// True if some claim that failed for want of room since the last call could succeed now, or a Loans::has_taken, or
  /// if a connect that was in progress has come to an end.
  virtual bool has_room_again() = 0;

  // ---- Packets in ----

  /// Looks for the next packet of any source, fairly among sources, in order within each source. Makes whatever small
  /// progress the medium needs.
  /// @return true and fills `packet`; a second peek before release is a bug of the caller
  virtual bool peek(Packet& packet) = 0;

  /// Ends the use of the packet that peek returned.
  virtual void release() = 0;

  /// True if peek would find something. May be called by the thread that is about to sleep, after it announced it.
  virtual bool has_packets() = 0;

  // ---- Death ----

  /// Looks which peers have died; marks their links lost. Costs a system call a peer: call it about ten times a second
  /// while something is awaited.
  /// @return number of links newly lost
  virtual int check_peers() = 0;

  /// A source that is closed or dead and whose packets have all been taken; its context is forgotten after the call.
  /// @param engines  SourceContext::engines
  /// @return false if there is none
  virtual bool take_closed_source(ProcessId* source, void** engines) = 0;

  /// Whether something that this life of a process has published is still to be taken, or in hand. What has arrived is
  /// taken before the end of a life is acted upon, so of a lost link this is asked first. Costs system calls.
  virtual bool has_unheard(ProcessId peer, std::uint64_t life) = 0;

  /// No link to the peer could be made in time, and what it waits for from us was dropped. A wire on which it may live
  /// all the same makes it lose its link to us.
  virtual void give_up(ProcessId peer) = 0;

  /// A cheap check beforehand: false if take_closed_source would find nothing.
  bool may_have_closed_source() const { return closed_sources_ != 0; }

  /// The same of peek: true if it would find nothing, and has nothing to do.
  bool is_silent() const { return silent_; }

 protected:
  std::uint32_t closed_sources_ = 1;  ///< For take_closed_source; a wire that does not keep count leaves it alone.
  bool silent_ = false;               ///< For is_silent; a wire that hears others leaves it alone.

 private:
  const WireLimits limits_;
  const Facets facets_;
};

}  // namespace portofu
