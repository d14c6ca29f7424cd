#pragma once
// The one interface between the engine and whatever carries packets: memory of this node, a fabric, a simulator.
//
// A wire delivers the packets of one link in order, exactly once, or reports the link lost; a medium that cannot do so
// is wrapped by `wire/reliable`. Before anything of a later link of a process is delivered, be it a later life of it,
// the earlier one is drained and its source taken (take_closed_source). Every function is called by the thread on duty
// only and returns at once.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "engine/queue/ring_geometry.h"
#include "engine/topology/process_id.h"
#include "engine/wire/header.h"
#include "engine/wire/payload.h"

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
  /// Set by the engine while its threads may write into the peer's memory without the duty.
  LaneState* lane = nullptr;
  /// Names word of the peer (engine/segment/names_word.h); nullptr: it has none that can be seen from here.
  const std::atomic<std::uint64_t>* names = nullptr;
  std::uint64_t seen_names = 0;  ///< What it was when the link was found to lead to who has the peer's PID.

  std::uint64_t names_now() const {
    return names != nullptr ? names->load(std::memory_order_acquire) : 0;  // (N1)
  }

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

/// Bytes for registered memory of a peer, see engine/segment/region_table.h.
struct DirectPut {
  std::uint32_t control_queue = 0;  ///< Of the peer.
  std::uint32_t component = 0;
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;  ///< Into the region.
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// Memory of a peer that this process maps, and may use itself (engine/segment/region_table.h). Usable until the link
/// is given back, and only while `sequence` has the value `seen` (G1).
struct MappedRegion {
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  bool writable = false;
  bool readable = true;
  std::uint32_t user = 0;  ///< PublishedRegion::user.
  const std::atomic<std::uint64_t>* sequence = nullptr;
  std::uint64_t seen = 0;
  std::uint64_t match_bits = 0;  ///< PublishedRegion::match_bits.
  /// Where to say that it is in use (V1); nullptr: that cannot be said.
  std::atomic<std::uint64_t>* visited = nullptr;
};

/// Payload that stays where it is.
struct Loan {
  const std::byte* payload = nullptr;
  std::uint32_t bytes = 0;    ///< At most Wire::most_lent_bytes.
  std::uint64_t message = 0;  ///< Number of the first packet of the message (next_packet).
  std::uint64_t offset = 0;   ///< Of the payload in the message.
  bool last = false;          ///< Of the message. has_taken is asked for the last packet of a message that was lent.
};

/// A packet that has arrived. Valid until Wire::release.
struct Packet {
  ProcessId source;     ///< Who sent it, as the wire knows it; not taken from the header.
  PacketHeader header;  ///< The only copy that anybody may read; made once from the shared line.
  Payload payload;      ///< `payload_bytes` bytes (already bounded by the wire); here, unless may_be_lent.
  void** source_context =
      nullptr;  ///< A place per source for the engine's use; starts as nullptr, outlives the packet.
};

/// What Wire::connect_timeout_ns is inside a node.
inline constexpr std::uint64_t kConnectTimeoutNs = 1'000'000'000;

class Wire {
 public:
  virtual ~Wire() = default;

  /// Most payload bytes that one packet can carry; constant for the life of the wire, a multiple of 64, at least 4096.
  virtual std::uint32_t max_payload_bytes() const = 0;

  /// Finds the link to a peer, or makes it. Never blocks.
  /// @param link  set on kConnected only; valid until disconnect
  virtual ConnectResult connect(ProcessId peer, Link** link) = 0;

  /// Gives the link back. Packets already published are still delivered if the peer lives.
  virtual void disconnect(Link* link) = 0;

  /// Says to peers, when a link to them is made, at which port of this node they are told that their names are another
  /// process's by now, and calls `note` with what others have said so.
  virtual void introduce(std::uint16_t /*ear*/, std::function<void(std::uint32_t nid, std::uint16_t port)> /*note*/) {}

  /// This life of a process is over, whether the wire has noticed or not: a link to it may have moved, and does not
  /// lead to who has the PID. What the process has sent may still be on its way.
  virtual void end_life(ProcessId /*process*/, std::uint64_t /*life*/) {}

  /// Looks whether the link, which may have moved, leads to who has the PID of the peer now; if not, it is lost.
  virtual bool leads_to_name(Link& link) { return !link.lost; }

  /// Which life of the peer the link leads to. No other process, and no other life of it, has this number.
  virtual std::uint64_t life_at(const Link&) const { return 0; }

  /// The same of whoever sent the packet that peek returned.
  virtual std::uint64_t life_in_hand() const { return 0; }

  /// Whether something that this life of a process has published is still to be taken, or in hand. What has arrived is
  /// taken before the end of a life is acted upon, so of a lost link this is asked first. Costs system calls.
  virtual bool has_unheard(ProcessId /*peer*/, std::uint64_t /*life*/) { return false; }

  /// No link to the peer could be made in time, and what it waits for from us was dropped. A wire on which it may live
  /// all the same makes it lose its link to us.
  virtual void give_up(ProcessId /*peer*/) {}

  /// Claims room for one packet. After a claim the only ways out are publish and discard.
  /// @return where to write the payload (64-byte aligned, `payload_bytes` long; non-null also for 0 bytes),
  ///         nullptr if there is no room now or the link is lost
  virtual std::byte* claim(Link& link, std::uint32_t payload_bytes) = 0;

  /// The same for a packet of an answer (is_of_answer). A wire on which packets wait for those before them keeps room
  /// for answers, so that they do not wait for requests; there, this room takes nothing else.
  virtual std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) { return claim(link, payload_bytes); }

  /// Longest payload of a packet that lend makes now; 0: it makes none.
  virtual std::uint32_t most_lent_bytes(const Link&) const { return 0; }

  /// Messages from this length on are best lent in two packets at least: either side may copy some.
  /// @param message  Loan::message of the one that is asked for
  virtual std::uint64_t shares_from_bytes(Link& /*link*/, std::uint64_t /*message*/) { return UINT64_MAX; }

  /// Claims a packet whose payload stays where it is: memory of this process that the peer reads itself. It must not
  /// change until has_taken says so. Publish or discard follow as for claim.
  /// @return false if that cannot be done, now or ever: then `claim` is the way
  virtual bool lend(Link&, const Loan&) { return false; }

  /// Number of the packet that is published next on a link.
  virtual std::uint64_t next_packet(const Link&) const { return 0; }

  /// Whether the peer is done with all that was lent with packets before this number. If not, it will wake an engine
  /// that sleeps.
  virtual bool has_taken(Link&, std::uint64_t /*packet*/) { return true; }

  /// Copies for the peer some of what was lent to it, if it has offered a place. For who has nothing better to do.
  /// @return false if there was nothing that could be done
  virtual bool help(Link&) { return false; }

  /// The sender of the packet that peek returned may write the message that begins with it to `target`: those packets
  /// of it that lie within the first `bytes`.
  virtual void offer(std::byte* /*target*/, std::uint64_t /*bytes*/) {}

  /// The payload of the packet that peek returned is in the memory of its sender (Payload::is_in_memory). Its first
  /// `bytes` are read to `target` by read_now, at once with those of the packets behind it. The packet is released as
  /// any other, but its sender hears of that by give_back_read only.
  /// @return false if it has to be read now: there are kMostReadLater already, or one of another source
  virtual bool read_later(std::byte* /*target*/, std::uint64_t /*bytes*/) { return false; }
  static constexpr std::uint32_t kMostReadLater = 8;

  /// Reads what was to be read later. @return bit k: the k-th payload has been read
  virtual std::uint32_t read_now() { return 0; }

  /// To be called after read_now, when all is done that the sender may rely on once it has its memory back.
  virtual void give_back_read() {}

  /// Tells the sender of the packet that peek returned, or of what read_now has read, that an operation of its is
  /// complete as it was asked for: what a packet of an answer would say, with less.
  /// @return false: it has to be a packet
  virtual bool acknowledge(ProcessId /*sender*/, std::uint32_t /*operation_id*/) { return false; }

  /// The next operation of which the peer has said so. @return 0: there is none
  virtual std::uint32_t take_acknowledgement(Link&) { return 0; }
  virtual bool has_acknowledgement(Link&) { return false; }

  /// Nobody writes any more to what was offered to this source. Waits for a copy that is under way.
  virtual void take_offers_back(ProcessId /*source*/) {}

  /// Sends the claimed packet. `header.payload_bytes` must be what was claimed, or less.
  virtual void publish(Link& link, const PacketHeader& header) = 0;

  /// Gives the claimed room back; nothing is sent.
  virtual void discard(Link& link) = 0;

  /// Writes into registered memory of the peer without its help, behind everything that was published to it.
  /// @return false if that cannot be done now, or is no gain, or went wrong: then a packet has to do it, or to find out
  ///         why not
  virtual bool put_directly(Link&, const DirectPut&) { return false; }

  /// Finds memory of the peer that this process reaches by its own loads and stores.
  /// @param key  region_key or entry_key
  /// @return false if it does not
  virtual bool find_mapped(Link&, std::uint64_t /*key*/, MappedRegion*) { return false; }

  /// Whether the peer has taken all that was published to it but settled packets (is_settled of header.h).
  virtual bool has_settled(Link&) { return false; }

  /// Looks for the next packet of any source, fairly among sources, in order within each source. Makes whatever small
  /// progress the medium needs.
  /// @return true and fills `packet`; a second peek before release is a bug of the caller
  virtual bool peek(Packet& packet) = 0;

  /// Ends the use of the packet that peek returned.
  virtual void release() = 0;

  /// True if peek would find something. May be called by the thread that is about to sleep, after it announced it.
  virtual bool has_packets() = 0;

  /// True if some claim that failed for want of room since the last call could succeed now, or a has_taken, or if a
  /// connect that was in progress has come to an end.
  virtual bool has_room_again() = 0;

  /// Looks which peers have died; marks their links lost. Costs a system call a peer: call it about ten times a second
  /// while something is awaited.
  /// @return number of links newly lost
  virtual int check_peers() = 0;

  /// A source that is closed or dead and whose packets have all been taken; its context is forgotten after the call.
  /// @return false if there is none
  virtual bool take_closed_source(ProcessId* source, void** source_context) = 0;

  /// What a sleeping engine has to wait at beside its doorbell: readable when has_packets would find something. To be
  /// asked for after has_packets was false.
  /// @return -1: peers ring the doorbell
  virtual int wait_fd() const { return -1; }

  /// How long connect may stay kInProgress before its caller gives up.
  virtual std::uint64_t connect_timeout_ns() const { return kConnectTimeoutNs; }

  /// When somebody has to look at the latest (peek, has_packets) though nothing arrives, by the clock of the engine.
  /// @return UINT64_MAX: there is no need to
  virtual std::uint64_t next_due_ns() const { return UINT64_MAX; }

  /// Whether all that was published has arrived, or will without this process.
  virtual bool has_delivered() const { return true; }

  /// False: take_closed_source would find nothing.
  bool may_have_closed_source() const { return closed_sources_ != 0; }

  /// True: peek would find nothing, and has nothing to do.
  bool is_silent() const { return silent_; }

 protected:
  std::uint32_t closed_sources_ = 1;  ///< For take_closed_source; a wire that does not keep count leaves it alone.
  bool silent_ = false;               ///< For is_silent; a wire that hears others leaves it alone.
};

}  // namespace portofu
