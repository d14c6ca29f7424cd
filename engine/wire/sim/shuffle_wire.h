#pragma once
// The disorder of the simulated network on the wires of real processes: a wire that holds back what another wire has
// brought, and hands it on in any order that Portals allows. The setting PORTOFU_SHUFFLE puts it between an engine and
// its wires: the conformance tests run so, and a program can be tried for trusting in an order that nobody promises.
//
// What varies: which source is heard next, how many polls a packet stays invisible, whether answers of a peer overtake
// its requests or the other way round, in which order its answers come (3.10.1: acknowledgements and replies "are never
// required to be ordered"; those of uTofu are), and where among the waiting requests of its source a message comes that
// was sent with PTL_MD_UNORDERED (2.7.5), however long. What stays: other requests of one source come in their order,
// whatever interface they are for, because 2.7 promises it to a pair of processes; and packets of one message follow
// each other.
//
// A packet is copied and given back to the wire below, but for one that was lent: that stays in hand below until the
// engine is done with it, so that offers, help and deferred reads go on as they do without this wire.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/wire/completions.h"
#include "engine/wire/payload.h"
#include "engine/wire/sim/sim_packet.h"
#include "engine/wire/sim/sim_random.h"
#include "engine/wire/wire.h"

namespace portofu {

/// Wire over another wire. Used by the thread on duty.
class ShuffleWire final : public Wire, public Completions {
 public:
  /// @param inner  outlives this wire; nobody else peeks into it
  /// @param seed   decides every choice, but not when packets arrive
  ShuffleWire(Wire& inner, std::uint64_t seed)
      : Wire(inner.limits(),
             // Memory of a peer is in order behind packets that it has given back, and packets that wait at a wire like
             // this one have been given back.
             {.loans = inner.loans(),
              .copies = inner.copies(),
              .peer_memory = nullptr,
              .completions = inner.completions() != nullptr ? this : nullptr,
              .other_nodes = inner.other_nodes()}),
        inner_(inner),
        random_(seed) {}

  ConnectResult connect(ProcessId peer, Link** link) override { return inner_.connect(peer, link); }
  void disconnect(Link* link) override { inner_.disconnect(link); }
  bool leads_to_name(Link& link) override { return inner_.leads_to_name(link); }
  bool has_unheard(ProcessId peer, std::uint64_t life) override;
  void give_up(ProcessId peer) override { inner_.give_up(peer); }
  std::byte* claim(Link& link, std::uint32_t payload_bytes) override { return inner_.claim(link, payload_bytes); }
  std::byte* claim_answer(Link& link, std::uint32_t payload_bytes) override {
    return inner_.claim_answer(link, payload_bytes);
  }
  void publish(Link& link, const PacketHeader& header) override { inner_.publish(link, header); }
  void discard(Link& link) override { inner_.discard(link); }
  bool peek(Packet& packet) override;
  void release() override;
  bool has_packets() override { return waiting_packets_ > 0 || inner_.has_packets(); }
  bool has_room_again() override { return inner_.has_room_again(); }
  int check_peers() override { return inner_.check_peers(); }
  bool take_closed_source(ProcessId* source, void** engines) override;

  bool acknowledge(ProcessId sender, std::uint32_t operation_id) override;
  bool acknowledge_released(ProcessId sender, std::uint64_t life, std::uint32_t operation_id) override {
    return inner_.completions()->acknowledge_released(sender, life, operation_id);
  }
  std::uint32_t take_acknowledgement(Link& link) override { return inner_.completions()->take_acknowledgement(link); }
  bool has_acknowledgement(Link& link) override { return inner_.completions()->has_acknowledgement(link); }

 private:
  /// A packet that waits.
  struct HeldBack : SimPacket {
    std::optional<Payload> lent;  ///< The wire below has the packet in hand. Its payload, which is not here.
  };

  /// The packets of one message, which come in their order.
  struct Message {
    std::deque<HeldBack> packets;     ///< Those that wait.
    std::uint64_t missing_bytes = 0;  ///< Payload that has not arrived.
    bool ordered = false;             ///< No other ordered message may come between it and its predecessor.
    bool begun = false;               ///< Its first packet was handed on, so the rest must follow.
    bool starves() const { return begun && packets.empty() && missing_bytes > 0; }
    bool over() const { return begun && packets.empty() && missing_bytes == 0; }
  };

  /// Messages of one kind of one source, in the order in which they are handed on.
  using Lane = std::deque<Message>;
  enum LaneIndex : std::size_t { kRequests, kAnswers, kLaneCount };

  /// One source of the inner wire, which keeps its address as the source's context.
  struct Source : SourceContext {
    ProcessId id;
    std::array<Lane, kLaneCount> lanes;
    bool empty() const { return lanes[kRequests].empty() && lanes[kAnswers].empty(); }
  };

  /// Where a packet may be taken now.
  struct Choice {
    Source* source;
    Lane* lane;
  };

  void take_in();
  bool may_take_in() const;
  Message& place(Lane& lane, const PacketHeader& header);
  std::vector<Choice> poll_lanes();

  Wire& inner_;
  SimRandom random_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::size_t waiting_packets_ = 0;  ///< In all lanes.
  Source* closing_ = nullptr;        ///< The inner wire has closed it; nothing new is taken in until it is empty.
  std::optional<HeldBack> held_;     ///< Between peek and release.
  Source* held_source_ = nullptr;    ///< Where it came from.
  bool in_hand_ = false;             ///< The wire below has a packet in hand, which waits here or is `held_`.
};

}  // namespace portofu
