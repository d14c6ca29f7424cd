#pragma once
// State of a simulated network: processes, and links with the packets that are on their way. SimNetwork owns it;
// SimWire works on it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/segment/lender.h"
#include "engine/segment/region_table.h"
#include "engine/topology/process_id.h"
#include "engine/wire/loans.h"
#include "engine/wire/sim/sim_packet.h"
#include "engine/wire/sim/sim_random.h"
#include "engine/wire/wire.h"

namespace portofu {

/// What varies, and how much. Every bound is inclusive; each link or packet draws its own number up to it.
struct SimOptions {
  std::uint32_t max_payload_bytes = 4096;  ///< Of every wire; a multiple of 64, at least 4096.
  std::uint32_t max_link_packets =
      8;                              ///< Packets that a link holds until they are released; each link draws 1 .. this.
  std::uint32_t max_delay_polls = 4;  ///< Polls of the receiver for which the first packet of a link stays invisible.
  std::uint32_t max_connect_in_progress = 3;  ///< Times that connect answers kInProgress before it succeeds.
  std::uint32_t max_ack_slots = 0;   ///< Acknowledgements without packets that a link holds; each draws 0 .. this. 0:
                                     ///< the wires have no Completions.
  std::uint32_t max_lent_bytes = 0;  ///< Of a packet; each link draws 1 .. this. 0: the wires have no Loans and Copies.
  bool shows_memory = false;         ///< Whether the wires have PeerMemory.
};

/// An acknowledgement without a packet.
struct SimAck {
  std::uint32_t operation_id;
  std::uint32_t delay_polls;  ///< As in SimPacket.
};

/// Copies::offer of the receiver of a link.
struct SimOffer {
  std::uint64_t message;  ///< Number of its first packet.
  std::byte* target;
  std::uint64_t bytes;
};

struct SimMedium;

/// The sender of a link, for who reads what it has lent.
class SimLender final : public Lender {
 public:
  bool read_lent(std::uint64_t address, std::byte* target, std::uint64_t bytes) const override;
  bool is_gone() const override;

  const SimMedium* medium = nullptr;
  std::uint32_t endpoint_index = 0;
};

/// One direction of traffic between two lives of processes. Removed from the medium when both ends have let it go.
struct SimLink : Link {
  std::uint32_t sender_index = 0;      ///< Endpoint that publishes.
  std::uint32_t receiver_index = 0;    ///< Endpoint that peeks.
  std::uint32_t in_progress_left = 0;  ///< Times that connect will still answer kInProgress.
  std::uint32_t capacity_packets = 1;  ///< Published and not released packets that fit.
  bool connected = false;              ///< connect has handed it out; until then the receiver sees nothing of it.
  bool sender_open = true;             ///< The sender lives and has not disconnected, and the link is not broken.
  bool broken = false;                 ///< Though both live: the sender may learn it.
  bool sender_holds = true;            ///< The sending wire, be its process dead, may still name this link.
  bool sender_end_known = false;       ///< The receiver may learn that the sender is gone.
  bool receiver_open = true;           ///< The receiver lives and has not taken the closed source.
  bool room_wanted = false;            ///< A claim failed for want of room, and has_room_again has not answered it yet.
  std::uint32_t held_packets = 0;      ///< 1 while the receiver has peeked and not released one, else 0.
  std::deque<SimPacket> packets;       ///< Published and not peeked, in order.
  std::optional<SimPayload> claimed;   ///< Room that the sender holds between claim and publish or discard.
  std::uint32_t claimed_bytes = 0;     ///< Size of `claimed`.
  SourceContext source;                ///< The receiver's.

  std::uint32_t ack_slots = 0;            ///< Most `acks`.
  std::deque<SimAck> acks;                ///< Of the receiver.
  std::uint32_t max_lent_bytes = 0;       ///< Loans::most_lent_bytes.
  std::optional<Loan> claimed_loan;       ///< The claim is one by lend.
  SimLender lender;                       ///< Us.
  std::optional<SimOffer> offer;          ///< The latest one of the receiver.
  std::uint64_t published = 0;            ///< Packets so far; the number of the next one.
  std::uint64_t released = 0;             ///< Of them, those that the receiver has released.
  std::uint64_t given_back = 0;           ///< Of them, those that it is done with. What is read later is so afterwards.
  bool reads_later = false;               ///< Between Copies::read_later and give_back_read.
  std::uint64_t awaited = 0;              ///< What has_taken was asked for in vain; 0: has_room_again has answered.
  std::uint64_t unsettled_end = 0;        ///< Number behind the last packet that is not settled.
  std::atomic<std::uint64_t> visited{0};  ///< MappedRegion::visited.

  bool has_room() const { return published - given_back < capacity_packets; }
};

/// One life of a process. A restarted process is a new endpoint with the same id.
struct SimEndpoint {
  ProcessId process;                           ///< Its address; unique among the living.
  bool alive = true;                           ///< False after kill or after its wire was destroyed; stays false.
  std::unique_ptr<RegionTableShared> regions;  ///< What its peers may use; nullptr unless SimOptions::shows_memory.
};

/// All of it. Vectors are in order of creation, so that no decision depends on an address in memory.
struct SimMedium {
  SimOptions options;
  SimRandom random;
  std::vector<SimEndpoint> endpoints;
  std::vector<std::unique_ptr<SimLink>> links;

  /// Finds the living endpoint of a process.
  /// @return its index, or nothing
  std::optional<std::uint32_t> find_living(ProcessId process) const;

  /// Makes a link between two living endpoints; it answers kInProgress for a while.
  SimLink& make_link(std::uint32_t sender_index, std::uint32_t receiver_index);

  /// Ends an endpoint: its outgoing links close, its incoming links have no receiver any more.
  /// @param killed  true if it did not do so itself: part of what it published is lost, and its peers do not know yet
  void end(std::uint32_t endpoint_index, bool killed);

  /// Breaks the links from one endpoint to another: part of what is on the way is lost, and neither end knows yet.
  void break_links(std::uint32_t sender_index, std::uint32_t receiver_index);

  /// Frees the links that nobody needs any more.
  void collect_links();
};

}  // namespace portofu
